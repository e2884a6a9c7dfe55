//! Encodes a CRD as a document.

use super::types;
use super::{
    ApiVersion, Condition, Conversion, Definition, Names, PrinterColumn, Spec, Status, Subresources,
};
use super::{CrdVersion, Validation, WebhookClient};
use scantling_apitypes::TypeTable;
use scantling_value::{Map, Str, Value};
use std::sync::Arc;

impl Definition {
    /// Encodes this CRD in one of the two versions of its kind.
    pub fn encode(&self, api: ApiVersion) -> Value {
        self.clone().into_document(api)
    }

    /// Like [`Definition::encode`], but consumes the CRD and does not copy its schemas.
    pub fn into_document(self, api: ApiVersion) -> Value {
        TypeTable::latest()
            .canonical(types::definition(api), self.members(api))
            .into()
    }

    /// Like [`Definition::encode`], but keeps empty lists and maps: decoding the document gives an equal CRD,
    /// with the same errors.
    pub fn into_held_document(self, api: ApiVersion) -> Value {
        TypeTable::latest()
            .in_memory(types::definition(api), self.members(api))
            .into()
    }

    /// Converts a document of [`Definition::into_held_document`] to that of [`Definition::encode`]; `None` if
    /// they are equal.
    pub fn to_version(document: &Value, api: ApiVersion) -> Option<Value> {
        let (table, definition) = (TypeTable::latest(), types::definition(api));
        let members = document
            .as_object()
            .filter(|m| table.omits_empty_collections(definition, m))?;
        Some(table.canonical(definition, members.clone()).into())
    }

    fn members(self, api: ApiVersion) -> Map {
        Map::from_iter([
            (
                "apiVersion",
                format!("apiextensions.k8s.io/{}", api.as_str()).into(),
            ),
            ("kind", "CustomResourceDefinition".into()),
            ("metadata", self.metadata.into()),
            ("spec", spec_in(self.spec, api)),
            ("status", status(self.status)),
        ])
    }
}

/// Encodes the specification with all values: equal documents mean equal specifications.
pub(super) fn spec(s: Spec) -> Value {
    // `v1beta1` can hold a setting at the top or with versions, so encoding moves nothing.
    let members = Map::from_iter([("spec", spec_in(s, ApiVersion::V1Beta1))]);
    TypeTable::latest()
        .canonical(types::definition(ApiVersion::V1Beta1), members)
        .remove("spec")
        .unwrap_or_default()
}

// Encodes everything, even empty values; the table of API types omits them for the wire.

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Map::from_iter(members).into()
}

fn optional<T>(v: Option<T>, write: impl Fn(T) -> Value) -> Value {
    v.map_or(Value::Null, write)
}

fn list<T>(items: Option<Vec<T>>, write: impl Fn(T) -> Value) -> Value {
    optional(items, |items| {
        Value::Array(items.into_iter().map(&write).collect())
    })
}

fn spec_in(mut s: Spec, api: ApiVersion) -> Value {
    if api == ApiVersion::V1 {
        s.distribute_shared_settings();
    }
    let mut members = Map::from_iter([
        ("group", s.group.into()),
        ("names", names(s.names)),
        ("scope", s.scope.into()),
        ("versions", list(s.versions, |v| version(v, api))),
        ("conversion", optional(s.conversion, |c| conversion(c, api))),
        (
            "preserveUnknownFields",
            optional(s.preserve_unknown_fields, Value::Bool),
        ),
    ]);
    if api == ApiVersion::V1Beta1 {
        members.insert("version", s.version.into());
        members.insert("validation", optional(s.validation, validation));
        members.insert("subresources", optional(s.subresources, subresources));
        members.insert("additionalPrinterColumns", list(s.columns, |c| column(c, api)));
        members.insert("selectableFields", list(s.selectable_fields, selectable_field));
    }
    members.into()
}

fn names(n: Names) -> Value {
    object([
        ("plural", n.plural.into()),
        ("singular", n.singular.into()),
        ("shortNames", list(n.short_names, Value::from)),
        ("kind", n.kind.into()),
        ("listKind", n.list_kind.into()),
        ("categories", list(n.categories, Value::from)),
    ])
}

fn version(v: CrdVersion, api: ApiVersion) -> Value {
    object([
        ("name", v.name.into()),
        ("served", v.served.into()),
        ("storage", v.storage.into()),
        ("deprecated", v.deprecated.into()),
        ("deprecationWarning", optional(v.deprecation_warning, Value::from)),
        ("schema", optional(v.validation, validation)),
        ("subresources", optional(v.subresources, subresources)),
        ("additionalPrinterColumns", list(v.columns, |c| column(c, api))),
        ("selectableFields", list(v.selectable_fields, selectable_field)),
    ])
}

fn validation(v: Validation) -> Value {
    object([("openAPIV3Schema", optional(v.schema, Arc::unwrap_or_clone))])
}

fn subresources(s: Subresources) -> Value {
    object([
        ("status", if s.status { Map::new().into() } else { Value::Null }),
        (
            "scale",
            optional(s.scale, |s| {
                object([
                    ("specReplicasPath", s.spec_replicas_path.into()),
                    ("statusReplicasPath", s.status_replicas_path.into()),
                    ("labelSelectorPath", optional(s.label_selector_path, Value::from)),
                ])
            }),
        ),
    ])
}

fn column(c: PrinterColumn, api: ApiVersion) -> Value {
    let path = match api {
        ApiVersion::V1 => "jsonPath",
        ApiVersion::V1Beta1 => "JSONPath",
    };
    object([
        ("name", c.name.into()),
        ("type", c.ty.into()),
        ("format", c.format.into()),
        ("description", c.description.into()),
        ("priority", c.priority.into()),
        (path, c.json_path.into()),
    ])
}

fn selectable_field(path: Str) -> Value {
    object([("jsonPath", path.into())])
}

fn conversion(c: Conversion, api: ApiVersion) -> Value {
    // `v1` has both inside `webhook`, which stays absent without them.
    let has_webhook = c.client.is_some() || c.review_versions.is_some();
    let client = optional(c.client, client);
    let reviews = list(c.review_versions, Value::from);
    match api {
        ApiVersion::V1Beta1 => object([
            ("strategy", c.strategy.into()),
            ("webhookClientConfig", client),
            ("conversionReviewVersions", reviews),
        ]),
        ApiVersion::V1 => {
            let webhook = if has_webhook {
                object([("clientConfig", client), ("conversionReviewVersions", reviews)])
            } else {
                Value::Null
            };
            object([("strategy", c.strategy.into()), ("webhook", webhook)])
        }
    }
}

fn client(c: WebhookClient) -> Value {
    object([
        ("url", optional(c.url, Value::from)),
        (
            "service",
            optional(c.service, |s| {
                object([
                    ("namespace", s.namespace.into()),
                    ("name", s.name.into()),
                    ("path", optional(s.path, Value::from)),
                    ("port", optional(s.port, Value::Int)),
                ])
            }),
        ),
        ("caBundle", c.ca_bundle.into()),
    ])
}

fn status(s: Status) -> Value {
    let stored_versions = Some(s.stored_versions).filter(|versions| !versions.is_empty());
    object([
        ("conditions", list(s.conditions, condition)),
        ("acceptedNames", names(s.accepted_names)),
        ("storedVersions", list(stored_versions, Value::from)),
        ("observedGeneration", s.observed_generation.into()),
    ])
}

fn condition(c: Condition) -> Value {
    let moved = Some(c.last_transition_time).filter(|time| !time.is_empty());
    object([
        ("type", c.ty.into()),
        ("status", c.status.into()),
        ("lastTransitionTime", optional(moved, Value::from)),
        ("reason", c.reason.into()),
        ("message", c.message.into()),
        ("observedGeneration", c.observed_generation.into()),
    ])
}
