//! Projected volumes: files from several sources in one directory.

use super::rules::Rules;
use super::volumes::{downward_file, key_to_path, local_path};
use crate::Cursor;
use crate::checks::{Report, Rule, go, labels, names, numbers};
use scantling_value::ErrorList;
use std::collections::BTreeSet;

/// The paths of files, to find those that occur twice.
struct Paths<'v, 'p> {
    /// The volume, where conflicts are reported.
    volume: Cursor<'v, 'p>,
    seen: BTreeSet<&'v str>,
}

impl<'v> Paths<'v, '_> {
    /// Adds the path of a file; `shown` is the value that an error shows.
    fn add(&mut self, path: &'v str, shown: &str, errors: &mut ErrorList) {
        if !self.seen.insert(path) {
            errors.invalid_value(&self.volume, shown, "conflicting duplicate paths");
        }
    }
}

/// Checks the sources of a projected volume.
pub(super) fn check_sources(volume: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    let mut paths = Paths {
        volume: *volume,
        seen: BTreeSet::new(),
    };
    for source in volume.field("sources").items() {
        let mut count = 0;
        for (field, check) in KINDS {
            let at = source.field(field);
            if at.is_set() {
                count += 1;
                check(&at, &mut paths, rules, errors);
            }
        }
        if count > 1 {
            errors.forbidden(&source, "may not specify more than 1 volume type per source");
        }
    }
}

type SourceCheck = for<'v> fn(&Cursor<'v, '_>, &mut Paths<'v, '_>, &Rules<'_>, &mut ErrorList);

/// The kinds of sources, in the order in which they are checked.
const KINDS: [(&str, SourceCheck); 6] = [
    ("secret", keys),
    ("configMap", keys),
    ("downwardAPI", downward_files),
    ("serviceAccountToken", token),
    ("clusterTrustBundle", trust_bundle),
    ("podCertificate", certificate),
];

fn keys<'v>(at: &Cursor<'v, '_>, paths: &mut Paths<'v, '_>, _: &Rules<'_>, errors: &mut ErrorList) {
    let name = at.field("name");
    Rule::Required.check(&name, errors);
    for item in at.field("items").items() {
        key_to_path(&item, errors);
        let path = item.field("path").str();
        if !path.is_empty() {
            paths.add(path, name.str(), errors);
        }
    }
}

fn downward_files<'v>(at: &Cursor<'v, '_>, paths: &mut Paths<'v, '_>, _: &Rules<'_>, errors: &mut ErrorList) {
    for file in at.field("items").items() {
        downward_file(&file, at, errors);
        let path = file.field("path").str();
        if !path.is_empty() {
            paths.add(path, path, errors);
        }
    }
}

fn token<'v>(at: &Cursor<'v, '_>, paths: &mut Paths<'v, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    let (expiration, path) = (at.field("expirationSeconds"), at.field("path"));
    if !expiration.is_set() {
        errors.required(&expiration, "");
    }
    numbers::token_seconds(&expiration, errors);
    // Kubernetes reports errors in the path at the volume.
    let path = path.with_path(paths.volume.path().field("path"));
    if path.str().is_empty() {
        errors.required(&path, "");
    } else if !rules.allows_any_token_path() {
        local_path(&path, errors);
    }
    Rule::IfSet(numbers::id).check(&at.field("user"), errors);
}

fn trust_bundle<'v>(at: &Cursor<'v, '_>, paths: &mut Paths<'v, '_>, _: &Rules<'_>, errors: &mut ErrorList) {
    let [name, signer, selector, path] = ["name", "signerName", "labelSelector", "path"].map(|f| at.field(f));
    match (name.is_set(), signer.is_set()) {
        (true, true) => {
            let shown = go::structure("core/v1", "ClusterTrustBundleProjection", at.value());
            errors.invalid_value(at, shown, "only one of name and signerName may be used");
        }
        (true, false) => {
            Rule::RequiredFor("must be a valid object name").check(&name, errors);
            for why in bundle_name(name.str()) {
                errors.invalid(&name, format!("not a valid clustertrustbundlename: {why}"));
            }
            if selector.is_set() {
                let why = "labelSelector must be unset if name is specified";
                let shown = go::pointer("meta/v1", "LabelSelector", selector.value());
                errors.invalid_value(&selector, shown, why);
            }
        }
        (false, true) => {
            Rule::RequiredFor("must be a valid signer name").check(&signer, errors);
            names::signer_name(&signer, errors);
            labels::selector(&selector, errors);
        }
        (false, false) => errors.required(at, "either name or signerName must be specified"),
    }
    Rule::Required.check(&path, errors);
    Rule::IfSet(numbers::id).check(&at.field("user"), errors);
    local_path(&path, errors);
    paths.add(path.str(), path.str(), errors);
}

/// Checks the name of a trust bundle: `domain:signer:name`, or a name without colons.
fn bundle_name(name: &str) -> Vec<String> {
    let own = name.rsplit_once(':').map_or(name, |(_, own)| own);
    names::dns1123_subdomain(own)
}

fn certificate<'v>(at: &Cursor<'v, '_>, paths: &mut Paths<'v, '_>, _: &Rules<'_>, errors: &mut ErrorList) {
    const KEY_TYPES: &[&str] = &[
        "RSA3072",
        "RSA4096",
        "ECDSAP256",
        "ECDSAP384",
        "ECDSAP521",
        "ED25519",
    ];
    let (signer, key_type) = (at.field("signerName"), at.field("keyType"));
    names::signer_name(&signer, errors);
    names::user_annotations(&at.field("userAnnotations"), errors);
    Rule::IfSet(numbers::id).check(&at.field("user"), errors);
    Rule::In(KEY_TYPES).check(&key_type, errors);
    let expiration = at.field("maxExpirationSeconds");
    if let Some(seconds) = expiration.as_int() {
        if seconds < 3600 {
            errors.invalid(&expiration, "if provided, maxExpirationSeconds must be >= 3600");
        }
        let max = names::max_certificate_seconds(signer.str());
        if seconds > max {
            let why = format!("if provided, maxExpirationSeconds must be <= {max}");
            errors.invalid(&expiration, why);
        }
    }
    let mut count = 0;
    for field in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = at.field(field);
        if !path.str().is_empty() {
            count += 1;
            local_path(&path, errors);
            paths.add(path.str(), path.str(), errors);
        }
    }
    if count == 0 {
        let why = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.required(at, why);
    }
}
