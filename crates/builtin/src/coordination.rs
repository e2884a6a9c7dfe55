//! Kinds of the group `coordination.k8s.io`.

mod lease;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&lease::KIND];
