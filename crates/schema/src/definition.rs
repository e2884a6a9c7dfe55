//! CustomResourceDefinitions: decoding, defaulting, conversion between their versions, and encoding.
//!
//! A setting of a [`Definition`] can be at the top, for all versions, or with each version. `v1beta1`
//! documents may use either; `v1` documents have only the latter, and settings in which all versions agree
//! move to the top when they are decoded. That is why errors about a CRD with one version refer to
//! `spec.validation`.

mod accepted;
mod conditions;
mod convert;
mod decode;
mod default;
mod encode;
mod members;
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

/// A version of the CustomResourceDefinition kind itself.
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

    /// The deprecation warning for requests in this version, if it is deprecated.
    pub fn deprecation(self) -> Option<&'static str> {
        match self {
            ApiVersion::V1 => None,
            ApiVersion::V1Beta1 => Some(
                "apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in \
                 v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition",
            ),
        }
    }

    /// The version that a document names; anything but `v1beta1` is `v1`.
    pub fn of_document(document: &Value) -> ApiVersion {
        match document.get("apiVersion").and_then(Value::as_str) {
            Some("apiextensions.k8s.io/v1beta1") => ApiVersion::V1Beta1,
            _ => ApiVersion::V1,
        }
    }
}

/// The server that validates a CRD, and the request.
#[derive(Clone, Copy, Debug)]
pub struct ValidationContext<'a> {
    /// The version of the CustomResourceDefinition kind in the request.
    pub api: ApiVersion,
    /// The enabled features.
    pub gates: Gates,
    /// The CEL environments of rules.
    pub environments: &'a Environments,
}

/// A CustomResourceDefinition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// `metadata`, checked against its type.
    pub metadata: Map,
    /// The specification.
    pub spec: Spec,
    /// The status.
    pub status: Status,
}

/// The specification of a CRD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The API group.
    pub group: Str,
    /// The first version (`v1beta1` only).
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
    pub columns: Option<Vec<PrinterColumn>>,
    /// The selectable fields for all versions.
    pub selectable_fields: Option<Vec<Str>>,
    /// The conversion between versions.
    pub conversion: Option<Conversion>,
    /// True if unknown fields are preserved.
    pub preserve_unknown_fields: Option<bool>,
}

/// The names of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// The plural name, as in paths.
    pub plural: Str,
    /// The singular name.
    pub singular: Str,
    /// Short names.
    pub short_names: Option<Vec<Str>>,
    /// The kind of an object.
    pub kind: Str,
    /// The kind of a list.
    pub list_kind: Str,
    /// The categories, such as `all`.
    pub categories: Option<Vec<Str>>,
}

/// A version of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdVersion {
    /// The version's name.
    pub name: Str,
    /// True if it is served.
    pub served: bool,
    /// True if objects are stored in it.
    pub storage: bool,
    /// True if its use causes a warning.
    pub deprecated: bool,
    /// The text of the warning.
    pub deprecation_warning: Option<Str>,
    /// The schema.
    pub validation: Option<Validation>,
    /// The subresources.
    pub subresources: Option<Subresources>,
    /// The printer columns.
    pub columns: Option<Vec<PrinterColumn>>,
    /// The selectable fields.
    pub selectable_fields: Option<Vec<Str>>,
}

/// The validation settings of a version.
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
    /// True if there is a `/status` subresource.
    pub status: bool,
    /// The `/scale` subresource, if there is one.
    pub scale: Option<ScaleSubresource>,
}

/// The settings of the `/scale` subresource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleSubresource {
    /// The path of the desired replicas.
    pub spec_replicas_path: Str,
    /// The path of the observed replicas.
    pub status_replicas_path: Str,
    /// The path of the selector.
    pub label_selector_path: Option<Str>,
}

/// A printer column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrinterColumn {
    /// The title.
    pub name: Str,
    /// The type of its cells.
    pub ty: Str,
    /// The format of its cells.
    pub format: Str,
    /// The description.
    pub description: Str,
    /// Columns with a priority above zero are only shown in wide tables.
    pub priority: i64,
    /// The path of the value.
    pub json_path: Str,
}

/// The conversion between versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: Str,
    /// The address of the webhook.
    pub client: Option<WebhookClient>,
    /// The review versions that the webhook supports.
    pub review_versions: Option<Vec<Str>>,
}

/// The address of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookClient {
    /// The URL.
    pub url: Option<Str>,
    /// The service.
    pub service: Option<Service>,
    /// The CA certificates that it must be signed by, in base64.
    pub ca_bundle: Str,
}

/// A service of the cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Its namespace.
    pub namespace: Str,
    /// Its name.
    pub name: Str,
    /// The path of the URL.
    pub path: Option<Str>,
    /// Its port.
    pub port: Option<i64>,
}

/// The status of a CRD.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The conditions.
    pub conditions: Option<Vec<Condition>>,
    /// The accepted names.
    pub accepted_names: Names,
    /// The versions in which objects may be stored.
    pub stored_versions: Vec<Str>,
    /// The generation that the status refers to.
    pub observed_generation: i64,
}

/// A condition of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// The type.
    pub ty: Str,
    /// `True`, `False` or `Unknown`.
    pub status: Str,
    /// The time of the last status change.
    pub last_transition_time: Str,
    /// The reason, in one word.
    pub reason: Str,
    /// The human-readable message.
    pub message: Str,
    /// The generation that the condition refers to.
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

    /// Returns whether a condition is `True`.
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

    /// The storage version.
    pub fn storage_version(&self) -> Option<&CrdVersion> {
        self.versions().iter().find(|v| v.storage)
    }

    /// The schemas in document order: the one for all versions, then those of single versions.
    pub fn schemas(&self) -> impl Iterator<Item = Schema<'_>> {
        let own = self.versions().iter().filter_map(|v| v.validation.as_ref());
        self.validation.iter().chain(own).filter_map(Validation::schema)
    }

    /// The schema of a version, from the version or the top.
    pub fn schema_of<'a>(&'a self, version: &'a CrdVersion) -> Option<&'a Arc<Value>> {
        let place = version.validation.as_ref().or(self.validation.as_ref());
        place.and_then(|v| v.schema.as_ref())
    }

    /// The subresources of a version, from the version or the top.
    pub fn subresources_of<'a>(&'a self, version: &'a CrdVersion) -> Option<&'a Subresources> {
        version.subresources.as_ref().or(self.subresources.as_ref())
    }

    /// The printer columns of a version, from the version or the top.
    pub fn columns_of<'a>(&'a self, version: &'a CrdVersion) -> &'a [PrinterColumn] {
        version
            .columns
            .as_deref()
            .or(self.columns.as_deref())
            .unwrap_or_default()
    }

    /// The selectable fields of a version, from the version or the top.
    pub fn selectable_fields_of<'a>(&'a self, version: &'a CrdVersion) -> &'a [Str] {
        version
            .selectable_fields
            .as_deref()
            .or(self.selectable_fields.as_deref())
            .unwrap_or_default()
    }

    /// Returns whether unknown fields are preserved in objects of every version.
    pub fn preserves_unknown_fields(&self) -> bool {
        self.preserve_unknown_fields == Some(true)
    }

    /// Returns whether objects can be served: defaults can be normalized, and objects can be validated. No
    /// request creates a CRD with an unusable schema, but a store may contain one.
    pub fn is_servable(&self) -> bool {
        self.has_usable_defaults() && self.schemas().all(|s| s.unsupported_for_values().is_none())
    }

    /// Returns whether defaults can be normalized. kube-apiserver accepts defaults below the `items` of a
    /// root, which cannot be, and then serves no request for the kind.
    pub fn has_usable_defaults(&self) -> bool {
        self.preserves_unknown_fields() || self.schemas().all(validate::are_in_objects)
    }
}
