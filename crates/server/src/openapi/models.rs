//! The schemas of built-in kinds: their facts are those of the table of API types, their descriptions our own.

use super::{SHARED, object};
use scantling_apitypes::openapi::{COMPONENTS, Descriptions};
use scantling_apitypes::{ApiPackage, Extensions, TypeDef, TypeTable};
use scantling_schema::document::Schema;
use scantling_schema::structural::{Additional, Interner, PatchStrategy, Structural};
use scantling_value::{Limits, Map, Value, yaml};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Descriptions by package and type.
static DESCRIPTIONS: LazyLock<&Map> = LazyLock::new(|| PARSED.as_ref().unwrap_or(&NONE));

static NONE: LazyLock<Map> = LazyLock::new(Map::new);

/// A server does not start without it: see [`check`].
static PARSED: LazyLock<Result<Map, String>> = LazyLock::new(|| {
    let text = include_str!("descriptions.yaml");
    let packages = yaml::decode(text.as_bytes(), Limits::SAFE).map_err(|e| e.to_string())?;
    packages
        .into_object()
        .ok_or_else(|| "it holds no packages".to_owned())
});

/// Fails if the descriptions cannot be parsed.
pub(super) fn check() -> Result<(), String> {
    match &*PARSED {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("descriptions.yaml: {why}")),
    }
}

/// The descriptions in `descriptions.yaml`, and those of the fields that all kinds have.
struct Own;

impl Own {
    /// The entry of a model; that of `v1` where an older version has none that says it.
    fn find(model: &str, path: &[&str]) -> Option<&'static str> {
        let (package, name) = model.rsplit_once('.')?;
        let at = |package: &str| {
            let path = [package, name].into_iter().chain(path.iter().copied());
            let mut value = DESCRIPTIONS.get(package)?;
            for key in path.skip(1) {
                value = value.get(key)?;
            }
            value.as_str()
        };
        at(package).or_else(|| at(&package.replace(".v1beta1", ".v1")))
    }
}

impl Descriptions for Own {
    fn of_type(&self, model: &str) -> Option<&str> {
        Own::find(model, &["description"])
    }

    fn of_field(&self, model: &str, field: &str) -> Option<&str> {
        let is_object = || TypeTable::latest().model(model).is_some_and(TypeDef::is_object);
        let of_all = match field {
            "apiVersion" => Some(super::API_VERSION),
            "kind" => Some(super::KIND),
            "metadata" => Some(super::METADATA),
            _ => None,
        };
        Own::find(model, &["fields", field]).or_else(|| of_all.filter(|_| is_object()))
    }
}

/// The package of the models of a group and version; groups that definitions make have their names reversed.
pub(crate) fn package(group: &str, version: &str) -> String {
    let of_table = table_package(group).map(ApiPackage::model);
    let package = match of_table.as_deref().and_then(|model| model.rsplit_once('.')) {
        Some((package, _)) => package.to_owned(),
        None => {
            let mut parts: Vec<&str> = group.split('.').collect();
            parts.reverse();
            parts.join(".")
        }
    };
    format!("{package}.{version}")
}

/// A package of the table whose types belong to a group.
fn table_package(group: &str) -> Option<&'static ApiPackage> {
    let mut packages = TypeTable::latest().packages().iter();
    packages.find(|package| package.group == Some(group))
}

/// Whether a kind of a group has the name of a model that is built in, or of its list.
pub(super) fn is_taken(group: &str, name: &str) -> bool {
    let model = name.strip_suffix("List").unwrap_or(name);
    table_package(group).is_none() && TypeTable::latest().model(model).is_some()
}

/// The model of a built-in kind.
pub(crate) fn published(group: &str, version: &str, kind: &str) -> Result<Value, String> {
    named_model(&super::schema_name(group, version, kind))
}

/// A model that has to be there.
pub(super) fn named_model(name: &str) -> Result<Value, String> {
    model(name).ok_or_else(|| format!("there is no model {name}"))
}

/// A model by its full name.
pub(super) fn model(name: &str) -> Option<Value> {
    let table = TypeTable::latest();
    let definition = table.model(name)?;
    Some(table.schema(definition, Extensions::NONE, &Own))
}

/// A model by its full name, as documents have it: those that all documents share are data of theirs.
fn shared_or_own(name: &str) -> Option<Value> {
    SHARED.schemas.get(name).cloned().or_else(|| model(name))
}

/// Adds what schemas refer to, and what that refers to, as far as it is a model.
pub(super) fn add_references(schemas: &mut Map) {
    let mut todo: Vec<String> = Vec::new();
    for schema in schemas.values() {
        references(schema, &mut todo);
    }
    while let Some(name) = todo.pop() {
        if schemas.contains_key(&name) || SHARED.schemas.contains_key(&name) {
            continue;
        }
        if let Some(model) = model(&name) {
            references(&model, &mut todo);
            schemas.insert(name, model);
        }
    }
}

fn references(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(s) if key == "$ref" => {
                        out.extend(s.strip_prefix(COMPONENTS).map(str::to_owned));
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
        let model = shared_or_own(name);
        let Some(model) = model.filter(|m| m.get("type").is_some() && references > 0) else {
            let anything = object([("x-kubernetes-preserve-unknown-fields", true.into())]);
            return self.without_parts(&anything);
        };
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
            let model = self.model(name, references);
            // How a patch treats the field is said where the model is referred to.
            return match schema.get_str("x-kubernetes-patch-strategy") {
                "replace" => Arc::new(replaced_by_patches(&model)),
                _ => model,
            };
        }
        let mut own = schema.as_object().cloned().unwrap_or_default();
        let parts = ["properties", "items", "additionalProperties"].map(|part| own.remove(part));
        let [None, None, None] = parts else {
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

    /// A schema that has no schemas in it.
    fn without_parts(&mut self, schema: &Value) -> Arc<Structural> {
        // An object of unknown fields has one owner.
        let is_opaque = schema.get_str("type") == "object"
            && schema.get("x-kubernetes-preserve-unknown-fields").is_none()
            && schema.get("x-kubernetes-map-type").is_none();
        let atomic = is_opaque.then(|| {
            let mut members = schema.as_object().cloned().unwrap_or_default();
            members.insert("x-kubernetes-map-type", "atomic".into());
            Value::Object(members)
        });
        let schema = atomic.as_ref().unwrap_or(schema);
        let schema = Schema::new(schema).structural(&mut self.interner);
        schema.unwrap_or_default()
    }
}

/// A schema whose objects a strategic merge patch replaces.
fn replaced_by_patches(schema: &Structural) -> Structural {
    let mut schema = schema.clone();
    let patch = PatchStrategy {
        strategies: ["replace".into()].into(),
        merge_key: None,
    };
    schema.extensions.get_or_insert_default().patch = Some(patch);
    schema
}

/// The model that a schema refers to, alone or beside what is said of it at its place.
fn referred(schema: &Value) -> Option<&str> {
    let beside = || schema.get("allOf")?.as_array()?.first()?.get("$ref");
    let reference = schema.get("$ref").or_else(beside)?;
    reference.as_str()?.strip_prefix(COMPONENTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_describe_types_and_fields() {
        crate::openapi::check().unwrap();
        let table = TypeTable::latest();
        for (package, types) in DESCRIPTIONS.iter() {
            for (name, entry) in types.as_object().unwrap().iter() {
                let definition = table.model(&format!("{package}.{name}"));
                let members = definition.unwrap_or_else(|| panic!("{package}.{name}")).members();
                let fields = entry.get("fields").and_then(Value::as_object);
                for field in fields.into_iter().flat_map(Map::keys) {
                    let found = members.iter().any(|f| f.name == field.as_str());
                    assert!(found, "{package}.{name}.{field}");
                }
            }
        }
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
            (crate::kinds::definitions::GROUP, "v1", "CustomResourceDefinition"),
            (
                crate::kinds::definitions::GROUP,
                "v1beta1",
                "CustomResourceDefinition",
            ),
        ] {
            let schema = structural(group, version, kind);
            assert!(schema.properties.len() > 3, "{kind}: {schema:?}");
        }
    }

    #[test]
    fn schemas_hold_schemas() {
        let definition = structural(crate::kinds::definitions::GROUP, "v1", "CustomResourceDefinition");
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
        let mut schemas = Map::from_iter([("Event", published("", "v1", "Event").unwrap())]);
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
