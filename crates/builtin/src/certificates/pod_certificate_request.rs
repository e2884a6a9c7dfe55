//! PodCertificateRequest.

use super::pem;
use crate::checks::pem::blocks;
use crate::checks::update::{IMMUTABLE, same_of, separate_status};
use crate::checks::{Report, conditions, go, names};
use crate::prepare::{clear_status, keep_all_metadata};
use crate::{Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_notation::{duration, timestamp};
use scantling_value::{BadValue, ErrorKind, ErrorList, FieldError, Map, Value};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// A request of a kubelet for a certificate of a pod.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        selectable: &["spec.nodeName", "spec.podName", "spec.signerName"],
        unconditional_update: false,
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new("certificates.k8s.io", "PodCertificateRequest")
    })
};

const PACKAGE: &str = "certificates/v1";
const SPEC: &str = "PodCertificateRequestSpec";
const STATUS: &str = "PodCertificateRequestStatus";

/// The conditions that end a request.
const ISSUED: &str = "Issued";
const ENDS: [&str; 3] = ["Denied", "Failed", ISSUED];

const MAX_UID: usize = 128;
const MAX_REQUEST: usize = 10 * 1024;
const MAX_CHAIN: usize = 100 * 1024;
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    if matches!(write.operation, Operation::Create) {
        clear_status(object, (PACKAGE, SPEC));
    }
    keep_all_metadata(object, write);
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    match (write.old(), write.subresource) {
        (None, _) => check_spec(&spec, errors),
        (Some(old), Subresource::Status) => check_status(&root, old, write.context.now, errors),
        (Some(old), _) => {
            if !same_of(PACKAGE, SPEC, spec.value(), old.get("spec")) {
                errors.invalid_value(&spec, go::structure(PACKAGE, SPEC, spec.value()), IMMUTABLE);
            }
        }
    }
}

fn check_spec(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let signer = spec.field("signerName");
    names::signer_name(&signer, errors);
    names::user_annotations(&spec.field("unverifiedUserAnnotations"), errors);
    for (name, uid) in [
        ("podName", "podUID"),
        ("serviceAccountName", "serviceAccountUID"),
        ("nodeName", "nodeUID"),
    ] {
        let (name, uid) = (spec.field(name), spec.field(uid));
        errors.invalid_for(&name, names::dns1123_subdomain(name.str()));
        if uid.str().is_empty() {
            errors.invalid(&uid, "must not be empty");
        }
        if uid.str().len() > MAX_UID {
            errors.push_with(|| FieldError::too_long(uid.path(), MAX_UID));
        }
    }
    let expiration = spec.field("maxExpirationSeconds");
    if !expiration.is_set() {
        return errors.required(&expiration, "must be set");
    }
    let max = names::max_certificate_seconds(signer.str());
    if !(HOUR..=max).contains(&expiration.int()) {
        errors.invalid(&expiration, format!("must be in the range [{HOUR}, {max}]"));
    }
    let request = spec.field("stubPKCS10Request");
    if request.str().is_empty() {
        let why = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        return errors.invalid_value(spec, BadValue::Omitted, why);
    }
    let der = pem::decode(request.str());
    if der.len() > MAX_REQUEST {
        return errors.push_with(|| FieldError::too_long(request.path(), MAX_REQUEST));
    }
    if let Err((shown, why)) = pem::check_key_of_request(&der) {
        errors.invalid_value(&request, shown, why);
    }
}

fn check_status(root: &Cursor<'_, '_>, old: &Value, now: &str, errors: &mut ErrorList) {
    let status = root.field("status");
    let list = status.field("conditions");
    let before = errors.total();
    check_ends(&list, errors);
    conditions::check(&list, errors);
    if errors.total() > before {
        return;
    }
    let has_ended = |conditions: &[Value], kinds: &[&str]| {
        let is_end = |c: &Value| kinds.contains(&c.get_str("type")) && c.get_str("status") == "True";
        conditions.iter().any(is_end)
    };
    let mut unchanged = |other: Option<&Value>, why: &str| {
        if !same_of(PACKAGE, STATUS, status.value(), other) {
            errors.invalid_value(&status, BadValue::Omitted, why);
        }
    };
    if has_ended(old.list_at(["status", "conditions"]), &ENDS) {
        let why = "immutable after PodCertificateRequest is issued, denied, or failed";
        return unchanged(old.get("status"), why);
    }
    if has_ended(list.list(), &["Denied", "Failed"]) {
        let conditions = list.value().cloned().unwrap_or_default();
        let only_conditions = Map::from_iter([("conditions", conditions)]).into();
        let why =
            "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
        return unchanged(Some(&only_conditions), why);
    }
    if !has_ended(list.list(), &[ISSUED]) {
        let why = r#"status is immutable unless transitioning to "Issued", "Denied", or "Failed""#;
        return unchanged(old.get("status"), why);
    }
    if let Err(error) = check_issued(&status, old, now, errors) {
        errors.push(error);
    }
}

/// There is at most one condition, and it is true.
fn check_ends(list: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut count = 0;
    for (i, condition) in list.items().enumerate() {
        // UPSTREAM: the path has a dot before the index.
        let mut report = |member: &str, value: &str, kind, why: String| {
            let field = format!("status.conditions.[{i}].{member}");
            errors.push_with(|| FieldError::with_field(kind, field, value, why));
        };
        let supported = |values: &[&str]| FieldError::supported_values(values.iter(), |v| (**v).into());
        let (kind, status) = (condition.field("type"), condition.field("status"));
        if !ENDS.contains(&kind.str()) {
            report("type", kind.str(), ErrorKind::NotSupported, supported(&ENDS));
            continue;
        }
        count += 1;
        if count > 1 {
            let why = r#"There may be at most one condition with type "Issued", "Denied", or "Failed""#;
            report("type", kind.str(), ErrorKind::Invalid, why.to_owned());
        }
        if status.str() != "True" {
            report(
                "status",
                status.str(),
                ErrorKind::NotSupported,
                supported(&["True"]),
            );
        }
    }
}

/// Checks the certificates of a request that is issued, and the times that the status repeats.
fn check_issued(
    status: &Cursor<'_, '_>,
    old: &Value,
    now: &str,
    errors: &mut ErrorList,
) -> Result<(), FieldError> {
    let chain = status.field("certificateChain");
    if chain.str().len() > MAX_CHAIN {
        return Err(FieldError::too_long(chain.path(), MAX_CHAIN));
    }
    let refuse = |at: &Cursor<'_, '_>, shown: String, why: &str| {
        Err(FieldError::invalid(at.path(), BadValue::Raw(shown), why))
    };
    let wrong_chain = |why: &str| FieldError::invalid(chain.path(), chain.str(), why);
    let blocks = blocks(chain.str().as_bytes());
    let Some((first, others)) = blocks.split_first() else {
        return Err(wrong_chain(
            "issued certificate chain must contain at least one certificate",
        ));
    };
    if first.label != "CERTIFICATE" {
        let why = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
        return Err(wrong_chain(why));
    }
    let Ok(([], leaf)) = x509_parser::parse_x509_certificate(&first.bytes) else {
        return Err(wrong_chain("leaf certificate does not parse as valid X.509"));
    };
    check_names(&leaf, &chain, errors);
    let request = old.str_at(["spec", "stubPKCS10Request"]);
    if pem::key_of_request(&pem::decode(request)).is_none_or(|key| key != leaf.public_key().raw) {
        return Err(wrong_chain(
            "leaf certificate was not issued to the requested public key",
        ));
    }
    let [begin, end, refresh] = ["notBefore", "notAfter", "beginRefreshAt"].map(|name| status.field(name));
    let before = errors.total();
    for (time, why) in [
        (
            &begin,
            "must be present and consistent with the issued certificate",
        ),
        (&end, "must be present and consistent with the issued certificate"),
        (
            &refresh,
            "must be present and in the range [notbefore+10min, notafter-10min]",
        ),
    ] {
        if !time.is_set() {
            errors.required(time, why);
        }
    }
    if errors.total() > before {
        return Ok(());
    }
    let shown = |at: &Cursor<'_, '_>| {
        timestamp::parse(at.str())
            .map(timestamp::with_zone)
            .unwrap_or_default()
    };
    let seconds = |text: &str| {
        timestamp::parse(text)
            .map(|moment| moment.seconds)
            .unwrap_or_default()
    };
    let (not_before, not_after) = (
        leaf.validity().not_before.timestamp(),
        leaf.validity().not_after.timestamp(),
    );
    if seconds(begin.str()) != not_before {
        let why = "must be set to the NotBefore time encoded in the leaf certificate";
        return refuse(&begin, shown(&begin), why);
    }
    if not_before.abs_diff(seconds(now)) >= (5 * MINUTE).unsigned_abs() {
        let why = "must be set to within 5 minutes of kube-apiserver's current time";
        return refuse(&begin, shown(&begin), why);
    }
    if seconds(end.str()) != not_after {
        let why = "must be set to the NotAfter time encoded in the leaf certificate";
        return refuse(&end, shown(&end), why);
    }
    let lifetime = not_after.saturating_sub(not_before);
    let shown_lifetime = || duration::in_units(lifetime.saturating_mul(1_000_000_000));
    if lifetime < HOUR {
        return refuse(
            &chain,
            shown_lifetime(),
            "leaf certificate lifetime must be >= 1 hour",
        );
    }
    let max = old
        .at(["spec", "maxExpirationSeconds"])
        .and_then(Value::as_int)
        .unwrap_or_default();
    if lifetime > max {
        let why = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({max})");
        return refuse(&chain, shown_lifetime(), &why);
    }
    let renewal = seconds(refresh.str());
    if renewal < not_before.saturating_add(10 * MINUTE) {
        let why = "must be at least 10 minutes after status.notBefore";
        return refuse(&refresh, shown(&refresh), why);
    }
    if renewal > not_after.saturating_sub(10 * MINUTE) {
        let why = "must be at least 10 minutes before status.notAfter";
        return refuse(&refresh, shown(&refresh), why);
    }
    for block in others {
        if block.label != "CERTIFICATE" {
            // UPSTREAM: the word is misspelt.
            let why = "issued certificate chain must consist entirely of CERTFICATE PEM blocks";
            return Err(wrong_chain(why));
        }
        if !matches!(x509_parser::parse_x509_certificate(&block.bytes), Ok(([], _))) {
            return Err(wrong_chain(
                "intermediate certificate does not parse as valid X.509",
            ));
        }
    }
    Ok(())
}

/// Checks the names that a certificate is for.
fn check_names(leaf: &X509Certificate<'_>, chain: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Ok(Some(names)) = leaf.subject_alternative_name() else {
        return;
    };
    for name in &names.value.general_names {
        match name {
            GeneralName::DNSName(name) => {
                let mut report = |why: &str| errors.invalid_value(chain, *name, why);
                if name.is_empty() {
                    report("leaf certificate should not contain empty DNSName");
                }
                if name.contains("..") {
                    report("leaf certificate's DNSName should not contain '..'");
                }
                if name.starts_with('.') || name.ends_with('.') {
                    report("leaf certificate's DNSName should not start or end with '.'");
                }
            }
            GeneralName::RFC822Name(address) => {
                let parts = address.rsplit_once('@').filter(|(local, domain)| {
                    let is_plain = |c: char| c.is_ascii_graphic() && !"()<>[]:;,\\\"".contains(c);
                    !local.is_empty() && !domain.is_empty() && address.chars().all(is_plain)
                });
                if parts.is_none() {
                    let why = "leaf certificate should not contain invalid EmailAddress";
                    errors.invalid_value(chain, *address, why);
                }
            }
            _ => {}
        }
    }
}
