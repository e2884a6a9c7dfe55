//! Built-in kinds, registered from the table of API types.

mod typed;

use self::typed::Typed;
use crate::codec::text;
use crate::kinds::definitions::{self, Compiler, Definitions};
use crate::kinds::kind::{Kind, ServedIncarnation, Subresource, Version};
use crate::kinds::strategy::Strategy;
use crate::openapi::models;
use crate::rest::review::ReviewKind;
use crate::tables::{self, Columns};
use scantling_admit::{AdmissionError, FieldValidation, ScalePaths};
pub(crate) use scantling_admit::{keep_system_fields, report_findings};
use scantling_apitypes::{ApiResource, Scope, TypeTable};
use scantling_merge::typed::ObjectType;
use scantling_schema::Finding;
use scantling_schema::definition::ApiVersion;
use scantling_schema::meta;
use scantling_schema::structural::Structural;
use scantling_value::go;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The order in which kube-apiserver lists the built-in groups: by the priority of their APIService, then by name.
const GROUP_ORDER: [&str; 22] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    EVENTS,
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    definitions::GROUP,
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
];

/// The place of a group among all; those of custom resources come last.
pub(crate) fn rank(group: &str) -> usize {
    let place = GROUP_ORDER.iter().position(|g| *g == group);
    place.unwrap_or(GROUP_ORDER.len())
}

/// The group of events whose fields have other names. Its objects are those of the core group.
pub(crate) const EVENTS: &str = "events.k8s.io";

/// The resources that a server with `--crds-only` has: what controllers of custom resources cannot do without.
const WITH_CRDS_ONLY: [(&str, &str); 10] = [
    ("", "namespaces"),
    ("", "events"),
    ("", "configmaps"),
    ("", "secrets"),
    (EVENTS, "events"),
    ("coordination.k8s.io", "leases"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    (definitions::GROUP, definitions::PLURAL),
];

/// Which built-in kinds a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinSet {
    /// All that a kube-apiserver serves by default.
    Default,
    /// Those that controllers of custom resources cannot do without.
    CrdsOnly,
}

impl BuiltinSet {
    fn has(self, resource: &ApiResource) -> bool {
        match self {
            // By default, kube-apiserver serves stable versions only.
            BuiltinSet::Default => !resource.version.contains("alpha") && !resource.version.contains("beta"),
            BuiltinSet::CrdsOnly => {
                BuiltinSet::Default.has(resource) && WITH_CRDS_ONLY.contains(&(resource.group, resource.name))
            }
        }
    }
}

/// The built-in kinds of a server; fails if the table lacks a type of one of them.
pub(crate) fn kinds(compiler: &Compiler, set: BuiltinSet) -> Result<Vec<Kind>, String> {
    let mut by_name: BTreeMap<(&str, &str), Vec<&'static ApiResource>> = BTreeMap::new();
    for resource in TypeTable::latest().resources() {
        if set.has(resource) {
            let versions = by_name.entry((resource.group, resource.name)).or_default();
            versions.push(resource);
        }
    }
    by_name
        .into_values()
        .map(|versions| kind(&versions, compiler))
        .collect()
}

/// A kind of the table in its served versions.
fn kind(versions: &[&'static ApiResource], compiler: &Compiler) -> Result<Kind, String> {
    let [first, ..] = versions else {
        return Err("a kind without versions".to_owned());
    };
    let (group, name) = (first.group, first.kind());
    let hub = hub(group, versions);
    let strategy: Arc<dyn Strategy> = match group {
        definitions::GROUP => Arc::new(Definitions::new(compiler.clone())),
        _ => {
            let scope = match first.scope() {
                Scope::Namespaced => meta::Scope::Namespaced,
                Scope::Cluster => meta::Scope::Cluster,
            };
            let names: Vec<&'static str> = versions.iter().map(|v| v.version).collect();
            let typed = Typed::new(group, name, scope, &names, hub);
            Arc::new(typed.ok_or_else(|| format!("the table of API types has no {group} {name}"))?)
        }
    };
    let mut served: Vec<Version> = versions.iter().map(|v| version(v, hub)).collect();
    if group == definitions::GROUP {
        served.push(Version {
            deprecation: ApiVersion::V1Beta1.deprecation().map(str::to_owned),
            name: ApiVersion::V1Beta1.as_str().to_owned(),
            storage: false,
            ..version(first, hub)
        });
    }
    let own = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    Ok(Kind {
        group: group.to_owned(),
        plural: first.name.to_owned(),
        singular: first.singular().to_owned(),
        kind: name.to_owned(),
        list_kind: format!("{name}List"),
        short_names: own(first.short_names()),
        categories: own(first.categories()),
        namespaced: first.scope() == Scope::Namespaced,
        versions: served,
        strategy,
        leaving: false,
        terminating: false,
        review: ReviewKind::find(group, name),
        servable: true,
        built_in: true,
        verbs: first.verbs(),
        storage_hash: first.storage_version_hash(),
        mark: env!("CARGO_PKG_VERSION").to_owned(),
        serial: text::next_serial(),
        incarnation: ServedIncarnation::since(0),
    })
}

/// The kind of the body of a subresource that is not the kind of its resource.
pub(crate) fn subresource_kind(
    group: &'static str,
    version: &'static str,
    name: &'static str,
) -> Option<Kind> {
    let strategy = Typed::new(group, name, meta::Scope::Namespaced, &[version], (group, version))?;
    let version = Version {
        name: version.to_owned(),
        served: true,
        storage: true,
        deprecation: None,
        status: false,
        scale: None,
        subresources: Vec::new(),
        columns: Columns::builtin(group, name),
        selectable: Vec::new(),
    };
    Some(Kind {
        group: group.to_owned(),
        plural: name.to_lowercase(),
        singular: name.to_lowercase(),
        kind: name.to_owned(),
        list_kind: format!("{name}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        versions: vec![version],
        strategy: Arc::new(strategy),
        leaving: false,
        terminating: false,
        review: None,
        servable: true,
        built_in: true,
        verbs: Vec::new(),
        storage_hash: None,
        mark: String::new(),
        serial: text::next_serial(),
        incarnation: ServedIncarnation::since(0),
    })
}

/// The group and version in which objects are stored: the newest stable version. Events of both groups are stored in the
/// core group.
fn hub(group: &'static str, versions: &[&'static ApiResource]) -> (&'static str, &'static str) {
    if group == EVENTS {
        return ("", "v1");
    }
    let newest = versions.iter().map(|v| v.version).max();
    (group, newest.unwrap_or("v1"))
}

/// A served version of a built-in kind.
fn version(resource: &'static ApiResource, hub: (&str, &str)) -> Version {
    let subresources: Vec<Subresource> = resource
        .subresources
        .iter()
        .map(|s| {
            let (group, version, kind) = s.kind();
            Subresource {
                name: s.name,
                group,
                version,
                kind,
                verbs: s.verbs(),
            }
        })
        .collect();
    let has = |name: &str| subresources.iter().any(|s| s.name == name);
    Version {
        name: resource.version.to_owned(),
        served: true,
        storage: (resource.group, resource.version) == hub,
        deprecation: deprecation(resource.group, resource.kind()).map(str::to_owned),
        status: has("status"),
        scale: has("scale").then(|| ScalePaths {
            spec_replicas: ".spec.replicas".into(),
            status_replicas: ".status.replicas".into(),
            label_selector: None,
        }),
        subresources,
        columns: columns(resource.group, resource.kind()),
        selectable: Vec::new(),
    }
}

/// The warning about a deprecated kind.
fn deprecation(group: &str, kind: &str) -> Option<&'static str> {
    match (group, kind) {
        ("", "Endpoints") => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        ("", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

/// The columns of a kind in tables.
fn columns(group: &str, kind: &str) -> Columns {
    match (group, kind) {
        // Its fields have other names than those of the hub version.
        (EVENTS, "Event") => tables::core::events(),
        (definitions::GROUP, _) => tables::core::definitions(),
        _ => Columns::builtin(group, kind),
    }
}

/// All built-in kinds, for tests.
#[cfg(test)]
pub(crate) fn test_kinds() -> crate::kinds::kind::Kinds {
    let metrics = crate::metrics::Metrics::new();
    let compiler = Compiler::new(scantling_schema::gates::Gates::default(), &metrics);
    let mut all = crate::kinds::kind::Kinds::default();
    for kind in kinds(&compiler, BuiltinSet::Default).unwrap() {
        all.insert(Arc::new(kind));
    }
    all
}

/// The selectable fields of kinds that have none of their own.
pub(crate) const NAMES: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// Whether a built-in kind has this selectable field.
pub(crate) fn selectable(field: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&field) {
        return Ok(());
    }
    Err(if known == NAMES {
        let [name, namespace] = NAMES;
        let field = go::quote(field);
        format!("{field} is not a known field selector: only \"{name}\", \"{namespace}\"")
    } else {
        format!("field label not supported: {field}")
    })
}

/// The texts of findings.
pub(crate) fn findings(found: &[Finding]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

/// What becomes of unknown and duplicate fields.
pub(crate) fn report_joined_findings(
    found: &[String],
    unknown: Vec<String>,
    mode: FieldValidation,
) -> Result<Vec<String>, AdmissionError> {
    report_findings(joined(found, unknown), mode)
}

/// What was found in a text, and what is unknown.
pub(crate) fn joined(found: &[String], unknown: Vec<String>) -> Vec<String> {
    // What is unknown is passed over as a whole: nobody sees what stands twice in it.
    let seen = found
        .iter()
        .filter(|finding| !unknown.iter().any(|unknown| is_within(finding, unknown)));
    let mut all: Vec<String> = seen.cloned().collect();
    all.extend(unknown);
    all
}

/// Whether a field that stands twice is one that is unknown, or stands in it.
fn is_within(finding: &str, unknown: &str) -> bool {
    let twice = finding.strip_prefix("duplicate field \"");
    let rest = unknown
        .strip_prefix("unknown field \"")
        .and_then(|unknown| twice?.strip_prefix(unknown.strip_suffix('"')?));
    rest.is_some_and(|rest| rest == "\"" || rest.starts_with(['.', '[']))
}

/// How objects of a version of a built-in kind merge: by its published schema, read when the first patch comes along.
#[derive(Debug)]
pub(crate) struct Model {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    read: OnceLock<(Arc<Structural>, ObjectType)>,
}

impl Model {
    /// The model of a version of a kind.
    pub(crate) fn new(group: &'static str, version: &'static str, kind: &'static str) -> Model {
        let read = OnceLock::new();
        Model {
            group,
            version,
            kind,
            read,
        }
    }

    fn read(&self) -> &(Arc<Structural>, ObjectType) {
        self.read.get_or_init(|| {
            let schema = models::structural(self.group, self.version, self.kind);
            (Arc::clone(&schema), ObjectType::new(schema))
        })
    }

    /// The schema by which strategic merge patches merge.
    pub(crate) fn strategic(&self) -> &Structural {
        &self.read().0
    }

    /// The type by which fields are owned.
    pub(crate) fn object_type(&self) -> &ObjectType {
        &self.read().1
    }
}
