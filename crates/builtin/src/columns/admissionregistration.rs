//! Cells of the group `admissionregistration.k8s.io`.

use super::text::{UNSET, age, length, name, text};
use super::{Printer, Printing};
use scantling_value::{Map, Value};

const GROUP: &str = "admissionregistration.k8s.io";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "MutatingAdmissionPolicy", |o, p| policy(o, p, "mutations")),
    (GROUP, "MutatingAdmissionPolicyBinding", binding),
    (GROUP, "MutatingWebhookConfiguration", webhooks),
    (GROUP, "ValidatingAdmissionPolicy", |o, p| {
        policy(o, p, "validations")
    }),
    (GROUP, "ValidatingAdmissionPolicyBinding", binding),
    (GROUP, "ValidatingWebhookConfiguration", webhooks),
];

fn webhooks(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    vec![name(object), length(object, ["webhooks"]), age(object, printing)]
}

fn policy(object: &Value, printing: &Printing<'_>, field: &str) -> Vec<Value> {
    let kind = object.at(["spec", "paramKind"]).filter(|k| !k.is_null());
    let kind = kind.map_or_else(
        || UNSET.to_owned(),
        |k| format!("{}/{}", k.get_str("apiVersion"), k.get_str("kind")),
    );
    vec![
        name(object),
        length(object, ["spec", field]),
        kind.into(),
        age(object, printing),
    ]
}

fn binding(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let reference = object.at(["spec", "paramRef"]);
    let param = match reference.map(|r| (r.get_str("namespace"), r.get_str("name"), r.get("selector"))) {
        Some((_, "", Some(selector))) if !selector.is_null() => go_selector(selector),
        None | Some((_, "", _)) => UNSET.to_owned(),
        Some(("", name, _)) => format!("*/{name}"),
        Some((namespace, name, _)) => format!("{namespace}/{name}"),
    };
    vec![
        name(object),
        text(object, ["spec", "policyName"]),
        param.into(),
        age(object, printing),
    ]
}

/// A label selector as Go prints the generated type.
fn go_selector(selector: &Value) -> String {
    let labels = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .map_or(&[][..], Map::entries);
    let labels: String = labels
        .iter()
        .map(|(k, v)| format!("{k}: {},", v.as_str().unwrap_or("")))
        .collect();
    let requirements = selector.list("matchExpressions").iter().map(|r| {
        let values: Vec<&str> = r.list("values").iter().filter_map(Value::as_str).collect();
        format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
            r.get_str("key"),
            r.get_str("operator"),
            values.join(" ")
        )
    });
    let requirements: String = requirements.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{requirements}}},}}"
    )
}
