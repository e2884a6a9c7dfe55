//! Kinds of the group `rbac.authorization.k8s.io`.

mod binding;
mod role;

use crate::BuiltinKind;

/// The group, which role references and subjects name.
const GROUP: &str = "rbac.authorization.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&dyn BuiltinKind] = &[
    &role::Role,
    &role::ClusterRole,
    &binding::RoleBinding,
    &binding::ClusterRoleBinding,
];
