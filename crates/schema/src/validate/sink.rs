//! What a walk does with a failure.

use super::error_site::ErrorSite;
use crate::correlate::{self, OldList, UnchangedElements};
use crate::plan::PlanNode;
use scantling_value::{BadValue, ErrorKind, ErrorList, FieldError, Path, Segment, Value};
use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

/// The walk has its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop;

/// What a walk does with a failure.
pub(crate) trait Sink {
    /// Whether failures are wanted in words, all of them.
    const COLLECTS: bool;

    /// Takes a failure.
    fn fail(&mut self, at: &Path<'_>, failure: impl FnOnce(&ErrorSite<'_>) -> FieldError)
    -> Result<(), Stop>;

    /// The number of failures taken.
    fn failures(&self) -> usize;

    /// Forgets the failures after that number.
    fn forgive(&mut self, before: usize);

    /// Whether the value is what it was before.
    fn unchanged(&self, node: &PlanNode, old: &Value, new: &Value) -> bool;

    /// The old elements of a keyed list, to be found by the new ones.
    fn correlate<'o>(&self, node: &'o PlanNode, old: &'o Value) -> Option<OldList<'o>>;

    /// ValueChecks a branch of a junctor on its own.
    fn attempt(&self, branch: &PlanNode, value: &Value, at: &Path<'_>) -> Attempt;

    /// Takes over the failures of an attempt, and returns how much matched in it.
    fn absorb(&mut self, attempt: Attempt) -> usize;
}

/// How a branch of a junctor fared.
pub(crate) struct Attempt {
    pub(crate) matched: usize,
    failed: bool,
    errors: ErrorList,
}

impl Attempt {
    pub(crate) fn is_valid(&self) -> bool {
        !self.failed
    }
}

/// Stops at the first failure.
pub(crate) struct FirstFailure;

impl Sink for FirstFailure {
    const COLLECTS: bool = false;

    fn fail(&mut self, _: &Path<'_>, _: impl FnOnce(&ErrorSite<'_>) -> FieldError) -> Result<(), Stop> {
        Err(Stop)
    }

    fn failures(&self) -> usize {
        0
    }

    fn forgive(&mut self, _: usize) {}

    fn unchanged(&self, _: &PlanNode, _: &Value, _: &Value) -> bool {
        false
    }

    fn correlate<'o>(&self, _: &'o PlanNode, _: &'o Value) -> Option<OldList<'o>> {
        None
    }

    fn attempt(&self, branch: &PlanNode, value: &Value, at: &Path<'_>) -> Attempt {
        let answer = super::check(branch, value, None, at, &mut FirstFailure);
        Attempt {
            matched: 0,
            failed: answer.is_err(),
            errors: ErrorList::new(),
        }
    }

    fn absorb(&mut self, _: Attempt) -> usize {
        0
    }
}

/// Collects failures in the words of a server.
pub(crate) struct CollectErrors<'a> {
    prefix: &'a Path<'a>,
    ratchet: Option<&'a Ratchet<'a>>,
    errors: ErrorList,
}

impl<'a> CollectErrors<'a> {
    pub(crate) fn new(prefix: &'a Path<'a>, ratchet: Option<&'a Ratchet<'a>>) -> Self {
        CollectErrors {
            prefix,
            ratchet,
            errors: ErrorList::new(),
        }
    }

    /// The failures, each once: branches of junctors repeat what the schema around them says.
    pub(crate) fn into_errors(self) -> ErrorList {
        let mut errors = self.errors;
        if errors.len() < 2 {
            return errors;
        }
        let mut seen = HashSet::new();
        errors.retain(|e| {
            // The value is no part of it: a number may be shown as integer by one check and as float by another.
            let shown = matches!(e.kind(), ErrorKind::NotSupported).then(|| match e.value() {
                BadValue::Value(v) => v.to_json(),
                BadValue::Raw(text) => text.clone(),
                BadValue::Omitted => String::new(),
            });
            // A server writes a key of the root as `.a` and a field as `a`: to it, these are two places.
            let below_key = matches!(e.at().segments().next(), Some(Segment::Key(_)));
            seen.insert((
                e.kind().reason(),
                e.field().to_owned(),
                e.detail().to_owned(),
                shown,
                below_key,
            ))
        });
        errors
    }
}

impl Sink for CollectErrors<'_> {
    const COLLECTS: bool = true;

    #[cold]
    fn fail(
        &mut self,
        at: &Path<'_>,
        failure: impl FnOnce(&ErrorSite<'_>) -> FieldError,
    ) -> Result<(), Stop> {
        let prefix = self.prefix;
        self.errors.push_with(|| failure(&ErrorSite { prefix, at }));
        Ok(())
    }

    fn failures(&self) -> usize {
        self.errors.total()
    }

    fn forgive(&mut self, before: usize) {
        self.errors.truncate(before);
    }

    fn unchanged(&self, node: &PlanNode, old: &Value, new: &Value) -> bool {
        self.ratchet.is_some_and(|r| r.unchanged(node, old, new))
    }

    fn correlate<'o>(&self, node: &'o PlanNode, old: &'o Value) -> Option<OldList<'o>> {
        OldList::for_value(node, old)
    }

    fn attempt(&self, branch: &PlanNode, value: &Value, at: &Path<'_>) -> Attempt {
        let mut sink = CollectErrors {
            prefix: self.prefix,
            ratchet: None,
            errors: self.errors.half(),
        };
        let matched = super::check(branch, value, None, at, &mut sink).unwrap_or(0);
        Attempt {
            matched,
            failed: !sink.errors.is_empty(),
            errors: sink.errors,
        }
    }

    fn absorb(&mut self, attempt: Attempt) -> usize {
        self.errors.extend(attempt.errors);
        attempt.matched
    }
}

/// Tells unchanged values from changed ones, and how long that took.
///
/// This crate reads no clock: whoever wants to know the time brings one.
#[derive(Default)]
pub struct Ratchet<'c> {
    clock: Option<&'c dyn Fn() -> Duration>,
    spent: Cell<Duration>,
    unchanged: Option<&'c UnchangedElements>,
}

impl std::fmt::Debug for Ratchet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ratchet")
            .field("spent", &self.spent)
            .finish_non_exhaustive()
    }
}

impl<'c> Ratchet<'c> {
    /// A measure with or without a clock.
    pub fn new(clock: Option<&'c dyn Fn() -> Duration>) -> Self {
        Ratchet {
            clock,
            ..Ratchet::default()
        }
    }

    /// A measure that need not look at what is known to be unchanged.
    #[must_use]
    pub fn with_unchanged(self, unchanged: &'c UnchangedElements) -> Self {
        Ratchet {
            unchanged: Some(unchanged),
            ..self
        }
    }

    pub(crate) fn unchanged_elements(&self) -> Option<&'c UnchangedElements> {
        self.unchanged
    }

    /// Whether a value is what it was before.
    pub fn unchanged(&self, node: &PlanNode, old: &Value, new: &Value) -> bool {
        let start = self.clock.map(|now| now());
        let same = correlate::unchanged(node, old, new);
        if let (Some(now), Some(start)) = (self.clock, start) {
            self.spent.set(self.spent.get() + now().saturating_sub(start));
        }
        same
    }

    /// The time spent on comparing.
    pub fn spent(&self) -> Duration {
        self.spent.get()
    }
}
