//! The Pod Security Standards: one row per check.

use super::{Level, LevelVersion, StandardVersion};
use scantling_value::{Value, go};
use std::collections::BTreeSet;

/// The violations of a pod: reasons with details.
pub(super) struct Violations(pub(super) Vec<(String, String)>);

/// The reason and the detail of a violation, if there is one.
type Violation = Option<(String, String)>;

/// A check: the standard and the first version that have it, and the check of a weaker standard that it replaces.
struct StandardCheck {
    id: &'static str,
    level: Level,
    since: u32,
    replaces: &'static str,
    check: fn(&PodView<'_>, u32) -> Violation,
}

const fn baseline(id: &'static str, check: fn(&PodView<'_>, u32) -> Violation) -> StandardCheck {
    StandardCheck {
        id,
        level: Level::Baseline,
        since: 0,
        replaces: "",
        check,
    }
}

/// A check with the name of the one that it replaces.
const fn restricted(
    (id, replaces): (&'static str, &'static str),
    since: u32,
    check: fn(&PodView<'_>, u32) -> Violation,
) -> StandardCheck {
    StandardCheck {
        level: Level::Restricted,
        since,
        replaces,
        ..baseline(id, check)
    }
}

/// The last version that changed a check.
const NEWEST: u32 = 37;

/// The checks in the order of their reasons.
const CHECKS: &[StandardCheck] = &[
    baseline("appArmorProfile", app_armor),
    baseline("capabilities_baseline", capabilities_baseline),
    baseline("hostNamespaces", host_namespaces),
    baseline("hostPathVolumes", host_path_volumes),
    baseline("hostPorts", host_ports),
    StandardCheck {
        since: 34,
        ..baseline("hostProbesAndHostLifecycle", probe_hosts)
    },
    baseline("privileged", privileged),
    baseline("procMount", proc_mount_baseline),
    baseline("seLinuxOptions", se_linux),
    baseline("seccompProfile_baseline", seccomp_baseline),
    baseline("sysctls", sysctls),
    baseline("windowsHostProcess", host_process),
    restricted(("allowPrivilegeEscalation", ""), 8, privilege_escalation),
    restricted(
        ("capabilities_restricted", "capabilities_baseline"),
        22,
        capabilities_restricted,
    ),
    restricted(("procMount_restricted", "procMount"), 35, proc_mount),
    restricted(("restrictedVolumes", "hostPathVolumes"), 0, restricted_volumes),
    restricted(("runAsNonRoot", ""), 0, run_as_non_root),
    restricted(("runAsUser", ""), 23, run_as_user),
    restricted(
        ("seccompProfile_restricted", "seccompProfile_baseline"),
        19,
        seccomp_restricted,
    ),
];

/// Checks a pod, or a pod template, against a standard.
pub(super) fn evaluate(pod: &Value, standard: LevelVersion) -> Violations {
    let version = match standard.version {
        StandardVersion::Latest => NEWEST,
        // Later versions have the checks of the newest one.
        StandardVersion::Minor(minor) => minor.min(NEWEST),
    };
    let applies = |check: &&StandardCheck| check.level <= standard.level && version >= check.since;
    // A stricter check reports what the weaker one would, so that each problem is listed once.
    let replaced: BTreeSet<&str> = CHECKS.iter().filter(applies).map(|c| c.replaces).collect();
    if standard.level == Level::Privileged {
        return Violations(Vec::new());
    }
    let pod = PodView::new(pod);
    let checks = CHECKS.iter().filter(applies).filter(|c| !replaced.contains(c.id));
    Violations(checks.filter_map(|c| (c.check)(&pod, version)).collect())
}

/// A pod as the checks see it.
struct PodView<'v> {
    object: &'v Value,
    /// Init containers, containers and ephemeral containers.
    containers: Vec<&'v Value>,
}

impl<'v> PodView<'v> {
    fn new(object: &'v Value) -> Self {
        let fields = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        let containers = fields.flat_map(|field| object.list_at(["spec", field])).collect();
        PodView { object, containers }
    }

    fn spec(&self, path: &[&str]) -> Option<&'v Value> {
        let path = ["spec"].into_iter().chain(path.iter().copied());
        self.object.at(path).filter(|v| !v.is_null())
    }

    fn context(&self, path: &[&str]) -> Option<&'v Value> {
        let path: Vec<&str> = ["securityContext"]
            .into_iter()
            .chain(path.iter().copied())
            .collect();
        self.spec(&path)
    }

    /// The names of the containers for which a test of their security context holds.
    fn containers_where(&self, holds: impl Fn(&ContainerContext<'v>) -> bool) -> Vec<&'v str> {
        let matching = self.containers.iter().filter(|c| holds(&ContainerContext(c)));
        matching.map(|c| c.get_str("name")).collect()
    }

    /// The pod and the containers whose security context has a bad field, as messages name them, with its bad values.
    fn offenders(
        &self,
        path: &[&str],
        is_bad: impl Fn(Option<&Value>) -> bool,
    ) -> Option<(String, Vec<&'v Value>)> {
        let containers = self.containers_where(|c| is_bad(c.get(path)));
        let who = setters(is_bad(self.context(path)), &containers)?;
        let of_containers = self.containers.iter().map(|c| ContainerContext(c).get(path));
        let all = of_containers.chain([self.context(path)]);
        Some((who, all.filter(|value| is_bad(*value)).flatten().collect()))
    }

    fn is_windows(&self) -> bool {
        self.spec(&["os", "name"]).and_then(Value::as_str) == Some("windows")
    }

    /// Returns whether the pod has its own user namespace.
    fn has_own_users(&self) -> bool {
        self.spec(&["hostUsers"]) == Some(&Value::Bool(false))
    }

    fn annotations(&self) -> impl Iterator<Item = (&'v str, &'v str)> {
        let annotations = self
            .object
            .at(["metadata", "annotations"])
            .and_then(Value::as_object);
        let entries = annotations.map_or(&[][..], |a| a.entries()).iter();
        entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("")))
    }
}

/// The security context of a container.
struct ContainerContext<'v>(&'v Value);

impl<'v> ContainerContext<'v> {
    fn get(&self, path: &[&str]) -> Option<&'v Value> {
        let path = ["securityContext"].into_iter().chain(path.iter().copied());
        self.0.at(path).filter(|v| !v.is_null())
    }

    fn list(&self, path: &[&str]) -> Vec<&'v str> {
        let items = self.get(path).and_then(Value::as_array).unwrap_or(&[]);
        items.iter().filter_map(Value::as_str).collect()
    }
}

fn quoted<'s>(items: impl IntoIterator<Item = &'s str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

fn plural(one: &'static str, many: &'static str, n: usize) -> &'static str {
    if n == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
fn named(containers: &[&str]) -> String {
    let noun = plural("container", "containers", containers.len());
    format!("{noun} {}", quoted(containers.iter().copied()))
}

/// The pod and the containers that set something, if any do.
fn setters(is_pod: bool, containers: &[&str]) -> Option<String> {
    let pod = is_pod.then(|| "pod".to_owned());
    let containers = (!containers.is_empty()).then(|| named(containers));
    let setters: Vec<String> = pod.into_iter().chain(containers).collect();
    (!setters.is_empty()).then(|| setters.join(" and "))
}

fn violation(reason: &str, detail: String) -> Violation {
    Some((reason.to_owned(), detail))
}

fn app_armor(pod: &PodView<'_>, _version: u32) -> Violation {
    const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
    let found = pod.offenders(&["appArmorProfile"], |profile| {
        profile.is_some_and(|p| !matches!(p.get_str("type"), "RuntimeDefault" | "Localhost"))
    });
    let (mut who, values) = found.map_or((None, Vec::new()), |(who, values)| (Some(who), values));
    let values: BTreeSet<&str> = values.iter().map(|p| p.get_str("type")).collect();
    let is_allowed = |v: &str| v.is_empty() || v == "runtime/default" || v.starts_with("localhost/");
    let annotations: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, value)| key.starts_with(ANNOTATION) && !is_allowed(value))
        .map(|(key, value)| format!("{key}={}", go::quote(value)))
        .collect();
    if !annotations.is_empty() {
        let noun = plural("annotation", "annotations", annotations.len());
        who = Some(who.map_or_else(|| noun.to_owned(), |who| format!("{who} and {noun}")));
    }
    let values: Vec<&str> = values
        .into_iter()
        .chain(annotations.iter().map(String::as_str))
        .collect();
    let reason = plural(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    violation(
        reason,
        format!(
            "{} must not set AppArmor profile type to {}",
            who?,
            quoted(values)
        ),
    )
}

const DEFAULT_CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The containers that add capabilities beyond allowed ones.
fn added_capabilities(pod: &PodView<'_>, allowed: &[&str]) -> Option<String> {
    let added = |c: &ContainerContext<'_>| {
        let added = c.list(&["capabilities", "add"]).into_iter();
        added
            .filter(|a| !allowed.contains(a))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let containers = pod.containers_where(|c| !added(c).is_empty());
    let all: BTreeSet<String> = pod
        .containers
        .iter()
        .flat_map(|c| added(&ContainerContext(c)))
        .collect();
    let detail = || {
        format!(
            "{} must not include {} in securityContext.capabilities.add",
            named(&containers),
            quoted(all.iter().map(String::as_str))
        )
    };
    (!containers.is_empty()).then(detail)
}

fn capabilities_baseline(pod: &PodView<'_>, _version: u32) -> Violation {
    violation(
        "non-default capabilities",
        added_capabilities(pod, DEFAULT_CAPABILITIES)?,
    )
}

fn capabilities_restricted(pod: &PodView<'_>, version: u32) -> Violation {
    // Windows has no capabilities. Up to v1.24, the standards ignored the operating system.
    if version >= 25 && pod.is_windows() {
        return None;
    }
    let keep = pod.containers_where(|c| !c.list(&["capabilities", "drop"]).contains(&"ALL"));
    let kept = (!keep.is_empty()).then(|| {
        format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            named(&keep)
        )
    });
    let details: Vec<String> = kept
        .into_iter()
        .chain(added_capabilities(pod, &["NET_BIND_SERVICE"]))
        .collect();
    if details.is_empty() {
        return None;
    }
    violation("unrestricted capabilities", details.join("; "))
}

fn host_namespaces(pod: &PodView<'_>, _version: u32) -> Violation {
    let namespaces = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let set: Vec<String> = namespaces
        .filter(|n| pod.spec(&[n]) == Some(&Value::Bool(true)))
        .map(|n| format!("{n}=true"))
        .collect();
    if set.is_empty() {
        return None;
    }
    violation("host namespaces", set.join(", "))
}

fn host_path_volumes(pod: &PodView<'_>, _version: u32) -> Violation {
    let volumes = pod.object.list_at(["spec", "volumes"]).iter();
    let on_host = |v: &&Value| v.get("hostPath").is_some_and(|h| !h.is_null());
    let volumes: Vec<&str> = volumes.filter(on_host).map(|v| v.get_str("name")).collect();
    if volumes.is_empty() {
        return None;
    }
    let noun = plural("volume", "volumes", volumes.len());
    violation("hostPath volumes", format!("{noun} {}", quoted(volumes)))
}

fn host_ports(pod: &PodView<'_>, _version: u32) -> Violation {
    let ports = |container: &Value| {
        let ports = container.list("ports").iter();
        let ports = ports.filter_map(|p| p.get("hostPort").and_then(Value::as_int));
        ports
            .filter(|p| *p != 0)
            .map(|p| p.to_string())
            .collect::<Vec<_>>()
    };
    let containers = pod.containers_where(|c| !ports(c.0).is_empty());
    if containers.is_empty() {
        return None;
    }
    let ports: BTreeSet<String> = pod.containers.iter().flat_map(|c| ports(c)).collect();
    let verb = plural("uses", "use", containers.len());
    let noun = plural("hostPort", "hostPorts", ports.len());
    let ports: Vec<String> = ports.into_iter().collect();
    violation(
        "hostPort",
        format!("{} {verb} {noun} {}", named(&containers), ports.join(", ")),
    )
}

fn probe_hosts(pod: &PodView<'_>, _version: u32) -> Violation {
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let hosts = |container: &Value| {
        let handlers = HANDLERS
            .iter()
            .filter_map(|path| container.at(path.iter().copied()));
        let hosts = handlers.flat_map(|h| ["httpGet", "tcpSocket"].map(|action| h.str_at([action, "host"])));
        hosts
            .filter(|host| !host.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let containers: BTreeSet<&str> = pod
        .containers_where(|c| !hosts(c.0).is_empty())
        .into_iter()
        .collect();
    let containers: Vec<&str> = containers.into_iter().collect();
    if containers.is_empty() {
        return None;
    }
    let hosts: BTreeSet<String> = pod.containers.iter().flat_map(|c| hosts(c)).collect();
    let verb = plural("uses", "use", containers.len());
    let noun = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len());
    let hosts = quoted(hosts.iter().map(String::as_str));
    violation(
        "probe or lifecycle host",
        format!("{} {verb} {noun} {hosts}", named(&containers)),
    )
}

fn privileged(pod: &PodView<'_>, _version: u32) -> Violation {
    let (who, _) = pod.offenders(&["privileged"], |flag| flag == Some(&Value::Bool(true)))?;
    violation(
        "privileged",
        format!("{who} must not set securityContext.privileged=true"),
    )
}

fn proc_mount_baseline(pod: &PodView<'_>, version: u32) -> Violation {
    if version >= 35 && pod.has_own_users() {
        return None;
    }
    proc_mount(pod, version)
}

fn proc_mount(pod: &PodView<'_>, _version: u32) -> Violation {
    let is_bad = |mount: Option<&Value>| mount.is_some_and(|m| m.as_str() != Some("Default"));
    let (who, mounts) = pod.offenders(&["procMount"], is_bad)?;
    let mounts: BTreeSet<&str> = mounts.into_iter().map(|m| m.as_str().unwrap_or("")).collect();
    violation(
        "procMount",
        format!(
            "{who} must not set securityContext.procMount to {}",
            quoted(mounts)
        ),
    )
}

fn se_linux(pod: &PodView<'_>, version: u32) -> Violation {
    const TYPES: &[&str] = &["", "container_t", "container_init_t", "container_kvm_t"];
    let is_bad_type = |t: &str| !(TYPES.contains(&t) || (version >= 31 && t == "container_engine_t"));
    let is_bad = |options: Option<&Value>| {
        options.is_some_and(|o| {
            is_bad_type(o.get_str("type")) || !o.get_str("user").is_empty() || !o.get_str("role").is_empty()
        })
    };
    let (who, all) = pod.offenders(&["seLinuxOptions"], is_bad)?;
    let types: BTreeSet<&str> = all
        .iter()
        .map(|o| o.get_str("type"))
        .filter(|t| is_bad_type(t))
        .collect();
    let mut details = Vec::new();
    if !types.is_empty() {
        details.push(format!(
            "{} {}",
            plural("type", "types", types.len()),
            quoted(types)
        ));
    }
    for field in ["user", "role"] {
        if all.iter().any(|o| !o.get_str(field).is_empty()) {
            details.push(format!("{field} may not be set"));
        }
    }
    let details = details.join("; ");
    violation(
        "seLinuxOptions",
        format!("{who} set forbidden securityContext.seLinuxOptions: {details}"),
    )
}

const SECCOMP: &[&str] = &["seccompProfile"];

fn seccomp_baseline(pod: &PodView<'_>, version: u32) -> Violation {
    if version < 19 {
        return seccomp_annotations(pod);
    }
    let (who, values) = pod.offenders(SECCOMP, |profile| {
        profile.is_some_and(|p| !matches!(p.get_str("type"), "Localhost" | "RuntimeDefault"))
    })?;
    let values: BTreeSet<&str> = values.iter().map(|p| p.get_str("type")).collect();
    let values = quoted(values);
    violation(
        "seccompProfile",
        format!("{who} must not set securityContext.seccompProfile.type to {values}"),
    )
}

/// Profiles were annotations before they became fields.
fn seccomp_annotations(pod: &PodView<'_>) -> Violation {
    const POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let is_allowed =
        |v: &str| matches!(v, "runtime/default" | "docker/default") || v.starts_with("localhost/");
    let containers: BTreeSet<&str> = pod.containers.iter().map(|c| c.get_str("name")).collect();
    let is_container = |name: &str| containers.contains(name);
    let forbidden: BTreeSet<String> = pod
        .annotations()
        .filter(|(key, _)| *key == POD || key.strip_prefix(CONTAINER).is_some_and(is_container))
        .filter(|(_, value)| !is_allowed(value))
        .map(|(key, value)| format!("{key}={}", go::quote(value)))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    let noun = plural("annotation", "annotations", forbidden.len());
    let forbidden: Vec<String> = forbidden.into_iter().collect();
    violation(
        "seccompProfile",
        format!("forbidden {noun} {}", forbidden.join(", ")),
    )
}

fn seccomp_restricted(pod: &PodView<'_>, version: u32) -> Violation {
    if version >= 25 && pod.is_windows() {
        return None;
    }
    // This check replaces the baseline one, so it has to report its violations, too.
    if let Some(bad) = seccomp_baseline(pod, version) {
        return Some(bad);
    }
    if pod.context(SECCOMP).is_some() {
        return None;
    }
    let unset = pod.containers_where(|c| c.get(SECCOMP).is_none());
    let who = setters(false, &unset)?;
    let detail = format!(
        "pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
    );
    violation("seccompProfile", detail)
}

fn sysctls(pod: &PodView<'_>, version: u32) -> Violation {
    const SAFE: &[(u32, &str)] = &[
        (0, "kernel.shm_rmid_forced"),
        (0, "net.ipv4.ip_local_port_range"),
        (0, "net.ipv4.tcp_syncookies"),
        (0, "net.ipv4.ping_group_range"),
        (0, "net.ipv4.ip_unprivileged_port_start"),
        (27, "net.ipv4.ip_local_reserved_ports"),
        (29, "net.ipv4.tcp_keepalive_time"),
        (29, "net.ipv4.tcp_fin_timeout"),
        (29, "net.ipv4.tcp_keepalive_intvl"),
        (29, "net.ipv4.tcp_keepalive_probes"),
        (32, "net.ipv4.tcp_rmem"),
        (32, "net.ipv4.tcp_wmem"),
        (37, "net.ipv4.tcp_slow_start_after_idle"),
        (37, "net.ipv4.tcp_notsent_lowat"),
    ];
    let is_safe = |name: &str| {
        SAFE.iter()
            .any(|(since, safe)| version >= *since && *safe == name)
    };
    let set = pod.context(&["sysctls"]).and_then(Value::as_array).unwrap_or(&[]);
    let forbidden: Vec<&str> = set
        .iter()
        .map(|s| s.get_str("name"))
        .filter(|name| !is_safe(name))
        .collect();
    if forbidden.is_empty() {
        return None;
    }
    violation("forbidden sysctls", forbidden.join(", "))
}

fn host_process(pod: &PodView<'_>, _version: u32) -> Violation {
    let path = ["windowsOptions", "hostProcess"];
    let (who, _) = pod.offenders(&path, |flag| flag == Some(&Value::Bool(true)))?;
    violation(
        "hostProcess",
        format!("{who} must not set securityContext.windowsOptions.hostProcess=true"),
    )
}

fn privilege_escalation(pod: &PodView<'_>, version: u32) -> Violation {
    if version >= 25 && pod.is_windows() {
        return None;
    }
    let allows = |c: &ContainerContext<'_>| c.get(&["allowPrivilegeEscalation"]) != Some(&Value::Bool(false));
    let containers = pod.containers_where(allows);
    let who = setters(false, &containers)?;
    violation(
        "allowPrivilegeEscalation != false",
        format!("{who} must set securityContext.allowPrivilegeEscalation=false"),
    )
}

fn restricted_volumes(pod: &PodView<'_>, _version: u32) -> Violation {
    const ALLOWED: &[&str] = &[
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    let source = |volume: &Value| {
        let members = volume.as_object().map_or(&[][..], |m| m.entries()).iter();
        let sources: Vec<String> = members
            .filter(|(key, value)| key != "name" && !value.is_null())
            .map(|(key, _)| key.to_string())
            .collect();
        let is_allowed = sources.iter().any(|s| ALLOWED.contains(&s.as_str()));
        (!is_allowed).then(|| sources.into_iter().next().unwrap_or_else(|| "unknown".to_owned()))
    };
    let volumes = pod.object.list_at(["spec", "volumes"]);
    let bad: Vec<&str> = volumes
        .iter()
        .filter(|v| source(v).is_some())
        .map(|v| v.get_str("name"))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let types: BTreeSet<String> = volumes.iter().filter_map(source).collect();
    let verb = plural("uses", "use", bad.len());
    let noun = plural("restricted volume type", "restricted volume types", types.len());
    let types = quoted(types.iter().map(String::as_str));
    let volumes = plural("volume", "volumes", bad.len());
    violation(
        "restricted volume types",
        format!("{volumes} {} {verb} {noun} {types}", quoted(bad)),
    )
}

fn run_as_non_root(pod: &PodView<'_>, version: u32) -> Violation {
    const PATH: &[&str] = &["runAsNonRoot"];
    const REASON: &str = "runAsNonRoot != true";
    // In a user namespace of its own, the container's root is an unprivileged user of the host.
    if version >= 35 && pod.has_own_users() {
        return None;
    }
    if let Some((who, _)) = pod.offenders(PATH, |flag| flag == Some(&Value::Bool(false))) {
        return violation(
            REASON,
            format!("{who} must not set securityContext.runAsNonRoot=false"),
        );
    }
    if pod.context(PATH) == Some(&Value::Bool(true)) {
        return None;
    }
    let unset = pod.containers_where(|c| c.get(PATH).is_none());
    let who = setters(false, &unset)?;
    violation(
        REASON,
        format!("pod or {who} must set securityContext.runAsNonRoot=true"),
    )
}

fn run_as_user(pod: &PodView<'_>, version: u32) -> Violation {
    if version >= 35 && pod.has_own_users() {
        return None;
    }
    let (who, _) = pod.offenders(&["runAsUser"], |user| user == Some(&Value::Int(0)))?;
    violation("runAsUser=0", format!("{who} must not set runAsUser=0"))
}
