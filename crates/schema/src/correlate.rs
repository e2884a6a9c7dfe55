//! Correlation: finds the old value that a new value replaces, and decides whether it is unchanged.
//!
//! Fields and map entries correlate by name, elements of keyed lists by their keys; elements of other lists
//! and undeclared values do not correlate.

use crate::fingerprint;
use crate::plan::{FieldLookup, PlanNode};
use crate::structural::ListType;
use scantling_value::{Map, Path, Segment, Str, Value, deadline};
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

/// Returns whether a value is unchanged: equal, except for the order of elements in keyed lists. An object
/// with undeclared members never counts as unchanged.
pub(crate) fn unchanged(node: &PlanNode, old: &Value, new: &Value) -> bool {
    deadline::tick();
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => unchanged_object(node, old, new),
        (Value::Array(old), Value::Array(new)) => unchanged_list(node, old, new),
        _ => old == new,
    }
}

fn unchanged_object(node: &PlanNode, old: &Map, new: &Map) -> bool {
    let mut members = FieldLookup::new(node);
    old.len() == new.len()
        // Members are sorted by name, so equal objects have the same sequence of names.
        && old.iter().zip(new.iter()).all(|((old_name, old), (name, new))| {
            old_name == name
                && members
                    .declared(name)
                    .or(node.additional())
                    .is_some_and(|member| unchanged(member, old, new))
        })
}

fn unchanged_list(node: &PlanNode, old: &[Value], new: &[Value]) -> bool {
    if old.len() != new.len() {
        return false;
    }
    // Elements of other lists do not correlate, so only the whole list can be unchanged.
    if new.is_empty() || node.schema().list_type() != Some(ListType::Map) {
        return old == new;
    }
    let (Some(old), Some(items)) = (OldList::new(node, old), node.items()) else {
        return false;
    };
    new.iter()
        .all(|new| old.get(new).is_some_and(|old| unchanged(items, old, new)))
}

/// The elements of keyed lists that an update is known to leave unchanged. Ratcheting tolerates their errors, so they
/// need no check.
#[derive(Debug, Default)]
pub struct UnchangedElements {
    lists: Vec<UnchangedList>,
}

#[derive(Debug)]
struct UnchangedList {
    /// The names of the fields on the path to the list.
    path: Vec<Str>,
    /// True for each element that is known to be unchanged.
    elements: Vec<bool>,
}

impl UnchangedElements {
    /// Returns whether no unchanged elements are known.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Records the elements of a list. Lists inside other lists are not recorded.
    pub(crate) fn record(&mut self, at: &Path<'_>, elements: Vec<bool>) {
        let name = |segment: Segment<'_>| match segment {
            Segment::Field(name) | Segment::Key(name) => Some(name.into()),
            Segment::Index(_) => None,
        };
        if let Some(path) = at.segments().into_iter().map(name).collect() {
            self.lists.push(UnchangedList { path, elements });
        }
    }

    /// True for each unchanged element of a list, whose path is relative to a prefix; empty if none are known.
    pub(crate) fn elements(&self, prefix: &Path<'_>, at: &Path<'_>) -> Vec<bool> {
        if self.is_empty() {
            return Vec::new();
        }
        let path: Vec<Segment<'_>> = prefix.segments().into_iter().chain(at.segments()).collect();
        let is_it = |list: &&UnchangedList| {
            let same = |(name, segment): (&Str, &Segment<'_>)| match segment {
                Segment::Field(field) | Segment::Key(field) => name == field,
                Segment::Index(_) => false,
            };
            list.path.len() == path.len() && list.path.iter().zip(&path).all(same)
        };
        let list = self.lists.iter().find(is_it);
        list.map_or_else(Vec::new, |list| list.elements.clone())
    }
}

/// The old elements of a keyed list, for lookup by new elements.
pub(crate) struct OldList<'o> {
    keys: &'o [Str],
    items: &'o [Value],
    /// The number of lookups so far.
    lookups: Cell<usize>,
    index: OnceCell<HashMap<ElementKeys<'o>, &'o Value>>,
}

/// The values of the key fields; values of different types differ.
type ElementKeys<'o> = Vec<KeyScalar<'o>>;

#[derive(PartialEq, Eq, Hash)]
enum KeyScalar<'o> {
    Bool(bool),
    Int(i64),
    Float(u64),
    String(&'o str),
}

impl<'o> OldList<'o> {
    /// The old elements, if the node is a keyed list and the old value a list.
    pub(crate) fn for_value(node: &'o PlanNode, old: &'o Value) -> Option<Self> {
        Self::new(node, old.as_array()?)
    }

    pub(crate) fn new(node: &'o PlanNode, items: &'o [Value]) -> Option<Self> {
        Some(OldList {
            keys: node.list_keys()?,
            items,
            lookups: Cell::new(0),
            index: OnceCell::new(),
        })
    }

    /// Returns the first old element with the keys of the new one. Elements without a key, or with a key that
    /// is not a scalar, do not correlate.
    pub(crate) fn get(&self, new: &Value) -> Option<&'o Value> {
        // A linear search beats an index for few elements, and for many elements if there are few lookups.
        const FEW_ELEMENTS: usize = 16;
        const FEW_LOOKUPS: usize = 4;
        let new = new.as_object()?;
        let lookups = self.lookups.replace(self.lookups.get().saturating_add(1));
        if self.items.len() <= FEW_ELEMENTS || lookups < FEW_LOOKUPS {
            return self.find_linearly(new);
        }
        let key = self.key(new)?;
        // The lookup borrows the new element only briefly; the map's keys borrow the old ones.
        let index = self.index.get_or_init(|| self.index());
        lookup(index, &key)
    }

    /// For each element, whether a lookup by its own keys finds it; `None` if some might have equal keys.
    pub(crate) fn found_by_their_keys(&self) -> Option<Vec<bool>> {
        let mut keys = fingerprint::KeyFingerprinter::new(self.keys);
        let is_scalar = |key: Option<&Value>| key.and_then(scalar).is_some();
        let prints = self.items.iter().map(|item| keys.fingerprint(item, is_scalar));
        let prints: Vec<(u64, bool)> = prints.collect();
        // Elements without a key are never found.
        let found = prints.iter().filter(|(_, found)| *found);
        let differ = fingerprint::all_differ(found.map(|(print, _)| *print));
        differ.then(|| prints.iter().map(|(_, found)| *found).collect())
    }

    fn find_linearly(&self, new: &Map) -> Option<&'o Value> {
        let [key] = self.keys else {
            let same = |old: &&Value| old.as_object().is_some_and(|old| self.same_keys(old, new));
            return self.items.iter().find(same);
        };
        let wanted = new.get(key).filter(|key| scalar(key).is_some())?;
        // Elements of a list mostly have the key at the same position, where the next lookup starts.
        let mut position = 0;
        let mut keys = self
            .items
            .iter()
            .map(|old| old.as_object()?.get_near(key, &mut position));
        let found = keys.position(|key| key == Some(wanted))?;
        self.items.get(found)
    }

    fn same_keys(&self, old: &Map, new: &Map) -> bool {
        self.keys.iter().all(|k| match (old.get(k), new.get(k)) {
            (Some(a), Some(b)) => scalar(a).is_some() && a == b,
            _ => false,
        })
    }

    fn key<'v>(&self, item: &'v Map) -> Option<ElementKeys<'v>> {
        self.keys.iter().map(|k| item.get(k).and_then(scalar)).collect()
    }

    fn index(&self) -> HashMap<ElementKeys<'o>, &'o Value> {
        let mut index = HashMap::with_capacity(self.items.len());
        for item in self.items {
            if let Some(key) = item.as_object().and_then(|map| self.key(map)) {
                // As in the linear search, the first of several elements with equal keys wins.
                index.entry(key).or_insert(item);
            }
        }
        index
    }
}

fn lookup<'o>(index: &HashMap<ElementKeys<'o>, &'o Value>, key: &ElementKeys<'_>) -> Option<&'o Value> {
    index.get(key).copied()
}

fn scalar(v: &Value) -> Option<KeyScalar<'_>> {
    match v {
        Value::Bool(b) => Some(KeyScalar::Bool(*b)),
        Value::Int(i) => Some(KeyScalar::Int(*i)),
        // Both zeros are equal.
        Value::Float(f) => Some(KeyScalar::Float((f + 0.0).to_bits())),
        Value::String(s) => Some(KeyScalar::String(s)),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
