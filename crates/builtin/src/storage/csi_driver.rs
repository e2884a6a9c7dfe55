//! CSI drivers.

use super::GROUP;
use crate::checks::gates::drop_disabled_in;
use crate::checks::update::{immutable, same};
use crate::checks::{Report, Rule, numbers};
use crate::prepare::{StructName, count_spec_changes, object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Write};
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::BTreeSet;

/// A CSI driver.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        unconditional_update: false,
        delete_returns_object: true,
        ..KindFacts::new(GROUP, "CSIDriver")
    })
};

const SPEC: StructName = ("storage/v1", "CSIDriverSpec");
const GROUP_POLICIES: &[&str] = &["File", "None", "ReadWriteOnceWithFSType"];
const LIFECYCLE_MODES: [&str; 2] = ["Persistent", "Ephemeral"];
const MIN_UPDATE_SECONDS: i64 = 10;

fn default(object: &mut Map, context: &Context<'_>) {
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    set_default(spec, "attachRequired", true);
    for field in ["podInfoOnMount", "requiresRepublish", "storageCapacity"] {
        set_default(spec, field, false);
    }
    set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    let modes = spec.get("volumeLifecycleModes").and_then(Value::as_array);
    if modes.is_none_or(<[Value]>::is_empty) {
        spec.insert("volumeLifecycleModes", vec!["Persistent"].into());
    }
    for (flag, gate) in [
        ("seLinuxMount", "SELinuxMountReadWriteOncePod"),
        ("preventPodSchedulingIfMissing", "VolumeLimitScaling"),
    ] {
        if (context.enabled)(gate) {
            set_default(spec, flag, false);
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    drop_disabled_in(object, "spec", SPEC, write);
    // A new driver has no generation.
    if let Operation::Update(_) = write.operation {
        count_spec_changes(object, write, SPEC);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    check_spec(&spec, write, errors);
    let Some(old) = write.old() else { return };
    // The path is written as Kubernetes writes it.
    let attach = spec
        .field("attachRequired")
        .with_path(spec.path().field("attachedRequired"));
    immutable(&attach, old.at(["spec", "attachRequired"]), errors);
    immutable(
        &spec.field("volumeLifecycleModes"),
        old.at(["spec", "volumeLifecycleModes"]),
        errors,
    );
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    let requests = object.at(["spec", "tokenRequests"]);
    let is_new = write
        .old()
        .is_none_or(|old| !same(requests, old.at(["spec", "tokenRequests"])));
    let has_requests = requests.and_then(Value::as_array).is_some_and(|r| !r.is_empty());
    let in_secrets = object.at(["spec", "serviceAccountTokenInSecrets"]);
    let is_enabled = (write.context.enabled)("CSIServiceAccountTokenSecrets");
    if is_enabled && is_new && has_requests && in_secrets.is_none_or(Value::is_null) {
        let text = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to \
                    prevent possible logging of tokens in volume attributes";
        warnings.push(text.to_owned());
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let require = |field: &str, shown: &str, errors: &mut ErrorList| {
        if !spec.field(field).is_set() {
            errors.required(&Cursor::at(None, spec.path().field(shown)), "");
        }
    };
    require("attachRequired", "attachedRequired", errors);
    require("podInfoOnMount", "podInfoOnMount", errors);
    require("storageCapacity", "storageCapacity", errors);
    Rule::OneOf(GROUP_POLICIES).check(&spec.field("fsGroupPolicy"), errors);
    check_token_requests(&spec.field("tokenRequests"), errors);
    let modes = spec.field("volumeLifecycleModes");
    for mode in modes.items().filter(|m| !LIFECYCLE_MODES.contains(&m.str())) {
        let shown = mode.str();
        errors.push_with(|| FieldError::not_supported(modes.path(), shown, LIFECYCLE_MODES));
    }
    if (write.context.enabled)("SELinuxMountReadWriteOncePod") {
        require("seLinuxMount", "seLinuxMount", errors);
    }
    let period = spec.field("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < MIN_UPDATE_SECONDS {
        errors.invalid(&period, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.field("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.field("tokenRequests").list().is_empty() {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&in_secrets, why);
    }
    if (write.context.enabled)("VolumeLimitScaling") {
        require(
            "preventPodSchedulingIfMissing",
            "preventPodSchedulingIfMissing",
            errors,
        );
    }
}

fn check_token_requests(requests: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut audiences = BTreeSet::new();
    for request in requests.items() {
        let (audience, seconds) = (request.field("audience"), request.field("expirationSeconds"));
        if !audiences.insert(audience.str()) {
            errors.duplicate(&audience, audience.str());
            continue;
        }
        numbers::token_seconds(&seconds, errors);
    }
}
