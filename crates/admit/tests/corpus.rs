//! Real definitions and objects of public projects, with the verdicts of Kubernetes' own code: for every object the
//! same errors, the same stored object and the same cost of rules; for every update the same errors and cost.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic, and reads best so"
)]

use scantling_admit::{AdmitOptions, Gates, Resource, ResourceCompiler, check};
use scantling_schema::default;
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole};
use scantling_testkit::corpus;
use scantling_value::Value;

fn texts(v: Option<&Value>) -> Vec<String> {
    let list = v.and_then(Value::as_array).unwrap_or_default();
    list.iter()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect()
}

/// Cases on which we differ, each with the reason. A case that is listed and agrees fails the run.
const KNOWN: &[(&str, &str)] = &[];

struct Tally {
    right: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn count(&mut self, name: impl Fn() -> String, agrees: bool, detail: impl Fn() -> String) {
        let known = KNOWN.iter().any(|(case, _)| *case == name());
        if agrees && known {
            self.wrong
                .push(format!("{}: listed as different, but agrees", name()));
        } else if agrees || known {
            self.right += 1;
        } else {
            self.wrong.push(format!("{}: {}", name(), detail()));
        }
    }
}

#[test]
fn corpus_objects_and_updates_match_kube_apiserver() {
    let Some(cases) = corpus::cases() else {
        return;
    };
    let mut compiler = ResourceCompiler::default();
    let mut tally = Tally {
        right: 0,
        wrong: Vec::new(),
    };
    for entry in cases {
        definition(&entry, &mut compiler, &mut tally);
    }
    for wrong in tally.wrong.iter().take(40) {
        println!("{wrong}");
    }
    let total = tally.right + tally.wrong.len();
    println!("conformance: corpus/objects {}/{total}", tally.right);
    assert!(tally.right > 0 && tally.wrong.is_empty());
}

fn definition(entry: &Value, compiler: &mut ResourceCompiler, tally: &mut Tally) {
    let crd = entry.get("crd").unwrap();
    let name = crd
        .at(["metadata", "name"])
        .and_then(Value::as_str)
        .unwrap()
        .to_owned();
    let objects = entry.get("objects").and_then(Value::as_array).unwrap_or_default();
    let mut stored = Vec::new();
    for (i, sample) in objects.iter().enumerate() {
        let version = sample.get("version").and_then(Value::as_str).unwrap();
        let resource = resource(crd, version, compiler);
        let mut object = in_form(&resource, sample);
        if resource.status {
            object.as_object_mut().unwrap().remove("status");
        }
        let checked = check(&resource, &object, None, &AdmitOptions::default());
        let mut errors: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
        errors.sort();
        let wanted = texts(sample.get("errors"));
        let case = || format!("{name} object {i}");
        tally.count(case, errors == wanted, || {
            format!("errors\n  ours {errors:?}\n  want {wanted:?}")
        });
        let cost = sample
            .get("celCost")
            .and_then(Value::as_int)
            .unwrap_or(0)
            .unsigned_abs();
        tally.count(case, checked.stats.rule_cost == cost, || {
            format!("cost\n  ours {}\n  want {cost}", checked.stats.rule_cost)
        });
        let want = sample.get("stored").unwrap();
        tally.count(case, object.to_json() == want.to_json(), || {
            format!("stored\n  ours {}\n  want {}", object.to_json(), want.to_json())
        });
        stored.push((resource, object, sample));
    }
    for update in entry.get("updates").and_then(Value::as_array).unwrap_or_default() {
        let index = |k: &str| usize::try_from(update.get(k).and_then(Value::as_int).unwrap()).unwrap();
        let (old, new) = (index("old"), index("new"));
        let (_, old_object, _) = &stored[old];
        let (resource, _, sample) = &stored[new];
        let mut object = in_form(resource, sample);
        if resource.status {
            let map = object.as_object_mut().unwrap();
            map.remove("status");
            if let Some(status) = old_object.get("status") {
                map.insert("status", status.clone());
            }
        }
        let checked = check(resource, &object, Some(old_object), &AdmitOptions::default());
        let mut errors: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
        errors.sort();
        let wanted = texts(update.get("errors"));
        let case = || format!("{name} update {old}->{new}");
        let cost = update
            .get("celCost")
            .and_then(Value::as_int)
            .unwrap_or(0)
            .unsigned_abs();
        tally.count(case, checked.stats.rule_cost == cost, || {
            format!("cost\n  ours {}\n  want {cost}", checked.stats.rule_cost)
        });
        tally.count(case, errors == wanted, || {
            format!("errors\n  ours {errors:?}\n  want {wanted:?}")
        });
    }
}

/// The object of a sample, pruned and with its defaults.
fn in_form(resource: &Resource, sample: &Value) -> Value {
    let mut object = sample.get("object").unwrap().clone();
    let options = prune::PruneOptions {
        nulls: NullPolicy::Drop,
        unknown: UnknownFields::Ignore,
    };
    prune::prune(resource.plan.root(), &mut object, ValueRole::Resource, &options);
    default::fill(resource.plan.root(), &mut object).unwrap();
    object
}

fn resource(crd: &Value, version: &str, compiler: &mut ResourceCompiler) -> Resource {
    let received = Definition::decode(crd.clone(), ApiVersion::V1, Gates::default()).unwrap();
    let accepted = Accepted::assume_accepted(received.definition);
    compiler.compile(&accepted, version).unwrap()
}
