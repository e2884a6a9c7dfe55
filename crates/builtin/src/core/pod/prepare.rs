//! Preparation of pods: fields that a write sets, keeps or drops.

use super::annotations::{APP_ARMOR, of_container};
use super::defaults::CONTAINERS;
use super::{resources, security};
use crate::checks::gates::drop_disabled;
use crate::checks::update::keep;
use crate::prepare::{count_change, is_changed, keep_metadata, object_if_set, objects_in, set_generation};
use crate::{Context, Cursor, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Path, Value};
use std::collections::{BTreeMap, VecDeque};

/// Prepares a pod for a write.
pub(super) fn pod(pod: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => create(pod, write),
        (Operation::Update(old), Subresource::Status) => update_status(pod, old, write),
        (Operation::Update(old), Subresource::EphemeralContainers) => {
            let ephemeral = object_if_set(pod, "spec").and_then(|spec| spec.remove("ephemeralContainers"));
            keep_all(pod, old);
            if let Some(spec) = object_if_set(pod, "spec") {
                match ephemeral {
                    Some(ephemeral) => spec.insert("ephemeralContainers", ephemeral),
                    None => spec.remove("ephemeralContainers"),
                };
            }
            drop_fields(pod, Some(old), &write.context);
            count_generation(pod, old);
        }
        (Operation::Update(old), Subresource::Resize) => {
            keep_all_but_resources(pod, old, &write.context);
            keep_pod_level(pod, old, &write.context);
            if let Some(spec) = object_if_set(pod, "spec") {
                resources::default_pod_level(spec, &write.context);
            }
            drop_fields(pod, Some(old), &write.context);
            count_generation(pod, old);
        }
        (Operation::Update(old), _) => {
            keep(pod, old, "status");
            keep_pod_level(pod, old, &write.context);
            drop_fields(pod, Some(old), &write.context);
            count_generation(pod, old);
        }
    }
}

fn create(pod: &mut Map, write: &Write<'_>) {
    set_generation(pod, 1);
    let mut status = Map::from_iter([("phase", Value::from("Pending"))]);
    drop_fields(pod, None, &write.context);
    let spec = pod.get("spec");
    if spec.is_some_and(|spec| !spec.list("schedulingGates").is_empty()) {
        status.insert("conditions", vec![gated_condition(write.context.now)].into());
    }
    let labels = pod.get("metadata").and_then(|m| m.get("labels")).cloned();
    let annotations = pod.get("metadata").and_then(|m| m.get("annotations")).cloned();
    if let Some(spec) = object_if_set(pod, "spec") {
        merge_label_keys(spec, labels.as_ref(), &write.context);
        if let Some(Value::Object(annotations)) = annotations {
            apply_app_armor(spec, &annotations);
        }
        resources::default_pod_level(spec, &write.context);
    }
    if let Some(spec) = pod.get("spec") {
        status.insert("qosClass", resources::service_class(spec, &write.context).into());
    }
    pod.insert("status", status.into());
}

/// The condition of a pod that waits for its scheduling gates.
fn gated_condition(now: &str) -> Value {
    let condition = [
        ("type", "PodScheduled"),
        ("status", "False"),
        ("reason", "SchedulingGated"),
        (
            "message",
            "Scheduling is blocked due to non-empty scheduling gates",
        ),
        ("lastTransitionTime", now),
    ];
    Value::Object(condition.into_iter().map(|(k, v)| (k, Value::from(v))).collect())
}

/// Adds the pod's own labels to the selectors that name only their keys.
fn merge_label_keys(spec: &mut Map, labels: Option<&Value>, context: &Context<'_>) {
    if let Some(affinity) = object_if_set(spec, "affinity") {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let Some(affinity) = object_if_set(affinity, kind) else {
                continue;
            };
            for weighted in objects_in(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
                if let Some(term) = object_if_set(weighted, "podAffinityTerm") {
                    extend_selector(term, labels);
                }
            }
            for term in objects_in(affinity, "requiredDuringSchedulingIgnoredDuringExecution") {
                extend_selector(term, labels);
            }
        }
    }
    if spec.contains_key("topologySpreadConstraints")
        && (context.enabled)("MatchLabelKeysInPodTopologySpreadSelectorMerge")
    {
        objects_in(spec, "topologySpreadConstraints")
            .for_each(|constraint| extend_selector(constraint, labels));
    }
}

fn extend_selector(holder: &mut Map, labels: Option<&Value>) {
    let mut added = Vec::new();
    for (field, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = holder.get(field).and_then(Value::as_array).unwrap_or(&[]);
        for key in keys.iter().filter_map(Value::as_str) {
            if let Some(value) = labels.and_then(|labels| labels.get(key)) {
                let expression = [
                    ("key", Value::from(key)),
                    ("operator", operator.into()),
                    ("values", vec![value.clone()].into()),
                ];
                added.push(Value::Object(Map::from_iter(expression)));
            }
        }
    }
    // Without a selector there is nothing to extend. Validation refuses the keys then.
    if let Some(selector) = object_if_set(holder, "labelSelector").filter(|_| !added.is_empty()) {
        let expressions = selector.get_or_insert_with("matchExpressions", || Value::Array(Vec::new()));
        if let Some(expressions) = expressions.as_array_mut() {
            expressions.extend(added);
        }
    }
}

/// The `AppArmor` profile that an annotation names.
pub(super) fn app_armor_profile(annotation: &str) -> Option<Value> {
    let profile = match annotation {
        "unconfined" => Map::from_iter([("type", Value::from("Unconfined"))]),
        "runtime/default" => Map::from_iter([("type", Value::from("RuntimeDefault"))]),
        other => {
            let path = other.strip_prefix("localhost/").filter(|path| !path.is_empty())?;
            Map::from_iter([
                ("type", Value::from("Localhost")),
                ("localhostProfile", path.into()),
            ])
        }
    };
    let profile = Value::Object(profile);
    // kube-apiserver skips an annotation that would be an invalid field.
    let mut errors = ErrorList::new();
    security::app_armor(&Cursor::at(Some(&profile), Path::ROOT), &mut errors);
    errors.is_empty().then_some(profile)
}

/// Sets the fields that replaced the annotations for `AppArmor`.
fn apply_app_armor(spec: &mut Map, annotations: &Map) {
    let is_windows = spec.get("os").is_some_and(|os| os.get_str("name") == "windows");
    if is_windows || !annotations.keys().any(|key| key.starts_with(APP_ARMOR)) {
        return;
    }
    let of_pod = spec
        .get("securityContext")
        .and_then(|c| c.get("appArmorProfile"))
        .cloned();
    for list in CONTAINERS {
        for container in objects_in(spec, list) {
            let key = of_container(APP_ARMOR, container.get_str("name"));
            let is_set = container
                .get("securityContext")
                .is_some_and(|c| c.get("appArmorProfile").is_some());
            let profile = annotations
                .get(&key)
                .and_then(Value::as_str)
                .and_then(app_armor_profile);
            // The container would inherit an equal profile from its pod.
            if let Some(profile) = profile.filter(|p| !is_set && Some(p) != of_pod.as_ref()) {
                let context = container.get_or_insert_with("securityContext", || Map::new().into());
                if let Some(context) = context.as_object_mut() {
                    context.insert("appArmorProfile", profile);
                }
            }
        }
    }
}

/// Annotations that held init containers.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// Drops the fields of disabled feature gates.
fn drop_fields(pod: &mut Map, old: Option<&Value>, context: &Context<'_>) {
    let old_spec = old.and_then(|old| old.get("spec"));
    if let Some(spec) = object_if_set(pod, "spec") {
        drop_from_spec(spec, old_spec, context);
    }
    if let Some(status) = object_if_set(pod, "status") {
        let old = old.and_then(|old| old.get("status"));
        drop_disabled("core/v1", "PodStatus", status, old, context);
    }
    if let Some(metadata) = object_if_set(pod, "metadata") {
        drop_init_container_annotations(metadata);
    }
}

/// Drops the annotations that held init containers.
pub(in crate::core) fn drop_init_container_annotations(metadata: &mut Map) {
    if let Some(annotations) = object_if_set(metadata, "annotations") {
        annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key));
    }
}

/// Drops the fields of disabled feature gates from a pod spec.
pub(in crate::core) fn drop_from_spec(spec: &mut Map, old: Option<&Value>, context: &Context<'_>) {
    drop_disabled("core/v1", "PodSpec", spec, old, context);
    drop_stop_signals(spec, old, context);
    drop_restart_policies(spec, old, context);
}

/// Stop signals of containers have no gate in the table, since their struct goes with them.
fn drop_stop_signals(spec: &mut Map, old: Option<&Value>, context: &Context<'_>) {
    let uses = |container: &Value| container.at(["lifecycle", "stopSignal"]).is_some();
    let has = |spec: &Map| {
        let lists = CONTAINERS.iter().filter_map(|list| spec.get(list)?.as_array());
        lists.flatten().any(uses)
    };
    if !has(spec) || (context.enabled)("ContainerStopSignals") {
        return;
    }
    if old.and_then(Value::as_object).is_some_and(has) {
        return;
    }
    for list in CONTAINERS {
        for container in objects_in(spec, list) {
            // A lifecycle that had only a signal goes away with it.
            if let Some(lifecycle) = object_if_set(container, "lifecycle")
                && lifecycle.remove("stopSignal").is_some()
                && lifecycle.is_empty()
            {
                container.remove("lifecycle");
            }
        }
    }
}

/// Without restart rules, only sidecars have a restart policy.
fn drop_restart_policies(spec: &mut Map, old: Option<&Value>, context: &Context<'_>) {
    let own = |list: &str, container: &Value| {
        let policy = container.get_str("restartPolicy");
        !policy.is_empty() && (list != "initContainers" || policy != "Always")
    };
    let has = |spec: &Map| {
        CONTAINERS.iter().any(|list| {
            let containers = spec.get(list).and_then(Value::as_array).unwrap_or(&[]);
            containers.iter().any(|container| own(list, container))
        })
    };
    if !has(spec)
        || (context.enabled)("ContainerRestartRules")
        || old.and_then(Value::as_object).is_some_and(has)
    {
        return;
    }
    for list in CONTAINERS {
        for container in objects_in(spec, list) {
            if list != "initContainers" || container.get_str("restartPolicy") != "Always" {
                container.remove("restartPolicy");
            }
        }
    }
}

fn count_generation(pod: &mut Map, old: &Value) {
    let changed = is_changed(pod, old, "spec", ("core/v1", "PodSpec"));
    count_change(pod, old, changed);
}

/// An update that leaves the resources of the pod as a whole out keeps them.
fn keep_pod_level(pod: &mut Map, old: &Value, context: &Context<'_>) {
    let stored = old.at(["spec", "resources"]);
    if let (Some(spec), Some(stored)) = (object_if_set(pod, "spec"), stored)
        && !spec.contains_key("resources")
        && (context.enabled)("PodLevelResourcesFixDefaulting")
    {
        spec.insert("resources", stored.clone());
    }
}

/// Metadata that subresources keep.
const KEPT_METADATA: [&str; 7] = [
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
];

/// Keeps spec, status and metadata.
fn keep_all(pod: &mut Map, old: &Value) {
    for field in ["spec", "status"] {
        keep(pod, old, field);
    }
    for field in KEPT_METADATA {
        keep_metadata(pod, old, field);
    }
}

/// Keeps everything but the resources and resize policies of containers. If containers were added, removed or renamed, they
/// stay as they were sent, and validation refuses them.
fn keep_all_but_resources(pod: &mut Map, old: &Value, context: &Context<'_>) {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let new = pod.get("spec").cloned().unwrap_or_default();
    let count = |spec: &Value, list: &str| spec.list(list).len();
    let old_spec = old.get("spec").cloned().unwrap_or_default();
    if LISTS
        .iter()
        .any(|list| count(&new, list) != count(&old_spec, list))
    {
        return;
    }
    keep_all(pod, old);
    let Some(spec) = object_if_set(pod, "spec") else {
        return;
    };
    if (context.enabled)("InPlacePodLevelResourcesVerticalScaling") {
        match new.get("resources") {
            Some(resources) => spec.insert("resources", resources.clone()),
            None => spec.remove("resources"),
        };
    }
    for list in LISTS {
        let sent = new.list(list);
        let is_renamed = |(a, b): (&Value, &Value)| a.get_str("name") != b.get_str("name");
        if sent.iter().zip(old_spec.list(list)).any(is_renamed) {
            spec.insert(list, Value::Array(sent.to_vec()));
            continue;
        }
        let mut sent = sent.iter();
        for container in objects_in(spec, list) {
            let Some(sent) = sent.next() else { break };
            for field in ["resources", "resizePolicy"] {
                match sent.get(field) {
                    Some(value) => container.insert(field, value.clone()),
                    None => container.remove(field),
                };
            }
        }
    }
    if (context.enabled)("InPlacePodVerticalScalingMemoryBackedVolumes")
        && let Some(volumes) = new.get("volumes")
    {
        spec.insert("volumes", volumes.clone());
    }
}

fn update_status(pod: &mut Map, old: &Value, write: &Write<'_>) {
    keep(pod, old, "spec");
    keep_metadata(pod, old, "deletionTimestamp");
    // Old kubelets corrupt owner references, which would break garbage collection.
    keep_metadata(pod, old, "ownerReferences");
    keep_metadata(pod, old, "generation");
    let stored = old.get("status");
    let status = pod.get_or_insert_with("status", || Map::new().into());
    if let Some(status) = status.as_object_mut() {
        // Old kubelets drop fields of the status that they do not know.
        for field in [
            "qosClass",
            "resourceClaimStatuses",
            "extendedResourceClaimStatus",
            "nodeAllocatableResourceClaimStatuses",
            "observedGeneration",
        ] {
            let kept = stored.and_then(|stored| stored.get(field));
            let is_unset = match status.get(field) {
                None | Some(Value::Null | Value::Int(0)) => true,
                Some(Value::String(text)) => text.is_empty(),
                Some(_) => false,
            };
            if let Some(kept) = kept.filter(|_| is_unset) {
                status.insert(field, kept.clone());
            }
        }
        keep_observed_generations(status, stored);
    }
    drop_fields(pod, Some(old), &write.context);
}

/// Conditions that do not say which generation they are about keep what is stored; the n-th condition of a type that of the
/// n-th stored one.
fn keep_observed_generations(status: &mut Map, stored: Option<&Value>) {
    let mut by_type: BTreeMap<&str, VecDeque<&Value>> = BTreeMap::new();
    for condition in stored.map_or(&[][..], |s| s.list("conditions")) {
        by_type
            .entry(condition.get_str("type"))
            .or_default()
            .push_back(condition);
    }
    for condition in objects_in(status, "conditions") {
        let same_type = by_type.get_mut(condition.get("type").and_then(Value::as_str).unwrap_or_default());
        let kept = same_type
            .and_then(VecDeque::pop_front)
            .and_then(|c| c.get("observedGeneration"));
        let is_unset = condition
            .get("observedGeneration")
            .is_none_or(|g| g.as_int() == Some(0));
        if let Some(kept) = kept.filter(|_| is_unset) {
            condition.insert("observedGeneration", kept.clone());
        }
    }
}
