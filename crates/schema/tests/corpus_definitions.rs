//! Compares the verdicts and errors of real CRDs with those of Kubernetes.

use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::rules::Environments;
use scantling_testkit::corpus;
use scantling_value::Value;
use std::collections::BTreeSet;

#[test]
fn corpus_definitions_have_the_expected_errors() {
    let Some(cases) = corpus::cases() else {
        return;
    };
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    let setting = ValidationContext {
        api: ApiVersion::V1,
        gates: Gates::default(),
        environments: &environments,
    };
    let (mut total, mut same, mut same_but_rules, mut round_trips) = (0, 0, 0, 0);
    let mut differences = Vec::new();
    for entry in cases {
        let document = entry.get("crd").unwrap().clone();
        let name = document
            .at(["metadata", "name"])
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        let wanted: BTreeSet<String> = entry
            .get("errors")
            .and_then(Value::as_array)
            .unwrap()
            .iter()
            .map(|e| text(e.as_str().unwrap()))
            .collect();
        total += 1;
        let mut definition = match Definition::decode(document, ApiVersion::V1, Gates::default()) {
            Ok(received) => received.definition,
            Err(e) => {
                differences.push(format!("{name}: {e}"));
                continue;
            }
        };
        definition.prepare_create(Gates::default());
        let got: BTreeSet<String> = definition
            .validate(&setting)
            .iter()
            .map(|e| text(&e.to_string()))
            .collect();
        let but_rules = |errors: &BTreeSet<String>| {
            errors
                .iter()
                .filter(|e| !is_about_rules(e))
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        same_but_rules += usize::from(but_rules(&got) == but_rules(&wanted));
        if got == wanted {
            same += 1;
        } else {
            let missing = wanted.difference(&got).map(|e| format!("\n  - {e}"));
            let extra = got.difference(&wanted).map(|e| format!("\n  + {e}"));
            differences.push(format!("{name}:{}", missing.chain(extra).collect::<String>()));
        }
        let again = Definition::decode(
            definition.encode(ApiVersion::V1),
            ApiVersion::V1,
            Gates::default(),
        );
        round_trips += usize::from(
            again.is_ok_and(|r| r.definition.encode(ApiVersion::V1) == definition.encode(ApiVersion::V1)),
        );
    }
    println!(
        "{same} of {total} definitions have the same errors, {same_but_rules} but for rules; {round_trips} round-trip"
    );
    println!("conformance: corpus/definitions {same}/{total}");
    for d in &differences {
        println!("{d}");
    }
    assert_eq!((same_but_rules, round_trips), (total, total));
    // Of several rules with equal cost, kube-apiserver names any four: infrastructures.config.openshift.io
    // has more.
    assert!(same + 1 >= total);
}

/// Returns whether an error is about compiling rules or about their cost.
fn is_about_rules(error: &str) -> bool {
    error.contains(".x-kubernetes-validations")
        || error.contains("x-kubernetes-validations estimated rule cost")
}

/// Removes the random number in type names of rule errors.
fn text(error: &str) -> String {
    let mut out = String::new();
    let mut rest = error;
    while let Some((before, after)) = rest.split_once("selfType") {
        out.push_str(before);
        out.push_str("selfType");
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out.push_str(rest);
    out
}
