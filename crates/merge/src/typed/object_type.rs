//! Types for field ownership: a view of a structural schema.

use super::builtin_types::merge_schema;
use crate::fields::Element;
use scantling_apitypes::TypeTable;
use scantling_schema::structural::{Additional, ListType, MapType, Structural, Type};
use scantling_value::{Map, Str, Value};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The type of objects of one version of a kind.
#[derive(Clone, Debug)]
pub struct ObjectType(TypeRoot);

#[derive(Clone, Debug)]
enum TypeRoot {
    Schema {
        schema: Arc<Structural>,
        preserve: UnknownFields,
    },
    Free,
    Scale,
}

/// The treatment of undeclared fields. A schema can allow them for a subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    No,
    Yes,
}

impl ObjectType {
    /// The type of objects with a schema. Adds `apiVersion`, `kind` and `metadata`.
    pub fn new(schema: Arc<Structural>) -> Self {
        ObjectType(TypeRoot::Schema {
            schema,
            preserve: UnknownFields::No,
        })
    }

    /// The same, for a CRD that preserves unknown fields everywhere.
    #[must_use]
    pub fn preserving_unknown_fields(self) -> Self {
        match self.0 {
            TypeRoot::Schema { schema, .. } => ObjectType(TypeRoot::Schema {
                schema,
                preserve: UnknownFields::Yes,
            }),
            other => ObjectType(other),
        }
    }

    /// The type of objects without a schema: objects are merged field by field, lists are atomic.
    pub fn free() -> Self {
        ObjectType(TypeRoot::Free)
    }

    /// The type of `Scale` in `autoscaling/v1`.
    pub fn scale() -> Self {
        ObjectType(TypeRoot::Scale)
    }

    pub(crate) fn root(&self) -> TypeRef<'_> {
        match &self.0 {
            TypeRoot::Schema { schema, preserve } => TypeRef::Object {
                schema,
                preserve: *preserve,
            },
            TypeRoot::Free => TypeRef::Free,
            TypeRoot::Scale => TypeRef::Object {
                schema: &SCALE,
                preserve: UnknownFields::No,
            },
        }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TypeRef<'s> {
    /// A schema node.
    Schema {
        schema: &'s Structural,
        preserve: UnknownFields,
    },
    /// A schema node with `apiVersion`, `kind` and `metadata`, regardless of what the schema declares.
    Object {
        schema: &'s Structural,
        preserve: UnknownFields,
    },
    /// An object without a schema.
    Free,
    /// Any value: objects are merged field by field, everything else is atomic.
    Deduced,
    /// Any value, atomic.
    Untyped,
    /// A string.
    Text,
}

/// The kinds of values that a type allows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TypeKinds<'s> {
    pub(crate) map: Option<MapSchema<'s>>,
    pub(crate) scalar: Option<ScalarType>,
    pub(crate) list: Option<ListSchema<'s>>,
}

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarType {
    Numeric,
    String,
    Boolean,
    Any,
}

/// A list type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListSchema<'s> {
    pub(crate) element: TypeRef<'s>,
    pub(crate) relation: ElementIdentity<'s>,
}

/// The identification of list elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ElementIdentity<'s> {
    /// None: the list is atomic.
    Atomic,
    /// By their value.
    Set,
    /// By key fields.
    Keyed(&'s [Str]),
}

/// An object type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapSchema<'s> {
    schema: Option<&'s Structural>,
    preserve: UnknownFields,
    has_type_meta: bool,
    pub(crate) atomic: bool,
    /// The type of undeclared members, if they are allowed.
    pub(crate) element: Option<TypeRef<'s>>,
}

/// The kind as which a value is treated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChosenType<'s> {
    Map(MapSchema<'s>),
    Scalar(ScalarType),
    List(ListSchema<'s>),
}

impl<'s> TypeRef<'s> {
    fn from_schema(schema: &'s Structural, preserve: UnknownFields) -> Self {
        if schema.is_embedded_resource() {
            TypeRef::Object { schema, preserve }
        } else {
            TypeRef::Schema { schema, preserve }
        }
    }

    /// The kinds of values that the type allows.
    pub(crate) fn kinds(self) -> TypeKinds<'s> {
        match self {
            TypeRef::Schema { schema, preserve } => schema_kinds(schema, preserve, false),
            TypeRef::Object { schema, preserve } => schema_kinds(schema, preserve, true),
            TypeRef::Free => TypeKinds {
                map: Some(MapSchema::without_fields(TypeRef::Deduced, false)),
                ..TypeKinds::default()
            },
            TypeRef::Deduced => TypeKinds {
                map: Some(MapSchema::without_fields(TypeRef::Deduced, false)),
                scalar: Some(ScalarType::Any),
                list: Some(ListSchema::untyped()),
            },
            TypeRef::Untyped => TypeKinds {
                map: Some(MapSchema::without_fields(TypeRef::Untyped, true)),
                scalar: Some(ScalarType::Any),
                list: Some(ListSchema::untyped()),
            },
            TypeRef::Text => TypeKinds {
                scalar: Some(ScalarType::String),
                ..TypeKinds::default()
            },
        }
    }

    /// Returns whether the type allows every value.
    pub(crate) fn is_anything(self) -> bool {
        matches!(self, TypeRef::Deduced | TypeRef::Untyped)
    }

    /// The default for an absent value of this type.
    fn default(self) -> Option<&'s Value> {
        match self {
            TypeRef::Schema { schema, .. } | TypeRef::Object { schema, .. } => {
                schema.default.as_ref().map(|d| &*d.0)
            }
            _ => None,
        }
    }
}

fn schema_kinds(schema: &Structural, preserve: UnknownFields, has_type_meta: bool) -> TypeKinds<'_> {
    let preserve = match schema.preserves_unknown_fields() {
        true => UnknownFields::Yes,
        false => preserve,
    };
    let map = || Some(MapSchema::from_schema(schema, preserve, has_type_meta));
    let list = || Some(ListSchema::from_schema(schema, preserve));
    let scalar = |scalar| TypeKinds {
        scalar: Some(scalar),
        ..TypeKinds::default()
    };
    match schema.ty {
        None => TypeKinds {
            map: map(),
            scalar: Some(ScalarType::Any),
            list: list(),
        },
        Some(Type::Object) => TypeKinds {
            map: map(),
            ..TypeKinds::default()
        },
        Some(Type::Array) => TypeKinds {
            list: list(),
            ..TypeKinds::default()
        },
        Some(Type::Integer | Type::Number) => scalar(ScalarType::Numeric),
        Some(Type::Boolean) => scalar(ScalarType::Boolean),
        // kube-openapi makes a string with any other format an untyped scalar, so an apply may send a number
        // there.
        Some(Type::String) => match schema.validation.as_ref().map_or("", |v| v.format.as_str()) {
            "" | "byte" => scalar(ScalarType::String),
            _ => scalar(ScalarType::Any),
        },
    }
}

impl<'s> TypeKinds<'s> {
    /// The kind as which a value is treated, and whether the value determined it. An absent or null value, or
    /// one of a kind that the type does not allow, is treated as the first allowed kind.
    pub(crate) fn choose(self, value: Option<&Value>) -> (Option<ChosenType<'s>>, bool) {
        let decided = match value {
            Some(Value::Object(_)) => self.map.map(ChosenType::Map),
            Some(Value::Array(_)) => self.list.map(ChosenType::List),
            Some(Value::Null) | None => None,
            Some(_) => self.scalar.map(ChosenType::Scalar),
        };
        if decided.is_some() {
            return (decided, true);
        }
        // The order in which structured-merge-diff tries the kinds of an ambiguous type.
        let first = self.map.map(ChosenType::Map);
        let first = first.or_else(|| self.scalar.map(ChosenType::Scalar));
        (
            first.or_else(|| self.list.map(ChosenType::List)),
            self.count() < 2,
        )
    }

    fn count(&self) -> usize {
        usize::from(self.map.is_some())
            + usize::from(self.scalar.is_some())
            + usize::from(self.list.is_some())
    }
}

impl ChosenType<'_> {
    /// Returns whether both are the same kind of the same type.
    pub(crate) fn is_same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl<'s> MapSchema<'s> {
    fn without_fields(element: TypeRef<'s>, atomic: bool) -> Self {
        MapSchema {
            schema: None,
            preserve: UnknownFields::No,
            has_type_meta: false,
            atomic,
            element: Some(element),
        }
    }

    fn from_schema(schema: &'s Structural, preserve: UnknownFields, has_type_meta: bool) -> Self {
        let element = match &schema.additional {
            None if preserve == UnknownFields::Yes => Some(TypeRef::Deduced),
            // kube-openapi deduces the types of members if the schema declares none.
            None if schema.properties.is_empty() && !has_type_meta => Some(TypeRef::Deduced),
            None | Some(Additional::Any(false)) => None,
            Some(Additional::Any(true)) => Some(TypeRef::Deduced),
            Some(Additional::Schema(values)) => Some(TypeRef::from_schema(values, preserve)),
        };
        MapSchema {
            schema: Some(schema),
            preserve,
            has_type_meta,
            atomic: schema.map_type() == Some(MapType::Atomic),
            element,
        }
    }

    /// The type of a declared field.
    pub(crate) fn field(&self, name: &str) -> Option<TypeRef<'s>> {
        if self.has_type_meta {
            match name {
                "apiVersion" | "kind" => return Some(TypeRef::Text),
                "metadata" => {
                    return Some(TypeRef::Schema {
                        schema: &OBJECT_META,
                        preserve: UnknownFields::No,
                    });
                }
                _ => {}
            }
        }
        let field = self.schema?.property(name)?;
        Some(TypeRef::from_schema(field, self.preserve))
    }

    /// The type of a member, declared or not.
    pub(crate) fn member(&self, name: &str) -> Option<TypeRef<'s>> {
        self.field(name).or(self.element)
    }

    /// Returns whether the schema declares nothing, so that types are deduced from values.
    pub(crate) fn is_deduced(&self) -> bool {
        matches!(self.element, Some(TypeRef::Deduced))
            && !self.has_type_meta
            && self.schema.is_none_or(|s| s.properties.is_empty())
    }
}

impl<'s> ListSchema<'s> {
    fn untyped() -> Self {
        ListSchema {
            element: TypeRef::Untyped,
            relation: ElementIdentity::Atomic,
        }
    }

    fn from_schema(schema: &'s Structural, preserve: UnknownFields) -> Self {
        let element = match &schema.items {
            Some(items) => TypeRef::from_schema(items, preserve),
            None => TypeRef::Untyped,
        };
        // Lists of built-in kinds may have only a patch strategy; a list type takes precedence over it.
        let patch = schema.extensions.as_ref().and_then(|x| x.patch.as_ref());
        let relation = match (schema.list_type(), patch) {
            (Some(ListType::Atomic), _) => ElementIdentity::Atomic,
            (Some(ListType::Set), _) => ElementIdentity::Set,
            (Some(ListType::Map), _) => ElementIdentity::Keyed(schema.list_map_keys()),
            (None, Some(patch)) if patch.strategies.iter().any(|s| s == "merge") => match &patch.merge_key {
                Some(key) => ElementIdentity::Keyed(std::slice::from_ref(key)),
                None => ElementIdentity::Set,
            },
            (None, _) => ElementIdentity::Atomic,
        };
        ListSchema { element, relation }
    }

    /// Returns whether the list is atomic.
    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.relation, ElementIdentity::Atomic)
    }

    /// The identifiable elements, sorted by their identity; repeated ones in list order.
    pub(crate) fn sorted<'v>(&self, items: &'v [Value]) -> Vec<(Element, &'v Value)> {
        let elements = items
            .iter()
            .filter_map(|item| Some((self.element_of(item).ok()?, item)));
        let mut elements: Vec<_> = elements.collect();
        // Stored lists are often in order, and testing that is cheaper than sorting.
        if !elements.is_sorted_by(|(a, _), (b, _)| a <= b) {
            elements.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        elements
    }

    /// Returns the path element that identifies a list element, or the error.
    pub(crate) fn element_of(&self, item: &Value) -> Result<Element, Cow<'static, str>> {
        self.check_element(item)?;
        Ok(match (self.relation, item) {
            (ElementIdentity::Keyed(keys), Value::Object(map)) => {
                let found = keys.iter().filter_map(|name| {
                    // An omitted key counts as its default: an apply is merged before defaults are filled in.
                    let value = map.get(name).or_else(|| self.default_of(name))?;
                    Some((name.clone(), value.clone()))
                });
                let mut found: Vec<_> = found.collect();
                found.sort_by(|(a, _), (b, _)| a.cmp(b));
                Element::Key(found.into())
            }
            (_, scalar) => Element::Value(scalar.clone()),
        })
    }

    /// Checks that a list element can be identified.
    pub(crate) fn check_element(&self, item: &Value) -> Result<(), Cow<'static, str>> {
        match self.relation {
            ElementIdentity::Atomic => Err("invalid indexing of non-associative list".into()),
            ElementIdentity::Set => match item {
                Value::Object(_) => {
                    Err("associative list without keys has an element that's a map type".into())
                }
                Value::Array(_) => Err("not supported: associative list with lists as elements".into()),
                Value::Null => {
                    Err("associative list without keys has an element that's an explicit null".into())
                }
                _ => Ok(()),
            },
            ElementIdentity::Keyed(keys) => match item {
                Value::Object(map) => self.check_keys(map, keys),
                Value::Null => Err("associative list with keys may not have a null element".into()),
                _ => Err("associative list with keys may not have non-map elements".into()),
            },
        }
    }

    fn check_keys(&self, item: &Map, keys: &[Str]) -> Result<(), Cow<'static, str>> {
        let mut found = keys.is_empty();
        for name in keys {
            if item.contains_key(name) {
                found = true;
            } else if self.element.kinds().map.is_none() {
                return Err(format!(
                    "couldn't find default value for {name}: associative list may not have non-map types"
                )
                .into());
            } else {
                found |= self.default_of(name).is_some();
            }
        }
        if found {
            return Ok(());
        }
        let names: Vec<_> = keys.iter().map(|k| scantling_value::go::quote(k)).collect();
        Err(format!(
            "associative list with keys has an element that omits all key fields [{}] \
             (and doesn't have default values for any key fields)",
            names.join(" ")
        )
        .into())
    }

    /// The default of a key field.
    fn default_of(&self, name: &str) -> Option<&'s Value> {
        self.element.kinds().map?.field(name).and_then(TypeRef::default)
    }
}

/// The merge schema of a type that the program itself names.
fn known(package: &str, name: &str) -> Arc<Structural> {
    merge_schema(TypeTable::latest().known(package, name))
}

static OBJECT_META: LazyLock<Arc<Structural>> = LazyLock::new(|| known("meta/v1", "ObjectMeta"));

static SCALE: LazyLock<Arc<Structural>> = LazyLock::new(|| known("autoscaling/v1", "Scale"));
