//! Metrics by which autoscalers scale.

use super::horizontal_pod_autoscaler::check_path_segment;
use crate::Cursor;
use crate::checks::{Report, Rule, names, resources};
use scantling_value::ErrorList;
use std::cmp::Ordering;

/// The types of metrics with the fields that belong to them, in the order of their names.
const SOURCES: &[(&str, &str)] = &[
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

const TYPES: &[&str] = &["ContainerResource", "External", "Object", "Pods", "Resource"];

/// The fields in the order in which they are looked for; only the first one is checked.
const FIELDS: &[&str] = &["object", "external", "pods", "resource", "containerResource"];

/// The rule for the API version of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionRule {
    /// It is not checked.
    Any,
    /// It may lack a group.
    GroupOptional,
    /// It must have a group.
    GroupRequired,
}

/// Checks a reference to an object.
pub(super) fn check_reference(reference: &Cursor<'_, '_>, rule: VersionRule, errors: &mut ErrorList) {
    check_path_segment(&reference.field("kind"), "", errors);
    check_path_segment(&reference.field("name"), "", errors);
    let version = reference.field("apiVersion");
    let text = version.str();
    if rule == VersionRule::Any {
        return;
    }
    let has_group = text.split_once('/').is_some_and(|(group, _)| !group.is_empty());
    if text.matches('/').count() > 1 {
        errors.invalid(&version, format!("unexpected GroupVersion string: {text}"));
    } else if rule == VersionRule::GroupRequired && !has_group {
        errors.invalid(&version, "apiVersion must specify API group");
    }
}

/// Checks metrics. An autoscaler that scales to zero needs a metric that does not come from pods.
pub(super) fn check_all(
    metrics: &Cursor<'_, '_>,
    scales_to_zero: bool,
    described: VersionRule,
    errors: &mut ErrorList,
) {
    for metric in metrics.items() {
        check(&metric, described, errors);
    }
    let is_outside =
        |metric: &scantling_value::Value| matches!(metric.get_str("type"), "Object" | "External");
    if scales_to_zero && !metrics.list().iter().any(is_outside) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(metrics, why);
    }
}

fn check(metric: &Cursor<'_, '_>, described: VersionRule, errors: &mut ErrorList) {
    let kind = metric.field("type");
    Rule::RequiredFor("must specify a metric source type").check(&kind, errors);
    let expected = SOURCES
        .iter()
        .find(|(name, _)| *name == kind.str())
        .map(|(_, field)| *field);
    if expected.is_none() {
        errors.not_supported(&kind, TYPES);
    }
    let present: Vec<&str> = FIELDS
        .iter()
        .copied()
        .filter(|field| metric.field(field).is_set())
        .collect();
    if let Some(first) = present.first() {
        check_source(first, &metric.field(first), described, errors);
    }
    match expected {
        Some(field) if !metric.field(field).is_set() => {
            let why = "must populate information for the given metric source";
            errors.required(&metric.field(field), why);
        }
        Some(_) => {}
        // The unknown type is reported twice.
        None => errors.not_supported(&kind, TYPES),
    }
    if present.len() != 1 {
        for field in present.iter().filter(|field| Some(**field) != expected) {
            errors.forbidden(&metric.field(field), "must populate the given metric source only");
        }
    }
}

fn check_source(field: &str, source: &Cursor<'_, '_>, described: VersionRule, errors: &mut ErrorList) {
    let target = source.field("target");
    match field {
        "object" => {
            check_reference(&source.field("describedObject"), described, errors);
            check_identifier(&source.field("metric"), errors);
            check_target(&target, errors);
            if !target.field("value").is_set() && !target.field("averageValue").is_set() {
                let why = "must set either a target value or averageValue";
                errors.required(&target.field("averageValue"), why);
            }
        }
        "external" => {
            check_identifier(&source.field("metric"), errors);
            check_target(&target, errors);
            match (
                target.field("value").is_set(),
                target.field("averageValue").is_set(),
            ) {
                (false, false) => {
                    let why = "must set either a target value for metric or a per-pod target";
                    errors.required(&target.field("averageValue"), why);
                }
                (true, true) => {
                    let why = "may not set both a target value for metric and a per-pod target";
                    errors.forbidden(&target.field("value"), why);
                }
                _ => {}
            }
        }
        "pods" => {
            check_identifier(&source.field("metric"), errors);
            check_target(&target, errors);
            if !target.field("averageValue").is_set() {
                let why = "must specify a positive target averageValue";
                errors.required(&target.field("averageValue"), why);
            }
        }
        _ => check_resource(field, source, &target, errors),
    }
}

fn check_resource(field: &str, source: &Cursor<'_, '_>, target: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let name = source.field("name");
    if name.str().is_empty() {
        errors.required(&name, "must specify a resource name");
    } else if field == "containerResource" {
        resources::container_name(name.str(), &name, errors);
    }
    if field == "containerResource" {
        let container = source.field("container");
        if container.str().is_empty() {
            errors.required(&container, "must specify a container");
        } else {
            errors.invalid_for(&container, names::dns1123_label(container.str()));
        }
    }
    check_target(target, errors);
    let (utilization, value) = (target.field("averageUtilization"), target.field("averageValue"));
    match (utilization.is_set(), value.is_set()) {
        (false, false) => {
            let why = "must set either a target raw value or a target utilization";
            errors.required(&utilization, why);
        }
        (true, true) => {
            let why = "may not set both a target raw value and a target utilization";
            errors.forbidden(&value, why);
        }
        _ => {}
    }
}

fn check_identifier(metric: &Cursor<'_, '_>, errors: &mut ErrorList) {
    check_path_segment(&metric.field("name"), "must specify a metric name", errors);
}

fn check_target(target: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let kind = target.field("type");
    Rule::RequiredFor("must specify a metric target type").check(&kind, errors);
    if !matches!(kind.str(), "Utilization" | "Value" | "AverageValue") {
        errors.invalid(&kind, "must be either Utilization, Value, or AverageValue");
    }
    for name in ["value", "averageValue"] {
        let field = target.field(name);
        if field.is_set() && resources::quantity(field.value()).sign() != Ordering::Greater {
            errors.invalid(&field, "must be positive");
        }
    }
    let utilization = target.field("averageUtilization");
    if utilization.is_set() && utilization.int() < 1 {
        errors.invalid(&utilization, "must be greater than 0");
    }
}
