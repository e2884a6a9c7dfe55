//! Conversion of autoscalers between `autoscaling/v1` and `autoscaling/v2`.
//!
//! v1 knows only the utilization of CPUs. Everything else is kept in annotations, in the types of v1; the behavior is kept
//! as the internal type, whose fields have their Go names.

use super::{DEFAULT_CPU_UTILIZATION, cpu_utilization};
use crate::checks::go;
use crate::prepare::object_in;
use scantling_apitypes::TypeTable;
use scantling_value::{BadValue, Limits, Map, Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const SCALE_DOWN_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
const SCALE_UP_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// All annotations that conversions write.
pub(crate) const ANNOTATIONS: [&str; 6] = [
    METRICS,
    BEHAVIOR,
    SCALE_DOWN_TOLERANCE,
    SCALE_UP_TOLERANCE,
    CURRENT_METRICS,
    CONDITIONS,
];

/// The fields of the spec and of the status that both versions have.
const SPEC: [&str; 3] = ["scaleTargetRef", "minReplicas", "maxReplicas"];
const STATUS: [&str; 4] = [
    "observedGeneration",
    "lastScaleTime",
    "currentReplicas",
    "desiredReplicas",
];

const PACKAGE: &str = "autoscaling/v1";

/// The fields of a metric source in v2 and v1, where they only have other names. Paths are within the source.
type RenamedFields = &'static [(&'static [&'static str], &'static str)];

/// The forms of a metric source in both versions: its field, and the fields of its spec and of its status.
const SOURCES: &[(&str, RenamedFields, RenamedFields)] = &[
    (
        "object",
        &[
            (&["describedObject"], "target"),
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "averageValue"),
        ],
        &[
            (&["describedObject"], "target"),
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "averageValue"),
        ],
    ),
    (
        "pods",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "selector"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
    ("resource", RESOURCE, CURRENT_RESOURCE),
    ("containerResource", RESOURCE, CURRENT_RESOURCE),
    (
        "external",
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["target", "value"], "targetValue"),
            (&["target", "averageValue"], "targetAverageValue"),
        ],
        &[
            (&["metric", "name"], "metricName"),
            (&["metric", "selector"], "metricSelector"),
            (&["current", "value"], "currentValue"),
            (&["current", "averageValue"], "currentAverageValue"),
        ],
    ),
];

const RESOURCE: RenamedFields = &[
    (&["name"], "name"),
    (&["container"], "container"),
    (&["target", "averageUtilization"], "targetAverageUtilization"),
    (&["target", "averageValue"], "targetAverageValue"),
];

const CURRENT_RESOURCE: RenamedFields = &[
    (&["name"], "name"),
    (&["container"], "container"),
    (&["current", "averageUtilization"], "currentAverageUtilization"),
    (&["current", "averageValue"], "currentAverageValue"),
];

/// The part of an object that metrics belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetricsPart {
    Spec,
    Status,
}

/// Converts an autoscaler of `autoscaling/v2` to `autoscaling/v1`.
pub fn autoscaler_to_v1(object: &mut Map) {
    object.insert("apiVersion", "autoscaling/v1".into());
    let spec = object.remove("spec").unwrap_or_default();
    let status = object.remove("status").unwrap_or_default();
    let mut annotations = Vec::new();
    let is_cpu =
        |metric: &Value| metric.get_str("type") == "Resource" && metric.str_at(["resource", "name"]) == "cpu";
    let utilization = |metric: &Value| metric.at(["resource", "target", "averageUtilization"]).cloned();

    let mut new_spec = members(&spec, &SPEC);
    let metrics = spec.list("metrics");
    // v1 has one field, so that further metrics of this form get lost.
    let mut percents = metrics.iter().filter(|m| is_cpu(m)).filter_map(utilization);
    if let Some(percent) = percents.next() {
        new_spec.insert("targetCPUUtilizationPercentage", percent);
    }
    let others: Vec<Value> = metrics
        .iter()
        .filter(|m| !(is_cpu(m) && utilization(m).is_some()))
        .map(|m| metric_to_v1(m, MetricsPart::Spec))
        .collect();
    if !others.is_empty() {
        annotations.push((METRICS, encode(&others, "MetricSpec")));
    }
    if let Some(behavior) = spec.get("behavior")
        // kube-apiserver writes the internal type, which has no JSON tags: its members have the names of Go's fields.
        && let BadValue::Raw(text) = go::structure(
            "autoscaling/v2",
            "HorizontalPodAutoscalerBehavior",
            Some(behavior),
        )
    {
        annotations.push((BEHAVIOR, text));
    }
    object.insert("spec", new_spec.into());

    let mut new_status = members(&status, &STATUS);
    let current = status.list("currentMetrics");
    let used = |metric: &Value| metric.at(["resource", "current", "averageUtilization"]).cloned();
    // kube-apiserver overwrites the field with each status of this form, so that the last one stays.
    if let Some(percent) = current.iter().filter(|m| is_cpu(m)).filter_map(used).next_back() {
        new_status.insert("currentCPUUtilizationPercentage", percent);
    }
    if !current.is_empty() {
        let current: Vec<Value> = current
            .iter()
            .map(|m| metric_to_v1(m, MetricsPart::Status))
            .collect();
        annotations.push((CURRENT_METRICS, encode(&current, "MetricStatus")));
    }
    let conditions = status.list("conditions");
    if !conditions.is_empty() {
        annotations.push((CONDITIONS, encode(conditions, "HorizontalPodAutoscalerCondition")));
    }
    object.insert("status", new_status.into());
    set_annotations(object, annotations);
}

/// Converts an autoscaler of `autoscaling/v1` to `autoscaling/v2`.
pub fn autoscaler_from_v1(object: &mut Map) {
    object.insert("apiVersion", "autoscaling/v2".into());
    let spec = object.remove("spec").unwrap_or_default();
    let status = object.remove("status").unwrap_or_default();
    let annotations = object
        .get("metadata")
        .and_then(|m| m.get("annotations"))
        .cloned()
        .unwrap_or_default();
    // kube-apiserver ignores an annotation that it cannot decode.
    let kept = |name: &str, ty: &str| decode(annotations.get(name)?.as_str()?, ty);

    let mut new_spec = members(&spec, &SPEC);
    let own = spec
        .get("targetCPUUtilizationPercentage")
        .and_then(Value::as_int)
        .map(cpu_utilization);
    let others = kept(METRICS, "MetricSpec").unwrap_or_default();
    let mut metrics: Vec<Value> = others
        .iter()
        .map(|m| metric_from_v1(m, MetricsPart::Spec))
        .collect();
    metrics.extend(own);
    // The controller of v1 applied this default. Here, the metrics of the annotation are known as well.
    if metrics.is_empty() {
        metrics.push(cpu_utilization(DEFAULT_CPU_UTILIZATION));
    }
    new_spec.insert("metrics", Value::Array(metrics));
    let behavior = annotations.get(BEHAVIOR).and_then(Value::as_str).and_then(parse);
    if let Some(behavior) = behavior.as_ref().map(with_json_names)
        && behavior.as_object().is_some_and(|b| !b.is_empty())
    {
        new_spec.insert("behavior", behavior);
    }
    object.insert("spec", new_spec.into());

    let mut new_status = members(&status, &STATUS);
    // The annotation has more information than the field of v1.
    let current = kept(CURRENT_METRICS, "MetricStatus")
        .map(|current| {
            current
                .iter()
                .map(|m| metric_from_v1(m, MetricsPart::Status))
                .collect()
        })
        .or_else(|| {
            let percent = status.get("currentCPUUtilizationPercentage")?.as_int()?;
            Some(vec![current_cpu_utilization(percent)])
        });
    if let Some(current) = current {
        new_status.insert("currentMetrics", Value::Array(current));
    }
    if let Some(conditions) = kept(CONDITIONS, "HorizontalPodAutoscalerCondition") {
        new_status.insert("conditions", Value::Array(conditions));
    }
    object.insert("status", new_status.into());
    set_annotations(object, Vec::new());
}

fn current_cpu_utilization(percent: i64) -> Value {
    let current = Map::from_iter([("averageUtilization", Value::Int(percent))]);
    let resource = Map::from_iter([("name", Value::from("cpu")), ("current", current.into())]);
    Map::from_iter([("type", Value::from("Resource")), ("resource", resource.into())]).into()
}

/// The members of those names that an object has.
fn members(object: &Value, names: &[&'static str]) -> Map {
    let member = |name: &&'static str| Some((*name, object.get(name)?.clone()));
    names.iter().filter_map(member).collect()
}

/// Removes the annotations that only v1 has: v2 has fields for them.
pub(super) fn drop_annotations(object: &mut Map) {
    set_annotations(object, Vec::new());
}

/// Replaces all annotations that conversions write.
fn set_annotations(object: &mut Map, annotations: Vec<(&'static str, String)>) {
    let Some(metadata) = object_in(object, "metadata") else {
        return;
    };
    // An object without annotations does not get an empty map.
    if annotations.is_empty() && !metadata.contains_key("annotations") {
        return;
    }
    if let Some(all) = object_in(metadata, "annotations") {
        ANNOTATIONS.iter().for_each(|name| drop(all.remove(name)));
        for (name, text) in annotations {
            all.insert(name, text.into());
        }
        if all.is_empty() {
            metadata.remove("annotations");
        }
    }
}

fn names_of(source: &(&str, RenamedFields, RenamedFields), part: MetricsPart) -> RenamedFields {
    match part {
        MetricsPart::Spec => source.1,
        MetricsPart::Status => source.2,
    }
}

fn metric_to_v1(metric: &Value, part: MetricsPart) -> Value {
    let mut converted = members(metric, &["type"]);
    for source in SOURCES {
        let Some(value) = metric.get(source.0) else {
            continue;
        };
        let renamed =
            |(path, name): &(&[&str], &'static str)| Some((*name, value.at(path.iter().copied())?.clone()));
        let members: Map = names_of(source, part).iter().filter_map(renamed).collect();
        converted.insert(source.0, members.into());
    }
    converted.into()
}

fn metric_from_v1(metric: &Value, part: MetricsPart) -> Value {
    let mut converted = members(metric, &["type"]);
    for source in SOURCES {
        let Some(value) = metric.get(source.0) else {
            continue;
        };
        let mut members = Map::new();
        for (path, name) in names_of(source, part) {
            if let Some(value) = value.get(name) {
                insert_at(&mut members, path, value.clone());
            }
        }
        if part == MetricsPart::Spec {
            complete_target(source.0, &mut members);
        }
        converted.insert(source.0, members.into());
    }
    converted.into()
}

fn insert_at(object: &mut Map, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => drop(object.insert(*name, value)),
        [name, rest @ ..] => {
            if let Some(inner) = object_in(object, name) {
                insert_at(inner, rest, value);
            }
        }
    }
}

/// Sets the type of a target, which v1 does not have.
fn complete_target(source: &str, members: &mut Map) {
    let Some(target) = object_in(members, "target") else {
        return;
    };
    let has = |target: &Map, name| target.contains_key(name);
    let kind = match source {
        "object" if has(target, "averageValue") => {
            // v1 cannot omit the value, which would be 0.
            if target.get_str("value") == "0" {
                target.remove("value");
            }
            "AverageValue"
        }
        "object" => "Value",
        "external" if has(target, "value") => "Value",
        "resource" | "containerResource" if has(target, "averageUtilization") => "Utilization",
        _ => "AverageValue",
    };
    target.insert("type", kind.into());
}

/// Writes structs of v1 as JSON.
fn encode(items: &[Value], ty: &str) -> String {
    let table = TypeTable::latest();
    let definition = table.known(PACKAGE, ty);
    let mut out = b"[".to_vec();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        let members = item.as_object().cloned().unwrap_or_default();
        table.write_json(definition, &table.canonical(definition, members).into(), &mut out);
    }
    out.push(b']');
    // The writer emits valid UTF-8.
    String::from_utf8_lossy(&out).into_owned()
}

/// Reads a list of structs of v1. Returns `None` if the text is something else.
fn decode(text: &str, ty: &str) -> Option<Vec<Value>> {
    let table = TypeTable::latest();
    let definition = table.known(PACKAGE, ty);
    let items = parse(text)?;
    let decode = |item: &Value| {
        let decoded = table
            .decode(definition, item.clone(), scantling_apitypes::Extensions::NONE)
            .ok()?;
        Some(Value::Object(decoded.members))
    };
    items.as_array()?.iter().map(decode).collect()
}

fn parse(text: &str) -> Option<Value> {
    json::decode(text.as_bytes(), Limits::default()).ok()
}

/// The members of a behavior under their JSON names, without unset ones. Go reads names in any case.
fn with_json_names(value: &Value) -> Value {
    const NAMES: [&str; 9] = [
        "scaleUp",
        "scaleDown",
        "stabilizationWindowSeconds",
        "selectPolicy",
        "policies",
        "tolerance",
        "type",
        "value",
        "periodSeconds",
    ];
    match value {
        Value::Object(members) => {
            let renamed = |(key, value): (&scantling_value::Str, &Value)| {
                let name = NAMES.iter().find(|name| name.eq_ignore_ascii_case(key))?;
                (!value.is_null()).then(|| (*name, with_json_names(value)))
            };
            Value::Object(members.iter().filter_map(renamed).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(with_json_names).collect()),
        other => other.clone(),
    }
}
