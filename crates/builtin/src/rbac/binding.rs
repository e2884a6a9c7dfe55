//! RoleBinding and ClusterRoleBinding.

use super::GROUP;
use crate::checks::{Report, Rule, update};
use crate::{BuiltinKind, Context, Cursor, KindFacts, Write};
use scantling_schema::meta::{NameRule, Scope};
use scantling_schema::names;
use scantling_value::{ErrorList, Map, Value};

/// Grants a role in a namespace.
#[derive(Debug)]
pub(super) struct RoleBinding;

/// Grants a cluster role in the cluster.
#[derive(Debug)]
pub(super) struct ClusterRoleBinding;

const ROLE_BINDING: KindFacts = KindFacts {
    // Names have colons, as in `system:node`.
    names: NameRule::PathSegment,
    creates_on_update: true,
    ..KindFacts::new(GROUP, "RoleBinding")
};

const CLUSTER_ROLE_BINDING: KindFacts = KindFacts {
    scope: Scope::Cluster,
    names: NameRule::PathSegment,
    selectable: &["metadata.name"],
    creates_on_update: true,
    ..KindFacts::new(GROUP, "ClusterRoleBinding")
};

impl BuiltinKind for RoleBinding {
    fn facts(&self) -> &'static KindFacts {
        &ROLE_BINDING
    }

    fn default(&self, object: &mut Map, _context: &Context<'_>) {
        default_groups(object);
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        check_binding(self.facts(), object, write, &["Role", "ClusterRole"], errors);
    }
}

impl BuiltinKind for ClusterRoleBinding {
    fn facts(&self) -> &'static KindFacts {
        &CLUSTER_ROLE_BINDING
    }

    fn default(&self, object: &mut Map, _context: &Context<'_>) {
        default_groups(object);
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        check_binding(self.facts(), object, write, &["ClusterRole"], errors);
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

fn check_binding(
    facts: &KindFacts,
    object: &Value,
    write: &Write<'_>,
    kinds: &[&'static str],
    errors: &mut ErrorList,
) {
    let root = Cursor::root(object);
    let role = root.field("roleRef");
    let group = role.field("apiGroup");
    if group.str() != GROUP {
        errors.not_supported(&group, &[GROUP]);
    }
    let kind = role.field("kind");
    if !kinds.contains(&kind.str()) {
        errors.not_supported(&kind, kinds);
    }
    let name = role.field("name");
    errors.invalid_for(&name, NameRule::PathSegment.check(name.str()));
    let subjects = root.field("subjects");
    for subject in subjects.items() {
        check_subject(&subject, facts.scope, errors);
    }
    if let Some(old) = write.old() {
        update::immutable_struct(&role, old.get("roleRef"), "rbac/v1", "RoleRef", errors);
    }
    Rule::Required.check(&name, errors);
    for subject in subjects.items() {
        let name = subject.field("name");
        Rule::Required.check(&name, errors);
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
            if !name.str().is_empty() {
                errors.invalid_for(&name, names::dns1123_subdomain(name.str()));
            }
            if !group.str().is_empty() {
                errors.not_supported(&group, &[""]);
            }
            let namespace = subject.field("namespace");
            if scope == Scope::Cluster && namespace.str().is_empty() {
                errors.required(&namespace, "");
            }
        }
        "User" | "Group" => {
            if group.str() != GROUP {
                errors.not_supported(&group, &[GROUP]);
            }
        }
        _ => errors.not_supported(&kind, &["ServiceAccount", "User", "Group"]),
    }
}
