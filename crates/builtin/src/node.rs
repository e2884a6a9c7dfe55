//! Kinds of the group `node.k8s.io`.

mod runtime_class;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&runtime_class::KIND];
