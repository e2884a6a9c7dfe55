//! Probes and lifecycle hooks of containers.

use crate::Cursor;
use crate::checks::{Check, Report, Rule, check_fields, names, numbers};
use scantling_value::ErrorList;

const TIMES: &[(&str, Rule)] = &[
    ("initialDelaySeconds", Rule::NonNegative),
    ("timeoutSeconds", Rule::NonNegative),
    ("periodSeconds", Rule::NonNegative),
    ("successThreshold", Rule::NonNegative),
    ("failureThreshold", Rule::NonNegative),
];

/// The handlers of probes and hooks, in the order in which they are checked. Only the first one is checked.
const HANDLERS: [(&str, Check); 5] = [
    ("exec", |at, errors| {
        Rule::Required.check(&at.field("command"), errors);
    }),
    ("httpGet", http_get),
    ("tcpSocket", |at, errors| {
        numbers::port_or_name(&at.field("port"), errors);
    }),
    ("grpc", |at, errors| {
        numbers::port(&at.field("port"), errors);
        Rule::OneOf(&["Plaintext", "TLS"]).check(&at.field("mode"), errors);
    }),
    ("sleep", |_, _| {}),
];

/// Checks the probes of a container.
pub(super) fn check_probes(container: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for name in super::defaults::PROBES {
        let at = container.field(name);
        if !at.is_set() {
            continue;
        }
        handler(&at, None, errors);
        check_fields(TIMES, &at, errors);
        let period = at.field("terminationGracePeriodSeconds");
        if period.as_int().is_some_and(|seconds| seconds <= 0) {
            errors.invalid(&period, "must be greater than 0");
        }
        let successes = at.field("successThreshold");
        if name == "readinessProbe" {
            if period.is_set() {
                errors.invalid(&period, "must not be set for readinessProbes");
            }
        } else if successes.int() != 1 {
            errors.invalid_value(&successes, successes.int(), "must be 1");
        }
    }
}

/// Checks the hooks of a container. `grace` is the grace period of the pod, `os` its operating system.
pub(super) fn check_lifecycle(
    at: &Cursor<'_, '_>,
    grace: Option<i64>,
    os: Option<&str>,
    errors: &mut ErrorList,
) {
    for hook in ["postStart", "preStop"] {
        let hook = at.field(hook);
        if hook.is_set() {
            handler(&hook, grace, errors);
        }
    }
    let signal = at.field("stopSignal");
    if signal.is_set() {
        check_signal(&signal, os, errors);
    }
}

fn handler(at: &Cursor<'_, '_>, grace: Option<i64>, errors: &mut ErrorList) {
    let mut found = false;
    for (name, check) in HANDLERS {
        let action = at.field(name);
        if !action.is_set() {
            continue;
        }
        if std::mem::replace(&mut found, true) {
            errors.forbidden(&action, "may not specify more than 1 handler type");
            continue;
        }
        check(&action, errors);
        let seconds = action.field("seconds").int();
        if let Some(grace) = grace.filter(|grace| name == "sleep" && !(0..=*grace).contains(&seconds)) {
            let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
            errors.invalid_value(&action, seconds, why);
        }
    }
    if !found {
        errors.required(at, "must specify a handler type");
    }
}

fn http_get(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const SCHEMES: &[&str] = &["HTTP", "HTTPS"];
    Rule::Required.check(&at.field("path"), errors);
    numbers::port_or_name(&at.field("port"), errors);
    let (scheme, protocol, host) = (at.field("scheme"), at.field("protocol"), at.field("host"));
    Rule::In(SCHEMES).check(&scheme, errors);
    let headers = at.field("httpHeaders");
    for header in headers.list() {
        let name = header.get_str("name");
        for why in names::header_name(name) {
            errors.invalid_value(&headers, name, why);
        }
    }
    Rule::OneOf(&["HTTP1", "HTTP2"]).check(&protocol, errors);
    if protocol.str() == "HTTP2" {
        if scheme.str() != "HTTP" {
            errors.invalid(&protocol, "is only supported with HTTP (H2C)");
        } else if !host.str().is_empty() {
            errors.invalid(&host, "must be empty when `protocol` is \"HTTP2\"");
        }
    }
}

fn check_signal(at: &Cursor<'_, '_>, os: Option<&str>, errors: &mut ErrorList) {
    match os {
        None => errors.forbidden(at, "may not be set for containers with empty `spec.os.name`"),
        Some("windows") => Rule::OneOf(&["SIGKILL", "SIGTERM"]).check(at, errors),
        Some("linux") => {
            let table = scantling_apitypes::TypeTable::latest();
            let signals = table
                .find("core/v1", "Signal")
                .and_then(|s| s.attributes.enumeration());
            let signals = signals.unwrap_or_default();
            if !signals.contains(&at.str()) {
                errors.not_supported(at, &signals);
            }
        }
        Some(_) => {}
    }
}
