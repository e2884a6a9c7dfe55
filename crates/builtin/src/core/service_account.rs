//! ServiceAccount.

use crate::prepare::objects_in;
use crate::{KindBehavior, KindFacts, Write};
use scantling_value::{Map, Value};

/// An identity for pods.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    warn,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new("", "ServiceAccount")
    })
};

/// The annotation that limits which secrets pods may mount.
const ENFORCE_MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";

fn prepare(object: &mut Map, _write: &Write<'_>) {
    // kube-apiserver keeps only the names of secrets.
    for secret in objects_in(object, "secrets") {
        secret.retain(|member, _| member == "name");
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
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
