//! Kinds of the group `networking.k8s.io`.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use crate::BuiltinKind;

/// The name of the group.
const GROUP: &str = "networking.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &ingress::Ingress,
    &ingress_class::IngressClass,
    &ip_address::IPAddress,
    &network_policy::NetworkPolicy,
    &service_cidr::ServiceCIDR,
];
