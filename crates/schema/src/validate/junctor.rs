//! `allOf`, `anyOf`, `oneOf` and `not`.

use super::sink::{Attempt, Sink, Stop};
use crate::plan::ValueChecks;
use scantling_value::{Path, Value};

/// Validates the junctors of a node. Ratcheting does not apply to fields below them.
pub(super) fn check<S: Sink>(
    checks: &ValueChecks,
    value: &Value,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    let mut matched = 0;
    // The order of go-openapi, which is the order of the errors.
    if !checks.any_of.is_empty() {
        matched += any_of(checks, value, at, sink)?;
    }
    if !checks.one_of.is_empty() {
        matched += one_of(checks, value, at, sink)?;
    }
    if !checks.all_of.is_empty() {
        matched += all_of(checks, value, at, sink)?;
    }
    if let Some(not) = &checks.not
        && sink.attempt(not, value, at).is_valid()
    {
        sink.fail(at, |site| site.junctor("must not validate the schema (not)"))?;
    }
    Ok(matched)
}

/// Keeps the attempt with the most matches; the earlier one of equals.
fn keep_best(best: &mut Option<Attempt>, attempt: Attempt) {
    if best.as_ref().is_none_or(|b| attempt.matched > b.matched) {
        *best = Some(attempt);
    }
}

fn any_of<S: Sink>(checks: &ValueChecks, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<usize, Stop> {
    let mut best = None;
    for branch in &checks.any_of {
        let attempt = sink.attempt(branch, value, at);
        if attempt.is_valid() {
            return Ok(attempt.matched);
        }
        keep_best(&mut best, attempt);
    }
    sink.fail(at, |site| {
        site.junctor("must validate at least one schema (anyOf)")
    })?;
    Ok(best.map_or(0, |b| sink.absorb(b)))
}

fn one_of<S: Sink>(checks: &ValueChecks, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<usize, Stop> {
    let mut best = None;
    let mut first = None;
    let mut valid = 0;
    for branch in &checks.one_of {
        let attempt = sink.attempt(branch, value, at);
        if attempt.is_valid() {
            valid += 1;
            // go-openapi drops the failures before a valid branch and ignores those after it.
            best = None;
            first.get_or_insert(attempt.matched);
        } else if valid == 0 {
            keep_best(&mut best, attempt);
        }
    }
    if valid == 1 {
        return Ok(first.unwrap_or(0));
    }
    sink.fail(at, |site| {
        let found = match valid {
            0 => "Found none valid".into(),
            n => format!("Found {n} valid alternatives"),
        };
        site.junctor(&format!("must validate one and only one schema (oneOf). {found}"))
    })?;
    Ok(best.map_or(0, |b| sink.absorb(b)))
}

fn all_of<S: Sink>(checks: &ValueChecks, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<usize, Stop> {
    let mut matched = 0;
    let mut valid = 0;
    for branch in &checks.all_of {
        let attempt = sink.attempt(branch, value, at);
        if attempt.is_valid() {
            valid += 1;
        } else if !S::COLLECTS {
            return Err(Stop);
        }
        matched += sink.absorb(attempt);
    }
    if valid < checks.all_of.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        sink.fail(at, |site| {
            site.junctor(&format!("must validate all the schemas (allOf){none}"))
        })?;
    }
    Ok(matched)
}
