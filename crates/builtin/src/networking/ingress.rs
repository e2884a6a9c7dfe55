//! Ingresses.

use super::GROUP;
use crate::checks::update::separate_status;
use crate::checks::{Report, Rule, check_fields, go, ip, names, numbers};
use crate::prepare::count_spec_changes;
use crate::{Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// An ingress.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "Ingress")
    })
};

/// The annotation that named the class before there was a field for it.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

const PATH_TYPES: &[&str] = &["Exact", "ImplementationSpecific", "Prefix"];

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    count_spec_changes(object, write, ("networking/v1", "IngressSpec"));
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        return check_status(&root, write.old(), errors);
    }
    check_spec(&root.field("spec"), write.old(), errors);
    // Updates do not compare the annotation with the field.
    if matches!(write.operation, Operation::Create) {
        check_class_annotation(&root, errors);
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    match (write.operation, write.subresource) {
        (_, Subresource::Status) => {
            let root = Cursor::root(object);
            let status = root.field("status");
            let balancer = status.field("loadBalancer");
            for point in balancer.field("ingress").items() {
                warnings.extend(ip::warning(point.path(), point.field("ip").str()));
            }
        }
        (Operation::Create, _) => {
            let has_annotation = object.at(["metadata", "annotations", CLASS_ANNOTATION]).is_some();
            let class = object.at(["spec", "ingressClassName"]);
            if has_annotation && class.is_none_or(Value::is_null) {
                warnings.push(format!(
                    "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
                ));
            }
        }
        (Operation::Update(_), _) => {}
    }
}

fn check_class_annotation(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    let annotation = annotations
        .map()
        .and_then(|a| a.get(CLASS_ANNOTATION))
        .and_then(Value::as_str);
    let class = root
        .field("spec")
        .field("ingressClassName")
        .value()
        .and_then(Value::as_str);
    if let (Some(annotation), Some(class)) = (annotation, class)
        && annotation != class
    {
        // The path lacks `metadata`, as in Kubernetes.
        let annotations = root.field("annotations");
        let why = "must match `ingressClassName` when both are specified";
        errors.invalid_value(&annotations.field(CLASS_ANNOTATION), annotation, why);
    }
}

/// Violations of the stored ingress that an update may keep.
#[derive(Clone, Copy, Default)]
struct Tolerated {
    secret_names: bool,
    wildcard_rules: bool,
}

impl Tolerated {
    fn by(old: Option<&Value>) -> Self {
        let Some(old) = old else {
            return Tolerated::default();
        };
        let is_bad = |name: &str| !name.is_empty() && !names::dns1123_subdomain(name).is_empty();
        // Older servers accepted any name of a Secret.
        let secret_names = old
            .list_at(["spec", "tls"])
            .iter()
            .any(|t| is_bad(t.get_str("secretName")));
        let root = Cursor::root(old);
        let has_errors = |rule: &Cursor<'_, '_>| {
            let mut errors = ErrorList::new();
            check_rule_paths(rule, &mut errors);
            !errors.is_empty()
        };
        let rules = root.field("spec");
        let rules = rules.field("rules");
        // Older servers did not check the paths of rules with wildcards.
        let mut wildcards = rules.items().filter(|r| r.field("host").str().contains('*'));
        Tolerated {
            secret_names,
            wildcard_rules: wildcards.any(|r| has_errors(&r)),
        }
    }
}

fn check_spec(spec: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    let tolerated = Tolerated::by(old);
    let (rules, backend) = (spec.field("rules"), spec.field("defaultBackend"));
    if rules.list().is_empty() && !backend.is_set() {
        let shown = go::list("networking/v1", "IngressRule", rules.value());
        errors.invalid_value(
            spec,
            shown,
            "either `defaultBackend` or `rules` must be specified",
        );
    }
    Rule::IfSet(check_backend).check(&backend, errors);
    for rule in rules.items() {
        let host = rule.field("host");
        if !host.str().is_empty() {
            check_not_an_ip(&host, errors);
            check_host(&host, errors);
        }
        if !(tolerated.wildcard_rules && host.str().contains('*')) {
            check_rule_paths(&rule, errors);
        }
    }
    for tls in spec.field("tls").items() {
        tls.field("hosts").items().for_each(|h| check_host(&h, errors));
        if !tolerated.secret_names {
            Rule::Form(names::dns1123_subdomain).check(&tls.field("secretName"), errors);
        }
    }
    Rule::FormIfSet(names::dns1123_subdomain).check(&spec.field("ingressClassName"), errors);
}

fn check_not_an_ip(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if ip::parse_sloppy(at.str()).is_some() {
        errors.invalid(at, "must be a DNS name, not an IP address");
    }
}

fn check_host(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let wrong = match at.str() {
        host if host.contains('*') => names::wildcard_subdomain(host),
        host => names::dns1123_subdomain(host),
    };
    errors.invalid_for(at, wrong);
}

fn check_rule_paths(rule: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let http = rule.field("http");
    if !http.is_set() {
        return;
    }
    let paths = http.field("paths");
    Rule::Required.check(&paths, errors);
    Rule::Each(check_path).check(&paths, errors);
}

fn check_path(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (path, path_type) = (at.field("path"), at.field("pathType"));
    if !path_type.is_set() {
        return errors.required(&path_type, "pathType must be specified");
    }
    let is_absolute = path.str().starts_with('/');
    match path_type.str() {
        "Exact" | "Prefix" => {
            if !is_absolute {
                errors.invalid(&path, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"] {
                if path.str().contains(part) {
                    errors.invalid(&path, format!("must not contain '{part}'"));
                }
            }
            for end in ["/..", "/."] {
                if path.str().ends_with(end) {
                    errors.invalid(&path, format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.str().is_empty() && !is_absolute {
                errors.invalid(&path, "must be an absolute path");
            }
        }
        _ => errors.not_supported(&path_type, PATH_TYPES),
    }
    check_backend(&at.field("backend"), errors);
}

fn check_backend(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (resource, service) = (at.field("resource"), at.field("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => errors.invalid_value(at, "", "cannot set both resource and service backends"),
        (true, false) => check_resource(&resource, errors),
        (false, true) => check_service(at, &service, errors),
        (false, false) => errors.invalid_value(at, "", "resource or service backend is required"),
    }
}

fn check_service(at: &Cursor<'_, '_>, service: &Cursor<'_, '_>, errors: &mut ErrorList) {
    Rule::RequiredForm(names::dns1123_label).check(&service.field("name"), errors);
    let port = service.field("port");
    let (name, number) = (port.field("name"), port.field("number"));
    match (!name.str().is_empty(), number.int() != 0) {
        (true, true) => errors.invalid_value(at, "", "cannot set both port name & port number"),
        (true, false) => errors.invalid_for(&name, names::port_name(name.str())),
        (false, true) => numbers::port(&number, errors),
        (false, false) => errors.required(at, "port name or number is required"),
    }
}

/// The form of a name that is part of a URL.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    NameRule::PathSegment.check(name)
}

fn check_resource(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const RULES: &[(&str, Rule)] = &[
        ("apiGroup", Rule::FormIfSet(names::dns1123_subdomain)),
        ("kind", Rule::RequiredForm(path_segment)),
        ("name", Rule::RequiredForm(path_segment)),
    ];
    check_fields(RULES, at, errors);
}

fn check_status(root: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    let stored = old.map_or(&[][..], |o| o.list_at(["status", "loadBalancer", "ingress"]));
    let stored: BTreeSet<&str> = stored.iter().map(|p| p.get_str("ip")).collect();
    let status = root.field("status");
    let balancer = status.field("loadBalancer");
    for point in balancer.field("ingress").items() {
        let (address, hostname) = (point.field("ip"), point.field("hostname"));
        if !address.str().is_empty() {
            ip::check_unless_stored(&address, &stored, errors);
        }
        if !hostname.str().is_empty() {
            errors.invalid_for(&hostname, names::dns1123_subdomain(hostname.str()));
            check_not_an_ip(&hostname, errors);
        }
    }
}
