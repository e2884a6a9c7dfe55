//! Computed cells of groups with few of them.

use super::text::{NONE, UNSET, condition, flag, int, is_deleted};
use super::{Printer, Printing};
use scantling_notation::duration::human_duration;
use scantling_value::{Map, Value};

const ADMISSION: &str = "admissionregistration.k8s.io";
const CERTIFICATES: &str = "certificates.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The printers of these groups.
pub(super) const PRINTERS: &[Printer] = &[
    (ADMISSION, "MutatingAdmissionPolicy", param_kind),
    (ADMISSION, "MutatingAdmissionPolicyBinding", param_ref),
    (ADMISSION, "ValidatingAdmissionPolicy", param_kind),
    (ADMISSION, "ValidatingAdmissionPolicyBinding", param_ref),
    ("apiextensions.k8s.io", "CustomResourceDefinition", definition),
    ("apiregistration.k8s.io", "APIService", api_service),
    (CERTIFICATES, "CertificateSigningRequest", signing_request),
    (CERTIFICATES, "PodCertificateRequest", pod_certificate_request),
    (FLOW_CONTROL, "FlowSchema", |object, _| {
        match condition(object, "Dangling") {
            "" => vec!["?".into()],
            status => vec![status.into()],
        }
    }),
    (FLOW_CONTROL, "PriorityLevelConfiguration", priority_level),
    ("policy", "PodDisruptionBudget", disruption_budget),
    (RBAC, "ClusterRoleBinding", role_binding),
    (RBAC, "RoleBinding", role_binding),
    ("resource.k8s.io", "ResourceClaim", |object, _| {
        vec![claim_state(object).into()]
    }),
    ("storagemigration.k8s.io", "StorageVersionMigration", migration),
];

fn definition(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let label = |version: &Value| {
        let mark = if flag(version, ["storage"]) {
            "(storage)"
        } else {
            ""
        };
        flag(version, ["served"]).then(|| format!("{}{mark}", version.get_str("name")))
    };
    let versions = object.list_at(["spec", "versions"]).iter();
    let mut versions: Vec<String> = versions.filter_map(label).collect();
    versions.sort_unstable();
    vec![
        versions.join(",").into(),
        (condition(object, "Established") == "True").into(),
    ]
}

fn param_kind(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let kind = object.at(["spec", "paramKind"]).filter(|k| !k.is_null());
    let kind = kind.map_or_else(
        || UNSET.to_owned(),
        |k| format!("{}/{}", k.get_str("apiVersion"), k.get_str("kind")),
    );
    vec![kind.into()]
}

fn param_ref(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let reference = object.at(["spec", "paramRef"]);
    let param = match reference.map(|r| (r.get_str("namespace"), r.get_str("name"), r.get("selector"))) {
        Some((_, "", Some(selector))) if !selector.is_null() => go_selector(selector),
        None | Some((_, "", _)) => UNSET.to_owned(),
        Some(("", name, _)) => format!("*/{name}"),
        Some((namespace, name, _)) => format!("{namespace}/{name}"),
    };
    vec![param.into()]
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

fn api_service(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let service = object.at(["spec", "service"]).filter(|s| !s.is_null());
    let service = service.map_or_else(
        || "Local".to_owned(),
        |s| format!("{}/{}", s.get_str("namespace"), s.get_str("name")),
    );
    let mut conditions = object.list_at(["status", "conditions"]).iter();
    let available = conditions.find(|c| c.get_str("type") == "Available");
    let available = match available.map(|c| (c.get_str("status"), c.get_str("reason"))) {
        None => "Unknown".to_owned(),
        Some((status @ "True", _) | (status, "")) => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![service.into(), available.into()]
}

fn signing_request(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let seconds = object.at(["spec", "expirationSeconds"]).and_then(Value::as_int);
    let duration = seconds.map_or_else(|| NONE.to_owned(), human_duration);
    vec![duration.into(), signing_status(object).into()]
}

fn signing_status(request: &Value) -> String {
    let conditions = request.list_at(["status", "conditions"]);
    let has = |kind: &str| conditions.iter().any(|c| c.get_str("type") == kind);
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !request.str_at(["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    status
}

fn pod_certificate_request(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    // kube-apiserver overwrites the state in a loop, so that the last condition decides.
    let mut conditions = object.list_at(["status", "conditions"]).iter().rev();
    let state = conditions.find(|c| matches!(c.get_str("type"), "Issued" | "Denied" | "Failed"));
    vec![state.map_or("Pending", |c| c.get_str("type")).into()]
}

fn priority_level(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let set = |v: &&Value| !v.is_null();
    let limited = object.at(["spec", "limited"]).filter(set);
    let queuing = limited
        .and_then(|l| l.at(["limitResponse", "queuing"]))
        .filter(set);
    let number = |holder: Option<&Value>, field| holder.map_or(NONE.into(), |h| Value::Int(int(h, [field])));
    vec![
        number(limited, "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
    ]
}

/// Orders flow schemas by precedence, then by name.
pub(super) fn by_precedence(schemas: &mut [Value]) {
    schemas.sort_by_cached_key(|schema| {
        let precedence = int(schema, ["spec", "matchingPrecedence"]);
        (precedence, schema.str_at(["metadata", "name"]).to_owned())
    });
}

fn disruption_budget(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let bound = |field| match object.at(["spec", field]) {
        None | Some(Value::Null) => Value::from("N/A"),
        Some(Value::Int(number)) => number.to_string().into(),
        Some(other) => other.clone(),
    };
    vec![bound("minAvailable"), bound("maxUnavailable")]
}

fn role_binding(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let role = ["kind", "name"].map(|field| object.str_at(["roleRef", field]));
    let subjects = |kind: &str| {
        let subjects = object
            .list("subjects")
            .iter()
            .filter(|s| s.get_str("kind") == kind);
        let texts: Vec<String> = subjects
            .map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", s.get_str("namespace"), s.get_str("name")),
                _ => s.get_str("name").to_owned(),
            })
            .collect();
        Value::from(texts.join(", "))
    };
    vec![
        role.join("/").into(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn claim_state(claim: &Value) -> &'static str {
    let is_allocated = claim.at(["status", "allocation"]).is_some_and(|a| !a.is_null());
    let is_reserved = !claim.list_at(["status", "reservedFor"]).is_empty();
    match (is_deleted(claim), is_allocated, is_reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}

fn migration(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let resource = match object.str_at(["spec", "resource", "group"]) {
        "" => object.str_at(["spec", "resource", "resource"]).to_owned(),
        group => format!("{}.{group}", object.str_at(["spec", "resource", "resource"])),
    };
    // kube-apiserver overwrites the state in a loop, so that the last condition decides.
    let conditions = object.list_at(["status", "conditions"]).iter().rev();
    let mut reached = conditions
        .filter(|c| c.get_str("status") == "True")
        .map(|c| c.get_str("type"));
    let state = reached.find(|state| matches!(*state, "Running" | "Failed" | "Succeeded"));
    vec![resource.into(), state.unwrap_or("Unknown").into()]
}
