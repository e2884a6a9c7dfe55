//! Canonical form: the fields that kube-apiserver encodes. Required fields are always present, others only if
//! set or not empty.

use crate::table::ZERO_TIMES;
use crate::{Codec, GoType, Presence, StructDef, TypeDef, TypeKind, TypeTable};
use scantling_value::{Map, Value, deadline};

/// The representation of empty lists and maps that are not encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptyCollections {
    Omitted,
    Kept,
    /// As in protobuf: required ones are null.
    Null,
}

impl TypeTable {
    /// Returns an object as a server writes it: no empty values, no unset fields, and all fields that are always written.
    pub fn canonical(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            Canonicalizer::new(self, EmptyCollections::Omitted).members(s, &mut members);
        }
        members
    }

    /// Returns an object as kube-apiserver reads it back from protobuf storage, which does not distinguish
    /// empty lists and maps from absent ones.
    pub fn stored(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            Canonicalizer::new(self, EmptyCollections::Null).members(s, &mut members);
        }
        members
    }

    /// Returns an object as kube-apiserver holds it in memory: an empty list or map differs from an absent
    /// one.
    pub fn in_memory(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            Canonicalizer::new(self, EmptyCollections::Kept).members(s, &mut members);
        }
        members
    }

    /// Returns whether kube-apiserver holds empty lists or maps of an object in memory that it does not
    /// encode.
    pub fn omits_empty_collections(&self, definition: &TypeDef, members: &Map) -> bool {
        definition
            .as_struct()
            .is_some_and(|s| self.struct_omits(s, members))
    }

    fn struct_omits(&self, s: &StructDef, members: &Map) -> bool {
        deadline::tick_for(members.len());
        // Only lists and maps can be empty, and most members are scalars.
        let mut containers = members
            .iter()
            .filter(|(_, value)| matches!(value, Value::Array(_) | Value::Object(_)));
        containers.any(|(name, value)| {
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

    /// The struct that a type is, or that its custom encoding contains.
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

/// One walk that brings an object into a canonical form.
struct Canonicalizer<'t> {
    table: &'t TypeTable,
    empty: EmptyCollections,
}

impl<'t> Canonicalizer<'t> {
    fn new(table: &'t TypeTable, empty: EmptyCollections) -> Self {
        Canonicalizer { table, empty }
    }

    fn members(&mut self, s: &StructDef, members: &mut Map) {
        deadline::tick_for(members.len());
        let (table, empty) = (self.table, self.empty);
        members.retain(|name, value| {
            // An object that is written has known fields only, and most of them have values that are kept in every type.
            if empty == EmptyCollections::Null && is_kept(value) {
                debug_assert!(s.field(name).is_some(), "{name} is no field");
                return true;
            }
            let Some(field) = s.field(name).filter(|_| !value.is_null()) else {
                return false;
            };
            // Without a pointer, the zero time is the same as none.
            let is_pointer = matches!(field.ty, GoType::Pointer(_));
            if !is_pointer
                && value
                    .as_str()
                    .is_some_and(|text| table.is_zero_time(&field.ty, text))
            {
                return false;
            }
            self.value(&field.ty, value);
            let is_container = || matches!(table.underlying(&field.ty), GoType::List(_) | GoType::Map(_));
            if empty == EmptyCollections::Null
                && field.presence == Presence::Required
                && is_empty(value)
                && is_container()
            {
                *value = Value::Null;
            }
            field.presence != Presence::OmitEmpty
                || !(is_zero(value) || is_empty(value) && empty != EmptyCollections::Kept)
        });
        for field in s.always() {
            members.get_or_insert_with(field.name, || table.zero(&field.ty));
        }
    }

    fn value(&mut self, ty: &GoType, v: &mut Value) {
        // Most values are scalars, which stay as they are.
        if !matches!(v, Value::Null | Value::Array(_) | Value::Object(_)) {
            return;
        }
        let table = self.table;
        match (table.underlying(ty), &mut *v) {
            (GoType::List(element), Value::Array(items)) => {
                items.iter_mut().for_each(|v| self.value(element, v));
            }
            (GoType::Map(entry), Value::Object(members)) => {
                members.iter_mut().for_each(|(_, v)| self.value(&entry.1, v));
            }
            (GoType::Named(_), Value::Object(members)) => {
                if let Some(s) = table.encoded_struct(ty) {
                    self.members(s, members);
                }
            }
            (GoType::Named(_), Value::Array(items)) => match table.codec_of(ty) {
                // kube-apiserver writes a list without elements as the schema, which is null.
                Some(Codec::SchemaOrList | Codec::SchemaOrStrings) if items.is_empty() => *v = Value::Null,
                Some(Codec::SchemaOrList) => {
                    if let Some(s) = table.encoded_struct(ty) {
                        let members = items.iter_mut().filter_map(Value::as_object_mut);
                        members.for_each(|m| self.members(s, m));
                    }
                }
                _ => {}
            },
            // Nulls in a list or map of structs become zero values.
            (GoType::Named(id), Value::Null) if table.get(*id).as_struct().is_some() => {
                *v = table.zero(&GoType::Named(*id));
            }
            _ => {}
        }
    }
}

/// Returns whether a value is a scalar that every form of its type keeps.
fn is_kept(v: &Value) -> bool {
    match v {
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => !is_zero(v),
        Value::String(text) => !text.is_empty() && !ZERO_TIMES.contains(&text.as_str()),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns whether a scalar is the zero value of its type.
pub(crate) fn is_zero(v: &Value) -> bool {
    match v {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Bool(true) | Value::Int(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn is_empty(v: &Value) -> bool {
    match v {
        Value::Array(a) => a.is_empty(),
        Value::Object(m) => m.is_empty(),
        _ => false,
    }
}
