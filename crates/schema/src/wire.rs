//! Decoding of typed documents as a Kubernetes API server decodes built-in kinds.
//!
//! A kind is a table of fields ([`Struct`]). One walk over a document checks every value against the table, drops what
//! the table does not know (and says where), drops `null`s, and reports the first value of a wrong type in the words of
//! the server's decoder. [`Struct::canonical`] is the way back: it leaves out what the server leaves out.

mod convert;
pub(crate) mod core;
pub(crate) mod reviews;
pub(crate) mod source;
pub(crate) mod tables;
mod walk;

use scantling_value::json::{self, Written};
use scantling_value::{Limits, Map, PathBuf, Value, same_text};
use source::Source;
use std::fmt;
use walk::Walk;

/// The deepest nesting of a typed document: far beyond any real definition, and safe for every later walk over it.
const MAX_DEPTH: usize = 400;

/// What is said of deeper ones.
const TOO_DEEP: &str = "exceeded max depth";

/// The fields of a kind.
#[derive(Debug)]
pub(crate) struct Struct {
    /// The name in errors; `~` stands for the package of the request's version.
    pub(crate) name: &'static str,
    /// The fields.
    pub(crate) fields: &'static [Field],
}

/// A field of a kind.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) ty: Type,
    pub(crate) keep: Keep,
    /// The extension that a field belongs to: without it the field is unknown.
    pub(crate) extension: Option<Extension>,
}

/// When a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Always, with its zero value where it is unset.
    Always,
    /// Where it is not its zero value.
    Filled,
    /// Where it is set, be it to its zero value.
    Set,
}

/// What a field holds.
#[derive(Debug)]
pub(crate) enum Type {
    /// A text; the name of its type in errors.
    Text(&'static str),
    Bool,
    Int32,
    Int64,
    Float,
    /// Base64.
    Bytes,
    /// A time, to the second.
    Time,
    /// A time, to the microsecond.
    MicroTime,
    /// Any value.
    Any,
    /// A list; the name of its type, where it has one of its own.
    List(Option<&'static str>, &'static Type),
    /// A map from texts; the name of its type, where it has one of its own.
    Map(Option<&'static str>, &'static Type),
    Struct(&'static Struct),
    /// A schema or a boolean.
    SchemaOrBool,
    /// A schema or a list of schemas; anything else reads as an empty list.
    SchemaOrList,
    /// A schema or a list of texts; anything else reads as an empty list.
    SchemaOrTexts,
}

/// Extensions of the wire types that a server may switch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extension {
    Immutability,
    Unions,
    AppliesOnCreate,
}

/// How a document is decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The package that `~` in names stands for: the version of the request.
    pub(crate) package: &'static str,
    pub(crate) immutability: bool,
    pub(crate) unions: bool,
    pub(crate) applies_on_create: bool,
}

impl Options {
    fn has(self, extension: Extension) -> bool {
        match extension {
            Extension::Immutability => self.immutability,
            Extension::Unions => self.unions,
            Extension::AppliesOnCreate => self.applies_on_create,
        }
    }
}

/// A document that fits its kind.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub(crate) members: Map,
    /// The fields that the kind does not have, in the order of the document.
    pub(crate) unknown: Vec<PathBuf>,
    /// The fields that stand twice, in the order of the document.
    pub(crate) repeated: Vec<PathBuf>,
}

/// A value that does not fit its field, in the words of the server's decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Reads a text that is known to be valid JSON as it is written, to be decoded to the letter.
pub(crate) fn written(text: &[u8]) -> Result<Written, DecodeError> {
    let limits = Limits { depth: MAX_DEPTH };
    json::decode_written(text, limits).map_err(|_| DecodeError(TOO_DEEP.into()))
}

impl Struct {
    /// Checks a document against the kind. A field that stands twice is decoded twice, into the same place.
    pub(crate) fn decode(
        &'static self,
        document: impl Source,
        options: Options,
    ) -> Result<Decoded, DecodeError> {
        Walk::new(options).decode(document, self).map_err(DecodeError)
    }

    /// The document as the server writes it: no empty values, no unset fields.
    pub(crate) fn canonical(&self, mut members: Map) -> Map {
        self.write(&mut members, Empty::Omitted);
        members
    }

    /// The document as the server holds it: empty lists and maps are not the same as none.
    pub(crate) fn held(&self, mut members: Map) -> Map {
        self.write(&mut members, Empty::Kept);
        members
    }

    /// Whether the server holds empty lists or maps of the document that it does not write.
    pub(crate) fn omits(&self, members: &Map) -> bool {
        members.iter().any(|(name, value)| {
            self.field(name)
                .is_some_and(|field| (field.keep == Keep::Filled && is_empty(value)) || field.ty.omits(value))
        })
    }

    fn write(&self, members: &mut Map, empty: Empty) {
        members.retain(|name, value| {
            let Some(field) = self.field(name).filter(|_| !value.is_null()) else {
                return false;
            };
            field.ty.write(value, empty);
            field.keep != Keep::Filled || !is_zero(value, empty)
        });
        for field in self.fields.iter().filter(|f| f.keep == Keep::Always) {
            members.get_or_insert_with(field.name, || field.ty.zero());
        }
    }

    /// The field of that name. Documents have few of the fields that their types have: it is the fields that are
    /// looked up, not the members.
    fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| same_text(f.name, name))
    }

    /// The field of that name, unless it belongs to a feature that is off.
    fn known(&self, name: &str, options: Options) -> Option<&'static Field> {
        let is_on = |field: &&Field| field.extension.is_none_or(|x| options.has(x));
        self.field(name).filter(is_on)
    }
}

/// What becomes of empty lists and maps that are not written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Omitted,
    Kept,
}

fn is_zero(v: &Value, empty: Empty) -> bool {
    match v {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Array(_) | Value::Object(_) => is_empty(v) && empty == Empty::Omitted,
        Value::Bool(true) | Value::Int(_) => false,
    }
}

fn is_empty(v: &Value) -> bool {
    match v {
        Value::Array(a) => a.is_empty(),
        Value::Object(m) => m.is_empty(),
        _ => false,
    }
}

impl Type {
    fn omits(&self, v: &Value) -> bool {
        match (self, v) {
            (Type::Struct(s), Value::Object(m)) => s.omits(m),
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrTexts, Value::Object(m)) => {
                tables::SCHEMA.omits(m)
            }
            (Type::SchemaOrList, Value::Array(a)) => a.iter().any(|v| tables::A_SCHEMA.omits(v)),
            (Type::List(_, element), Value::Array(a)) => a.iter().any(|v| element.omits(v)),
            (Type::Map(_, element), Value::Object(m)) => m.iter().any(|(_, v)| element.omits(v)),
            _ => false,
        }
    }

    fn write(&self, v: &mut Value, empty: Empty) {
        match (self, v) {
            (Type::Struct(s), Value::Object(m)) => s.write(m, empty),
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrTexts, Value::Object(m)) => {
                tables::SCHEMA.write(m, empty);
            }
            (Type::SchemaOrList | Type::SchemaOrTexts, v @ Value::Array(_)) if is_empty(v) => {
                *v = Value::Null;
            }
            (Type::SchemaOrList, Value::Array(a)) => {
                a.iter_mut().for_each(|v| tables::A_SCHEMA.write(v, empty));
            }
            (Type::List(_, element), Value::Array(a)) => a.iter_mut().for_each(|v| element.write(v, empty)),
            (Type::Map(_, element), Value::Object(m)) => {
                m.iter_mut().for_each(|(_, v)| element.write(v, empty));
            }
            // A list or map of structs holds zero values where the document held nulls.
            (Type::Struct(_), v) => *v = self.zero(),
            _ => {}
        }
    }

    /// Whether nothing leaves a value of the type as it was, instead of taking it away.
    fn ignores_null(&self) -> bool {
        match self {
            Type::Text(_)
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Float
            | Type::Struct(_)
            | Type::SchemaOrBool
            | Type::SchemaOrList
            | Type::SchemaOrTexts => true,
            Type::Bytes | Type::Time | Type::MicroTime | Type::Any | Type::List(..) | Type::Map(..) => false,
        }
    }

    fn zero(&self) -> Value {
        match self {
            Type::Text(_) | Type::Bytes => "".into(),
            Type::Bool => false.into(),
            Type::Int32 | Type::Int64 | Type::Float => 0.into(),
            Type::Struct(s) => s.canonical(Map::new()).into(),
            _ => Value::Null,
        }
    }

    /// The type's name in errors.
    fn name(&self, package: &str) -> String {
        let named = |name: &str| name.replacen('~', &format!("{package}."), 1);
        match self {
            Type::Text(name) => named(name),
            Type::Bool => "bool".into(),
            Type::Int32 => "int32".into(),
            Type::Int64 => "int64".into(),
            Type::Float => "float64".into(),
            Type::Bytes => "[]uint8".into(),
            Type::List(Some(name), _) | Type::Map(Some(name), _) => named(name),
            Type::List(None, element) => format!("[]{}", element.name(package)),
            Type::Map(None, element) => format!("map[string]{}", element.name(package)),
            Type::Struct(s) => named(s.name),
            Type::SchemaOrBool => named("~JSONSchemaPropsOrBool"),
            Type::SchemaOrList => named("~JSONSchemaPropsOrArray"),
            Type::SchemaOrTexts => named("~JSONSchemaPropsOrStringArray"),
            Type::Time => "v1.Time".into(),
            Type::MicroTime => "v1.MicroTime".into(),
            Type::Any => named("~JSON"),
        }
    }
}
