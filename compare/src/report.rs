//! Counts, and one example of each class of differences.

use crate::answer::{Answer, class};
use crate::episode::Target;
use crate::minimise::Minimised;
use std::collections::BTreeMap;

/// Classes of differences that are right: `class # reason`.
const KNOWN: &str = include_str!("../known_differences.txt");

#[derive(Default)]
struct Class {
    count: usize,
    kinds: Vec<&'static str>,
    example: Option<Minimised>,
}

/// The results of a run.
#[derive(Default)]
pub(crate) struct Report {
    steps: usize,
    accepted: usize,
    equal: usize,
    /// The counts when the current kind began.
    before: [usize; 3],
    classes: BTreeMap<String, Class>,
    unstable: usize,
}

impl Report {
    /// The number of requests.
    pub(crate) fn steps(&self) -> usize {
        self.steps
    }

    /// Begins a kind. Returns the number of requests before.
    pub(crate) fn begin(&mut self) -> usize {
        self.before = [self.steps, self.accepted, self.equal];
        self.steps
    }

    /// Prints the counts of a kind.
    pub(crate) fn end(&self, target: &Target) {
        let [steps, accepted, equal] = self.before;
        println!(
            "compare: {} {}/{} ({} accepted)",
            target.resource.kind(),
            self.equal - equal,
            self.steps - steps,
            self.accepted - accepted,
        );
    }

    /// Counts a request.
    pub(crate) fn count(&mut self, theirs: &Answer, is_equal: bool) {
        self.steps += 1;
        self.accepted += usize::from(theirs.is_success());
        self.equal += usize::from(is_equal);
    }

    /// Counts a difference. Returns whether it is the first of its class.
    pub(crate) fn is_new(&mut self, kind: &'static str, differences: &[String]) -> bool {
        let class = self.classes.entry(class(differences)).or_default();
        class.count += 1;
        if !class.kinds.contains(&kind) {
            class.kinds.push(kind);
        }
        class.example.is_none()
    }

    /// Adds the example of a class.
    pub(crate) fn add(&mut self, example: Minimised) {
        if example.is_reproducible {
            let class = self.classes.entry(class(&example.differences)).or_default();
            class.example = Some(example);
        } else {
            self.unstable += 1;
        }
    }

    /// Prints all classes, the most frequent last. Returns whether all are known.
    pub(crate) fn finish(self) -> bool {
        let known: Vec<&str> = KNOWN
            .lines()
            .filter_map(|line| Some(line.split_once(" # ")?.0))
            .collect();
        let mut classes: Vec<(String, Class)> = self.classes.into_iter().collect();
        classes.retain(|(name, class)| class.example.is_some() && !known.contains(&name.as_str()));
        classes.sort_by_key(|(_, class)| class.count);
        for (name, class) in &classes {
            println!("\n{} times, {}: {name}", class.count, class.kinds.join(", "));
            let Some(example) = &class.example else { continue };
            for request in &example.requests {
                println!("  > {}", request.text());
            }
            for line in example.differences.iter().take(12) {
                println!("  {}", line.chars().take(1000).collect::<String>());
            }
        }
        println!(
            "\ncompare: {}/{} ({} accepted, {} differences not reproduced)",
            self.equal, self.steps, self.accepted, self.unstable
        );
        classes.is_empty()
    }
}
