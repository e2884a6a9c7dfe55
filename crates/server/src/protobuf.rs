//! Kubernetes' protobuf form of the built-in kinds: an envelope around a message that a table describes.
//!
//! Clients in Go send and ask for built-in objects in this form unless told otherwise. Custom resources have no such
//! form; what is asked about them (their metadata, what went wrong) has. Messages are data ([`messages`]), so that one
//! reader and one writer serve all of them, and no compiler of descriptions is needed to build.

mod messages;
mod wire;

pub(crate) use messages::{DELETE_OPTIONS, SCALE};
pub(crate) use wire::{boolean, bytes, double, length, number, string};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use scantling_value::{Limits, Map, Value, json};
use wire::Held;

/// What a message in the envelope begins with.
const PREFIX: &[u8] = b"k8s\0";

/// A message: the fields that it has, by number.
#[derive(Debug)]
pub(crate) struct Message(&'static [Field]);

/// A field of a message, and the member of an object that it is.
#[derive(Debug)]
struct Field {
    number: u64,
    name: &'static str,
    count: Count,
    form: Form,
}

/// How often a field occurs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Count {
    /// Always there; an empty one says nothing.
    One,
    /// There if it was set, be it to nothing.
    Optional,
    List,
    /// By text.
    Map,
}

/// What a field holds, and what that is in an object.
#[derive(Clone, Copy, Debug)]
enum Form {
    Text,
    Int,
    Bool,
    Double,
    /// Bytes, which an object writes in base 64.
    Bytes,
    /// Any value, written as JSON.
    Json,
    /// The fields of a manager as JSON. What is none becomes a text: it is refused where managers are read, not here.
    Fields,
    Time,
    MicroTime,
    /// A list of texts that has a message of its own.
    Texts,
    Part(&'static Message),
    /// Whichever of these fields fits the type of the value; they have no names.
    Either(&'static Message),
}

/// A body in its envelope.
#[derive(Debug)]
pub(crate) struct Envelope<'b> {
    pub(crate) api_version: &'b str,
    pub(crate) kind: &'b str,
    message: &'b [u8],
}

/// Whether a body is in the envelope.
pub(crate) fn is_enveloped(body: &[u8]) -> bool {
    body.starts_with(PREFIX)
}

/// Opens the envelope.
pub(crate) fn open(body: &[u8]) -> Result<Envelope<'_>, String> {
    let Some(inner) = body.strip_prefix(PREFIX) else {
        return Err(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                .to_owned(),
        );
    };
    if inner.is_empty() {
        return Err("empty body".to_owned());
    }
    let mut envelope = Envelope {
        api_version: "",
        kind: "",
        message: &[],
    };
    for field in wire::fields(inner) {
        match field? {
            (1, Held::Bytes(type_meta)) => {
                for field in wire::fields(type_meta) {
                    match field? {
                        (1, Held::Bytes(b)) => envelope.api_version = text(b)?,
                        (2, Held::Bytes(b)) => envelope.kind = text(b)?,
                        _ => {}
                    }
                }
            }
            (2, Held::Bytes(b)) => envelope.message = b,
            _ => {}
        }
    }
    Ok(envelope)
}

impl Envelope<'_> {
    /// The message of the kind that the envelope names, if it is one of those that have this form.
    pub(crate) fn described(&self) -> Option<&'static Message> {
        messages::find(self.api_version, self.kind)
    }

    /// What is inside, with its version and kind.
    pub(crate) fn read(&self, message: &Message) -> Result<Value, String> {
        let mut object = message.read(self.message, Limits::SERVER.depth)?;
        object.insert("apiVersion", self.api_version.into());
        object.insert("kind", self.kind.into());
        Ok(object.into())
    }
}

/// Whether objects of a kind have this form.
pub(crate) fn has_form(api_version: &str, kind: &str) -> bool {
    messages::find(api_version, kind).is_some()
}

/// An object in the envelope; nothing for kinds that do not have this form.
pub(crate) fn write(object: &Value) -> Option<Vec<u8>> {
    let members = object.as_object()?;
    let member = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (member("apiVersion"), member("kind"));
    let mut message = Vec::with_capacity(1024);
    messages::find(api_version, kind)?.write(members, &mut message);
    let mut type_meta = Vec::new();
    string(&mut type_meta, 1, api_version);
    string(&mut type_meta, 2, kind);
    let mut out = PREFIX.to_vec();
    bytes(&mut out, 1, &type_meta);
    bytes(&mut out, 2, &message);
    string(&mut out, 3, "");
    string(&mut out, 4, "");
    Some(out)
}

/// An event of a watch: its length, and a message without an envelope, around an object in one.
pub(crate) fn event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    bytes(&mut raw, 1, &write(object)?);
    let mut message = Vec::with_capacity(raw.len() + 32);
    string(&mut message, 1, kind);
    bytes(&mut message, 2, &raw);
    let mut out = u32::try_from(message.len()).ok()?.to_be_bytes().to_vec();
    out.append(&mut message);
    Some(out)
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8".to_owned())
}

impl Message {
    fn field(&self, number: u64) -> Option<&Field> {
        self.0.iter().find(|f| f.number == number)
    }

    fn read(&self, bytes: &[u8], depth: usize) -> Result<Map, String> {
        let mut out = Map::new();
        for found in wire::fields(bytes) {
            let (number, held) = found?;
            // What newer clients know and this server does not is passed over, as any reader of protobuf does.
            let Some(field) = self.field(number) else {
                continue;
            };
            match field.count {
                Count::One => {
                    let value = field.form.read(field, held, depth)?;
                    if !is_zero(&value) {
                        out.insert(field.name, value);
                    }
                }
                Count::Optional => {
                    out.insert(field.name, field.form.read(field, held, depth)?);
                }
                Count::List => {
                    let value = field.form.read(field, held, depth)?;
                    let list = out.get_or_insert_with(field.name, || Value::Array(Vec::new()));
                    if let Some(list) = list.as_array_mut() {
                        list.push(value);
                    }
                }
                Count::Map => {
                    let (key, value) = field.read_entry(held, depth)?;
                    let map = out.get_or_insert_with(field.name, || Map::new().into());
                    if let Some(map) = map.as_object_mut() {
                        map.insert(key, value);
                    }
                }
            }
        }
        Ok(out)
    }

    fn write(&self, members: &Map, out: &mut Vec<u8>) {
        for field in self.0 {
            let value = members.get(field.name).filter(|v| !v.is_null());
            match (field.count, value) {
                (Count::One, value) => field.write(value.unwrap_or(&Value::Null), out),
                (Count::Optional, Some(value)) => field.write(value, out),
                (Count::List, Some(Value::Array(list))) => list.iter().for_each(|v| field.write(v, out)),
                (Count::Map, Some(Value::Object(map))) => {
                    for (key, value) in map.iter() {
                        let mut entry = Vec::new();
                        string(&mut entry, 1, key);
                        field.write_as(2, value, &mut entry);
                        bytes(out, field.number, &entry);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Field {
    fn mistyped(&self) -> String {
        format!("proto: wrong wireType for field {}", self.name)
    }

    fn read_entry(&self, held: Held<'_>, depth: usize) -> Result<(String, Value), String> {
        let Held::Bytes(entry) = held else {
            return Err(self.mistyped());
        };
        let (mut key, mut value) = (String::new(), None);
        for part in wire::fields(entry) {
            match part? {
                (1, Held::Bytes(b)) => text(b)?.clone_into(&mut key),
                (2, held) => value = Some(self.form.read(self, held, depth)?),
                _ => {}
            }
        }
        // An entry without a value has the empty one.
        let value = match value {
            Some(v) => v,
            None => self.form.read(self, Held::Bytes(&[]), depth)?,
        };
        Ok((key, value))
    }

    fn write(&self, value: &Value, out: &mut Vec<u8>) {
        self.write_as(self.number, value, out);
    }

    /// Writes a value under a number of the caller's: that of the field, or of a map's entry.
    fn write_as(&self, number: u64, value: &Value, out: &mut Vec<u8>) {
        let text = value.as_str().unwrap_or_default();
        match self.form {
            Form::Text => string(out, number, text),
            Form::Int => wire::number(out, number, value.as_int().unwrap_or_default()),
            Form::Bool => boolean(out, number, value.as_bool().unwrap_or_default()),
            Form::Double => double(out, number, as_double(value)),
            Form::Bytes => bytes(out, number, &BASE64.decode(text).unwrap_or_default()),
            Form::Json | Form::Fields => {
                let mut raw = Vec::new();
                bytes(&mut raw, 1, value.to_json().as_bytes());
                bytes(out, number, &raw);
            }
            Form::Time | Form::MicroTime => {
                let mut time = Vec::new();
                if let Ok(at) = text.parse::<jiff::Timestamp>() {
                    wire::number(&mut time, 1, at.as_second());
                    wire::number(&mut time, 2, i64::from(at.subsec_nanosecond()));
                }
                bytes(out, number, &time);
            }
            Form::Texts => {
                let mut list = Vec::new();
                for text in value.as_array().unwrap_or_default() {
                    string(&mut list, 1, text.as_str().unwrap_or_default());
                }
                bytes(out, number, &list);
            }
            Form::Part(message) => {
                let mut part = Vec::new();
                match value.as_object() {
                    Some(members) => message.write(members, &mut part),
                    None => message.write(&Map::new(), &mut part),
                }
                bytes(out, number, &part);
            }
            Form::Either(message) => {
                let mut part = Vec::new();
                for field in message.0 {
                    match (field.count, field.form, value) {
                        (Count::List, _, Value::Array(list)) => {
                            list.iter().for_each(|v| field.write(v, &mut part));
                        }
                        (Count::One, Form::Bool, Value::Bool(_)) => field.write(value, &mut part),
                        // A schema in the place of a truth is allowed.
                        (Count::One, Form::Bool, _) => field.write(&Value::Bool(true), &mut part),
                        (Count::Optional, Form::Part(_), Value::Object(_)) => field.write(value, &mut part),
                        _ => {}
                    }
                }
                bytes(out, number, &part);
            }
        }
    }
}

/// A value that stands in a message as JSON.
fn value(raw: &[u8], depth: usize) -> Result<Value, String> {
    match raw {
        [] => Ok(Value::Null),
        raw => json::decode(raw, Limits { depth }).map_err(|e| e.to_string()),
    }
}

impl Form {
    fn read(self, field: &Field, held: Held<'_>, depth: usize) -> Result<Value, String> {
        let depth = depth.checked_sub(1).ok_or("exceeded max depth")?;
        Ok(match (self, held) {
            (Form::Text, Held::Bytes(b)) => text(b)?.into(),
            (Form::Int, Held::Varint(n)) => Value::Int(n.cast_signed()),
            (Form::Bool, Held::Varint(n)) => Value::Bool(n != 0),
            (Form::Double, Held::Fixed(b)) => of_double(f64::from_le_bytes(b)),
            (Form::Bytes, Held::Bytes(b)) => BASE64.encode(b).into(),
            (Form::Json, Held::Bytes(b)) => value(inner(b)?, depth)?,
            (Form::Fields, Held::Bytes(b)) => {
                let raw = inner(b)?;
                value(raw, depth).unwrap_or_else(|_| String::from_utf8_lossy(raw).into_owned().into())
            }
            (Form::Time, Held::Bytes(b)) => time(b, "%Y-%m-%dT%H:%M:%SZ")?,
            (Form::MicroTime, Held::Bytes(b)) => time(b, "%Y-%m-%dT%H:%M:%S.%6fZ")?,
            (Form::Texts, Held::Bytes(b)) => {
                let mut list = Vec::new();
                for part in wire::fields(b) {
                    if let (1, Held::Bytes(b)) = part? {
                        list.push(Value::from(text(b)?));
                    }
                }
                Value::Array(list)
            }
            (Form::Part(message), Held::Bytes(b)) => message.read(b, depth)?.into(),
            (Form::Either(message), Held::Bytes(b)) => either(message, b, depth)?,
            _ => return Err(field.mistyped()),
        })
    }
}

/// A part wins over a list, and that over a truth, which is always there.
fn either(message: &Message, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let (mut truth, mut list, mut part) = (Value::Null, Vec::new(), None);
    for found in wire::fields(bytes) {
        let (number, held) = found?;
        let Some(field) = message.field(number) else {
            continue;
        };
        let value = field.form.read(field, held, depth)?;
        match field.count {
            Count::One => truth = value,
            Count::List => list.push(value),
            Count::Optional | Count::Map => part = Some(value),
        }
    }
    Ok(match part {
        Some(part) => part,
        None if !list.is_empty() => Value::Array(list),
        None => truth,
    })
}

/// The bytes that a message of nothing else holds.
fn inner(message: &[u8]) -> Result<&[u8], String> {
    let mut out: &[u8] = &[];
    for part in wire::fields(message) {
        if let (1, Held::Bytes(b)) = part? {
            out = b;
        }
    }
    Ok(out)
}

/// A time; the empty one is none.
fn time(message: &[u8], format: &str) -> Result<Value, String> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for part in wire::fields(message) {
        match part? {
            (1, Held::Varint(n)) => seconds = n.cast_signed(),
            (2, Held::Varint(n)) => {
                nanos = i32::try_from(n.cast_signed()).map_err(|_| "a time is out of range".to_owned())?;
            }
            _ => {}
        }
    }
    let at = jiff::Timestamp::new(seconds, nanos).map_err(|_| "a time is out of range".to_owned())?;
    Ok(at.strftime(format).to_string().into())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::String(s) => s.is_empty(),
        _ => false,
    }
}

fn as_double(value: &Value) -> f64 {
    match value {
        Value::Float(f) => *f,
        other => other.as_int().unwrap_or_default() as f64,
    }
}

/// Whole numbers are integers, as in JSON.
fn of_double(n: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if n.fract() == 0.0 && n.abs() <= EXACT {
        return Value::Int(n as i64);
    }
    Value::Float(n)
}

#[cfg(test)]
mod tests;
