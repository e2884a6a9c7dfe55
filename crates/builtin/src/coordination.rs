//! Kinds of the group `coordination.k8s.io`.

mod lease;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&lease::Lease];
