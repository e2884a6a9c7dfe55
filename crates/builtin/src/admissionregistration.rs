//! Kinds of the group `admissionregistration.k8s.io`.

mod binding;
mod expressions;
mod matching;
mod mutating_policy;
mod policy;
mod reserved;
mod webhook;

use crate::BuiltinKind;
use crate::KindFacts;
use scantling_schema::meta::Scope;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &binding::MutatingAdmissionPolicyBinding,
    &binding::ValidatingAdmissionPolicyBinding,
    &mutating_policy::MutatingAdmissionPolicy,
    &policy::ValidatingAdmissionPolicy,
    &webhook::MutatingWebhookConfiguration,
    &webhook::ValidatingWebhookConfiguration,
];

/// The facts that all kinds of this group share.
const fn facts(kind: &'static str) -> KindFacts {
    KindFacts {
        scope: Scope::Cluster,
        selectable: &["metadata.name"],
        unconditional_update: false,
        has_generation: true,
        qualifies_finalizers: false,
        validates_name_on_update: true,
        ..KindFacts::new("admissionregistration.k8s.io", kind)
    }
}
