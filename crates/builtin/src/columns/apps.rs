//! Cells of the group `apps`.

use super::text::{NONE, age, containers, int, labels, name, selector, selector_or_none};
use super::{Printer, Printing};
use scantling_value::Value;

const GROUP: &str = "apps";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "ControllerRevision", controller_revision),
    (GROUP, "DaemonSet", daemon_set),
    (GROUP, "Deployment", deployment),
    (GROUP, "ReplicaSet", replica_set),
    (GROUP, "StatefulSet", stateful_set),
];

fn of_template(object: &Value) -> [Value; 2] {
    containers(object.list_at(["spec", "template", "spec", "containers"]))
}

fn ready(object: &Value) -> Value {
    let (ready, desired) = (
        int(object, ["status", "readyReplicas"]),
        int(object, ["spec", "replicas"]),
    );
    format!("{ready}/{desired}").into()
}

fn status(object: &Value, field: &str) -> Value {
    int(object, ["status", field]).into()
}

fn deployment(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = of_template(object);
    let selector = selector(object.at(["spec", "selector"])).unwrap_or_else(|| "<invalid>".to_owned());
    vec![
        name(object),
        ready(object),
        status(object, "updatedReplicas"),
        status(object, "availableReplicas"),
        age(object, printing),
        names,
        images,
        selector.into(),
    ]
}

fn replica_set(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = of_template(object);
    vec![
        name(object),
        int(object, ["spec", "replicas"]).into(),
        status(object, "replicas"),
        status(object, "readyReplicas"),
        age(object, printing),
        names,
        images,
        selector_or_none(object.at(["spec", "selector"])),
    ]
}

fn stateful_set(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = of_template(object);
    vec![name(object), ready(object), age(object, printing), names, images]
}

fn daemon_set(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = of_template(object);
    vec![
        name(object),
        status(object, "desiredNumberScheduled"),
        status(object, "currentNumberScheduled"),
        status(object, "numberReady"),
        status(object, "updatedNumberScheduled"),
        status(object, "numberAvailable"),
        labels(object.at(["spec", "template", "spec", "nodeSelector"])).into(),
        age(object, printing),
        names,
        images,
        selector_or_none(object.at(["spec", "selector"])),
    ]
}

fn controller_revision(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let mut owners = object.list_at(["metadata", "ownerReferences"]).iter();
    let controller = owners.find(|o| o.get("controller").and_then(Value::as_bool) == Some(true));
    let controller = controller.map_or_else(
        || NONE.to_owned(),
        |owner| {
            let group = owner
                .get_str("apiVersion")
                .split_once('/')
                .map_or("", |(group, _)| group);
            let kind = match group {
                "" => owner.get_str("kind").to_owned(),
                group => format!("{}.{group}", owner.get_str("kind")),
            };
            format!("{}/{}", kind.to_lowercase(), owner.get_str("name"))
        },
    );
    vec![
        name(object),
        controller.into(),
        int(object, ["revision"]).into(),
        age(object, printing),
    ]
}
