//! Kinds of the core group.

mod endpoints;
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
    &endpoints::Endpoints,
    &limit_range::LimitRange,
    &persistent_volume_claim::PersistentVolumeClaim,
    &replication_controller::ReplicationController,
    &resource_quota::ResourceQuota,
    &service::Service,
    &service_account::ServiceAccount,
];
