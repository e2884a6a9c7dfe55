//! Kinds of the core group.

pub(crate) mod persistent_volume_claim;
pub(crate) mod pod_template;
pub(crate) mod service;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&service::Service];
