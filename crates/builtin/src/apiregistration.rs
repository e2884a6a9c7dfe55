//! Kinds of the group `apiregistration.k8s.io`.

mod api_service;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[&api_service::KIND];
