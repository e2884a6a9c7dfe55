//! Compares this engine, with cost tracking, with the `cel` crate: the same expressions over the same data.
//!
//! Both engines compile once; one evaluation over an existing object is measured. The `cel` crate needs its
//! own values, which are created beforehand; this engine reads the document directly. The figures for
//! Kubernetes are those of its own rule validator for the same rules, measured elsewhere.
//!
//! `bench-cel NAME ENGINE RUNS` runs one case repeatedly in one engine, `scantling` or `cel`, for instruction
//! counters.

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::{ListType, Shape, ShapeKind};
use scantling_cel::val::{Arena, Val};
use scantling_value::json::decode;
use scantling_value::{Limits as JsonLimits, Value};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A case: an expression over `self`.
struct Case {
    name: String,
    expression: &'static str,
    data: Json,
    /// The time in Kubernetes in nanoseconds, if it was measured.
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
    cases.extend([2, 50, 200].map(properties));
    cases
}

/// Two properties of an object that has `n`.
fn properties(n: usize) -> Case {
    let fields: serde_json::Map<_, _> = (0..n).map(|i| (format!("field{i:03}"), json!(i))).collect();
    Case {
        name: format!("properties-{n}"),
        expression: "self.field000 <= self.field001",
        data: Json::Object(fields),
        kubernetes: Some(match n {
            2 => 4_300.0,
            50 => 46_000.0,
            _ => 148_000.0,
        }),
    }
}

/// The shape of a schema written for this object.
fn shape(value: &Json) -> Arc<Shape> {
    Shape::of_kind(match value {
        Json::Bool(_) => ShapeKind::Bool,
        Json::Number(_) => ShapeKind::Int,
        Json::String(_) => ShapeKind::String,
        Json::Array(items) => ShapeKind::List {
            element: shape(items.first().unwrap_or(&Json::Null)),
            list_type: ListType::Atomic,
        },
        Json::Object(members) => {
            return Shape::object(members.iter().map(|(name, value)| (name.as_str(), shape(value))));
        }
        // A field that is null has no type of its own.
        Json::Null => ShapeKind::Dyn,
    })
}

/// A case compiled for this engine.
struct Ours {
    program: Program,
    shape: Arc<Shape>,
    value: Value,
}

impl Ours {
    fn new(case: &Case) -> Self {
        let shape = shape(&case.data);
        let scope = for_stored_expressions(KubernetesVersion::LATEST);
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
        // The arena keeps its memory between runs, as in a server.
        arena.reset();
        let limits = Limits {
            // The same limits as in a server, so that counting the cost is part of the time.
            cost: 10_000_000,
            interrupt: Some(&|| false),
        };
        let outcome = self
            .program
            .eval(arena, &[Input::Json(&self.value, &self.shape)], limits);
        matches!(outcome.result, Ok(Val::Bool(true))) && outcome.cost > 0
    }
}

/// Nanoseconds per run of each function: the best of many short alternating rounds, so that other load on the
/// machine affects all of them and spares some rounds.
fn measure<const N: usize>(mut runs: [&mut dyn FnMut() -> bool; N]) -> [f64; N] {
    const ROUNDS: usize = 60;
    let per_round = |run: &mut dyn FnMut() -> bool| {
        let start = Instant::now();
        black_box(run());
        // At least the resolution of the clock, so that the number of runs stays finite.
        let once = start.elapsed().max(Duration::from_nanos(20));
        (Duration::from_millis(4).as_nanos() / once.as_nanos()).clamp(1, 2_000_000) as u32
    };
    let counts = runs.each_mut().map(|run| per_round(run));
    let mut best = [f64::INFINITY; N];
    for _ in 0..ROUNDS {
        for ((run, count), best) in runs.iter_mut().zip(counts).zip(&mut best) {
            let start = Instant::now();
            for _ in 0..count {
                black_box(run());
            }
            *best = best.min(start.elapsed().as_nanos() as f64 / f64::from(count));
        }
    }
    best
}

/// A case compiled for the `cel` crate.
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

fn main() {
    let mut args = std::env::args().skip(1);
    match (args.next(), args.next(), args.next()) {
        (Some(name), Some(engine), Some(runs)) => {
            run_one(&name, &engine, runs.parse().expect("a number of runs"))
        }
        _ => compare(),
    }
}

/// Runs one case in one engine.
fn run_one(name: &str, engine: &str, runs: usize) {
    let case = cases()
        .into_iter()
        .find(|c| c.name == name)
        .expect("a case of that name");
    if engine == "cel" {
        let theirs = Theirs::new(&case);
        for _ in 0..runs {
            black_box(theirs.run());
        }
    } else {
        let ours = Ours::new(&case);
        let mut arena = Arena::new();
        for _ in 0..runs {
            black_box(ours.run(&mut arena));
        }
    }
}

/// The minimum of several ratios, and its case.
struct Least {
    ratio: f64,
    name: String,
}

impl Least {
    fn of_none() -> Self {
        Least {
            ratio: f64::INFINITY,
            name: String::new(),
        }
    }

    fn add(&mut self, ratio: f64, name: &str) {
        if ratio < self.ratio {
            self.ratio = ratio;
            self.name = name.to_owned();
        }
    }
}

/// Runs all cases in both engines and prints the targets.
fn compare() {
    println!(
        "{:<16} {:>12} {:>12} {:>8} {:>14} {:>8}",
        "case", "scantling ns", "cel ns", "ratio", "kubernetes ns", "ratio"
    );
    let (mut to_crate, mut to_kubernetes) = (Least::of_none(), Least::of_none());
    for case in cases() {
        let ours = Ours::new(&case);
        let mut arena = Arena::new();
        let theirs = Theirs::new(&case);
        // Before measuring: a wrong answer is often a fast one.
        assert_eq!(
            ours.run(&mut arena),
            theirs.run(),
            "{}: the engines disagree",
            case.name
        );
        let [own, their] = measure([&mut || ours.run(&mut arena), &mut || theirs.run()]);
        to_crate.add(their / own, &case.name);
        let kubernetes = match case.kubernetes {
            None => format!("{:>14} {:>8}", "-", "-"),
            Some(ns) => {
                to_kubernetes.add(ns / own, &case.name);
                format!("{ns:>14.0} {:>7.1}x", ns / own)
            }
        };
        println!(
            "{:<16} {own:>12.1} {their:>12.1} {:>7.1}x {kubernetes}",
            case.name,
            their / own
        );
    }
    println!(
        "least ratio to the cel crate: {:.1}x ({}); at least 5 is aimed at",
        to_crate.ratio, to_crate.name
    );
    println!(
        "least ratio to Kubernetes: {:.1}x ({}); at least 20 is aimed at",
        to_kubernetes.ratio, to_kubernetes.name
    );
    siblings();
    worst_case();
}

/// The cost of other properties of an object.
fn siblings() {
    let [few, many] = [2, 200].map(|n| Ours::new(&properties(n)));
    let (mut one, mut other) = (Arena::new(), Arena::new());
    let [few, many] = measure([&mut || few.run(&mut one), &mut || many.run(&mut other)]);
    println!(
        "two of 200 properties: {:.2} times as long as two of 2; 1 is aimed at",
        many / few
    );
}

/// The largest list that fits a request.
fn worst_case() {
    let case = Case {
        name: "worst case".to_owned(),
        expression: "self.l.all(x, x >= 0)",
        data: json!({"l": vec![1; 1_572_000]}),
        kubernetes: None,
    };
    let ours = Ours::new(&case);
    let mut arena = Arena::new();
    let [ns] = measure([&mut || ours.run(&mut arena)]);
    println!(
        "1 572 000 elements under all(): {:.1} ms; less than 100 is aimed at",
        ns / 1e6
    );
}
