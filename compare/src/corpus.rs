//! Objects and values of the recorded scenarios.

use scantling_apitypes::{GoType, TypeDef, TypeId, TypeTable};
use scantling_testkit::scenario::scenarios;
use scantling_value::{Limits, Map, Value, json};
use std::collections::BTreeMap;

/// The field of a struct that a value belongs to, and the number of lists and maps between them.
pub(crate) type Field = (TypeId, &'static str, usize);

/// The maximum number of values that are kept of a field, and their maximum size.
const KEPT: usize = 80;
const SIZE: usize = 4 << 10;

/// The namespace of all objects.
pub(crate) const NAMESPACE: &str = "default";

/// Objects by type, and values by field.
pub(crate) struct Corpus {
    objects: BTreeMap<TypeId, Vec<Value>>,
    values: BTreeMap<Field, Vec<Value>>,
    keys: BTreeMap<Field, Vec<String>>,
}

impl Corpus {
    /// Reads the bodies of all recorded writes of built-in kinds.
    pub(crate) fn read() -> Corpus {
        let mut corpus = Corpus {
            objects: BTreeMap::new(),
            values: BTreeMap::new(),
            keys: BTreeMap::new(),
        };
        let scenarios = scenarios("builtin");
        let steps = scenarios
            .iter()
            .flat_map(|scenario| scenario.steps.iter().map(move |step| (scenario, step)));
        for (scenario, step) in steps {
            let text = step.body.as_deref().unwrap_or_default();
            let in_ours = |text: String, name: &String| text.replace(name.as_str(), NAMESPACE);
            let text = scenario.namespaces.iter().fold(text.to_owned(), in_ours);
            let body = json::decode(text.as_bytes(), Limits::SAFE).unwrap_or_default();
            let Some(definition) = TypeTable::latest().kind_of(&body) else {
                continue;
            };
            // Values that a scenario captures mean nothing here.
            if step.uses_captures() || !matches!(step.verb, "POST" | "PUT") {
                continue;
            }
            corpus.add_values(&body, definition);
            if step.verb == "POST" && step.succeeds() {
                corpus.add_object(definition, body);
            }
        }
        corpus
    }

    /// Adds an object that was accepted.
    pub(crate) fn add_object(&mut self, definition: &TypeDef, mut object: Value) {
        if let Some(metadata) = object
            .as_object_mut()
            .and_then(|o| o.get_mut("metadata")?.as_object_mut())
        {
            let is_kept =
                |name: &str| !matches!(name, "namespace" | "resourceVersion" | "uid" | "managedFields");
            metadata.retain(|name, _| is_kept(name));
        }
        let objects = self.objects.entry(definition.id).or_default();
        if objects.len() < 4 * KEPT && !objects.contains(&object) {
            objects.push(object);
        }
    }

    /// Adds the values of an object.
    pub(crate) fn add_values(&mut self, object: &Value, definition: &'static TypeDef) {
        self.add(object, &GoType::Named(definition.id), None);
    }

    fn add(&mut self, value: &Value, ty: &GoType, field: Option<Field>) {
        if let Some(field) = field
            && !value.is_null()
            && value.to_json().len() < SIZE
        {
            let values = self.values.entry(field).or_default();
            if values.len() < KEPT && !values.contains(value) {
                values.push(value.clone());
            }
        }
        let deeper = field.map(|(id, name, depth)| (id, name, depth + 1));
        match (TypeTable::latest().underlying(ty), value) {
            (GoType::List(item), Value::Array(items)) => {
                items.iter().for_each(|value| self.add(value, item, deeper));
            }
            (GoType::Map(entry), Value::Object(members)) => {
                for (name, value) in members.iter() {
                    if let Some(field) = field {
                        let keys = self.keys.entry(field).or_default();
                        if keys.len() < KEPT && !keys.iter().any(|key| key == name.as_str()) {
                            keys.push(name.to_string());
                        }
                    }
                    self.add(value, &entry.1, deeper);
                }
            }
            (GoType::Named(id), Value::Object(members)) => {
                for def in TypeTable::latest().get(*id).members() {
                    if let Some(value) = members.get(def.name) {
                        self.add(value, &def.ty, Some((*id, def.name, 0)));
                    }
                }
            }
            _ => {}
        }
    }

    /// The objects of a type.
    pub(crate) fn objects(&self, definition: &TypeDef) -> &[Value] {
        self.objects.get(&definition.id).map_or(&[], Vec::as_slice)
    }

    /// The values of a field.
    pub(crate) fn values(&self, field: Field) -> &[Value] {
        self.values.get(&field).map_or(&[], Vec::as_slice)
    }

    /// The keys of a map.
    pub(crate) fn keys(&self, field: Field) -> &[String] {
        self.keys.get(&field).map_or(&[], Vec::as_slice)
    }
}

/// The members of an object, which become members if it is something else.
pub(crate) fn members(value: &mut Value) -> Option<&mut Map> {
    if value.is_null() {
        *value = Map::new().into();
    }
    value.as_object_mut()
}
