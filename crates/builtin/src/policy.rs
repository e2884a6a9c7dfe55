//! Kinds of the group `policy`.

mod pod_disruption_budget;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&pod_disruption_budget::KIND];
