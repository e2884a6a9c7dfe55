//! Environment variables of containers.

use super::rules::Rules;
use super::volumes;
use crate::Cursor;
use crate::checks::resources::quantity;
use crate::checks::{Report, Rule, check_fields, names};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, FieldError};
use std::cmp::Ordering;

/// The fields that variables may refer to, in order.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The resources that variables and files may refer to, in order.
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

const KEY_SELECTOR: &[(&str, Rule)] = &[
    ("name", Rule::Check(object_name)),
    ("key", Rule::RequiredForm(names::config_key)),
];

const FILE_KEY_SELECTOR: &[(&str, Rule)] = &[
    ("key", Rule::RequiredForm(names::relaxed_env_name)),
    ("volumeName", Rule::RequiredForm(names::dns1123_label)),
    ("path", Rule::Required),
    ("path", Rule::Check(volumes::no_backsteps)),
];

/// The name of an object, which may not be empty either.
fn object_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    errors.invalid_for(at, names::dns1123_subdomain(at.str()));
}

/// Checks the variables of a container.
pub(super) fn check_variables(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    for variable in at.items() {
        let name = variable.field("name");
        if name.str().is_empty() {
            errors.required(&name, "");
        } else {
            check_name(&name, rules, errors);
        }
        let source = variable.field("valueFrom");
        if source.is_set() {
            check_source(&source, !variable.field("value").is_empty(), rules, errors);
        }
    }
}

fn check_name(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    // Names that both rules allow do not depend on the feature gate.
    if names::env_name(at.str()).is_empty() {
        return;
    }
    let wrong = match rules.relaxes_environment(at.str()) {
        true => names::relaxed_env_name(at.str()),
        false => names::env_name(at.str()),
    };
    errors.invalid_for(at, wrong);
}

fn check_source(at: &Cursor<'_, '_>, has_value: bool, rules: &Rules<'_>, errors: &mut ErrorList) {
    let [field, resource, config_map, secret, file] = [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ]
    .map(|name| at.field(name));
    if field.is_set() {
        field_reference(&field, FIELDS, errors);
    }
    if resource.is_set() {
        resource_reference(&resource, false, errors);
    }
    for (selector, table) in [
        (&config_map, KEY_SELECTOR),
        (&secret, KEY_SELECTOR),
        (&file, FILE_KEY_SELECTOR),
    ] {
        if selector.is_set() {
            check_fields(table, selector, errors);
        }
    }
    let count = [&field, &resource, &config_map, &secret, &file]
        .iter()
        .filter(|source| source.is_set())
        .count();
    if count == 0 {
        let sources = match rules.has_environment_files() {
            true => "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
            false => "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        };
        errors.invalid_value(at, "", format!("must specify one of: {sources}"));
    } else if has_value {
        errors.invalid_value(at, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        errors.invalid_value(at, "", "may not have more than one field specified at a time");
    }
}

/// Checks a reference to a field of the pod; `supported` lists fields, in order.
pub(super) fn field_reference(at: &Cursor<'_, '_>, supported: &[&str], errors: &mut ErrorList) {
    let (version, path) = (at.field("apiVersion"), at.field("fieldPath"));
    for field in [&version, &path] {
        if field.str().is_empty() {
            return errors.required(field, "");
        }
    }
    let subscripted = split_subscript(path.str());
    let wrong = if version.str() != "v1" {
        Some(format!("unsupported pod version: {}", version.str()))
    } else {
        match subscripted {
            Some(("metadata.annotations" | "metadata.labels", _)) => None,
            Some(_) => Some(format!("field label does not support subscript: {}", path.str())),
            None if is_field(path.str()) => None,
            None => Some(format!("field label not supported: {}", path.str())),
        }
    };
    if let Some(wrong) = wrong {
        return errors.invalid(&path, format!("error converting fieldPath: {wrong}"));
    }
    match subscripted {
        Some((field, key)) => {
            let key = match field {
                "metadata.annotations" => key.to_lowercase(),
                _ => key.to_owned(),
            };
            for why in names::label_key(&key) {
                errors.invalid_value(at, key.as_str(), why);
            }
        }
        None => {
            let field = match path.str() {
                // Conversion still accepts the name that the field had before v1.
                "spec.host" => "spec.nodeName",
                field => field,
            };
            if !supported.contains(&field) {
                let supported = supported.iter().copied();
                errors.push_with(|| FieldError::not_supported(path.path(), field, supported));
            }
        }
    }
}

/// Returns whether pods have a field that may be referred to from somewhere.
fn is_field(path: &str) -> bool {
    FIELDS.contains(&path)
        || matches!(
            path,
            "metadata.annotations"
                | "metadata.labels"
                | "spec.restartPolicy"
                | "spec.schedulerName"
                | "status.phase"
                | "spec.host"
        )
}

/// Splits `path['key']`.
fn split_subscript(path: &str) -> Option<(&str, &str)> {
    let (field, key) = path.strip_suffix("']")?.split_once("['")?;
    (!field.is_empty()).then_some((field, key))
}

/// Checks a reference to a resource of a container.
pub(super) fn resource_reference(at: &Cursor<'_, '_>, is_in_volume: bool, errors: &mut ErrorList) {
    let (container, resource) = (at.field("containerName"), at.field("resource"));
    let is_huge_pages = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.str().starts_with(prefix));
    if is_in_volume && container.str().is_empty() {
        errors.required(&container, "");
    } else if resource.str().is_empty() {
        errors.required(&resource, "");
    } else if !RESOURCES.contains(&resource.str()) && !is_huge_pages {
        errors.not_supported(&resource, RESOURCES);
    }
    check_divisor(&at.field("divisor"), resource.str(), is_huge_pages, errors);
}

/// The unit in which a resource is exposed is one of few.
fn check_divisor(at: &Cursor<'_, '_>, resource: &str, is_huge_pages: bool, errors: &mut ErrorList) {
    const BYTES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let divisor = quantity(at.value());
    if divisor.sign() == Ordering::Equal {
        return;
    }
    let divisor = divisor.canonical();
    let (units, kind) = match resource {
        "limits.cpu" | "requests.cpu" => {
            if !matches!(divisor.as_str(), "1" | "1m") {
                let why = "only divisor's values 1m and 1 are supported with the cpu resource";
                errors.invalid_value(at, resource, why);
            }
            return;
        }
        "limits.memory" | "requests.memory" => (BYTES, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (BYTES, "local ephemeral storage"),
        _ if is_huge_pages => (BYTES, "hugepages"),
        _ => return,
    };
    if !units.split(", ").any(|unit| unit == divisor) {
        let why = format!("only divisor's values {units} are supported with the {kind} resource");
        errors.invalid_value(at, resource, why);
    }
}

/// Checks the objects that a container takes variables from.
pub(super) fn check_sources(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    for source in at.items() {
        let prefix = source.field("prefix");
        if !prefix.str().is_empty() {
            check_name(&prefix, rules, errors);
        }
        let references = [source.field("configMapRef"), source.field("secretRef")];
        for reference in references.iter().filter(|reference| reference.is_set()) {
            // UPSTREAM: the names are checked as if more would follow, so that a final dash is allowed.
            let form = |name: &str| NameRule::Subdomain.check_prefix(name);
            Rule::RequiredForm(form).check(&reference.field("name"), errors);
        }
        match references.iter().filter(|reference| reference.is_set()).count() {
            0 => errors.invalid_value(at, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid_value(at, "", "may not have more than one field specified at a time"),
        }
    }
}
