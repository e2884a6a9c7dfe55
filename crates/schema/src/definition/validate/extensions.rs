//! Validates the extensions that only Scantling has: immutability and unions.

use crate::document::{Additional, Schema};
use crate::structural::Mutability;
use scantling_value::{ErrorList, FieldError, Path, Value};
use std::collections::BTreeSet;

const UNIONS: &str = "x-kubernetes-unions";

/// Returns whether a schema or any schema below it uses immutability.
pub(super) fn uses_immutability(s: Schema<'_>) -> bool {
    s.any(&mut |s| Mutability::ALL.iter().any(|m| s.get(m.keyword()).is_some()))
}

/// Validates the extensions of one schema.
pub(super) fn check(s: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    mutability(s, at, errors);
    unions(s, at, errors);
}

/// Refuses immutability at the root, which would freeze the object, and in its metadata, which belongs to the
/// API machinery.
pub(super) fn check_root(root: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    for m in Mutability::ALL {
        if root.get(m.keyword()).is_some() {
            errors
                .push_with(|| FieldError::forbidden(&at.field(m.keyword()), "must not be used at the root"));
        }
    }
    if let Some(metadata) = root.property("metadata") {
        in_metadata(metadata, &at.field("properties").key("metadata"), errors);
    }
}

fn in_metadata(s: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    for m in Mutability::ALL {
        if s.get(m.keyword()).is_some() {
            errors.push_with(|| {
                FieldError::forbidden(&at.field(m.keyword()), "must not be used inside of metadata")
            });
        }
    }
    for (name, s) in s.properties() {
        in_metadata(s, &at.field("properties").key(name), errors);
    }
    if let Some(s) = s.item() {
        in_metadata(s, &at.field("items"), errors);
    }
    if let Some(s) = s.additional_schema() {
        in_metadata(s, &at.field("additionalProperties"), errors);
    }
}

/// Checks that a schema has at most one immutability keyword, and a kind of value that the keyword applies to.
fn mutability(s: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    let mut first: Option<Mutability> = None;
    for m in Mutability::ALL {
        let at_keyword = at.field(m.keyword());
        match s.get(m.keyword()).and_then(Value::as_bool) {
            None => continue,
            Some(false) => {
                errors.push_with(|| FieldError::invalid(&at_keyword, false, "must be true or undefined"));
                continue;
            }
            Some(true) => {}
        }
        if let Some(first) = first {
            let detail = format!("{} and {} are mutually exclusive", first.keyword(), m.keyword());
            errors.push_with(|| FieldError::forbidden(&at_keyword, detail));
            continue;
        }
        first = Some(m);
        if m == Mutability::Immutable {
            continue;
        }
        match keys(s) {
            KeySource::Map => {}
            KeySource::List => immutable_keys(s, m, at, errors),
            KeySource::Elements if m != Mutability::ImmutableKeys => {}
            KeySource::Elements => {
                let detail = "must not be used with x-kubernetes-list-type set, whose elements are its keys: use \
                              x-kubernetes-immutable";
                errors.push_with(|| FieldError::forbidden(&at_keyword, detail));
            }
            KeySource::None => {
                let lists = if m == Mutability::ImmutableKeys {
                    "map"
                } else {
                    "map or set"
                };
                let detail = format!(
                    "must only be used on objects with additionalProperties that are not atomic, and on lists with \
                     x-kubernetes-list-type {lists}"
                );
                errors.push_with(|| FieldError::forbidden(&at_keyword, detail));
            }
        }
    }
}

/// The keys of the values of a schema.
enum KeySource {
    /// The keys of a map.
    Map,
    /// The key fields of a list's elements.
    List,
    /// The elements of a set.
    Elements,
    /// Nothing.
    None,
}

fn keys(s: Schema<'_>) -> KeySource {
    match s.ty() {
        "object" => match s.additional() {
            Some(Additional::Schema(_) | Additional::Any(true)) if s.map_type() != Some("atomic") => {
                KeySource::Map
            }
            _ => KeySource::None,
        },
        "array" => match s.list_type() {
            Some("map") => KeySource::List,
            Some("set") => KeySource::Elements,
            _ => KeySource::None,
        },
        _ => KeySource::None,
    }
}

/// A list with immutable keys needs elements that keep their keys.
fn immutable_keys(s: Schema<'_>, m: Mutability, at: &Path<'_>, errors: &mut ErrorList) {
    let Some(item) = s.item() else { return };
    let keyword = Mutability::Immutable.keyword();
    // If the whole element is immutable, so are its keys.
    if item.flag(keyword) {
        return;
    }
    for key in s.strings("x-kubernetes-list-map-keys") {
        // A key without a property is reported with the list type.
        if item.property(key).is_some_and(|p| !p.flag(keyword)) {
            let detail = format!(
                "must be true because this property is in x-kubernetes-list-map-keys of a list with {}",
                m.keyword()
            );
            let at = at.field("items");
            let at = at.field("properties");
            errors.push_with(|| FieldError::required(&at.key(key).field(keyword), detail));
        }
    }
}

/// Checks the unions of a schema: their fields exist, and belong to one union each.
fn unions(s: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    if s.list(UNIONS).is_empty() {
        return;
    }
    let at_type = at.field("type");
    match s.ty() {
        "object" => {}
        "" => errors.push_with(|| {
            FieldError::required(&at_type, "must be object if x-kubernetes-unions is specified")
        }),
        ty => errors.push_with(|| {
            FieldError::invalid(&at_type, ty, "must be object if x-kubernetes-unions is specified")
        }),
    }
    let mut members = BTreeSet::new();
    let mut discriminators = BTreeSet::new();
    for (i, union) in s.schemas(UNIONS).enumerate() {
        let at = at.field(UNIONS);
        let at = at.index(i);
        let discriminator = union.string("discriminator");
        let fields = union.get("fields").and_then(Value::as_object);
        let fields = || fields.into_iter().flat_map(scantling_value::Map::iter);
        let at_fields = at.field("fields");
        if fields().next().is_none() {
            errors.push_with(|| FieldError::required(&at_fields, "must not be empty"));
        }
        if !discriminator.is_empty() {
            self::discriminator(s, union, &at.field("discriminator"), errors);
            if !discriminators.insert(discriminator) {
                errors.push_with(|| FieldError::duplicate(&at.field("discriminator"), discriminator));
            }
        }
        let mut values = BTreeSet::new();
        for (name, value) in fields() {
            let at = at_fields.key(name);
            let value = value.as_str().unwrap_or("");
            if s.property(name).is_none() {
                errors
                    .push_with(|| FieldError::invalid(&at, name.as_str(), "must be the name of a property"));
            } else if name == discriminator {
                errors.push_with(|| {
                    FieldError::invalid(&at, name.as_str(), "must not be the discriminator itself")
                });
            }
            if !members.insert(name.as_str()) {
                errors.push_with(|| {
                    FieldError::invalid(&at, name.as_str(), "must not be a member of two unions")
                });
            }
            match (discriminator.is_empty(), value.is_empty()) {
                (true, false) => {
                    let detail = "must be empty because the union has no discriminator";
                    errors.push_with(|| FieldError::invalid(&at, value, detail));
                }
                (false, true) => {
                    let detail = "must be the value of the discriminator for this field";
                    errors.push_with(|| FieldError::required(&at, detail));
                }
                (false, false) if !values.insert(value) => {
                    errors.push_with(|| FieldError::duplicate(&at, value));
                }
                _ => {}
            }
        }
    }
}

/// The discriminator must be a string that can hold every member's value.
fn discriminator(s: Schema<'_>, union: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    let name = union.string("discriminator");
    let Some(property) = s.property(name) else {
        errors.push_with(|| FieldError::invalid(at, name, "must be the name of a property"));
        return;
    };
    if property.ty() != "string" {
        errors.push_with(|| FieldError::invalid(at, name, "must be the name of a property of type string"));
    }
    let choices: BTreeSet<&str> = property.strings("enum").collect();
    let values = union.get("fields").and_then(Value::as_object);
    for (field, value) in values.into_iter().flat_map(scantling_value::Map::iter) {
        let value = value.as_str().unwrap_or("");
        if !choices.is_empty() && !choices.contains(value) {
            let detail = format!("its enum must contain {value:?}, the value for field {field}");
            errors.push_with(|| FieldError::invalid(at, name, detail));
        }
    }
}
