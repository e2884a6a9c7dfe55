//! Kinds of the group `certificates.k8s.io`.

mod certificate_signing_request;
mod cluster_trust_bundle;
mod pem;
mod pod_certificate_request;

use crate::BuiltinKind;

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &certificate_signing_request::CertificateSigningRequest,
    &cluster_trust_bundle::ClusterTrustBundle,
    &pod_certificate_request::PodCertificateRequest,
];
