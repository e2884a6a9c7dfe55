//! Compares values, errors and costs of programs with recorded results, and tests the limits of evaluation.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::program::{EvalOutcome, Input, Limits, Program};
use scantling_cel::shape::{ListType, Shape, ShapeField, ShapeKind};
use scantling_cel::val::{Arena, EvalError, Val};
use scantling_value::Value;
use scantling_value::json::decode;
use std::cell::Cell;
use std::sync::Arc;

fn document() -> Value {
    decode(
        include_bytes!("data/programs.json"),
        scantling_value::Limits::default(),
    )
    .unwrap()
}

/// The shape of a schema, for the keywords that these tests use.
fn shape(schema: &Value) -> Arc<Shape> {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
    let kind = match (text("type"), text("format")) {
        _ if flag("x-kubernetes-int-or-string") => ShapeKind::IntOrString,
        ("integer", _) => ShapeKind::Int,
        ("number", _) => ShapeKind::Double,
        ("boolean", _) => ShapeKind::Bool,
        ("string", "date-time") => ShapeKind::DateTime,
        ("string", "duration") => ShapeKind::Duration,
        ("string", "byte") => ShapeKind::Bytes,
        ("string", _) => ShapeKind::String,
        ("array", _) => ShapeKind::List {
            element: shape(schema.get("items").unwrap()),
            list_type: match text("x-kubernetes-list-type") {
                "set" => ListType::Set,
                "map" => {
                    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                    ListType::Map(keys.unwrap().iter().map(|k| k.as_str().unwrap().into()).collect())
                }
                _ => ListType::Atomic,
            },
        },
        ("object", _) => match schema.get("additionalProperties") {
            Some(values) => ShapeKind::Map { value: shape(values) },
            None => {
                let properties = schema.get("properties").and_then(Value::as_object).unwrap();
                let field = |(name, schema): (&scantling_value::Str, &Value)| ShapeField {
                    name: name.as_str().into(),
                    json: name.as_str().into(),
                    shape: shape(schema),
                };
                ShapeKind::Object {
                    fields: properties.iter().map(field).collect(),
                    preserve_unknown: false,
                }
            }
        },
        other => panic!("{other:?}"),
    };
    Arc::new(Shape {
        kind,
        nullable: flag("nullable"),
        min_serialized_size: 1,
        max_elements: 10,
    })
}

fn show<'a>(arena: &'a Arena, v: Val<'a>) -> String {
    if let Some(list) = v.as_list() {
        let items: Vec<_> = list.iter(arena).map(|v| show(arena, v.unwrap())).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(map) = v.as_map() {
        let entry = |(k, v): (Val<'a>, Result<Val<'a>, EvalError>)| {
            format!("{}: {}", show(arena, k), show(arena, v.unwrap()))
        };
        return format!(
            "{{{}}}",
            map.entries(arena).map(entry).collect::<Vec<_>>().join(", ")
        );
    }
    match v {
        Val::Str(s) => format!("{s:?}"),
        Val::Optional(Some(v)) => format!("optional({})", show(arena, *v)),
        v => v.to_string(),
    }
}

/// A compiled expression over a document.
struct Compiled {
    program: Program,
    shape: Arc<Shape>,
    value: Value,
}

impl Compiled {
    fn new(source: &str) -> Result<Compiled, String> {
        let document = document();
        let shape = shape(document.get("schema").unwrap());
        let scope = for_stored_expressions(KubernetesVersion::LATEST);
        let env = Env::new(Arc::new(scope)).with_variable("self", shape.ty("selfType"));
        let checked = env.compile(source).map_err(|issues| issues.to_string())?;
        let program = Program::compile(&env, &checked).map_err(|e| format!("no program: {e}"))?;
        let value = document.get("self").unwrap().clone();
        Ok(Compiled {
            program,
            shape,
            value,
        })
    }

    fn eval<'a>(&'a self, arena: &'a Arena, limits: Limits<'_>) -> EvalOutcome<'a> {
        self.program
            .eval(arena, &[Input::Json(&self.value, &self.shape)], limits)
    }
}

#[test]
fn recorded_results() {
    let mut wrong = Vec::new();
    let recorded = include_str!("data/programs.txt")
        .lines()
        .filter(|l| !l.starts_with('#'));
    for line in recorded {
        // The second and third line of a checker message.
        let Some((source, expected)) = line.split_once(" -> ") else {
            continue;
        };
        let answer = match Compiled::new(source) {
            Err(message) => message.lines().next().unwrap().to_owned(),
            Ok(compiled) => {
                let arena = Arena::new();
                let outcome = compiled.eval(&arena, Limits::NONE);
                let shown = match outcome.result {
                    Ok(v) => show(&arena, v),
                    Err(e) => format!("error: {e}"),
                };
                format!("{shown} [{}]", outcome.cost)
            }
        };
        if answer != expected {
            wrong.push(format!("{source}\n  recorded {expected}\n  given    {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_cost_limit_is_never_absorbed() {
    let source = "self.list.all(x, x > 0) || true";
    let compiled = Compiled::new(source).unwrap();
    let arena = Arena::new();
    let cost = compiled.eval(&arena, Limits::NONE).cost;
    for limit in 0..cost {
        let outcome = compiled.eval(
            &arena,
            Limits {
                cost: limit,
                interrupt: None,
            },
        );
        assert_eq!(
            outcome.result.unwrap_err(),
            EvalError::CostLimitExceeded,
            "{limit}"
        );
    }
    let limits = Limits {
        cost,
        interrupt: None,
    };
    assert!(compiled.eval(&arena, limits).result.is_ok());
}

#[test]
fn interrupts_are_checked_every_hundred_iterations() {
    let compiled = Compiled::new("lists.range(100000).all(x, x >= 0) || true").unwrap();
    let arena = Arena::new();
    let asked = Cell::new(0);
    let interrupt = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let outcome = compiled.eval(
        &arena,
        Limits {
            cost: u64::MAX,
            interrupt: Some(&interrupt),
        },
    );
    assert_eq!(outcome.result.unwrap_err().to_string(), "operation interrupted");
    assert_eq!(asked.get(), 3);
}

#[test]
fn memory_is_bounded() {
    // Each iteration keeps its own list.
    let compiled = Compiled::new("lists.range(100000).map(x, lists.range(100000))").unwrap();
    let arena = Arena::new();
    assert_eq!(
        compiled.eval(&arena, Limits::NONE).result.unwrap_err(),
        EvalError::OutOfMemory
    );
}

#[test]
fn concatenated_lists_share_their_elements() {
    let compiled =
        Compiled::new("size(lists.range(1000).map(x, self.list + self.list + [x])[999]) == 7").unwrap();
    let arena = Arena::new();
    assert!(matches!(
        compiled.eval(&arena, Limits::NONE).result,
        Ok(Val::Bool(true))
    ));
}
