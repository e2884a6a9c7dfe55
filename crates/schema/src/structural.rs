//! The structural schema: what a definition says about objects, without its prose.
//!
//! A [`Structural`] is immutable and shared: children stand behind [`Arc`], titles, descriptions, examples and links
//! are left out (they stay in the definition's document), so that equal sub-schemas of different definitions are
//! equal values, and an [`Interner`] stores each of them once in a process.
//!
//! One type serves the tree of properties and the logical junctors below it (`allOf`, `anyOf`, `oneOf`, `not`).
//! Structural schemas use only a part of it inside junctors (no types, no extensions, save for int-or-string);
//! schemas accepted before schemas had to be structural use all of it.

mod intern;

pub use intern::Interner;
pub(crate) use intern::{InternKey, InternKeyAdditional, SchemaId};

use scantling_value::{Str, Value};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A schema node. Properties and lists of names are in the order stated at each field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Structural {
    /// The type; absent for int-or-string, for untyped nodes that preserve unknown fields, and in junctors.
    pub ty: Option<Type>,
    /// Whether `null` is a value.
    pub nullable: bool,
    /// What stands in for an absent value.
    pub default: Option<Json>,
    /// The declared fields, strictly ascending by name.
    pub properties: Box<[(Str, Arc<Structural>)]>,
    /// What may stand beside the declared fields.
    pub additional: Option<Additional>,
    /// The elements of a list.
    pub items: Option<Arc<Structural>>,
    /// The `x-kubernetes-*` extensions, save the rules; absent where none is set.
    pub extensions: Option<Box<Extensions>>,
    /// The rules of `x-kubernetes-validations` in document order.
    pub rules: Box<[ValidationRule]>,
    /// The limits on values; absent where none is set.
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

/// What may stand beside declared fields (`additionalProperties`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Additional {
    /// `true`: anything; `false`: nothing.
    Any(bool),
    /// Values of a schema.
    Schema(Arc<Structural>),
}

/// The `x-kubernetes-*` extensions of a node, save the rules.
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
    /// What updates may do here; the four extensions exclude each other.
    pub mutability: Option<Mutability>,
    /// `x-kubernetes-unions`.
    pub unions: Box<[Union]>,
    /// `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key`, which only built-in kinds have.
    pub patch: Option<PatchStrategy>,
}

/// How a list merges and compares (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// By value; every element once.
    Set,
    /// By the keys in `list_map_keys`.
    Map,
}

/// How an object merges (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MapType {
    /// Field by field.
    Granular,
    /// As a whole.
    Atomic,
    /// Nobody knows how. Definitions with such maps are refused.
    Unsupported,
}

/// What updates may do to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutability {
    /// `x-kubernetes-immutable`: the value stays as it is, and so does all below it.
    Immutable,
    /// `x-kubernetes-immutable-keys`: no key comes or goes; the values may change.
    ImmutableKeys,
    /// `x-kubernetes-addition-only`: keys (of a set: elements) may come but not go.
    AdditionOnly,
    /// `x-kubernetes-deletion-only`: keys (of a set: elements) may go but not come.
    DeletionOnly,
}

/// A set of fields of which one is set (`x-kubernetes-unions`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Union {
    /// The field that names the one that is set.
    pub discriminator: Option<Str>,
    /// The fields with their value of the discriminator (empty without one), strictly ascending by name.
    pub fields: Box<[(Str, Str)]>,
}

/// How a strategic merge patch treats a list or map of a built-in kind.
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
    /// The message of a failure; empty where none is given.
    pub message: Str,
    /// An expression that makes the message; empty where none is given.
    pub message_expression: Str,
    /// The machine-readable reason of a failure.
    pub reason: Option<Str>,
    /// Where below the node a failure is shown; empty for the node itself.
    pub field_path: Str,
    /// Whether the rule runs without an old value, which it then sees as an empty optional.
    pub optional_old_self: Option<bool>,
    /// Whether the rule runs without an old value, which it then sees as `null`.
    pub applies_on_create: bool,
}

/// The limits on values of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValueValidation {
    /// A `type` that nobody knows, which no value has; empty where the type is known or absent. New definitions with
    /// such types are refused.
    pub unknown_type: Str,
    /// `format`; empty where none is given.
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
    /// `pattern`; empty where none is given.
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
    /// How many there are.
    pub(crate) const COUNT: usize = 6;

    /// Reads the name that a schema uses.
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

    /// The name that a schema uses.
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

    /// The extension that says so.
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
        self.properties
            .binary_search_by(|(k, _)| k.as_str().cmp(name))
            .ok()
            .and_then(|i| self.properties.get(i))
            .map(|(_, s)| s)
    }

    /// The schema of the values beside declared fields, if there is one.
    pub fn additional_schema(&self) -> Option<&Arc<Structural>> {
        match &self.additional {
            Some(Additional::Schema(s)) => Some(s),
            _ => None,
        }
    }

    /// Whether unknown fields stay.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.extensions
            .as_ref()
            .is_some_and(|x| x.preserve_unknown_fields)
    }

    /// Whether this is an embedded resource.
    pub fn is_embedded_resource(&self) -> bool {
        self.extensions.as_ref().is_some_and(|x| x.embedded_resource)
    }

    /// Whether this is an integer or a string.
    pub fn is_int_or_string(&self) -> bool {
        self.extensions.as_ref().is_some_and(|x| x.int_or_string)
    }

    /// How a list merges and compares.
    pub fn list_type(&self) -> Option<ListType> {
        self.extensions.as_ref().and_then(|x| x.list_type)
    }

    /// The keys of a keyed list.
    pub fn list_map_keys(&self) -> &[Str] {
        self.extensions.as_ref().map_or(&[], |x| &x.list_map_keys)
    }

    /// How an object merges.
    pub fn map_type(&self) -> Option<MapType> {
        self.extensions.as_ref().and_then(|x| x.map_type)
    }

    /// What updates may do here.
    pub fn mutability(&self) -> Option<Mutability> {
        self.extensions.as_ref().and_then(|x| x.mutability)
    }

    /// The unions of an object's fields.
    pub fn unions(&self) -> &[Union] {
        self.extensions.as_ref().map_or(&[], |x| &x.unions)
    }
}

/// A number of a schema: a double that compares and hashes by its bits.
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

/// A JSON value of a schema (a default, a member of an enumeration), shared, compared and hashed by structure.
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

/// Equality by structure, floats by their bits: an equivalence, which `Value`'s own equality is not for NaN.
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
