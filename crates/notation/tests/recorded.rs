//! Compares the parsers and formatters with recorded results of the Go libraries that Kubernetes uses.
//!
//! Each line of `data/notations.jsonl` holds an operation, its inputs, and the result.
#![expect(
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_notation::quantity::Quantity;
use scantling_notation::regex::Pattern;
use scantling_notation::timestamp::{self, CivilTime};
use scantling_notation::url::Url;
use scantling_notation::{duration, number};
use scantling_value::{Limits, Value, go, json};
use std::cmp::Ordering;
use std::fmt::Write;

const RECORDED: &str = include_str!("data/notations.jsonl");

fn sign(order: Ordering) -> i8 {
    order as i8
}

fn or_none(answer: Option<String>) -> String {
    answer.unwrap_or_else(|| "none".to_owned())
}

fn or_error<E: std::fmt::Display>(answer: Result<String, E>) -> String {
    answer.unwrap_or_else(|e| format!("error: {e}"))
}

fn quantity(text: &str) -> Option<Quantity> {
    Quantity::parse(text).ok()
}

fn answer(question: &str, inputs: &[&str]) -> String {
    let input = |n: usize| inputs.get(n).copied().unwrap_or_default();
    let text = input(0);
    match question {
        "regex" => or_error(Pattern::new(text).map(|pattern| {
            let found: Vec<_> = pattern
                .matches(input(1), usize::MAX)
                .into_iter()
                .map(go::quote)
                .collect();
            format!("[{}]", found.join(", "))
        })),
        "quantity" => or_error(Quantity::parse(text).map(|q| {
            let integer = q.as_integer();
            format!(
                "{} {} {} {} {}",
                q.canonical(),
                integer.unwrap_or(0),
                integer.is_some(),
                go::float_v(q.as_approximate_float()),
                sign(q.sign())
            )
        })),
        "sum" => {
            let zero = || Quantity::parse("0").unwrap();
            let [a, b] = [0, 1].map(|i| quantity(input(i)).unwrap_or_else(zero));
            let (sum, difference) = (a.add(&b).unwrap(), a.sub(&b).unwrap());
            format!(
                "{} {} {} {}",
                sign(a.cmp(&b)),
                sum.canonical(),
                difference.canonical(),
                sum.as_integer().is_some()
            )
        }
        "duration" => or_none(duration::parse(text).map(|d| format!("{d} {}", duration::format(d)))),
        "formatDuration" => or_error(duration::parse_format(text).map(|d| d.to_string())),
        "timestamp" => or_none(
            timestamp::parse(text).map(|t| format!("{} {} {}", t.seconds, t.nanos, timestamp::format(t))),
        ),
        "date" => or_error(timestamp::parse_date(text).map(|t| t.seconds.to_string())),
        "dateTime" => or_error(timestamp::parse_date_time(text).map(|t| t.seconds.to_string())),
        "fields" => {
            let seconds = text.parse().unwrap();
            or_error(timestamp::offset_in(input(1), seconds).map(|offset| {
                let f = CivilTime::at(seconds, offset);
                format!(
                    "{} {} {} {} {} {} {} {}",
                    f.year, f.month, f.day, f.day_of_year, f.day_of_week, f.hour, f.minute, f.second
                )
            }))
        }
        "url" => or_error(Url::parse(text).map(|u| {
            let mut query = u.query();
            query.sort();
            let query: Vec<_> = query
                .iter()
                .map(|(name, values)| {
                    let values: Vec<_> = values.iter().map(|v| go::quote(v)).collect();
                    format!("{}=[{}]", go::quote(name), values.join(" "))
                })
                .collect();
            let parts = [
                &u.to_string(),
                u.scheme(),
                u.host(),
                u.hostname(),
                u.port(),
                &u.escaped_path(),
            ];
            let parts: Vec<_> = parts.iter().map(|p| go::quote(p)).collect();
            format!("{} {}", parts.join(" "), query.join(" "))
        })),
        "double" => or_none(number::parse_double(text).map(go::float_v)),
        _ => unreachable!("unknown question {question}"),
    }
}

#[test]
fn notations_match_recorded_results() {
    let (mut n, mut wrong, mut report) = (0, 0, String::new());
    for line in RECORDED.lines() {
        let line = json::decode(line.as_bytes(), Limits::default()).unwrap();
        let Value::Array(line) = line else {
            panic!("{line:?}")
        };
        let line: Vec<_> = line.iter().map(|v| v.as_str().unwrap()).collect();
        let [question, inputs @ .., want] = line.as_slice() else {
            panic!("{line:?}")
        };
        n += 1;
        let got = answer(question, inputs);
        if got != *want {
            wrong += 1;
            if wrong <= 60 {
                writeln!(
                    report,
                    "{question} {inputs:?}\n  recorded {want}\n  found    {got}"
                )
                .unwrap();
            }
        }
    }
    assert!(wrong == 0, "{wrong} of {n} answers differ\n{report}");
}
