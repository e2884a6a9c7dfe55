//! Kinds of the group `events.k8s.io`.

use crate::BuiltinKind;
use crate::core::event::RegardingEvent;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&RegardingEvent];
