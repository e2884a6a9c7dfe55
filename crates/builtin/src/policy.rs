//! Kinds of the group `policy`.

mod pod_disruption_budget;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&pod_disruption_budget::PodDisruptionBudget];
