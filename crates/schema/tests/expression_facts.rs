//! Types, cost bounds and errors of expressions over one schema, compared with kube-apiserver.
//!
//! `data/expressions.jsonl` was recorded by running kube-apiserver's packages over the schema beside it.

use scantling_cel::env::Env;
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::{self, KubernetesVersion};
use scantling_cel::program::Program;
use scantling_cel::types::CelType;
use scantling_schema::document::Schema;
use scantling_schema::rules::Shapes;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

#[test]
fn types_costs_and_errors() {
    let parse = |text: &str| json::decode(text.as_bytes(), Limits::default()).expect("the data is JSON");
    let document = parse(include_str!("data/expressions-schema.json"));
    let schema = Schema::new(&document)
        .structural(&mut Interner::new())
        .expect("the schema is structural");
    let shape = Shapes::new().of_schema(&schema).expect("expressions see objects");
    let self_type = shape.ty("selfType1");
    let env = Env::new(Arc::new(kubernetes::for_stored_expressions(
        KubernetesVersion::new(1, 37),
    )))
    .with_variable("self", self_type.clone())
    .with_variable("oldSelf", CelType::optional(self_type));
    let (mut total, mut wrong, mut report) = (0, 0, String::new());
    for line in include_str!("data/expressions.jsonl").lines() {
        let fact = parse(line);
        let text = |key: &str| fact.get(key).and_then(Value::as_str);
        let expression = text("expr").expect("every fact is about an expression");
        let expected = match (text("error"), text("program")) {
            (Some(mistakes), _) => mistakes.to_owned(),
            (None, Some(refusal)) => format!("no program: {refusal}"),
            (None, None) => {
                let [ty, min, max] = ["type", "min", "max"].map(|key| text(key).unwrap_or_default());
                format!("{ty} {min}..{max}")
            }
        };
        let found = match env.compile(expression) {
            Ok(checked) => match Program::compile(&env, &checked) {
                Ok(_) => {
                    let cost = estimate(&checked, Some(&shape));
                    format!("{} {}..{}", checked.result_type(), cost.min, cost.max)
                }
                Err(refusal) => format!("no program: {refusal}"),
            },
            Err(mistakes) => mistakes.to_string(),
        };
        total += 1;
        if found != expected {
            wrong += 1;
            writeln!(
                report,
                "{expression}\n  expected {expected:?}\n  found    {found:?}"
            )
            .expect("strings grow");
        }
    }
    assert!(wrong == 0, "{wrong} of {total} facts differ:\n{report}");
}
