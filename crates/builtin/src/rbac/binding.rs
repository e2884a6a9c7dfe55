//! RoleBinding and ClusterRoleBinding.

use super::GROUP;
use crate::checks::{Report, Rule, update};
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_schema::meta::{NameRule, Scope};
use scantling_schema::names;
use scantling_value::{ErrorList, Map, Value};

/// Grants a role in a namespace.
pub(super) const ROLE_BINDING: KindBehavior = KindBehavior {
    default: |object, _| default_groups(object),
    validate: |object, write, errors| check_binding(object, write, Scope::Namespaced, errors),
    ..KindBehavior::new(facts("RoleBinding"))
};

/// Grants a cluster role in the cluster.
pub(super) const CLUSTER_ROLE_BINDING: KindBehavior = KindBehavior {
    default: |object, _| default_groups(object),
    validate: |object, write, errors| check_binding(object, write, Scope::Cluster, errors),
    ..KindBehavior::new(facts("ClusterRoleBinding"))
};

const fn facts(kind: &'static str) -> KindFacts {
    KindFacts {
        // Names have colons, as in `system:node`.
        names: NameRule::PathSegment,
        creates_on_update: true,
        ..KindFacts::new(GROUP, kind)
    }
}

/// Role references, users and groups are of the RBAC group unless another is named.
fn default_groups(object: &mut Map) {
    let set_group = |member: &mut Value| {
        if let Some(member) = member.as_object_mut()
            && member.get_str("apiGroup").is_empty()
        {
            member.insert("apiGroup", GROUP.into());
        }
    };
    // The reference is a struct in Go, which is defaulted even if the client omits it.
    set_group(object.get_or_insert_with("roleRef", || Value::Object(Map::new())));
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if matches!(subject.get_str("kind"), "User" | "Group") {
            set_group(subject);
        }
    }
}

fn check_binding(object: &Value, write: &Write<'_>, scope: Scope, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let role = root.field("roleRef");
    Rule::In(&[GROUP]).check(&role.field("apiGroup"), errors);
    let kinds: &[&str] = match scope {
        Scope::Namespaced => &["Role", "ClusterRole"],
        Scope::Cluster => &["ClusterRole"],
    };
    Rule::In(kinds).check(&role.field("kind"), errors);
    let name = role.field("name");
    errors.invalid_for(&name, NameRule::PathSegment.check(name.str()));
    let subjects = root.field("subjects");
    for subject in subjects.items() {
        check_subject(&subject, scope, errors);
    }
    if let Some(old) = write.old() {
        update::immutable_struct(&role, old.get("roleRef"), "rbac/v1", "RoleRef", errors);
    }
    Rule::Required.check(&name, errors);
    for subject in subjects.items() {
        Rule::Required.check(&subject.field("name"), errors);
    }
}

/// A subject is a service account with a namespace, or a user or group of the RBAC group.
fn check_subject(subject: &Cursor<'_, '_>, scope: Scope, errors: &mut ErrorList) {
    let (kind, group, name) = (
        subject.field("kind"),
        subject.field("apiGroup"),
        subject.field("name"),
    );
    match kind.str() {
        "ServiceAccount" => {
            Rule::Form(names::dns1123_subdomain).check(&name, errors);
            if !group.str().is_empty() {
                errors.not_supported(&group, &[""]);
            }
            let namespace = subject.field("namespace");
            if scope == Scope::Cluster && namespace.str().is_empty() {
                errors.required(&namespace, "");
            }
        }
        "User" | "Group" => Rule::In(&[GROUP]).check(&group, errors),
        _ => errors.not_supported(&kind, &["ServiceAccount", "User", "Group"]),
    }
}
