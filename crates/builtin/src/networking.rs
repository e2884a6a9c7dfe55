//! Kinds of the group `networking.k8s.io`.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use crate::KindBehavior;

/// The name of the group.
const GROUP: &str = "networking.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &ingress::KIND,
    &ingress_class::KIND,
    &ip_address::KIND,
    &network_policy::KIND,
    &service_cidr::KIND,
];
