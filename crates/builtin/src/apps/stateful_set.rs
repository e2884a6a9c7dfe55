//! StatefulSet.

use super::template::{self, MORE_THAN_REPLICAS, StatusLimits};
use super::{GROUP, rolling_update};
use crate::checks::gates::drop_disabled;
use crate::checks::{Report, Rule, check_fields, go, labels, names, numbers, update};
use crate::core::{persistent_volume_claim, pod_template};
use crate::prepare::{self, object_if_set, object_in, set_default, set_default_text};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};

/// Pods with stable names and volumes.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        // Subdomains were allowed once, but their pods cannot be created. Updates do not check the name again.
        names: NameRule::Label,
        has_generation: true,
        ..KindFacts::new(GROUP, "StatefulSet")
    })
};

const STATUS_RULES: &[(&str, Rule)] = &[
    ("replicas", Rule::NonNegative),
    ("readyReplicas", Rule::NonNegative),
    ("currentReplicas", Rule::NonNegative),
    ("updatedReplicas", Rule::NonNegative),
    ("availableReplicas", Rule::NonNegative),
    ("observedGeneration", Rule::NonNegative),
    ("collisionCount", Rule::NonNegative),
];

const STATUS_LIMITS: StatusLimits = &[
    ("readyReplicas", "replicas", MORE_THAN_REPLICAS),
    ("currentReplicas", "replicas", MORE_THAN_REPLICAS),
    ("updatedReplicas", "replicas", MORE_THAN_REPLICAS),
    ("availableReplicas", "replicas", MORE_THAN_REPLICAS),
    (
        "availableReplicas",
        "readyReplicas",
        "cannot be greater than status.readyReplicas",
    ),
];

const MAX_UNAVAILABLE_GATE: &str = "MaxUnavailableStatefulSet";
const RECREATE_GATE: &str = "StatefulSetRecreateStrategy";

fn default(object: &mut Map, context: &Context<'_>) {
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    set_default_text(spec, "podManagementPolicy", "OrderedReady");
    default_strategy(spec, context);
    if let Some(policy) = object_in(spec, "persistentVolumeClaimRetentionPolicy") {
        set_default_text(policy, "whenDeleted", "Retain");
        set_default_text(policy, "whenScaled", "Retain");
    }
    set_default(spec, "replicas", 1_i64);
    set_default(spec, "revisionHistoryLimit", 10_i64);
    template::default(spec, context);
    for claim in prepare::objects_in(spec, "volumeClaimTemplates") {
        default_claim(claim);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    if let Some(spec) = object_if_set(object, "spec")
        && let Some(strategy) = object_if_set(spec, "updateStrategy")
    {
        let old = write.old().and_then(|old| old.at(["spec", "updateStrategy"]));
        drop_disabled(
            "apps/v1",
            "StatefulSetUpdateStrategy",
            strategy,
            old,
            &write.context,
        );
    }
    template::drop_disabled(object, write, &["spec"]);
    prepare::spec_and_status(object, write, ("apps/v1", "StatefulSetSpec"));
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        let status = root.field("status");
        check_fields(STATUS_RULES, &status, errors);
        template::check_limits(&status, STATUS_LIMITS, errors);
        if let Some(old) = write.old() {
            template::check_collision_count(&status, old, errors);
        }
        return;
    }
    let was_valid = write.old().is_none_or(|old| {
        let mut errors = ErrorList::new();
        check_spec(&Cursor::root(old).field("spec"), write, true, &mut errors);
        errors.is_empty()
    });
    check_spec(&root.field("spec"), write, was_valid, errors);
    if let Some(old) = write.old() {
        check_immutable(&root.field("spec"), old, errors);
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.subresource != Subresource::None {
        return;
    }
    if template::is_new_or_changed(object, write) {
        template::warn(object, &write.context, warnings);
    }
    warn_about_claims(object, write, warnings);
    if object
        .at(["spec", "revisionHistoryLimit"])
        .and_then(Value::as_int)
        < Some(0)
    {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; \
             a value >= 0 is recommended"
                .to_owned(),
        );
    }
}

/// Adds the warnings about claim templates. Their paths lack the spec on a create, and name its Go field on an update.
fn warn_about_claims(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    for claim in spec.field("volumeClaimTemplates").items() {
        let claim_spec = claim.field("spec");
        let path = match write.old() {
            None => *claim.path(),
            Some(_) => claim.path().field("Spec"),
        };
        persistent_volume_claim::warn_about_spec(&claim_spec.with_path(path), warnings);
    }
}

fn default_strategy(spec: &mut Map, context: &Context<'_>) {
    let Some(strategy) = object_in(spec, "updateStrategy") else {
        return;
    };
    // Only a type that is defaulted creates `rollingUpdate`: a client that sets the type may omit it.
    if strategy.get_str("type").is_empty() {
        strategy.insert("type", "RollingUpdate".into());
        object_in(strategy, "rollingUpdate");
    }
    if strategy.get_str("type") == "RollingUpdate"
        && let Some(rolling) = object_if_set(strategy, "rollingUpdate")
    {
        set_default(rolling, "partition", 0_i64);
        if (context.enabled)(MAX_UNAVAILABLE_GATE) {
            set_default(rolling, "maxUnavailable", 1_i64);
        }
    }
}

/// Fills in the defaults of a claim template, whose kind and version are those of claims, whatever the client sent.
fn default_claim(claim: &mut Map) {
    claim.insert("apiVersion", "v1".into());
    claim.insert("kind", "PersistentVolumeClaim".into());
    persistent_volume_claim::default_claim(claim);
}

/// Checks a spec, with its template only if `checks_template`: one that belongs to an invalid stored spec is tolerated.
fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, checks_template: bool, errors: &mut ErrorList) {
    let policy = spec.field("podManagementPolicy");
    match policy.str() {
        "" => errors.required(&policy, ""),
        "OrderedReady" | "Parallel" => {}
        _ => errors.invalid(&policy, "must be 'OrderedReady' or 'Parallel'"),
    }
    check_strategy(&spec.field("updateStrategy"), write, errors);
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    if retention.is_set() {
        for name in ["whenDeleted", "whenScaled"] {
            let policy = retention.field(name);
            if !matches!(policy.str(), "Retain" | "Delete") {
                errors.not_supported(&policy, &["Retain", "Delete"]);
            }
        }
    }
    // Stored claim templates are immutable and may predate the rules.
    if write.old().is_none() {
        for claim in spec.field("volumeClaimTemplates").items() {
            let rules = persistent_volume_claim::SpecRules::tolerating(None);
            persistent_volume_claim::check_spec(&claim.field("spec"), rules, &write.context, errors);
        }
    }
    numbers::non_negative(&spec.field("replicas"), errors);
    numbers::non_negative(&spec.field("minReadySeconds"), errors);
    let ordinals = spec.field("ordinals");
    numbers::non_negative(&ordinals.field("start"), errors);
    // Older servers accepted any name, and the field is immutable.
    if write.old().is_none() {
        Rule::Form(names::dns1123_label).check(&spec.field("serviceName"), errors);
    }
    let selector = spec.field("selector");
    if template::check_selector(&selector, "statefulset", errors) {
        check_template(spec, &selector, write, checks_template, errors);
    } else {
        // The text is empty: the errors within the selector say what is wrong.
        errors.invalid_value(&selector, template::show_selector(&selector), "");
    }
    template::check_runs_forever(&spec.field("template"), "StatefulSet", errors);
}

fn check_strategy(strategy: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let was_recreate = |old: &Value| old.str_at(["spec", "updateStrategy", "type"]) == "Recreate";
    let allows_recreate = (write.context.enabled)(RECREATE_GATE) || write.old().is_some_and(was_recreate);
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").str() {
        "" => errors.required(strategy, ""),
        "RollingUpdate" => {
            Rule::IfSet(check_rolling_update).check(&rolling, errors);
        }
        kind if kind == "OnDelete" || kind == "Recreate" && allows_recreate => {
            if rolling.is_set() {
                let shown = with_partition(rolling.map());
                let shown = go::pointer("apps/v1", "RollingUpdateStatefulSetStrategy", Some(&shown));
                errors.invalid_value(&rolling, shown, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        _ => {
            let why = if allows_recreate {
                "must be 'RollingUpdate', 'OnDelete', or 'Recreate'"
            } else {
                "must be 'RollingUpdate' or 'OnDelete'"
            };
            let mut shown = strategy.map().cloned().unwrap_or_default();
            if rolling.is_set() {
                shown.insert("rollingUpdate", with_partition(rolling.map()));
            }
            let shown = go::structure("apps/v1", "StatefulSetUpdateStrategy", Some(&shown.into()));
            errors.invalid_value(strategy, shown, why);
        }
    }
}

/// A rolling update as the internal type holds it, where the partition is not a pointer.
fn with_partition(rolling: Option<&Map>) -> Value {
    let mut rolling = rolling.cloned().unwrap_or_default();
    set_default(&mut rolling, "partition", 0_i64);
    rolling.into()
}

fn check_rolling_update(rolling: &Cursor<'_, '_>, errors: &mut ErrorList) {
    numbers::non_negative(&rolling.field("partition"), errors);
    let unavailable = rolling.field("maxUnavailable");
    if unavailable.is_set() {
        numbers::non_negative_or_percent(&unavailable, errors);
        if rolling_update::is_zero(unavailable.value()) {
            errors.invalid(&unavailable, "cannot be 0");
        }
        numbers::at_most_100_percent(&unavailable, errors);
    }
}

/// The selector must select the template. The template is checked as the controller will use it: with volumes for the
/// claim templates, without a hostname and subdomain.
fn check_template(
    spec: &Cursor<'_, '_>,
    selector: &Cursor<'_, '_>,
    write: &Write<'_>,
    checks_template: bool,
    errors: &mut ErrorList,
) {
    let used = template_as_used(spec.value());
    let stored = spec.field("template");
    let template = Cursor::at(Some(&used), *stored.path());
    if !selector.is_set() || !labels::is_empty_selector(selector.value()) {
        template::check_selected(selector, &template, errors);
    }
    if checks_template {
        let old_used = write.old().map(|old| template_as_used(old.get("spec")));
        let old_template = old_used.as_ref().map(|old| Cursor::at(Some(old), *stored.path()));
        pod_template::validate(&template, old_template.as_ref(), &write.context, errors);
    }
    // kube-apiserver checks labels and annotations once more, even if the template is not checked.
    crate::checks::metadata::template(&template, &template.field("metadata"), errors);
}

fn template_as_used(spec: Option<&Value>) -> Value {
    let template = spec.and_then(|spec| spec.get("template"));
    let mut template = template.and_then(Value::as_object).cloned().unwrap_or_default();
    let claims = spec.map_or(&[][..], |spec| spec.list("volumeClaimTemplates"));
    if let Some(pod) = object_if_set(&mut template, "spec") {
        pod.remove("hostname");
        pod.remove("subdomain");
        if !claims.is_empty() {
            add_claim_volumes(pod, claims);
        }
    }
    Value::Object(template)
}

/// Replaces or adds a volume per claim template.
fn add_claim_volumes(pod: &mut Map, claims: &[Value]) {
    let mut names: Vec<&str> = claims
        .iter()
        .map(|claim| claim.str_at(["metadata", "name"]))
        .collect();
    // kube-apiserver takes these volumes from a map, in random order. Sorting makes the paths of errors reproducible.
    names.sort_unstable();
    names.dedup();
    let volume = |name: &&str| {
        let claim = Map::from_iter([("claimName", Value::from(*name))]);
        Map::from_iter([
            ("name", Value::from(*name)),
            ("persistentVolumeClaim", claim.into()),
        ])
        .into()
    };
    let mut volumes: Vec<Value> = names.iter().map(volume).collect();
    let own = pod.get("volumes").and_then(Value::as_array).unwrap_or(&[]);
    volumes.extend(
        own.iter()
            .filter(|v| names.binary_search(&v.get_str("name")).is_err())
            .cloned(),
    );
    pod.insert("volumes", Value::Array(volumes));
}

fn check_immutable(spec: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let old = |name| old.at(["spec", name]);
    update::immutable_struct(
        &spec.field("selector"),
        old("selector"),
        "meta/v1",
        "LabelSelector",
        errors,
    );
    let claims = spec.field("volumeClaimTemplates");
    let lists = [
        claims.list(),
        old("volumeClaimTemplates")
            .and_then(Value::as_array)
            .unwrap_or(&[]),
    ];
    let same_claim =
        |(a, b): (&Value, &Value)| update::same_of("core/v1", "PersistentVolumeClaim", Some(a), Some(b));
    let [new, stored] = lists;
    if new.len() != stored.len() || !new.iter().zip(stored).all(same_claim) {
        let shown = go::list("core/v1", "PersistentVolumeClaim", claims.value());
        errors.invalid_value(&claims, shown, update::IMMUTABLE);
    }
    for name in ["serviceName", "podManagementPolicy"] {
        let field = spec.field(name);
        if field.str() != old(name).and_then(Value::as_str).unwrap_or("") {
            errors.invalid_value(&field, field.str(), update::IMMUTABLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Operation, User};
    use scantling_value::{Limits, json};

    /// An update keeps what is stored, so that its template is tolerated if the stored spec is invalid in any way.
    #[test]
    fn templates_beside_invalid_stored_specs_are_tolerated() {
        let context = Context {
            enabled: |_| true,
            now: "2026-11-18T00:00:00Z",
            user: User::default(),
        };
        let set = |strategy: &str, image: &str| {
            let text = format!(
                r#"{{"spec":{{"updateStrategy":{{"type":"{strategy}"}},"selector":{{"matchLabels":{{"a":"b"}}}},
                    "template":{{"metadata":{{"labels":{{"a":"b"}}}},
                    "spec":{{"containers":[{{"name":"c","image":"{image}"}}]}}}}}}}}"#
            );
            let set = json::decode(text.as_bytes(), Limits::SERVER).unwrap();
            let mut set = set.into_object().unwrap();
            default(&mut set, &context);
            Value::Object(set)
        };
        let errors = |old: &str| {
            let old = set(old, "i");
            let write = Write {
                operation: Operation::Update(&old),
                subresource: Subresource::None,
                context,
            };
            let mut errors = ErrorList::new();
            validate(&set("OnDelete", ""), &write, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            errors("OnDelete"),
            ["spec.template.spec.containers[0].image: Required value"]
        );
        assert_eq!(errors("Other"), Vec::<String>::new());
    }
}
