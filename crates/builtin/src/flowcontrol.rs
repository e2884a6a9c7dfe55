//! Kinds of the group `flowcontrol.apiserver.k8s.io`.

mod flow_schema;
mod priority_level;

use crate::BuiltinKind;
use crate::checks::Report;
use crate::prepare::object_in;
use crate::{Cursor, Operation, Subresource, Write};
use scantling_value::{ErrorList, Limits, Map, Value, json};
use std::collections::BTreeSet;

/// The group.
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &flow_schema::FlowSchema,
    &priority_level::PriorityLevelConfiguration,
];

/// An update of the status keeps all metadata but the field managers.
fn keep_all_metadata(object: &mut Map, write: &Write<'_>) {
    if let (Operation::Update(old), Subresource::Status) = (write.operation, write.subresource)
        && let Some(metadata) = object_in(object, "metadata")
    {
        let managers = metadata.remove("managedFields");
        *metadata = old
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        match managers {
            Some(managers) => drop(metadata.insert("managedFields", managers)),
            None => drop(metadata.remove("managedFields")),
        }
    }
}

/// Checks that conditions have unique types.
fn check_conditions(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for condition in status.field("conditions").items() {
        let kind = condition.field("type");
        if !seen.insert(kind.str()) {
            errors.duplicate(&kind, kind.str());
        }
        if kind.str().is_empty() {
            errors.required(&kind, "");
        }
    }
}

/// The spec that an object of that name must have.
fn mandatory_spec(specs: &[(&str, &str)], name: &str) -> Option<Value> {
    let (_, text) = specs.iter().find(|(mandatory, _)| *mandatory == name)?;
    json::decode(text.as_bytes(), Limits::default()).ok()
}
