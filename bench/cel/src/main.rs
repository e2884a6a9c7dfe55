//! The same expressions over the same data in this engine, cost tracking on, and in the `cel` crate.
//!
//! Both engines compile once; what is measured is one evaluation over an object that is there already. The `cel`
//! crate computes on values of its own, which are made beforehand; this engine reads the document as it is.
//! The figures for Kubernetes are those of its own rule validator for the same rules, measured elsewhere.
//!
//! `bench-cel NAME [cel]` runs one case a fixed number of times in one engine: for instruction counters.

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{Version, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::{Field, Kind, ListType, Shape};
use scantling_cel::val::{Arena, Val};
use scantling_value::json::decode;
use scantling_value::{Limits as JsonLimits, Value};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is compared: an expression over `self`.
struct Case {
    name: String,
    expression: &'static str,
    data: Json,
    /// What Kubernetes takes, in nanoseconds, where it was measured.
    kubernetes: Option<f64>,
}

fn cases() -> Vec<Case> {
    let case = |name: &str, expression, data, kubernetes| Case {
        name: name.to_owned(),
        expression,
        data,
        kubernetes,
    };
    let numbers = |n: i64| json!({"l": (1..=n).collect::<Vec<_>>()});
    let text = "the quick brown fox jumps over the lazy dog";
    let mut cases = vec![
        case(
            "simple",
            "self.i <= self.j",
            json!({"i": 1, "j": 2}),
            Some(4_400.0),
        ),
        case(
            "present",
            "has(self.x) && self.x.startsWith('a')",
            json!({"x": "abc"}),
            Some(6_300.0),
        ),
        case("all-10", "self.l.all(x, x > 0)", numbers(10), Some(12_700.0)),
        case("all-100", "self.l.all(x, x > 0)", numbers(100), None),
        case("all-10000", "self.l.all(x, x > 0)", numbers(10_000), None),
        case("exists-100", "self.l.exists(x, x > 1000)", numbers(100), None),
        case("map-100", "size(self.l.map(x, x * 2)) == 100", numbers(100), None),
        case(
            "filter-100",
            "size(self.l.filter(x, x > 50)) == 50",
            numbers(100),
            None,
        ),
        case(
            "strings",
            "self.s.startsWith('the') && self.s.endsWith('dog') && self.s.contains('fox') && size(self.s) < 100",
            json!({"s": text}),
            None,
        ),
        case("concat", "self.s + '!' == 'x'", json!({"s": text}), None),
        case(
            "in",
            "self.s in ['Always', 'Never', 'IfNotPresent']",
            json!({"s": "Never"}),
            None,
        ),
        case("regex", "self.s.matches('^[a-z ]+$')", json!({"s": text}), None),
        case(
            "ternary",
            "self.i > 3 ? self.j == 1 : self.j == 2",
            json!({"i": 1, "j": 2}),
            None,
        ),
    ];
    for n in [2, 50, 200] {
        let fields: serde_json::Map<_, _> = (0..n).map(|i| (format!("field{i:03}"), json!(i))).collect();
        cases.push(case(
            &format!("properties-{n}"),
            "self.field000 <= self.field001",
            Json::Object(fields),
            match n {
                2 => Some(4_300.0),
                50 => Some(46_000.0),
                _ => Some(148_000.0),
            },
        ));
    }
    cases
}

/// The shape that a schema written for this very object would have.
fn shape(value: &Json) -> Arc<Shape> {
    let kind = match value {
        Json::Bool(_) => Kind::Bool,
        Json::Number(_) => Kind::Int,
        Json::String(_) => Kind::String,
        Json::Array(items) => Kind::List {
            element: shape(items.first().unwrap_or(&Json::Null)),
            list_type: ListType::Atomic,
        },
        Json::Object(members) => {
            let mut fields: Vec<Field> = members
                .iter()
                .map(|(name, value)| Field {
                    name: name.as_str().into(),
                    json: name.as_str().into(),
                    shape: shape(value),
                })
                .collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            Kind::Object {
                fields: fields.into(),
                preserve_unknown: false,
            }
        }
        Json::Null => Kind::Dyn,
    };
    Arc::new(Shape {
        kind,
        nullable: false,
        min_serialized_size: 1,
        max_elements: 100_000,
    })
}

/// A case, ready to run in this engine.
struct Ours {
    program: Program,
    shape: Arc<Shape>,
    value: Value,
}

impl Ours {
    fn new(case: &Case) -> Self {
        let shape = shape(&case.data);
        let scope = for_stored_expressions(Version::LATEST);
        let env = Env::new(Arc::new(scope)).with_variable("self", shape.ty("self"));
        let checked = env
            .compile(case.expression)
            .unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let program = Program::compile(&env, &checked).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        let text = serde_json::to_vec(&case.data).expect("data is JSON");
        let value = decode(&text, JsonLimits::default()).expect("data is JSON");
        Ours {
            program,
            shape,
            value,
        }
    }

    fn run(&self, arena: &mut Arena) -> bool {
        arena.reset();
        let limits = Limits {
            cost: 10_000_000,
            interrupt: Some(&|| false),
        };
        let outcome = self
            .program
            .eval(arena, &[Input::Json(&self.value, &self.shape)], limits);
        matches!(outcome.result, Ok(Val::Bool(true))) && outcome.cost > 0
    }
}

/// Nanoseconds per run: the best of several rounds.
fn measure(mut run: impl FnMut() -> bool) -> f64 {
    let once = {
        let start = Instant::now();
        black_box(run());
        start.elapsed().max(Duration::from_nanos(20))
    };
    let rounds = 7;
    let per_round = (Duration::from_millis(40).as_nanos() / once.as_nanos()).clamp(1, 2_000_000) as u32;
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..per_round {
                black_box(run());
            }
            start.elapsed().as_nanos() as f64 / f64::from(per_round)
        })
        .fold(f64::INFINITY, f64::min)
}

/// A case, ready to run in the `cel` crate.
struct Theirs {
    program: cel::Program,
    context: cel::Context<'static, 'static>,
}

impl Theirs {
    fn new(case: &Case) -> Self {
        let env = Arc::new(cel::Env::stdlib());
        let program = env
            .compile(case.expression)
            .expect("the cel crate understands it");
        let mut context = cel::Context::with_env(env);
        context.add_variable_from_value("self", their_value(&case.data));
        Theirs { program, context }
    }

    fn run(&self) -> bool {
        self.program.execute(&self.context) == Ok(cel::Value::Bool(true))
    }
}

/// The same data with the same types: all numbers are integers.
fn their_value(value: &Json) -> cel::Value {
    match value {
        Json::Null => cel::Value::Null,
        Json::Bool(b) => cel::Value::Bool(*b),
        Json::Number(n) => cel::Value::Int(n.as_i64().expect("data has integers alone")),
        Json::String(s) => cel::Value::String(Arc::new(s.clone())),
        Json::Array(items) => cel::Value::List(Arc::new(items.iter().map(their_value).collect())),
        Json::Object(members) => {
            let members: HashMap<String, cel::Value> =
                members.iter().map(|(k, v)| (k.clone(), their_value(v))).collect();
            cel::Value::Map(members.into())
        }
    }
}

/// How often a single case runs.
const RUNS: usize = 10_000;

fn main() {
    let only = std::env::args().nth(1);
    if let Some(name) = only {
        let case = cases()
            .into_iter()
            .find(|c| c.name == name)
            .expect("a case of that name");
        if std::env::args().nth(2).as_deref() == Some("cel") {
            let theirs = Theirs::new(&case);
            for _ in 0..RUNS {
                black_box(theirs.run());
            }
        } else {
            let ours = Ours::new(&case);
            let mut arena = Arena::new();
            for _ in 0..RUNS {
                black_box(ours.run(&mut arena));
            }
        }
        return;
    }
    println!(
        "{:<16} {:>12} {:>12} {:>8} {:>14} {:>8}",
        "case", "scantling ns", "cel ns", "ratio", "kubernetes ns", "ratio"
    );
    let mut worst = f64::INFINITY;
    for case in cases() {
        let ours = Ours::new(&case);
        let mut arena = Arena::new();
        let own = measure(|| ours.run(&mut arena));
        let theirs = Theirs::new(&case);
        assert_eq!(
            ours.run(&mut arena),
            theirs.run(),
            "{}: the engines disagree",
            case.name
        );
        let their = measure(|| theirs.run());
        worst = worst.min(their / own);
        let kubernetes = case.kubernetes.map_or_else(
            || format!("{:>14} {:>8}", "-", "-"),
            |ns| format!("{ns:>14.0} {:>7.1}x", ns / own),
        );
        println!(
            "{:<16} {own:>12.1} {their:>12.1} {:>7.1}x {kubernetes}",
            case.name,
            their / own
        );
    }
    println!("least ratio to the cel crate: {worst:.1}x");
    worst_case();
}

/// The largest list that a request can hold.
fn worst_case() {
    let case = Case {
        name: "worst case".to_owned(),
        expression: "self.l.all(x, x >= 0)",
        data: json!({"l": vec![1; 1_572_000]}),
        kubernetes: None,
    };
    let ours = Ours::new(&case);
    let mut arena = Arena::new();
    let ms = measure(|| ours.run(&mut arena)) / 1e6;
    println!("1 572 000 elements under all(): {ms:.1} ms");
}
