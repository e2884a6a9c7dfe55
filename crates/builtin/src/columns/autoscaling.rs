//! Cells of the group `autoscaling`.

use super::text::{NONE, UNSET, age, amount, int, name};
use super::{Printer, Printing};
use scantling_value::Value;

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    ("autoscaling", "HorizontalPodAutoscaler", autoscaler),
    ("autoscaling", "Scale", |o, p| {
        let replicas = |part| int(o, [part, "replicas"]).into();
        vec![name(o), replicas("spec"), replicas("status"), age(o, p)]
    }),
];

fn autoscaler(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let target = ["kind", "name"].map(|field| object.str_at(["spec", "scaleTargetRef", field]));
    let least = object.at(["spec", "minReplicas"]).and_then(Value::as_int);
    let specs = object.list_at(["spec", "metrics"]);
    vec![
        name(object),
        target.join("/").into(),
        metrics(specs, object.list_at(["status", "currentMetrics"])).into(),
        least
            .map_or_else(|| UNSET.to_owned(), |least| least.to_string())
            .into(),
        int(object, ["spec", "maxReplicas"]).into(),
        int(object, ["status", "currentReplicas"]).into(),
        age(object, printing),
    ]
}

/// The first two metrics, with current and target values.
fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    const MOST: usize = 2;
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let shown = specs
        .iter()
        .enumerate()
        .take(MOST)
        .map(|(i, spec)| metric(spec, statuses.get(i)));
    let shown: Vec<String> = shown.collect();
    let shown = shown.join(", ");
    match specs.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let source = match spec.get_str("type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let set = |v: &&Value| !v.is_null();
    let target = |field: &str| spec.at([source, "target", field]).filter(set);
    let status = status.and_then(|s| s.get(source)).filter(set);
    let current = |field: &str| status.and_then(|s| s.at(["current", field])).filter(set);
    let unknown = || "<unknown>".to_owned();
    let is_resource = matches!(source, "resource" | "containerResource");
    let average = target("averageValue");
    let text = match (is_resource, average) {
        (true, None) => {
            let percent = |v: Option<&Value>| v.and_then(Value::as_int).map(|p| format!("{p}%"));
            let current = percent(current("averageUtilization")).unwrap_or_else(unknown);
            let target = percent(target("averageUtilization")).unwrap_or_else(|| "<auto>".to_owned());
            format!("{current}/{target}")
        }
        (false, None) if source != "pods" => {
            let current = status.map_or_else(unknown, |_| amount(current("value")));
            format!("{current}/{}", amount(target("value")))
        }
        _ => {
            // Pods and resources show an absent average as 0.
            let shows_zero = is_resource || source == "pods";
            let current = match (status, current("averageValue")) {
                (Some(_), average) if shows_zero || average.is_some() => amount(average),
                _ => unknown(),
            };
            let note = if shows_zero { "" } else { " (avg)" };
            format!("{current}/{}{note}", amount(average))
        }
    };
    match is_resource {
        true => format!("{}: {text}", spec.str_at([source, "name"])),
        false => text,
    }
}
