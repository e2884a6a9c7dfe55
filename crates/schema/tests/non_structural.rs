//! Validation against schemas that are not structural, compared with Kubernetes' validator. Each line of
//! `non_structural.jsonl` contains a schema, an object, the old object (for an update), and the errors.

use scantling_schema::document::Schema;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::structural::Interner;
use scantling_schema::validate::{Ratchet, validate};
use scantling_value::{Limits, Path, Value, json};

#[test]
fn errors_match_kubernetes() {
    let mut interner = Interner::new();
    let mut compiler = PlanCompiler::new();
    for line in include_str!("non_structural.jsonl").lines() {
        let case = json::decode(line.as_bytes(), Limits::SAFE).unwrap();
        let schema = Schema::new(case.get("schema").unwrap()).for_values(&mut interner);
        let plan = compiler.compile(&schema.unwrap());
        let ratchet = Ratchet::new(None);
        let old = case.get("old").map(|old| (&ratchet, old));
        let errors = validate(plan.root(), case.get("obj").unwrap(), &Path::ROOT, old);
        let mut errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.sort();
        assert_eq!(Some(&Value::from(errors)), case.get("errors"), "{line}");
    }
}

#[test]
fn keywords_without_effect_on_values_do_not_count() {
    let check = |text: &str| {
        let document = json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        let schema = Schema::new(&document);
        let mut interner = Interner::new();
        let why = schema.for_values(&mut interner).err().map(|why| why.to_string());
        assert_eq!(schema.unsupported_for_values().map(|why| why.to_string()), why);
        assert!(schema.structural(&mut interner).is_err());
        why
    };
    for ignored in [
        r#"{"$schema": "s"}"#,
        r#"{"not": {"id": "a"}}"#,
        r#"{"definitions": {"a": {}}}"#,
    ] {
        assert_eq!(check(ignored), None, "{ignored}");
    }
    for unsupported in [
        r#"{"$ref": "a"}"#,
        r#"{"properties": {"a": {"patternProperties": {"a": {}}}}}"#,
        r#"{"anyOf": [{"dependencies": {"a": {}}}]}"#,
        r#"{"items": {"additionalItems": true}}"#,
        r#"{"items": [{}]}"#,
    ] {
        assert!(check(unsupported).is_some(), "{unsupported}");
    }
}
