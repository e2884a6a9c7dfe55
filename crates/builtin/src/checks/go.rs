//! Values as errors show structs of Go.
//!
//! Kubernetes' internal types have no JSON tags, so that they print with all fields under their Go names. Types of the API
//! machinery (selectors, metadata, times) have tags and print as usual.

use scantling_apitypes::{Codec, FieldDef, GoType, TypeDef, TypeKind, TypeTable};
use scantling_value::{BadValue, Map, Value};

/// A struct; an absent one prints with all fields unset.
pub(crate) fn structure(package: &str, name: &str, value: Option<&Value>) -> BadValue {
    let table = TypeTable::latest();
    BadValue::Raw(match table.find(package, name) {
        Some(definition) => {
            let mut out = String::new();
            write(table, &GoType::Named(definition.id), value, &mut out);
            out
        }
        None => value.map_or_else(|| "null".to_owned(), Value::to_json),
    })
}

/// A pointer to a struct; an absent one prints as `null`.
pub(crate) fn pointer(package: &str, name: &str, value: Option<&Value>) -> BadValue {
    match value {
        None => Value::Null.into(),
        Some(_) => structure(package, name, value),
    }
}

/// A list of structs.
pub(crate) fn list(package: &str, name: &str, value: Option<&Value>) -> BadValue {
    let table = TypeTable::latest();
    let Some((definition, items)) = table.find(package, name).zip(value.and_then(Value::as_array)) else {
        return Value::Null.into();
    };
    let mut out = String::new();
    write_list(table, &GoType::Named(definition.id), items, &mut out);
    BadValue::Raw(out)
}

fn write(table: &TypeTable, ty: &GoType, value: Option<&Value>, out: &mut String) {
    let value = value.filter(|v| !v.is_null());
    match ty {
        GoType::Pointer(inner) => match value {
            None => out.push_str("null"),
            value => write(table, inner, value, out),
        },
        GoType::Named(id) => write_named(table, table.get(*id), value, out),
        GoType::List(element) => match value.and_then(Value::as_array) {
            None => out.push_str("null"),
            Some(items) => write_list(table, element, items, out),
        },
        GoType::Map(entry) => match value.and_then(Value::as_object) {
            None => out.push_str("null"),
            Some(members) => write_map(table, &entry.1, members, out),
        },
        _ => match value {
            None => out.push_str(&table.zero(ty).to_json()),
            Some(value) => out.push_str(&value.to_json()),
        },
    }
}

fn write_list(table: &TypeTable, element: &GoType, items: &[Value], out: &mut String) {
    out.push('[');
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write(table, element, Some(item), out);
    }
    out.push(']');
}

fn write_map(table: &TypeTable, element: &GoType, members: &Map, out: &mut String) {
    let mut separator = '{';
    for (key, value) in members.iter() {
        out.push(std::mem::replace(&mut separator, ','));
        out.push_str(&Value::from(key.as_str()).to_json());
        out.push(':');
        write(table, element, Some(value), out);
    }
    out.push_str(if separator == '{' { "{}" } else { "}" });
}

fn write_named(table: &TypeTable, definition: &TypeDef, value: Option<&Value>, out: &mut String) {
    match &definition.kind {
        TypeKind::Named(inner) => write(table, inner, value, out),
        TypeKind::Custom(codec) => match (codec, value) {
            (_, Some(value)) => out.push_str(&value.to_json()),
            (Codec::Quantity, None) => out.push_str("\"0\""),
            (Codec::IntOrString, None) => out.push('0'),
            (_, None) => out.push_str("null"),
        },
        TypeKind::Struct(_) if has_tags(table, definition) => {
            // These types have JSON tags, so that the writer of the table prints them.
            let members = value.and_then(Value::as_object).cloned().unwrap_or_default();
            let canonical = table.canonical(definition, members);
            let mut bytes = Vec::new();
            table.write_json(definition, &canonical.into(), &mut bytes);
            out.push_str(&String::from_utf8_lossy(&bytes));
        }
        TypeKind::Struct(_) => write_struct(table, definition, value, out),
    }
}

/// Returns whether the internal type has JSON tags: it is the type of the API machinery.
fn has_tags(table: &TypeTable, definition: &TypeDef) -> bool {
    table.package(definition).id == "meta/v1"
}

fn write_struct(table: &TypeTable, definition: &TypeDef, value: Option<&Value>, out: &mut String) {
    let mut separator = '{';
    for field in definition.members() {
        let value = value.and_then(|v| v.get(field.name));
        if is_embedded(field) {
            let mut inner = String::new();
            write(table, &field.ty, value, &mut inner);
            let members = inner
                .strip_prefix('{')
                .and_then(|inner| inner.strip_suffix('}'))
                .unwrap_or("");
            if !members.is_empty() {
                out.push(std::mem::replace(&mut separator, ','));
                out.push_str(members);
            }
            continue;
        }
        // Decoding clears the embedded `TypeMeta`, and Go omits it then.
        if matches!(field.name, "kind" | "apiVersion") && definition.is_object() {
            continue;
        }
        out.push(std::mem::replace(&mut separator, ','));
        out.push_str(&Value::from(field.go_name()).to_json());
        out.push(':');
        write(table, &field.ty, value, out);
    }
    out.push_str(if separator == '{' { "{}" } else { "}" });
}

/// Returns whether internal types embed the field's struct, so that its fields print as fields of the outer struct.
fn is_embedded(field: &FieldDef) -> bool {
    field.name == "metadata" && field.go_name() == "ObjectMeta"
}
