//! Answers questions about objects, one JSON document per line, to be compared with what other implementations say:
//!
//! ```text
//! {"id": "1", "op": "create", "crd": {…}, "version": "v1", "obj": {…}}
//! {"id": "2", "op": "update", "crd": {…}, "version": "v1", "obj": {…}, "old": {…}}
//! ```
//!
//! The answer holds the errors, sorted, the cost of the rules and the object as it would be stored. The object's own
//! metadata are not looked at.
#![expect(clippy::print_stdout, reason = "the answers go to standard output")]

use scantling_admit::{AdmitOptions, Gates, Resource, ResourceCompiler, check};
use scantling_schema::default;
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole};
use scantling_value::{Limits, Map, Value, json};
use std::io::BufRead;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut compiler = ResourceCompiler::default();
    let mut known: Option<(Value, String, Resource)> = None;
    for line in std::io::stdin().lock().lines() {
        let request = json::decode(line?.as_bytes(), Limits::SERVER)?;
        let version = request.get("version").and_then(Value::as_str).unwrap_or_default();
        let crd = request.get("crd").ok_or("no definition")?;
        let fresh = known.as_ref().is_none_or(|(c, v, _)| c != crd || v != version);
        if fresh {
            let resource = resource(crd, version, &mut compiler).ok_or("no such version")?;
            known = Some((crd.clone(), version.to_owned(), resource));
        }
        if let Some((_, _, resource)) = &known {
            println!("{}", answer(resource, &request)?.to_json());
        }
    }
    Ok(())
}

fn answer(resource: &Resource, request: &Value) -> Result<Value, default::TooLarge> {
    let root = resource.plan.root();
    let mut object = request.get("obj").cloned().unwrap_or_default();
    let options = prune::PruneOptions {
        nulls: NullPolicy::Drop,
        unknown: UnknownFields::Ignore,
    };
    prune::prune(root, &mut object, ValueRole::Resource, &options);
    default::fill(root, &mut object)?;
    let old = request.get("old");
    if let Some(map) = object.as_object_mut().filter(|_| resource.status) {
        map.remove("status");
        if let Some(status) = old.and_then(|old| old.get("status")) {
            map.insert("status", status.clone());
        }
    }
    let checked = check(resource, &object, old, &AdmitOptions::default());
    let mut errors: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
    errors.sort();
    let mut out = Map::new();
    out.insert("id", request.get("id").cloned().unwrap_or_default());
    out.insert("errors", Value::from(errors));
    let cost = i64::try_from(checked.stats.rule_cost).unwrap_or(i64::MAX);
    out.insert("celCost", Value::Int(cost));
    out.insert("object", object);
    Ok(Value::Object(out))
}

fn resource(crd: &Value, version: &str, compiler: &mut ResourceCompiler) -> Option<Resource> {
    let received = Definition::decode(crd.clone(), ApiVersion::V1, Gates::default()).ok()?;
    let accepted = Accepted::assume_accepted(received.definition);
    compiler.compile(&accepted, version).ok()
}
