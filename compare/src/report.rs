//! Counts, and one example of each class of differences.

use crate::answer::{Answer, class};
use crate::episode::Target;
use crate::minimise::Minimised;
use std::collections::BTreeMap;

/// Classes of differences that are right: `class # reason`.
const KNOWN: &str = include_str!("../known_differences.txt");

fn is_known(class: &str) -> bool {
    let mut known = KNOWN.lines().filter_map(|line| Some(line.split_once(" # ")?.0));
    known.any(|name| name == class)
}

#[derive(Default)]
struct Class {
    count: usize,
    kinds: Vec<&'static str>,
    /// True once an example was printed.
    is_shown: bool,
}

/// The results of a run.
#[derive(Default)]
pub(crate) struct RunReport {
    steps: usize,
    accepted: usize,
    equal: usize,
    /// The counts when the current kind began.
    before: [usize; 3],
    classes: BTreeMap<String, Class>,
    unstable: usize,
}

impl RunReport {
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
        !class.is_shown
    }

    /// Adds the example of a class, and prints it.
    pub(crate) fn add(&mut self, example: &Minimised) {
        if !example.is_reproducible {
            self.unstable += 1;
            return;
        }
        let name = class(&example.differences);
        let class = self.classes.entry(name.clone()).or_default();
        class.is_shown = true;
        if is_known(&name) {
            return;
        }
        println!("\n{name}");
        for request in &example.requests {
            println!("  > {}", request.text());
        }
        for line in example.differences.iter().take(12) {
            println!("  {}", line.chars().take(1000).collect::<String>());
        }
    }

    /// Prints how often each class occurred, the most frequent last. Returns whether all are known.
    pub(crate) fn finish(self) -> bool {
        let mut classes: Vec<(String, Class)> = self.classes.into_iter().collect();
        classes.retain(|(name, class)| class.is_shown && !is_known(name));
        classes.sort_by_key(|(_, class)| class.count);
        println!();
        for (name, class) in &classes {
            println!("{} times, {}: {name}", class.count, class.kinds.join(", "));
        }
        println!(
            "\ncompare: {}/{} ({} accepted, {} differences not reproduced)",
            self.equal, self.steps, self.accepted, self.unstable
        );
        classes.is_empty()
    }
}
