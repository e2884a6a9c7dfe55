//! Kinds of the core group.

mod endpoints;
mod limit_range;
pub(crate) mod persistent_volume_claim;
mod pod;
pub(crate) mod pod_template;
mod replication_controller;
mod resource_quota;
pub(crate) mod service;
mod service_account;

pub use pod::validate_binding;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &endpoints::Endpoints,
    &limit_range::LimitRange,
    &persistent_volume_claim::PersistentVolumeClaim,
    &pod::Pod,
    &pod_template::PodTemplate,
    &replication_controller::ReplicationController,
    &resource_quota::ResourceQuota,
    &service::Service,
    &service_account::ServiceAccount,
];
