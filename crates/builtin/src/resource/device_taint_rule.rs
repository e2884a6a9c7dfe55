//! DeviceTaintRule.

use super::GROUP;
use crate::prepare::{keep_metadata_of_status, object_if_set, spec_and_status};
use crate::{BuiltinKind, Context, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::Scope;
use scantling_value::{Map, Value};

/// A taint of the devices that a selector names.
#[derive(Debug)]
pub(super) struct DeviceTaintRule;

const FACTS: KindFacts = KindFacts {
    scope: Scope::Cluster,
    selectable: &["metadata.name"],
    unconditional_update: false,
    has_generation: true,
    status_keeps: &[&["metadata"], &["spec"]],
    ..KindFacts::new(GROUP, "DeviceTaintRule")
};

impl BuiltinKind for DeviceTaintRule {
    fn facts(&self) -> &'static KindFacts {
        &FACTS
    }

    fn default(&self, object: &mut Map, context: &Context<'_>) {
        set_time(object, context.now, |added| added.is_none_or(Value::is_null));
    }

    fn prepare(&self, object: &mut Map, write: &Write<'_>) {
        if let (Operation::Update(old), Subresource::None) = (write.operation, write.subresource) {
            let effect = |object: &Map| {
                object
                    .get("spec")
                    .map(|spec| spec.str_at(["taint", "effect"]).to_owned())
            };
            if old.as_object().is_some_and(|old| effect(old) != effect(object)) {
                // The time is that of the effect, unless the client changes it, too.
                let before = old.at(["spec", "taint", "timeAdded"]);
                set_time(object, write.context.now, |added| added == before);
            }
        }
        spec_and_status(object, write, ("resource/v1", "DeviceTaintRuleSpec"));
        if let (Operation::Update(old), Subresource::Status) = (write.operation, write.subresource) {
            keep_metadata_of_status(object, old);
        }
    }
}

/// Sets the time of the taint where the current one fits.
fn set_time(object: &mut Map, now: &str, fits: impl FnOnce(Option<&Value>) -> bool) {
    let taint = object_if_set(object, "spec").and_then(|spec| object_if_set(spec, "taint"));
    if let Some(taint) = taint
        && fits(taint.get("timeAdded"))
    {
        taint.insert("timeAdded", now.into());
    }
}
