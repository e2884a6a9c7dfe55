//! Role and ClusterRole.

use super::GROUP;
use crate::checks::{Report, labels};
use crate::prepare::forget_empty_list;
use crate::{BuiltinKind, Cursor, KindFacts, Write};
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, Map, Value};

/// Permissions in a namespace.
#[derive(Debug)]
pub(super) struct Role;

/// Permissions in the cluster.
#[derive(Debug)]
pub(super) struct ClusterRole;

const ROLE: KindFacts = KindFacts {
    // Names have colons, as in `system:node`.
    names: NameRule::PathSegment,
    creates_on_update: true,
    ..KindFacts::new(GROUP, "Role")
};

const CLUSTER_ROLE: KindFacts = KindFacts {
    scope: Scope::Cluster,
    names: NameRule::PathSegment,
    selectable: &["metadata.name"],
    creates_on_update: true,
    ..KindFacts::new(GROUP, "ClusterRole")
};

impl BuiltinKind for Role {
    fn facts(&self) -> &'static KindFacts {
        &ROLE
    }

    fn prepare(&self, object: &mut Map, _write: &Write<'_>) {
        forget_empty_list(object, "rules");
    }

    fn validate(&self, object: &Value, _write: &Write<'_>, errors: &mut ErrorList) {
        for rule in Cursor::root(object).field("rules").items() {
            check_rule(&rule, Scope::Namespaced, errors);
        }
    }
}

impl BuiltinKind for ClusterRole {
    fn facts(&self) -> &'static KindFacts {
        &CLUSTER_ROLE
    }

    fn prepare(&self, object: &mut Map, _write: &Write<'_>) {
        forget_empty_list(object, "rules");
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        let root = Cursor::root(object);
        for rule in root.field("rules").items() {
            check_rule(&rule, Scope::Cluster, errors);
        }
        let aggregation = root.field("aggregationRule");
        if aggregation.is_set() {
            check_aggregation(&aggregation, write, errors);
        }
    }
}

/// A rule grants verbs on resources or on URLs, not on both; only cluster roles grant verbs on URLs.
fn check_rule(rule: &Cursor<'_, '_>, scope: Scope, errors: &mut ErrorList) {
    let list = |name| rule.field(name).list();
    let urls = rule.field("nonResourceURLs");
    if !urls.list().is_empty() {
        if scope == Scope::Namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            errors.invalid(&urls, why);
        }
        if ["apiGroups", "resources", "resourceNames"]
            .iter()
            .any(|name| !list(name).is_empty())
        {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid(&urls, why);
        }
    } else {
        for (name, why) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if list(name).is_empty() {
                errors.required(&rule.field(name), why);
            }
        }
    }
    if list("verbs").is_empty() {
        errors.required(&rule.field("verbs"), "");
    }
}

/// An aggregation rule selects at least one set of cluster roles. Values of selectors are checked unless the stored
/// selectors are already invalid.
fn check_aggregation(aggregation: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let selectors = aggregation.field("clusterRoleSelectors");
    if selectors.list().is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&selectors, why);
    }
    let old = write.old().map_or(&[][..], |old| {
        old.list_at(["aggregationRule", "clusterRoleSelectors"])
    });
    let values = labels::Values::unless(old.iter().any(|selector| !labels::is_valid(Some(selector))));
    for selector in selectors.items() {
        labels::selector_with(&selector, values, errors);
        if !labels::is_valid(selector.value()) {
            errors.invalid_value(&selector, Value::Null, "invalid label selector.");
        }
    }
}
