//! Lease.

use crate::checks::Report;
use crate::prepare::object_if_set;
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_notation::names;
use scantling_value::{ErrorList, Map, Value};

/// A lock that its holder renews.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        creates_on_update: true,
        unconditional_update: false,
        qualifies_finalizers: false,
        ..KindFacts::new("coordination.k8s.io", "Lease")
    })
};

/// The gate of the fields for coordinated leader election.
const GATE: &str = "CoordinatedLeaderElection";

/// The strategy whose name has no domain.
const OLDEST: &str = "OldestEmulationVersion";

fn prepare(lease: &mut Map, write: &Write<'_>) {
    if (write.context.enabled)(GATE) {
        return;
    }
    if let Some(spec) = object_if_set(lease, "spec") {
        for field in ["strategy", "preferredHolder"] {
            if write.old().and_then(|old| old.at(["spec", field])).is_none() {
                spec.remove(field);
            }
        }
    }
}

fn validate(object: &Value, _write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    for (name, least, why) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        let number = spec.field(name);
        if number.as_int().is_some_and(|n| n < least) {
            errors.invalid(&number, why);
        }
    }
    let strategy = spec.field("strategy");
    if strategy.is_set() {
        // The path names the field twice, as kube-apiserver does.
        let within = strategy.path().field("strategy");
        let at = strategy.with_path(within);
        if strategy.str().contains('/') {
            errors.invalid_for(&at, names::label_key(strategy.str()));
        } else if strategy.str() != OLDEST {
            errors.not_supported(&at, &[OLDEST]);
        }
    }
    let holder = spec.field("preferredHolder");
    if !holder.str().is_empty() && strategy.str().is_empty() {
        errors.forbidden(&holder, "may only be specified if `strategy` is defined");
    }
}
