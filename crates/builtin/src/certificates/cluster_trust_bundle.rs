//! ClusterTrustBundle.

use crate::checks::Report;
use crate::{BuiltinKind, Cursor, KindFacts, Operation, Write};
use scantling_notation::names;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, Value};

/// Certificates that a cluster trusts.
#[derive(Debug)]
pub(super) struct ClusterTrustBundle;

const FACTS: KindFacts = KindFacts {
    scope: Scope::Cluster,
    // The name begins with that of the signer, whose slash becomes a colon.
    names: NameRule::PathSegment,
    selectable: &["metadata.name", "spec.signerName"],
    unconditional_update: false,
    ..KindFacts::new("certificates.k8s.io", "ClusterTrustBundle")
};

impl BuiltinKind for ClusterTrustBundle {
    fn facts(&self) -> &'static KindFacts {
        &FACTS
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        let root = Cursor::root(object);
        let (metadata, spec) = (root.field("metadata"), root.field("spec"));
        if matches!(write.operation, Operation::Create) {
            let name = metadata.field("name");
            for why in check_name(name.str(), spec.field("signerName").str()) {
                errors.invalid(&name, why);
            }
        }
    }
}

/// Checks the name of a bundle, which begins with the name of its signer.
fn check_name(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        return match name.contains(':') {
            true => {
                vec![r#"ClusterTrustBundle without signer name must not have ":" in its name"#.to_owned()]
            }
            false => names::dns1123_subdomain(name),
        };
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(own) => names::dns1123_subdomain(own),
        None => vec![format!(
            "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
        )],
    }
}
