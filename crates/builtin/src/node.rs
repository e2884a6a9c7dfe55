//! Kinds of the group `node.k8s.io`.

mod runtime_class;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&runtime_class::RuntimeClass];
