//! Semantic equality of parts of objects, as kube-apiserver compares decoded structs.
//!
//! Absent and empty lists and maps are equal, as are absent and zero values of fields that are no pointers. Quantities
//! are compared by value.

use crate::KindFacts;
use scantling_apitypes::{Codec, Form, Table, Type};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Value, deadline};

/// Reports whether two objects of a kind are equal at a field path.
pub(crate) fn equal(facts: &KindFacts, path: &[&str], a: &Value, b: &Value) -> bool {
    let table = Table::latest();
    let Some(definition) = table.kind(facts.group, hub_version(facts), facts.kind) else {
        // Fail closed: what has no type is equal only where it is written alike.
        return a.at(path.iter().copied()) == b.at(path.iter().copied());
    };
    let mut ty = Type::Named(definition.id);
    let mut is_pointer = false;
    for name in path {
        let Some(field) = table.struct_of(&ty).and_then(|s| s.field(name)) else {
            return a.at(path.iter().copied()) == b.at(path.iter().copied());
        };
        is_pointer = matches!(field.ty, Type::Pointer(_));
        ty = field.ty.clone();
    }
    let value = |object| Value::at(object, path.iter().copied());
    same_field(table, &ty, is_pointer, value(a), value(b))
}

/// The version in which objects of a kind are stored.
fn hub_version(facts: &KindFacts) -> &'static str {
    match facts.group {
        "autoscaling" => "v2",
        _ => "v1",
    }
}

fn same_field(table: &Table, ty: &Type, is_pointer: bool, a: Option<&Value>, b: Option<&Value>) -> bool {
    let set = |v: Option<&Value>| v.is_some_and(|v| !v.is_null());
    match (set(a), set(b)) {
        (false, false) => true,
        (true, true) => same(table, ty, a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null)),
        (true, false) => !is_pointer && is_zero(table, ty, a.unwrap_or(&Value::Null)),
        (false, true) => !is_pointer && is_zero(table, ty, b.unwrap_or(&Value::Null)),
    }
}

fn same(table: &Table, ty: &Type, a: &Value, b: &Value) -> bool {
    deadline::tick();
    match (table.underlying(ty), a, b) {
        (Type::List(element), Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(table, element, a, b))
        }
        (Type::Map(entry), Value::Object(a), Value::Object(b)) => {
            let same_entry = |(key, value)| {
                b.get(key)
                    .is_some_and(|other| same(table, &entry.1, value, other))
            };
            a.len() == b.len() && a.iter().all(|(k, v)| same_entry((k.as_str(), v)))
        }
        (Type::Named(id), a, b) => match &table.get(*id).form {
            Form::Struct(s) => match (a, b) {
                (Value::Object(a), Value::Object(b)) => s.members.iter().all(|f| {
                    let is_pointer = matches!(f.ty, Type::Pointer(_));
                    same_field(table, &f.ty, is_pointer, a.get(f.name), b.get(f.name))
                }),
                _ => a == b,
            },
            Form::Custom(Codec::Quantity) => a == b || same_quantity(a, b),
            Form::Custom(_) | Form::Named(_) => a == b,
        },
        (_, a, b) => a == b,
    }
}

fn same_quantity(a: &Value, b: &Value) -> bool {
    let parse = |v: &Value| v.as_str().and_then(|s| Quantity::parse(s).ok());
    matches!((parse(a), parse(b)), (Some(a), Some(b)) if a == b)
}

fn is_zero(table: &Table, ty: &Type, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(i) => *i == 0,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty() || s.as_str() == "0" && table.codec_of(ty) == Some(Codec::Quantity),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => match table.struct_of(ty) {
            Some(_) => same(table, ty, value, &Value::Object(Map::new())),
            None => members.is_empty(),
        },
    }
}
