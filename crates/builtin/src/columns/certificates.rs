//! Cells of the group `certificates.k8s.io`.

use super::text::{NONE, age, labels, name, text, text_or};
use super::{Printer, Printing};
use scantling_notation::duration::human_duration;
use scantling_value::Value;

const GROUP: &str = "certificates.k8s.io";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "CertificateSigningRequest", signing_request),
    (GROUP, "ClusterTrustBundle", |o, _| {
        vec![name(o), text_or(o, ["spec", "signerName"], NONE)]
    }),
    (GROUP, "PodCertificateRequest", pod_certificate_request),
];

fn signing_request(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let seconds = object.at(["spec", "expirationSeconds"]).and_then(Value::as_int);
    let duration = seconds.map_or_else(|| NONE.to_owned(), human_duration);
    vec![
        name(object),
        age(object, printing),
        text_or(object, ["spec", "signerName"], NONE),
        text(object, ["spec", "username"]),
        duration.into(),
        signing_status(object).into(),
    ]
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
    let field = |name| text(object, ["spec", name]);
    vec![
        name(object),
        field("podName"),
        field("serviceAccountName"),
        field("nodeName"),
        field("signerName"),
        state.map_or("Pending", |c| c.get_str("type")).into(),
        labels(object.at(["spec", "unverifiedUserAnnotations"])).into(),
    ]
}
