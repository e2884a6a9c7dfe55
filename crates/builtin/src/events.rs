//! Kinds of the group `events.k8s.io`.

use crate::KindBehavior;
use crate::core::event;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&event::REGARDING_EVENT];
