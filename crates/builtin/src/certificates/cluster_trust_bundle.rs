//! ClusterTrustBundle.

use crate::checks::pem::{self, Block};
use crate::checks::update::IMMUTABLE;
use crate::checks::{Report, names};
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, FieldError, Value};
use std::collections::BTreeMap;

/// Certificates that a cluster trusts.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    ..KindBehavior::new(KindFacts {
        // The name begins with that of the signer, whose slash becomes a colon.
        names: NameRule::PathSegment,
        selectable: &["spec.signerName"],
        unconditional_update: false,
        ..KindFacts::new("certificates.k8s.io", "ClusterTrustBundle")
    })
};

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let (metadata, spec) = (root.field("metadata"), root.field("spec"));
    let signer = spec.field("signerName");
    let prefix = metadata.field("generateName");
    if !prefix.str().is_empty() {
        let wrong = check_name(prefix.str(), signer.str(), NameRule::check_prefix);
        wrong.into_iter().for_each(|why| errors.invalid(&prefix, why));
    }
    let name = metadata.field("name");
    // The caller reports a name that is missing.
    if !name.str().is_empty() {
        let wrong = check_name(name.str(), signer.str(), NameRule::check);
        wrong.into_iter().for_each(|why| errors.invalid(&name, why));
    }
    if !signer.str().is_empty() {
        names::signer_name(&signer, errors);
    }
    let bundle = spec.field("trustBundle");
    let old = write.old().and_then(|old| old.get("spec"));
    // A stored bundle is not parsed again: newer parsers may refuse it.
    if old.is_none_or(|old| old.get_str("trustBundle") != bundle.str()) {
        check_bundle(&bundle, errors);
    }
    if old.is_some_and(|old| old.get_str("signerName") != signer.str()) {
        errors.invalid_value(&signer, signer.str(), IMMUTABLE);
    }
}

/// Checks the name of a bundle, which begins with the name of its signer, or the prefix of a generated name.
fn check_name(name: &str, signer: &str, rule: fn(NameRule, &str) -> Vec<String>) -> Vec<String> {
    if signer.is_empty() {
        return match name.contains(':') {
            true => {
                vec![r#"ClusterTrustBundle without signer name must not have ":" in its name"#.to_owned()]
            }
            false => rule(NameRule::Subdomain, name),
        };
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(own) => rule(NameRule::Subdomain, own),
        None => vec![format!(
            "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        )],
    }
}

/// The maximum size of a bundle.
const MAX_BUNDLE: usize = 1 << 20;

/// Checks that a bundle contains certificates of different authorities, and nothing else.
fn check_bundle(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().len() > MAX_BUNDLE {
        return errors.push_with(|| FieldError::too_long(at.path(), MAX_BUNDLE));
    }
    let mut report = |why: String| errors.invalid_value(at, "<value omitted>", why);
    let blocks = pem::blocks(at.str().as_bytes());
    let mut is_malformed = false;
    for (i, block) in blocks.iter().enumerate() {
        if let Some(why) = not_an_authority(block) {
            is_malformed = true;
            report(format!("entry {i} {why}"));
        }
    }
    if is_malformed {
        return;
    }
    if blocks.is_empty() {
        report("at least one trust anchor must be provided".to_owned());
    }
    let mut places: BTreeMap<&[u8], Vec<String>> = BTreeMap::new();
    for (i, block) in blocks.iter().enumerate() {
        places.entry(&block.bytes).or_default().push(i.to_string());
    }
    for indices in places.values().filter(|indices| indices.len() > 1) {
        report(format!(
            "duplicate trust anchor (indices [{}])",
            indices.join(" ")
        ));
    }
}

/// The reason why a block is not the certificate of an authority.
fn not_an_authority(block: &Block) -> Option<String> {
    if block.label != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.label));
    }
    if block.has_headers {
        return Some("has PEM block headers".to_owned());
    }
    let Ok(([], certificate)) = x509_parser::parse_x509_certificate(&block.bytes) else {
        return Some("does not parse as X.509".to_owned());
    };
    (!certificate.is_ca()).then(|| "does not have the CA bit set".to_owned())
}
