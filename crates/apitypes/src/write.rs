//! JSON encoding with fields in declaration order, as Go encodes structs.

use crate::{Codec, GoType, StructDef, TypeDef, TypeTable};
use scantling_value::Value;

impl TypeTable {
    /// Encodes an object of a type. Members that the type does not have come last, sorted by name.
    pub fn write_json(&self, definition: &TypeDef, object: &Value, out: &mut Vec<u8>) {
        self.write_value(&GoType::Named(definition.id), object, out);
    }

    /// Encodes an item of a list, without its kind, because the list names it.
    pub fn write_item(&self, definition: &TypeDef, object: &Value, out: &mut Vec<u8>) {
        if let Some(s) = definition.as_struct() {
            self.write_struct(s, object, &["kind", "apiVersion"], out);
        }
    }

    /// Encodes an object in the field order of the type that its `apiVersion` and `kind` name; members of
    /// other objects are sorted by name.
    pub fn write_object(&self, object: &Value, out: &mut Vec<u8>) {
        match self.kind_of(object) {
            Some(definition) => self.write_json(definition, object, out),
            None => object.write_json(out),
        }
    }

    /// The type that an object's `apiVersion` and `kind` name.
    pub fn kind_of(&self, object: &Value) -> Option<&TypeDef> {
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let (api_version, kind) = (text("apiVersion").unwrap_or_default(), text("kind")?);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kind(group, version, kind)
    }

    fn write_value(&self, ty: &GoType, value: &Value, out: &mut Vec<u8>) {
        match (self.underlying(ty), value) {
            (GoType::List(element), Value::Array(items)) => self.write_list(element, items, out),
            (GoType::Map(entry), Value::Object(members)) => {
                let mut writer = ObjectWriter::new(out);
                for (key, value) in members.iter() {
                    writer.key(key);
                    self.write_value(&entry.1, value, writer.out);
                }
                writer.end();
            }
            (GoType::Named(_), Value::Object(_)) => match (self.codec_of(ty), self.encoded_struct(ty)) {
                (_, Some(s)) => self.write_struct(s, value, &[], out),
                // An object of another API may have a kind that the table knows.
                (Some(Codec::Raw), None) => self.write_object(value, out),
                _ => value.write_json(out),
            },
            (GoType::Named(id), Value::Array(items)) if self.codec_of(ty) == Some(Codec::SchemaOrList) => {
                let schema = self.find(self.package(self.get(*id)).id, crate::SCHEMA);
                match schema {
                    Some(schema) => self.write_list(&GoType::Named(schema.id), items, out),
                    None => value.write_json(out),
                }
            }
            _ => value.write_json(out),
        }
    }

    fn write_list(&self, element: &GoType, items: &[Value], out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            self.write_value(element, item, out);
        }
        out.push(b']');
    }

    fn write_struct(&self, s: &StructDef, object: &Value, left_out: &[&str], out: &mut Vec<u8>) {
        let Some(members) = object.as_object() else { return };
        // Objects have few of the fields of their types, so the members are looked up and sorted, not the
        // fields.
        let mut ordered: Vec<(usize, &str, &Value)> = members
            .iter()
            .filter(|(name, _)| !left_out.contains(&name.as_str()))
            .map(|(name, value)| (s.position(name).unwrap_or(usize::MAX), name.as_str(), value))
            .collect();
        ordered.sort_by_key(|(at, ..)| *at);
        let mut writer = ObjectWriter::new(out);
        for (at, name, value) in ordered {
            writer.key(name);
            match s.members.get(at) {
                Some(field) => self.write_value(&field.ty, value, writer.out),
                None => value.write_json(writer.out),
            }
        }
        writer.end();
    }
}

/// Writes the members of an object.
struct ObjectWriter<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl<'o> ObjectWriter<'o> {
    fn new(out: &'o mut Vec<u8>) -> ObjectWriter<'o> {
        out.push(b'{');
        ObjectWriter { out, is_first: true }
    }

    fn key(&mut self, name: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        Value::from(name).write_json(self.out);
        self.out.push(b':');
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
