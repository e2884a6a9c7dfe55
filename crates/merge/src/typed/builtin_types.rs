//! The merge schemas of built-in types, from the table of API types.

use scantling_apitypes::openapi::{COMPONENTS, Undescribed};
use scantling_apitypes::{Extensions, TypeDef, TypeTable};
use scantling_schema::document::Schema;
use scantling_schema::structural::{Additional, Interner, MapType, PatchStrategy, Structural};
use scantling_value::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The depth to which references are followed: schemas contain schemas. Below it, any value is allowed.
const MAX_REFERENCES: usize = 64;

/// The model of objects of any API, which have one owner.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Returns the schema by which values of a type merge.
pub fn merge_schema(definition: &TypeDef) -> Arc<Structural> {
    let name = TypeTable::latest().model_name(definition);
    Merging::default().model(&name, MAX_REFERENCES)
}

/// Converts models. A model is converted once for each depth, so a recursive model grows only linearly.
#[derive(Default)]
struct Merging {
    interner: Interner,
    made: BTreeMap<(String, usize), Arc<Structural>>,
}

impl Merging {
    fn model(&mut self, name: &str, references: usize) -> Arc<Structural> {
        let table = TypeTable::latest();
        let definition = table.model(name);
        let model = definition.map(|definition| table.schema(definition, Extensions::NONE, &Undescribed));
        if model.as_ref().is_some_and(|m| m.get("oneOf").is_some()) {
            // Quantities, and what is an integer or a string: scalars of any type.
            let scalar = options(&[("type", "string".into()), ("format", "int-or-string".into())]);
            return self.without_parts(&scalar);
        }
        let Some(model) = model.filter(|m| m.get("type").is_some() && references > 0) else {
            return self.without_parts(&options(&[("x-kubernetes-preserve-unknown-fields", true.into())]));
        };
        if name == RAW_EXTENSION {
            let atomic = options(&[
                ("type", "object".into()),
                ("x-kubernetes-map-type", "atomic".into()),
            ]);
            return self.without_parts(&atomic);
        }
        let key = (name.to_owned(), references);
        if let Some(made) = self.made.get(&key) {
            return Arc::clone(made);
        }
        let made = self.schema(&model, references - 1);
        self.made.insert(key, Arc::clone(&made));
        made
    }

    fn schema(&mut self, schema: &Value, references: usize) -> Arc<Structural> {
        if let Some(name) = referred(schema) {
            return overridden(self.model(name, references), schema);
        }
        let mut own = schema.as_object().cloned().unwrap_or_default();
        let parts = ["properties", "items", "additionalProperties"].map(|part| own.remove(part));
        let [None, None, None] = parts else {
            // The parts are left out, because building the leaf would not follow their references.
            let leaf = Schema::new(&own.into()).structural(&mut self.interner);
            let leaf = leaf.unwrap_or_default();
            return Arc::new(self.with_parts(Structural::clone(&leaf), parts, references));
        };
        self.without_parts(&own.into())
    }

    fn with_parts(
        &mut self,
        mut whole: Structural,
        [properties, items, values]: [Option<Value>; 3],
        references: usize,
    ) -> Structural {
        let mut part = |schema: &Value| self.schema(schema, references);
        if let Some(Value::Object(properties)) = properties {
            let properties = properties.iter();
            whole.properties = properties.map(|(name, p)| (name.clone(), part(p))).collect();
        }
        whole.items = items.as_ref().map(&mut part);
        whole.additional = values.as_ref().map(|values| Additional::Schema(part(values)));
        whole
    }

    /// Converts a schema that contains no schemas.
    fn without_parts(&mut self, schema: &Value) -> Arc<Structural> {
        // Models are generated and use no unsupported keywords, so the fallback is never taken.
        let schema = Schema::new(schema).structural(&mut self.interner);
        schema.unwrap_or_default()
    }
}

/// A model with the merge options of the field that refers to it.
fn overridden(model: Arc<Structural>, field: &Value) -> Arc<Structural> {
    let map_type = match field.get_str("x-kubernetes-map-type") {
        "atomic" => Some(MapType::Atomic),
        "granular" => Some(MapType::Granular),
        _ => None,
    };
    let patch = (field.get_str("x-kubernetes-patch-strategy") == "replace").then(|| PatchStrategy {
        strategies: ["replace".into()].into(),
        merge_key: None,
    });
    if map_type.is_none() && patch.is_none() {
        return model;
    }
    let mut schema = Structural::clone(&model);
    let extensions = schema.extensions.get_or_insert_default();
    extensions.map_type = map_type.or(extensions.map_type);
    extensions.patch = patch.or(extensions.patch.take());
    Arc::new(schema)
}

/// The model that a schema refers to, with or without sibling keywords.
fn referred(schema: &Value) -> Option<&str> {
    let beside = || schema.get("allOf")?.as_array()?.first()?.get("$ref");
    let reference = schema.get("$ref").or_else(beside)?;
    reference.as_str()?.strip_prefix(COMPONENTS)
}

fn options(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().cloned().collect::<Map>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structural(group: &str, version: &str, kind: &str) -> Arc<Structural> {
        merge_schema(TypeTable::latest().kind(group, version, kind).unwrap())
    }

    #[test]
    fn models_merge_by_their_keys() {
        for (group, version, kind) in [
            ("", "v1", "Namespace"),
            ("", "v1", "Event"),
            ("events.k8s.io", "v1", "Event"),
            ("coordination.k8s.io", "v1", "Lease"),
            ("apps", "v1", "Deployment"),
            ("apiregistration.k8s.io", "v1", "APIService"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"),
        ] {
            let schema = structural(group, version, kind);
            assert!(schema.properties.len() > 3, "{kind}: {schema:?}");
        }
    }

    #[test]
    fn a_field_overrides_the_map_type_of_its_type() {
        let volume = structural("", "v1", "PersistentVolume");
        let claim = Arc::clone(volume.property("spec").unwrap().property("claimRef").unwrap());
        assert_eq!(claim.map_type(), Some(MapType::Granular));
        let revision = structural("apps", "v1", "ControllerRevision");
        assert_eq!(
            revision.property("data").unwrap().map_type(),
            Some(MapType::Atomic)
        );
    }

    #[test]
    fn schemas_hold_schemas() {
        let definition = structural("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let property = |s: &Structural, name| Arc::clone(s.property(name).unwrap());
        let versions = property(&property(&definition, "spec"), "versions");
        let mut schema = property(
            &property(versions.items.as_ref().unwrap(), "schema"),
            "openAPIV3Schema",
        );
        for _ in 0..40 {
            assert_eq!(
                property(&schema, "x-kubernetes-validations").list_map_keys(),
                ["rule"]
            );
            schema = Arc::clone(property(&schema, "properties").additional_schema().unwrap());
        }
    }
}
