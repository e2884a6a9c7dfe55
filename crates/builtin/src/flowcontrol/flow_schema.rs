//! FlowSchema.

use super::GROUP;
use crate::checks::{Report, Rule, go, names, update};
use crate::prepare::{self, object_in};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, FieldError, Map, Value};

/// Assigns requests to priority levels.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        status_keeps: &[&["spec"], &["metadata"]],
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "FlowSchema")
    })
};

const SPEC: prepare::StructName = ("flowcontrol/v1", "FlowSchemaSpec");

const DEFAULT_PRECEDENCE: i64 = 1000;
const MAX_PRECEDENCE: i64 = 10_000;

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];

/// The specs of the schemas that every cluster has.
const MANDATORY: &[(&str, &str)] = &[
    (
        "exempt",
        r#"{"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":1,"rules":[{"subjects":[{"kind":"Group",
        "group":{"name":"system:masters"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],
        "clusterScope":true,"namespaces":["*"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}"#,
    ),
    (
        "catch-all",
        r#"{"priorityLevelConfiguration":{"name":"catch-all"},"matchingPrecedence":10000,"distinguisherMethod":{"type":
        "ByUser"},"rules":[{"subjects":[{"kind":"Group","group":{"name":"system:unauthenticated"}},{"kind":"Group",
        "group":{"name":"system:authenticated"}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],
        "clusterScope":true,"namespaces":["*"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}]}"#,
    ),
];

fn default(object: &mut Map, _context: &Context<'_>) {
    if let Some(spec) = object_in(object, "spec")
        && spec
            .get("matchingPrecedence")
            .and_then(Value::as_int)
            .unwrap_or(0)
            == 0
    {
        spec.insert("matchingPrecedence", Value::Int(DEFAULT_PRECEDENCE));
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    prepare::spec_and_status(object, write, SPEC);
    crate::prepare::keep_all_metadata(object, write);
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource != Subresource::Status {
        let name = object.str_at(["metadata", "name"]);
        let spec = root.field("spec");
        check_spec(name, &spec, errors);
        if let Some(mandatory) = super::mandatory_spec(MANDATORY, name)
            && !update::same_of(SPEC.0, SPEC.1, spec.value(), Some(&mandatory))
        {
            let shown = go::structure(SPEC.0, SPEC.1, spec.value());
            errors.invalid_value(
                &spec,
                shown,
                format!("spec of '{name}' must equal the fixed value"),
            );
        }
    }
    super::check_conditions(&root.field("status"), errors);
}

fn check_spec(name: &str, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let precedence = spec.field("matchingPrecedence");
    if precedence.int() <= 0 {
        errors.invalid_value(&precedence, precedence.int(), "must be a positive value");
    }
    if precedence.int() > MAX_PRECEDENCE {
        errors.invalid(&precedence, format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if precedence.int() == 1 && name != "exempt" {
        errors.invalid(
            &precedence,
            "only the schema named 'exempt' may have matchingPrecedence 1",
        );
    }
    let method = spec.field("distinguisherMethod");
    let kind = method.field("type");
    if method.is_set() && !matches!(kind.str(), "ByNamespace" | "ByUser") {
        let shown = go::pointer("flowcontrol/v1", "FlowDistinguisherMethod", method.value());
        // UPSTREAM: the error shows the whole method.
        errors.push_with(|| FieldError::not_supported(kind.path(), shown, ["ByNamespace", "ByUser"]));
    }
    let level = spec.field("priorityLevelConfiguration");
    let level = level.field("name");
    if level.str().is_empty() {
        errors.required(&level, "must reference a priority level");
    } else {
        errors.invalid_for(&level, names::dns1123_subdomain(level.str()));
    }
    Rule::Each(check_rule).check(&spec.field("rules"), errors);
}

fn check_rule(rule: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let subjects = rule.field("subjects");
    Rule::RequiredFor("subjects must contain at least one value").check(&subjects, errors);
    Rule::Each(check_subject).check(&subjects, errors);
    let (resources, urls) = (rule.field("resourceRules"), rule.field("nonResourceRules"));
    if resources.list().is_empty() && urls.list().is_empty() {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.required(rule, why);
    }
    Rule::Each(check_resource_rule).check(&resources, errors);
    Rule::Each(check_url_rule).check(&urls, errors);
}

/// The kinds of subjects with the fields that belong to them.
const SUBJECTS: [(&str, &str); 3] = [
    ("ServiceAccount", "serviceAccount"),
    ("User", "user"),
    ("Group", "group"),
];

fn check_subject(subject: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let kind = subject.field("kind");
    if !SUBJECTS.iter().any(|(name, _)| *name == kind.str()) {
        return errors.not_supported(&kind, &["Group", "ServiceAccount", "User"]);
    }
    for (name, field) in SUBJECTS {
        let value = subject.field(field);
        if name == kind.str() {
            if value.is_set() {
                check_subject_value(name, &value, errors);
            } else {
                errors.required(
                    &value,
                    &format!("{field} is required when subject kind is '{name}'"),
                );
            }
        } else if value.is_set() {
            errors.forbidden(
                &value,
                format!("{field} is forbidden when subject kind is not '{name}'"),
            );
        }
    }
}

fn check_subject_value(kind: &str, value: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let name = value.field("name");
    if name.str().is_empty() {
        errors.required(&name, "");
    } else if kind == "ServiceAccount" && name.str() != "*" {
        errors.invalid_for(&name, names::dns1123_subdomain(name.str()));
    }
    if kind == "ServiceAccount" {
        let namespace = value.field("namespace");
        if namespace.str().is_empty() {
            errors.required(&namespace, "must specify namespace for service account");
        } else {
            errors.invalid_for(&namespace, names::dns1123_label(namespace.str()));
        }
    }
}

fn has_wildcard(list: &Cursor<'_, '_>) -> bool {
    list.list().iter().any(|v| v.as_str() == Some("*"))
}

/// Checks that a wildcard is the only entry. Returns whether the list is not empty and has no wildcard.
fn check_wildcard(list: &Cursor<'_, '_>, missing: &str, others: &str, errors: &mut ErrorList) -> bool {
    let count = list.list().len();
    if count == 0 {
        errors.required(list, missing);
    } else if count > 1 && has_wildcard(list) {
        errors.invalid(
            list,
            format!("if '*' is present, must not specify other {others}"),
        );
    }
    count > 0 && !has_wildcard(list)
}

fn check_verbs(verbs: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let is_plain = check_wildcard(verbs, "verbs must contain at least one value", "verbs", errors);
    let is_known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if is_plain && !verbs.list().iter().all(is_known) {
        let shown = Value::Array(verbs.list().to_vec());
        errors.push_with(|| FieldError::not_supported(verbs.path(), shown, VERBS.iter().copied()));
    }
}

fn check_resource_rule(rule: &Cursor<'_, '_>, errors: &mut ErrorList) {
    check_verbs(&rule.field("verbs"), errors);
    let missing = "resource rules must supply at least one api group";
    check_wildcard(&rule.field("apiGroups"), missing, "api groups", errors);
    let missing = "resource rules must supply at least one resource";
    check_wildcard(&rule.field("resources"), missing, "resources", errors);
    let namespaces = rule.field("namespaces");
    // A rule that is only about cluster-wide objects needs no namespaces.
    if namespaces.list().is_empty() && rule.field("clusterScope").bool() {
        return;
    }
    let missing = "resource rules that are not cluster scoped must supply at least one namespace";
    if check_wildcard(&namespaces, missing, "namespaces", errors) {
        for namespace in namespaces.items() {
            for why in names::dns1123_label(namespace.str()) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                errors.invalid(&namespace, why);
            }
        }
    }
}

fn check_url_rule(rule: &Cursor<'_, '_>, errors: &mut ErrorList) {
    check_verbs(&rule.field("verbs"), errors);
    let urls = rule.field("nonResourceURLs");
    let missing = "nonResourceURLs must contain at least one value";
    if check_wildcard(&urls, missing, "non-resource URLs", errors) {
        for url in urls.items() {
            Rule::Check(check_url_path).check(&url, errors);
        }
    }
}

fn check_url_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let path = at.str();
    let wildcards = path.matches('*').count();
    let why = match path {
        "" => "must not be empty",
        "/" => return,
        _ if !path.starts_with('/') => "must start with slash",
        _ if path.contains(' ') => "must not contain white-space",
        _ if path.contains("//") => "must not contain double slash",
        _ if wildcards > 1 || wildcards == 1 && !path.ends_with("/*") => {
            "wildcard can only do suffix matching"
        }
        _ => return,
    };
    errors.invalid(at, why);
}
