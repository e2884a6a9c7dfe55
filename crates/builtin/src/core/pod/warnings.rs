//! Warnings about pods and templates that are valid.

use super::annotations::{APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD, of_container};
use super::containers_at;
use super::prepare::app_armor_profile;
use super::volumes;
use crate::checks::nodes::{deprecated_label, warn_about_requirements};
use crate::checks::resources::quantity;
use crate::checks::{ip, names};
use crate::core::persistent_volume_claim::warn_about_spec;
use crate::{Context, Cursor};
use scantling_value::{Map, PathBuf, Value, go};
use std::collections::{BTreeMap, BTreeSet};

/// Annotations that mean nothing any more.
const DEPRECATED_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];

/// Adds the warnings about a pod or a template.
pub(super) fn warn(at: &Cursor<'_, '_>, is_pod: bool, context: &Context<'_>, warnings: &mut Vec<String>) {
    let (spec, metadata) = (at.field("spec"), at.field("metadata"));
    let annotations = metadata.field("annotations");
    let has = |key: &str| annotations.map().is_some_and(|map| map.contains_key(key));
    node_labels(&spec, warnings);
    for (key, why) in DEPRECATED_ANNOTATIONS {
        if has(key) {
            warnings.push(format!("{}: {why}", annotations.path().key(key)));
        }
    }
    for volume in spec.field("volumes").items() {
        volume_sources(&volume, context, warnings);
    }
    super::overlaps::warn(&spec.field("volumes"), warnings);
    duplicates(&spec, "hostAliases", "ip", warnings);
    duplicates(&spec, "imagePullSecrets", "name", warnings);
    for secret in spec.field("imagePullSecrets").items() {
        let name = secret.field("name");
        if name.str().is_empty() {
            warnings.push(format!("{}: invalid empty name \"\"", name.path()));
        }
    }
    fractions(&spec.field("overhead"), warnings);
    let security = spec.field("securityContext");
    if !security.field("seccompProfile").is_set() && has(SECCOMP_POD) {
        warnings.push(seccomp(&annotations, SECCOMP_POD));
    }
    let profile = security.field("appArmorProfile");
    containers_at(&spec, |container| {
        let key = of_container(SECCOMP_CONTAINER, container.field("name").str());
        if !container
            .field("securityContext")
            .field("seccompProfile")
            .is_set()
            && has(&key)
        {
            warnings.push(seccomp(&annotations, &key));
        }
        // Pods get this warning even if they are invalid, so it has its own function.
        if !is_pod {
            app_armor(container, &annotations, profile.value(), is_pod, warnings);
        }
        let resources = container.field("resources");
        fractions(&resources.field("limits"), warnings);
        fractions(&resources.field("requests"), warnings);
        variables(&container.field("env"), warnings);
    });
    ports(&spec, warnings);
    port_names(&spec, warnings);
    let period = spec.field("terminationGracePeriodSeconds");
    if period.int() < 0 {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {why}", period.path()));
    }
    missing_selectors(&spec, warnings);
    let config = spec.field("dnsConfig");
    for server in config.field("nameservers").items() {
        warnings.extend(ip::warning(server.path(), server.str()));
    }
    for alias in spec.field("hostAliases").items() {
        let address = alias.field("ip");
        warnings.extend(ip::warning(address.path(), address.str()));
    }
}

fn node_labels(spec: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    for (key, entry) in spec.field("nodeSelector").entries() {
        if let Some(why) = deprecated_label(key) {
            warnings.push(format!("{}: {why}", entry.path()));
        }
    }
    let affinity = spec.field("affinity");
    let node = affinity.field("nodeAffinity");
    let required = node.field("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.field("nodeSelectorTerms").items() {
        warn_about_requirements(&term.field("matchExpressions"), warnings);
    }
    for term in node
        .field("preferredDuringSchedulingIgnoredDuringExecution")
        .items()
    {
        preferred_term(&term.field("preference"), warnings);
    }
    for constraint in spec.field("topologySpreadConstraints").items() {
        let key = constraint.field("topologyKey");
        if let Some(why) = deprecated_label(key.str()) {
            warnings.push(format!("{}: {} is {why}", key.path(), key.str()));
        }
        missing_selector(&constraint, warnings);
    }
}

/// Adds the warnings about a term of a node selector whose values validation does not check.
fn preferred_term(term: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    for expression in term.field("matchExpressions").items() {
        let key = expression.field("key");
        if let Some(why) = deprecated_label(key.str()) {
            warnings.push(format!("{}: {} is {why}", key.path(), key.str()));
        }
        for value in expression.field("values").items() {
            for why in names::label_value(value.str()) {
                warnings.push(format!("{}: {} is invalid, {why}", value.path(), value.str()));
            }
        }
    }
}

fn missing_selector(term: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let selector = term.field("labelSelector");
    if !selector.is_set() {
        let why = "a null labelSelector results in matching no pod";
        warnings.push(format!("{}: {why}", selector.path()));
    }
}

fn missing_selectors(spec: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let affinity = spec.field("affinity");
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = affinity.field(kind);
        for term in affinity
            .field("requiredDuringSchedulingIgnoredDuringExecution")
            .items()
        {
            missing_selector(&term, warnings);
        }
        for term in affinity
            .field("preferredDuringSchedulingIgnoredDuringExecution")
            .items()
        {
            missing_selector(&term.field("podAffinityTerm"), warnings);
        }
    }
}

fn volume_sources(volume: &Cursor<'_, '_>, context: &Context<'_>, warnings: &mut Vec<String>) {
    for (field, _) in volume.map().map_or(&[][..], Map::entries) {
        let deprecated = match field.as_str() {
            "gitRepo" if (context.enabled)("GitRepoVolumeDriver") => Some(("gitRepo", "deprecated in v1.11")),
            "gitRepo" => Some((
                "gitRepo",
                "deprecated in v1.11, and disabled by default in v1.33+",
            )),
            field => volumes::deprecation(field),
        };
        if let Some((shown, why)) = deprecated.filter(|_| volume.field(field).is_set()) {
            warnings.push(format!("{}: {why}", volume.path().field(shown)));
        }
    }
    let ephemeral = volume.field("ephemeral");
    let template = ephemeral.field("volumeClaimTemplate");
    if template.is_set() {
        warn_about_spec(&template.field("spec"), warnings);
    }
}

/// Adds warnings about fractions of bytes in a resource list.
fn fractions(list: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    for name in ["memory", "ephemeral-storage"] {
        let amount = list.field(name);
        if amount.is_set() {
            fraction(&amount.with_path(list.path().key(name)), warnings);
        }
    }
}

fn fraction(amount: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let quantity = quantity(amount.value());
    if quantity.scaled(-3) % 1000 != 0 {
        let shown = go::quote(&quantity.canonical());
        warnings.push(format!(
            "{}: fractional byte value {shown} is invalid, must be an integer",
            amount.path()
        ));
    }
}

fn duplicates(spec: &Cursor<'_, '_>, list: &str, field: &str, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for item in spec.field(list).items() {
        let value = item.field(field);
        if !seen.insert(value.str()) {
            let quoted = go::quote(value.str());
            warnings.push(format!("{}: duplicate {field} {quoted}", value.path()));
        }
    }
}

fn seccomp(annotations: &Cursor<'_, '_>, key: &str) -> String {
    let at = annotations.path().key(key);
    format!(r#"{at}: non-functional in v1.27+; use the "seccompProfile" field instead"#)
}

/// Warns about AppArmor profiles in the annotations of a pod. Its preparation has copied them to fields.
pub(super) fn app_armor_annotations(pod: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let metadata = pod.field("metadata");
    let (annotations, spec) = (metadata.field("annotations"), pod.field("spec"));
    let security = spec.field("securityContext");
    let of_pod = security.field("appArmorProfile");
    containers_at(&spec, |container| {
        app_armor(container, &annotations, of_pod.value(), true, warnings);
    });
}

fn app_armor(
    container: &Cursor<'_, '_>,
    annotations: &Cursor<'_, '_>,
    of_pod: Option<&Value>,
    is_pod: bool,
    warnings: &mut Vec<String>,
) {
    let key = of_container(APP_ARMOR, container.field("name").str());
    let Some(annotation) = annotations.map().and_then(|map| map.get(&key)?.as_str()) else {
        return;
    };
    let annotated = app_armor_profile(annotation);
    let context = container.field("securityContext");
    let profile = context.field("appArmorProfile");
    let own = profile.value();
    // The preparation of a pod has set the field from the annotation.
    let warns = match is_pod {
        true => own.is_none_or(|own| Some(own) == annotated.as_ref()),
        false => own.is_none(),
    };
    let is_of_pod = annotated.is_some() && annotated.as_ref() == of_pod;
    if warns && !is_of_pod {
        let at = annotations.path().key(&key);
        warnings.push(format!(
            r#"{at}: deprecated since v1.30; use the "appArmorProfile" field instead"#
        ));
    }
}

/// A variable that is defined twice hides the first definition, unless it extends it.
fn variables(list: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for variable in list.items() {
        let name = variable.field("name").str();
        if seen.insert(name) {
            continue;
        }
        let (reference, value) = (format!("$({name})"), variable.field("value").str());
        let extends = value != reference && value.contains(&reference);
        if variable.field("valueFrom").is_set() || !extends {
            warnings.push(format!(
                "{}: hides previous definition of {}, which may be dropped when using apply",
                variable.path(),
                go::quote(name)
            ));
        }
    }
}

/// The most warnings about pairs. A server sends far fewer.
pub(super) const MAX_WARNINGS: usize = 1000;

/// A port with its position.
struct Port<'v> {
    at: PathBuf,
    host_ip: &'v str,
    host_port: i64,
}

fn ports(spec: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let mut known: BTreeMap<(i64, &str), Vec<Port<'_>>> = BTreeMap::new();
    containers_at(spec, |container| {
        for port in container.field("ports").items() {
            let (protocol, number) = (port.field("protocol").str(), port.field("containerPort").int());
            let own = Port {
                at: port.path().into(),
                host_ip: port.field("hostIP").str(),
                host_port: port.field("hostPort").int(),
            };
            if !own.host_ip.is_empty() && own.host_port == 0 {
                let name = port.field("name").str();
                warnings.push(format!(
                    "{}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} Protocol:{protocol} \
                     HostIP:{}}}",
                    own.at, own.host_ip
                ));
            }
            let others = known.entry((number, protocol)).or_default();
            // The number of pairs grows with the square of the ports.
            let room = MAX_WARNINGS.saturating_sub(warnings.len());
            for other in others.iter().take(room) {
                let problem = if own.host_ip == other.host_ip && own.host_port == other.host_port {
                    "duplicate"
                } else if own.host_port == 0 || other.host_port == 0 {
                    "overlapping"
                } else if own.host_port == other.host_port
                    && own.host_ip.is_empty() != other.host_ip.is_empty()
                {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                warnings.push(format!("{}: {problem} port definition with {}", own.at, other.at));
            }
            others.push(own);
        }
    });
}

fn port_names(spec: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let mut known: BTreeMap<&str, PathBuf> = BTreeMap::new();
    containers_at(spec, |container| {
        for port in container.field("ports").items() {
            let name = port.field("name").str();
            if name.is_empty() {
                continue;
            }
            match known.get(name) {
                Some(other) => warnings.push(format!(
                    "{}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                    port.path(),
                    go::quote(name)
                )),
                None => {
                    known.insert(name, port.path().into());
                }
            }
        }
    });
}
