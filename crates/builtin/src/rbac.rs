//! Kinds of the group `rbac.authorization.k8s.io`.

mod binding;
mod role;

use crate::KindBehavior;

/// The group, which role references and subjects name.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &role::ROLE,
    &role::CLUSTER_ROLE,
    &binding::ROLE_BINDING,
    &binding::CLUSTER_ROLE_BINDING,
];
