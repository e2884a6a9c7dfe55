//! The structural schema: the keywords of a schema that affect objects, without descriptions.
//!
//! A [`Structural`] is immutable and shared: children are behind [`Arc`], and titles, descriptions, examples
//! and links are dropped (they stay in the CRD's document). So equal sub-schemas of different CRDs are equal
//! values, and an [`Interner`] stores each of them once per process.
//!
//! One type serves both the tree of properties and the junctors (`allOf`, `anyOf`, `oneOf`, `not`).
//! Structural schemas use only a part of it inside junctors (no types, no extensions except int-or-string);
//! schemas accepted before they had to be structural use all of it.

mod intern;

pub use intern::Interner;

use scantling_value::{Str, Value, beginning, same_text};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A schema node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structural {
    /// The type; absent for int-or-string, for untyped nodes that preserve unknown fields, and in junctors.
    pub ty: Option<Type>,
    /// True if `null` is a valid value.
    pub nullable: bool,
    /// The default of an absent value.
    pub default: Option<Json>,
    /// The declared fields, strictly ascending by name.
    pub properties: Box<[(Str, Arc<Structural>)]>,
    /// `additionalProperties`.
    pub additional: Option<Additional>,
    /// The schema of list elements.
    pub items: Option<Arc<Structural>>,
    /// The `x-kubernetes-*` extensions except rules; `None` if none is set.
    pub extensions: Option<Box<Extensions>>,
    /// The rules of `x-kubernetes-validations` in document order.
    pub rules: Box<[ValidationRule]>,
    /// The value constraints; `None` if none is set.
    pub validation: Option<Box<ValueValidation>>,
}

/// A type of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An object.
    Object,
    /// A list.
    Array,
    /// A string.
    String,
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// A boolean.
    Boolean,
}

/// The value of `additionalProperties`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Additional {
    /// `true` allows any value, `false` none.
    Any(bool),
    /// Values must match a schema.
    Schema(Arc<Structural>),
}

/// The `x-kubernetes-*` extensions of a node, except rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extensions {
    /// `x-kubernetes-preserve-unknown-fields: true`.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource: true`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string: true`.
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys` in document order.
    pub list_map_keys: Box<[Str]>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<MapType>,
    /// The allowed changes; the four extensions are mutually exclusive.
    pub mutability: Option<Mutability>,
    /// `x-kubernetes-unions`.
    pub unions: Box<[Union]>,
    /// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, which only built-in kinds have.
    pub patch: Option<PatchStrategy>,
}

/// The merge and comparison strategy of a list (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListType {
    /// Atomic.
    Atomic,
    /// By value; elements are unique.
    Set,
    /// By the keys in `list_map_keys`.
    Map,
}

/// The merge strategy of an object (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapType {
    /// Field by field.
    Granular,
    /// Atomic.
    Atomic,
    /// An unknown value; CRDs with it are refused.
    Unsupported,
}

/// The changes that updates may make to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutability {
    /// `x-kubernetes-immutable`: the value and its descendants cannot change.
    Immutable,
    /// `x-kubernetes-immutable-keys`: keys cannot be added or removed; values may change.
    ImmutableKeys,
    /// `x-kubernetes-addition-only`: keys (or elements of a set) may only be added.
    AdditionOnly,
    /// `x-kubernetes-deletion-only`: keys (or elements of a set) may only be removed.
    DeletionOnly,
}

/// A union: exactly one of its fields must be set (`x-kubernetes-unions`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Union {
    /// The field that names the set one.
    pub discriminator: Option<Str>,
    /// The fields with their discriminator values (empty without one), strictly ascending by name.
    pub fields: Box<[(Str, Str)]>,
}

/// The strategic merge patch settings of a list or map of a built-in kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatchStrategy {
    /// `x-kubernetes-patch-strategy`: `merge`, `replace`, `retainKeys`, in document order.
    pub strategies: Box<[Str]>,
    /// `x-kubernetes-patch-merge-key`.
    pub merge_key: Option<Str>,
}

/// A rule of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValidationRule {
    /// The expression.
    pub rule: Str,
    /// The message of a failure; may be empty.
    pub message: Str,
    /// The expression that computes the message; may be empty.
    pub message_expression: Str,
    /// The machine-readable reason of a failure.
    pub reason: Option<Str>,
    /// The path below the node that a failure is reported at; empty for the node itself.
    pub field_path: Str,
    /// True if the rule also runs without an old value, with `oldSelf` as an empty optional.
    pub optional_old_self: Option<bool>,
    /// True if the rule also runs without an old value, with `null` as `oldSelf`.
    pub applies_on_create: bool,
}

/// The value constraints of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueValidation {
    /// An unknown `type`, which no value has; empty if the type is known or absent. New CRDs with such types
    /// are refused.
    pub unknown_type: Str,
    /// `format`; may be empty.
    pub format: Str,
    /// `maximum`.
    pub maximum: Option<EqFloat>,
    /// `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// `minimum`.
    pub minimum: Option<EqFloat>,
    /// `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// `maxLength`.
    pub max_length: Option<i64>,
    /// `minLength`.
    pub min_length: Option<i64>,
    /// `pattern`; may be empty.
    pub pattern: Str,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `multipleOf`.
    pub multiple_of: Option<EqFloat>,
    /// `enum` in document order.
    pub enumeration: Box<[Json]>,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// `required` in document order.
    pub required: Box<[Str]>,
    /// `allOf`.
    pub all_of: Box<[Arc<Structural>]>,
    /// `oneOf`.
    pub one_of: Box<[Arc<Structural>]>,
    /// `anyOf`.
    pub any_of: Box<[Arc<Structural>]>,
    /// `not`.
    pub not: Option<Arc<Structural>>,
}

impl Type {
    /// Parses a type name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            _ => return None,
        })
    }

    /// The type name.
    pub fn as_str(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }
}

impl Mutability {
    /// All of them.
    pub const ALL: [Mutability; 4] = [
        Mutability::Immutable,
        Mutability::ImmutableKeys,
        Mutability::AdditionOnly,
        Mutability::DeletionOnly,
    ];

    /// The keyword of the extension.
    pub fn keyword(self) -> &'static str {
        match self {
            Mutability::Immutable => "x-kubernetes-immutable",
            Mutability::ImmutableKeys => "x-kubernetes-immutable-keys",
            Mutability::AdditionOnly => "x-kubernetes-addition-only",
            Mutability::DeletionOnly => "x-kubernetes-deletion-only",
        }
    }
}

impl Structural {
    /// A declared field.
    pub fn property(&self, name: &str) -> Option<&Arc<Structural>> {
        let wanted = beginning(name);
        // Comparing the beginnings is cheaper than comparing the names, and has the same order.
        let first = self.properties.partition_point(|(k, _)| beginning(k) < wanted);
        let candidates = self.properties.get(first..)?.iter();
        let mut candidates = candidates.take_while(|(k, _)| beginning(k) == wanted);
        candidates.find(|(k, _)| same_text(k, name)).map(|(_, s)| s)
    }

    /// The schema of undeclared fields, if there is one.
    pub fn additional_schema(&self) -> Option<&Arc<Structural>> {
        match &self.additional {
            Some(Additional::Schema(s)) => Some(s),
            _ => None,
        }
    }

    /// Returns whether unknown fields are preserved.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.extensions
            .as_ref()
            .is_some_and(|x| x.preserve_unknown_fields)
    }

    /// Returns whether this is an embedded resource.
    pub fn is_embedded_resource(&self) -> bool {
        self.extensions.as_ref().is_some_and(|x| x.embedded_resource)
    }

    /// Returns whether this is int-or-string.
    pub fn is_int_or_string(&self) -> bool {
        self.extensions.as_ref().is_some_and(|x| x.int_or_string)
    }

    /// The merge and comparison strategy of a list.
    pub fn list_type(&self) -> Option<ListType> {
        self.extensions.as_ref().and_then(|x| x.list_type)
    }

    /// Checks the keys of a keyed list.
    pub fn list_map_keys(&self) -> &[Str] {
        self.extensions.as_ref().map_or(&[], |x| &x.list_map_keys)
    }

    /// The merge strategy of an object.
    pub fn map_type(&self) -> Option<MapType> {
        self.extensions.as_ref().and_then(|x| x.map_type)
    }

    /// The changes that updates may make.
    pub fn mutability(&self) -> Option<Mutability> {
        self.extensions.as_ref().and_then(|x| x.mutability)
    }

    /// The unions of an object's fields.
    pub fn unions(&self) -> &[Union] {
        self.extensions.as_ref().map_or(&[], |x| &x.unions)
    }
}

/// A number in a schema: a double that is compared and hashed by its bits.
#[derive(Clone, Copy, Debug)]
pub struct EqFloat(pub f64);

impl PartialEq for EqFloat {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for EqFloat {}
impl Hash for EqFloat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// A JSON value in a schema (a default, an enumeration value): shared, and compared and hashed by structure.
#[derive(Clone, Debug)]
pub struct Json(pub Arc<Value>);

impl From<Value> for Json {
    fn from(v: Value) -> Self {
        Json(Arc::new(v))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || same(&self.0, &other.0)
    }
}
impl Eq for Json {}
impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(&self.0, state);
    }
}

/// Structural equality with floats compared by their bits. Unlike `Value`'s equality, it is an equivalence
/// even for NaN.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => x.to_bits() == y.to_bits(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len()
                && x.iter()
                    .zip(y.iter())
                    .all(|((k, x), (l, y))| k == l && same(x, y))
        }
        _ => a == b,
    }
}

fn hash_value<H: Hasher>(v: &Value, state: &mut H) {
    std::mem::discriminant(v).hash(state);
    match v {
        Value::Null => {}
        Value::Bool(b) => b.hash(state),
        Value::Int(i) => i.hash(state),
        Value::Float(f) => f.to_bits().hash(state),
        Value::String(s) => s.hash(state),
        Value::Array(a) => {
            a.len().hash(state);
            a.iter().for_each(|v| hash_value(v, state));
        }
        Value::Object(m) => {
            m.len().hash(state);
            for (k, v) in m.iter() {
                k.hash(state);
                hash_value(v, state);
            }
        }
    }
}
