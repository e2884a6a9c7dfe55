//! Decodes messages.

use super::wire::{self, WireValue};
use crate::decode::base64;
use crate::{Codec, FieldDef, GoType, StructDef, TypeDef, TypeKind, TypeTable};
use scantling_notation::timestamp::{self, Moment};
use scantling_value::{Limits, Map, Str, Value, deadline, json};

impl TypeTable {
    /// Decodes a message of a type. Unset and zero fields are omitted, except pointers.
    pub fn read_protobuf(&self, definition: &TypeDef, message: &[u8], depth: usize) -> Result<Map, String> {
        let mut out = PartialMessage::default();
        if let Some(s) = definition.as_struct() {
            self.read_message(s, message, depth, &mut out)?;
        }
        Ok(out.finish())
    }

    fn read_message(
        &self,
        s: &StructDef,
        message: &[u8],
        depth: usize,
        out: &mut PartialMessage,
    ) -> Result<(), String> {
        let depth = depth.checked_sub(1).ok_or("exceeded max depth")?;
        for found in wire::fields(message) {
            deadline::tick();
            let (n, content) = found?;
            // Unknown fields of newer clients are skipped, as protobuf requires.
            let Some(field) = s.number(n) else { continue };
            if field.is_inlined() {
                if let (Some(s), WireValue::Bytes(message)) = (self.struct_of(&field.ty), content) {
                    self.read_message(s, message, depth, out)?;
                }
                continue;
            }
            let reader = FieldReader {
                table: self,
                field,
                depth,
            };
            reader.field(&field.ty, content, out)?;
        }
        Ok(())
    }
}

/// A message that is being decoded.
#[derive(Default)]
struct PartialMessage {
    members: Map,
    /// The entries of fields that are maps, in their order: sorting them once costs less than inserting each.
    maps: Vec<(&'static str, Vec<(Str, Value)>)>,
}

impl PartialMessage {
    /// Adds an entry to a field that is a map.
    fn push_entry(&mut self, field: &'static str, entry: (Str, Value)) {
        match self.maps.iter_mut().find(|(name, _)| *name == field) {
            Some((_, entries)) => entries.push(entry),
            None => self.maps.push((field, vec![entry])),
        }
    }

    fn finish(self) -> Map {
        let mut members = self.members;
        for (field, entries) in self.maps {
            members.insert(field, Map::from_unsorted(entries).into());
        }
        members
    }
}

/// Decodes the content of one field.
struct FieldReader<'t> {
    table: &'t TypeTable,
    field: &'t FieldDef,
    depth: usize,
}

impl FieldReader<'_> {
    fn wrong_type(&self, content: WireValue<'_>) -> String {
        let (wire_type, name) = (content.wire_type(), self.field.go_name());
        format!("proto: wrong wireType = {wire_type} for field {name}")
    }

    fn field(&self, ty: &GoType, content: WireValue<'_>, out: &mut PartialMessage) -> Result<(), String> {
        let name = self.field.name;
        match ty {
            GoType::Pointer(inner) => {
                out.members.insert(name, self.value(inner, content)?);
            }
            GoType::List(element) => {
                let value = self.value(element, content)?;
                let list = out.members.get_or_insert_with(name, || Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    list.push(value);
                }
            }
            GoType::Map(entry) => {
                out.push_entry(name, self.entry(&entry.1, content)?);
            }
            GoType::Named(id) => {
                let definition = self.table.get(*id);
                // A named type is encoded as the type it names, unless it is a message of its own.
                if let (TypeKind::Named(inner), false) = (&definition.kind, definition.is_message) {
                    return self.field(inner, content, out);
                }
                let value = self.value(ty, content)?;
                if !value.is_null() {
                    out.members.insert(name, value);
                }
            }
            _ => {
                let value = self.value(ty, content)?;
                if !is_zero(&value) {
                    out.members.insert(name, value);
                }
            }
        }
        Ok(())
    }

    fn entry(&self, ty: &GoType, content: WireValue<'_>) -> Result<(Str, Value), String> {
        let WireValue::Bytes(entry) = content else {
            return Err(self.wrong_type(content));
        };
        let (mut key, mut value) = ("", None);
        for part in wire::fields(entry) {
            match part? {
                (1, WireValue::Bytes(b)) => key = utf8(b)?,
                (2, content) => value = Some(self.value(ty, content)?),
                _ => {}
            }
        }
        // An entry without a value has the zero value.
        Ok((key.into(), value.unwrap_or_else(|| self.table.zero(ty))))
    }

    fn value(&self, ty: &GoType, content: WireValue<'_>) -> Result<Value, String> {
        Ok(match (ty, content) {
            (GoType::String, WireValue::Bytes(b)) => utf8(b)?.into(),
            (GoType::Int64, WireValue::Varint(n)) => Value::Int(n.cast_signed()),
            // A negative `int32` is sign-extended to 64 bits on the wire.
            (GoType::Int32, WireValue::Varint(n)) => Value::Int(i64::from(n as i32)),
            (GoType::Bool, WireValue::Varint(n)) => Value::Bool(n != 0),
            (GoType::Float64, WireValue::Fixed64(b)) => from_double(f64::from_le_bytes(b)),
            (GoType::Bytes, WireValue::Bytes(b)) => base64::encode(b).into(),
            (GoType::Pointer(inner), content) => self.value(inner, content)?,
            (GoType::Named(id), content) => {
                let definition = self.table.get(*id);
                match (&definition.kind, content) {
                    (TypeKind::Named(GoType::List(element)), WireValue::Bytes(b))
                        if definition.is_message =>
                    {
                        Value::Array(self.repeated(1, element, b)?)
                    }
                    (TypeKind::Named(inner), content) => self.value(inner, content)?,
                    (TypeKind::Struct(s), WireValue::Bytes(b)) => {
                        let mut message = PartialMessage::default();
                        self.table.read_message(s, b, self.depth, &mut message)?;
                        message.finish().into()
                    }
                    (TypeKind::Custom(codec), WireValue::Bytes(b)) => self.custom(*codec, definition, b)?,
                    (_, content) => return Err(self.wrong_type(content)),
                }
            }
            (_, content) => return Err(self.wrong_type(content)),
        })
    }

    /// The values of a repeated field of a message.
    fn repeated(&self, n: u64, ty: &GoType, message: &[u8]) -> Result<Vec<Value>, String> {
        let mut list = Vec::new();
        for part in wire::fields(message) {
            let (number, content) = part?;
            if number == n {
                list.push(self.value(ty, content)?);
            }
        }
        Ok(list)
    }

    fn custom(&self, codec: Codec, definition: &TypeDef, message: &[u8]) -> Result<Value, String> {
        let inner = || -> Result<&[u8], String> {
            let mut out: &[u8] = &[];
            for part in wire::fields(message) {
                if let (1, WireValue::Bytes(b)) = part? {
                    out = b;
                }
            }
            Ok(out)
        };
        Ok(match codec {
            Codec::Quantity => utf8(inner()?)?.into(),
            Codec::IntOrString => int_or_string(message)?,
            Codec::Time => time(message, false)?,
            Codec::MicroTime => time(message, true)?,
            Codec::Raw | Codec::Json => self.json(inner()?)?,
            Codec::Fields => {
                // Invalid JSON becomes a string; decoding `managedFields` rejects it later.
                let raw = inner()?;
                self.json(raw)
                    .unwrap_or_else(|_| String::from_utf8_lossy(raw).into_owned().into())
            }
            Codec::SchemaOrBool | Codec::SchemaOrList | Codec::SchemaOrStrings => {
                self.schema_or(codec, definition, message)?
            }
        })
    }

    /// Decodes a value that a message contains as JSON.
    fn json(&self, raw: &[u8]) -> Result<Value, String> {
        match raw {
            [] => Ok(Value::Null),
            raw => json::decode(raw, Limits { depth: self.depth }).map_err(|e| e.to_string()),
        }
    }

    /// A schema takes precedence over a list, and a list over a boolean, which is always present.
    fn schema_or(&self, codec: Codec, definition: &TypeDef, message: &[u8]) -> Result<Value, String> {
        let package = self.table.package(definition);
        let schema = self
            .table
            .find(package.id, crate::SCHEMA)
            .map(|d| GoType::Named(d.id));
        let schema = schema.ok_or("no schema")?;
        let (schema_number, list_number) = match codec {
            Codec::SchemaOrBool => (2, 0),
            _ => (1, 2),
        };
        if let Some(found) = self.repeated(schema_number, &schema, message)?.pop() {
            return Ok(found);
        }
        Ok(match codec {
            Codec::SchemaOrBool => self
                .repeated(1, &GoType::Bool, message)?
                .pop()
                .unwrap_or(Value::Bool(false)),
            Codec::SchemaOrList => Value::Array(self.repeated(list_number, &schema, message)?),
            _ => Value::Array(self.repeated(list_number, &GoType::String, message)?),
        })
    }
}

fn int_or_string(message: &[u8]) -> Result<Value, String> {
    let (mut is_string, mut int, mut string) = (false, 0, "");
    for part in wire::fields(message) {
        match part? {
            (1, WireValue::Varint(n)) => is_string = n == 1,
            (2, WireValue::Varint(n)) => int = i64::from(n as i32),
            (3, WireValue::Bytes(b)) => string = utf8(b)?,
            _ => {}
        }
    }
    Ok(if is_string { string.into() } else { int.into() })
}

/// Decodes a time; the empty message is `null`.
fn time(message: &[u8], has_micros: bool) -> Result<Value, String> {
    if message.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for part in wire::fields(message) {
        match part? {
            (1, WireValue::Varint(n)) => seconds = n.cast_signed(),
            (2, WireValue::Varint(n)) => {
                nanos = u32::try_from(n).map_err(|_| "a time is out of range".to_owned())?;
            }
            _ => {}
        }
    }
    // Only the years 0 to 9999 have a text form.
    if !(-62_167_219_200..253_402_300_800).contains(&seconds) || nanos >= 1_000_000_000 {
        return Err("a time is out of range".to_owned());
    }
    let moment = Moment {
        seconds,
        // As in Kubernetes, `Time` drops the fraction, which its JSON form does not have.
        nanos: if has_micros { nanos } else { 0 },
        offset: 0,
    };
    Ok(if has_micros {
        timestamp::format_micro(moment).into()
    } else {
        timestamp::format(moment).into()
    })
}

pub(super) fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8".to_owned())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        _ => false,
    }
}

/// Whole numbers are integers, as in JSON.
fn from_double(n: f64) -> Value {
    // Up to 2^53, every whole number is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if n.fract() == 0.0 && n.abs() <= EXACT {
        return Value::Int(n as i64);
    }
    Value::Float(n)
}
