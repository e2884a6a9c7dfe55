//! Kinds of the core group.

mod config_map;
mod endpoints;
pub(crate) mod event;
mod limit_range;
mod namespace;
mod node;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
pub(crate) mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub(crate) mod service;
mod service_account;

pub use pod::validate_binding;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &config_map::ConfigMap,
    &endpoints::Endpoints,
    &event::Event,
    &limit_range::LimitRange,
    &namespace::Namespace,
    &node::Node,
    &persistent_volume::PersistentVolume,
    &persistent_volume_claim::PersistentVolumeClaim,
    &pod::Pod,
    &pod_template::PodTemplate,
    &replication_controller::ReplicationController,
    &resource_quota::ResourceQuota,
    &secret::Secret,
    &service::Service,
    &service_account::ServiceAccount,
];
