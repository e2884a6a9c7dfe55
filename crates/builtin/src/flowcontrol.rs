//! Kinds of the group `flowcontrol.apiserver.k8s.io`.

mod flow_schema;
mod priority_level;

use crate::Cursor;
use crate::KindBehavior;
use crate::checks::{Report, Rule};
use scantling_value::{ErrorList, Limits, Value, json};
use std::collections::BTreeSet;

/// The group.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&flow_schema::KIND, &priority_level::KIND];

/// Checks that conditions have unique types.
fn check_conditions(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for condition in status.field("conditions").items() {
        let kind = condition.field("type");
        errors.unique(&mut seen, &kind);
        Rule::Required.check(&kind, errors);
    }
}

/// The spec that an object of that name must have.
fn mandatory_spec(specs: &[(&str, &str)], name: &str) -> Option<Value> {
    let (_, text) = specs.iter().find(|(mandatory, _)| *mandatory == name)?;
    json::decode(text.as_bytes(), Limits::default()).ok()
}
