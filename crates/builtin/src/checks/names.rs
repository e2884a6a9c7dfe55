//! Forms of names. Each check returns what is wrong, and nothing where the text is well formed.

use super::Report;
use crate::Cursor;
pub(crate) use scantling_notation::names::{config_key, format_message};
pub(crate) use scantling_schema::names::{
    dns1035_label, dns1123_label, dns1123_subdomain, label_key, label_value,
};
use scantling_value::{ErrorList, FieldError};

/// The most bytes of a DNS subdomain.
const MAX_SUBDOMAIN: usize = 253;

fn too_long(s: &str, max: usize) -> Vec<String> {
    match s.len() > max {
        true => vec![format!("must be no more than {max} characters")],
        false => Vec::new(),
    }
}

/// Labels joined by dots that may contain underscores.
pub(crate) fn subdomain_with_underscore(s: &str) -> Vec<String> {
    let is_end = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let ends = label
            .first()
            .zip(label.last())
            .is_some_and(|(a, z)| is_end(*a) && is_end(*z));
        ends && label.iter().all(|b| is_end(*b) || matches!(b, b'-' | b'_'))
    };
    let mut errors = too_long(s, MAX_SUBDOMAIN);
    if !s.split('.').all(is_label) {
        const LABEL: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        errors.push(format_message(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must \
             start and end with an alphanumeric character",
            &["example.com"],
            &format!("{LABEL}(\\.{LABEL})*"),
        ));
    }
    errors
}

/// A subdomain after `*.`.
pub(crate) fn wildcard_subdomain(s: &str) -> Vec<String> {
    let mut errors = too_long(s, MAX_SUBDOMAIN);
    let is_subdomain = |rest: &str| {
        let wrong = dns1123_subdomain(rest);
        // The length is reported separately: a name that is merely too long has the form.
        wrong.is_empty() || (rest.len() > MAX_SUBDOMAIN && wrong.len() == 1)
    };
    if !s.strip_prefix("*.").is_some_and(is_subdomain) {
        errors.push(format_message(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
             lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
            &["*.example.com"],
            "\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        ));
    }
    errors
}

/// The name of a port, as IANA registers them.
pub(crate) fn port_name(s: &str) -> Vec<String> {
    let mut errors = too_long(s, 15);
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if s.is_empty() || !s.bytes().all(is_plain) {
        errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !s.bytes().any(|b| b.is_ascii_lowercase()) {
        errors.push("must contain at least one letter (a-z)".into());
    }
    if s.contains("--") {
        errors.push("must not contain consecutive hyphens".into());
    }
    if s.starts_with('-') || s.ends_with('-') {
        errors.push("must not begin or end with a hyphen".into());
    }
    errors
}

/// A percentage: digits and `%`.
pub(crate) fn percent(s: &str) -> Vec<String> {
    let digits = s.strip_suffix('%').unwrap_or("");
    match !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        true => Vec::new(),
        false => vec![format_message(
            "a valid percent string must be a numeric string followed by an ending '%'",
            &["1%", "93%"],
            "[0-9]+%",
        )],
    }
}

/// The name of an HTTP header.
pub(crate) fn header_name(s: &str) -> Vec<String> {
    match !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        true => Vec::new(),
        false => vec![format_message(
            "a valid HTTP header must consist of alphanumeric characters or '-'",
            &["X-Header-Name"],
            "[-A-Za-z0-9]+",
        )],
    }
}

/// The name of an environment variable, by the relaxed rules of Kubernetes 1.34 and later.
pub(crate) fn relaxed_env_name(s: &str) -> Vec<String> {
    if s.is_empty() {
        return vec!["environment variable name must be non-empty".into()];
    }
    match s.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        true => Vec::new(),
        false => vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='".into(),
        ],
    }
}

/// The name of an environment variable, by the rules before Kubernetes 1.34.
pub(crate) fn env_name(s: &str) -> Vec<String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let mut errors = Vec::new();
    if s.is_empty() || s.starts_with(|c: char| c.is_ascii_digit()) || !s.bytes().all(is_plain) {
        errors.push(format_message(
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must \
             not start with a digit",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
        ));
    }
    match s {
        "." | ".." => errors.push(format!("must not be '{s}'")),
        _ if s.starts_with("..") => errors.push("must not start with '..'".into()),
        _ => {}
    }
    errors
}

/// An identifier of C.
pub(crate) fn c_identifier(s: &str) -> Vec<String> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match !s.is_empty() && !s.starts_with(|c: char| c.is_ascii_digit()) && s.bytes().all(is_plain) {
        true => Vec::new(),
        false => vec![format_message(
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
             characters or '_'",
            &["my_name", "MY_NAME", "MyName"],
            "[A-Za-z_][A-Za-z0-9_]*",
        )],
    }
}

/// An integer as people write it: no leading zeros, no plus sign.
pub(crate) fn decimal_integer(s: &str) -> Vec<String> {
    if s.is_empty() {
        return vec!["must be non-empty".into()];
    }
    let digits = s.strip_prefix('-').unwrap_or(s);
    let starts = digits.starts_with(|c: char| matches!(c, '1'..='9'));
    match s == "0" || (starts && digits.bytes().all(|b| b.is_ascii_digit())) {
        true => Vec::new(),
        false => vec!["must be a valid decimal integer in canonical form".into()],
    }
}

/// The name of a kind, a resource or a finalizer with a domain: `example.com/name`.
pub(crate) fn domain_prefixed_key(at: &Cursor<'_, '_>, key: &str, errors: &mut ErrorList) {
    if key.is_empty() {
        return errors.required(at, "");
    }
    let wrong = label_key(key);
    if wrong.is_empty() && !key.contains('/') {
        let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
        return errors.invalid_value(at, key, why);
    }
    for why in wrong {
        errors.invalid_value(at, key, why);
    }
}

/// A path after a domain: `example.com/a/path`.
pub(crate) fn domain_prefixed_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let text = at.str();
    if text.is_empty() {
        return errors.required(at, "");
    }
    let parts = text
        .split_once('/')
        .filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = parts else {
        return errors.invalid(at, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    for why in dns1123_subdomain(host) {
        errors.invalid_value(at, host, why);
    }
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
    if !path.bytes().all(is_plain) {
        let why = format_message("Invalid path", &[], "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+");
        errors.invalid_value(at, path, why);
    }
}

/// A domain of at least three labels.
pub(crate) fn fully_qualified_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let name = at.str();
    if name.is_empty() {
        return errors.required(at, "");
    }
    let wrong = dns1123_subdomain(name);
    if !wrong.is_empty() {
        errors.invalid(at, wrong.join(","));
    } else if name.split('.').count() < 3 {
        errors.invalid(
            at,
            "should be a domain with at least three segments separated by dots",
        );
    }
}

/// A domain of at least two labels; a final dot is allowed.
pub(crate) fn fully_qualified_domain_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    // A final dot marks the name as absolute.
    let name = at.str().strip_suffix('.').unwrap_or(at.str());
    let wrong = dns1123_subdomain(name);
    if !wrong.is_empty() {
        return errors.invalid_value(at, name, wrong.join(","));
    }
    if name.split('.').count() < 2 {
        let why = "should be a domain with at least two segments separated by dots";
        return errors.invalid_value(at, name, why);
    }
    for label in name.split('.') {
        let wrong = dns1123_label(label);
        if !wrong.is_empty() {
            return errors.invalid_value(at, label, wrong.join(","));
        }
    }
}

/// The name of a signer of certificates: `example.com/signer`.
pub(crate) fn signer_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX_PATH: usize = MAX_SUBDOMAIN + 63 + 1;
    let name = at.str();
    if name.is_empty() {
        return errors.required(at, "");
    }
    let parts = name.split_once('/').filter(|(_, path)| !path.contains('/'));
    let Some((domain, path)) = parts else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(at, why);
    };
    if domain.len() > MAX_SUBDOMAIN {
        errors.push_with(|| FieldError::too_long(at.path(), MAX_SUBDOMAIN));
    }
    first_bad_label(at, domain, dns1123_label, errors);
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.invalid_value(at, domain, why);
    }
    first_bad_label(at, path, dns1123_subdomain, errors);
    if name.len() > MAX_SUBDOMAIN + MAX_PATH + 1 {
        errors.push_with(|| FieldError::too_long(at.path(), MAX_SUBDOMAIN + MAX_PATH + 1));
    }
}

/// The maximum lifetime of a certificate of a pod by this signer. Kubernetes' own signers issue for at most a day.
pub(crate) fn max_certificate_seconds(signer: &str) -> i64 {
    const DAY: i64 = 86_400;
    let host = signer.split('/').next().unwrap_or_default();
    let is_of_kubernetes = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    if is_of_kubernetes { DAY } else { 91 * DAY }
}

/// Annotations that a signer of certificates of pods receives: their keys begin with domains.
pub(crate) fn user_annotations(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX_SIZE: usize = 256 << 10;
    let mut size = 0_usize;
    for (key, value) in at.entries() {
        domain_prefixed_key(at, &key.to_lowercase(), errors);
        size = size.saturating_add(key.len()).saturating_add(value.str().len());
    }
    if size > MAX_SIZE {
        errors.push_with(|| FieldError::too_long(at.path(), MAX_SIZE));
    }
}

/// Reports the first part between dots that does not have a form.
fn first_bad_label(at: &Cursor<'_, '_>, text: &str, form: fn(&str) -> Vec<String>, errors: &mut ErrorList) {
    let bad = text
        .split('.')
        .map(|label| (label, form(label)))
        .find(|(_, wrong)| !wrong.is_empty());
    let Some((label, wrong)) = bad else { return };
    let label = scantling_value::go::quote(label);
    for why in wrong {
        errors.invalid_value(at, text, format!("validating label {label}: {why}"));
    }
}

/// Checks a subdomain whose case does not matter, with the text of declarative validation.
pub(crate) fn caseless_subdomain(name: &str) -> Vec<String> {
    const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    const MAX: usize = 253;
    let mut errors = Vec::new();
    if name.len() > MAX {
        errors.push(format!("must be no more than {MAX} bytes"));
    }
    let is_label = |label: &str| {
        let is_inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if !name.split('.').all(is_label) {
        errors.push(format_message(
            "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an \
             alphanumeric character",
            &["Example.com"],
            &format!("{LABEL}(\\.{LABEL})*"),
        ));
    }
    errors
}

/// The reasons why a name is malformed as declarative validation words them: its lengths are in bytes.
pub(crate) fn declared(mut reasons: Vec<String>) -> Vec<String> {
    for reason in &mut reasons {
        if let Some(start) = reason.strip_suffix(" characters") {
            *reason = format!("{start} bytes");
        }
    }
    reasons
}

/// Checks a subdomain, with the text of declarative validation.
pub(crate) fn declared_subdomain(name: &str) -> Vec<String> {
    declared(dns1123_subdomain(name))
}
