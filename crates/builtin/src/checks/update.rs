//! Fields that updates keep, count or refuse to change.

use super::{Report, go};
use crate::{Cursor, Operation, Write};
use scantling_apitypes::{Codec, GoType, TypeTable};
use scantling_value::{ErrorList, Map, Str, Value};

/// The reason for refusing to change an immutable field.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// Returns whether two values are the same to Kubernetes: an empty list or map equals an absent one. Values with quantities or
/// fields that may be written or omitted when they are zero need [`same_of`].
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let set = |v: &&Value| !is_unset(v);
    match (a.filter(set), b.filter(set)) {
        (None, None) => true,
        (Some(Value::Object(a)), Some(Value::Object(b))) => a == b || all_members(a, b, |_, a, b| same(a, b)),
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (a, b) => a == b,
    }
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(a) => a.is_empty(),
        Value::Object(m) => m.is_empty(),
        _ => false,
    }
}

/// Returns whether a test holds for all members of two objects.
fn all_members(a: &Map, b: &Map, holds: impl Fn(&str, Option<&Value>, Option<&Value>) -> bool) -> bool {
    let in_a = a.iter().all(|(key, value)| holds(key, Some(value), b.get(key)));
    let only_in_b = |(key, value): (&Str, &Value)| a.contains_key(key) || holds(key, None, Some(value));
    in_a && b.iter().all(only_in_b)
}

/// Returns whether two structs of a type are the same to Kubernetes: quantities are compared as numbers, and fields that are no
/// pointers equal their zero value where they are absent. The type is one of the table of API types, for example `core/v1`
/// and `PodSpec`.
pub(crate) fn same_of(package: &str, name: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    let table = TypeTable::latest();
    // Equal values are the usual case and need no walk along the type.
    a == b
        || match table.find(package, name) {
            Some(definition) => same_type(table, &GoType::Named(definition.id), a, b),
            None => same(a, b),
        }
}

static EMPTY: Map = Map::new();

fn same_type(table: &TypeTable, ty: &GoType, a: Option<&Value>, b: Option<&Value>) -> bool {
    let set = |v: &&Value| !is_unset(v);
    match (a, b) {
        (None, None) => true,
        // A pointer to an empty struct is not the same as no pointer.
        (Some(_), None) | (None, Some(_)) if matches!(ty, GoType::Pointer(_)) => {
            a.is_none_or(Value::is_null) && b.is_none_or(Value::is_null)
        }
        _ if a == b => true,
        _ => match table.underlying(ty) {
            GoType::List(element) => {
                let [a, b] = [a, b].map(|v| v.and_then(Value::as_array).unwrap_or(&[]));
                let mut pairs = a.iter().zip(b);
                a.len() == b.len() && pairs.all(|(a, b)| same_type(table, element, Some(a), Some(b)))
            }
            GoType::Map(entry) => {
                let (a, b) = (a.filter(set), b.filter(set));
                let both = a.and_then(Value::as_object).zip(b.and_then(Value::as_object));
                both.map_or(a.is_none() && b.is_none(), |(a, b)| {
                    // In a map, an entry with a zero value is not the same as no entry.
                    a.len() == b.len()
                        && all_members(a, b, |_, a, b| {
                            same_type(table, &entry.1, a, b) && a.is_some() == b.is_some()
                        })
                })
            }
            GoType::Named(_) if table.codec_of(ty) == Some(Codec::Quantity) => {
                super::resources::quantity(a) == super::resources::quantity(b)
            }
            GoType::Named(_) => match table.struct_of(ty) {
                Some(s) => {
                    let [a, b] = [a, b].map(|v| v.and_then(Value::as_object).unwrap_or(&EMPTY));
                    all_members(a, b, |name, a, b| match s.field(name) {
                        Some(field) => same_type(table, &field.ty, a, b),
                        None => a == b,
                    })
                }
                None => a.filter(set) == b.filter(set),
            },
            basic => {
                let zero = table.zero(basic);
                a.unwrap_or(&zero) == b.unwrap_or(&zero)
            }
        },
    }
}

/// A field may not change. The error shows the new value.
pub(crate) fn immutable(new: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    if !same(new.value(), old) {
        let shown = new.value().cloned().unwrap_or_default();
        errors.invalid_value(new, shown, IMMUTABLE);
    }
}

/// A field may not change. The error shows the new value as a struct of Go: `package` and `name` are its type in the table
/// of API types, for example `core/v1` and `NodeSelector`.
pub(crate) fn immutable_struct(
    new: &Cursor<'_, '_>,
    old: Option<&Value>,
    package: &str,
    name: &str,
    errors: &mut ErrorList,
) {
    if !same_of(package, name, new.value(), old) {
        errors.invalid_value(new, go::pointer(package, name, new.value()), IMMUTABLE);
    }
}

/// Restores the stored value of a member, or removes it if the stored object does not have it.
pub(crate) fn keep(object: &mut Map, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => object.insert(field, value.clone()),
        None => object.remove(field),
    };
}

/// Prepares a kind with a status subresource: a create drops the status, an update keeps it, an update of the status keeps
/// everything else (`spec` and the like) and the metadata that `kept_metadata` names.
pub(crate) fn separate_status(object: &mut Map, write: &Write<'_>) {
    match write.operation {
        Operation::Create => {
            object.remove("status");
        }
        Operation::Update(old) if write.subresource == crate::Subresource::Status => {
            keep(object, old, "spec");
        }
        Operation::Update(old) => keep(object, old, "status"),
    }
}
