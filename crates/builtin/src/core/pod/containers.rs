//! Containers of all three kinds.

use super::mounts::{self, Volumes};
use super::rules::Rules;
use super::{environment, probes, security};
use crate::Cursor;
use crate::checks::resources::{self, Requirements};
use crate::checks::{Report, Rule, go, names, numbers};
use scantling_value::{ErrorList, FieldError, Value};
use std::collections::BTreeSet;

/// The policies for pulling images.
pub(super) const PULL_POLICY: Rule = Rule::RequiredOneOf(&["Always", "IfNotPresent", "Never"]);

const MESSAGE_POLICY: Rule = Rule::RequiredOneOf(&["File", "FallbackToLogsOnError"]);
const PROTOCOL: Rule = Rule::RequiredOneOf(&["SCTP", "TCP", "UDP"]);

/// The facts about a pod that checks of its containers need.
#[derive(Debug)]
pub(super) struct PodFacts<'a> {
    pub(super) rules: &'a Rules<'a>,
    pub(super) volumes: &'a Volumes<'a>,
    pub(super) claims: &'a BTreeSet<&'a str>,
    pub(super) restart_policy: &'a str,
    /// True if the pod uses the host's user namespace.
    pub(super) has_host_users: bool,
    /// The grace period of the pod, in seconds.
    pub(super) grace: Option<i64>,
    /// The operating system, where the pod names one.
    pub(super) os: Option<&'a str>,
}

/// Checks the regular containers of a pod.
pub(super) fn check_containers(at: &Cursor<'_, '_>, pod: &PodFacts<'_>, errors: &mut ErrorList) {
    if at.list().is_empty() {
        return errors.required(at, "");
    }
    let mut names = BTreeSet::new();
    for container in at.items() {
        check_common(&container, pod, errors);
        let name = container.field("name");
        errors.unique(&mut names, &name);
        let lifecycle = container.field("lifecycle");
        probes::check_lifecycle(&lifecycle, pod.grace, pod.os, errors);
        probes::check_probes(&container, errors);
        let policy = container.field("restartPolicy");
        let rules = container.field("restartPolicyRules");
        if policy.is_set() || !rules.list().is_empty() {
            if pod.rules.has_restart_rules() {
                check_restart_policy(&container, pod.rules, errors);
            } else if policy.is_set() {
                errors.forbidden(&policy, "may not be set for non-init containers");
            }
        }
    }
    check_host_ports(at.list(), at, errors);
}

/// Checks the init containers of a pod.
pub(super) fn check_init_containers(
    at: &Cursor<'_, '_>,
    regular: &Cursor<'_, '_>,
    pod: &PodFacts<'_>,
    errors: &mut ErrorList,
) {
    if at.list().is_empty() {
        return;
    }
    let mut names: BTreeSet<&str> = regular.list().iter().map(|c| c.get_str("name")).collect();
    for (i, container) in at.items().enumerate() {
        check_common(&container, pod, errors);
        check_init_restart_policy(&container, pod.rules, errors);
        let is_sidecar = container.field("restartPolicy").str() == "Always";
        let name = container.field("name");
        if names.contains(name.str()) {
            errors.duplicate(&name, name.str());
        } else if !name.str().is_empty() {
            names.insert(name.str());
        }
        // Kubernetes reports conflicts as if the container were the only one.
        check_host_ports(at.list().get(i..=i).unwrap_or(&[]), at, errors);
        if is_sidecar {
            let lifecycle = container.field("lifecycle");
            probes::check_lifecycle(&lifecycle, pod.grace, pod.os, errors);
            probes::check_probes(&container, errors);
        } else {
            const WHY: &str = "may not be set for init containers without restartPolicy=Always";
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                Rule::Forbidden(WHY).check(&container.field(field), errors);
            }
        }
        check_init_resize_policy(&container, is_sidecar, pod.rules, errors);
    }
}

fn check_init_resize_policy(
    container: &Cursor<'_, '_>,
    is_sidecar: bool,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    let policies = container.field("resizePolicy");
    if policies.list().is_empty() {
        return;
    }
    if !rules.has_sidecar_resize() {
        let shown = go::list("core/v1", "ContainerResizePolicy", policies.value());
        errors.invalid_value(&policies, shown, "must not be set for init containers");
    }
    if !is_sidecar && !rules.allows_restart_of_init_containers() {
        for policy in policies.items() {
            let restart = policy.field("restartPolicy");
            if restart.str() == "RestartContainer" {
                let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
                errors.invalid(&restart, why);
            }
        }
    }
}

/// Fields that ephemeral containers may not set, in the order of their declaration.
const FORBIDDEN_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Checks the ephemeral containers of a pod.
pub(super) fn check_ephemeral_containers(
    at: &Cursor<'_, '_>,
    spec: &Cursor<'_, '_>,
    pod: &PodFacts<'_>,
    errors: &mut ErrorList,
) {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    if at.list().is_empty() {
        return;
    }
    let lists = [spec.field("containers"), spec.field("initContainers")];
    let others: BTreeSet<&str> = lists
        .iter()
        .flat_map(Cursor::list)
        .map(|c| c.get_str("name"))
        .collect();
    let mut names = others.clone();
    for container in at.items() {
        check_common(&container, pod, errors);
        check_image_spaces(&container, errors);
        let (name, target) = (container.field("name"), container.field("targetContainerName"));
        errors.unique(&mut names, &name);
        if !target.str().is_empty() && !others.contains(target.str()) {
            errors.push_with(|| FieldError::not_found(target.path(), target.str()));
        }
        for name in FORBIDDEN_EPHEMERAL {
            let field = container.field(name);
            // `resources` is not a pointer in Go, so that an empty one counts as unset.
            let is_empty_struct = matches!(field.value(), Some(Value::Object(m)) if m.is_empty());
            if field.is_set() && !(name == "resources" && is_empty_struct) {
                errors.forbidden(&field, WHY);
            }
        }
        for mount in container.field("volumeMounts").items() {
            for field in ["subPath", "subPathExpr"] {
                let field = mount.field(field);
                if !field.str().is_empty() {
                    errors.forbidden(&field, WHY);
                }
            }
        }
    }
}

/// Checks what all kinds of containers have in common.
fn check_common(at: &Cursor<'_, '_>, pod: &PodFacts<'_>, errors: &mut ErrorList) {
    Rule::RequiredForm(names::dns1123_label).check(&at.field("name"), errors);
    Rule::Required.check(&at.field("image"), errors);
    MESSAGE_POLICY.check(&at.field("terminationMessagePolicy"), errors);
    check_ports(&at.field("ports"), errors);
    environment::check_variables(&at.field("env"), pod.rules, errors);
    environment::check_sources(&at.field("envFrom"), pod.rules, errors);
    mounts::check_mounts(at, pod.volumes, errors);
    mounts::check_devices(at, pod.volumes, errors);
    PULL_POLICY.check(&at.field("imagePullPolicy"), errors);
    let resources = at.field("resources");
    requirements(
        &resources,
        resources::container_name,
        pod.claims,
        pod.rules,
        errors,
    );
    check_resize_policy(&at.field("resizePolicy"), pod.restart_policy, errors);
    let context = at.field("securityContext");
    if context.is_set() {
        security::check_container(&context, pod.has_host_users, pod.rules, errors);
    }
}

/// Checks resource requirements by the rules of a pod.
pub(super) fn requirements(
    at: &Cursor<'_, '_>,
    names: resources::NameCheck,
    claims: &BTreeSet<&str>,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    if at.is_set() {
        let context = Requirements {
            names,
            claims,
            allows_partial_pages: rules.allows_partial_pages,
        };
        resources::requirements(at, &context, errors);
    }
}

fn check_ports(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut names = BTreeSet::new();
    for port in at.items() {
        let [name, container_port, host_port] = ["name", "containerPort", "hostPort"].map(|f| port.field(f));
        if !name.str().is_empty() {
            let wrong = names::port_name(name.str());
            if wrong.is_empty() && !names.insert(name.str()) {
                errors.duplicate(&name, name.str());
            }
            errors.invalid_for(&name, wrong);
        }
        match container_port.int() {
            0 => errors.required(&container_port, ""),
            _ => numbers::port(&container_port, errors),
        }
        if host_port.int() != 0 {
            numbers::port(&host_port, errors);
        }
        PROTOCOL.check(&port.field("protocol"), errors);
    }
}

/// Ports of the host are used once. Paths of errors count the given containers from 0.
fn check_host_ports(containers: &[Value], list: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut used = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, port) in container.list("ports").iter().enumerate() {
            let Some(number) = port.get("hostPort").and_then(Value::as_int).filter(|n| *n != 0) else {
                continue;
            };
            let (protocol, address) = (port.get_str("protocol"), port.get_str("hostIP"));
            if !used.insert((protocol, address, number)) {
                let (container, ports) = (list.path().index(i), "ports");
                let ports = container.field(ports);
                let port = ports.index(j);
                let shown = format!("{protocol}/{address}/{number}");
                errors.push_with(|| FieldError::duplicate(&port.field("hostPort"), shown));
            }
        }
    }
}

/// A resource is resized with or without a restart. Kubernetes reports most errors at the list.
fn check_resize_policy(at: &Cursor<'_, '_>, restart_policy: &str, errors: &mut ErrorList) {
    const RESOURCES: Rule = Rule::RequiredOneOf(&["cpu", "memory"]);
    const POLICIES: Rule = Rule::RequiredOneOf(&["NotRequired", "RestartContainer"]);
    let mut seen = BTreeSet::new();
    for policy in at.items() {
        let (resource, restart) = (policy.field("resourceName"), policy.field("restartPolicy"));
        if !seen.insert(resource.str()) {
            errors.duplicate(&policy, resource.str());
        }
        RESOURCES.check(&resource.with_path(*at.path()), errors);
        let restart = restart.with_path(*at.path());
        POLICIES.check(&restart, errors);
        if restart_policy == "Never" && restart.str() != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(&restart, why);
        }
    }
}

fn check_init_restart_policy(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    let (policy, list) = (at.field("restartPolicy"), at.field("restartPolicyRules"));
    if !policy.is_set() {
        if !list.list().is_empty() {
            errors.required(&policy, "must specify restartPolicy when restart rules are used");
        }
    } else if policy.str() == "Always" {
        if !list.list().is_empty() && rules.has_restart_rules() {
            if rules.has_restart_all() {
                check_restart_policy(at, rules, errors);
            } else {
                let why = "restartPolicyRules are not allowed for init containers with restart policy Always";
                errors.forbidden(&list, why);
            }
        }
    } else if rules.has_restart_rules() {
        check_restart_policy(at, rules, errors);
    } else {
        errors.not_supported(&policy, &["Always"]);
    }
}

/// Checks the restart policy of a container and its rules.
fn check_restart_policy(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    const MAX_RULES: usize = 20;
    const MAX_CODES: usize = 255;
    let (policy, list) = (at.field("restartPolicy"), at.field("restartPolicyRules"));
    if policy.is_set() {
        Rule::OneOf(&["Always", "Never", "OnFailure"]).check(&policy, errors);
    } else if !list.list().is_empty() {
        errors.required(&policy, "must specify restartPolicy when restart rules are used");
    }
    errors.max_items(&list, MAX_RULES);
    let actions: &[&str] = match !list.list().is_empty() && rules.has_restart_all() {
        true => &["Restart", "RestartAllContainers"],
        false => &["Restart"],
    };
    for rule in list.items() {
        let (action, codes) = (rule.field("action"), rule.field("exitCodes"));
        if !actions.contains(&action.str()) {
            errors.not_supported(&action, actions);
        }
        if !codes.is_set() {
            errors.required(&codes, "must be specified");
            continue;
        }
        let (operator, values) = (codes.field("operator"), codes.field("values"));
        if !matches!(operator.str(), "In" | "NotIn") {
            errors.not_supported(&operator, &["In", "NotIn"]);
        }
        errors.max_items(&values, MAX_CODES);
    }
}

/// Images of pods have no spaces around them; templates may.
pub(super) fn check_image_spaces(container: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let image = container.field("image");
    if image.str().trim().len() != image.str().len() {
        errors.invalid(&image, "must not have leading or trailing whitespace");
    }
}
