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

use crate::BuiltinKind;

/// The group.
const GROUP: &str = "resource.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &device_class::DeviceClass,
    &device_taint_rule::DeviceTaintRule,
    &resource_claim::ResourceClaim,
    &resource_claim::ResourceClaimTemplate,
    &resource_slice::ResourceSlice,
];
