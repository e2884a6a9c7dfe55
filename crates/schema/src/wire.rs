//! Decoding of typed documents as a Kubernetes API server decodes built-in kinds.
//!
//! A kind is a table of fields ([`Struct`]). One walk over a document checks every value against the table, drops what
//! the table does not know (and says where), drops `null`s, and reports the first value of a wrong type in the words of
//! the server's decoder. [`Struct::canonical`] is the way back: it leaves out what the server leaves out.

pub(crate) mod core;
pub(crate) mod reviews;
pub(crate) mod tables;

use base64::Engine as _;
use scantling_cel::data::timestamp;
use scantling_value::{Map, Path, PathBuf, Str, Value, go};
use std::fmt;

/// The deepest nesting of a typed document: far beyond any real definition, and safe for every later walk over it.
const MAX_DEPTH: usize = 400;

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
    /// The fields that the kind does not have, in key order.
    pub(crate) unknown: Vec<PathBuf>,
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

impl Struct {
    /// Checks a document against the kind.
    pub(crate) fn decode(&'static self, document: Value, options: Options) -> Result<Decoded, DecodeError> {
        let mut walk = Walk {
            options,
            strict: true,
            stack: Vec::new(),
            structs: Vec::new(),
            depth: 0,
            saved: None,
            fatal: None,
            unknown: Vec::new(),
        };
        let value = walk.value(document, &Type::Struct(self), &Path::ROOT);
        if let Some(fault) = walk.fatal.or(walk.saved) {
            return Err(DecodeError(fault));
        }
        Ok(Decoded {
            members: value.and_then(Value::into_object).unwrap_or_default(),
            unknown: walk.unknown,
        })
    }

    /// The document as the server writes it: no empty values, no unset fields.
    pub(crate) fn canonical(&self, members: &Map) -> Map {
        self.written(members, Empty::Omitted)
    }

    /// The document as the server holds it: empty lists and maps are not the same as none.
    pub(crate) fn held(&self, members: &Map) -> Map {
        self.written(members, Empty::Kept)
    }

    /// Whether the server holds empty lists or maps of the document that it does not write.
    pub(crate) fn omits(&self, members: &Map) -> bool {
        members.iter().any(|(name, value)| {
            let field = self.fields.iter().find(|f| f.name == name.as_str());
            field
                .is_some_and(|field| (field.keep == Keep::Filled && is_empty(value)) || field.ty.omits(value))
        })
    }

    fn written(&self, members: &Map, empty: Empty) -> Map {
        let mut out = Vec::with_capacity(members.len());
        // Documents have few of the fields that their types have: the fields are looked up, not the members.
        for (name, value) in members.iter().filter(|(_, v)| !v.is_null()) {
            let Some(field) = self.fields.iter().find(|f| f.name == name.as_str()) else {
                continue;
            };
            let value = field.ty.written(value, empty);
            if field.keep != Keep::Filled || !is_zero(&value, empty) {
                out.push((name.clone(), value));
            }
        }
        for field in self.fields.iter().filter(|f| f.keep == Keep::Always) {
            if members.get(field.name).is_none_or(Value::is_null) {
                out.push((Str::from(field.name), field.ty.zero()));
            }
        }
        Map::from_unsorted(out)
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

    fn written(&self, v: &Value, empty: Empty) -> Value {
        match (self, v) {
            (Type::Struct(s), Value::Object(m)) => s.written(m, empty).into(),
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrTexts, Value::Object(m)) => {
                tables::SCHEMA.written(m, empty).into()
            }
            (Type::SchemaOrList, Value::Array(a)) if !a.is_empty() => {
                let schemas = a.iter().map(|v| tables::A_SCHEMA.written(v, empty));
                Value::Array(schemas.collect())
            }
            (Type::SchemaOrList | Type::SchemaOrTexts, Value::Array(a)) if a.is_empty() => Value::Null,
            (Type::List(_, element), Value::Array(a)) => {
                Value::Array(a.iter().map(|v| element.written(v, empty)).collect())
            }
            (Type::Map(_, element), Value::Object(m)) => Value::Object(
                m.iter()
                    .map(|(k, v)| (k.clone(), element.written(v, empty)))
                    .collect(),
            ),
            // A list or map of structs holds zero values where the document held nulls.
            (Type::Struct(s), _) => s.canonical(&Map::new()).into(),
            _ => v.clone(),
        }
    }

    fn zero(&self) -> Value {
        match self {
            Type::Text(_) => "".into(),
            Type::Bool => false.into(),
            Type::Int32 | Type::Int64 | Type::Float => 0.into(),
            Type::Struct(s) => s.canonical(&Map::new()).into(),
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

struct Walk {
    options: Options,
    /// Whether unknown fields are reported: the server does not look for them below values with a decoder of their own.
    strict: bool,
    /// The names of the fields on the way, without list indexes and map keys: errors show them so.
    stack: Vec<&'static str>,
    structs: Vec<&'static str>,
    depth: usize,
    /// The first fault; decoding goes on.
    saved: Option<String>,
    /// A fault that ended decoding.
    fatal: Option<String>,
    unknown: Vec<PathBuf>,
}

impl Walk {
    /// The value as its type holds it; nothing for `null` and for what does not fit.
    fn value(&mut self, v: Value, ty: &Type, at: &Path<'_>) -> Option<Value> {
        if self.depth >= MAX_DEPTH {
            self.fatal.get_or_insert_with(|| "exceeded max depth".into());
        }
        if self.fatal.is_some() {
            return None;
        }
        self.depth += 1;
        let out = self.fit(v, ty, at);
        self.depth -= 1;
        out
    }

    fn fit(&mut self, v: Value, ty: &Type, at: &Path<'_>) -> Option<Value> {
        match (ty, v) {
            (_, Value::Null) => None,
            (Type::Any, v)
            | (Type::Text(_), v @ Value::String(_))
            | (Type::Bool, v @ Value::Bool(_))
            | (Type::Int64, v @ Value::Int(_)) => Some(v),
            (Type::Int32, Value::Int(i)) if i32::try_from(i).is_ok() => Some(Value::Int(i)),
            #[expect(clippy::cast_precision_loss, reason = "the field is a double on the wire")]
            (Type::Float, Value::Int(i)) => Some(Value::Float(i as f64)),
            (Type::Float, v @ Value::Float(_)) => Some(v),
            (Type::Int32 | Type::Int64, number @ (Value::Int(_) | Value::Float(_))) => {
                self.misfit(&format!("number {}", literal(&number)), ty)
            }
            (Type::Bytes, Value::String(s)) => {
                match base64::engine::general_purpose::STANDARD.decode(s.as_bytes()) {
                    Ok(_) => Some(Value::String(s)),
                    Err(e) => {
                        let offset = match e {
                            base64::DecodeError::InvalidByte(at, _)
                            | base64::DecodeError::InvalidLastSymbol(at, _) => at,
                            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
                                s.len() / 4 * 4
                            }
                        };
                        self.fault(format!("illegal base64 data at input byte {offset}"))
                    }
                }
            }
            (Type::Time, Value::String(s)) => match timestamp::parse_rfc3339(&s) {
                Ok(moment) => {
                    let whole = timestamp::Moment {
                        nanos: 0,
                        offset: 0,
                        ..moment
                    };
                    Some(timestamp::format(whole).into())
                }
                Err(e) => self.end(e),
            },
            (Type::MicroTime, Value::String(s)) => match timestamp::parse_micro(&s) {
                Ok(moment) => Some(timestamp::format_micro(moment).into()),
                Err(e) => self.end(e),
            },
            (Type::Time | Type::MicroTime, v) => {
                let fault = self.unfit(go::json_kind(&v), "string");
                self.end(fault)
            }
            (Type::List(_, element), Value::Array(a)) => {
                let out = a.into_iter().enumerate();
                let out = out.map(|(i, v)| self.element(v, element, &at.index(i)));
                Some(Value::Array(out.collect()))
            }
            (Type::Map(_, element), Value::Object(m)) => {
                let out = m.into_iter().map(|(k, v)| {
                    let v = self.element(v, element, &at.field(&k));
                    (k, v)
                });
                Some(Value::Object(out.collect()))
            }
            (Type::Struct(s), Value::Object(m)) => Some(self.members(m, s, at).into()),
            (Type::SchemaOrBool, v @ Value::Bool(_)) => Some(v),
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrTexts, v @ Value::Object(_)) => {
                self.nested(v, &tables::A_SCHEMA, at)
            }
            (Type::SchemaOrBool, _) => self.end("boolean or JSON schema expected".into()),
            (Type::SchemaOrList, v @ Value::Array(_)) => {
                self.nested(v, &Type::List(None, &tables::A_SCHEMA), at)
            }
            (Type::SchemaOrTexts, v @ Value::Array(_)) => {
                self.nested(v, &Type::List(None, &tables::TEXT), at)
            }
            (Type::SchemaOrList | Type::SchemaOrTexts, _) => Some(Value::Array(Vec::new())),
            (_, v) => self.misfit(go::json_kind(&v), ty),
        }
    }

    /// An element of a list or a map. Where nothing stands a text is empty; structs become so when they are written.
    fn element(&mut self, v: Value, ty: &Type, at: &Path<'_>) -> Value {
        let found = self.value(v, ty, at);
        found.unwrap_or_else(|| match ty {
            Type::Text(_) => ty.zero(),
            _ => Value::Null,
        })
    }

    fn members(&mut self, m: Map, s: &'static Struct, at: &Path<'_>) -> Map {
        let mut out = Vec::with_capacity(m.len());
        for (key, v) in m {
            let known = s.fields.iter().find(|f| f.name == key);
            let Some(field) = known.filter(|f| f.extension.is_none_or(|x| self.options.has(x))) else {
                if self.strict {
                    self.unknown.push(PathBuf::from(&at.field(&key)));
                }
                continue;
            };
            self.stack.push(field.name);
            self.structs.push(s.name);
            let v = self.value(v, &field.ty, &at.field(field.name));
            self.stack.pop();
            self.structs.pop();
            if let Some(v) = v {
                out.push((key, v));
            }
        }
        Map::from_unsorted(out)
    }

    /// A value whose type has a decoder of its own: its first fault ends decoding, and it looks for no unknown fields.
    fn nested(&mut self, v: Value, ty: &Type, at: &Path<'_>) -> Option<Value> {
        let strict = std::mem::replace(&mut self.strict, false);
        let saved = self.saved.take();
        let out = self.value(v, ty, at);
        self.strict = strict;
        match self.saved.take() {
            Some(fault) => {
                self.fatal.get_or_insert(fault);
                None
            }
            None => {
                self.saved = saved;
                out
            }
        }
    }

    /// A value of the wrong type.
    fn misfit(&mut self, value: &str, ty: &Type) -> Option<Value> {
        let fault = self.unfit(value, &ty.name(self.options.package));
        self.fault(fault)
    }

    /// What is told of a value of the wrong type.
    fn unfit(&self, value: &str, ty: &str) -> String {
        let target = match self.structs.last() {
            // The fault of a nested decoder is told with the struct that stands around it.
            Some(_) if !self.strict => Some(tables::SCHEMA.name),
            s => s.copied(),
        };
        let target = match target {
            Some(s) => format!(
                "struct field {}.{}",
                s.rsplit(['~', '.']).next().unwrap_or(s),
                self.stack.join(".")
            ),
            None => "value".into(),
        };
        format!("json: cannot unmarshal {value} into Go {target} of type {ty}")
    }

    /// A fault after which decoding goes on; only the first one is told.
    fn fault(&mut self, text: String) -> Option<Value> {
        self.saved.get_or_insert(text);
        None
    }

    /// A fault that ends decoding.
    fn end(&mut self, text: String) -> Option<Value> {
        self.fatal.get_or_insert(text);
        None
    }
}

/// A number as it was written, as far as a decoded value tells.
fn literal(v: &Value) -> String {
    match v {
        Value::Int(i) => i.to_string(),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e15 => format!("{f:.1}"),
        Value::Float(f) => go::float_v(*f),
        _ => String::new(),
    }
}
