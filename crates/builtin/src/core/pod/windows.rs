//! Options of Windows containers, and what Windows pods may not set.

use super::containers_at;
use crate::Cursor;
use crate::checks::{Report, Rule, check_fields, names};
use scantling_value::{ErrorList, Value};

const FORBIDDEN: Rule = Rule::Forbidden("cannot be set for a windows pod");

/// Checks what pods that run on Windows may not set.
pub(super) fn forbidden(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const OF_POD: &[&str] = &[
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    const OF_CONTAINER: &[(&str, Rule)] = &[
        ("appArmorProfile", FORBIDDEN),
        ("seLinuxOptions", FORBIDDEN),
        ("seccompProfile", FORBIDDEN),
        ("capabilities", FORBIDDEN),
        ("readOnlyRootFilesystem", FORBIDDEN),
        ("privileged", FORBIDDEN),
        ("allowPrivilegeEscalation", FORBIDDEN),
        ("procMount", FORBIDDEN),
        ("runAsUser", FORBIDDEN),
        ("runAsGroup", FORBIDDEN),
    ];
    let context = spec.field("securityContext");
    for field in OF_POD {
        let field = context.field(field);
        // kube-apiserver only tests whether the list has elements.
        let is_empty_list = matches!(field.value(), Some(Value::Array(items)) if items.is_empty());
        if !is_empty_list {
            FORBIDDEN.check(&field, errors);
        }
    }
    FORBIDDEN.check(&spec.field("hostUsers"), errors);
    for field in ["hostPID", "hostIPC"] {
        let field = spec.field(field);
        if field.bool() {
            FORBIDDEN.check(&field, errors);
        }
    }
    FORBIDDEN.check(&spec.field("shareProcessNamespace"), errors);
    containers_at(spec, |container| {
        check_fields(OF_CONTAINER, &container.field("securityContext"), errors);
    });
}

/// Checks the Windows options of a security context.
pub(super) fn check_options(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX_SPEC: usize = 64 << 10;
    Rule::FormIfSet(names::dns1123_subdomain).check(&at.field("gmsaCredentialSpecName"), errors);
    let spec = at.field("gmsaCredentialSpec");
    if spec.is_set() {
        match spec.str().len() {
            0 => errors.invalid(&spec, "gmsaCredentialSpec cannot be an empty string"),
            1..=MAX_SPEC => {}
            _ => errors.invalid(&spec, "gmsaCredentialSpec size must be under 64 KiB"),
        }
    }
    let user = at.field("runAsUserName");
    if user.is_set() {
        for why in user_name_faults(user.str()) {
            errors.invalid(&user, format!("runAsUserName{why}"));
        }
    }
}

/// Returns what is wrong with the name of a user: `[domain\]user`.
/// Each text continues the name of the field.
fn user_name_faults(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec![" cannot be an empty string"];
    }
    if name.bytes().any(|b| b.is_ascii_control()) {
        return vec![" cannot contain control characters"];
    }
    let mut parts = name.split('\\');
    let (domain, user) = match (parts.next(), parts.next(), parts.next()) {
        (Some(user), None, _) => (None, user),
        (Some(domain), Some(user), None) => (Some(domain), user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let mut faults = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= 256) {
        faults.push("'s Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios_name(domain) && !is_dns_name(domain)) {
        faults.push("'s Domain doesn't match the NetBios nor the DNS format");
    }
    match user.len() {
        0 => faults.push("'s User cannot be empty"),
        1..=104 => {}
        _ => faults.push("'s User length must not be longer than 104 characters"),
    }
    if !user.is_empty() && user.bytes().all(|b| matches!(b, b'.' | b' ')) {
        faults.push("'s User cannot contain only periods or spaces");
    }
    if user.contains(|c: char| "\"/\\:;|=,+*?<>@[]".contains(c)) {
        faults.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    faults
}

fn is_net_bios_name(domain: &str) -> bool {
    let is_plain = |c: char| !"\\/:*?\"<>|".contains(c);
    let count = domain.chars().count();
    (1..=15).contains(&count) && !domain.starts_with('.') && domain.chars().all(is_plain)
}

fn is_dns_name(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let bytes = label.as_bytes();
        let ends = bytes.first().zip(bytes.last());
        bytes.len() <= 63
            && ends.is_some_and(|(a, z)| a.is_ascii_alphanumeric() && z.is_ascii_alphanumeric())
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    })
}

/// If one container of a pod runs as a process of the host, all do.
pub(super) fn check_host_processes(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let flag = |context: &Cursor<'_, '_>| {
        let options = context.field("windowsOptions");
        options.field("hostProcess").value().and_then(Value::as_bool)
    };
    let of_pod = flag(&spec.field("securityContext"));
    let (mut all, mut of_host) = (0, 0);
    containers_at(spec, |container| {
        all += 1;
        let context = container.field("securityContext");
        let own = flag(&context);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let options = context.field("windowsOptions");
            let why = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.invalid(&options.field("hostProcess"), why);
        }
        of_host += i32::from(own.or(of_pod) == Some(true));
    });
    if of_host == 0 {
        return;
    }
    if of_host != all {
        let why =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid_value(spec, "", why);
    }
    let network = spec.field("hostNetwork");
    if !network.bool() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid_value(&network, false, why);
    }
}
