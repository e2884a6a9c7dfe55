//! Compares the schemas generated from the table with those that Kubernetes publishes.

use super::git::Repository;
use scantling_apitypes::openapi::Undescribed;
use scantling_apitypes::{Extensions, TypeTable};
use serde_json::Value;
use std::collections::BTreeMap;

const KINDS: &str = "x-kubernetes-group-version-kind";
const FOLDER: &str = "api/openapi-spec/v3";

/// Compares all schemas; returns their number.
pub(super) fn check(repository: &Repository, commit: &str) -> Result<usize, String> {
    let files = repository.files(commit, &[FOLDER], |path| path.ends_with(".json"))?;
    let mut published: BTreeMap<String, Value> = BTreeMap::new();
    for (path, text) in files {
        let document: Value = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
        let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flatten() {
            published.insert(name.clone(), schema.clone());
        }
    }
    let table = TypeTable::latest();
    let mut problems = Vec::new();
    for (name, schema) in &published {
        let Some(definition) = table.model(name) else {
            problems.push(format!("{name}: the table does not have it"));
            continue;
        };
        let ours = table.schema(definition, Extensions::NONE, &Undescribed).to_json();
        let ours: Value = serde_json::from_str(&ours).map_err(|e| e.to_string())?;
        let mut theirs = bare(schema);
        // The kinds of types in every version differ between documents.
        if ours.get(KINDS).is_none() && name.contains(".meta.") {
            theirs.as_object_mut().map(|members| members.remove(KINDS));
        }
        compare(name, &bare(&ours), &theirs, &mut problems);
    }
    if problems.is_empty() {
        return Ok(published.len());
    }
    Err(format!(
        "{} differences from OpenAPI:\n{}",
        problems.len(),
        problems.join("\n")
    ))
}

/// A schema without descriptions, and without the enumerations that only a running server publishes.
fn bare(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let is_left_out = |key: &str, value: &Value| match key {
                "description" => value.is_string(),
                "enum" => value.is_array(),
                _ => false,
            };
            let kept = members.iter().filter(|(key, value)| !is_left_out(key, value));
            let mut kept: serde_json::Map<_, _> =
                kept.map(|(key, value)| (key.clone(), bare(value))).collect();
            // A description is also a reason to wrap a reference.
            if kept.len() == 1
                && let Some(reference) = kept.get("allOf").and_then(|all| all.pointer("/0/$ref")).cloned()
            {
                kept.clear();
                kept.insert("$ref".to_owned(), reference);
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(bare).collect()),
        other => other.clone(),
    }
}

fn compare(at: &str, ours: &Value, theirs: &Value, problems: &mut Vec<String>) {
    if ours == theirs {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (ours, theirs) {
        let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            match (a.get(key), b.get(key)) {
                (Some(ours), Some(theirs)) => compare(&format!("{at}.{key}"), ours, theirs, problems),
                (ours, theirs) => {
                    let text = |v: Option<&Value>| v.map_or("nothing".to_owned(), ToString::to_string);
                    problems.push(format!("{at}.{key}: {} instead of {}", text(ours), text(theirs)));
                }
            }
        }
        return;
    }
    problems.push(format!("{at}: {ours} instead of {theirs}"));
}
