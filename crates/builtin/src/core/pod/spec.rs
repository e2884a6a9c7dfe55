//! The spec of a pod, as pods and templates have it.

use super::containers::{self, PodFacts};
use super::rules::Rules;
use super::{affinity, containers_at, mounts, resources, security, volumes, windows};
use crate::Cursor;
use crate::checks::resources::container_name;
use crate::checks::{Report, Rule, check_fields, go, ip, labels, names, numbers, tolerations};
use scantling_value::{ErrorList, FieldError, Value};
use std::collections::BTreeSet;

/// The facts about a pod that checks of its spec need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owner<'a> {
    /// The name; empty for templates and while it is generated.
    pub(super) name: &'a str,
    /// True if it is a mirror pod of a static pod.
    pub(super) is_mirror: bool,
}

/// Checks a pod spec.
pub(super) fn validate(at: &Cursor<'_, '_>, owner: Owner<'_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    let grace = at.field("terminationGracePeriodSeconds");
    if !grace.is_set() {
        errors.required(&grace, "");
    }
    let users = at.field("hostUsers");
    let valid_volumes = volumes::check(&at.field("volumes"), owner.name, rules, errors);
    let claims = at.field("resourceClaims");
    let claim_names = claims
        .list()
        .iter()
        .map(|c| c.get_str("name"))
        .filter(|n| !n.is_empty());
    let claim_names: BTreeSet<&str> = claim_names.collect();
    check_resource_claims(&claims, owner.is_mirror, errors);
    let os = at.field("os");
    let pod = PodFacts {
        rules,
        volumes: &valid_volumes,
        claims: &claim_names,
        restart_policy: at.field("restartPolicy").str(),
        has_host_users: !users.is_set() || users.bool(),
        grace: grace.as_int(),
        os: os.is_set().then(|| os.field("name").str()),
    };
    // The order of the checks is that of kube-apiserver, which is the order of the errors in the response.
    let regular = at.field("containers");
    containers::check_containers(&regular, &pod, errors);
    containers::check_init_containers(&at.field("initContainers"), &regular, &pod, errors);
    containers::check_ephemeral_containers(&at.field("ephemeralContainers"), at, &pod, errors);
    resources::check_pod_level(at, &pod, errors);
    check_host_ports(at, rules.is_pod, errors);
    Rule::RequiredOneOf(&["Always", "OnFailure", "Never"]).check(&at.field("restartPolicy"), errors);
    Rule::RequiredOneOf(DNS_POLICIES).check(&at.field("dnsPolicy"), errors);
    labels::labels(&at.field("nodeSelector"), errors);
    security::check_pod(&at.field("securityContext"), at, rules, errors);
    check_shared_processes(at, errors);
    affinity::check(&at.field("affinity"), rules, errors);
    check_dns(at, errors);
    for gate in at.field("readinessGates").items() {
        let condition = gate.field("conditionType");
        errors.invalid_for(&condition, names::label_key(condition.str()));
    }
    check_scheduling_gates(&at.field("schedulingGates"), errors);
    affinity::check_spread_constraints(&at.field("topologySpreadConstraints"), rules, errors);
    windows::check_host_processes(at, errors);
    check_user_namespace(at, rules, errors);
    check_hostname_override(at, errors);
    check_fields(NAMES_OF_ACCOUNT, at, errors);
    let (account, deprecated) = (at.field("serviceAccountName"), at.field("serviceAccount"));
    if deprecated.str() != account.str() {
        let quoted = scantling_value::go::quote(account.str());
        // The path has the name of the Go field.
        let deprecated = deprecated.with_path(at.path().field("deprecatedServiceAccount"));
        errors.invalid(
            &deprecated,
            format!("must be the same as serviceAccountName: {quoted}"),
        );
    }
    check_fields(NAMES, at, errors);
    let taints = at.field("tolerations");
    if !taints.list().is_empty() {
        // The stored pod is only searched if the new one uses these operators.
        let compares = || rules.compares_taints();
        let uses = taints
            .list()
            .iter()
            .any(|t| matches!(t.get_str("operator"), "Lt" | "Gt"));
        tolerations::tolerations(&taints, uses && compares(), errors);
    }
    check_fields(HOSTS_AND_CLASSES, at, errors);
    check_overhead(&at.field("overhead"), rules, errors);
    if os.is_set() {
        security::check_operating_system(at, errors);
    }
    check_scheduling_group(at, errors);
    containers_at(at, |container| {
        mounts::check_file_variables(at, container, errors);
    });
}

const DNS_POLICIES: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];

const NAMES_OF_ACCOUNT: &[(&str, Rule)] = &[("serviceAccountName", Rule::Form(names::dns1123_subdomain))];

const NAMES: &[(&str, Rule)] = &[
    ("nodeName", Rule::Form(names::dns1123_subdomain)),
    ("activeDeadlineSeconds", Rule::Between(1, i32::MAX as i64)),
    ("hostname", Rule::Form(names::dns1123_label)),
    ("subdomain", Rule::Form(names::dns1123_label)),
];

const HOSTS_AND_CLASSES: &[(&str, Rule)] = &[
    ("hostAliases", Rule::Each(host_alias)),
    ("priorityClassName", Rule::Form(names::dns1123_subdomain)),
    ("runtimeClassName", Rule::FormIfSet(names::dns1123_subdomain)),
    ("preemptionPolicy", Rule::IfSet(preemption_policy)),
];

fn preemption_policy(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    Rule::RequiredOneOf(&["PreemptLowerPriority", "Never"]).check(at, errors);
}

fn host_alias(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    ip::check_unless_stored(&at.field("ip"), &BTreeSet::new(), errors);
    for name in at.field("hostnames").items() {
        errors.invalid_for(&name, names::dns1123_subdomain(name.str()));
    }
}

/// Checks the resource claims of a pod. Static pods have none.
fn check_resource_claims(at: &Cursor<'_, '_>, is_mirror: bool, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for claim in at.items() {
        if is_mirror {
            // UPSTREAM: the error has no path.
            let nowhere = scantling_value::Path::ROOT;
            let why = "static pods do not support resource claims";
            errors.push_with(|| FieldError::forbidden(&nowhere.field(""), why));
            continue;
        }
        let [name, own, template] =
            ["name", "resourceClaimName", "resourceClaimTemplateName"].map(|f| claim.field(f));
        if name.str().is_empty() {
            errors.required(&name, "");
        } else if seen.contains(name.str()) {
            errors.duplicate(&name, name.str());
        } else {
            errors.invalid_for(&name, names::dns1123_label(name.str()));
            seen.insert(name.str());
        }
        let shown = || go::structure("core/v1", "PodResourceClaim", claim.value());
        match (own.is_set(), template.is_set()) {
            (true, true) => {
                let why =
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
                errors.invalid_value(&claim, shown(), why);
            }
            (false, false) => {
                let why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
                errors.invalid_value(&claim, shown(), why);
            }
            _ => {}
        }
        for name in [&own, &template] {
            Rule::FormIfSet(names::dns1123_subdomain).check(name, errors);
        }
    }
}

/// In the network of the host, ports of containers are ports of the host.
fn check_host_ports(at: &Cursor<'_, '_>, is_pod: bool, errors: &mut ErrorList) {
    if !at.field("hostNetwork").bool() {
        return;
    }
    for container in at.field("containers").items() {
        for port in container.field("ports").items() {
            let (host, own) = (port.field("hostPort"), port.field("containerPort"));
            // Host ports are only defaulted in pods, so that templates may leave them unset.
            if (is_pod || host.int() != 0) && host.int() != own.int() {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid_value(&host, host.int(), why);
            }
        }
    }
}

/// The processes of a pod are shared among its containers or with the host, not both.
fn check_shared_processes(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let shared = at.field("shareProcessNamespace");
    if shared.bool() && at.field("hostPID").bool() {
        errors.invalid(
            &shared,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        );
    }
}

fn check_dns(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX_SERVERS: usize = 3;
    const MAX_PATHS: usize = 32;
    const MAX_CHARACTERS: usize = 2048;
    let at = spec.field("dnsConfig");
    let [servers, searches] = ["nameservers", "searches"].map(|field| at.field(field));
    if spec.field("dnsPolicy").str() == "None" {
        if !at.is_set() {
            return errors.required(&at, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.list().is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&servers, why);
        }
    }
    if servers.list().len() > MAX_SERVERS {
        errors.invalid(
            &servers,
            format!("must not have more than {MAX_SERVERS} nameservers"),
        );
    }
    servers
        .items()
        .for_each(|server| ip::check_unless_stored(&server, &BTreeSet::new(), errors));
    if searches.list().len() > MAX_PATHS {
        errors.invalid(
            &searches,
            format!("must not have more than {MAX_PATHS} search paths"),
        );
    }
    let length: usize = searches
        .list()
        .iter()
        .map(|s| s.as_str().map_or(0, str::len) + 1)
        .sum();
    if length.saturating_sub(1) > MAX_CHARACTERS {
        let why = format!(
            "must not have more than {MAX_CHARACTERS} characters (including spaces) in the search list"
        );
        errors.invalid(&searches, why);
    }
    for search in searches.items().filter(|search| search.str() != ".") {
        let path = search.str().strip_suffix('.').unwrap_or(search.str());
        for why in names::subdomain_with_underscore(path) {
            errors.invalid_value(&search, path, why);
        }
    }
    for option in at.field("options").items() {
        if option.field("name").str().is_empty() {
            errors.required(&option, "must not be empty");
        }
    }
}

fn check_scheduling_gates(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for gate in at.items() {
        let name = gate.field("name").str();
        for why in names::label_key(name) {
            errors.invalid_value(&gate, name, why);
        }
        if !seen.insert(name) {
            errors.duplicate(&gate, name);
        }
    }
}

/// A pod with a user namespace of its own shares no other namespace with the host.
fn check_user_namespace(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    const WHY: &str = "when `hostUsers` is false";
    let users = at.field("hostUsers");
    if !users.is_set() || users.bool() {
        return;
    }
    let network = at.field("hostNetwork");
    if network.bool() && !rules.allows_host_network_with_user_namespace() {
        errors.forbidden(&network, WHY);
    }
    for (field, reported) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        let shared = at.field(field);
        if shared.bool() {
            // UPSTREAM: the path has the name of the Go field.
            errors.forbidden(&shared.with_path(at.path().field(reported)), WHY);
        }
    }
    containers_at(at, |container| {
        let devices = container.field("volumeDevices");
        if !devices.list().is_empty() && !rules.allows_devices_with_user_namespace() {
            errors.forbidden(&devices, WHY);
        }
    });
}

fn check_hostname_override(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX: usize = 64;
    let name = at.field("hostnameOverride");
    if !name.is_set() {
        return;
    }
    if at.field("setHostnameAsFQDN").bool() {
        errors.forbidden(&name, "may not be specified when setHostnameAsFQDN is true");
    }
    if at.field("hostNetwork").bool() {
        errors.forbidden(&name, "may not be specified when hostNetwork is true");
    }
    errors.max_bytes(&name, MAX);
    errors.invalid_for(&name, names::dns1123_subdomain(name.str()));
}

/// Checks the overhead of a pod, which follows the rules for limits of containers.
fn check_overhead(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    if let Some(amounts) = at.value() {
        let limits = scantling_value::Map::from_iter([("limits", amounts.clone())]);
        let limits = Value::Object(limits);
        let none = BTreeSet::new();
        let limits = Cursor::at(Some(&limits), *at.path());
        containers::requirements(&limits, container_name, &none, rules, errors);
    }
}

fn check_scheduling_group(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let group = at.field("schedulingGroup");
    if !group.is_set() {
        return;
    }
    let name = group.field("podGroupName");
    match name.is_set() {
        true => errors.invalid_for(&name, names::dns1123_subdomain(name.str())),
        false => errors.invalid_value(&name, Value::Null, "must specify one of: `podGroupName`"),
    }
    if !at.field("evictionResponders").list().is_empty() {
        errors.forbidden(&group, "may not be set when evictionResponders is set");
    }
}

/// Checks what only pods have to obey, not templates.
pub(super) fn validate_for_pod(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.field("serviceAccountName").str().is_empty() {
        for volume in at.field("volumes").items() {
            let projected = volume.field("projected");
            for source in projected.field("sources").items() {
                Rule::Forbidden("must not be specified when serviceAccountName is not set")
                    .check(&source.field("serviceAccountToken"), errors);
            }
        }
    }
    numbers::non_negative(&at.field("terminationGracePeriodSeconds"), errors);
    for list in ["containers", "initContainers"] {
        let list = at.field(list);
        Rule::Each(containers::check_image_spaces).check(&list, errors);
    }
}
