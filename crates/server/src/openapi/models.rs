//! The schemas of built-in kinds: data, in `openapi/models.yaml`.

use super::{SHARED, object, reference};
use crate::{builtin, definitions};
use scantling_schema::document::Schema;
use scantling_schema::structural::{Additional, Interner, Structural};
use scantling_value::{Limits, Map, Value, yaml};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const MODELS: &str = include_str!("models.yaml");
const PLACE: &str = "#/components/schemas/";

/// All models by their full names, as OpenAPI v3 writes them.
static ALL: LazyLock<&Map> = LazyLock::new(|| PARSED.as_ref().unwrap_or(&NONE));

static NONE: LazyLock<Map> = LazyLock::new(Map::new);

/// A server does not start without it: see [`check`].
static PARSED: LazyLock<Result<Map, String>> = LazyLock::new(parse);

fn parse() -> Result<Map, String> {
    let packages = yaml::decode(MODELS.as_bytes(), Limits::SAFE).map_err(|e| e.to_string())?;
    let packages = packages.into_object().ok_or("it holds no packages")?;
    let mut all = Map::new();
    for (package, models) in packages {
        let models = models.into_object();
        for (name, model) in models.ok_or_else(|| format!("{package} holds no models"))? {
            all.insert(format!("{package}.{name}"), expand(model, &package));
        }
    }
    Ok(all)
}

/// Fails if the models cannot be parsed.
pub(super) fn check() -> Result<(), String> {
    match &*PARSED {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("models.yaml: {why}")),
    }
}

/// The package of the models of a group and version; groups that definitions make have their names reversed.
pub(crate) fn package(group: &str, version: &str) -> String {
    let package = match group {
        "" => "io.k8s.api.core".to_owned(),
        definitions::GROUP => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        _ if builtin::has_group(group) => {
            format!("io.k8s.api.{}", group.strip_suffix(".k8s.io").unwrap_or(group))
        }
        _ => {
            let mut parts: Vec<&str> = group.split('.').collect();
            parts.reverse();
            parts.join(".")
        }
    };
    format!("{package}.{version}")
}

/// Whether a kind of a group has the name of a model that is built in, or of its list.
pub(super) fn is_taken(group: &str, name: &str) -> bool {
    let model = name.strip_suffix("List").unwrap_or(name);
    !builtin::has_group(group) && (ALL.contains_key(model) || SHARED.schemas.contains_key(model))
}

/// The model of a built-in kind.
pub(crate) fn published(group: &str, version: &str, kind: &str) -> Value {
    let name = super::schema_name(group, version, kind);
    let mut model = ALL.get(&name).cloned().unwrap_or_default();
    if let Some(members) = model.as_object_mut() {
        members.insert(
            "x-kubernetes-group-version-kind",
            super::gvk_list(group, version, kind),
        );
    }
    model
}

/// A model by its full name.
pub(super) fn model(name: &str) -> Value {
    ALL.get(name).cloned().unwrap_or_default()
}

/// Adds what schemas refer to, and what that refers to, as far as it is a model.
pub(super) fn add_references(schemas: &mut Map) {
    let mut todo: Vec<String> = Vec::new();
    for schema in schemas.values() {
        references(schema, &mut todo);
    }
    while let Some(name) = todo.pop() {
        if let Some(model) = ALL.get(&name).filter(|_| !schemas.contains_key(&name)) {
            references(model, &mut todo);
            schemas.insert(name, model.clone());
        }
    }
}

fn references(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(s) if key == "$ref" => {
                        out.extend(s.strip_prefix(PLACE).map(str::to_owned));
                    }
                    other => references(other, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

/// How many references deep a model is followed: schemas hold schemas. What is deeper is taken for anything.
const MAX_REFERENCES: usize = 64;

/// The schema by which objects of a built-in kind merge.
pub(crate) fn structural(group: &str, version: &str, kind: &str) -> Arc<Structural> {
    let name = super::schema_name(group, version, kind);
    Merging::default().model(&name, MAX_REFERENCES)
}

/// Makes schemas of models. A model is made once for each depth, so that one that holds itself is no larger than a chain.
#[derive(Default)]
struct Merging {
    interner: Interner,
    made: BTreeMap<(String, usize), Arc<Structural>>,
}

impl Merging {
    fn model(&mut self, name: &str, references: usize) -> Arc<Structural> {
        let model = ALL.get(name).or_else(|| SHARED.schemas.get(name));
        let Some(model) = model.filter(|m| m.get("type").is_some() && references > 0) else {
            let anything = object([("x-kubernetes-preserve-unknown-fields", true.into())]);
            return self.without_parts(&anything);
        };
        let key = (name.to_owned(), references);
        if let Some(made) = self.made.get(&key) {
            return Arc::clone(made);
        }
        let made = self.schema(model, references - 1);
        self.made.insert(key, Arc::clone(&made));
        made
    }

    fn schema(&mut self, schema: &Value, references: usize) -> Arc<Structural> {
        if let Some(name) = referred(schema) {
            return self.model(name, references);
        }
        let mut own = schema.as_object().cloned().unwrap_or_default();
        let parts = ["properties", "items", "additionalProperties"].map(|part| own.remove(part));
        let leaf = self.without_parts(&own.into());
        let [None, None, None] = parts else {
            return Arc::new(self.with_parts(Structural::clone(&leaf), parts, references));
        };
        leaf
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

    /// A schema that has no schemas in it.
    fn without_parts(&mut self, schema: &Value) -> Arc<Structural> {
        let schema = Schema::new(schema).structural(&mut self.interner);
        schema.unwrap_or_default()
    }
}

/// The model that a schema refers to, alone or beside what is said of it at its place.
fn referred(schema: &Value) -> Option<&str> {
    let beside = || schema.get("allOf")?.as_array()?.first()?.get("$ref");
    let reference = schema.get("$ref").or_else(beside)?;
    reference.as_str()?.strip_prefix(PLACE)
}

/// A schema as it is published: references by their full names, objects with their type, and what all kinds have.
fn expand(schema: Value, package: &str) -> Value {
    let Value::Object(mut members) = schema else {
        return schema;
    };
    if let Some(Value::String(name)) = members.remove("$ref") {
        let full = if name.contains('.') {
            name.to_string()
        } else {
            format!("{package}.{name}")
        };
        let reference = reference(&full);
        if members.is_empty() {
            return reference;
        }
        // Beside a reference, nothing else counts.
        members.insert("allOf", Value::Array(vec![reference]));
        return members.into();
    }
    let is_top = members.remove("top").is_some();
    if let Some(Value::Object(properties)) = members.remove("properties") {
        let expanded = properties.into_iter().map(|(k, v)| (k, expand(v, package)));
        let mut properties: Map = expanded.collect();
        if is_top {
            properties.insert("apiVersion", super::text(super::API_VERSION));
            properties.insert("kind", super::text(super::KIND));
            properties.insert("metadata", super::metadata_schema());
        }
        members.insert("properties", properties.into());
        members.insert("type", "object".into());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = members.remove(key) {
            members.insert(key, expand(inner, package));
        }
    }
    members.into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn embedded_documents_can_be_parsed() {
        crate::openapi::check().unwrap();
    }

    use super::*;

    #[test]
    fn every_reference_is_a_model() {
        for (name, model) in ALL.iter() {
            let mut found = Vec::new();
            references(model, &mut found);
            for r in found {
                assert!(
                    ALL.contains_key(&r) || SHARED.schemas.contains_key(&r),
                    "{name} refers to {r}"
                );
            }
        }
        assert_eq!(ALL.len(), 83);
    }

    #[test]
    fn models_merge_by_their_keys() {
        for (group, version, kind) in [
            ("", "v1", "Namespace"),
            ("", "v1", "Event"),
            (crate::builtin::EVENTS, "v1", "Event"),
            (crate::builtin::COORDINATION, "v1", "Lease"),
            (crate::definitions::GROUP, "v1", "CustomResourceDefinition"),
            (crate::definitions::GROUP, "v1beta1", "CustomResourceDefinition"),
        ] {
            let schema = structural(group, version, kind);
            assert!(schema.properties.len() > 3, "{kind}: {schema:?}");
        }
    }

    #[test]
    fn schemas_hold_schemas() {
        let definition = structural(crate::definitions::GROUP, "v1", "CustomResourceDefinition");
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

    #[test]
    fn documents_are_closed() {
        let mut schemas = Map::from_iter([("Event", published("", "v1", "Event"))]);
        add_references(&mut schemas);
        let names: Vec<&str> = schemas
            .keys()
            .map(|k| k.rsplit('.').next().unwrap_or(k))
            .collect();
        assert_eq!(
            names,
            [
                "Event",
                "EventSeries",
                "EventSource",
                "ObjectReference",
                "MicroTime"
            ]
        );
    }
}
