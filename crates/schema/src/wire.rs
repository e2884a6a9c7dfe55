//! Decoding of typed documents as a Kubernetes API server decodes built-in kinds.
//!
//! A kind is a table of fields ([`Struct`]). One walk over a document checks every value against the table, drops what
//! the table does not know (and says where), drops `null`s, and reports the first value of a wrong type in the words of
//! the server's decoder. [`Struct::canonical`] is the way back: it leaves out what the server leaves out.

pub(crate) mod core;
pub(crate) mod reviews;
pub(crate) mod source;
pub(crate) mod tables;

use base64::Engine as _;
use scantling_cel::data::timestamp;
use scantling_value::json::{self, Written};
use scantling_value::{Limits, Map, Path, PathBuf, Str, Value, same_text};
use source::{Node, Source};
use std::collections::BTreeSet;
use std::fmt;

/// The deepest nesting of a typed document: far beyond any real definition, and safe for every later walk over it.
const MAX_DEPTH: usize = 400;

/// What is said of deeper ones.
const TOO_DEEP: &str = "exceeded max depth";

/// The most fields that stand twice that are told of.
const MAX_REPEATED: usize = 100;

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
        let mut walk = Walk {
            options,
            strict: true,
            stack: Vec::new(),
            structs: Vec::new(),
            depth: 0,
            saved: None,
            fatal: None,
            unknown: Vec::new(),
            repeated: Vec::new(),
        };
        let value = walk.value(document, &Type::Struct(self), &Path::ROOT, None);
        if let Some(fault) = walk.fatal.or(walk.saved) {
            return Err(DecodeError(fault));
        }
        Ok(Decoded {
            members: value.and_then(Value::into_object).unwrap_or_default(),
            unknown: walk.unknown,
            repeated: walk.repeated,
        })
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
            Type::Text(_) => "".into(),
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
    repeated: Vec<PathBuf>,
}

impl Walk {
    /// The value as its type holds it, decoded into what is there already; nothing for what does not fit.
    fn value<S: Source>(&mut self, v: S, ty: &Type, at: &Path<'_>, before: Option<Value>) -> Option<Value> {
        if self.depth >= MAX_DEPTH {
            self.fatal.get_or_insert_with(|| TOO_DEEP.into());
        }
        if self.fatal.is_some() {
            return None;
        }
        self.depth += 1;
        let out = match ty {
            Type::Any => Some(v.into_value()).filter(|v| !v.is_null()),
            _ => self.fit(v.node(), ty, at, before),
        };
        self.depth -= 1;
        out
    }

    fn fit<S: Source>(
        &mut self,
        v: Node<S>,
        ty: &Type,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Option<Value> {
        match (ty, v) {
            (_, Node::Null) => before.filter(|_| ty.ignores_null()),
            (Type::Text(_), Node::Text(s)) => Some(Value::String(s)),
            (Type::Bool | Type::SchemaOrBool, Node::Bool(b)) => Some(Value::Bool(b)),
            (Type::Int32 | Type::Int64 | Type::Float, Node::Number(number)) => match (ty, &number.value) {
                (Type::Int64, Value::Int(_)) => Some(number.value),
                (Type::Int32, Value::Int(i)) if i32::try_from(*i).is_ok() => Some(number.value),
                #[expect(clippy::cast_precision_loss, reason = "the field is a double on the wire")]
                (Type::Float, Value::Int(i)) => Some(Value::Float(*i as f64)),
                (Type::Float, Value::Float(f)) if f.is_finite() => Some(number.value),
                _ => self.misfit(&format!("number {}", number.literal()), ty),
            },
            (Type::Bytes, Node::Text(s)) => match illegal_base64(&s) {
                None => Some(Value::String(s)),
                Some(offset) => self.fault(format!("illegal base64 data at input byte {offset}")),
            },
            (Type::Time, Node::Text(s)) => match timestamp::parse_rfc3339(&s) {
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
            (Type::MicroTime, Node::Text(s)) => match timestamp::parse_micro(&s) {
                Ok(moment) => Some(timestamp::format_micro(moment).into()),
                Err(e) => self.end(e),
            },
            (Type::Time | Type::MicroTime, v) => {
                let fault = self.unfit(v.kind(), "string");
                self.end(fault)
            }
            (Type::List(_, element), Node::List(items)) => Some(self.list(items, element, at, before).into()),
            (Type::Map(_, element), Node::Object(members)) => {
                Some(self.map(members, element, at, before).into())
            }
            (Type::Struct(s), Node::Object(members)) => Some(self.members(members, s, at, before).into()),
            (Type::SchemaOrBool | Type::SchemaOrList | Type::SchemaOrTexts, Node::Object(members)) => {
                self.nested(|walk| walk.members(members, &tables::SCHEMA, at, None).into())
            }
            (Type::SchemaOrBool, _) => self.end("boolean or JSON schema expected".into()),
            (Type::SchemaOrList, Node::List(items)) => {
                self.nested(|walk| walk.list(items, &tables::A_SCHEMA, at, None).into())
            }
            (Type::SchemaOrTexts, Node::List(items)) => {
                self.nested(|walk| walk.list(items, &tables::TEXT, at, None).into())
            }
            (Type::SchemaOrList | Type::SchemaOrTexts, _) => Some(Value::Array(Vec::new())),
            (_, v) => self.misfit(v.kind(), ty),
        }
    }

    /// The elements of a list; each is decoded into the one that stood in its place.
    fn list<S: Source>(
        &mut self,
        items: Vec<S>,
        ty: &Type,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Vec<Value> {
        let mut before = match before {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        }
        .into_iter();
        let items = items.into_iter().enumerate();
        items
            .map(|(i, v)| self.element(v, ty, &at.index(i), before.next()))
            .collect()
    }

    /// The entries of a map, beside those that were there.
    fn map<S: Source>(
        &mut self,
        members: impl Iterator<Item = (Str, S)>,
        ty: &Type,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Map {
        let mut seen = BTreeSet::new();
        let mut entry = |(k, v): (Str, S)| {
            if S::REPEATS && !seen.insert(k.clone()) {
                self.repeat(&at.field(&k));
            }
            let v = self.element(v, ty, &at.field(&k), None);
            (k, v)
        };
        match before {
            Some(Value::Object(mut all)) => {
                for member in members {
                    let (k, v) = entry(member);
                    all.insert(k, v);
                }
                all
            }
            _ => members.map(entry).collect(),
        }
    }

    /// An element of a list or a map. Where nothing stands a text is empty; structs become so when they are written.
    fn element<S: Source>(&mut self, v: S, ty: &Type, at: &Path<'_>, before: Option<Value>) -> Value {
        let found = self.value(v, ty, at, before);
        found.unwrap_or_else(|| match ty {
            Type::Text(_) => ty.zero(),
            _ => Value::Null,
        })
    }

    fn members<S: Source>(
        &mut self,
        members: impl ExactSizeIterator<Item = (Str, S)>,
        s: &'static Struct,
        at: &Path<'_>,
        before: Option<Value>,
    ) -> Map {
        let mut out = Vec::with_capacity(members.len());
        if let Some(Value::Object(before)) = before {
            out.extend(before);
        }
        let mut seen = BTreeSet::new();
        for (key, v) in members {
            let known = s.field(&key);
            let Some(field) = known.filter(|f| f.extension.is_none_or(|x| self.options.has(x))) else {
                self.unknown_field(&at.field(&key));
                continue;
            };
            let mut before = None;
            if S::REPEATS {
                if !seen.insert(field.name) {
                    self.repeat(&at.field(field.name));
                }
                let place = out.iter().position(|(k, _): &(Str, Value)| *k == key);
                before = place.map(|place| out.swap_remove(place).1);
                // What may be unset becomes so.
                before = before.filter(|_| field.keep != Keep::Set || !v.is_null());
            }
            self.stack.push(field.name);
            self.structs.push(s.name);
            let v = self.value(v, &field.ty, &at.field(field.name), before);
            self.stack.pop();
            self.structs.pop();
            if let Some(v) = v {
                out.push((key, v));
            }
        }
        Map::from_unsorted(out)
    }

    /// A field that the kind does not have.
    fn unknown_field(&mut self, at: &Path<'_>) {
        if self.strict {
            let at = PathBuf::from(at);
            if self.unknown.last() != Some(&at) {
                self.unknown.push(at);
            }
        }
    }

    /// A field that has been there.
    fn repeat(&mut self, at: &Path<'_>) {
        if self.strict && self.repeated.len() < MAX_REPEATED {
            let at = PathBuf::from(at);
            if !self.repeated.contains(&at) {
                self.repeated.push(at);
            }
        }
    }

    /// A value whose type has a decoder of its own: its first fault ends decoding, and it looks for no unknown fields.
    fn nested(&mut self, decode: impl FnOnce(&mut Walk) -> Value) -> Option<Value> {
        let strict = std::mem::replace(&mut self.strict, false);
        let saved = self.saved.take();
        let out = decode(self);
        self.strict = strict;
        match self.saved.take() {
            Some(fault) => {
                self.fatal.get_or_insert(fault);
                None
            }
            None => {
                self.saved = saved;
                Some(out)
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

/// Where a text is no base64; none if it is.
fn illegal_base64(text: &str) -> Option<usize> {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    let e = base64::engine::general_purpose::STANDARD.decode(text).err()?;
    Some(match e {
        InvalidByte(at, _) | InvalidLastSymbol(at, _) => at,
        InvalidLength(_) | InvalidPadding => text.len() / 4 * 4,
    })
}
