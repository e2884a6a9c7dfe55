//! Interns schemas: equal ones are stored once.

use super::{Additional, Extensions, Json, Structural, Type, ValidationRule, ValueValidation};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use scantling_value::{Map, Value};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// A store in which equal schemas are one.
///
/// It lives as long as the CRDs of a process; [`Interner::sweep`] drops schemas that no CRD uses.
///
/// Most schemas of a CRD occur many times, so they are looked up before they are built: an [`InternKey`]
/// borrows from the document and refers to its children by their slots.
#[derive(Debug, Default)]
pub struct Interner {
    nodes: InternedSchemas,
    /// The slots of the nodes by hash.
    slots: HashTable<SchemaId>,
    hasher: RandomState,
    /// The schemas with only a type, which most leaves are, by type and nullability.
    types: [Option<SchemaId>; 2 * (Type::COUNT + 1)],
}

/// The stored schemas with their hashes, by slot.
#[derive(Debug, Default)]
struct InternedSchemas(Vec<(u64, Arc<Structural>)>);

/// The slot of a schema in an interner, valid until it is swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchemaId(u32);

/// A lookup key. Rare parts of the schema are already built, the others are borrowed from the document.
#[derive(Debug, Default)]
pub(crate) struct InternKey<'d> {
    pub(crate) ty: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) default: Option<&'d Value>,
    /// The names of `properties`.
    pub(crate) names: Option<&'d Map>,
    /// The schemas of `properties`, in the same order.
    pub(crate) properties: &'d [SchemaId],
    pub(crate) additional: Option<InternKeyAdditional>,
    pub(crate) items: Option<SchemaId>,
    pub(crate) extensions: Option<Box<Extensions>>,
    pub(crate) rules: Box<[ValidationRule]>,
    pub(crate) validation: Option<Box<ValueValidation>>,
}

/// The `additionalProperties` of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InternKeyAdditional {
    Any(bool),
    Schema(SchemaId),
}

impl InternedSchemas {
    fn get(&self, slot: SchemaId) -> Option<&(u64, Arc<Structural>)> {
        self.0.get(usize::try_from(slot.0).ok()?)
    }

    /// The hash of a stored schema. Equal schemas have the same slot, so parents do not hash what is below
    /// it.
    fn hash_of(&self, slot: SchemaId) -> u64 {
        self.get(slot).map_or(0, |(hash, _)| *hash)
    }

    fn schema(&self, slot: SchemaId) -> Arc<Structural> {
        self.get(slot)
            .map_or_else(Arc::default, |(_, schema)| Arc::clone(schema))
    }

    /// Returns whether a schema is the stored one in this slot, not only equal to it.
    fn holds(&self, slot: SchemaId, schema: &Arc<Structural>) -> bool {
        self.get(slot)
            .is_some_and(|(_, known)| Arc::ptr_eq(known, schema))
    }
}

impl<'d> InternKey<'d> {
    /// The declared fields.
    fn fields(&self) -> impl Iterator<Item = (&'d str, SchemaId)> {
        let names = self.names.into_iter().flat_map(Map::iter);
        names
            .zip(self.properties)
            .map(|((name, _), slot)| (name.as_str(), *slot))
    }

    /// Most nodes have little more than a type, so absent parts and text terminators are not hashed.
    fn hash<H: Hasher>(&self, nodes: &InternedSchemas, state: &mut H) {
        state.write_u8(self.ty.map_or(0, |ty| ty as u8 + 1) << 1 | u8::from(self.nullable));
        if let Some(default) = self.default {
            super::hash_value(default, state);
        }
        self.extensions.iter().for_each(|x| x.hash(state));
        self.rules.iter().for_each(|rule| rule.hash(state));
        for (name, slot) in self.fields() {
            state.write(name.as_bytes());
            state.write_u64(nodes.hash_of(slot));
        }
        match self.additional {
            Some(InternKeyAdditional::Any(any)) => any.hash(state),
            Some(InternKeyAdditional::Schema(values)) => state.write_u64(nodes.hash_of(values)),
            None => {}
        }
        if let Some(items) = self.items {
            state.write_u64(nodes.hash_of(items));
        }
        if let Some(v) = &self.validation {
            hash_validation(v, state);
        }
    }

    /// Returns whether a stored schema equals the key.
    fn equals(&self, schema: &Structural, nodes: &InternedSchemas) -> bool {
        let Structural {
            ty,
            nullable,
            default,
            properties,
            additional,
            items,
            extensions,
            rules,
            validation,
        } = schema;
        let same_default = match (self.default, default) {
            (None, None) => true,
            (Some(a), Some(b)) => super::same(a, &b.0),
            _ => false,
        };
        let same_items = match (self.items, items) {
            (None, None) => true,
            (Some(a), Some(b)) => nodes.holds(a, b),
            _ => false,
        };
        let same_additional = match (self.additional, additional) {
            (None, None) => true,
            (Some(InternKeyAdditional::Any(a)), Some(Additional::Any(b))) => a == *b,
            (Some(InternKeyAdditional::Schema(a)), Some(Additional::Schema(b))) => nodes.holds(a, b),
            _ => false,
        };
        let same_fields = || {
            let mut fields = self.fields().zip(properties);
            fields.all(|((a, slot), (b, schema))| nodes.holds(slot, schema) && a == b.as_str())
        };
        self.ty == *ty
            && self.nullable == *nullable
            && same_default
            && same_items
            && same_additional
            && self.properties.len() == properties.len()
            && same_fields()
            && self.extensions == *extensions
            && self.rules == *rules
            && self.validation == *validation
    }

    fn build(self, nodes: &InternedSchemas) -> Structural {
        let fields = self.names.into_iter().flat_map(Map::keys);
        let fields = fields.zip(self.properties);
        Structural {
            ty: self.ty,
            nullable: self.nullable,
            default: self.default.cloned().map(Json::from),
            properties: fields
                .map(|(name, slot)| (name.clone(), nodes.schema(*slot)))
                .collect(),
            additional: self.additional.map(|additional| match additional {
                InternKeyAdditional::Any(any) => Additional::Any(any),
                InternKeyAdditional::Schema(values) => Additional::Schema(nodes.schema(values)),
            }),
            items: self.items.map(|items| nodes.schema(items)),
            extensions: self.extensions,
            rules: self.rules,
            validation: self.validation,
        }
    }
}

fn hash_validation<H: Hasher>(v: &ValueValidation, state: &mut H) {
    // The hash may ignore some limits, because equality compares all of them.
    let texts = [&v.pattern, &v.format].into_iter().chain(&v.required);
    for text in texts.filter(|text| !text.is_empty()) {
        state.write(text.as_bytes());
    }
    v.enumeration.iter().for_each(|value| value.hash(state));
    v.maximum.iter().chain(&v.minimum).for_each(|n| n.hash(state));
    let limits = [v.max_length, v.min_length, v.max_items, v.min_items];
    for (which, limit) in (0u8..).zip(limits) {
        if let Some(limit) = limit {
            state.write_u8(which);
            state.write_i64(limit);
        }
    }
    // The branches are already interned, so equal ones have the same address.
    let branches = [&v.all_of, &v.one_of, &v.any_of].into_iter().flatten();
    for branch in branches.chain(&v.not) {
        Arc::as_ptr(branch).hash(state);
    }
}

impl Interner {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the stored schema for a key, whose children must come from this store.
    pub(crate) fn intern(&mut self, draft: InternKey<'_>) -> SchemaId {
        let Interner { nodes, slots, .. } = self;
        let mut state = self.hasher.build_hasher();
        draft.hash(nodes, &mut state);
        let hash = state.finish();
        let is_it = |slot: &SchemaId| {
            let node = nodes.get(*slot);
            node.is_some_and(|(known, schema)| *known == hash && draft.equals(schema, nodes))
        };
        if let Some(known) = slots.find(hash, is_it) {
            return *known;
        }
        // Memory cannot hold so many schemas.
        let slot = SchemaId(u32::try_from(nodes.0.len()).unwrap_or(u32::MAX));
        let schema = Arc::new(draft.build(nodes));
        nodes.0.push((hash, schema));
        slots.insert_unique(hash, slot, |slot| nodes.hash_of(*slot));
        slot
    }

    /// Returns the stored schema with only a type.
    pub(crate) fn type_alone(&mut self, ty: Option<Type>, nullable: bool) -> SchemaId {
        let place = 2 * ty.map_or(0, |ty| ty as usize + 1) + usize::from(nullable);
        if let Some(known) = self.types.get(place).copied().flatten() {
            return known;
        }
        let slot = self.intern(InternKey {
            ty,
            nullable,
            ..InternKey::default()
        });
        if let Some(place) = self.types.get_mut(place) {
            *place = Some(slot);
        }
        slot
    }

    /// The schema of a slot.
    pub(crate) fn schema(&self, slot: SchemaId) -> Arc<Structural> {
        self.nodes.schema(slot)
    }

    /// The number of stored schemas.
    pub fn len(&self) -> usize {
        self.nodes.0.len()
    }

    /// Returns whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.0.is_empty()
    }

    /// Drops the schemas without other owners.
    pub fn sweep(&mut self) {
        let Interner { nodes, slots, .. } = self;
        // Children come before their parents, so one backward pass frees whole trees.
        let mut kept = Vec::new();
        while let Some((hash, schema)) = nodes.0.pop() {
            if Arc::strong_count(&schema) > 1 {
                kept.push((hash, schema));
            }
        }
        kept.reverse();
        nodes.0 = kept;
        // The slots have changed.
        self.types = Default::default();
        slots.clear();
        for (slot, (hash, _)) in (0..).zip(&nodes.0) {
            slots.insert_unique(*hash, SchemaId(slot), |slot| nodes.hash_of(*slot));
        }
        slots.shrink_to_fit(|slot| nodes.hash_of(*slot));
    }
}
