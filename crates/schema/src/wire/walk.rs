//! The walk over a document that decodes it.

use super::source::{Node, Source};
use super::{Decoded, Keep, MAX_DEPTH, Options, Struct, TOO_DEEP, Type, tables};
use base64::Engine as _;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use scantling_cel::data::timestamp;
use scantling_value::{Map, Path, PathBuf, Str, Value};
use std::collections::BTreeSet;

/// The most fields of a text that are told of.
const MAX_FINDINGS: usize = 100;

pub(super) struct Walk {
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
    /// A fault that shows when all is decoded.
    late: Option<String>,
    unknown: Vec<PathBuf>,
    repeated: Vec<PathBuf>,
}

impl Walk {
    pub(super) fn new(options: Options) -> Walk {
        Walk {
            options,
            strict: true,
            stack: Vec::new(),
            structs: Vec::new(),
            depth: 0,
            saved: None,
            fatal: None,
            late: None,
            unknown: Vec::new(),
            repeated: Vec::new(),
        }
    }

    /// Decodes a whole document, or tells its first fault.
    pub(super) fn decode(mut self, document: impl Source, kind: &'static Struct) -> Result<Decoded, String> {
        let value = self.value(document, &Type::Struct(kind), &Path::ROOT, None);
        if let Some(fault) = self.first_fault() {
            return Err(fault);
        }
        Ok(Decoded {
            members: value.and_then(Value::into_object).unwrap_or_default(),
            unknown: self.unknown,
            repeated: self.repeated,
        })
    }

    /// Tells the first fault of a value that is decoded for itself, wherever it stands.
    pub(super) fn check(mut self, value: Value, ty: &Type) -> Result<(), String> {
        self.value(value, ty, &Path::ROOT, None);
        self.first_fault().map_or(Ok(()), Err)
    }

    fn first_fault(&mut self) -> Option<String> {
        let fatal = self.fatal.take();
        fatal.or_else(|| self.saved.take()).or_else(|| self.late.take())
    }

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
            Type::Any => self.any(v),
            _ => self.fit(v.node(), ty, at, before),
        };
        self.depth -= 1;
        out
    }

    /// A value of any type. It is read as it is; only what is made of it later has no place for all numbers.
    fn any(&mut self, v: impl Source) -> Option<Value> {
        if let Some(number) = v.out_of_range() {
            let fault = format!("json: cannot unmarshal number {number} into Go value of type float64");
            self.late.get_or_insert(fault);
        }
        Some(v.into_value()).filter(|v| !v.is_null())
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
            (Type::Bytes, Node::Text(s)) => match read_base64(&s) {
                Ok(canonical) => Some(canonical.into()),
                Err(offset) => self.fault(format!("illegal base64 data at input byte {offset}")),
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
            if S::REPEATS && !seen.insert(k.clone()) && self.strict {
                tell_once::<S>(&mut self.repeated, &at.field(&k));
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

    /// An element of a list or a map. Where nothing stands texts and bytes are empty; structs become so when they are
    /// written.
    fn element<S: Source>(&mut self, v: S, ty: &Type, at: &Path<'_>, before: Option<Value>) -> Value {
        let found = self.value(v, ty, at, before);
        found.unwrap_or_else(|| match ty {
            Type::Text(_) | Type::Bytes => ty.zero(),
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
            let Some(field) = s.known(&key, self.options) else {
                if self.strict {
                    tell_once::<S>(&mut self.unknown, &at.field(&key));
                }
                continue;
            };
            let mut before = None;
            if S::REPEATS {
                if !seen.insert(field.name) && self.strict {
                    tell_once::<S>(&mut self.repeated, &at.field(field.name));
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

/// Tells of a field; where fields may stand twice, only once.
fn tell_once<S: Source>(told: &mut Vec<PathBuf>, at: &Path<'_>) {
    let at = PathBuf::from(at);
    if !S::REPEATS || (told.len() < MAX_FINDINGS && !told.contains(&at)) {
        told.push(at);
    }
}

/// Base64 as Go reads it: line breaks may stand anywhere, and bits that are left over count for nothing.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// A text that is base64, in the form in which its bytes are written; or the place where it is none.
pub(super) fn read_base64(text: &str) -> Result<String, usize> {
    let bytes: Vec<u8> = text.bytes().filter(|b| !is_break(*b)).collect();
    match BASE64.decode(bytes) {
        Ok(decoded) => Ok(BASE64.encode(decoded)),
        Err(_) => Err(no_base64(text)),
    }
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Where Go says that a text is no base64. A group that is not complete is counted back from where the text ends, line
/// breaks or not.
fn no_base64(text: &str) -> usize {
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let mut rest = text.bytes().enumerate().filter(|(_, b)| !is_break(*b));
    let mut digits = 0;
    while let Some((at, byte)) = rest.next() {
        match byte {
            _ if is_digit(byte) => digits = (digits + 1) % 4,
            b'=' if digits == 2 => match rest.next() {
                Some((_, b'=')) => return rest.next().map_or(text.len(), |(after, _)| after),
                Some((other, _)) => return other - 1,
                None => return text.len(),
            },
            b'=' if digits == 3 => return rest.next().map_or(text.len(), |(after, _)| after),
            _ => return at,
        }
    }
    text.len() - digits
}

#[cfg(test)]
mod tests {
    use super::read_base64;

    #[test]
    fn base64_is_read_as_by_go() {
        for good in ["", "YQ==", "YR==", "YWI=\n", "\nYW\r\nI="] {
            assert!(read_base64(good).is_ok(), "{good:?}");
        }
        assert_eq!(read_base64("Y\nR==").as_deref(), Ok("YQ=="));
        for (text, at) in [
            ("YQ", 0),
            ("YQ=", 3),
            ("YQ==YQ==", 4),
            ("Y Q=", 1),
            ("YW\nI", 1),
            ("Y\nQ*=", 3),
            ("====", 0),
            ("YQ=a", 2),
            ("YWJj\nZ", 5),
            ("YWJjZA==x", 8),
            ("YWJjZA=x=", 6),
        ] {
            assert_eq!(read_base64(text), Err(at), "{text:?}");
        }
    }
}
