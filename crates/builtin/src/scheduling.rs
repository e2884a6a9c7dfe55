//! Kinds of the group `scheduling.k8s.io`.

mod priority_class;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&priority_class::KIND];
