//! Replays scenarios through an adapter and accounts for known differences.

use crate::scenario::{Scenario, ScenarioStep, scenarios};
use std::collections::BTreeMap;

/// The verdict of an adapter about a step: `None` if it does not decide it, otherwise whether its result is
/// the expected one.
pub type StepVerdict = Option<Result<(), String>>;

/// Steps with known differences and their reasons.
///
/// The format is one line per scenario: `name step step…: reason`. A `*` instead of steps excludes the
/// scenario. Empty lines and lines that begin with `#` are ignored.
#[derive(Debug, Default)]
pub struct KnownDifferences {
    steps: BTreeMap<String, Vec<usize>>,
    excluded: Vec<String>,
}

impl KnownDifferences {
    /// Parses a list.
    pub fn parse(text: &str) -> Self {
        let mut known = KnownDifferences::default();
        for line in text
            .lines()
            .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        {
            let (what, _) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("no reason: {line}"));
            let mut words = what.split(' ');
            let name = words.next().unwrap_or_default().to_owned();
            for word in words {
                match word.parse() {
                    Ok(step) => known.steps.entry(name.clone()).or_default().push(step),
                    Err(_) if word == "*" => known.excluded.push(name.clone()),
                    Err(_) => panic!("`{word}` is not a step: {line}"),
                }
            }
        }
        known
    }

    /// Returns whether a step of a scenario is listed.
    pub fn has(&self, scenario: &str, step: usize) -> bool {
        self.steps
            .get(scenario)
            .is_some_and(|steps| steps.contains(&step))
    }

    /// Returns whether a whole scenario is excluded.
    pub fn excludes(&self, scenario: &str) -> bool {
        self.excluded.iter().any(|name| name == scenario)
    }

    /// Returns the listed scenarios that are not among the given ones.
    pub fn missing<'k>(&'k self, names: &[&str]) -> Vec<&'k str> {
        let listed = self.steps.keys().chain(&self.excluded).map(String::as_str);
        listed.filter(|name| !names.contains(name)).collect()
    }

    /// Judges a step. A listed step that agrees is an error as well: its line must be removed.
    pub fn judge(&self, scenario: &str, step: usize, found: Result<(), String>) -> Result<(), String> {
        match (found, self.has(scenario, step)) {
            (Ok(()), false) | (Err(_), true) => Ok(()),
            (Ok(()), true) => Err(format!(
                "{scenario} step {step} is listed as a known difference, but agrees"
            )),
            (Err(why), false) => Err(format!("{scenario} step {step}: {why}")),
        }
    }
}

/// The counts of one run.
#[derive(Debug)]
pub struct Replay<'k> {
    title: String,
    known: &'k KnownDifferences,
    scenarios: usize,
    checked: usize,
    undecided: usize,
    differences: Vec<String>,
}

impl<'k> Replay<'k> {
    /// Starts a run.
    pub fn new(title: impl Into<String>, known: &'k KnownDifferences) -> Self {
        Replay {
            title: title.into(),
            known,
            scenarios: 0,
            checked: 0,
            undecided: 0,
            differences: Vec::new(),
        }
    }

    /// Counts a scenario. Returns whether to replay it.
    pub fn begin(&mut self, scenario: &Scenario) -> bool {
        let replayed = !self.known.excludes(&scenario.name);
        self.scenarios += usize::from(replayed);
        replayed
    }

    /// Counts a step.
    pub fn step(&mut self, scenario: &Scenario, number: usize, verdict: StepVerdict) {
        let Some(found) = verdict else {
            self.undecided += 1;
            return;
        };
        self.checked += 1;
        let request = scenario
            .steps
            .get(number)
            .map(|step| format!("{} {}", step.verb, step.url()));
        let found = found.map_err(|why| format!("{}\n{why}", request.unwrap_or_default()));
        self.differences
            .extend(self.known.judge(&scenario.name, number, found).err());
    }

    /// Prints the counts. Fails if a step differs, or if fewer than `at_least` steps were checked.
    #[track_caller]
    pub fn finish(self, at_least: usize) {
        let Replay {
            title,
            scenarios,
            checked,
            undecided,
            differences,
            ..
        } = self;
        let agree = checked - differences.len().min(checked);
        println!(
            "conformance: {title} ({scenarios} scenarios, {undecided} steps not decided here) {agree}/{checked}"
        );
        assert!(
            differences.is_empty(),
            "{} of {checked} steps differ:\n{}",
            differences.len(),
            differences.join("\n\n")
        );
        assert!(checked >= at_least, "{title}: only {checked} steps were checked");
    }
}

/// Replays all scenarios of an area. Each scenario gets a new adapter.
#[track_caller]
pub fn replay<A>(
    name: &str,
    area: &str,
    known: &KnownDifferences,
    at_least: usize,
    new: impl Fn() -> A,
    step: impl Fn(&mut A, usize, &ScenarioStep) -> StepVerdict,
) {
    let mut run = Replay::new(format!("{name}/{area}"), known);
    for scenario in scenarios(area) {
        if !run.begin(&scenario) {
            continue;
        }
        let mut adapter = new();
        for (number, request) in scenario.steps.iter().enumerate() {
            let verdict = step(&mut adapter, number, request);
            run.step(&scenario, number, verdict);
        }
    }
    run.finish(at_least);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_differences_must_differ() {
        let known = KnownDifferences::parse("# comment\n\na/b 1 2: reason\na/c *: reason\n");
        assert!(known.judge("a/b", 1, Err("x".into())).is_ok());
        assert!(known.judge("a/b", 1, Ok(())).is_err());
        assert!(known.judge("a/b", 3, Err("x".into())).is_err());
        assert!(known.excludes("a/c") && !known.excludes("a/b"));
        assert_eq!(known.missing(&["a/b"]), ["a/c"]);
    }
}
