//! Which fields a server writes: those that are always there, and others only where they are set or not empty.

use crate::{Codec, GoType, Presence, StructDef, TypeDef, TypeKind, TypeTable};
use scantling_value::{Map, Value, deadline};

/// What becomes of empty lists and maps that are not written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptyCollections {
    Omitted,
    Kept,
    /// As protobuf holds them: those that are always written are null.
    Null,
}

impl TypeTable {
    /// An object as a server writes it: no empty values, no unset fields.
    pub fn canonical(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            self.normalize_members(s, &mut members, EmptyCollections::Omitted);
        }
        members
    }

    /// An object as it comes back from storage in protobuf, which does not tell empty lists and maps from absent ones.
    pub fn stored(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            self.normalize_members(s, &mut members, EmptyCollections::Null);
        }
        members
    }

    /// An object as a server holds it in memory: an empty list or map is not the same as none.
    pub fn in_memory(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            self.normalize_members(s, &mut members, EmptyCollections::Kept);
        }
        members
    }

    /// Whether a server holds empty lists or maps of an object that it does not write.
    pub fn omits_empty_collections(&self, definition: &TypeDef, members: &Map) -> bool {
        definition
            .as_struct()
            .is_some_and(|s| self.struct_omits(s, members))
    }

    fn struct_omits(&self, s: &StructDef, members: &Map) -> bool {
        deadline::tick_for(members.len());
        members.iter().any(|(name, value)| {
            s.field(name).is_some_and(|field| {
                (field.presence == Presence::OmitEmpty && is_empty(value))
                    || self.type_omits(&field.ty, value)
            })
        })
    }

    fn type_omits(&self, ty: &GoType, v: &Value) -> bool {
        match (self.underlying(ty), v) {
            (GoType::List(element), Value::Array(items)) => items.iter().any(|v| self.type_omits(element, v)),
            (GoType::Map(entry), Value::Object(members)) => {
                members.iter().any(|(_, v)| self.type_omits(&entry.1, v))
            }
            (GoType::Named(_), Value::Object(members)) => self
                .encoded_struct(ty)
                .is_some_and(|s| self.struct_omits(s, members)),
            (GoType::Named(_), Value::Array(items)) => {
                let s = self.encoded_struct(ty);
                let omits = |v: &Value| v.as_object().zip(s).is_some_and(|(m, s)| self.struct_omits(s, m));
                items.iter().any(omits)
            }
            _ => false,
        }
    }

    fn normalize_members(&self, s: &StructDef, members: &mut Map, empty: EmptyCollections) {
        deadline::tick_for(members.len());
        members.retain(|name, value| {
            let Some(field) = s.field(name).filter(|_| !value.is_null()) else {
                return false;
            };
            self.normalize(&field.ty, value, empty);
            let is_container = || matches!(self.underlying(&field.ty), GoType::List(_) | GoType::Map(_));
            if empty == EmptyCollections::Null
                && field.presence == Presence::Required
                && is_empty(value)
                && is_container()
            {
                *value = Value::Null;
            }
            field.presence != Presence::OmitEmpty || !is_zero(value, empty)
        });
        for field in s.members.iter().filter(|f| f.presence == Presence::Required) {
            members.get_or_insert_with(field.name, || self.zero(&field.ty));
        }
    }

    fn normalize(&self, ty: &GoType, v: &mut Value, empty: EmptyCollections) {
        match (self.underlying(ty), &mut *v) {
            (GoType::List(element), Value::Array(items)) => {
                items.iter_mut().for_each(|v| self.normalize(element, v, empty));
            }
            (GoType::Map(entry), Value::Object(members)) => {
                members
                    .iter_mut()
                    .for_each(|(_, v)| self.normalize(&entry.1, v, empty));
            }
            (GoType::Named(_), Value::Object(members)) => {
                if let Some(s) = self.encoded_struct(ty) {
                    self.normalize_members(s, members, empty);
                }
            }
            (GoType::Named(_), Value::Array(items)) => match self.codec_of(ty) {
                Some(Codec::SchemaOrList | Codec::SchemaOrStrings) if items.is_empty() => *v = Value::Null,
                Some(Codec::SchemaOrList) => {
                    if let Some(s) = self.encoded_struct(ty) {
                        let members = items.iter_mut().filter_map(Value::as_object_mut);
                        members.for_each(|m| self.normalize_members(s, m, empty));
                    }
                }
                _ => {}
            },
            // A list or map of structs holds zero values where the document held nulls.
            (GoType::Named(id), Value::Null) if self.get(*id).as_struct().is_some() => {
                *v = self.zero(&GoType::Named(*id));
            }
            _ => {}
        }
    }

    /// The struct that a type is, or that its encoding holds.
    pub(crate) fn encoded_struct(&self, ty: &GoType) -> Option<&StructDef> {
        let GoType::Named(id) = self.underlying(ty) else {
            return None;
        };
        let definition = self.get(*id);
        match &definition.kind {
            TypeKind::Struct(s) => Some(s),
            TypeKind::Custom(Codec::SchemaOrBool | Codec::SchemaOrList | Codec::SchemaOrStrings) => {
                self.find(self.package(definition).id, crate::SCHEMA)?.as_struct()
            }
            _ => None,
        }
    }
}

fn is_zero(v: &Value, empty: EmptyCollections) -> bool {
    match v {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Array(_) | Value::Object(_) => is_empty(v) && empty != EmptyCollections::Kept,
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
