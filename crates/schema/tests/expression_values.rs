//! Values, errors and costs of expressions over one object, compared with kube-apiserver.
//!
//! `data/values.jsonl` was recorded by running kube-apiserver's packages over the schema and the object
//! beside it.
#![expect(
    clippy::expect_used,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{self, KubernetesVersion};
use scantling_cel::program::{Input, Limits as Budget, Program};
use scantling_cel::val::Arena;
use scantling_schema::document::Schema;
use scantling_schema::rules::Shapes;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use support::show;

#[path = "../../cel/tests/support/show.rs"]
mod support;

fn parse(text: &str) -> Value {
    json::decode(text.as_bytes(), Limits::default()).expect("the data is JSON")
}

#[test]
fn values_errors_and_costs() {
    let document = parse(include_str!("data/values-schema.json"));
    let object = parse(include_str!("data/values-object.json"));
    let schema = Schema::new(&document)
        .structural(&mut Interner::new())
        .expect("the schema is structural");
    let shape = Shapes::new().of_schema(&schema).expect("expressions see objects");
    let env = Env::new(Arc::new(kubernetes::for_stored_expressions(
        KubernetesVersion::new(1, 37),
    )))
    .with_variable("self", shape.ty("selfType1"));
    let (mut total, mut wrong, mut report) = (0, 0, String::new());
    for line in include_str!("data/values.jsonl").lines() {
        let fact = parse(line);
        let text = |key: &str| fact.get(key).and_then(Value::as_str);
        let expression = text("expr").expect("every fact is about an expression");
        let cost = fact.get("cost").and_then(Value::as_int).unwrap_or_default();
        let expected = match (text("compile"), text("program"), text("error"), text("value")) {
            (Some(mistakes), ..) => mistakes.to_owned(),
            (_, Some(refusal), ..) => format!("no program: {refusal}"),
            (_, _, Some(error), _) => format!("error {error} [{cost}]"),
            (.., value) => format!("{} [{cost}]", value.unwrap_or_default()),
        };
        let found = match env.compile(expression) {
            Err(mistakes) => mistakes.to_string(),
            Ok(checked) => match Program::compile(&env, &checked) {
                Err(refusal) => format!("no program: {refusal}"),
                Ok(program) => {
                    let arena = Arena::new();
                    let outcome = program.eval(&arena, &[Input::Json(&object, &shape)], Budget::NONE);
                    match outcome.result {
                        Ok(value) => format!("{} [{}]", show(&arena, value), outcome.cost),
                        Err(error) => format!("error {error} [{}]", outcome.cost),
                    }
                }
            },
        };
        total += 1;
        if found != expected {
            wrong += 1;
            writeln!(
                report,
                "{expression}\n  expected {expected:?}\n  found    {found:?}"
            )
            .unwrap();
        }
    }
    assert!(wrong == 0, "{wrong} of {total} expressions differ\n{report}");
}
