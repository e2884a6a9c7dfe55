//! Kinds of the group `scheduling.k8s.io`.

mod priority_class;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&priority_class::PriorityClass];
