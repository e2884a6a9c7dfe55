//! Kinds of the group `discovery.k8s.io`.

mod endpoint_slice;

use crate::KindBehavior;

/// The name of the group.
const GROUP: &str = "discovery.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&endpoint_slice::KIND];
