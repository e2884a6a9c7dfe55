//! Stores equal schemas once.

use super::{Additional, Structural, Type, ValueValidation};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

/// A store of schemas in which equal ones are one.
///
/// It lives as long as the definitions of a process; [`Interner::sweep`] forgets what no definition uses any more.
#[derive(Debug, Default)]
pub struct Interner {
    /// With their hashes: most schemas are found here, and are no more than compared.
    nodes: HashTable<(u64, Arc<Structural>)>,
    hasher: RandomState,
    /// The schemas that are no more than a type, which most leaves of a definition are.
    types: Vec<Arc<Structural>>,
}

/// Hashes a node whose children are in the store already: they are hashed by address, so that interning a tree visits
/// every node once. (Equality needs nothing of its own: `Arc` compares addresses first, and unequal children differ early.)
struct Node<'s>(&'s Structural);

impl Hash for Node<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
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
        } = self.0;
        // Most nodes have little more than a type: what they lack is not hashed, nor are the ends of texts.
        state.write_u8(ty.map_or(0, |ty| ty as u8 + 1) << 1 | u8::from(*nullable));
        default.iter().for_each(|default| default.hash(state));
        extensions.iter().for_each(|extensions| extensions.hash(state));
        rules.iter().for_each(|rule| rule.hash(state));
        for (name, child) in properties {
            state.write(name.as_bytes());
            address(child, state);
        }
        match additional {
            Some(Additional::Any(b)) => b.hash(state),
            Some(Additional::Schema(child)) => address(child, state),
            None => {}
        }
        items.iter().for_each(|child| address(child, state));
        if let Some(v) = validation {
            let ValueValidation {
                all_of,
                one_of,
                any_of,
                not,
                pattern,
                format,
                enumeration,
                required,
                ..
            } = &**v;
            let texts = [pattern, format].into_iter().chain(required);
            for text in texts.filter(|text| !text.is_empty()) {
                state.write(text.as_bytes());
            }
            enumeration.iter().for_each(|value| value.hash(state));
            v.maximum.iter().chain(&v.minimum).for_each(|n| n.hash(state));
            let limits = [v.max_length, v.min_length, v.max_items, v.min_items];
            for (which, limit) in (0u8..).zip(limits) {
                if let Some(limit) = limit {
                    state.write_u8(which);
                    state.write_i64(limit);
                }
            }
            for junctor in [all_of, one_of, any_of] {
                junctor.iter().for_each(|child| address(child, state));
            }
            not.iter().for_each(|child| address(child, state));
        }
    }
}

fn address<H: Hasher>(child: &Arc<Structural>, state: &mut H) {
    Arc::as_ptr(child).hash(state);
}

impl Interner {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The stored schema that equals this one, whose children must come from this store.
    pub fn intern(&mut self, schema: Structural) -> Arc<Structural> {
        let hash = self.hasher.hash_one(Node(&schema));
        let is_same = |(known, node): &(u64, Arc<Structural>)| *known == hash && **node == schema;
        match self.nodes.entry(hash, is_same, |(hash, _)| *hash) {
            Entry::Occupied(known) => Arc::clone(&known.get().1),
            Entry::Vacant(place) => {
                let shared = Arc::new(schema);
                place.insert((hash, Arc::clone(&shared)));
                shared
            }
        }
    }

    /// The stored schema that is no more than a type.
    pub(crate) fn type_alone(&mut self, ty: Option<Type>, nullable: bool) -> Arc<Structural> {
        let known = self.types.iter().find(|s| s.ty == ty && s.nullable == nullable);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let schema = self.intern(Structural {
            ty,
            nullable,
            ..Structural::default()
        });
        self.types.push(Arc::clone(&schema));
        schema
    }

    /// The number of different schemas.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no schema is stored.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Forgets the schemas that nobody outside uses.
    pub fn sweep(&mut self) {
        // A child lives at least as long as its parents, so every round may free another level.
        self.types.clear();
        loop {
            let before = self.nodes.len();
            self.nodes.retain(|(_, node)| Arc::strong_count(node) > 1);
            if self.nodes.len() == before {
                self.nodes.shrink_to_fit(|(hash, _)| *hash);
                return;
            }
        }
    }
}
