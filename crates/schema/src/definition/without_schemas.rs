//! Decodes a CRD without its schemas, for serving its kind.

use super::validate::are_in_objects;
use super::{ApiVersion, Definition, Gates};
use crate::document::Schema;
use scantling_value::{Map, Value};

impl Definition {
    /// Decodes everything but the schemas from the accepted `v1` document of a new CRD. Returns `None` if the
    /// schemas affect its conditions or whether it can be served; this is rare, because schemas of new CRDs
    /// are structural.
    pub fn without_schemas(document: &Value, gates: Gates) -> Option<Definition> {
        let versions = document.at(["spec", "versions"]).and_then(Value::as_array)?;
        let mut schemas = versions
            .iter()
            .filter_map(|version| version.at(["schema", "openAPIV3Schema"]));
        // A default outside objects keeps the kind from being served.
        if !schemas.all(|schema| are_in_objects(Schema::new(schema))) {
            return None;
        }
        let versions = versions.iter().map(|version| without(version, "schema"));
        let versions = Value::Array(versions.collect());
        let mut spec = without(document.get("spec")?, "versions");
        spec.as_object_mut()?.insert("versions", versions);
        let mut summary = without(document, "spec");
        summary.as_object_mut()?.insert("spec", spec);
        let summary = Self::decode(summary, ApiVersion::V1, gates).ok()?.definition;
        // Preserving unknown fields sets the condition `NonStructuralSchema`, whose message depends on the
        // schemas.
        Some(summary).filter(|summary| !summary.spec.preserves_unknown_fields())
    }
}

/// Copies an object without one of its members.
fn without(object: &Value, name: &str) -> Value {
    let members = object.as_object().into_iter().flat_map(Map::iter);
    let members = members.filter(|(key, _)| *key != name);
    Map::from_iter(members.map(|(key, value)| (key.clone(), value.clone()))).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Gates;
    use scantling_value::{Limits, json};

    fn definition(rest: &str, schema: &str) -> Value {
        let text = format!(
            r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "widgets.example.com", "generation": 1}},
            "spec": {{"group": "example.com", "names": {{"kind": "Widget", "plural": "widgets"}}, "scope": "Cluster", {rest}
            "versions": [{{"name": "v1", "served": true, "storage": true, "subresources": {{"status": {{}}}},
            "schema": {{"openAPIV3Schema": {schema}}}}}]}}}}"#
        );
        json::decode(text.as_bytes(), Limits::default()).unwrap()
    }

    #[test]
    fn conditions_do_not_depend_on_schemas() {
        let document = definition(
            "",
            r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
        );
        let gates = Gates::default();
        let mut summary = Definition::without_schemas(&document, gates).unwrap();
        let mut whole = Definition::decode(document, ApiVersion::V1, gates)
            .unwrap()
            .definition;
        assert_eq!(summary.spec.schemas().count(), 0);
        for definition in [&mut summary, &mut whole] {
            assert!(definition.update_conditions([], "2026-08-01T00:00:00Z"));
        }
        assert_eq!(summary.status, whole.status);
        assert_eq!(summary.metadata, whole.metadata);
        assert_eq!(summary.spec.is_servable(), whole.spec.is_servable());
        whole.spec.validation = None;
        assert_eq!(summary, whole);
    }

    #[test]
    fn versions_without_schemas_are_kept() {
        let in_no_object = definition("", r#"{"type": "object", "default": [1]}"#);
        let preserving = definition(r#""preserveUnknownFields": true,"#, r#"{"type": "object"}"#);
        for document in [in_no_object, preserving, Value::Null] {
            assert_eq!(
                Definition::without_schemas(&document, Gates::default()),
                None,
                "{document:?}"
            );
        }
    }
}
