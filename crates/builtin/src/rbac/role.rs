//! Role and ClusterRole.

use super::GROUP;
use crate::checks::{Report, labels};
use crate::prepare::forget_empty_list;
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, Value};

/// Permissions in a namespace.
pub(super) const ROLE: KindBehavior = KindBehavior {
    prepare: |object, _| forget_empty_list(object, "rules"),
    validate: validate_role,
    ..KindBehavior::new(KindFacts {
        // Names have colons, as in `system:node`.
        names: NameRule::PathSegment,
        creates_on_update: true,
        ..KindFacts::new(GROUP, "Role")
    })
};

/// Permissions in the cluster.
pub(super) const CLUSTER_ROLE: KindBehavior = KindBehavior {
    prepare: |object, _| forget_empty_list(object, "rules"),
    validate: validate_cluster_role,
    ..KindBehavior::new(KindFacts {
        names: NameRule::PathSegment,
        creates_on_update: true,
        ..KindFacts::new(GROUP, "ClusterRole")
    })
};

fn validate_role(object: &Value, _write: &Write<'_>, errors: &mut ErrorList) {
    for rule in Cursor::root(object).field("rules").items() {
        check_rule(&rule, Scope::Namespaced, errors);
    }
}

fn validate_cluster_role(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    for rule in root.field("rules").items() {
        check_rule(&rule, Scope::Cluster, errors);
    }
    let aggregation = root.field("aggregationRule");
    if aggregation.is_set() {
        check_aggregation(&aggregation, write, errors);
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
