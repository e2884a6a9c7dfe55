//! Encodes messages.

use super::wire::{boolean, bytes, double, number, string};
use crate::decode::base64;
use crate::table::ZERO_TIMES;
use crate::{Codec, GoType, StructDef, TypeDef, TypeKind, TypeTable};
use scantling_notation::timestamp;
use scantling_value::{Map, Value};

impl TypeTable {
    /// Encodes an object of a type as a message, without an envelope.
    pub fn write_protobuf(&self, definition: &TypeDef, members: &Map, out: &mut Vec<u8>) {
        if let Some(s) = definition.as_struct() {
            self.write_message(s, members, out);
        }
    }

    fn write_message(&self, s: &StructDef, members: &Map, out: &mut Vec<u8>) {
        for field in s.numbered() {
            let n = u64::from(field.number);
            if field.is_inlined() {
                // The fields of an inlined struct are siblings in JSON, but a message of their own in protobuf.
                if let Some(s) = self.struct_of(&field.ty) {
                    nested(out, n, |out| self.write_message(s, members, out));
                }
                continue;
            }
            let value = members.get(field.name).filter(|v| !v.is_null());
            self.write_field(n, &field.ty, value, out);
        }
    }

    /// Writes a field. Unset pointers, bytes, lists and maps are omitted; everything else is written even if it is
    /// zero, as Kubernetes' generated code does.
    fn write_field(&self, n: u64, ty: &GoType, value: Option<&Value>, out: &mut Vec<u8>) {
        match (ty, value) {
            (GoType::Pointer(inner), Some(value)) => self.write_content(n, inner, value, out),
            (GoType::Bytes, Some(value)) => self.write_content(n, ty, value, out),
            (GoType::Pointer(_) | GoType::Bytes | GoType::List(_) | GoType::Map(_), None) => {}
            (GoType::List(element), Some(Value::Array(items))) => {
                items.iter().for_each(|v| self.write_content(n, element, v, out));
            }
            (GoType::Map(entry), Some(Value::Object(entries))) => {
                for (key, value) in entries.iter() {
                    nested(out, n, |out| {
                        string(out, 1, key);
                        self.write_content(2, &entry.1, value, out);
                    });
                }
            }
            (GoType::Named(id), value) => {
                let definition = self.get(*id);
                match (&definition.kind, value) {
                    (TypeKind::Named(GoType::List(_)), None) if definition.is_message => {}
                    (TypeKind::Named(inner), value) if !definition.is_message => {
                        self.write_field(n, inner, value, out);
                    }
                    (_, value) => self.write_content(n, ty, value.unwrap_or(&Value::Null), out),
                }
            }
            (_, value) => self.write_content(n, ty, value.unwrap_or(&Value::Null), out),
        }
    }

    /// Encodes a value that is present; `null` becomes the zero value of its type.
    fn write_content(&self, n: u64, ty: &GoType, value: &Value, out: &mut Vec<u8>) {
        match ty {
            GoType::String => string(out, n, value.as_str().unwrap_or_default()),
            GoType::Int32 | GoType::Int64 => number(out, n, value.as_int().unwrap_or_default()),
            GoType::Bool => boolean(out, n, value.as_bool().unwrap_or_default()),
            GoType::Float64 => double(out, n, as_double(value)),
            GoType::Bytes => {
                let text = value.as_str().unwrap_or_default();
                bytes(out, n, &base64::decode(text).unwrap_or_default());
            }
            GoType::Pointer(inner) => self.write_content(n, inner, value, out),
            // Nested lists and maps have their own message types, and `any` has no encoding.
            GoType::List(_) | GoType::Map(_) | GoType::Any => {}
            GoType::Named(id) => {
                let definition = self.get(*id);
                match &definition.kind {
                    TypeKind::Struct(s) => nested(out, n, |out| match value.as_object() {
                        Some(members) => self.write_message(s, members, out),
                        None => self.write_message(s, &Map::new(), out),
                    }),
                    TypeKind::Named(GoType::List(element)) if definition.is_message => {
                        nested(out, n, |out| {
                            let items = value.as_array().unwrap_or_default();
                            items.iter().for_each(|v| self.write_content(1, element, v, out));
                        });
                    }
                    TypeKind::Named(inner) => self.write_content(n, inner, value, out),
                    TypeKind::Custom(codec) => {
                        nested(out, n, |out| self.write_custom(*codec, definition, value, out));
                    }
                }
            }
        }
    }

    /// Encodes the message of a custom type.
    fn write_custom(&self, codec: Codec, definition: &TypeDef, value: &Value, out: &mut Vec<u8>) {
        let schema = || {
            self.find(self.package(definition).id, crate::SCHEMA)
                .map(|d| GoType::Named(d.id))
        };
        match (codec, value) {
            (Codec::Quantity, value) => string(out, 1, value.as_str().unwrap_or("0")),
            (Codec::IntOrString, value) => {
                number(out, 1, i64::from(value.as_str().is_some()));
                number(out, 2, value.as_int().unwrap_or_default());
                string(out, 3, value.as_str().unwrap_or_default());
            }
            (Codec::Time | Codec::MicroTime, value) => {
                // An unset time is the empty message.
                let text = value.as_str().filter(|text| !ZERO_TIMES.contains(text));
                if let Some(moment) = text.and_then(timestamp::parse) {
                    number(out, 1, moment.seconds);
                    number(out, 2, i64::from(moment.nanos));
                }
            }
            (Codec::Raw | Codec::Fields | Codec::Json, Value::Null) => {}
            (Codec::Raw | Codec::Fields | Codec::Json, value) => bytes(out, 1, value.to_json().as_bytes()),
            (Codec::SchemaOrBool, value) => {
                // A schema in place of a boolean means true.
                boolean(out, 1, value.as_bool().unwrap_or(value.as_object().is_some()));
                if let (Some(schema), Value::Object(_)) = (schema(), value) {
                    self.write_content(2, &schema, value, out);
                }
            }
            (Codec::SchemaOrList | Codec::SchemaOrStrings, Value::Object(_)) => {
                if let Some(schema) = schema() {
                    self.write_content(1, &schema, value, out);
                }
            }
            (Codec::SchemaOrList, Value::Array(items)) => {
                if let Some(schema) = schema() {
                    items.iter().for_each(|v| self.write_content(2, &schema, v, out));
                }
            }
            (Codec::SchemaOrStrings, Value::Array(items)) => {
                items
                    .iter()
                    .for_each(|v| self.write_content(2, &GoType::String, v, out));
            }
            (Codec::SchemaOrList | Codec::SchemaOrStrings, _) => {}
        }
    }
}

/// Writes a nested message as a field.
fn nested(out: &mut Vec<u8>, n: u64, write: impl FnOnce(&mut Vec<u8>)) {
    // The length comes first, and is known only once the content is written.
    let mut content = Vec::new();
    write(&mut content);
    bytes(out, n, &content);
}

#[expect(clippy::cast_precision_loss, reason = "the field is a double on the wire")]
fn as_double(value: &Value) -> f64 {
    match value {
        Value::Float(f) => *f,
        other => other.as_int().unwrap_or_default() as f64,
    }
}
