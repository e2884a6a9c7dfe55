//! `PodSecurity`: pods meet the Pod Security Standard that the labels of their namespace ask for.
//!
//! The label `enforce` refuses pods; `warn` adds warnings about pods and workloads. `audit` has no effect that clients
//! see.

mod standards;

use super::{
    Action, Cause, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource,
};
use crate::Subresource;
use scantling_value::{ErrorList, FieldError, Path, Value, aggregate, go};
use standards::{Violations, evaluate};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    check,
    ..Plugin::new("PodSecurity", handles)
};

/// The most pods of a namespace that are checked when its labels change.
const MAX_PODS: usize = 3000;

/// Resources with a pod template, and where it is.
const WORKLOADS: &[(&str, &str, &[&str])] = &[
    ("", "podtemplates", &["template"]),
    ("", "replicationcontrollers", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
];

fn template_path(request: &Request<'_>) -> Option<&'static [&'static str]> {
    let row = WORKLOADS
        .iter()
        .find(|(group, resource, _)| request.is_for(group, resource));
    row.map(|(_, _, path)| *path)
}

/// Returns whether a request writes the spec of a pod.
fn writes_pod(request: &Request<'_>) -> bool {
    let writes_spec = matches!(
        request.subresource,
        RequestSubresource::Of(Subresource::None | Subresource::EphemeralContainers | Subresource::Resize)
    );
    request.is_resource("", "pods") && writes_spec
}

fn handles(request: &Request<'_>) -> bool {
    let is_handled =
        writes_pod(request) || request.is_for("", "namespaces") || template_path(request).is_some();
    is_handled && request.action != Action::Delete && request.is_validating()
}

fn lookups(object: &Value, request: &Request<'_>) -> Vec<Lookup> {
    if !request.is_for("", "namespaces") {
        return vec![Lookup::one("", "namespaces", request.namespace)];
    }
    match request.old {
        Some(old)
            if NamespacePolicy::of_namespace(object)
                .0
                .tightens(&NamespacePolicy::of_namespace(old).0) =>
        {
            vec![Lookup::all("", "pods").within(object.str_at(["metadata", "name"]))]
        }
        _ => Vec::new(),
    }
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, effects: &mut Effects) -> PluginVerdict {
    if request.is_for("", "namespaces") {
        return check_namespace(object, request, found, effects);
    }
    let Some(namespace) = found.one() else {
        return Ok(());
    };
    let (policy, _) = NamespacePolicy::of_namespace(namespace);
    if let Some(path) = template_path(request) {
        // Workloads only get warnings: the standard is enforced on the pods that they create.
        if let Some(template) = object.at(path.iter().copied()).filter(|t| !t.is_null()) {
            warn(template, policy.warn, effects);
        }
        return Ok(());
    }
    // A policy that became stricter does not block updates of existing pods that keep their images.
    if request.old.is_some_and(|old| !changes_images(object, old)) {
        return Ok(());
    }
    let violations = evaluate(object, policy.enforce);
    if !violations.is_empty() {
        let why = format!(
            "violates PodSecurity \"{}\": {}",
            policy.enforce,
            violations.details()
        );
        return Err(refuse(object, request, &why));
    }
    warn(object, policy.warn, effects);
    Ok(())
}

/// The refusal of a pod. A name that is still to be generated is left out.
fn refuse(pod: &Value, request: &Request<'_>, why: &str) -> Box<Denial> {
    let mut denial = request.forbidden(pod, why);
    if request.name.is_empty() && pod.str_at(["metadata", "name"]).is_empty() {
        denial.message = format!("{} is forbidden: {why}", request.resource);
        denial.name.clear();
    }
    denial
}

fn warn(pod: &Value, level: LevelVersion, effects: &mut Effects) {
    let violations = evaluate(pod, level);
    if !violations.is_empty() {
        let warning = format!("would violate PodSecurity \"{level}\": {}", violations.details());
        effects.warnings.push(warning);
    }
}

/// Returns whether an update changes what the standards look at: images, and the number of containers.
fn changes_images(pod: &Value, old: &Value) -> bool {
    let is_changed = |field: &str| {
        let [new, old] = [pod, old].map(|p| p.list_at(["spec", field]));
        let same = |(a, b): (&Value, &Value)| a.get_str("image") == b.get_str("image");
        new.len() != old.len() || !new.iter().zip(old).all(same)
    };
    let stored = old.list_at(["spec", "ephemeralContainers"]);
    let is_new = |container: &Value| {
        let same_name = |s: &&Value| s.get_str("name") == container.get_str("name");
        stored
            .iter()
            .find(same_name)
            .is_none_or(|s| s.get_str("image") != container.get_str("image"))
    };
    is_changed("containers")
        || is_changed("initContainers")
        || pod.list_at(["spec", "ephemeralContainers"]).iter().any(is_new)
}

fn check_namespace(
    namespace: &Value,
    request: &Request<'_>,
    found: &Found<'_>,
    effects: &mut Effects,
) -> PluginVerdict {
    let (policy, errors) = NamespacePolicy::of_namespace(namespace);
    let stored = request.old.map(NamespacePolicy::of_namespace);
    // Labels that were invalid already do not block other changes of the namespace.
    let is_stored = stored.is_some_and(|(_, stored)| *stored == *errors);
    if !errors.is_empty() && !is_stored {
        return Err(invalid(namespace, &errors));
    }
    let name = namespace.str_at(["metadata", "name"]);
    // Pods are only looked up if the policy became stricter, so that usually there are none here.
    warn_about_pods(name, found.all().collect(), policy.enforce, &mut effects.warnings);
    Ok(())
}

fn invalid(namespace: &Value, errors: &ErrorList) -> Box<Denial> {
    let name = namespace.str_at(["metadata", "name"]);
    let causes = errors.iter().map(|e| Cause {
        reason: e.reason(),
        message: e.message(),
        field: e.field().to_owned(),
    });
    Box::new(Denial {
        code: 422,
        reason: "Invalid",
        message: format!(
            "Namespace {} is invalid: {}",
            go::quote(name),
            aggregate(errors.iter())
        ),
        group: String::new(),
        kind: "Namespace".to_owned(),
        name: name.to_owned(),
        causes: causes.collect(),
    })
}

/// Adds warnings about the pods of a namespace that a new level would refuse, grouped by reason.
fn warn_about_pods(namespace: &str, pods: Vec<&Value>, level: LevelVersion, warnings: &mut Vec<String>) {
    let pods = one_per_controller_first(pods);
    if pods.len() > MAX_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_PODS} of {} existing pods",
            pods.len()
        ));
    }
    let mut names_by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pod in pods.into_iter().take(MAX_PODS) {
        let violations = evaluate(pod, level);
        if !violations.is_empty() {
            let names = names_by_reason.entry(violations.reasons()).or_default();
            names.push(pod.str_at(["metadata", "name"]));
        }
    }
    if names_by_reason.is_empty() {
        return;
    }
    warnings.push(format!(
        "existing pods in namespace {} violate the new PodSecurity enforce level \"{level}\"",
        go::quote(namespace)
    ));
    let mut details: Vec<String> = names_by_reason
        .into_iter()
        .map(|(reasons, names)| {
            let first = names.iter().min().copied().unwrap_or_default();
            match names.len() - 1 {
                0 => format!("{first}: {reasons}"),
                1 => format!("{first} (and 1 other pod): {reasons}"),
                others => format!("{first} (and {others} other pods): {reasons}"),
            }
        })
        .collect();
    // kube-apiserver groups by reason, but sorts the texts with their names.
    details.sort_unstable();
    warnings.extend(details);
}

fn one_per_controller_first(pods: Vec<&Value>) -> Vec<&Value> {
    let controller = |pod: &Value| {
        let mut owners = pod.list_at(["metadata", "ownerReferences"]).iter();
        let owner = owners.find(|o| o.get("controller").and_then(Value::as_bool) == Some(true));
        owner.map(|o| o.get_str("uid").to_owned())
    };
    let mut seen = BTreeSet::new();
    let is_first = |pod: &&Value| controller(pod).is_none_or(|uid| seen.insert(uid));
    // Pods of one controller are mostly alike. One of each comes first, because the number of checked pods is
    // bounded.
    let (mut first, others): (Vec<&Value>, Vec<&Value>) = pods.into_iter().partition(is_first);
    first.extend(others);
    first
}

/// A standard, in the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    fn parse(text: &str) -> Option<Level> {
        match text {
            "privileged" => Some(Level::Privileged),
            "baseline" => Some(Level::Baseline),
            "restricted" => Some(Level::Restricted),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

/// A version of the standards: the latest one, or that of a minor release of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StandardVersion {
    Latest,
    Minor(u32),
}

impl StandardVersion {
    fn parse(text: &str) -> Option<StandardVersion> {
        if text == "latest" {
            return Some(StandardVersion::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        // Rust's `parse` would also accept a plus sign and leading zeros.
        let is_plain = minor.bytes().all(|b| b.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
        minor
            .parse()
            .ok()
            .filter(|_| is_plain)
            .map(StandardVersion::Minor)
    }
}

/// A standard with its version: `baseline:latest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LevelVersion {
    level: Level,
    version: StandardVersion,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.level.name())?;
        match self.version {
            StandardVersion::Latest => f.write_str("latest"),
            StandardVersion::Minor(minor) => write!(f, "v1.{minor}"),
        }
    }
}

/// The policy that the labels of a namespace ask for.
struct NamespacePolicy {
    enforce: LevelVersion,
    warn: LevelVersion,
}

const LABELS: &str = "pod-security.kubernetes.io/";
const LEVELS_TEXT: &str = "must be one of privileged, baseline, restricted";
const VERSIONS_TEXT: &str = "must be \"latest\" or \"v1.x\"";

impl NamespacePolicy {
    /// The policy of a namespace, and the errors of its labels. Errors enforce the strictest standard, and warn of none.
    fn of_namespace(namespace: &Value) -> (NamespacePolicy, ErrorList) {
        let mut errors = ErrorList::new();
        let labels = namespace.at(["metadata", "labels"]).and_then(Value::as_object);
        // Every write of a pod comes here, so no key is formatted.
        let label = |name: &str| {
            let mut labels = labels?.iter();
            let (_, label) = labels.find(|(key, _)| key.strip_prefix(LABELS) == Some(name))?;
            label.as_str()
        };
        let mut refuse = |name: &str, value: &str, why: &str| {
            let (metadata, key) = (Path::ROOT.field("metadata"), format!("{LABELS}{name}"));
            let labels = metadata.field("labels");
            errors.push(FieldError::invalid(&labels.key(&key), value, why));
        };
        let mut mode = |name: &str, version: &str, fallback: Level| {
            let mut result = LevelVersion {
                level: Level::Privileged,
                version: StandardVersion::Latest,
            };
            if let Some(text) = label(name) {
                result.level = Level::parse(text).unwrap_or_else(|| {
                    refuse(name, text, LEVELS_TEXT);
                    fallback
                });
            }
            if let Some(text) = label(version) {
                result.version = StandardVersion::parse(text).unwrap_or_else(|| {
                    refuse(version, text, VERSIONS_TEXT);
                    StandardVersion::Latest
                });
            }
            result
        };
        let enforce = mode("enforce", "enforce-version", Level::Restricted);
        // Auditing has no effect here, but its labels are validated.
        mode("audit", "audit-version", Level::Privileged);
        let mut warn = mode("warn", "warn-version", Level::Privileged);
        // An invalid level enforces the strictest standard, but does not cause warnings.
        let enforces_valid_level = label("enforce").and_then(Level::parse).is_some();
        if label("warn").is_none() && enforces_valid_level && enforce.level > warn.level {
            warn.level = enforce.level;
            if label("warn-version").is_none() {
                warn.version = enforce.version;
            }
        }
        (NamespacePolicy { enforce, warn }, errors)
    }

    /// Returns whether pods that another policy allowed may be refused.
    fn tightens(&self, old: &NamespacePolicy) -> bool {
        let is_same_version = self.enforce.version == old.enforce.version;
        self.enforce != old.enforce
            && self.enforce.level != Level::Privileged
            && !(is_same_version && self.enforce.level <= old.enforce.level)
    }
}

impl Violations {
    /// The reasons, joined by commas.
    fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|(reason, _)| reason.as_str()).collect();
        reasons.join(", ")
    }

    /// The reasons with their details in parentheses.
    fn details(&self) -> String {
        let details: Vec<String> = self
            .0
            .iter()
            .map(|(reason, detail)| format!("{reason} ({detail})"))
            .collect();
        details.join(", ")
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
