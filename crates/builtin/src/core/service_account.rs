//! ServiceAccount.

use crate::prepare::objects_in;
use crate::{BuiltinKind, KindFacts, Write};
use scantling_value::{Map, Value};

/// An identity for pods.
#[derive(Debug)]
pub(super) struct ServiceAccount;

const FACTS: KindFacts = KindFacts {
    delete_returns_object: true,
    validates_name_on_update: true,
    ..KindFacts::new("", "ServiceAccount")
};

/// The annotation that limits which secrets pods may mount.
const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

impl BuiltinKind for ServiceAccount {
    fn facts(&self) -> &'static KindFacts {
        &FACTS
    }

    fn prepare(&self, object: &mut Map, _write: &Write<'_>) {
        // kube-apiserver keeps only the names of secrets.
        for secret in objects_in(object, "secrets") {
            secret.retain(|member, _| member == "name");
        }
    }

    fn warn(&self, object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
        let is_annotated = |object: &Value| {
            object
                .at(["metadata", "annotations", ENFORCE_MOUNTABLE])
                .is_some()
        };
        if is_annotated(object) && !write.old().is_some_and(is_annotated) {
            warnings.push(format!(
                "metadata.annotations[{ENFORCE_MOUNTABLE}]: deprecated in v1.32+; \
                 prefer separate namespaces to isolate access to mounted secrets"
            ));
        }
    }
}
