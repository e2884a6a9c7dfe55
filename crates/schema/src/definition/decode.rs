//! Decodes a document as a CRD.

use super::types;
use super::{
    ApiVersion, Condition, Conversion, Definition, Gates, Names, PrinterColumn, ScaleSubresource, Service,
    Spec, Status,
};
use super::{CrdVersion, Subresources, Validation, WebhookClient};
use scantling_apitypes::decode::{self, DecodeSource};
use scantling_apitypes::{DecodeError, Extensions, TypeTable};
use scantling_value::{Finding, FindingList, Map, Str, Value};
use std::sync::Arc;

/// A decoded CRD.
#[derive(Debug)]
pub struct DecodedDefinition {
    /// The CRD with its defaults.
    pub definition: Definition,
    /// Unknown and duplicate fields, in document order.
    pub findings: Vec<Finding>,
}

impl Definition {
    /// Decodes a document of either version and sets its defaults.
    pub fn decode(
        document: Value,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        Definition::read(document, version, gates)
    }

    /// Decodes valid JSON text: fields may be repeated, and the first of several errors is reported.
    pub fn decode_text(
        text: &[u8],
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        Definition::read(decode::decode_raw(text)?, version, gates)
    }

    /// Converts the values of a document that a patch or an apply produced to their types; fails at the first
    /// mismatch, with the messages for such documents. Removes unknown fields and returns their paths.
    pub fn convert(
        document: &mut Value,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<FindingList, DecodeError> {
        TypeTable::latest().convert(types::definition(version), document, extensions(gates))
    }

    /// Converts a document from either version to another. Sets no defaults: a partial CRD stays partial.
    pub fn document_in(document: Value, version: ApiVersion, gates: Gates) -> Result<Value, DecodeError> {
        let written_in = ApiVersion::of_document(&document);
        let mut received = Definition::parse(document, written_in, gates)?;
        if written_in == ApiVersion::V1 {
            received.definition.spec.hoist_shared_settings();
        }
        Ok(received.definition.into_document(version))
    }

    fn read(
        document: impl DecodeSource,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        let mut received = Definition::parse(document, version, gates)?;
        let definition = &mut received.definition;
        definition.set_defaults(version);
        if version == ApiVersion::V1 {
            definition.spec.hoist_shared_settings();
        }
        Ok(received)
    }

    /// Decodes a document without setting defaults.
    fn parse(
        document: impl DecodeSource,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        let decoded = TypeTable::latest().decode(types::definition(version), document, extensions(gates))?;
        let mut members = decoded.members;
        let definition = Definition {
            metadata: object(members.remove("metadata")),
            spec: spec(object(members.remove("spec")), version),
            status: status(object(members.remove("status"))),
        };
        Ok(DecodedDefinition {
            definition,
            findings: decoded.findings,
        })
    }
}

/// The fields that gates add to schemas.
fn extensions(gates: Gates) -> Extensions {
    let of = |gate, extension| if gate { extension } else { Extensions::NONE };
    of(gates.immutability, Extensions::IMMUTABILITY)
        .with(of(gates.unions, Extensions::UNIONS))
        .with(of(gates.rules_on_create, Extensions::APPLIES_ON_CREATE))
}

// Typed decoding has run before: a member either has its type or is absent.

fn object(v: Option<Value>) -> Map {
    v.and_then(Value::into_object).unwrap_or_default()
}

fn optional(m: &mut Map, key: &str) -> Option<Map> {
    m.remove(key).map(|v| object(Some(v)))
}

fn take_optional_string(m: &mut Map, key: &str) -> Option<Str> {
    match m.remove(key) {
        Some(Value::String(s)) => Some(s),
        _ => None,
    }
}

fn take_string(m: &mut Map, key: &str) -> Str {
    take_optional_string(m, key).unwrap_or_default()
}

fn flag(m: &Map, key: &str) -> bool {
    m.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn integer(m: &Map, key: &str) -> i64 {
    m.get(key).and_then(Value::as_int).unwrap_or(0)
}

fn list<T>(m: &mut Map, key: &str, read: impl Fn(Map) -> T) -> Option<Vec<T>> {
    match m.remove(key) {
        Some(Value::Array(a)) => Some(a.into_iter().map(|v| read(object(Some(v)))).collect()),
        _ => None,
    }
}

fn take_strings(m: &mut Map, key: &str) -> Option<Vec<Str>> {
    let read = |v| {
        if let Value::String(s) = v {
            s
        } else {
            Str::default()
        }
    };
    match m.remove(key) {
        Some(Value::Array(a)) => Some(a.into_iter().map(read).collect()),
        _ => None,
    }
}

fn spec(mut m: Map, api: ApiVersion) -> Spec {
    Spec {
        group: take_string(&mut m, "group"),
        version: take_string(&mut m, "version"),
        names: names(object(m.remove("names"))),
        scope: take_string(&mut m, "scope"),
        validation: optional(&mut m, "validation").map(validation),
        subresources: optional(&mut m, "subresources").map(subresources),
        versions: list(&mut m, "versions", |v| version(v, api)),
        columns: list(&mut m, "additionalPrinterColumns", |c| column(c, api)),
        selectable_fields: list(&mut m, "selectableFields", selectable_field),
        conversion: optional(&mut m, "conversion").map(|c| conversion(c, api)),
        preserve_unknown_fields: match (m.get("preserveUnknownFields").and_then(Value::as_bool), api) {
            // `v1` does not distinguish unset from false.
            (None, ApiVersion::V1) => Some(false),
            (b, _) => b,
        },
    }
}

fn names(mut m: Map) -> Names {
    Names {
        plural: take_string(&mut m, "plural"),
        singular: take_string(&mut m, "singular"),
        short_names: take_strings(&mut m, "shortNames"),
        kind: take_string(&mut m, "kind"),
        list_kind: take_string(&mut m, "listKind"),
        categories: take_strings(&mut m, "categories"),
    }
}

fn version(mut m: Map, api: ApiVersion) -> CrdVersion {
    CrdVersion {
        name: take_string(&mut m, "name"),
        served: flag(&m, "served"),
        storage: flag(&m, "storage"),
        deprecated: flag(&m, "deprecated"),
        deprecation_warning: take_optional_string(&mut m, "deprecationWarning"),
        validation: optional(&mut m, "schema").map(validation),
        subresources: optional(&mut m, "subresources").map(subresources),
        columns: list(&mut m, "additionalPrinterColumns", |c| column(c, api)),
        selectable_fields: list(&mut m, "selectableFields", selectable_field),
    }
}

fn validation(mut m: Map) -> Validation {
    Validation {
        schema: m.remove("openAPIV3Schema").map(Arc::new),
    }
}

fn subresources(mut m: Map) -> Subresources {
    Subresources {
        // The subresource has no settings: its presence enables it.
        status: m.contains_key("status"),
        scale: optional(&mut m, "scale").map(|mut m| ScaleSubresource {
            spec_replicas_path: take_string(&mut m, "specReplicasPath"),
            status_replicas_path: take_string(&mut m, "statusReplicasPath"),
            label_selector_path: take_optional_string(&mut m, "labelSelectorPath"),
        }),
    }
}

fn column(mut m: Map, api: ApiVersion) -> PrinterColumn {
    let path = match api {
        ApiVersion::V1 => "jsonPath",
        ApiVersion::V1Beta1 => "JSONPath",
    };
    PrinterColumn {
        name: take_string(&mut m, "name"),
        ty: take_string(&mut m, "type"),
        format: take_string(&mut m, "format"),
        description: take_string(&mut m, "description"),
        priority: integer(&m, "priority"),
        json_path: take_string(&mut m, path),
    }
}

fn selectable_field(mut m: Map) -> Str {
    take_string(&mut m, "jsonPath")
}

fn conversion(mut m: Map, api: ApiVersion) -> Conversion {
    let strategy = take_string(&mut m, "strategy");
    let (mut m, client) = match api {
        ApiVersion::V1 => (object(m.remove("webhook")), "clientConfig"),
        ApiVersion::V1Beta1 => (m, "webhookClientConfig"),
    };
    Conversion {
        strategy,
        client: optional(&mut m, client).map(|mut m| WebhookClient {
            url: take_optional_string(&mut m, "url"),
            service: optional(&mut m, "service").map(|mut m| Service {
                namespace: take_string(&mut m, "namespace"),
                name: take_string(&mut m, "name"),
                path: take_optional_string(&mut m, "path"),
                port: m.get("port").and_then(Value::as_int),
            }),
            ca_bundle: take_string(&mut m, "caBundle"),
        }),
        review_versions: take_strings(&mut m, "conversionReviewVersions"),
    }
}

fn status(mut m: Map) -> Status {
    Status {
        conditions: list(&mut m, "conditions", condition),
        accepted_names: names(object(m.remove("acceptedNames"))),
        stored_versions: take_strings(&mut m, "storedVersions").unwrap_or_default(),
        observed_generation: integer(&m, "observedGeneration"),
    }
}

fn condition(mut m: Map) -> Condition {
    Condition {
        ty: take_string(&mut m, "type"),
        status: take_string(&mut m, "status"),
        last_transition_time: take_string(&mut m, "lastTransitionTime"),
        reason: take_string(&mut m, "reason"),
        message: take_string(&mut m, "message"),
        observed_generation: integer(&m, "observedGeneration"),
    }
}
