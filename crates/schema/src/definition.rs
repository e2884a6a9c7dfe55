//! CustomResourceDefinitions: decoded, defaulted, converted between their versions, and written back.
//!
//! A [`Definition`] holds both places in which a context may stand: at the top, for all versions, or with each version.
//! `v1beta1` documents choose; `v1` documents have only the latter, and settings in which all versions agree move to the
//! top when they are read. That is why errors about a definition with one version speak of `spec.validation`.

mod accepted;
mod conditions;
mod convert;
mod decode;
mod default;
mod encode;
mod prepare;
mod print;
mod types;
mod validate;
mod versions;
mod without_schemas;

pub use accepted::{Acceptance, Accepted};
pub use decode::DecodedDefinition;
pub use print::rule as print_rule;
pub(crate) use types::canonical_schema;
pub use validate::{check_webhook_service, check_webhook_url, warnings};
pub(crate) use validate::{has_unknown_type, spells_int_or_string, structural_errors};
pub use versions::compare_versions;

use crate::document::Schema;
pub use crate::gates::Gates;
use crate::rules::Environments;
use scantling_value::{Map, Str, Value};
use std::sync::Arc;

/// A version of the definition kind itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    /// `apiextensions.k8s.io/v1`
    V1,
    /// `apiextensions.k8s.io/v1beta1`
    V1Beta1,
}

impl ApiVersion {
    /// The version's name.
    pub fn as_str(self) -> &'static str {
        match self {
            ApiVersion::V1 => "v1",
            ApiVersion::V1Beta1 => "v1beta1",
        }
    }

    /// The warning of servers in answer to requests in this version, if it is deprecated.
    pub fn deprecation(self) -> Option<&'static str> {
        match self {
            ApiVersion::V1 => None,
            ApiVersion::V1Beta1 => Some(
                "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in \
                 v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition",
            ),
        }
    }

    /// The version that a document names; any but the old one is the current.
    pub fn of_document(document: &Value) -> ApiVersion {
        match document.get("apiVersion").and_then(Value::as_str) {
            Some("apiextensions.k8s.io/v1beta1") => ApiVersion::V1Beta1,
            _ => ApiVersion::V1,
        }
    }
}

/// The server that a definition is written to, and how.
#[derive(Clone, Copy, Debug)]
pub struct ValidationContext<'a> {
    /// The version of the definition kind in the request.
    pub api: ApiVersion,
    /// The features that are on.
    pub gates: Gates,
    /// What rules may use.
    pub environments: &'a Environments,
}

/// A CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// `metadata`, checked against its wire type.
    pub metadata: Map,
    /// What is asked for.
    pub spec: Spec,
    /// What the server made of it.
    pub status: Status,
}

/// What a definition asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The API group.
    pub group: Str,
    /// The first version (of `v1beta1`).
    pub version: Str,
    /// The names of the resource.
    pub names: Names,
    /// `Cluster` or `Namespaced`.
    pub scope: Str,
    /// The schema for all versions.
    pub validation: Option<Validation>,
    /// The subresources for all versions.
    pub subresources: Option<Subresources>,
    /// The versions.
    pub versions: Option<Vec<CrdVersion>>,
    /// The printer columns for all versions.
    pub columns: Option<Vec<Column>>,
    /// The selectable fields for all versions.
    pub selectable_fields: Option<Vec<Str>>,
    /// How objects convert between versions.
    pub conversion: Option<Conversion>,
    /// Whether unknown fields stay.
    pub preserve_unknown_fields: Option<bool>,
}

/// The names of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// The name in paths.
    pub plural: Str,
    /// The name of one.
    pub singular: Str,
    /// Short names.
    pub short_names: Option<Vec<Str>>,
    /// The kind of an object.
    pub kind: Str,
    /// The kind of a list.
    pub list_kind: Str,
    /// The groups of resources it belongs to.
    pub categories: Option<Vec<Str>>,
}

/// A version of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdVersion {
    /// The version's name.
    pub name: Str,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// Whether its use gives a warning.
    pub deprecated: bool,
    /// The text of that warning.
    pub deprecation_warning: Option<Str>,
    /// The schema.
    pub validation: Option<Validation>,
    /// The subresources.
    pub subresources: Option<Subresources>,
    /// The printer columns.
    pub columns: Option<Vec<Column>>,
    /// The selectable fields.
    pub selectable_fields: Option<Vec<Str>>,
}

/// The place of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    /// The schema document.
    pub schema: Option<Arc<Value>>,
}

impl Validation {
    /// The schema, if there is one.
    pub fn schema(&self) -> Option<Schema<'_>> {
        self.schema.as_deref().map(Schema::new)
    }
}

/// The subresources of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subresources {
    /// Whether there is `/status`.
    pub status: bool,
    /// How `/scale` reads objects, where it is there.
    pub scale: Option<ScaleSubresource>,
}

/// How `/scale` reads objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleSubresource {
    /// Where the wanted replicas stand.
    pub spec_replicas_path: Str,
    /// Where the observed replicas stand.
    pub status_replicas_path: Str,
    /// Where the selector stands.
    pub label_selector_path: Option<Str>,
}

/// A printer column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// The title.
    pub name: Str,
    /// The type of its cells.
    pub ty: Str,
    /// The format of its cells.
    pub format: Str,
    /// What it shows.
    pub description: Str,
    /// Columns with a priority over zero show in wide tables only.
    pub priority: i64,
    /// Where the value stands.
    pub json_path: Str,
}

/// How objects convert between versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: Str,
    /// Where the webhook is.
    pub client: Option<WebhookClient>,
    /// The versions of the review that the webhook understands.
    pub review_versions: Option<Vec<Str>>,
}

/// Where a webhook is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookClient {
    /// Its address.
    pub url: Option<Str>,
    /// Its service.
    pub service: Option<Service>,
    /// The authorities it is trusted by, in base64.
    pub ca_bundle: Str,
}

/// A service of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Its namespace.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// The path to ask at.
    pub path: Option<Str>,
    /// Its port.
    pub port: Option<i64>,
}

/// What the server made of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The conditions.
    pub conditions: Option<Vec<Condition>>,
    /// The names in use.
    pub accepted_names: Names,
    /// The versions in which objects may be stored.
    pub stored_versions: Vec<Str>,
    /// The generation that the status is about.
    pub observed_generation: i64,
}

/// A condition of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// Which condition.
    pub ty: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    /// When the status last changed.
    pub last_transition_time: Str,
    /// Why, in a word.
    pub reason: Str,
    /// Why, in words.
    pub message: Str,
    /// The generation that the condition is about.
    pub observed_generation: i64,
}

impl Definition {
    /// The object's name.
    pub fn name(&self) -> &str {
        self.metadata.get_str("name")
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.get("annotations")?.get(key)?.as_str()
    }

    /// Whether a condition is `True`.
    pub fn has_condition(&self, condition: &str) -> bool {
        self.condition(condition).is_some_and(|c| c.status == "True")
    }
}

impl Spec {
    /// The versions.
    pub fn versions(&self) -> &[CrdVersion] {
        self.versions.as_deref().unwrap_or_default()
    }

    /// A version by name.
    pub fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions().iter().find(|v| v.name == name)
    }

    /// The version in which objects are stored.
    pub fn storage_version(&self) -> Option<&CrdVersion> {
        self.versions().iter().find(|v| v.storage)
    }

    /// The schemas in the order of the document: that of all versions, then those of single versions.
    pub fn schemas(&self) -> impl Iterator<Item = Schema<'_>> {
        let own = self.versions().iter().filter_map(|v| v.validation.as_ref());
        self.validation.iter().chain(own).filter_map(Validation::schema)
    }

    /// The schema of a version, wherever it stands.
    pub fn schema_of<'a>(&'a self, version: &'a CrdVersion) -> Option<&'a Arc<Value>> {
        let place = version.validation.as_ref().or(self.validation.as_ref());
        place.and_then(|v| v.schema.as_ref())
    }

    /// The subresources of a version, wherever they stand.
    pub fn subresources_of<'a>(&'a self, version: &'a CrdVersion) -> Option<&'a Subresources> {
        version.subresources.as_ref().or(self.subresources.as_ref())
    }

    /// The printer columns of a version, wherever they stand.
    pub fn columns_of<'a>(&'a self, version: &'a CrdVersion) -> &'a [Column] {
        version
            .columns
            .as_deref()
            .or(self.columns.as_deref())
            .unwrap_or_default()
    }

    /// The selectable fields of a version, wherever they stand.
    pub fn selectable_fields_of<'a>(&'a self, version: &'a CrdVersion) -> &'a [Str] {
        version
            .selectable_fields
            .as_deref()
            .or(self.selectable_fields.as_deref())
            .unwrap_or_default()
    }

    /// Whether unknown fields stay in objects of every version.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown_fields == Some(true)
    }

    /// Whether objects can be served: defaults can be brought into form, and objects can be checked. No request makes a
    /// definition with a schema that values cannot be checked against, but a store may hold one.
    pub fn is_servable(&self) -> bool {
        self.has_usable_defaults() && self.schemas().all(|s| s.unsupported_for_values().is_none())
    }

    /// Whether defaults can be brought into form. Servers accept those below the `items` of a root, which cannot, and
    /// answer no request about the kind then.
    pub fn has_usable_defaults(&self) -> bool {
        self.preserves_unknown_fields() || self.schemas().all(validate::are_in_objects)
    }
}
