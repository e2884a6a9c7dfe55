//! APIService.

use crate::checks::update::separate_status;
use crate::checks::{Report, Rule, names};
use crate::prepare::{clear_status, keep_metadata_of_status, object_if_set, object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value, go};

/// A group and version that the server or another one serves.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        // The name is `VERSION.GROUP`, which `check_name` enforces.
        names: NameRule::PathSegment,
        unconditional_update: false,
        qualifies_finalizers: false,
        status_keeps: &[&["spec"], &["metadata"]],
        ..KindFacts::new("apiregistration.k8s.io", "APIService")
    })
};

const MAX_GROUP_PRIORITY: i64 = 20_000;
const MAX_VERSION_PRIORITY: i64 = 1000;

fn default(object: &mut Map, _context: &Context<'_>) {
    let service = object_if_set(object, "spec").and_then(|spec| object_if_set(spec, "service"));
    if let Some(service) = service {
        set_default(service, "port", 443_i64);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            clear_status(object, ("apiregistration/v1", "APIServiceSpec"));
            let is_local = object
                .get("spec")
                .is_none_or(|spec| spec.get("service").is_none());
            if is_local && let Some(status) = object_in(object, "status") {
                status.insert("conditions", vec![local_condition(write.context.now)].into());
            }
        }
        (Operation::Update(old), Subresource::Status) => keep_metadata_of_status(object, old),
        (Operation::Update(_), _) => {}
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        let status = root.field("status");
        for condition in status.field("conditions").items() {
            let value = condition.field("status");
            if !matches!(value.str(), "True" | "False" | "Unknown") {
                errors.not_supported(&value, &["True", "False", "Unknown"]);
            }
        }
        return;
    }
    check_name(&root, errors);
    check_spec(&root.field("spec"), errors);
}

/// The condition of a group and version that the server itself serves.
fn local_condition(now: &str) -> Map {
    Map::from_iter([
        ("type", Value::from("Available")),
        ("status", "True".into()),
        ("lastTransitionTime", now.into()),
        ("reason", "Local".into()),
        ("message", "Local APIServices are always available".into()),
    ])
}

/// The name is made of version and group.
fn check_name(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (metadata, spec) = (root.field("metadata"), root.field("spec"));
    let required = format!("{}.{}", spec.field("version").str(), spec.field("group").str());
    // Kubernetes also runs the check of names on the prefix of generated names.
    for name in [metadata.field("generateName"), metadata.field("name")] {
        let is_path_segment = NameRule::PathSegment.check(name.str()).is_empty();
        if !name.str().is_empty() && is_path_segment && name.str() != required {
            let why = format!(
                "must be `spec.version+\".\"+spec.group`: {}",
                go::quote(&required)
            );
            errors.invalid(&name, why);
        }
    }
}

fn check_spec(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (group, version) = (spec.field("group"), spec.field("version"));
    if group.str().is_empty() && version.str() != "v1" {
        errors.required(
            &group,
            "only v1 may have an empty group and it better be legacy kube",
        );
    }
    Rule::Form(names::dns1123_subdomain).check(&group, errors);
    errors.invalid_for(&version, names::dns1035_label(version.str()));
    for (name, max) in [
        ("groupPriorityMinimum", MAX_GROUP_PRIORITY),
        ("versionPriority", MAX_VERSION_PRIORITY),
    ] {
        let priority = spec.field(name);
        if !(1..=max).contains(&priority.int()) {
            let why = format!("must be positive and less than {max}");
            errors.invalid_value(&priority, priority.int(), why);
        }
    }
    let (service, bundle) = (spec.field("service"), spec.field("caBundle"));
    let skips_verification = spec.field("insecureSkipTLSVerify");
    if service.is_set() {
        check_service(&service, errors);
        if skips_verification.bool() && !bundle.str().is_empty() {
            errors.invalid(&skips_verification, "may not be true if caBundle is present");
        }
        return;
    }
    if !bundle.str().is_empty() {
        let bytes = decoded_length(bundle.str());
        let shown = format!("{bytes} bytes");
        errors.invalid_value(&bundle, shown, "local APIServices may not have a caBundle");
    }
    if skips_verification.bool() {
        errors.invalid(
            &skips_verification,
            "local APIServices may not have insecureSkipTLSVerify",
        );
    }
}

/// The decoded length of a base64 text.
fn decoded_length(text: &str) -> usize {
    let digits = text.trim_end_matches('=').len();
    digits * 3 / 4
}

fn check_service(service: &Cursor<'_, '_>, errors: &mut ErrorList) {
    Rule::Required.check(&service.field("namespace"), errors);
    Rule::Required.check(&service.field("name"), errors);
    let port = service.field("port");
    if !(1..=65535).contains(&port.int()) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid_value(&port, port.int(), why);
    }
}
