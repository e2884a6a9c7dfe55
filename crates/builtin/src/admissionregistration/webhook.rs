//! ValidatingWebhookConfiguration and MutatingWebhookConfiguration.

use super::matching::{self, FAILURE_POLICIES, MATCH_POLICIES};
use super::reserved;
use crate::checks::{Report, Rule, labels, names, update};
use crate::prepare::{count_change, object_if_set, objects_in, set_default, set_generation};
use crate::{Context, Cursor, KindBehavior, Operation, Write};
use scantling_schema::definition::{self, check_webhook_service, check_webhook_url};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// Webhooks that check requests.
pub(super) const VALIDATING_WEBHOOK_CONFIGURATION: KindBehavior = KindBehavior {
    default: |object, _| objects_in(object, "webhooks").for_each(default_webhook),
    prepare: prepare_generation,
    validate: validate_validating_webhook_configuration,
    warn: warn_validating_webhook_configuration,
    ..KindBehavior::new(super::facts("ValidatingWebhookConfiguration"))
};

/// Webhooks that change objects.
pub(super) const MUTATING_WEBHOOK_CONFIGURATION: KindBehavior = KindBehavior {
    default: default_mutating_webhook_configuration,
    prepare: prepare_generation,
    validate: validate_mutating_webhook_configuration,
    warn: warn_mutating_webhook_configuration,
    ..KindBehavior::new(super::facts("MutatingWebhookConfiguration"))
};

/// The versions of reviews that servers send.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const ALL_SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun", "Some", "Unknown"];
const NO_SIDE_EFFECTS: &[&str] = &["None", "NoneOnDryRun"];

fn validate_validating_webhook_configuration(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    reserved::check_name(object, write, errors);
    check_webhooks(object, write, errors);
}

fn warn_validating_webhook_configuration(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    reserved::warn_name(object, write, warnings);
    reserved::warn_rules(object, write, warnings);
}

fn default_mutating_webhook_configuration(object: &mut Map, _context: &Context<'_>) {
    for webhook in objects_in(object, "webhooks") {
        default_webhook(webhook);
        set_default(webhook, "reinvocationPolicy", "Never");
    }
}

fn validate_mutating_webhook_configuration(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    reserved::check_name(object, write, errors);
    check_webhooks(object, write, errors);
}

fn warn_mutating_webhook_configuration(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    reserved::warn_name(object, write, warnings);
    reserved::warn_rules(object, write, warnings);
}

fn default_webhook(webhook: &mut Map) {
    set_default(webhook, "failurePolicy", "Fail");
    matching::default_selection(webhook);
    set_default(webhook, "timeoutSeconds", 10_i64);
    matching::default_rules(webhook, "rules");
    let service = object_if_set(webhook, "clientConfig").and_then(|client| object_if_set(client, "service"));
    if let Some(service) = service {
        set_default(service, "port", 443_i64);
    }
}

fn prepare_generation(object: &mut Map, write: &Write<'_>) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(old) => {
            // kube-apiserver distinguishes an empty list that was sent from the absent one that is stored.
            let is_set = |list: &&Value| !list.is_null();
            let changed = object.get("webhooks").filter(is_set) != old.get("webhooks").filter(is_set);
            count_change(object, old, changed);
        }
    }
}

/// The violations that are tolerated because stored webhooks have them already.
struct Tolerance<'v> {
    /// Match conditions are unchanged.
    conditions: bool,
    side_effects: bool,
    review_versions: bool,
    names: bool,
    selector_values: bool,
    expressions: BTreeSet<&'v str>,
}

impl<'v> Tolerance<'v> {
    fn new(new: &[Value], write: &Write<'v>) -> Tolerance<'v> {
        let Some(old) = write.old() else {
            return Tolerance {
                conditions: false,
                side_effects: false,
                review_versions: false,
                names: false,
                selector_values: false,
                expressions: BTreeSet::new(),
            };
        };
        let old = old.list("webhooks");
        // Webhooks are compared by position: one that has moved counts as changed.
        let same_conditions =
            |(a, b): (&Value, &Value)| update::same(a.get("matchConditions"), b.get("matchConditions"));
        let has_side_effects = |webhook: &Value| !NO_SIDE_EFFECTS.contains(&webhook.get_str("sideEffects"));
        let is_unrecognized = |webhook: &Value| {
            let versions = webhook.list("admissionReviewVersions");
            !versions.is_empty() && !has_review_version(versions)
        };
        let names: BTreeSet<&str> = old.iter().map(|webhook| webhook.get_str("name")).collect();
        let has_bad_selector = |webhook: &Value| {
            ["namespaceSelector", "objectSelector"]
                .iter()
                .any(|name| !labels::is_valid(webhook.get(name)))
        };
        let conditions = old.iter().flat_map(|webhook| webhook.list("matchConditions"));
        Tolerance {
            conditions: new.len() == old.len() && new.iter().zip(old).all(same_conditions),
            side_effects: old.iter().any(has_side_effects),
            review_versions: old.iter().any(is_unrecognized),
            names: names.len() < old.len(),
            selector_values: old.iter().any(has_bad_selector),
            expressions: conditions
                .map(|condition| condition.get_str("expression"))
                .collect(),
        }
    }
}

fn has_review_version(versions: &[Value]) -> bool {
    versions
        .iter()
        .any(|v| v.as_str().is_some_and(|v| REVIEW_VERSIONS.contains(&v)))
}

fn check_webhooks(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let webhooks = root.field("webhooks");
    let tolerance = Tolerance::new(webhooks.list(), write);
    let mut seen = BTreeSet::new();
    for webhook in webhooks.items() {
        check_webhook(&webhook, &tolerance, errors);
        check_review_versions(&webhook.field("admissionReviewVersions"), &tolerance, errors);
        let name = webhook.field("name");
        if !name.str().is_empty() && !seen.insert(name.str()) && !tolerance.names {
            errors.duplicate(&name, name.str());
        }
    }
}

fn check_webhook(webhook: &Cursor<'_, '_>, tolerance: &Tolerance<'_>, errors: &mut ErrorList) {
    names::fully_qualified_name(&webhook.field("name"), errors);
    Rule::Each(matching::check_rule).check(&webhook.field("rules"), errors);
    Rule::OneOf(FAILURE_POLICIES).check(&webhook.field("failurePolicy"), errors);
    Rule::OneOf(MATCH_POLICIES).check(&webhook.field("matchPolicy"), errors);
    let allowed = if tolerance.side_effects {
        ALL_SIDE_EFFECTS
    } else {
        NO_SIDE_EFFECTS
    };
    let side_effects = webhook.field("sideEffects");
    if !side_effects.is_set() {
        errors.required(
            &side_effects,
            &format!("must specify one of {}", allowed.join(", ")),
        );
    } else if !allowed.contains(&side_effects.str()) {
        errors.not_supported(&side_effects, allowed);
    }
    let timeout = webhook.field("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.int()) {
        errors.invalid(&timeout, "the timeout value must be between 1 and 30 seconds");
    }
    let values = labels::Values::unless(tolerance.selector_values);
    labels::selector_with(&webhook.field("namespaceSelector"), values, errors);
    labels::selector_with(&webhook.field("objectSelector"), values, errors);
    Rule::OneOf(&["IfNeeded", "Never"]).check(&webhook.field("reinvocationPolicy"), errors);
    check_client(&webhook.field("clientConfig"), errors);
    if !tolerance.conditions {
        let conditions = webhook.field("matchConditions");
        matching::check_conditions(&conditions, false, &tolerance.expressions, errors);
    }
}

fn check_client(client: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (url, service) = (client.field("url"), client.field("service"));
    match (url.value().and_then(Value::as_str), service.value()) {
        (Some(address), None) => check_webhook_url(address, url.path(), errors),
        (None, Some(value)) => {
            let reference = definition::Service {
                namespace: value.get_str("namespace").into(),
                name: value.get_str("name").into(),
                path: value.get("path").and_then(Value::as_str).map(Into::into),
                port: value.get("port").and_then(Value::as_int),
            };
            check_webhook_service(&reference, service.path(), errors);
        }
        _ => errors.required(client, "exactly one of url or service is required"),
    }
}

fn check_review_versions(versions: &Cursor<'_, '_>, tolerance: &Tolerance<'_>, errors: &mut ErrorList) {
    if versions.list().is_empty() {
        let why = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        return errors.required(versions, &why);
    }
    let mut seen = BTreeSet::new();
    for version in versions.items() {
        if seen.insert(version.str()) {
            errors.invalid_for(&version, names::dns1035_label(version.str()));
        } else {
            errors.invalid(&version, "duplicate version");
        }
    }
    if !tolerance.review_versions && !has_review_version(versions.list()) {
        let why = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.invalid(versions, why);
    }
}
