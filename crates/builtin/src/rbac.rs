//! Kinds of the group `rbac.authorization.k8s.io`.

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[];
