//! StorageVersionMigration.

use crate::checks::update::{IMMUTABLE, same_of, separate_status};
use crate::checks::{Report, Rule, conditions, go, names};
use crate::prepare::{clear_status, keep_metadata_of_status};
use crate::{Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A rewrite of all objects of a resource.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        unconditional_update: false,
        validates_name_on_update: true,
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new("storagemigration.k8s.io", "StorageVersionMigration")
    })
};

const PACKAGE: &str = "storagemigration/v1";
const SPEC: &str = "StorageVersionMigrationSpec";

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    match (write.operation, write.subresource) {
        (Operation::Create, _) => clear_status(object, (PACKAGE, SPEC)),
        (Operation::Update(old), Subresource::Status) => keep_metadata_of_status(object, old),
        (Operation::Update(_), _) => {}
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    match (write.old(), write.subresource) {
        (Some(old), Subresource::Status) => check_status(&root.field("status"), old, errors),
        (old, _) => {
            let spec = root.field("spec");
            check_resource(&spec.field("resource"), errors);
            if let Some(old) = old
                && !same_of(PACKAGE, SPEC, spec.value(), old.get("spec"))
            {
                errors.invalid_value(&spec, go::structure(PACKAGE, SPEC, spec.value()), IMMUTABLE);
            }
        }
    }
}

fn check_resource(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (group, resource) = (at.field("group"), at.field("resource"));
    let mut check = |at: &Cursor<'_, '_>, reasons: Vec<String>| {
        if !reasons.is_empty() {
            errors.invalid(at, reasons.join(","));
        }
    };
    if !resource.str().is_empty() {
        check(&resource, names::dns1035_label(resource.str()));
    }
    if !group.str().is_empty() {
        check(&group, names::dns1123_subdomain(group.str()));
    }
    Rule::RequiredFor("resource is required to be set").check(&resource, errors);
}

/// A version stays once it is set, and so does the end of the migration.
fn check_status(status: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let version = status.field("resourceVersion");
    let text = version.str();
    // Resource versions are compared as numbers, whose canonical form has no leading zeros.
    if !text.is_empty() && (text.starts_with('0') || !text.bytes().all(|b| b.is_ascii_digit())) {
        let why = format!("resource version is not well formed: {text}");
        errors.invalid(&version, why);
    }
    let list = status.field("conditions");
    conditions::check(&list, errors);
    let stored = old.str_at(["status", "resourceVersion"]);
    if !stored.is_empty() && stored != text {
        errors.invalid(&version, IMMUTABLE);
    }
    let has = |conditions: &[Value], kind: &str| {
        let found = conditions.iter().find(|c| c.get_str("type") == kind);
        found.is_some_and(|c| c.get_str("status") == "True")
    };
    let before = old.list_at(["status", "conditions"]);
    let ends = [("Succeeded", "Success"), ("Failed", "Failed")];
    let shown = || go::list("meta/v1", "Condition", list.value());
    if ends.iter().all(|(kind, _)| has(list.list(), kind)) {
        let why = "Both success and failed conditions cannot be true at the same time";
        errors.invalid_value(&list, shown(), why);
    }
    for (kind, name) in ends {
        if has(before, kind) && !has(list.list(), kind) {
            let why = format!("{name} condition cannot be set to false once it is true");
            errors.invalid_value(&list, shown(), why);
        }
    }
}
