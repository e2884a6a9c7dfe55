//! DeviceTaintRule.

use super::{GROUP, names, taint};
use crate::checks::{Check, Report, Rule, conditions};
use crate::prepare::{keep_metadata_of_status, object_in, spec_and_status};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A taint of the devices that a selector names.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        unconditional_update: false,
        has_generation: true,
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new(GROUP, "DeviceTaintRule")
    })
};

fn default(object: &mut Map, context: &Context<'_>) {
    let taint = object_in(object, "spec").and_then(|spec| object_in(spec, "taint"));
    if let Some(taint) = taint {
        taint::set_time(taint, context.now);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    let taint = object_in(object, "spec").and_then(|spec| object_in(spec, "taint"));
    if let Some((taint, old)) = taint.zip(write.old()) {
        taint::follow_effect(taint, old.at(["spec", "taint"]), write.context.now);
    }
    spec_and_status(object, write, ("resource/v1", "DeviceTaintRuleSpec"));
    if let (Operation::Update(old), Subresource::Status) = (write.operation, write.subresource) {
        keep_metadata_of_status(object, old);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        let status = root.field("status");
        let list = status.field("conditions");
        conditions::check(&list, errors);
        errors.max_items(&list, MAX_CONDITIONS);
        return;
    }
    let spec = root.field("spec");
    let selector = spec.field("deviceSelector");
    for (field, check) in SELECTOR {
        let field = selector.field(field);
        Rule::IfSet(check).check(&field, errors);
    }
    let old = write.old().map(|old| old.str_at(["spec", "taint", "effect"]));
    taint::check(&spec.field("taint"), old, errors);
}

const MAX_CONDITIONS: usize = 8;

/// The fields of a selector.
const SELECTOR: [(&str, Check); 3] = [
    ("driver", names::driver),
    ("pool", names::pool),
    ("device", names::label),
];
