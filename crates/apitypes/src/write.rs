//! JSON encoding with fields in declaration order, as Go encodes structs.

use crate::table::ZERO_TIMES;
use crate::{Codec, FieldDef, GoType, StructDef, TypeDef, TypeTable};
use scantling_value::{Map, Value, json};

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
        match (value, self.underlying(ty)) {
            (Value::Array(items), GoType::List(element)) => self.write_list(element, items, out),
            (Value::Object(members), GoType::Map(entry)) => {
                let mut writer = ObjectWriter::new(out);
                for (key, value) in members.iter() {
                    writer.separate();
                    json::write_key(writer.out, key);
                    self.write_typed(&entry.1, value, writer.out);
                }
                writer.end();
            }
            (Value::Object(_), ty @ GoType::Named(_)) => match (self.encoded_struct(ty), self.codec_of(ty)) {
                (Some(s), _) => self.write_struct(s, value, &[], out),
                // An object of another API may have a kind that the table knows.
                (None, Some(Codec::Raw)) => self.write_object(value, out),
                _ => value.write_json(out),
            },
            (Value::Array(items), GoType::Named(id)) if self.codec_of(ty) == Some(Codec::SchemaOrList) => {
                let schema = self.find(self.package(self.get(*id)).id, crate::SCHEMA);
                match schema {
                    Some(schema) => self.write_list(&GoType::Named(schema.id), items, out),
                    None => value.write_json(out),
                }
            }
            // A pointer to the zero time: Go keeps it and writes `null`.
            (Value::String(text), ty @ GoType::Named(_)) if self.is_zero_time(ty, text) => {
                out.extend_from_slice(b"null");
            }
            _ => value.write_json(out),
        }
    }

    /// Encodes a value of a type. Most values are scalars, which look the same in every type.
    #[inline]
    fn write_typed(&self, ty: &GoType, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Array(_) | Value::Object(_) => self.write_value(ty, value, out),
            Value::String(text) if ZERO_TIMES.contains(&text.as_str()) => self.write_value(ty, value, out),
            scalar => scalar.write_json(out),
        }
    }

    fn write_list(&self, element: &GoType, items: &[Value], out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            self.write_typed(element, item, out);
        }
        out.push(b']');
    }

    fn write_struct(&self, s: &StructDef, object: &Value, left_out: &[&str], out: &mut Vec<u8>) {
        let Some(members) = object.as_object() else { return };
        let mut writer = ObjectWriter::new(out);
        for member in self.members(Some(s), members) {
            let name = member.name();
            if !left_out.contains(&name) {
                writer.separate();
                self.write_member(&member, writer.out);
            }
        }
        writer.end();
    }

    /// The members of an object in the order in which Go encodes a struct. Members that the struct does not have come
    /// last, sorted by name; without a struct, that is all of them.
    pub fn members<'a>(&self, s: Option<&'a StructDef>, object: &'a Map) -> Vec<Member<'a>> {
        // Objects have few of the fields of their types, so the members are looked up and sorted, not the
        // fields.
        let mut members: Vec<Member<'a>> = object
            .iter()
            .map(|(name, value)| {
                let (position, field) = MemberPosition::find(s, name);
                Member {
                    position,
                    value,
                    field,
                }
            })
            .collect();
        // Members without a field keep their order, which is that of the names.
        if s.is_some() {
            members.sort_by_key(|member| member.position.declared);
        }
        members
    }

    /// Encodes a member: its name and its value.
    pub fn write_member(&self, member: &Member<'_>, out: &mut Vec<u8>) {
        member.write_key(out);
        match member.field {
            Some(field) => self.write_typed(&field.ty, member.value, out),
            None => member.value.write_json(out),
        }
    }
}

/// A member of an object that is encoded.
#[derive(Debug)]
pub struct Member<'a> {
    /// The position among the members.
    pub position: MemberPosition<'a>,
    /// The value.
    pub value: &'a Value,
    /// The declared field; `None` if the type does not have it.
    pub field: Option<&'a FieldDef>,
}

impl<'a> Member<'a> {
    /// The name.
    pub fn name(&self) -> &'a str {
        self.position.name
    }

    /// Appends the name with its colon.
    pub fn write_key(&self, out: &mut Vec<u8>) {
        match self.field {
            Some(field) => json::write_plain_key(out, field.name),
            None => json::write_key(out, self.name()),
        }
    }
}

/// The position of a member in the text of an object: by declaration, then by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberPosition<'a> {
    declared: usize,
    name: &'a str,
}

impl<'a> MemberPosition<'a> {
    /// The position of a name in an object of a struct; `None` for an object without declared fields.
    pub fn new(s: Option<&StructDef>, name: &'a str) -> MemberPosition<'a> {
        MemberPosition::find(s, name).0
    }

    fn find<'s>(s: Option<&'s StructDef>, name: &'a str) -> (MemberPosition<'a>, Option<&'s FieldDef>) {
        let found = s.and_then(|s| s.find(name));
        let declared = found.map_or(usize::MAX, |(at, _)| at);
        (MemberPosition { declared, name }, found.map(|(_, field)| field))
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

    /// Separates the next member from the one before it.
    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn end(self) {
        self.out.push(b'}');
    }
}
