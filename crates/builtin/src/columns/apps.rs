//! Computed cells of the group `apps`.

use super::text::{NONE, int, selector};
use super::{Printer, Printing};
use scantling_value::Value;

const GROUP: &str = "apps";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "ControllerRevision", controller),
    (GROUP, "Deployment", |object, _| {
        let selector = selector(object.at(["spec", "selector"]));
        vec![
            ready(object),
            selector.unwrap_or_else(|| "<invalid>".to_owned()).into(),
        ]
    }),
    (GROUP, "StatefulSet", |object, _| vec![ready(object)]),
];

fn ready(object: &Value) -> Value {
    let ready = int(object, ["status", "readyReplicas"]);
    format!("{ready}/{}", int(object, ["spec", "replicas"])).into()
}

fn controller(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let mut owners = object.list_at(["metadata", "ownerReferences"]).iter();
    let controller = owners.find(|o| o.get("controller").and_then(Value::as_bool) == Some(true));
    let Some(owner) = controller else {
        return vec![NONE.into()];
    };
    let kind = match owner.get_str("apiVersion").split_once('/') {
        Some((group, _)) if !group.is_empty() => format!("{}.{group}", owner.get_str("kind")),
        _ => owner.get_str("kind").to_owned(),
    };
    vec![format!("{}/{}", kind.to_lowercase(), owner.get_str("name")).into()]
}
