//! The built-in kinds of Kubernetes: defaults, preparation, validation, warnings.
//!
//! The fields of a kind are known to [`scantling_apitypes`]. This crate adds behavior: one file per kind, in the module
//! of its API group. Start at [`KindBehavior`], the type of each kind, and [`kind`], which finds a kind by group and name.
//!
//! Objects are decoded [`Value`](scantling_value::Value)s, in the form of the kind's hub version (the version that is
//! stored). Rules read them through a [`Cursor`], which carries the field path along.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-builtin is pure"
)]

pub mod admission;
mod admissionregistration;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod checks;
pub mod columns;
mod coordination;
mod core;
mod cursor;
mod discovery;
mod events;
mod flowcontrol;
mod kind;
mod networking;
mod node;
mod policy;
mod prepare;
mod rbac;
mod resource;
mod scheduling;
mod storage;
mod storagemigration;

pub use autoscaling::{autoscaler_from_v1, autoscaler_to_v1};
pub use checks::labels::selects;
pub use checks::metadata::qualified_finalizer;
pub use core::service::allocate as services;
pub use core::validate_binding;
pub use cursor::Cursor;
pub use kind::{Context, GarbageCollection, KindBehavior, KindFacts, Operation, Subresource, User, Write};

/// The kinds of all groups.
const GROUPS: &[&[&KindBehavior]] = &[
    admissionregistration::KINDS,
    apiregistration::KINDS,
    apps::KINDS,
    autoscaling::KINDS,
    batch::KINDS,
    certificates::KINDS,
    coordination::KINDS,
    core::KINDS,
    discovery::KINDS,
    events::KINDS,
    flowcontrol::KINDS,
    networking::KINDS,
    node::KINDS,
    policy::KINDS,
    rbac::KINDS,
    resource::KINDS,
    scheduling::KINDS,
    storage::KINDS,
    storagemigration::KINDS,
];

/// Finds the behavior of a kind by its group (empty for the core group) and its name.
pub fn kind(group: &str, kind: &str) -> Option<&'static KindBehavior> {
    let mut kinds = GROUPS.iter().copied().flatten().copied();
    kinds.find(|k| k.facts.group == group && k.facts.kind == kind)
}
