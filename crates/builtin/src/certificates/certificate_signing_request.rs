//! CertificateSigningRequest.

use super::pem;
use crate::checks::update::keep;
use crate::checks::{Report, Rule, names};
use crate::prepare::{clear_status, object_if_set, object_in, objects_in};
use crate::{Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A request for a certificate.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        // kube-apiserver only requires that the name can be part of a path.
        names: NameRule::PathSegment,
        selectable: &["spec.signerName"],
        keeps: &[&["spec"], &["status"]],
        status_keeps: &[&["spec"], &["status", "conditions"]],
        approval_keeps: &[&["spec"], &["status", "certificate"]],
        ..KindFacts::new("certificates.k8s.io", "CertificateSigningRequest")
    })
};

const MIN_EXPIRATION_SECONDS: i64 = 600;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

/// The conditions that approvers set.
const APPROVALS: [&str; 2] = ["Approved", "Denied"];

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

fn prepare(object: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            set_requester(object, write);
            clear_status(object, ("certificates/v1", "CertificateSigningRequestSpec"));
        }
        (Operation::Update(old), Subresource::Status) => {
            keep(object, old, "spec");
            // Decisions have a subresource of their own. If their number changes, validation refuses the update.
            APPROVALS
                .iter()
                .for_each(|kind| keep_conditions(object, old, kind));
            set_times(object, old, write.context.now);
        }
        (Operation::Update(old), Subresource::Approval) => {
            set_times(object, old, write.context.now);
            let conditions = object
                .get("status")
                .and_then(|status| status.get("conditions"))
                .cloned();
            keep(object, old, "spec");
            keep(object, old, "status");
            if let Some(status) = object_in(object, "status") {
                status.insert(
                    "conditions",
                    conditions.unwrap_or_else(|| Value::Array(Vec::new())),
                );
            }
        }
        (Operation::Update(old), _) => {
            keep(object, old, "spec");
            keep(object, old, "status");
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    check_spec(&root.field("spec"), write, errors);
    let status = root.field("status");
    check_conditions(&status.field("conditions"), write, errors);
    check_certificate(&status.field("certificate"), write, errors);
    if let Some(old) = write.old() {
        check_update(&status, old, write.subresource, errors);
    }
}

/// The requester is the user who sends the request.
fn set_requester(object: &mut Map, write: &Write<'_>) {
    // The identity is that of the authenticated user: a client cannot request a certificate as somebody else.
    if let Some(spec) = object_in(object, "spec") {
        ["uid", "groups", "extra"]
            .iter()
            .for_each(|member| drop(spec.remove(member)));
        let user = write.context.user;
        spec.insert("username", user.name.into());
        if !user.uid.is_empty() {
            spec.insert("uid", user.uid.into());
        }
        if !user.groups.is_empty() {
            spec.insert("groups", user.groups.to_vec().into());
        }
        if let Some(extra) = user.extra.filter(|extra| !extra.is_empty()) {
            let extra: Map = extra
                .iter()
                .map(|(key, values)| (key.as_str(), values.clone().into()))
                .collect();
            spec.insert("extra", extra.into());
        }
    }
}

fn conditions_of(object: &Value) -> &[Value] {
    object.list_at(["status", "conditions"])
}

fn of_type<'v>(conditions: &'v [Value], kind: &str) -> Vec<&'v Value> {
    conditions
        .iter()
        .filter(|condition| condition.get_str("type") == kind)
        .collect()
}

/// Restores conditions of a type, unless their number changes.
fn keep_conditions(object: &mut Map, old: &Value, kind: &str) {
    let old = of_type(conditions_of(old), kind);
    let Some(status) = object_if_set(object, "status") else {
        return;
    };
    let is_kind = |condition: &&mut Map| condition.get_str("type") == kind;
    if objects_in(status, "conditions").filter(is_kind).count() != old.len() {
        return;
    }
    for (new, old) in objects_in(status, "conditions").filter(is_kind).zip(old) {
        if let Some(old) = old.as_object() {
            new.clone_from(old);
        }
    }
}

/// Sets times of conditions that have none. A condition that is there already keeps its time of transition.
fn set_times(object: &mut Map, old: &Value, now: &str) {
    let Some(status) = object_if_set(object, "status") else {
        return;
    };
    for condition in objects_in(status, "conditions") {
        if condition.get_str("lastUpdateTime").is_empty() {
            condition.insert("lastUpdateTime", now.into());
        }
        if condition.get_str("lastTransitionTime").is_empty() {
            let is_same = |old: &&Value| {
                ["type", "status"]
                    .iter()
                    .all(|member| old.get_str(member) == condition.get_str(member))
                    && !old.get_str("lastTransitionTime").is_empty()
            };
            let stored = conditions_of(old).iter().find(is_same);
            let time = stored
                .map_or(now, |old| old.get_str("lastTransitionTime"))
                .to_owned();
            condition.insert("lastTransitionTime", time.into());
        }
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let old_spec = write.old().and_then(|old| old.get("spec"));
    let request = spec.field("request");
    if let Err(why) = pem::check_request(request.str()) {
        // Go prints empty bytes as `null`.
        let shown = request
            .value()
            .filter(|_| !request.str().is_empty())
            .cloned()
            .unwrap_or_default();
        errors.invalid_value(&request, shown, why);
    }
    let usages = spec.field("usages");
    Rule::Required.check(&usages, errors);
    let old_usages: Vec<&str> = old_spec
        .map_or(&[][..], |spec| spec.list("usages"))
        .iter()
        .filter_map(Value::as_str)
        .collect();
    // Older servers accepted unknown and repeated usages, and the spec is immutable.
    let had_unknown = old_usages.iter().any(|usage| !USAGES.contains(usage));
    let had_duplicates = old_usages.iter().collect::<BTreeSet<_>>().len() < old_usages.len();
    for usage in usages.items() {
        if !had_unknown && !USAGES.contains(&usage.str()) {
            errors.not_supported(&usage, USAGES);
        }
    }
    let mut seen = BTreeSet::new();
    for usage in usages.items() {
        if !seen.insert(usage.str()) && !had_duplicates {
            errors.duplicate(&usage, usage.str());
        }
    }
    let signer = spec.field("signerName");
    let was_legacy = old_spec.is_some_and(|spec| spec.get_str("signerName") == LEGACY_SIGNER);
    if signer.str() == LEGACY_SIGNER && !was_legacy {
        errors.invalid(
            &signer,
            "the legacy signerName is not allowed via this API version",
        );
    } else {
        names::signer_name(&signer, errors);
    }
    let expiration = spec.field("expirationSeconds");
    if expiration.is_set() && expiration.int() < MIN_EXPIRATION_SECONDS {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&expiration, why);
    }
}

/// Conditions have unique types. What a decision says is true, and there is one decision.
fn check_conditions(conditions: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let old = write.old().map_or(&[][..], conditions_of);
    let mut old_counts: BTreeMap<&str, usize> = BTreeMap::new();
    for condition in old {
        *old_counts.entry(condition.get_str("type")).or_default() += 1;
    }
    let had_duplicates = old_counts.values().any(|count| *count > 1);
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let kind = condition.field("type");
        if kind.str().is_empty() && !old_counts.contains_key("") {
            errors.required(&kind, "");
        }
        let allowed: &[&str] = match kind.str() {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        let status = condition.field("status");
        if status.str().is_empty() {
            errors.required(&status, "");
        } else if !allowed.contains(&status.str()) {
            errors.not_supported(&status, allowed);
        }
        if !seen.insert(kind.str()) && !had_duplicates {
            errors.duplicate(&kind, kind.str());
        }
    }
    let had_both = APPROVALS.iter().all(|kind| old_counts.contains_key(kind));
    if !had_both && APPROVALS.iter().all(|kind| seen.contains(kind)) {
        let [a, b] = APPROVALS.map(|kind| format!("conditions[{{\"type\": \"{kind}\"}}]"));
        let why = format!("must specify at most one of: `{a}`, `{b}`");
        errors.invalid_value(conditions, format!("{{{a}, {b}}}"), why);
    }
}

/// A certificate is checked where it changes, unless the stored one is invalid already.
fn check_certificate(certificate: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let old = write.old().map(|old| old.str_at(["status", "certificate"]));
    let is_tolerated = |old: &str| old == certificate.str() || pem::check_certificates(old).is_err();
    if old.is_some_and(is_tolerated) {
        return;
    }
    if let Err(why) = pem::check_certificates(certificate.str()) {
        errors.invalid_value(certificate, "<certificate data>", why);
    }
}

/// Decisions stay; only approvers make them, and only signers set the certificate, once.
fn check_update(status: &Cursor<'_, '_>, old: &Value, subresource: Subresource, errors: &mut ErrorList) {
    let conditions = status.field("conditions");
    let (new_list, old_list) = (conditions.list(), conditions_of(old));
    for kind in ["Approved", "Denied", "Failed"] {
        if of_type(new_list, kind).len() < of_type(old_list, kind).len() {
            errors.forbidden(
                &conditions,
                format!("updates may not remove a condition of type \"{kind}\""),
            );
        }
    }
    if subresource != Subresource::Approval {
        for kind in APPROVALS {
            let (new, old) = (of_type(new_list, kind), of_type(old_list, kind));
            if new.len() > old.len() {
                errors.forbidden(
                    &conditions,
                    format!("updates may not add a condition of type \"{kind}\""),
                );
            }
        }
    }
    let certificate = status.field("certificate");
    let old_certificate = old.str_at(["status", "certificate"]);
    if certificate.str() != old_certificate {
        if subresource != Subresource::Status {
            errors.forbidden(&certificate, "updates may not set certificate content");
        } else if !old_certificate.is_empty() {
            errors.forbidden(
                &certificate,
                "updates may not modify existing certificate content",
            );
        }
    }
}
