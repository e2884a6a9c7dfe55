//! Validates `metadata`.

use super::coerce::unreadable;
use super::{generation, string_field};
use crate::names;
use scantling_value::{ErrorKind, ErrorList, FieldError, Map, Path, Value, go};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// The syntax of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Lower-case labels joined by dots: the names of custom resources.
    Subdomain,
    /// The same by declarative validation, which counts bytes and checks the prefix of a generated name only as part of that
    /// name.
    GeneratedSubdomain,
    /// One lower-case label: the names of namespaces.
    Label,
    /// Any path segment: the names of embedded resources, and the rule that all kinds share.
    PathSegment,
    /// The kind checks its names itself, and takes the prefix of a generated name as the name.
    Own,
}

impl NameRule {
    /// Returns the errors of a name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            NameRule::Subdomain => names::dns1123_subdomain(name),
            NameRule::GeneratedSubdomain => {
                let reasons = names::dns1123_subdomain(name).into_iter();
                reasons
                    .map(|why| why.replace("253 characters", "253 bytes"))
                    .collect()
            }
            NameRule::Label => names::dns1123_label(name),
            NameRule::PathSegment if matches!(name, "." | "..") => vec![format!("may not be '{name}'")],
            NameRule::PathSegment => path_prefix(name),
            NameRule::Own => Vec::new(),
        }
    }

    /// Returns the errors of the prefix of a generated name. A dash at its end is masked, because a suffix follows.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match (self, prefix.strip_suffix('-')) {
            (NameRule::PathSegment | NameRule::GeneratedSubdomain, _) => path_prefix(prefix),
            // UPSTREAM: the last two bytes are replaced by one letter.
            (rule, Some(start)) if !start.is_empty() => {
                let mut chars = start.chars();
                chars.next_back();
                rule.check(&format!("{}a", chars.as_str()))
            }
            (rule, _) => rule.check(prefix),
        }
    }
}

fn path_prefix(name: &str) -> Vec<String> {
    let bad = ['/', '%'].into_iter().filter(|c| name.contains(*c));
    bad.map(|c| format!("may not contain '{c}'")).collect()
}

/// The validated members of `metadata`, found in one pass.
#[derive(Default)]
struct MetaFields<'v> {
    annotations: Option<&'v Value>,
    finalizers: Option<&'v Value>,
    generate_name: Option<&'v Value>,
    generation: Option<&'v Value>,
    labels: Option<&'v Value>,
    managed_fields: Option<&'v Value>,
    name: Option<&'v Value>,
    namespace: Option<&'v Value>,
    owner_references: Option<&'v Value>,
}

impl<'v> MetaFields<'v> {
    fn read(metadata: Option<&'v Value>) -> Self {
        let mut fields = MetaFields::default();
        for (name, value) in metadata.and_then(Value::as_object).map_or(&[][..], Map::entries) {
            let field = match name.as_str() {
                "annotations" => &mut fields.annotations,
                "finalizers" => &mut fields.finalizers,
                "generateName" => &mut fields.generate_name,
                "generation" => &mut fields.generation,
                "labels" => &mut fields.labels,
                "managedFields" => &mut fields.managed_fields,
                "name" => &mut fields.name,
                "namespace" => &mut fields.namespace,
                "ownerReferences" => &mut fields.owner_references,
                _ => continue,
            };
            *field = Some(value);
        }
        fields
    }
}

/// A string; empty if absent.
fn string(field: Option<&Value>) -> &str {
    field.and_then(Value::as_str).unwrap_or("")
}

/// Returns the errors of the `metadata` of a new object.
pub fn check_new(metadata: Option<&Value>, scope: Scope, names: NameRule, at: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let fields = MetaFields::read(metadata);
    let prefix = string(fields.generate_name);
    if !prefix.is_empty() {
        for why in names.check_prefix(prefix) {
            errors.push_with(|| FieldError::invalid(&at.field("generateName"), prefix, why));
        }
    }
    let name = string(fields.name);
    if name.is_empty() {
        errors.push_with(|| FieldError::required(&at.field("name"), "name or generateName is required"));
    } else {
        for why in names.check(name) {
            errors.push_with(|| FieldError::invalid(&at.field("name"), name, why));
        }
    }
    let namespace = string(fields.namespace);
    match scope {
        Scope::Namespaced if namespace.is_empty() => {
            errors.push_with(|| FieldError::required(&at.field("namespace"), ""));
        }
        Scope::Namespaced => {
            for why in names::dns1123_label(namespace) {
                errors.push_with(|| FieldError::invalid(&at.field("namespace"), namespace, why));
            }
        }
        Scope::Cluster if !namespace.is_empty() => {
            errors.push_with(|| FieldError::forbidden(&at.field("namespace"), "not allowed on this type"));
        }
        Scope::Cluster => {}
    }
    // kube-apiserver's order of checks, which is the order of the errors.
    check_generation(&fields, at, &mut errors);
    check_shared(&fields, at, &mut errors);
    check_finalizers(list(fields.finalizers), &at.field("finalizers"), &mut errors);
    check_managed_fields(&fields, &at.field("managedFields"), &mut errors);
    errors
}

/// Returns the errors of the rule that all kinds share.
pub fn check_common(metadata: Option<&Value>, scope: Scope, at: &Path<'_>) -> ErrorList {
    check_new(metadata, scope, NameRule::PathSegment, at)
}

/// Returns the error of `metadata` that cannot be decoded.
pub fn check_readable(metadata: Option<&Value>, at: &Path<'_>) -> Option<FieldError> {
    let metadata = metadata?;
    unreadable(metadata).map(|why| FieldError::invalid(at, metadata.clone(), why))
}

/// Returns the errors of a change of `metadata`.
pub fn check_update(new: Option<&Value>, old: Option<&Value>, at: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.and_then(|m| m.get("deletionTimestamp")).is_some() {
        let before: BTreeSet<&str> = finalizers(old).collect();
        let mut added: Vec<&str> = finalizers(new).filter(|f| !before.contains(f)).collect();
        // kube-apiserver prints a sorted set.
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let list: Vec<String> = added.into_iter().map(go::quote).collect();
            errors.push_with(|| FieldError::forbidden(
                &at.field("finalizers"),
                format!(
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                    list.join(", ")
                ),
            ));
        }
    }
    if string_field(new, "resourceVersion").is_empty() {
        let at = at.field("resourceVersion");
        errors.push_with(|| FieldError::invalid(&at, "", "must be specified for an update"));
    }
    let fields = MetaFields::read(new);
    check_generation(&fields, at, &mut errors);
    if generation(new) < generation(old) {
        let at = at.field("generation");
        errors.push_with(|| FieldError::invalid(&at, generation(new), "must not be decremented"));
    }
    for field in ["name", "namespace", "uid"] {
        let value = string_field(new, field);
        if value != string_field(old, field) {
            errors.push_with(|| FieldError::invalid(&at.field(field), value, "field is immutable"));
        }
    }
    // Metadata that cannot be decoded counts as absent, which changes nothing.
    let compared: &[&str] = match new.and_then(unreadable) {
        Some(_) => &[],
        None => &[
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ],
    };
    for field in compared {
        let value = |m: Option<&Value>| m.and_then(|m| m.get(field)).cloned().unwrap_or_default();
        if value(new) != value(old) {
            errors.push_with(|| FieldError::invalid(&at.field(field), value(new), "field is immutable"));
        }
    }
    check_shared(&fields, at, &mut errors);
    check_managed_fields(&fields, &at.field("managedFields"), &mut errors);
    errors
}

fn check_generation(fields: &MetaFields<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    let generation = fields.generation.and_then(Value::as_int).unwrap_or(0);
    if generation < 0 {
        let at = at.field("generation");
        errors.push_with(|| FieldError::invalid(&at, generation, "must be greater than or equal to 0"));
    }
}

/// Checks the fields with the same rules for every write.
fn check_shared(fields: &MetaFields<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    check_labels(fields.labels, &at.field("labels"), errors);
    check_annotations(fields.annotations, &at.field("annotations"), errors);
    check_owners(
        list(fields.owner_references),
        &at.field("ownerReferences"),
        errors,
    );
}

fn strings(field: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let map: Option<&Map> = field.and_then(Value::as_object);
    map.into_iter()
        .flat_map(Map::iter)
        .map(|(k, v)| (k.as_str(), v.as_str().unwrap_or_default()))
}

/// The elements of a list; empty if absent.
fn list(field: Option<&Value>) -> &[Value] {
    field.and_then(Value::as_array).unwrap_or(&[])
}

/// Checks the labels of an object.
pub fn check_labels(labels: Option<&Value>, at: &Path<'_>, errors: &mut ErrorList) {
    for (key, value) in strings(labels) {
        for why in names::label_key(key) {
            errors.push_with(|| FieldError::invalid(at, key, why));
        }
        for why in names::label_value(value) {
            errors.push_with(|| FieldError::invalid(at, value, why));
        }
    }
}

/// Checks the annotations of an object.
pub fn check_annotations(annotations: Option<&Value>, at: &Path<'_>, errors: &mut ErrorList) {
    const MAX_SIZE: usize = 256 << 10;
    let mut size = 0usize;
    for (key, value) in strings(annotations) {
        // kube-apiserver validates keys of annotations in lower case, which almost all are.
        let is_lower = key.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase());
        let lower = if is_lower {
            Cow::Borrowed(key)
        } else {
            Cow::Owned(key.to_lowercase())
        };
        for why in names::label_key(&lower) {
            errors.push_with(|| FieldError::invalid(at, key, why));
        }
        size = size.saturating_add(key.len()).saturating_add(value.len());
    }
    if size > MAX_SIZE {
        errors.push_with(|| FieldError::too_long(at, MAX_SIZE));
    }
}

fn check_owners(owners: &[Value], at: &Path<'_>, errors: &mut ErrorList) {
    let mut controller = None;
    for (i, owner) in owners.iter().enumerate() {
        check_owner(owner, &at.index(i), errors);
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!(
                "{}/{}",
                string_field(Some(owner), "kind"),
                string_field(Some(owner), "name")
            );
            let Some(first) = &controller else {
                controller = Some(name);
                continue;
            };
            errors.push_with(|| {
                let shown: Vec<String> = owners.iter().map(owner_json).collect();
                FieldError::invalid(
                    at,
                    scantling_value::BadValue::Raw(format!("[{}]", shown.join(","))),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    ),
                )
            });
        }
    }
}

fn check_owner(owner: &Value, at: &Path<'_>, errors: &mut ErrorList) {
    let api_version = string_field(Some(owner), "apiVersion");
    let version = match api_version.split('/').collect::<Vec<_>>().as_slice() {
        [version] | [_, version] => *version,
        _ => "",
    };
    if api_version.is_empty() {
        errors.push_with(|| FieldError::required(&at.field("apiVersion"), "must not be empty"));
    } else if version.is_empty() {
        errors.push_with(|| {
            FieldError::invalid(
                &at.field("apiVersion"),
                api_version,
                "must be <group>/<version> or <version>",
            )
        });
    }
    for field in ["kind", "name", "uid"] {
        if string_field(Some(owner), field).is_empty() {
            errors.push_with(|| FieldError::required(&at.field(field), "must not be empty"));
        }
    }
    if matches!(api_version, "v1" | "/v1") && string_field(Some(owner), "kind") == "Event" {
        errors.push_with(|| {
            FieldError::new(
                ErrorKind::Invalid,
                at,
                scantling_value::BadValue::Raw(owner_json(owner)),
                "/v1, Kind=Event is disallowed from being an owner",
            )
        });
    }
}

/// A reference as JSON with its fields in the order of their type.
fn owner_json(owner: &Value) -> String {
    let member = |field: &str| {
        let value = owner.get(field)?;
        Some(format!("\"{field}\":{}", value.to_json()))
    };
    let fields = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let members: Vec<String> = fields.into_iter().filter_map(member).collect();
    format!("{{{}}}", members.join(","))
}

fn finalizers(metadata: Option<&Value>) -> impl Iterator<Item = &str> {
    let field = metadata.and_then(|m| m.get("finalizers"));
    list(field).iter().filter_map(Value::as_str)
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

fn check_finalizers(list: &[Value], at: &Path<'_>, errors: &mut ErrorList) {
    let finalizers = || list.iter().filter_map(Value::as_str);
    for finalizer in finalizers() {
        for why in names::label_key(finalizer) {
            errors.push_with(|| FieldError::invalid(at, finalizer, why));
        }
    }
    let has = |wanted: &str| finalizers().any(|f| f == wanted);
    if has(ORPHAN) && has(FOREGROUND) {
        errors.push_with(|| {
            FieldError::invalid(
                at,
                list.to_vec(),
                format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set"),
            )
        });
    }
}

/// Returns the warnings about added finalizers whose names may conflict with those of other controllers.
pub fn finalizer_warnings(new: Option<&Value>, old: Option<&Value>) -> Vec<String> {
    const STANDARD: [&str; 3] = [ORPHAN, FOREGROUND, "kubernetes"];
    if finalizers(new).next().is_none() {
        return Vec::new();
    }
    let before: BTreeSet<&str> = finalizers(old).collect();
    let added: BTreeSet<&str> = finalizers(new).filter(|f| !before.contains(f)).collect();
    let mut warnings = Vec::new();
    for finalizer in added {
        let mut warn = |text: &str| {
            warnings.push(format!("metadata.finalizers: {}: {text}", go::quote(finalizer)));
        };
        for why in names::label_key(finalizer) {
            warn(&why);
        }
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            let path = if finalizer.contains('.') {
                " including a path (/)"
            } else {
                ""
            };
            warn(&format!(
                "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
            ));
        }
    }
    warnings
}

fn check_managed_fields(fields: &MetaFields<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    const MAX_MANAGER: usize = 128;
    const MAX_SUBRESOURCE: usize = 256;
    for (i, entry) in list(fields.managed_fields).iter().enumerate() {
        let at = &at.index(i);
        let field = |name: &str| string_field(Some(entry), name);
        match field("operation") {
            "" => errors.push_with(|| FieldError::required(&at.field("operation"), "must not be empty")),
            "Apply" | "Update" => {}
            other => errors
                .push_with(|| FieldError::not_supported(&at.field("operation"), other, ["Apply", "Update"])),
        }
        let fields_type = field("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push_with(|| {
                FieldError::invalid(&at.field("fieldsType"), fields_type, "must be `FieldsV1`")
            });
        }
        let manager = field("manager");
        if manager.len() > MAX_MANAGER {
            errors.push_with(|| FieldError::too_long(&at.field("manager"), MAX_MANAGER));
        }
        for (i, c) in manager.char_indices().filter(|(_, c)| !go::is_print(*c)) {
            errors.push_with(|| {
                FieldError::invalid(
                    &at.field("manager"),
                    manager,
                    format!("invalid character U+{:04X} (at position {i})", u32::from(c)),
                )
            });
        }
        if field("subresource").len() > MAX_SUBRESOURCE {
            errors.push_with(|| FieldError::too_long(&at.field("subresource"), MAX_SUBRESOURCE));
        }
    }
}
