//! Changes of resources of running pods.

use super::annotations::MIRROR;
use super::resources;
use super::rules::Rules;
use super::update::refused;
use crate::Cursor;
use crate::checks::Report;
use crate::checks::update::{keep, same_of};
use scantling_value::{ErrorList, FieldError, Map, Path, Value};

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Checks a change of resources. `pod` is the new pod, `spec` its spec.
pub(super) fn validate(
    pod: &Value,
    spec: &Cursor<'_, '_>,
    old: &Value,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    let old_spec = old.get("spec").cloned().unwrap_or_default();
    let annotations = old.at(["metadata", "annotations"]);
    if annotations.is_some_and(|annotations| annotations.get(MIRROR).is_some()) {
        // kube-apiserver reports this error instead of all others.
        *errors = refused("static pods cannot be resized");
        return;
    }
    if old_spec.str_at(["os", "name"]) == "windows" {
        *errors = refused("windows pods cannot be resized");
        return;
    }
    check_service_class(pod, spec, old, &old_spec, rules, errors);
    // What may change is put back as it was in this copy. Then it must equal the stored spec.
    let mut rest = spec.map().cloned().unwrap_or_default();
    if has_pod_level(spec.value()) || has_pod_level(Some(&old_spec)) {
        if !rules.enabled("InPlacePodLevelResourcesVerticalScaling") {
            let why = "resize of pods with pod-level resources is forbidden when \
                       InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
            errors.push_with(|| FieldError::forbidden(&Path::ROOT.field(""), why));
            return;
        }
        check_pod_level(spec, &old_spec, &mut rest, errors);
    }
    // The checks below compare containers by position.
    let before = errors.total();
    LISTS
        .iter()
        .for_each(|list| check_order(&spec.field(list), old_spec.list(list), list, errors));
    if errors.total() > before {
        return;
    }
    let resizes_init = rules.enabled("InPlacePodVerticalScalingInitContainers");
    for list in ["initContainers", "containers"] {
        for (container, old) in spec.field(list).items().zip(old_spec.list(list)) {
            if list == "containers" || resizes_init || is_sidecar(old) {
                check_removed(
                    &container.field("resources"),
                    old.get("resources"),
                    "resource",
                    errors,
                );
            }
        }
    }
    check_containers(spec, &old_spec, &mut rest, errors);
    check_init_containers(spec, &old_spec, resizes_init, &mut rest, errors);
    check_volumes(spec, &old_spec, &mut rest, rules, errors);
    let rest = Value::Object(rest);
    if errors.is_empty() && !same_of("core/v1", "PodSpec", Some(&rest), Some(&old_spec)) {
        errors.forbidden(spec, "only cpu and memory resources are mutable");
    }
}

fn is_sidecar(container: &Value) -> bool {
    container.get_str("restartPolicy") == "Always"
}

fn has_pod_level(spec: Option<&Value>) -> bool {
    let resources = spec.and_then(|spec| spec.get("resources"));
    ["requests", "limits"].iter().any(|list| {
        let list = resources.and_then(|r| r.get(list)).and_then(Value::as_object);
        list.is_some_and(|list| !list.is_empty())
    })
}

fn check_service_class(
    pod: &Value,
    spec: &Cursor<'_, '_>,
    old: &Value,
    old_spec: &Value,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    let stored = match old.str_at(["status", "qosClass"]) {
        "" => resources::service_class(old_spec, rules.context),
        class => class,
    };
    let new = spec
        .value()
        .map_or("", |spec| resources::service_class(spec, rules.context));
    if stored != new {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.invalid_value(spec, pod.str_at(["status", "qosClass"]), why);
    }
    // A kubelet that can resize reports the resources of running containers. kube-apiserver looks at the first
    // one only.
    let statuses = old.list_at(["status", "containerStatuses"]).iter();
    let mut running = statuses.filter(|status| status.at(["state", "running"]).is_some());
    if running
        .next()
        .is_some_and(|status| status.get("resources").is_none())
    {
        errors.forbidden(spec, "Pod running on node without support for resize");
    }
}

/// Checks that no request or limit is removed.
fn check_removed(new: &Cursor<'_, '_>, old: Option<&Value>, what: &str, errors: &mut ErrorList) {
    for list in ["requests", "limits"] {
        let now = new.field(list);
        let mut before = old
            .and_then(|old| old.get(list)?.as_object())
            .into_iter()
            .flat_map(Map::keys);
        if before.any(|name| now.map().is_none_or(|now| !now.contains_key(name))) {
            errors.forbidden(&now, format!("{what} {list} cannot be removed"));
        }
    }
}

fn check_pod_level(spec: &Cursor<'_, '_>, old: &Value, rest: &mut Map, errors: &mut ErrorList) {
    let (new, old) = (spec.field("resources"), old.get("resources"));
    if old.is_some() && !new.is_set() {
        return errors.forbidden(&new, "pod-level resources cannot be removed");
    }
    check_removed(&new, old, "pod-level resource", errors);
    if let Some(resources) = rest.get_mut("resources").and_then(Value::as_object_mut) {
        restore_compute(resources, old);
        if old.is_none()
            && ["requests", "limits", "claims"]
                .iter()
                .all(|list| is_empty(resources.get(list)))
        {
            rest.remove("resources");
        }
    }
    let is_same = same_of("core/v1", "ResourceRequirements", rest.get("resources"), old);
    if !is_same || rest.contains_key("resources") != old.is_some() {
        errors.forbidden(spec, "only cpu and memory resources are mutable at pod-level");
    }
}

fn is_empty(list: Option<&Value>) -> bool {
    match list {
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => true,
    }
}

/// Puts the amounts of CPU and memory back as they were.
fn restore_compute(resources: &mut Map, old: Option<&Value>) {
    for list in ["requests", "limits"] {
        let stored = old.and_then(|old| old.get(list));
        if resources.get(list).is_none() && stored.is_none() {
            continue;
        }
        let amounts = resources.get_or_insert_with(list, || Map::new().into());
        let Some(amounts) = amounts.as_object_mut() else {
            continue;
        };
        for name in ["cpu", "memory"] {
            match stored.and_then(|stored| stored.get(name)) {
                Some(amount) => amounts.insert(name, amount.clone()),
                None => amounts.remove(name),
            };
        }
    }
}

fn check_order(new: &Cursor<'_, '_>, old: &[Value], list: &str, errors: &mut ErrorList) {
    if new.list().len() != old.len() {
        return errors.forbidden(new, format!("{list} may not be added or removed on resize"));
    }
    for (container, old) in new.items().zip(old) {
        let name = container.field("name");
        if name.str() != old.get_str("name") {
            errors.forbidden(&name, format!("{list} may not be renamed or reordered on resize"));
        }
    }
}

/// A container whose amounts of CPU and memory are as they were.
fn restored(container: &Value, old: &Value) -> Value {
    let mut container = container.as_object().cloned().unwrap_or_default();
    let resources = container.get_or_insert_with("resources", || Map::new().into());
    if let Some(resources) = resources.as_object_mut() {
        restore_compute(resources, old.get("resources"));
    }
    container.into()
}

fn same_container(a: &Value, b: &Value) -> bool {
    same_of("core/v1", "Container", Some(a), Some(b))
}

fn check_containers(spec: &Cursor<'_, '_>, old: &Value, rest: &mut Map, errors: &mut ErrorList) {
    let list = spec.field("containers");
    let restored: Vec<Value> = list
        .list()
        .iter()
        .zip(old.list("containers"))
        .map(|(new, old)| restored(new, old))
        .collect();
    for (new, old) in restored.iter().zip(old.list("containers")) {
        if !same_container(new, old) {
            errors.forbidden(spec, "only cpu and memory resources are mutable");
        }
    }
    rest.insert("containers", Value::Array(restored));
}

fn check_init_containers(
    spec: &Cursor<'_, '_>,
    old: &Value,
    resizes_init: bool,
    rest: &mut Map,
    errors: &mut ErrorList,
) {
    let list = spec.field("initContainers");
    let mut containers = Vec::new();
    for (at, old) in list.items().zip(old.list("initContainers")) {
        let Some(new) = at.value() else { continue };
        let is_modified = !same_container(new, old);
        if !is_sidecar(new) && !resizes_init {
            if is_modified {
                let why = "resources for non-sidecar init containers are immutable";
                errors.forbidden(spec, why);
            }
            containers.push(new.clone());
            continue;
        }
        let restored = restored(new, old);
        if !same_container(&restored, old) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.forbidden(&at, why);
        }
        if is_modified && !is_sidecar(new) {
            let restarts = new.list("resizePolicy").iter();
            restarts
                .filter(|policy| policy.get_str("restartPolicy") == "RestartContainer")
                .for_each(|_| {
                    let why =
                        "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
                    errors.forbidden(&at, why);
                });
        }
        containers.push(restored);
    }
    if list.is_set() {
        rest.insert("initContainers", Value::Array(containers));
    }
}

fn check_volumes(
    spec: &Cursor<'_, '_>,
    old: &Value,
    rest: &mut Map,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    let list = spec.field("volumes");
    let volumes = old.list("volumes");
    let same = |a: &Value, b: &Value| same_of("core/v1", "Volume", Some(a), Some(b));
    if !rules.enabled("InPlacePodVerticalScalingMemoryBackedVolumes") {
        let is_same =
            list.list().len() == volumes.len() && list.list().iter().zip(volumes).all(|(a, b)| same(a, b));
        if !is_same {
            let why = "volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes feature \
                       gate is disabled";
            errors.forbidden(&list, why);
        }
        return;
    }
    if list.list().len() != volumes.len() {
        errors.forbidden(&list, "volumes may not be added or removed on resize");
    } else {
        for (at, old) in list.items().zip(volumes) {
            check_volume(&at, old, same, errors);
        }
    }
    keep(rest, old, "volumes");
}

/// The size of a directory in memory may change.
fn check_volume(
    at: &Cursor<'_, '_>,
    old: &Value,
    same: impl Fn(&Value, &Value) -> bool,
    errors: &mut ErrorList,
) {
    use crate::checks::resources::quantity;
    let name = at.field("name");
    if name.str() != old.get_str("name") {
        return errors.forbidden(&name, "volumes may not be renamed or reordered on resize");
    }
    let directory = at.field("emptyDir");
    let limit = directory.field("sizeLimit");
    let stored = old.at(["emptyDir", "sizeLimit"]);
    let mut compared = at.value().cloned().unwrap_or_default();
    if let Some(directory) = compared.as_object_mut().and_then(|v| v.get_mut("emptyDir"))
        && let (Some(directory), Some(_)) = (directory.as_object_mut(), old.get("emptyDir"))
    {
        match stored {
            Some(limit) => directory.insert("sizeLimit", limit.clone()),
            None => directory.remove("sizeLimit"),
        };
    }
    if !same(&compared, old) {
        let why = "only sizeLimit of memory-backed emptyDir volumes is mutable on resize";
        return errors.forbidden(at, why);
    }
    if !directory.is_set() {
        return;
    }
    let (new, old) = (quantity(limit.value()), quantity(stored));
    let is_zero =
        |amount: &scantling_notation::quantity::Quantity| amount.sign() == std::cmp::Ordering::Equal;
    if is_zero(&new) != is_zero(&old) {
        let why = "adding or removing sizeLimit on an existing volume is not allowed";
        errors.forbidden(&limit, why);
    } else if new != old && directory.field("medium").str() != "Memory" {
        let why = "sizeLimit is only mutable for memory-backed emptyDir volumes";
        errors.forbidden(&limit, why);
    }
}
