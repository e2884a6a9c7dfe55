//! From a definition to a document.

use super::{ApiVersion, Column, Condition, Conversion, Definition, Names, Spec, Status, Subresources};
use super::{Validation, Version, WebhookClient};
use crate::wire::{Struct, tables};
use scantling_value::{Map, Str, Value};

impl Definition {
    /// The document of this definition in one of the two versions of its kind.
    pub fn encode(&self, api: ApiVersion) -> Value {
        table(api).canonical(&self.document(api)).into()
    }

    /// The same with the empty lists and maps that [`Definition::encode`] leaves out: decoding it gives an equal
    /// definition, of which errors show the same.
    pub fn encode_held(&self, api: ApiVersion) -> Value {
        table(api).held(&self.document(api)).into()
    }

    /// A document in the form of [`Definition::encode_held`] as [`Definition::encode`] writes it; none if that is how it
    /// stands.
    pub fn written(document: &Value, api: ApiVersion) -> Option<Value> {
        let members = document.as_object().filter(|m| table(api).omits(m))?;
        Some(table(api).canonical(members).into())
    }

    fn document(&self, api: ApiVersion) -> Map {
        Map::from_iter([
            (
                "apiVersion",
                format!("apiextensions.k8s.io/{}", api.as_str()).into(),
            ),
            ("kind", "CustomResourceDefinition".into()),
            ("metadata", self.metadata.clone().into()),
            ("spec", spec_in(&self.spec, api)),
            ("status", status(&self.status)),
        ])
    }
}

fn table(api: ApiVersion) -> &'static Struct {
    match api {
        ApiVersion::V1 => &tables::DEFINITION,
        ApiVersion::V1Beta1 => &tables::DEFINITION_BETA,
    }
}

/// The specification in the form that tells all: equal forms mean equal specifications.
pub(super) fn spec(s: &Spec) -> Value {
    let members = Map::from_iter([("spec", spec_in(s, ApiVersion::V1Beta1))]);
    tables::DEFINITION_BETA
        .canonical(&members)
        .remove("spec")
        .unwrap_or_default()
}

// Everything is written here, be it empty: what the wire leaves out, the table of its types leaves out.

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Map::from_iter(members).into()
}

fn optional<T>(v: Option<&T>, write: impl Fn(&T) -> Value) -> Value {
    v.map_or(Value::Null, write)
}

fn text(s: &Str) -> Value {
    s.clone().into()
}

fn list<T>(items: Option<&[T]>, write: impl Fn(&T) -> Value) -> Value {
    items.map_or(Value::Null, |items| {
        Value::Array(items.iter().map(write).collect())
    })
}

fn spec_in(s: &Spec, api: ApiVersion) -> Value {
    let beta = api == ApiVersion::V1Beta1;
    let versions = match s.lowered() {
        lowered if !beta && !lowered.is_empty() => Some(lowered),
        _ => s.versions.clone(),
    };
    let top = |v: Value| if beta { v } else { Value::Null };
    object([
        ("group", text(&s.group)),
        ("version", top(text(&s.version))),
        ("names", names(&s.names)),
        ("scope", text(&s.scope)),
        ("validation", top(optional(s.validation.as_ref(), validation))),
        (
            "subresources",
            top(optional(s.subresources.as_ref(), subresources)),
        ),
        ("versions", list(versions.as_deref(), |v| version(v, api))),
        (
            "additionalPrinterColumns",
            top(list(s.columns.as_deref(), |c| column(c, api))),
        ),
        (
            "selectableFields",
            top(list(s.selectable_fields.as_deref(), selectable_field)),
        ),
        (
            "conversion",
            optional(s.conversion.as_ref(), |c| conversion(c, api)),
        ),
        (
            "preserveUnknownFields",
            s.preserve_unknown_fields.map_or(Value::Null, Value::Bool),
        ),
    ])
}

fn names(n: &Names) -> Value {
    object([
        ("plural", text(&n.plural)),
        ("singular", text(&n.singular)),
        ("shortNames", list(n.short_names.as_deref(), text)),
        ("kind", text(&n.kind)),
        ("listKind", text(&n.list_kind)),
        ("categories", list(n.categories.as_deref(), text)),
    ])
}

fn version(v: &Version, api: ApiVersion) -> Value {
    object([
        ("name", text(&v.name)),
        ("served", v.served.into()),
        ("storage", v.storage.into()),
        ("deprecated", v.deprecated.into()),
        (
            "deprecationWarning",
            optional(v.deprecation_warning.as_ref(), text),
        ),
        ("schema", optional(v.validation.as_ref(), validation)),
        ("subresources", optional(v.subresources.as_ref(), subresources)),
        (
            "additionalPrinterColumns",
            list(v.columns.as_deref(), |c| column(c, api)),
        ),
        (
            "selectableFields",
            list(v.selectable_fields.as_deref(), selectable_field),
        ),
    ])
}

fn validation(v: &Validation) -> Value {
    object([(
        "openAPIV3Schema",
        v.schema.as_deref().cloned().unwrap_or_default(),
    )])
}

fn subresources(s: &Subresources) -> Value {
    object([
        ("status", if s.status { Map::new().into() } else { Value::Null }),
        (
            "scale",
            optional(s.scale.as_ref(), |s| {
                object([
                    ("specReplicasPath", text(&s.spec_replicas_path)),
                    ("statusReplicasPath", text(&s.status_replicas_path)),
                    (
                        "labelSelectorPath",
                        optional(s.label_selector_path.as_ref(), text),
                    ),
                ])
            }),
        ),
    ])
}

fn column(c: &Column, api: ApiVersion) -> Value {
    let path = match api {
        ApiVersion::V1 => "jsonPath",
        ApiVersion::V1Beta1 => "JSONPath",
    };
    object([
        ("name", text(&c.name)),
        ("type", text(&c.ty)),
        ("format", text(&c.format)),
        ("description", text(&c.description)),
        ("priority", c.priority.into()),
        (path, text(&c.json_path)),
    ])
}

fn selectable_field(path: &Str) -> Value {
    object([("jsonPath", text(path))])
}

fn conversion(c: &Conversion, api: ApiVersion) -> Value {
    let client = optional(c.client.as_ref(), client);
    let reviews = list(c.review_versions.as_deref(), text);
    match api {
        ApiVersion::V1Beta1 => object([
            ("strategy", text(&c.strategy)),
            ("webhookClientConfig", client),
            ("conversionReviewVersions", reviews),
        ]),
        ApiVersion::V1 => {
            let webhook = if c.client.is_some() || c.review_versions.is_some() {
                object([("clientConfig", client), ("conversionReviewVersions", reviews)])
            } else {
                Value::Null
            };
            object([("strategy", text(&c.strategy)), ("webhook", webhook)])
        }
    }
}

fn client(c: &WebhookClient) -> Value {
    object([
        ("url", optional(c.url.as_ref(), text)),
        (
            "service",
            optional(c.service.as_ref(), |s| {
                object([
                    ("namespace", text(&s.namespace)),
                    ("name", text(&s.name)),
                    ("path", optional(s.path.as_ref(), text)),
                    ("port", s.port.map_or(Value::Null, Value::Int)),
                ])
            }),
        ),
        ("caBundle", text(&c.ca_bundle)),
    ])
}

fn status(s: &Status) -> Value {
    object([
        ("conditions", list(s.conditions.as_deref(), condition)),
        ("acceptedNames", names(&s.accepted_names)),
        (
            "storedVersions",
            list(
                (!s.stored_versions.is_empty()).then_some(&*s.stored_versions),
                text,
            ),
        ),
        ("observedGeneration", s.observed_generation.into()),
    ])
}

fn condition(c: &Condition) -> Value {
    object([
        ("type", text(&c.ty)),
        ("status", text(&c.status)),
        (
            "lastTransitionTime",
            optional(
                Some(&c.last_transition_time).filter(|time| !time.is_empty()),
                text,
            ),
        ),
        ("reason", text(&c.reason)),
        ("message", text(&c.message)),
        ("observedGeneration", c.observed_generation.into()),
    ])
}
