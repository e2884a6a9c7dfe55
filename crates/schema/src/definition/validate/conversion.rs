//! Conversion settings: strategy and webhook.

use super::Requirements;
use crate::definition::{Conversion, Service, WebhookClient};
use crate::names;
use base64::Engine as _;
use scantling_notation::url::Url;
use scantling_value::{ErrorList, FieldError, Path, Str, Value};
use std::collections::BTreeSet;

/// The supported versions of conversion reviews.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Returns whether a list of review versions is empty or contains a supported one.
pub(super) fn is_recognised(versions: Option<&[Str]>) -> bool {
    versions.is_none_or(|versions| {
        versions.is_empty() || versions.iter().any(|v| REVIEW_VERSIONS.contains(&v.as_str()))
    })
}

/// The error of a CA bundle, if it cannot be used.
pub(crate) fn bundle_fault(bundle: &str) -> Option<&'static str> {
    // Text that is not base64 yields no bytes, which are no valid bundle either.
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(bundle)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut rest = &*text;
    let mut fault = None;
    while !rest.is_empty() {
        let Some((label, der, after)) = pem_block(rest) else {
            fault.get_or_insert("unable to parse bytes as PEM block");
            break;
        };
        rest = after;
        if label == "CERTIFICATE" {
            // As in Go, one certificate that can be parsed suffices.
            if is_der_sequence(&der) {
                return None;
            }
            fault.get_or_insert("failed to parse certificate: x509: malformed certificate");
        }
    }
    Some(fault.unwrap_or("no valid certificate authority data seen"))
}

/// The next block of a PEM text: its label, its content, and the rest.
fn pem_block(text: &str) -> Option<(&str, Vec<u8>, &str)> {
    let (_, text) = text.split_once("-----BEGIN ")?;
    let (label, text) = text.split_once("-----")?;
    let (body, rest) = text.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    let der = base64::engine::general_purpose::STANDARD.decode(body).ok()?;
    Some((label, der, rest.trim_start()))
}

/// Returns whether bytes are exactly one ASN.1 sequence.
fn is_der_sequence(bytes: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = bytes else {
        return false;
    };
    match length {
        0..=0x7f => rest.len() == usize::from(*length),
        0x81..=0x84 => {
            let parts = rest.split_at_checked(usize::from(length & 0x7f));
            parts.is_some_and(|(size, content)| {
                content.len() == size.iter().fold(0, |n, b| n << 8 | usize::from(*b))
            })
        }
        _ => false,
    }
}

/// Validates the conversion settings.
pub(super) fn check(
    conversion: &Conversion,
    at: &Path<'_>,
    requirements: &Requirements<'_>,
    errors: &mut ErrorList,
) {
    let at_client = at.field("webhookClientConfig");
    let at_reviews = at.field("conversionReviewVersions");
    match conversion.strategy.as_str() {
        "" => errors.push_with(|| FieldError::required(&at.field("strategy"), "")),
        "None" | "Webhook" => {}
        other => {
            errors.push_with(|| FieldError::not_supported(&at.field("strategy"), other, ["None", "Webhook"]));
        }
    }
    if conversion.strategy == "Webhook" {
        match &conversion.client {
            None => errors
                .push_with(|| FieldError::required(&at_client, "required when strategy is set to Webhook")),
            Some(c) => client(c, &at_client, requirements, errors),
        }
        reviews(
            conversion.review_versions.as_deref().unwrap_or_default(),
            &at_reviews,
            requirements,
            errors,
        );
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if conversion.client.is_some() {
        errors.push_with(|| FieldError::forbidden(&at_client, detail));
    }
    if conversion.review_versions.as_ref().is_some_and(|v| !v.is_empty()) {
        errors.push_with(|| FieldError::forbidden(&at_reviews, detail));
    }
}

fn reviews(versions: &[Str], at: &Path<'_>, requirements: &Requirements<'_>, errors: &mut ErrorList) {
    if versions.is_empty() {
        errors.push_with(|| FieldError::required(at, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, v) in versions.iter().enumerate() {
        if !seen.insert(v) {
            errors.push_with(|| FieldError::invalid(&at.index(i), v.clone(), "duplicate version"));
            continue;
        }
        for fault in names::dns1035_label(v) {
            errors.push_with(|| FieldError::invalid(&at.index(i), v.clone(), fault));
        }
    }
    if requirements.recognised_review && !is_recognised(Some(versions)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push_with(|| FieldError::invalid(at, Value::from(versions.to_vec()), detail));
    }
}

fn client(c: &WebhookClient, at: &Path<'_>, requirements: &Requirements<'_>, errors: &mut ErrorList) {
    match (&c.url, &c.service) {
        (None, None) | (Some(_), Some(_)) => {
            errors.push_with(|| FieldError::required(at, "exactly one of url or service is required"));
        }
        (Some(address), None) => url(address, &at.field("url"), errors),
        (None, Some(s)) => service(s, &at.field("service"), errors),
    }
    if !c.ca_bundle.is_empty()
        && !requirements.any_bundle
        && let Some(fault) = bundle_fault(&c.ca_bundle)
    {
        let detail = format!("unable to load root certificates: {fault}");
        errors.push_with(|| FieldError::invalid(&at.field("caBundle"), c.ca_bundle.clone(), detail));
    }
}

/// Checks the URL of a webhook.
pub fn url(address: &str, at: &Path<'_>, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Url::parse_reference(address) {
        Ok(url) => url,
        Err(fault) => {
            let detail = format!("url must be a valid URL: {fault}{FORM}");
            // UPSTREAM: a malformed URL is reported as a missing value.
            errors.push_with(|| FieldError::required(at, detail));
            return;
        }
    };
    if url.scheme() != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push_with(|| FieldError::invalid(at, url.scheme(), detail));
    }
    if url.host().is_empty() {
        errors.push_with(|| FieldError::invalid(at, "", format!("host must be specified{FORM}")));
    }
    for (part, name) in [
        (url.userinfo(), "user information is"),
        (
            Some(url.fragment()).filter(|part| !part.is_empty()),
            "fragments are",
        ),
        (
            Some(url.raw_query().to_owned()).filter(|part| !part.is_empty()),
            "query parameters are",
        ),
    ] {
        if let Some(part) = part {
            let why = format!("{name} not permitted in the URL");
            errors.push_with(|| FieldError::invalid(at, part, why));
        }
    }
}

/// Checks a reference to the service of a webhook.
pub fn service(s: &Service, at: &Path<'_>, errors: &mut ErrorList) {
    // UPSTREAM: name and namespace are swapped, so each error names the other field.
    if s.namespace.is_empty() {
        errors.push_with(|| FieldError::required(&at.field("name"), ""));
    }
    if s.name.is_empty() {
        errors.push_with(|| FieldError::required(&at.field("namespace"), ""));
    }
    let port = s.port.unwrap_or(0);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push_with(|| FieldError::invalid(&at.field("port"), port, detail));
    }
    let Some(path) = s.path.as_deref().filter(|p| !matches!(*p, "" | "/")) else {
        return;
    };
    let at = at.field("path");
    if path == "//" {
        errors.push_with(|| FieldError::invalid(&at, path, "segment[0] may not be empty"));
        return;
    }
    if !path.starts_with('/') {
        errors.push_with(|| FieldError::invalid(&at, path, "must start with a '/'"));
    }
    // UPSTREAM: the first byte is dropped, slash or not.
    let steps = path.as_bytes().get(1..).unwrap_or_default();
    let steps = String::from_utf8_lossy(steps);
    let steps = steps.strip_suffix('/').unwrap_or(&steps);
    for (i, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            errors.push_with(|| FieldError::invalid(&at, path, format!("segment[{i}] may not be empty")));
            continue;
        }
        for fault in names::dns1123_subdomain(step) {
            errors.push_with(|| FieldError::invalid(&at, path, format!("segment[{i}]: {fault}")));
        }
    }
}
