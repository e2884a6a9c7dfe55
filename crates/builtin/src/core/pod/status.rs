//! The status of a pod.

use super::defaults::STATUSES;
use super::rules::Rules;
use crate::checks::resources::quantity;
use crate::checks::{Report, Rule, ip, names, numbers, update};
use crate::{Cursor, checks::go};
use scantling_value::{ErrorList, FieldError, Value, deadline};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Checks a new status of a pod.
pub(super) fn validate(pod: &Value, old: &Value, rules: &Rules<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(pod);
    let (spec, at) = (root.field("spec"), root.field("status"));
    let stored = old.get("status").cloned().unwrap_or_default();
    check_conditions(&at.field("conditions"), errors);
    check_nominated_node(&at.field("nominatedNodeName"), old, &stored, rules, errors);
    let observed = at.field("observedGeneration");
    if observed.int() < 0 {
        errors.invalid(&observed, "must be a non-negative integer");
    }
    let class = at.field("qosClass");
    if class.str() != stored.get_str("qosClass") {
        errors.invalid(&class, update::IMMUTABLE);
    }
    let old_spec = old.get("spec").cloned().unwrap_or_default();
    for list in STATUSES {
        check_transitions(&at.field(list), stored.list(list), list, &old_spec, rules, errors);
    }
    check_claim_statuses(&at.field("resourceClaimStatuses"), &spec, errors);
    check_extended_claims(&at.field("extendedResourceClaimStatus"), &spec, errors);
    check_allocatable_claims(&at, &spec, errors);
    check_volume_health(&at.field("volumeHealth"), &spec, errors);
    check_pod_addresses(&at, &stored, errors);
    check_host_addresses(&at, &stored, errors);
    let is_windows = spec.field("os").field("name").str() == "windows";
    for list in STATUSES {
        for status in at.field(list).items() {
            check_user(&status.field("user"), is_windows, errors);
        }
    }
    for (list, containers) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
    ] {
        let containers = spec.field(containers);
        // Of containers with the same name, the first one counts.
        let by_name = containers.list().iter().rev().map(|c| (c.get_str("name"), c));
        let by_name: BTreeMap<&str, &Value> = by_name.collect();
        for status in at.field(list).items() {
            check_allocated_resources(&status, &by_name, &at, errors);
        }
    }
    for status in at.field("ephemeralContainerStatuses").items() {
        let allocated = status.field("allocatedResourcesStatus");
        if !allocated.list().is_empty() {
            errors.forbidden(&allocated, "must not be specified in container status");
        }
    }
    if rules.enabled("ImageVolumeWithDigest") {
        STATUSES
            .iter()
            .for_each(|list| check_image_volumes(&at.field(list), errors));
    }
}

fn check_conditions(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for condition in at.items() {
        let (observed, kind) = (condition.field("observedGeneration"), condition.field("type"));
        if observed.int() < 0 {
            errors.invalid(&observed, "must be a non-negative integer");
        }
        if !matches!(kind.str(), "PodScheduled" | "Ready" | "Initialized") {
            // UPSTREAM: the path has the name of the Go field.
            let kind = kind.with_path(condition.path().field("Type"));
            errors.invalid_for(&kind, names::label_key(kind.str()));
        }
    }
}

fn check_nominated_node(
    at: &Cursor<'_, '_>,
    old: &Value,
    stored: &Value,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    if at.str().is_empty() || at.str() == stored.get_str("nominatedNodeName") {
        return;
    }
    errors.invalid_for(at, names::dns1123_subdomain(at.str()));
    // The scheduler nominates a node only for pods that wait for one.
    let is_bound = !old.str_at(["spec", "nodeName"]).is_empty();
    if is_bound && rules.enabled("ClearingNominatedNodeNameAfterBinding") {
        errors.forbidden(at, "may not be set on pods that are already bound to a node");
    }
}

/// A container that has ended starts again only if its restart policy says so.
fn check_transitions(
    at: &Cursor<'_, '_>,
    stored: &[Value],
    list: &str,
    spec: &Value,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    let containers = match list {
        "containerStatuses" => "containers",
        "initContainerStatuses" => "initContainers",
        // Ephemeral containers are never restarted.
        _ => "",
    };
    if stored.is_empty() || (!containers.is_empty() && rules.has_restart_all() && restarts_all(spec)) {
        return;
    }
    let is_running = |status: &&Value| status.at(["state", "terminated"]).is_none();
    let running: BTreeSet<&str> = at
        .list()
        .iter()
        .filter(is_running)
        .map(|new| new.get_str("name"))
        .collect();
    for (i, old) in stored.iter().enumerate() {
        // Each container that ended is looked up in the spec by its name.
        deadline::tick_for(spec.list(containers).len());
        let Some(ended) = old.at(["state", "terminated"]) else {
            continue;
        };
        let code = ended.get("exitCode").and_then(Value::as_int).unwrap_or(0);
        if running.contains(old.get_str("name"))
            && !may_restart(containers, old.get_str("name"), code, spec, rules)
        {
            let status = at.path().index(i);
            let why = "may not be transitioned to non-terminated state";
            errors.push_with(|| FieldError::forbidden(&status.field("state"), why));
        }
    }
}

/// Returns whether a rule of some container restarts all of them.
fn restarts_all(spec: &Value) -> bool {
    let containers = spec.list("initContainers").iter().chain(spec.list("containers"));
    let mut rules = containers.flat_map(|container| container.list("restartPolicyRules"));
    rules.any(|rule| rule.get_str("action") == "RestartAllContainers")
}

fn may_restart(list: &str, name: &str, code: i64, spec: &Value, rules: &Rules<'_>) -> bool {
    let of_policy = |policy: &str| match policy {
        "OnFailure" => code != 0,
        "Never" => false,
        _ => true,
    };
    if list.is_empty() {
        return false;
    }
    let container = spec.list(list).iter().find(|c| c.get_str("name") == name);
    if !rules.has_restart_rules() {
        let is_sidecar =
            list == "initContainers" && container.is_some_and(|c| c.get_str("restartPolicy") == "Always");
        return is_sidecar || of_policy(spec.get_str("restartPolicy"));
    }
    let Some(container) = container else { return false };
    let own = container.get_str("restartPolicy");
    let matches = |rule: &&Value| {
        let codes = rule.get("exitCodes");
        let is_listed = codes.is_some_and(|c| c.list("values").iter().any(|v| v.as_int() == Some(code)));
        codes.is_some_and(|codes| is_listed == (codes.get_str("operator") == "In"))
    };
    let rule = container.list("restartPolicyRules").iter().find(matches);
    match rule.map(|rule| rule.get_str("action")) {
        // Rules only apply to containers with a restart policy of their own.
        Some("Restart") if !own.is_empty() => true,
        _ if matches!(own, "Always" | "OnFailure" | "Never") => of_policy(own),
        _ => of_policy(spec.get_str("restartPolicy")),
    }
}

/// Each status is about a claim of the spec, once.
fn check_claim_statuses(at: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let claims = spec.field("resourceClaims");
    let claims: BTreeSet<&str> = claims.list().iter().map(|claim| claim.get_str("name")).collect();
    let mut seen = BTreeSet::new();
    for status in at.items() {
        let name = status.field("name");
        if !claims.contains(name.str()) {
            errors.invalid(&name, "must match the name of an entry in `spec.resourceClaims`");
        }
        errors.unique(&mut seen, &name);
        Rule::FormIfSet(names::dns1123_subdomain).check(&status.field("resourceClaimName"), errors);
    }
}

/// Each mapping leads from a request of a container to a request of the claim that the scheduler created for it.
fn check_extended_claims(at: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    let mappings = at.field("requestMappings");
    Rule::RequiredFor("at least one request mapping is required").check(&mappings, errors);
    let container = |name: &str| {
        let lists = [spec.field("containers"), spec.field("initContainers")];
        lists
            .iter()
            .flat_map(Cursor::list)
            .find(|c| c.get_str("name") == name)
    };
    let mut seen = BTreeSet::new();
    for mapping in mappings.items() {
        let parts = ["containerName", "resourceName", "requestName"].map(|field| mapping.field(field));
        let [name, resource, request] = &parts;
        match container(name.str()) {
            Some(container) if container.at(["resources", "requests", resource.str()]).is_none() => {
                let why = "must match the extended resource name of an entry in spec.initContainers.resources.requests \
                           or spec.containers.resources.requests";
                errors.invalid(resource, why);
            }
            Some(_) => {}
            None => {
                let why =
                    "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.invalid(name, why);
            }
        }
        // UPSTREAM: the path of a malformed name lacks `requestMappings` and the index; that of a repeated one has
        // both.
        let request_at = request.with_path(at.path().field("requestName"));
        errors.invalid_for(&request_at, names::dns1123_label(request.str()));
        if !seen.insert((name.str(), resource.str(), request.str())) {
            parts.iter().for_each(|part| errors.duplicate(part, part.str()));
        }
    }
    Rule::RequiredForm(names::dns1123_subdomain).check(&at.field("resourceClaimName"), errors);
}

fn check_allocatable_claims(at: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let own = [spec.field("resourceClaims"), at.field("resourceClaimStatuses")];
    for status in at.field("nodeAllocatableResourceClaimStatuses").items() {
        let name = status.field("resourceClaimName");
        if name.str().is_empty() {
            continue;
        }
        let is_own = |claim: &Value| claim.get_str("resourceClaimName") == name.str();
        if !own.iter().flat_map(Cursor::list).any(is_own) {
            errors.invalid(&name, "no mapping found in pod reference");
        }
        for mapped in status.field("mapping").items() {
            check_allocatable_name(&mapped.field("name"), errors);
            check_not_negative(&mapped.field("quantity"), errors);
        }
        for overhead in status.field("overhead").items() {
            check_allocatable_name(&overhead.field("name"), errors);
            let amounts = ["perPod", "perContainer"].map(|field| overhead.field(field));
            if amounts.iter().any(Cursor::is_set) {
                amounts
                    .iter()
                    .for_each(|amount| check_not_negative(amount, errors));
            } else {
                let why = "at least one of perPod or perContainer must be set";
                errors.invalid_value(&overhead, "", why);
            }
        }
    }
}

fn check_allocatable_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !crate::checks::resources::is_pod_level(at.str()) {
        errors.invalid(at, "must be a node allocatable resource name");
    }
}

fn check_not_negative(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if quantity(at.value()).sign() == Ordering::Less {
        errors.invalid(at, "must be non-negative");
    }
}

fn check_volume_health(at: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let volumes = spec.field("volumes");
    let known: BTreeSet<&str> = volumes.list().iter().map(|v| v.get_str("name")).collect();
    for health in at.items() {
        let name = health.field("name");
        if !name.str().is_empty() && !known.contains(name.str()) {
            errors.push_with(|| FieldError::not_found(name.path(), name.str()));
        }
    }
}

/// The texts of addresses in a list of a status.
fn addresses<'v>(status: &'v Value, list: &str) -> BTreeSet<&'v str> {
    status
        .list(list)
        .iter()
        .map(|address| address.get_str("ip"))
        .collect()
}

fn check_pod_addresses(at: &Cursor<'_, '_>, stored: &Value, errors: &mut ErrorList) {
    let (single, list) = (at.field("podIP"), at.field("podIPs"));
    check_addresses(&list, &addresses(stored, "podIPs"), "PodIP", errors);
    let first = list.list().first().map(|ip| ip.get_str("ip"));
    if single.str().is_empty() != first.is_none() {
        let shown = go::list("core/v1", "PodIP", list.value());
        let why = "podIP and podIPs must either both be set or both be unset";
        errors.invalid_value(&list, shown, why);
    } else if let Some(first) = first.filter(|first| *first != single.str()) {
        let at = list.path().index(0);
        let why = "must be equal to `podIP`";
        errors.push_with(|| FieldError::invalid(&at.field("ip"), first, why));
    }
}

fn check_host_addresses(at: &Cursor<'_, '_>, stored: &Value, errors: &mut ErrorList) {
    let list = at.field("hostIPs");
    let Some(first) = list.list().first().map(|ip| ip.get_str("ip")) else {
        return;
    };
    if first != at.field("hostIP").str() {
        let at = list.path().index(0);
        let why = "must be equal to `hostIP`";
        errors.push_with(|| FieldError::invalid(&at.field("ip"), first, why));
    }
    check_addresses(&list, &addresses(stored, "hostIPs"), "HostIP", errors);
}

/// Addresses are valid, and at most one of each family.
fn check_addresses(list: &Cursor<'_, '_>, stored: &BTreeSet<&str>, name: &str, errors: &mut ErrorList) {
    for (i, address) in list.items().enumerate() {
        let ip = address.field("ip");
        ip::check_unless_stored(&ip.with_path(list.path().index(i)), stored, errors);
    }
    let count = list.list().len();
    if count < 2 {
        return;
    }
    let texts: Vec<&str> = list.list().iter().map(|address| address.get_str("ip")).collect();
    let parsed: Vec<_> = texts.iter().map(|text| ip::parse_sloppy(text)).collect();
    if let Some(i) = parsed.iter().position(Option::is_none) {
        let text = texts.get(i).copied().unwrap_or("");
        let why = format!("failed to check for dual stack with error:invalid IP[{i}]: {text}");
        errors.push_with(|| FieldError::internal(list.path(), why));
    }
    let is_v6 = parsed.iter().flatten().map(|ip| ip.to_canonical().is_ipv6());
    let families: BTreeSet<bool> = is_v6.collect();
    // UPSTREAM: an address that cannot be parsed is reported twice, because it belongs to no family.
    let is_dual = families.len() == 2 && parsed.iter().all(Option::is_some);
    if !is_dual || count > 2 {
        let shown = go::list("core/v1", name, list.value());
        errors.invalid_value(list, shown, "may specify no more than one IP for each IP family");
    }
}

fn check_user(at: &Cursor<'_, '_>, is_windows: bool, errors: &mut ErrorList) {
    let linux = at.field("linux");
    if !linux.is_set() {
        return;
    }
    if is_windows {
        return errors.forbidden(&linux, "cannot be set for a windows pod");
    }
    let (uid, gid) = (linux.field("uid"), linux.field("gid"));
    numbers::between(&uid, 0, i64::from(u32::MAX), errors);
    numbers::id(&gid, errors);
    linux
        .field("supplementalGroups")
        .items()
        .for_each(|group| numbers::id(&group, errors));
}

fn check_allocated_resources(
    status: &Cursor<'_, '_>,
    containers: &BTreeMap<&str, &Value>,
    pod: &Cursor<'_, '_>,
    errors: &mut ErrorList,
) {
    const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];
    const MAX_MESSAGE: usize = 1024;
    let name = status.field("name").str();
    let container = containers.get(name).copied();
    for allocated in status.field("allocatedResourcesStatus").items() {
        let resource = allocated.field("name");
        if let Some(why) = container.and_then(|c| allocation_fault(resource.str(), c, pod)) {
            errors.invalid(&resource, why);
        }
        let mut seen = BTreeSet::new();
        for device in allocated.field("resources").items() {
            let [id, health, message] = ["resourceID", "health", "message"].map(|field| device.field(field));
            Rule::In(HEALTH).check(&health, errors);
            if message.is_set() {
                match message.str().len() {
                    0 => errors.required(&message, "must be non-empty if specified"),
                    1..=MAX_MESSAGE => {}
                    _ => errors.push_with(|| FieldError::too_long(message.path(), MAX_MESSAGE)),
                }
            }
            errors.unique(&mut seen, &id);
        }
    }
}

/// Returns why a container cannot have been given a resource, if it cannot.
fn allocation_fault(resource: &str, container: &Value, pod: &Cursor<'_, '_>) -> Option<&'static str> {
    let requests = |name: &str| container.at(["resources", "requests", name]);
    deadline::tick_for(container.list_at(["resources", "claims"]).len());
    let Some(claim) = resource.strip_prefix("claim:") else {
        let why = "must match one of the container's resource requests";
        return requests(resource).is_none().then_some(why);
    };
    let is_claimed =
        container
            .list_at(["resources", "claims"])
            .iter()
            .any(|own| match own.get_str("request") {
                "" => own.get_str("name") == claim,
                request => claim.split_once('/') == Some((own.get_str("name"), request)),
            });
    let extended = pod.field("extendedResourceClaimStatus");
    let is_extended = claim.split_once('/').is_some_and(|(claim, request)| {
        extended.is_set()
            && !claim.is_empty()
            && !request.is_empty()
            && claim == extended.field("resourceClaimName").str()
            && extended.field("requestMappings").list().iter().any(|mapping| {
                mapping.get_str("containerName") == container.get_str("name")
                    && mapping.get_str("requestName") == request
                    && quantity(requests(mapping.get_str("resourceName"))).sign() != Ordering::Equal
            })
    });
    let why = "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when \
               container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty";
    (!is_claimed && !is_extended).then_some(why)
}

/// The status of an image volume names the image that is mounted.
fn check_image_volumes(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX: usize = 256;
    for status in at.items() {
        for mount in status.field("volumeMounts").items() {
            let volume = mount.field("volumeStatus");
            let image = volume.field("image");
            if !image.is_set() {
                continue;
            }
            // UPSTREAM: the path has the name of the Go type.
            let image = image.with_path(volume.path().field("imageVolumeStatus"));
            let reference = image.field("imageRef");
            Rule::RequiredFor("imageRef must not be empty").check(&reference, errors);
            errors.max_bytes(&reference, MAX);
        }
    }
}
