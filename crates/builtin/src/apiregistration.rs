//! Kinds of the group `apiregistration.k8s.io`.

mod api_service;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[&api_service::ApiService];
