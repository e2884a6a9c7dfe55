//! Scripts: a sequence of writes to one object, with the object and its owners after each write.
//!
//! A script is a file of YAML documents: the schema, then the writes. A write may use a version other than
//! `v1` (the kind has the equivalent versions `v1` and `v2`) and may go to the status; a write to the object
//! leaves the status unchanged. The expected results are in the file of the same name that ends in `.out`:
//! the object, and for each manager its operation, the second of its last change, and the paths it owns.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may panic and read files"
)]

use jiff::Timestamp;
use scantling_merge::apply::{FieldManager, Force, Versions};
use scantling_merge::fields::Set;
use scantling_merge::typed::ObjectType;
use scantling_schema::document::Schema;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Map, Value, yaml};
use std::path::{Path, PathBuf};

struct TwoVersions(ObjectType);

impl Versions for TwoVersions {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        ["g/v1", "g/v2"].contains(&api_version).then_some(&self.0)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion", api_version.into());
        }
        Ok(object)
    }
}

fn text<'v>(v: &'v Value, name: &str) -> &'v str {
    v.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `manager Apply: .spec.a .spec.b`, one line per manager.
fn owners(object: &Value) -> String {
    let entries = object
        .at(["metadata", "managedFields"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    let mut out = Vec::new();
    for entry in entries {
        let set = Set::from_fields(entry.get("fieldsV1").unwrap().clone()).unwrap();
        let paths: Vec<_> = set.paths().iter().map(ToString::to_string).collect();
        let time = text(entry, "time");
        let time = time.get(17..19).map_or(String::new(), |s| format!("@{s}"));
        let (manager, operation) = (text(entry, "manager"), text(entry, "operation"));
        let version = text(entry, "apiVersion")
            .strip_prefix("g/v1")
            .map_or_else(|| format!(" {}", text(entry, "apiVersion")), |_| String::new());
        let part = text(entry, "subresource");
        let part = if part.is_empty() {
            String::new()
        } else {
            format!("/{part}")
        };
        out.push(format!(
            "{manager} {operation}{part}{version}{time}: {}",
            paths.join(" ")
        ));
    }
    out.join("\n")
}

/// The object without fields that the server adds.
fn content(object: &Value) -> String {
    let mut object = object.clone();
    let map = object.as_object_mut().unwrap();
    map.remove("apiVersion");
    map.remove("kind");
    let metadata = map.get_mut("metadata").and_then(Value::as_object_mut).unwrap();
    for name in ["managedFields", "name", "uid"] {
        metadata.remove(name);
    }
    if metadata.is_empty() {
        map.remove("metadata");
    }
    object.to_json()
}

fn run(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut documents = yaml::documents(&bytes).map(|d| d.unwrap());
    let schema = yaml::decode(documents.next().unwrap().text, Limits::SAFE).unwrap();
    let schema = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    let versions = TwoVersions(ObjectType::new(schema));
    let mut live: Option<Value> = None;
    let mut out = String::new();
    for (i, document) in documents.enumerate() {
        let step = yaml::decode(document.text, Limits::SAFE).unwrap();
        let (how, manager) = ["apply", "force", "update"]
            .iter()
            .find_map(|how| Some((*how, step.get(how)?.as_str()?)))
            .unwrap_or_else(|| panic!("{path:?}: step {i} has no manager"));
        let version = step.get("version").and_then(Value::as_str).unwrap_or("v1");
        let api_version = format!("g/{version}");
        let fields = FieldManager::new(&versions, &api_version, "Thing");
        let fields = match text(&step, "subresource") {
            "" => fields.resets_paths(&api_version, [&["status"][..]]),
            part => fields
                .subresource(part)
                .resets_paths(&api_version, [&["metadata"][..], &["spec"]]),
        };
        let mut object = step
            .get("object")
            .cloned()
            .unwrap_or_else(|| Value::Object(Map::new()));
        let map = object.as_object_mut().unwrap();
        map.insert("apiVersion", api_version.as_str().into());
        map.insert("kind", "Thing".into());
        let metadata = map.get_or_insert_with("metadata", || Value::Object(Map::new()));
        metadata.as_object_mut().unwrap().insert("name", "x".into());
        let now = Timestamp::from_second(i64::try_from(i).unwrap()).unwrap();
        let result = match how {
            "update" => Ok(fields.update(live.as_ref(), object, manager, now).object),
            "force" => fields.apply(live.as_ref(), &object, manager, Force::Yes, now),
            _ => fields.apply(live.as_ref(), &object, manager, Force::No, now),
        };
        let shown = match result {
            Ok(mut object) => {
                let map = object.as_object_mut().unwrap();
                let metadata = map.get_mut("metadata").and_then(Value::as_object_mut).unwrap();
                metadata.insert("uid", "u".into());
                let shown = format!("{}\n{}", content(&object), owners(&object));
                live = Some(object);
                shown
            }
            Err(e) => format!("error: {e}"),
        };
        let about = text(&step, "about");
        out += &format!("# {i} {how} by {manager}: {about}\n{}\n\n", shown.trim_end());
    }
    out
}

#[test]
fn scripts() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "yaml"))
        .collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        expect_test::expect_file![script.with_extension("out")].assert_eq(&run(&script));
    }
}

/// A kind whose versions cannot be converted.
struct Unconvertible(TwoVersions);

impl Versions for Unconvertible {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        self.0.object_type(api_version)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, String> {
        Err("no webhook".into())
    }
}

/// kube-apiserver tracks the fields before the first apply as an update of an empty object, whose new state they are.
#[test]
fn conversions_that_fail_name_the_object() {
    let object = |text: &str| yaml::decode(text.as_bytes(), Limits::SAFE).unwrap();
    let schema = object("{type: object, properties: {spec: {type: object}}}");
    let schema = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    let versions = Unconvertible(TwoVersions(ObjectType::new(schema)));
    let fields = FieldManager::new(&versions, "g/v2", "Thing");
    let live = object("{apiVersion: g/v1, kind: Thing, metadata: {name: x}}");
    let config = object("{apiVersion: g/v2, kind: Thing, metadata: {name: x}}");
    let applied = fields.apply(Some(&live), &config, "a", Force::No, Timestamp::UNIX_EPOCH);
    assert_eq!(
        applied.unwrap_err().to_string(),
        "failed to create manager for existing fields: failed to convert new object (/x; g/v1, Kind=Thing) to proper \
         version (g/v2): no webhook"
    );
}
