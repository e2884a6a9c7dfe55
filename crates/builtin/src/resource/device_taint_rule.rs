//! DeviceTaintRule.

use super::GROUP;
use crate::prepare::{keep_metadata_of_status, spec_and_status};
use crate::{BuiltinKind, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::Scope;
use scantling_value::Map;

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

    fn prepare(&self, object: &mut Map, write: &Write<'_>) {
        spec_and_status(object, write, ("resource/v1", "DeviceTaintRuleSpec"));
        if let (Operation::Update(old), Subresource::Status) = (write.operation, write.subresource) {
            keep_metadata_of_status(object, old);
        }
    }
}
