//! ReplicaSet.

use super::GROUP;
use super::template::{self, MORE_THAN_REPLICAS, StatusLimits};
use crate::checks::{Rule, check_fields, numbers};
use crate::prepare::{self, object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A number of equal pods.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn: template::warn_replicated,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        ..KindFacts::new(GROUP, "ReplicaSet")
    })
};

const STATUS_RULES: &[(&str, Rule)] = &[
    ("replicas", Rule::NonNegative),
    ("fullyLabeledReplicas", Rule::NonNegative),
    ("readyReplicas", Rule::NonNegative),
    ("availableReplicas", Rule::NonNegative),
    ("observedGeneration", Rule::NonNegative),
    ("terminatingReplicas", Rule::NonNegative),
];

const STATUS_LIMITS: StatusLimits = &[
    ("fullyLabeledReplicas", "replicas", MORE_THAN_REPLICAS),
    ("readyReplicas", "replicas", MORE_THAN_REPLICAS),
    ("availableReplicas", "replicas", MORE_THAN_REPLICAS),
    (
        "availableReplicas",
        "readyReplicas",
        "cannot be greater than readyReplicas",
    ),
];

fn default(object: &mut Map, context: &Context<'_>) {
    if let Some(spec) = object_in(object, "spec") {
        set_default(spec, "replicas", 1_i64);
        template::default(spec, context);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    template::drop_disabled(object, write, &["spec"]);
    prepare::spec_and_status(object, write, ("apps/v1", "ReplicaSetSpec"));
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        return check_status(&root.field("status"), errors);
    }
    let spec = root.field("spec");
    check_spec(&spec, write, errors);
    template::check_same_selector(&spec, write, errors);
}

/// Checks the numbers of a status, which ReplicationControllers share.
pub(crate) fn check_status(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    check_fields(STATUS_RULES, status, errors);
    template::check_limits(status, STATUS_LIMITS, errors);
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    numbers::non_negative(&spec.field("replicas"), errors);
    numbers::non_negative(&spec.field("minReadySeconds"), errors);
    template::check_replicated(spec, write, errors);
}
