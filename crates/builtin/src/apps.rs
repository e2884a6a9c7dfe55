//! Kinds of the group `apps`.

mod controller_revision;
mod daemon_set;
mod deployment;
pub(crate) mod replica_set;
pub(crate) mod rolling_update;
mod stateful_set;
pub(crate) mod template;

use crate::KindBehavior;
pub(crate) use daemon_set::TEMPLATE_GENERATION;

/// The group.
const GROUP: &str = "apps";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &controller_revision::KIND,
    &daemon_set::KIND,
    &deployment::KIND,
    &replica_set::KIND,
    &stateful_set::KIND,
];
