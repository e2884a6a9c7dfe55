//! Cells of the group `flowcontrol.apiserver.k8s.io`.

use super::text::{NONE, age, condition, int, name, text, text_or};
use super::{Printer, Printing};
use scantling_value::Value;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "FlowSchema", flow_schema),
    (GROUP, "PriorityLevelConfiguration", priority_level),
];

fn flow_schema(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let dangling = match condition(object, "Dangling") {
        "" => "?",
        status => status,
    };
    vec![
        name(object),
        text(object, ["spec", "priorityLevelConfiguration", "name"]),
        int(object, ["spec", "matchingPrecedence"]).into(),
        text_or(object, ["spec", "distinguisherMethod", "type"], NONE),
        age(object, printing),
        dangling.into(),
    ]
}

fn priority_level(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let set = |v: &&Value| !v.is_null();
    let limited = object.at(["spec", "limited"]).filter(set);
    let queuing = limited
        .and_then(|l| l.at(["limitResponse", "queuing"]))
        .filter(set);
    let number = |holder: Option<&Value>, field| holder.map_or(NONE.into(), |h| Value::Int(int(h, [field])));
    vec![
        name(object),
        text(object, ["spec", "type"]),
        number(limited, "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        age(object, printing),
    ]
}

/// Orders flow schemas by precedence, then by name.
pub(super) fn by_precedence(schemas: &mut [Value]) {
    schemas.sort_by_cached_key(|schema| {
        let precedence = int(schema, ["spec", "matchingPrecedence"]);
        (precedence, schema.str_at(["metadata", "name"]).to_owned())
    });
}
