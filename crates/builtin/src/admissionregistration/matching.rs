//! The requests that a webhook or policy matches: rules, selectors and conditions.

use super::expressions::{Declarations, ExpressionCompiler, Result};
use crate::Cursor;
use crate::checks::{Report, Rule, labels, names};
use crate::prepare::{object_in, objects_in, set_default};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::BTreeSet;

const MAX_CONDITIONS: usize = 64;

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
/// The operations whose objects can be changed.
const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
const SCOPES: &[&str] = &["*", "Cluster", "Namespaced"];

/// The policies for failures of a webhook or policy.
pub(super) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
/// The policies for requests in other versions of a kind.
pub(super) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];

/// Sets the policy and the selectors that webhooks and policies have in common.
pub(super) fn default_selection(object: &mut Map) {
    set_default(object, "matchPolicy", "Equivalent");
    // An absent selector becomes an empty one, which selects everything.
    object_in(object, "namespaceSelector");
    object_in(object, "objectSelector");
}

/// Sets the scope of rules.
pub(super) fn default_rules(object: &mut Map, member: &str) {
    for rule in objects_in(object, member) {
        set_default(rule, "scope", "*");
    }
}

/// Fills in the defaults of the resources that a policy or binding is about.
pub(super) fn default_resources(resources: &mut Map) {
    default_selection(resources);
    default_rules(resources, "resourceRules");
    default_rules(resources, "excludeResourceRules");
}

/// Checks the resources that a policy or binding is about.
pub(super) fn check_resources(resources: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !resources.is_set() {
        return;
    }
    Rule::OneOf(MATCH_POLICIES).check(&resources.field("matchPolicy"), errors);
    for name in ["namespaceSelector", "objectSelector"] {
        let selector = resources.field(name);
        if selector.is_set() {
            labels::selector(&selector, errors);
        } else {
            errors.required(&selector, "");
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        for rule in resources.field(name).items() {
            check_resource_names(&rule, errors);
            check_rule(&rule, errors);
        }
    }
}

fn check_resource_names(rule: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for name in rule.field("resourceNames").items() {
        errors.invalid_for(&name, NameRule::PathSegment.check(name.str()));
        errors.unique(&mut seen, &name);
    }
}

/// Mutating policies are not about deletions.
pub(super) fn check_mutating_operations(resources: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let rules = resources.field("resourceRules");
    // The path has no indexes, as in Kubernetes.
    let at = rules.path().field("operations");
    for operation in rules.list().iter().flat_map(|rule| rule.list("operations")) {
        let operation = operation.as_str().unwrap_or("");
        if !MUTATING_OPERATIONS.contains(&operation) {
            let supported = MUTATING_OPERATIONS.iter().copied();
            errors.push_with(|| FieldError::not_supported(&at, operation, supported));
        }
    }
}

fn has_wildcard(list: &Cursor<'_, '_>) -> bool {
    list.list().iter().any(|v| v.as_str() == Some("*"))
}

/// Checks that a list is not empty, and that a wildcard is its only entry.
fn check_wildcard(list: &Cursor<'_, '_>, others: &str, errors: &mut ErrorList) {
    Rule::Required.check(list, errors);
    if list.list().len() > 1 && has_wildcard(list) {
        errors.invalid(
            list,
            format!("if '*' is present, must not specify other {others}"),
        );
    }
}

/// Checks a rule: operations on resources of groups and versions.
pub(super) fn check_rule(rule: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let operations = rule.field("operations");
    check_wildcard(&operations, "operations", errors);
    for operation in operations.items() {
        Rule::In(OPERATIONS).check(&operation, errors);
    }
    check_wildcard(&rule.field("apiGroups"), "API groups", errors);
    let versions = rule.field("apiVersions");
    check_wildcard(&versions, "API versions", errors);
    for version in versions.items() {
        Rule::Required.check(&version, errors);
    }
    check_resource_patterns(&rule.field("resources"), errors);
    Rule::OneOf(SCOPES).check(&rule.field("scope"), errors);
}

/// Resources (`pods`), subresources (`pods/status`) and wildcards (`*`, `*/status`, `pods/*`, `*/*`) do not overlap.
fn check_resource_patterns(resources: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let list = resources.list();
    if list.is_empty() {
        errors.required(resources, "");
    }
    let (mut whole, mut subresources) = (BTreeSet::new(), BTreeSet::new());
    let mut has_plain = false;
    for resource in resources.items() {
        let text = resource.str();
        if text.is_empty() {
            errors.required(&resource, "");
            continue;
        }
        let Some((name, sub)) = text.split_once('/') else {
            // The last plain resource decides, as in the server.
            has_plain = text != "*";
            continue;
        };
        if whole.contains(name) {
            errors.invalid(
                &resource,
                format!("if '{name}/*' is present, must not specify {text}"),
            );
        }
        if subresources.contains(sub) {
            errors.invalid(
                &resource,
                format!("if '*/{sub}' is present, must not specify {text}"),
            );
        }
        if sub == "*" {
            whole.insert(name);
        }
        if name == "*" {
            subresources.insert(sub);
        }
    }
    let has = |pattern: &str| list.iter().any(|v| v.as_str() == Some(pattern));
    if list.len() > 1 && has("*/*") {
        errors.invalid(resources, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && has_plain {
        let why = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(resources, why);
    }
}

/// Checks match conditions: expressions with unique names.
pub(super) fn check_conditions(
    conditions: &Cursor<'_, '_>,
    has_params: bool,
    stored: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    errors.max_items(conditions, MAX_CONDITIONS);
    let compiler = ExpressionCompiler::default();
    let declarations = Declarations {
        has_params,
        has_authorizer: true,
        has_patch_types: false,
    };
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let expression = condition.field("expression");
        match expression.str().trim() {
            "" => errors.required(&expression, ""),
            text => drop(compiler.check(
                &expression,
                text,
                text,
                declarations,
                Result::Bool,
                stored,
                errors,
            )),
        }
        let name = condition.field("name");
        Rule::RequiredForm(names::label_key).check(&name, errors);
        if !name.str().is_empty() && !seen.insert(name.str()) {
            errors.duplicate(&name, name.str());
        }
    }
}

/// The expressions of a list of the stored object.
pub(super) fn stored_expressions<'v>(list: &'v [Value], member: &str) -> BTreeSet<&'v str> {
    list.iter().map(|item| item.get_str(member)).collect()
}
