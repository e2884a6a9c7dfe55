//! Kinds of the group `certificates.k8s.io`.

mod certificate_signing_request;
mod cluster_trust_bundle;
mod pem;
mod pod_certificate_request;

use crate::KindBehavior;

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &certificate_signing_request::KIND,
    &cluster_trust_bundle::KIND,
    &pod_certificate_request::KIND,
];
