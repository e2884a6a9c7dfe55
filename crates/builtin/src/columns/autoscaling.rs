//! Computed cells of autoscalers.

use super::text::{NONE, UNSET, amount, some_of};
use super::{Printer, Printing};
use scantling_value::Value;

/// The printers of the group `autoscaling`.
pub(super) const PRINTERS: &[Printer] = &[("autoscaling", "HorizontalPodAutoscaler", autoscaler)];

fn autoscaler(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let target = ["kind", "name"].map(|field| object.str_at(["spec", "scaleTargetRef", field]));
    let least = object.at(["spec", "minReplicas"]).and_then(Value::as_int);
    let least = least.map_or_else(|| UNSET.to_owned(), |least| least.to_string());
    let metrics = metrics(
        object.list_at(["spec", "metrics"]),
        object.list_at(["status", "currentMetrics"]),
    );
    vec![target.join("/").into(), metrics.into(), least.into()]
}

/// The first two metrics, with current and target values.
fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let texts = specs
        .iter()
        .enumerate()
        .map(|(i, spec)| metric(spec, statuses.get(i)));
    some_of(&texts.collect::<Vec<_>>(), 2, ", ")
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
