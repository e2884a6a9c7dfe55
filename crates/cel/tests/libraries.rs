//! Compares the function libraries with recorded results of Kubernetes' own modules.
//!
//! Each line of `data/libraries.jsonl` holds an expression without variables and its result in the
//! environment for stored expressions of Kubernetes 1.37: the compile error, or the static cost, the value or
//! error, and the run-time cost. `data/extensions.jsonl` holds the same for extensions that Kubernetes does
//! not include.
#![expect(
    clippy::unwrap_used,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_cel::env::{BaseEnv, Env, EnvOptions};
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::library::{encoders, math, standard, strings};
use scantling_cel::program::{Limits, Program};
use scantling_cel::syntax::{Macros, ParseOptions};
use scantling_cel::val::Arena;
use scantling_value::{Value, json};
use std::fmt::Write;
use std::sync::Arc;
use support::show;

#[path = "support/show.rs"]
mod support;

/// The recorded results of an expression, one line per fact.
fn recorded(line: &Value) -> String {
    let get = |name: &str| line.get(name);
    let text = |name: &str| get(name).and_then(Value::as_str);
    if let Some(error) = text("compile") {
        return format!("compile: {error}");
    }
    let mut out = String::new();
    if let Some(Value::Array(bounds)) = get("static") {
        let bounds: Vec<_> = bounds.iter().map(number).collect();
        writeln!(out, "static: {}", bounds.join("..")).unwrap();
    }
    if let Some(error) = text("program") {
        writeln!(out, "program: {error}").unwrap();
        return out;
    }
    match (text("value"), text("error")) {
        (Some(value), _) => writeln!(out, "value: {value}").unwrap(),
        (_, Some(error)) => writeln!(out, "error: {error}").unwrap(),
        (None, None) => {}
    }
    if let Some(cost) = get("cost") {
        writeln!(out, "cost: {}", number(cost)).unwrap();
    }
    out
}

fn number(value: &Value) -> String {
    match value {
        Value::Int(n) => n.to_string(),
        Value::Float(n) => format!("{n}"),
        _ => String::new(),
    }
}

/// Our results, in the same form.
fn found(env: &Env, source: &str) -> String {
    let checked = match env.compile(source) {
        Ok(checked) => checked,
        Err(issues) => return format!("compile: {issues}"),
    };
    let bounds = estimate(&checked, None);
    let float = |n: u64| i64::try_from(n).map_or_else(|_| format!("{}", n as f64), |n| n.to_string());
    let mut out = format!("static: {}..{}\n", float(bounds.min), float(bounds.max));
    let program = match Program::compile(env, &checked) {
        Ok(program) => program,
        Err(e) => return format!("{out}program: {e}\n"),
    };
    let arena = Arena::new();
    let outcome = program.eval(&arena, &[], Limits::NONE);
    match outcome.result {
        Ok(value) => writeln!(out, "value: {}", show(&arena, value)).unwrap(),
        Err(e) => writeln!(out, "error: {e}").unwrap(),
    }
    writeln!(out, "cost: {}", outcome.cost).unwrap();
    out
}

fn compare(env: &Env, recordings: &str) {
    let (mut n, mut wrong, mut report) = (0, 0, String::new());
    for line in recordings.lines() {
        let line = json::decode(line.as_bytes(), scantling_value::Limits::default()).unwrap();
        let source = line.get("expr").and_then(Value::as_str).unwrap();
        let (want, got) = (recorded(&line), found(env, source));
        n += 1;
        if want.trim_end() != got.trim_end() {
            wrong += 1;
            if wrong <= 40 {
                writeln!(report, "{source}\n--- recorded\n{want}--- found\n{got}").unwrap();
            }
        }
    }
    assert!(wrong == 0, "{wrong} of {n} expressions differ\n{report}");
}

#[test]
fn kubernetes_libraries() {
    let env = Env::new(Arc::new(for_stored_expressions(KubernetesVersion::LATEST)));
    compare(&env, include_str!("data/libraries.jsonl"));
}

/// The newest string, math and encoder functions, which no Kubernetes environment has.
#[test]
fn other_extensions() {
    let options = EnvOptions {
        parse: ParseOptions {
            macros: Macros::STANDARD | Macros::MATH,
            ..ParseOptions::default()
        },
        ..EnvOptions::default()
    };
    let libraries = standard::STANDARD.into_iter().chain([
        &strings::NEWEST,
        &math::EXTREMES,
        &math::ROUNDING_AND_BITS,
        &math::ROOTS,
        &encoders::ENCODERS,
    ]);
    let scope = libraries.fold(BaseEnv::new(options), BaseEnv::with);
    compare(&Env::new(Arc::new(scope)), include_str!("data/extensions.jsonl"));
}
