//! Kinds of the core group.

mod limit_range;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod_template;
mod replication_controller;
mod resource_quota;
pub(crate) mod service;
mod service_account;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &limit_range::LimitRange,
    &replication_controller::ReplicationController,
    &resource_quota::ResourceQuota,
    &service::Service,
    &service_account::ServiceAccount,
];
