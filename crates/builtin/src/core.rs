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

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &config_map::KIND,
    &endpoints::KIND,
    &event::EVENT,
    &limit_range::KIND,
    &namespace::KIND,
    &node::KIND,
    &persistent_volume::KIND,
    &persistent_volume_claim::KIND,
    &pod::KIND,
    &pod_template::KIND,
    &replication_controller::KIND,
    &resource_quota::KIND,
    &secret::KIND,
    &service::KIND,
    &service_account::KIND,
];
