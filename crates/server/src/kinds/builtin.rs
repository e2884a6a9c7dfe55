//! Built-in kinds, registered from the table of API types.

mod typed;

use self::typed::Typed;
use crate::kinds::codec::KindCodec;
use crate::kinds::custom::Compiler;
use crate::kinds::definitions::{self, Definitions};
use crate::kinds::kind::{
    BUILTIN_PATCH_TYPES, Kind, Protobuf, ServedIncarnation, ServedSubresource, Version,
};
use crate::kinds::rules::KindRules;
use crate::rest::entry_cache::next_serial;
use crate::rest::review::ReviewKind;
use crate::tables::Columns;
use scantling_admit::ScalePaths;
use scantling_apitypes::{ApiResource, Scope, TypeDef, TypeTable};
use scantling_builtin::KindBehavior;
use scantling_merge::typed::{ObjectType, merge_schema};
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

/// The built-in groups whose keys name the group. The keys of other built-in groups begin with the resource.
const STORED_BY_GROUP: [&str; 2] = [definitions::GROUP, "apiregistration.k8s.io"];

/// The place of a group among all; those of custom resources come last.
pub(crate) fn rank(group: &str) -> usize {
    let place = GROUP_ORDER.iter().position(|g| *g == group);
    place.unwrap_or(GROUP_ORDER.len())
}

/// The group of events whose fields have other names. Its objects are those of the core group.
pub(crate) const EVENTS: &str = "events.k8s.io";

/// The resources of a server with `--crds-only`: those that controllers of custom resources need.
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

/// The set of built-in kinds that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuiltinSet {
    /// Those that kube-apiserver serves by default.
    Default,
    /// Those that controllers of custom resources need.
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
    let mut protobuf = Protobuf::Supported;
    let code = match group {
        definitions::GROUP => {
            let definitions = Arc::new(Definitions::new(compiler));
            protobuf = definitions.lossy_protobuf().map_or(protobuf, Protobuf::Lossy);
            KindCode::new(definitions, &definitions::BEHAVIOR)
        }
        _ => {
            let names: Vec<&'static str> = versions.iter().map(|v| v.version).collect();
            let typed = Typed::new(group, name, scope(first), &names, hub);
            // A kind that lacks its type would decode nothing, so the server does not start.
            typed
                .and_then(KindCode::typed)
                .ok_or_else(|| format!("the table of API types has no {group} {name}"))?
        }
    };
    let mut served: Vec<Version> = versions.iter().map(|v| version(v, hub)).collect();
    // kube-apiserver served v1beta1 up to 1.21, so the table of current API types lacks it.
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
        plural: first.name.to_owned(),
        singular: first.singular().to_owned(),
        short_names: own(first.short_names()),
        categories: own(first.categories()),
        namespaced: first.scope() == Scope::Namespaced,
        versions: served,
        protobuf,
        // The status storages of these two groups have no table convertor in kube-apiserver.
        status_has_columns: !matches!(group, definitions::GROUP | "apiregistration.k8s.io"),
        precondition_failed: match (group, name) {
            ("", "Namespace") => Some("Precondition failed"),
            (definitions::GROUP, _) => Some("precondition failed"),
            _ => None,
        },
        review: ReviewKind::find(group, name),
        verbs: first.verbs(),
        storage_hash: first.storage_version_hash().map(str::to_owned),
        // The schemas of built-in kinds change only with the program.
        mark: env!("CARGO_PKG_VERSION").to_owned(),
        ..code.kind(group, name)
    })
}

/// The scope of a resource.
fn scope(resource: &ApiResource) -> meta::Scope {
    match resource.scope() {
        Scope::Namespaced => meta::Scope::Namespaced,
        Scope::Cluster => meta::Scope::Cluster,
    }
}

/// The code of a built-in kind.
struct KindCode {
    codec: Arc<dyn KindCodec>,
    rules: Arc<dyn KindRules>,
    behavior: &'static KindBehavior,
}

impl KindCode {
    fn new<T: KindCodec + KindRules + 'static>(code: Arc<T>, behavior: &'static KindBehavior) -> KindCode {
        KindCode {
            codec: Arc::clone(&code) as Arc<dyn KindCodec>,
            rules: code,
            behavior,
        }
    }

    fn typed(typed: Typed) -> Option<KindCode> {
        let behavior = typed.behavior()?;
        Some(KindCode::new(Arc::new(typed), behavior))
    }

    /// A kind without versions and verbs.
    fn kind(self, group: &str, name: &str) -> Kind {
        Kind {
            group: group.to_owned(),
            // Other servers store built-in kinds without their group, except for the youngest ones.
            key_group: match STORED_BY_GROUP.contains(&group) {
                true => group.to_owned(),
                false => String::new(),
            },
            object_group: match group {
                EVENTS => String::new(),
                _ => group.to_owned(),
            },
            plural: name.to_lowercase(),
            singular: name.to_lowercase(),
            kind: name.to_owned(),
            list_kind: format!("{name}List"),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            versions: Vec::new(),
            codec: self.codec,
            rules: self.rules,
            behavior: self.behavior,
            verbs: Vec::new(),
            patch_types: BUILTIN_PATCH_TYPES,
            protobuf: Protobuf::Supported,
            status_has_columns: true,
            precondition_failed: None,
            leaving: false,
            review: None,
            servable: true,
            built_in: true,
            storage_hash: None,
            mark: String::new(),
            serial: next_serial(),
            // Built-in kinds never change, so their watches may begin at any revision.
            incarnation: ServedIncarnation::since(0),
        }
    }
}

/// The kind of the body of a subresource that is not the kind of its resource.
pub(crate) fn subresource_kind(
    group: &'static str,
    version: &'static str,
    name: &'static str,
) -> Option<Kind> {
    let typed = Typed::new(group, name, meta::Scope::Namespaced, &[version], (group, version))?;
    let columns = Columns::builtin(group, version, name);
    let version = Version {
        name: version.to_owned(),
        served: true,
        storage: true,
        deprecation: None,
        status: false,
        scale: None,
        subresources: Vec::new(),
        columns,
        selectable: Vec::new(),
    };
    Some(Kind {
        versions: vec![version],
        ..KindCode::typed(typed)?.kind(group, name)
    })
}

/// The group and version in which objects are stored: the newest stable version. Events of both groups are stored in
/// the core group.
fn hub(group: &'static str, versions: &[&'static ApiResource]) -> (&'static str, &'static str) {
    if group == EVENTS {
        return ("", "v1");
    }
    // Only stable versions are served, so the order of texts is that of versions up to `v9`.
    let newest = versions.iter().map(|v| v.version).max();
    (group, newest.unwrap_or("v1"))
}

/// A served version of a built-in kind.
fn version(resource: &'static ApiResource, hub: (&str, &str)) -> Version {
    let subresources: Vec<ServedSubresource> = resource
        .subresources
        .iter()
        .map(|s| {
            let (group, version, kind) = s.kind();
            ServedSubresource {
                name: s.name,
                group,
                version,
                kind: kind.into(),
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
        columns: Columns::builtin(resource.group, resource.version, resource.kind()),
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

/// Returns an error text if a field is not among those that selectors may use.
pub(crate) fn check_selectable(field: &str, known: &[&str]) -> Result<(), String> {
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

/// How objects of a version of a built-in kind merge; computed for the first patch.
#[derive(Debug)]
pub(crate) struct Model {
    definition: &'static TypeDef,
    read: OnceLock<(Arc<Structural>, ObjectType)>,
}

impl Model {
    /// The model of a type.
    pub(crate) fn new(definition: &'static TypeDef) -> Model {
        let read = OnceLock::new();
        Model { definition, read }
    }

    fn read(&self) -> &(Arc<Structural>, ObjectType) {
        self.read.get_or_init(|| {
            let schema = merge_schema(self.definition);
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
