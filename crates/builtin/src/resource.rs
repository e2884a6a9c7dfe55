//! Kinds of the group `resource.k8s.io`.

mod capacity;
mod claim_spec;
mod claim_status;
mod device_class;
mod device_taint_rule;
mod names;
mod resource_claim;
mod resource_slice;
mod selector;
mod taint;

use crate::KindBehavior;

/// The group.
const GROUP: &str = "resource.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &device_class::KIND,
    &device_taint_rule::KIND,
    &resource_claim::RESOURCE_CLAIM,
    &resource_claim::RESOURCE_CLAIM_TEMPLATE,
    &resource_slice::KIND,
];
