//! Security contexts of pods and containers.

use super::rules::Rules;
use super::{containers_at, volumes, windows};
use crate::Cursor;
use crate::checks::{Report, Rule, check_fields, go, numbers};
use scantling_value::{ErrorList, FieldError, Value};
use std::collections::BTreeSet;

const PROFILES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const ID: Rule = Rule::IfSet(numbers::id);

/// Checks the security context of a pod.
pub(super) fn check_pod(
    at: &Cursor<'_, '_>,
    spec: &Cursor<'_, '_>,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    const IDS: &[(&str, Rule)] = &[
        ("fsGroup", ID),
        ("runAsUser", ID),
        ("runAsGroup", ID),
        ("supplementalGroups", Rule::Each(numbers::id)),
    ];
    const POLICIES: &[(&str, Rule)] = &[
        ("fsGroupChangePolicy", Rule::OneOf(&["Always", "OnRootMismatch"])),
        ("seccompProfile", Rule::IfSet(seccomp)),
        ("windowsOptions", Rule::IfSet(windows::check_options)),
        ("appArmorProfile", Rule::IfSet(app_armor)),
        ("supplementalGroupsPolicy", Rule::OneOf(&["Merge", "Strict"])),
    ];
    if at.is_empty() {
        return;
    }
    check_fields(IDS, at, errors);
    sysctls(&at.field("sysctls"), spec, rules, errors);
    check_fields(POLICIES, at, errors);
    let policy = at.field("seLinuxChangePolicy");
    if policy.is_set() {
        let supported: &[&str] = match rules.has_selinux_mount() {
            true => &["MountOption", "Recursive"],
            false => &["Recursive"],
        };
        if !supported.contains(&policy.str()) {
            errors.not_supported(&policy, supported);
        }
    }
}

fn sysctls(at: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    const SEGMENT: &str = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let mut names = BTreeSet::new();
    for sysctl in at.items() {
        let name = sysctl.field("name");
        if name.str().is_empty() {
            errors.required(&name, "");
        } else if !is_sysctl(name.str()) {
            let why =
                format!("must have at most 253 characters and match regex ^({SEGMENT}[\\./])*{SEGMENT}$");
            errors.invalid(&name, why);
        } else if names.contains(name.str()) {
            errors.duplicate(&name, name.str());
        }
        if let Some(field) = spec.value().and_then(|spec| host_sysctl(name.str(), spec))
            && !rules.allows_host_sysctls()
        {
            let why = format!("may not be specified when '{field}' is true");
            errors.invalid(&name, why);
        }
        names.insert(name.str());
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_end = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        ends.is_some_and(|(a, z)| is_end(a) && is_end(z))
            && bytes.iter().all(|b| is_end(b) || matches!(b, b'-' | b'_'))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_segment)
}

/// Sysctls of the IPC namespace.
const IPC_SYSCTLS: &[&str] = &[
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// The field that makes a pod share the namespace of a sysctl with its host, if it does.
pub(super) fn host_sysctl(name: &str, spec: &Value) -> Option<&'static str> {
    // The separator that comes first is the one between parts; the other one is part of names.
    let first = name.find(['.', '/']).and_then(|i| name.get(i..=i));
    let name = match first {
        Some("/") => {
            let swap = |c: char| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            };
            name.chars().map(swap).collect()
        }
        _ => name.to_owned(),
    };
    let name = name.split('*').next().unwrap_or("");
    let shares = |field: &str| spec.get(field).and_then(Value::as_bool) == Some(true);
    let is_ipc = IPC_SYSCTLS.contains(&name) || name.starts_with("fs.mqueue.");
    if shares("hostNetwork") && name.starts_with("net.") {
        Some("hostNetwork")
    } else if shares("hostIPC") && is_ipc {
        Some("hostIPC")
    } else {
        None
    }
}

/// Checks the security context of a container.
pub(super) fn check_container(
    at: &Cursor<'_, '_>,
    has_host_users: bool,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    const IDS: &[(&str, Rule)] = &[
        ("runAsUser", ID),
        ("runAsGroup", ID),
        ("procMount", Rule::OneOf(&["Default", "Unmasked"])),
    ];
    check_fields(IDS, at, errors);
    let mount = at.field("procMount");
    if has_host_users && mount.str() == "Unmasked" {
        errors.invalid(&mount, "`hostUsers` must be false to use `Unmasked`");
    }
    Rule::IfSet(seccomp).check(&at.field("seccompProfile"), errors);
    check_escalation(at, rules, errors);
    Rule::IfSet(windows::check_options).check(&at.field("windowsOptions"), errors);
    Rule::IfSet(app_armor).check(&at.field("appArmorProfile"), errors);
}

/// A container that may not gain privileges has none to begin with.
fn check_escalation(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    let escalation = at.field("allowPrivilegeEscalation");
    if !escalation.is_set() || escalation.bool() {
        return;
    }
    let shown = || go::structure("core/v1", "SecurityContext", at.value());
    if at.field("privileged").bool() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid_value(at, shown(), why);
    }
    let capabilities = at.field("capabilities");
    for added in capabilities.field("add").list() {
        if added.as_str() == Some("CAP_SYS_ADMIN") && !rules.allows_sys_admin() {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.invalid_value(at, shown(), why);
        }
    }
}

fn seccomp(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (kind, profile) = (at.field("type"), at.field("localhostProfile"));
    match kind.str() {
        "" => errors.required(&kind, "type is required when seccompProfile is set"),
        _ => Rule::OneOf(PROFILES).check(&kind, errors),
    }
    match (kind.str() == "Localhost", profile.is_set()) {
        (true, true) => volumes::descending_path(&profile, errors),
        (true, false) => errors.required(&profile, "must be set when seccomp type is Localhost"),
        (false, true) => {
            let shown = go::structure("core/v1", "SeccompProfile", at.value());
            errors.invalid_value(&profile, shown, "can only be set when seccomp type is Localhost");
        }
        (false, false) => {}
    }
}

/// Checks an `AppArmor` profile.
pub(super) fn app_armor(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX: usize = 4095;
    let (kind, profile) = (at.field("type"), at.field("localhostProfile"));
    match kind.str() {
        "Localhost" if !profile.is_set() => {
            errors.required(&profile, "must be set when AppArmor type is Localhost");
        }
        "Localhost" => {
            let text = profile.str();
            if text.trim() != text {
                errors.invalid(&profile, "must not be padded with whitespace");
            } else if text.is_empty() {
                errors.required(&profile, "must be set when AppArmor type is Localhost");
            }
            if text.len() > MAX {
                errors.push_with(|| FieldError::too_long(profile.path(), MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if profile.is_set() {
                errors.invalid(&profile, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => errors.required(&kind, "type is required when appArmorProfile is set"),
        _ => errors.not_supported(&kind, PROFILES),
    }
}

/// Checks what pods of one operating system may not set.
pub(super) fn check_operating_system(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let os = spec.field("os");
    let name = os.field("name");
    match name.str() {
        "" => errors.required(&name, ""),
        "linux" => {
            const WHY: Rule = Rule::Forbidden("windows options cannot be set for a linux pod");
            let context = spec.field("securityContext");
            WHY.check(&context.field("windowsOptions"), errors);
            containers_at(spec, |container| {
                let context = container.field("securityContext");
                WHY.check(&context.field("windowsOptions"), errors);
            });
        }
        "windows" => windows::forbidden(spec, errors),
        name => {
            errors.push_with(|| FieldError::not_supported(os.path(), name, ["linux", "windows"]));
        }
    }
}
