//! Any document as a CRD is decoded or refused and validated; valid ones compile to plans. An update that
//! changes nothing is valid if the CRD is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::document::Schema;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::rules::Environments;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Value, json};
use std::sync::LazyLock;

static ENVIRONMENTS: LazyLock<Environments> =
    LazyLock::new(|| Environments::for_version(KubernetesVersion::LATEST));

fuzz_target!(|text: &[u8]| {
    let Ok(document) = json::decode(text, Limits::SAFE) else {
        return;
    };
    // Most inputs are not CRDs; as schemas they still exercise the compiler.
    if let Ok(structural) = Schema::new(&document).structural(&mut Interner::new()) {
        let _ = PlanCompiler::new().compile(&structural);
    }
    let gates = Gates {
        immutability: true,
        unions: true,
        rules_on_create: true,
        ..Gates::default()
    };
    let Ok(received) = Definition::decode(document, ApiVersion::V1, gates) else {
        return;
    };
    let setting = ValidationContext {
        api: ApiVersion::V1,
        gates,
        environments: &ENVIRONMENTS,
    };
    let definition = received.definition;
    let errors = definition.validate(&setting);
    // Validation has no state, so it must not depend on what came before.
    assert_eq!(
        errors,
        definition.validate(&setting),
        "judging twice gives the same"
    );
    if let Ok(acceptance) = Accepted::create(definition, &setting) {
        let mut stored = Definition::clone(&acceptance.accepted);
        stored.metadata.insert("resourceVersion", Value::from("1"));
        let old = Accepted::assume_accepted(stored.clone());
        let update = Accepted::update(stored, &old, &setting);
        assert!(update.is_ok(), "nothing has changed: {:?}", update.err());
    }
});
