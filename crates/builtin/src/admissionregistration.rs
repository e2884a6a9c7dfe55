//! Kinds of the group `admissionregistration.k8s.io`.

mod binding;
mod expressions;
mod matching;
mod mutating_policy;
mod policy;
mod reserved;
mod webhook;

use crate::KindBehavior;
use crate::KindFacts;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &binding::MUTATING_ADMISSION_POLICY_BINDING,
    &binding::VALIDATING_ADMISSION_POLICY_BINDING,
    &mutating_policy::KIND,
    &policy::KIND,
    &webhook::MUTATING_WEBHOOK_CONFIGURATION,
    &webhook::VALIDATING_WEBHOOK_CONFIGURATION,
];

/// The facts that all kinds of this group share.
const fn facts(kind: &'static str) -> KindFacts {
    KindFacts {
        unconditional_update: false,
        has_generation: true,
        qualifies_finalizers: false,
        validates_name_on_update: true,
        ..KindFacts::new("admissionregistration.k8s.io", kind)
    }
}
