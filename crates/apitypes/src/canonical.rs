//! Canonical form: the fields that kube-apiserver encodes. Required fields are always present, others only if
//! set or not empty.

use crate::{Codec, DecodeError, GoType, Presence, StructDef, TypeDef, TypeKind, TypeTable};
use scantling_value::{Map, Value, deadline};

/// The most bytes that fields which are always written may add to an object. Without a bound, a list of a million empty
/// objects, two bytes each, becomes a gigabyte.
const MAX_ADDED: usize = 3 << 20;

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
            Canonicalizer::new(self, EmptyCollections::Omitted, usize::MAX).members(s, &mut members);
        }
        members
    }

    /// Returns an object that a client sent as [`TypeTable::in_memory`] does. Fails if the fields that are always written
    /// add too much to it.
    pub fn in_memory_input(&self, definition: &TypeDef, mut members: Map) -> Result<Map, DecodeError> {
        let mut walk = Canonicalizer::new(self, EmptyCollections::Kept, MAX_ADDED);
        if let Some(s) = definition.as_struct() {
            walk.members(s, &mut members);
        }
        if walk.is_exceeded {
            let why = format!("fields that are always written add more than {MAX_ADDED} bytes to the object");
            return Err(DecodeError(why));
        }
        Ok(members)
    }

    /// Returns an object as kube-apiserver reads it back from protobuf storage, which does not distinguish
    /// empty lists and maps from absent ones.
    pub fn stored(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            Canonicalizer::new(self, EmptyCollections::Null, usize::MAX).members(s, &mut members);
        }
        members
    }

    /// Returns an object as kube-apiserver holds it in memory: an empty list or map differs from an absent
    /// one.
    pub fn in_memory(&self, definition: &TypeDef, mut members: Map) -> Map {
        if let Some(s) = definition.as_struct() {
            Canonicalizer::new(self, EmptyCollections::Kept, usize::MAX).members(s, &mut members);
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
    /// The number of bytes that may still be added.
    left: usize,
    is_exceeded: bool,
}

impl<'t> Canonicalizer<'t> {
    fn new(table: &'t TypeTable, empty: EmptyCollections, left: usize) -> Self {
        Canonicalizer {
            table,
            empty,
            left,
            is_exceeded: false,
        }
    }

    fn members(&mut self, s: &StructDef, members: &mut Map) {
        deadline::tick_for(members.len());
        // The caller discards the object.
        if self.is_exceeded {
            return;
        }
        let (table, empty) = (self.table, self.empty);
        members.retain(|name, value| {
            let Some(field) = s.field(name).filter(|_| !value.is_null()) else {
                return false;
            };
            self.value(&field.ty, value);
            let is_container = || matches!(table.underlying(&field.ty), GoType::List(_) | GoType::Map(_));
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
            members.get_or_insert_with(field.name, || {
                self.charge(field.name.len());
                self.zero(&field.ty)
            });
        }
    }

    fn value(&mut self, ty: &GoType, v: &mut Value) {
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
                *v = self.zero(&GoType::Named(*id));
            }
            _ => {}
        }
    }

    /// The zero value of a type; `null` once too much was added.
    fn zero(&mut self, ty: &GoType) -> Value {
        if matches!(ty, GoType::Pointer(_)) {
            return Value::Null;
        }
        let GoType::Named(id) = self.table.underlying(ty) else {
            return self.table.zero(ty);
        };
        let Some(s) = self.table.get(*id).as_struct() else {
            return self.table.zero(ty);
        };
        let mut members = Map::new();
        self.charge(0);
        self.members(s, &mut members);
        members.into()
    }

    /// Counts a member that is added, with its name and the smallest value.
    fn charge(&mut self, name: usize) {
        const QUOTES_COLON_VALUE_COMMA: usize = 6;
        let bytes = name.saturating_add(QUOTES_COLON_VALUE_COMMA);
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => self.is_exceeded = true,
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
