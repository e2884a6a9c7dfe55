//! `--update`: rewrites the expectations of cases with what they got.

use super::run::CaseOutcome;
use super::suite::TestCase;
use scantling_value::{Limits, Map, PathBuf, Position, Value, yaml};
use std::path::Path;

/// A new expectation for a case.
pub(crate) struct NewExpectation {
    at: PathBuf,
    expect: Value,
}

impl NewExpectation {
    /// The expectation that the outcome of a case meets.
    pub(crate) fn new(case: &TestCase, outcome: &CaseOutcome) -> Self {
        let mut expect = Map::new();
        if outcome.message.is_some() {
            let errors = outcome.errors.iter().map(|error| {
                let members = [
                    ("field", error.field().into()),
                    ("message", error.message().into()),
                ];
                Value::Object(members.into_iter().collect())
            });
            let mut errors: Vec<Value> = errors.collect();
            // Undecodable and strict errors have no field; their message is all that a case can expect.
            if errors.is_empty() {
                errors.extend(outcome.message.as_deref().map(Value::from));
            }
            expect.insert("errors", Value::Array(errors));
        } else if case.expect.stored.is_some() {
            let mut stored = outcome.stored.clone().unwrap_or_default();
            if let Some(members) = stored.as_object_mut() {
                // The metadata of a stored object has generated names and times, which would break the next run.
                members.remove("metadata");
            }
            expect.insert("stored", stored);
        }
        if case.expect.warnings.is_some() {
            let warnings = outcome.warnings.iter().map(|text| Value::from(text.as_str()));
            expect.insert("warnings", Value::Array(warnings.collect()));
        }
        if case.expect.max_cost.is_some() {
            let cost = i64::try_from(outcome.cost).unwrap_or(i64::MAX);
            expect.insert(
                "cost",
                Value::Object([("max", Value::Int(cost))].into_iter().collect()),
            );
        }
        let expect = match expect.is_empty() {
            true => "accepted".into(),
            false => expect.into(),
        };
        NewExpectation {
            at: case.at.clone(),
            expect,
        }
    }
}

/// Rewrites expectations in a file of block-style YAML. The document begins after so many lines.
pub(crate) fn apply(file: &Path, skipped_lines: usize, updates: &[NewExpectation]) -> Result<(), String> {
    let cannot = |e: std::io::Error| format!("cannot update: {e}");
    let text = std::fs::read_to_string(file).map_err(cannot)?;
    let document: String = text.split_inclusive('\n').skip(skipped_lines).collect();
    let paths: Vec<&PathBuf> = updates.iter().map(|update| &update.at).collect();
    let positions = Position::all_in_yaml(document.as_bytes(), &paths, Limits::SERVER);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut placed: Vec<(Position, &NewExpectation)> = Vec::new();
    for (position, update) in positions.into_iter().zip(updates) {
        let position = position.ok_or("cannot update: a case has no position")?;
        placed.push((position, update));
    }
    // From the end, so that lines before an edit keep their numbers.
    placed.sort_by_key(|(position, _)| std::cmp::Reverse(position.line));
    for (position, update) in placed {
        // Positions count from 1.
        let start = skipped_lines + position.line - 1;
        rewrite(&mut lines, start, position.column - 1, &update.expect)?;
    }
    let mut text = lines.join("\n");
    text.push('\n');
    std::fs::write(file, text).map_err(cannot)
}

/// Rewrites the expectation of the case that begins at a line, and whose keys are indented by so many columns.
fn rewrite(lines: &mut Vec<String>, start: usize, indent: usize, expect: &Value) -> Result<(), String> {
    let first = lines.get(start).map_or("", String::as_str);
    // A flow mapping has no lines of its own that could be replaced.
    if first.trim_start().trim_start_matches("- ").starts_with('{') {
        return Err("cannot update: a case is written in one line; write it as a block".into());
    }
    let depth = |line: &str| line.len() - line.trim_start().len();
    let is_outside = |line: &str| !line.trim().is_empty() && depth(line) < indent;
    let rest = lines.get(start + 1..).unwrap_or_default();
    let length = rest
        .iter()
        .position(|line| is_outside(line))
        .unwrap_or(rest.len());
    let mut end = start + 1 + length;
    // Blank lines before the next case belong to neither, and stay where they are.
    while end > start + 1 && lines.get(end - 1).is_some_and(|line| line.trim().is_empty()) {
        end -= 1;
    }
    let is_expect = |line: &String| depth(line) == indent && line.trim_start().starts_with("expect:");
    let own = lines.get(start..end).unwrap_or_default();
    let replaced = match own.iter().position(is_expect) {
        // A case without `expect` gets one at its end.
        None => end..end,
        Some(n) => {
            let from = start + n;
            let block = lines.get(from + 1..end).unwrap_or_default();
            let is_next = |line: &String| !line.trim().is_empty() && depth(line) <= indent;
            let length = block.iter().position(is_next).unwrap_or(block.len());
            from..from + 1 + length
        }
    };
    let member: Map = [("expect", expect.clone())].into_iter().collect();
    let block = yaml::encode(&member.into());
    let block = block.lines().map(|line| format!("{:indent$}{line}", ""));
    lines.splice(replaced, block.collect::<Vec<_>>());
    Ok(())
}
