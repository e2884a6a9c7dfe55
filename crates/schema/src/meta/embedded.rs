//! Resources embedded in an object (`x-kubernetes-embedded-resource`).

use super::check::{NameRule, Scope, check_new};
use super::coerce::{MalformedFields, coerce};
use super::string_field;
use crate::names;
use crate::plan::{Features, PlanNode, path};
use scantling_value::{ErrorList, FieldError, FindingList, Map, Path, Segment, Value};

/// Normalizes the metadata of embedded resources. Returns the unknown fields that were dropped, in order. The field of an
/// error is the path of the resource.
pub fn coerce_embedded(
    node: &PlanNode,
    value: &mut Value,
    malformed: MalformedFields,
    at: &Path<'_>,
) -> Result<FindingList, FieldError> {
    let mut found = FindingList::new();
    coerce_value(node, value, malformed, at, &mut found)?;
    found.sort();
    Ok(found)
}

/// Normalizes the metadata of a value, if it is a resource, and of the resources below it.
fn coerce_value(
    node: &PlanNode,
    value: &mut Value,
    malformed: MalformedFields,
    at: &Path<'_>,
    found: &mut FindingList,
) -> Result<(), FieldError> {
    if !node.has(Features::EMBEDDED) {
        return Ok(());
    }
    match value {
        Value::Object(map) => {
            if node.has_here(Features::EMBEDDED) {
                coerce_resource(map, malformed, at, found)?;
            }
            let mut result = Ok(());
            node.all_members(map.iter_mut(), Features::EMBEDDED, |member| {
                let at = path(at, member.name, member.declared);
                result = coerce_value(member.node, member.value, malformed, &at, found);
                result.is_ok()
            });
            result?;
        }
        Value::Array(list) => {
            if let Some(items) = node.items() {
                for (i, item) in list.iter_mut().enumerate() {
                    coerce_value(items, item, malformed, &at.index(i), found)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    map: &mut Map,
    malformed: MalformedFields,
    at: &Path<'_>,
    found: &mut FindingList,
) -> Result<(), FieldError> {
    for field in ["apiVersion", "kind"] {
        match map.get(field) {
            None | Some(Value::String(_)) => {}
            Some(_) if malformed == MalformedFields::Drop => {
                map.remove(field);
            }
            Some(v) => {
                let at = at.field(field);
                return Err(FieldError::invalid(&at, v.clone(), "must be a string"));
            }
        }
    }
    // Coercion changes the metadata up to the first error, and the error shows it as sent.
    let before = match malformed {
        MalformedFields::Refuse => map.get("metadata").cloned(),
        MalformedFields::Drop | MalformedFields::Keep => None,
    };
    match coerce(map, at, malformed) {
        Ok(unknown) => found.append(unknown),
        Err(why) => {
            // Otherwise, only metadata that is not an object fails. It stays as it is, and validation reports
            // it.
            if let Some(before) = before {
                return Err(FieldError::invalid(&at.field("metadata"), before, why));
            }
        }
    }
    Ok(())
}

/// Normalizes the metadata of one resource.
pub(crate) fn coerce_one(map: &mut Map, at: &Path<'_>) -> Result<(), FieldError> {
    coerce_resource(map, MalformedFields::Refuse, at, &mut FindingList::new())
}

/// Returns the part of a value at a path in the metadata of a resource that has the right type; `null` if nothing
/// has.
pub(crate) fn typed_fields(value: &Value, at: &Path<'_>) -> Value {
    let steps = at.segments();
    let mut around = value.clone();
    for step in steps.iter().rev() {
        around = match step {
            Segment::Field(name) | Segment::Key(name) => Value::Object(Map::from_iter([(*name, around)])),
            Segment::Index(_) => Value::Array(vec![around]),
        };
    }
    if let Value::Object(resource) = &mut around {
        // Cannot fail, because malformed fields are dropped.
        let _ = coerce_resource(
            resource,
            MalformedFields::Drop,
            &Path::ROOT,
            &mut FindingList::new(),
        );
    }
    let rest = steps.iter().try_fold(&around, |rest, step| match (step, rest) {
        (Segment::Field(name) | Segment::Key(name), rest) => rest.get(name),
        (Segment::Index(i), Value::Array(list)) => list.get(*i),
        (Segment::Index(_), _) => None,
    });
    rest.cloned().unwrap_or_default()
}

/// Returns the errors of the metadata of embedded resources.
pub fn check_embedded(node: &PlanNode, value: &Value, at: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    check_value(node, value, at, &mut errors);
    errors
}

/// Returns the errors of the metadata of a resource, and of the resources embedded in it.
pub(crate) fn check_resource(node: &PlanNode, value: &Value, at: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Value::Object(map) = value
        && !node.has_here(Features::EMBEDDED)
    {
        check_meta(map, at, &mut errors);
    }
    check_value(node, value, at, &mut errors);
    errors
}

/// Checks the metadata of a value, if it is a resource, and of the resources below it.
fn check_value(node: &PlanNode, value: &Value, at: &Path<'_>, errors: &mut ErrorList) {
    if !node.has(Features::EMBEDDED) {
        return;
    }
    match value {
        Value::Object(map) => {
            if node.has_here(Features::EMBEDDED) {
                check_meta(map, at, errors);
            }
            node.all_members(map.iter(), Features::EMBEDDED, |member| {
                check_value(member.node, member.value, &member.at(at), errors);
                true
            });
        }
        Value::Array(list) => {
            if let Some(items) = node.items() {
                for (i, item) in list.iter().enumerate() {
                    check_value(items, item, &at.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_meta(map: &Map, at: &Path<'_>, errors: &mut ErrorList) {
    let mut wrong = |field: &str, value: &Value, why: String| {
        errors.push_with(|| FieldError::invalid(&at.field(field), value.clone(), why));
    };
    let api_version = map.get("apiVersion");
    match api_version {
        Some(v @ Value::String(s)) if s.is_empty() => wrong("apiVersion", v, "must not be empty".into()),
        Some(v @ Value::String(s)) if s.matches('/').count() > 1 => {
            wrong("apiVersion", v, format!("unexpected GroupVersion string: {s}"));
        }
        None | Some(Value::String(_)) => {}
        Some(v) => wrong("apiVersion", v, "must be a string".into()),
    }
    let kind = map.get("kind");
    match kind {
        Some(v @ Value::String(s)) if s.is_empty() => wrong("kind", v, "must not be empty".into()),
        Some(v @ Value::String(s)) => {
            let why = names::dns1035_label(&s.to_lowercase());
            if !why.is_empty() {
                let why = why.join(",");
                wrong(
                    "kind",
                    v,
                    format!("may have mixed case, but should otherwise match: {why}"),
                );
            }
        }
        None => {}
        Some(v) => wrong("kind", v, "must be a string".into()),
    }
    if let Some(metadata) = map.get("metadata") {
        let mut typed = Map::new();
        typed.insert("metadata", metadata.clone());
        match coerce(&mut typed, at, MalformedFields::Refuse) {
            Err(why) => wrong("metadata", metadata, why),
            Ok(_) => check_typed(typed.get("metadata"), at, errors),
        }
    }
    for (field, value) in [("apiVersion", api_version), ("kind", kind)] {
        if value.is_none() {
            errors.push_with(|| FieldError::required(&at.field(field), ""));
        }
    }
}

/// Checks decoded metadata. An embedded resource needs no name, and its scope follows from its namespace.
fn check_typed(metadata: Option<&Value>, at: &Path<'_>, errors: &mut ErrorList) {
    let scope = if string_field(metadata, "namespace").is_empty() {
        Scope::Cluster
    } else {
        Scope::Namespaced
    };
    let nameless = string_field(metadata, "name").is_empty();
    let found = check_new(metadata, scope, NameRule::PathSegment, &at.field("metadata"));
    let name = at.field("metadata").field("name").to_string();
    errors.extend(found.into_iter().filter(|e| !nameless || e.field() != name));
}
