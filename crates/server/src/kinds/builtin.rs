//! The core kinds that clients cannot do without.

mod config_map;
mod core;
pub(crate) mod event;
mod lease;
mod namespace;
mod secret;

use self::core::Core;
use crate::codec::text;
use crate::kinds::definitions::{self, Compiler, Definitions};
use crate::kinds::kind::{Kind, ServedIncarnation, Version};
use crate::kinds::strategy::Strategy;
use crate::openapi::models;
use crate::rest::review::ReviewKind;
use crate::tables::{self, Columns};
use scantling_admit::{FieldValidation, Refusal};
use scantling_merge::typed::ObjectType;
use scantling_schema::Finding;
use scantling_schema::core::CoreKind;
use scantling_schema::definition::ApiVersion;
use scantling_schema::structural::Structural;
use scantling_value::{Map, go};
use std::sync::{Arc, OnceLock};

/// The groups whose kinds are built in, in the order in which servers list them.
pub(crate) const GROUPS: [&str; 6] = [
    "",
    EVENTS,
    AUTHENTICATION,
    AUTHORIZATION,
    definitions::GROUP,
    COORDINATION,
];

/// The place of a group among all; those that definitions make stand last.
pub(crate) fn rank(group: &str) -> usize {
    let place = GROUPS.iter().position(|g| *g == group);
    place.unwrap_or(GROUPS.len())
}

/// Whether the kinds of a group are built in.
pub(crate) fn has_group(group: &str) -> bool {
    GROUPS.contains(&group)
}

/// The group that events have for themselves, beside the core group: its kind is another view of the same objects.
pub(crate) const EVENTS: &str = "events.k8s.io";

/// The group of leases.
pub(crate) const COORDINATION: &str = "coordination.k8s.io";

/// The group of reviews of who asks.
pub(crate) const AUTHENTICATION: &str = "authentication.k8s.io";

/// The group of reviews of what one may do.
pub(crate) const AUTHORIZATION: &str = "authorization.k8s.io";

/// Whether a group and version has kinds that are built in.
pub(crate) fn serves(group: &str, version: &str) -> bool {
    match group {
        "" | EVENTS | AUTHENTICATION | AUTHORIZATION | COORDINATION => version == "v1",
        definitions::GROUP => matches!(version, "v1" | "v1beta1"),
        _ => false,
    }
}

/// The kinds that are there before any definition.
pub(crate) fn kinds(compiler: &Compiler) -> Vec<Kind> {
    let namespaces = Version {
        status: true,
        finalize: true,
        ..version("v1", tables::core::namespaces())
    };
    let events = version("v1", tables::core::events());
    // What is stored is an event of the core group.
    let new_events = Version {
        storage: false,
        ..version("v1", tables::core::events())
    };
    let config_maps = version("v1", tables::core::config_maps());
    let secrets = version("v1", tables::core::secrets());
    let leases = version("v1", tables::core::leases());
    let definitions = |api: ApiVersion| Version {
        status: true,
        storage: api == ApiVersion::V1,
        deprecation: api.deprecation().map(str::to_owned),
        ..version(api.as_str(), tables::core::definitions())
    };
    vec![
        Kind {
            short_names: vec!["ns".to_owned()],
            ..core_kind(CoreKind::Namespace, "", "namespaces", "Namespace", namespaces)
        },
        Kind {
            short_names: vec!["ev".to_owned()],
            namespaced: true,
            ..core_kind(CoreKind::Event, "", "events", "Event", events)
        },
        Kind {
            short_names: vec!["ev".to_owned()],
            namespaced: true,
            ..core_kind(CoreKind::NewEvent, EVENTS, "events", "Event", new_events)
        },
        Kind {
            short_names: vec!["cm".to_owned()],
            namespaced: true,
            ..core_kind(CoreKind::ConfigMap, "", "configmaps", "ConfigMap", config_maps)
        },
        Kind {
            namespaced: true,
            ..core_kind(CoreKind::Secret, "", "secrets", "Secret", secrets)
        },
        Kind {
            namespaced: true,
            ..core_kind(CoreKind::Lease, COORDINATION, "leases", "Lease", leases)
        },
        Kind {
            short_names: vec!["crd".to_owned(), "crds".to_owned()],
            categories: vec!["api-extensions".to_owned()],
            ..kind(
                definitions::GROUP,
                definitions::PLURAL,
                "CustomResourceDefinition",
                [ApiVersion::V1, ApiVersion::V1Beta1].map(definitions).into(),
                Definitions::new(compiler.clone()),
            )
        },
        review(ReviewKind::Access),
        review(ReviewKind::Rules),
        review(ReviewKind::User),
    ]
}

/// A kind of reviews.
fn review(review: ReviewKind) -> Kind {
    let (group, plural, name, core) = match review {
        ReviewKind::Access => (
            AUTHORIZATION,
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            CoreKind::AccessReview,
        ),
        ReviewKind::Rules => (
            AUTHORIZATION,
            "selfsubjectrulesreviews",
            "SelfSubjectRulesReview",
            CoreKind::RulesReview,
        ),
        ReviewKind::User => (
            AUTHENTICATION,
            "selfsubjectreviews",
            "SelfSubjectReview",
            CoreKind::SelfReview,
        ),
    };
    Kind {
        review: Some(review),
        ..core_kind(core, group, plural, name, version("v1", Columns::new(&[])))
    }
}

/// A core kind for all of the cluster, in its one version.
fn core_kind(
    core: CoreKind,
    group: &'static str,
    plural: &str,
    name: &'static str,
    version: Version,
) -> Kind {
    kind(group, plural, name, vec![version], Core::new(core, group, name))
}

/// A kind for all of the cluster, with nothing beyond its names.
fn kind(
    group: &str,
    plural: &str,
    name: &str,
    versions: Vec<Version>,
    strategy: impl Strategy + 'static,
) -> Kind {
    Kind {
        group: group.to_owned(),
        plural: plural.to_owned(),
        singular: name.to_lowercase(),
        kind: name.to_owned(),
        list_kind: format!("{name}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: false,
        versions,
        strategy: Arc::new(strategy),
        leaving: false,
        terminating: false,
        review: None,
        servable: true,
        built_in: true,
        mark: env!("CARGO_PKG_VERSION").to_owned(),
        serial: text::next_serial(),
        incarnation: ServedIncarnation::since(0),
    }
}

/// A version that is served and stored, without subresources.
fn version(name: &str, columns: Columns) -> Version {
    Version {
        name: name.to_owned(),
        served: true,
        storage: true,
        deprecation: None,
        status: false,
        scale: None,
        finalize: false,
        columns,
        selectable: Vec::new(),
    }
}

/// Puts what metadata get from the server alone back as they were. Another uid stays, to be refused.
pub(crate) fn keep_system_fields(new: &mut Map, old: &Map) {
    for field in [
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        if let Some(value) = old.get(field) {
            new.insert(field, value.clone());
        }
    }
    if let Some(uid) = old.get("uid") {
        new.get_or_insert_with("uid", || uid.clone());
    }
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
) -> Result<Vec<String>, Refusal> {
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

/// What becomes of findings: a refusal, warnings, or nothing.
pub(crate) fn report_findings(found: Vec<String>, mode: FieldValidation) -> Result<Vec<String>, Refusal> {
    match mode {
        FieldValidation::Strict if !found.is_empty() => Err(Refusal::Strict(found)),
        FieldValidation::Ignore => Ok(Vec::new()),
        _ => Ok(found),
    }
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
