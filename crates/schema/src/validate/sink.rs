//! The treatment of failures by the full walk.

use super::error_site::ErrorSite;
use crate::correlate::{self, OldList, UnchangedElements};
use crate::plan::PlanNode;
use scantling_value::{BadValue, ErrorKind, ErrorList, FieldError, Path, Segment, Value};
use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

/// The walk stops at a failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop;

/// The treatment of failures by the full walk.
pub(crate) trait Sink {
    /// True if the sink collects all failures; false if the first one ends the walk.
    const COLLECTS: bool;

    /// Handles a failure.
    fn fail(&mut self, at: &Path<'_>, failure: impl FnOnce(&ErrorSite<'_>) -> FieldError)
    -> Result<(), Stop>;

    /// The number of failures.
    fn failures(&self) -> usize;

    /// Drops the failures after the first `before`.
    fn forgive(&mut self, before: usize);

    /// Returns whether a value is unchanged; then its failures are forgiven.
    fn unchanged(&self, node: &PlanNode, old: &Value, new: &Value) -> bool;

    /// Returns the old elements of a keyed list for lookup by new elements.
    fn correlate<'o>(&self, node: &'o PlanNode, old: &'o Value) -> Option<OldList<'o>>;

    /// True for each element of a list that an update is known to leave unchanged; empty if nothing is known.
    fn unchanged_elements(&self, at: &Path<'_>) -> Vec<bool>;

    /// Validates a branch of a junctor on its own.
    fn attempt(&self, branch: &PlanNode, value: &Value, at: &Path<'_>) -> Attempt;

    /// Takes over the failures of an attempt, and returns its number of matches.
    fn absorb(&mut self, attempt: Attempt) -> usize;
}

/// The result of checking a branch of a junctor.
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
pub(crate) struct FirstFailure<'a> {
    pub(crate) prefix: &'a Path<'a>,
    pub(crate) unchanged: Option<&'a UnchangedElements>,
}

impl Sink for FirstFailure<'_> {
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

    #[inline]
    fn unchanged_elements(&self, at: &Path<'_>) -> Vec<bool> {
        self.unchanged
            .map_or_else(Vec::new, |known| known.elements(self.prefix, at))
    }

    fn attempt(&self, branch: &PlanNode, value: &Value, at: &Path<'_>) -> Attempt {
        let mut first = FirstFailure {
            prefix: self.prefix,
            unchanged: None,
        };
        let answer = super::check(branch, value, None, at, &mut first);
        Attempt {
            // Matches choose among failed branches whose errors are reported, and this sink reports none.
            matched: 0,
            failed: answer.is_err(),
            errors: ErrorList::new(),
        }
    }

    fn absorb(&mut self, _: Attempt) -> usize {
        0
    }
}

/// Collects failures with kube-apiserver's messages.
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

    /// The failures without repetitions: branches of junctors repeat constraints of the schema around them.
    pub(crate) fn into_errors(self) -> ErrorList {
        let mut errors = self.errors;
        if errors.len() < 2 {
            return errors;
        }
        let mut seen = HashSet::new();
        errors.retain(|e| {
            // The value is not part of the identity: one check may show a number as integer and another as
            // float.
            let shown = matches!(e.kind(), ErrorKind::NotSupported).then(|| match e.value() {
                BadValue::Value(v) => v.to_json(),
                BadValue::Raw(text) => text.clone(),
                BadValue::Omitted => String::new(),
            });
            // kube-apiserver writes a key of the root as `.a` and a field as `a`, so they are different.
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

    fn unchanged_elements(&self, at: &Path<'_>) -> Vec<bool> {
        let known = self.ratchet.and_then(Ratchet::unchanged_elements);
        known.map_or_else(Vec::new, |known| known.elements(self.prefix, at))
    }

    fn attempt(&self, branch: &PlanNode, value: &Value, at: &Path<'_>) -> Attempt {
        let mut sink = CollectErrors {
            prefix: self.prefix,
            // Fields below junctors are not ratcheted.
            ratchet: None,
            // Half of the room, so that nested junctors together hold no more errors than one list.
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

/// Decides whether values are unchanged, and measures the time for it.
///
/// This crate reads no clock; the caller may pass one.
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
    /// Creates a ratchet with or without a clock.
    pub fn new(clock: Option<&'c dyn Fn() -> Duration>) -> Self {
        Ratchet {
            clock,
            ..Ratchet::default()
        }
    }

    /// Adds elements that are known to be unchanged and need not be compared.
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

    /// Returns whether a value is unchanged.
    pub fn unchanged(&self, node: &PlanNode, old: &Value, new: &Value) -> bool {
        let start = self.clock.map(|now| now());
        let same = correlate::unchanged(node, old, new);
        if let (Some(now), Some(start)) = (self.clock, start) {
            self.spent.set(self.spent.get() + now().saturating_sub(start));
        }
        same
    }

    /// The time spent on comparisons.
    pub fn spent(&self) -> Duration {
        self.spent.get()
    }
}
