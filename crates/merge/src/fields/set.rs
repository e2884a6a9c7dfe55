//! A set of field paths as a trie.

use super::{Element, FieldPath};
use itertools::{EitherOrBoth, Itertools};
use scantling_value::deadline;
use std::cmp::Ordering;

/// A set of field paths.
///
/// Paths share common prefixes. A path can be in the set with or without its descendants.
// INVARIANT: entries are strictly ascending, and each is a member or has descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    entries: Vec<SetEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SetEntry {
    element: Element,
    /// True if the path that ends here is in the set.
    member: bool,
    below: Set,
}

impl SetEntry {
    fn new(element: Element) -> Self {
        SetEntry {
            element,
            member: false,
            below: Set::new(),
        }
    }

    fn is_needed(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}

impl Set {
    /// The empty set.
    pub const fn new() -> Self {
        Set { entries: Vec::new() }
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.entries
            .iter()
            .map(|e| usize::from(e.member) + e.below.len())
            .sum()
    }

    fn find(&self, element: &Element) -> Result<usize, usize> {
        // Sets are usually built in order.
        match self.entries.last() {
            Some(last) if last.element < *element => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|e| e.element.cmp(element)),
        }
    }

    fn entry(&self, element: &Element) -> Option<&SetEntry> {
        self.find(element).ok().and_then(|i| self.entries.get(i))
    }

    fn entry_mut(&mut self, element: &Element) -> Option<&mut SetEntry> {
        let at = match self.find(element) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, SetEntry::new(element.clone()));
                at
            }
        };
        self.entries.get_mut(at)
    }

    /// Builds a set from entries in any order, usually ascending.
    fn from_entries(mut entries: Vec<SetEntry>) -> Self {
        let ascending = entries
            .windows(2)
            .all(|w| matches!(w, [a, b] if a.element < b.element));
        if !ascending {
            entries.sort_by(|a, b| a.element.cmp(&b.element));
            entries.dedup_by(|later, earlier| {
                let same = later.element == earlier.element;
                if same {
                    earlier.member |= later.member;
                    let below = std::mem::take(&mut earlier.below);
                    earlier.below = below.union(std::mem::take(&mut later.below));
                }
                same
            });
        }
        Set { entries }
    }

    /// Looks up a field: whether its own path is in the set, and its descendants.
    pub(crate) fn field(&self, name: &str) -> Option<(bool, &Set)> {
        let found = self.entries.binary_search_by(|e| match &e.element {
            Element::Field(field) => field.as_str().cmp(name),
            // Fields precede all other kinds of elements.
            _ => Ordering::Greater,
        });
        let entry = found.ok().and_then(|i| self.entries.get(i))?;
        Some((entry.member, &entry.below))
    }

    /// Looks up an element: whether its own path is in the set, and its descendants.
    pub(crate) fn step(&self, element: &Element) -> Option<(bool, &Set)> {
        self.entry(element).map(|e| (e.member, &e.below))
    }

    /// Adds the path of one element.
    fn add(&mut self, element: &Element) {
        if let Some(entry) = self.entry_mut(element) {
            entry.member = true;
        }
    }

    /// Adds a path. The empty path is ignored.
    pub fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => self.add(last),
            [first, rest @ ..] => {
                if let Some(entry) = self.entry_mut(first) {
                    entry.below.insert(rest);
                }
            }
        }
    }

    /// Returns whether the path is in the set.
    pub fn contains(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.has(last),
            [first, rest @ ..] => self.below(first).is_some_and(|s| s.contains(rest)),
        }
    }

    /// Returns whether the path of one element is in the set.
    fn has(&self, element: &Element) -> bool {
        self.entry(element).is_some_and(|e| e.member)
    }

    /// The descendants of an element, if any.
    fn below(&self, element: &Element) -> Option<&Set> {
        self.entry(element).map(|e| &e.below).filter(|s| !s.is_empty())
    }

    /// The top-level elements: whether each is in the set itself, and its descendants.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&Element, bool, &Set)> {
        self.entries.iter().map(|e| (&e.element, e.member, &e.below))
    }

    /// All paths; on each level, the paths that end there come first.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<Element>, out: &mut Vec<FieldPath>) {
        // structured-merge-diff stores members and children separately and lists members first.
        for entry in self.entries.iter().filter(|e| e.member) {
            let mut path = prefix.clone();
            path.push(entry.element.clone());
            out.push(FieldPath(path));
        }
        for entry in self.entries.iter().filter(|e| !e.below.is_empty()) {
            prefix.push(entry.element.clone());
            entry.below.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    /// Combines the entries of both sets that have the same element. The other entries of this set are kept or dropped;
    /// those of the other set are dropped.
    fn combine(self, other: &Set, keep: bool, both: impl Fn(SetEntry, &SetEntry) -> SetEntry + Copy) -> Set {
        if keep && other.is_empty() {
            return self;
        }
        deadline::tick_for(self.entries.len() + other.entries.len());
        let mut entries = Vec::with_capacity(if keep { self.entries.len() } else { 0 });
        for pair in (self.entries.into_iter()).merge_join_by(&other.entries, |a, b| a.element.cmp(&b.element))
        {
            match pair {
                EitherOrBoth::Both(a, b) => entries.push(both(a, b)),
                EitherOrBoth::Left(a) if keep => entries.push(a),
                EitherOrBoth::Left(_) | EitherOrBoth::Right(_) => {}
            }
        }
        // Two entries of the same element may have nothing in common.
        entries.retain(SetEntry::is_needed);
        Set { entries }
    }

    /// The union.
    #[must_use]
    pub fn union(self, other: Set) -> Set {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other } else { self };
        }
        deadline::tick_for(self.entries.len() + other.entries.len());
        let pairs = (self.entries.into_iter()).merge_join_by(other.entries, |a, b| a.element.cmp(&b.element));
        let entries = pairs.map(|pair| match pair {
            EitherOrBoth::Both(a, b) => SetEntry {
                element: a.element,
                member: a.member || b.member,
                below: a.below.union(b.below),
            },
            EitherOrBoth::Left(one) | EitherOrBoth::Right(one) => one,
        });
        Set {
            entries: entries.collect(),
        }
    }

    /// The union of several sets. Sets are merged pairwise, so that a large set is not merged with each small one.
    pub(crate) fn union_of(mut sets: Vec<Set>) -> Set {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            let mut merged = Vec::with_capacity(rest.len().div_ceil(2));
            while let Some(first) = rest.next() {
                merged.push(match rest.next() {
                    Some(second) => first.union(second),
                    None => first,
                });
            }
            sets = merged;
        }
        sets.pop().unwrap_or_default()
    }

    /// The intersection.
    #[must_use]
    pub fn intersection(self, other: &Set) -> Set {
        self.combine(other, false, |a, b| SetEntry {
            element: a.element,
            member: a.member && b.member,
            below: a.below.intersection(&b.below),
        })
    }

    /// The difference.
    #[must_use]
    pub fn difference(self, other: &Set) -> Set {
        self.combine(other, true, |a, b| SetEntry {
            element: a.element,
            member: a.member && !b.member,
            below: a.below.difference(&b.below),
        })
    }

    /// The paths of this set that are neither in the other nor descendants of its paths.
    #[must_use]
    pub fn recursive_difference(self, other: &Set) -> Set {
        self.combine(other, true, |a, b| SetEntry {
            element: a.element,
            member: a.member && !b.member,
            below: if b.member {
                Set::new()
            } else {
                a.below.recursive_difference(&b.below)
            },
        })
    }

    /// Returns whether this set is a subset of the other.
    pub fn is_subset(&self, other: &Set) -> bool {
        self.entries.iter().all(|a| {
            other
                .entry(&a.element)
                .is_some_and(|b| (b.member || !a.member) && a.below.is_subset(&b.below))
        })
    }
}

/// Builds a set.
#[derive(Default)]
pub(crate) struct SetBuilder(Vec<SetEntry>);

impl SetBuilder {
    /// Adds an element if its own path is in the set or it has descendants.
    pub(crate) fn push(&mut self, element: Element, member: bool, below: Set) {
        let entry = SetEntry {
            element,
            member,
            below,
        };
        if entry.is_needed() {
            self.0.push(entry);
        }
    }

    /// The set.
    pub(crate) fn finish(self) -> Set {
        Set::from_entries(self.0)
    }
}

impl FromIterator<FieldPath> for Set {
    fn from_iter<I: IntoIterator<Item = FieldPath>>(iter: I) -> Self {
        let mut set = Set::new();
        for path in iter {
            set.insert(&path.0);
        }
        set
    }
}
