//! Fields that updates may not change (`x-kubernetes-immutable`), and collections whose keys they may not
//! change (`x-kubernetes-immutable-keys`, `x-kubernetes-addition-only`, `x-kubernetes-deletion-only`).
//!
//! Old and new values are correlated before they are compared: fields and map entries by name, elements of
//! keyed lists by their keys, elements of other lists by their index. Values that do not correlate did not
//! change: they were added or removed with their parent. Elements of sets are their own keys, so they are
//! only added and removed.

pub use crate::correlate::UnchangedElements;

use crate::correlate::OldList;
use crate::plan::{Features, FieldLookup, PlanNode};
use crate::structural::{ListType, Mutability};
use scantling_value::{ErrorList, FieldError, Map, Path, Str, Value, deadline, same_text};
use std::cmp::Ordering;

/// The differences between an object and its old version.
#[derive(Debug, Default)]
pub struct Changes {
    /// True if anything but `metadata` differs.
    pub any: bool,
    /// The forbidden changes.
    pub forbidden: ErrorList,
    /// The elements that the update is known to leave unchanged.
    pub unchanged: UnchangedElements,
}

/// Compares an object with its old version in one pass, and finds forbidden changes.
pub fn changes(node: &PlanNode, old: &Map, new: &Map) -> Changes {
    let mut detector = ChangeDetector::default();
    detector.object(node, old, new, &Path::ROOT);
    detector.0
}

#[derive(Default)]
struct ChangeDetector(Changes);

impl ChangeDetector {
    /// Records a change that is allowed. After the first one, no comparison is needed.
    fn record_change(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.0.any = self.0.any || old != new;
    }

    fn value(&mut self, node: &PlanNode, old: Option<&Value>, new: Option<&Value>, at: &Path<'_>) {
        deadline::tick();
        if !node.has(Features::MUTABILITY) {
            return self.record_change(old, new);
        }
        match node.schema().mutability() {
            Some(Mutability::Immutable) => {
                let same = old == new;
                let unchanged = same
                    || old
                        .zip(new)
                        .is_some_and(|(old, new)| is_same(Some(node), old, new));
                if !unchanged {
                    self.0.forbidden.push(changed(at, old, new, "field is immutable"));
                }
                // Everything below is part of it.
                self.0.any = self.0.any || !same;
                return;
            }
            Some(keys) => check_keys(node, keys, old, new, at, &mut self.0.forbidden),
            None => {}
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => self.object(node, old, new, at),
            (Some(Value::Array(old)), Some(Value::Array(new))) => self.list(node, old, new, at),
            _ => self.record_change(old, new),
        }
    }

    fn object(&mut self, node: &PlanNode, old: &Map, new: &Map, at: &Path<'_>) {
        let mut members = FieldLookup::new(node);
        let (mut before, mut after) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                // Most members are in both.
                (Some((a, _)), Some((b, _))) if same_text(a, b) => Ordering::Equal,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let old = before.next_if(|_| order.is_le());
            let new = after.next_if(|_| order.is_ge());
            let Some((name, _)) = new.or(old) else { return };
            let (old, new) = (old.map(|(_, v)| v), new.map(|(_, v)| v));
            // The API machinery owns `metadata`, and its changes do not increment the generation.
            if at.is_root() && name == "metadata" {
                continue;
            }
            if let Some(field) = members.declared(name) {
                self.value(field, old, new, &at.field(name));
            } else {
                match node.additional() {
                    // An entry that was added or removed did not change.
                    Some(entry) if old.is_some() && new.is_some() => {
                        self.value(entry, old, new, &at.key(name));
                    }
                    _ => self.record_change(old, new),
                }
            }
        }
    }

    fn list(&mut self, node: &PlanNode, old: &[Value], new: &[Value], at: &Path<'_>) {
        let items = node.items().filter(|n| n.has(Features::MUTABILITY));
        let (Some(items), false) = (items, node.schema().list_type() == Some(ListType::Set)) else {
            self.0.any = self.0.any || old != new;
            return;
        };
        self.0.any = self.0.any || old.len() != new.len();
        match OldList::new(node, old) {
            Some(keyed) => self.keyed_list(items, &keyed, (old, new), at),
            None => {
                for (i, (old, new)) in old.iter().zip(new).enumerate() {
                    self.value(items, Some(old), Some(new), &at.index(i));
                }
            }
        }
    }

    fn keyed_list(
        &mut self,
        items: &PlanNode,
        keyed: &OldList<'_>,
        (old, new): (&[Value], &[Value]),
        at: &Path<'_>,
    ) {
        let mut same = Vec::with_capacity(new.len());
        for (i, new) in new.iter().enumerate() {
            // Most elements are unchanged and at the same index.
            let unchanged = old.get(i) == Some(new);
            same.push(unchanged);
            if unchanged {
                continue;
            }
            self.0.any = true;
            if let Some(old) = keyed.get(new) {
                self.value(items, Some(old), Some(new), &at.index(i));
            }
        }
        // Only the first of several elements with equal keys correlates.
        // Worthwhile only if the elements have limits, and sound only if equal elements always count as
        // unchanged.
        if items.has(Features::LIMITS)
            && items.equal_means_unchanged()
            && let Some(found) = keyed.found_by_their_keys()
        {
            let kept = same.iter().zip(found).map(|(same, found)| *same && found);
            self.0.unchanged.record(at, kept.collect());
        }
    }
}

/// Compares the keys of a map or keyed list, or the elements of a set. An absent collection has none.
fn check_keys(
    node: &PlanNode,
    rule: Mutability,
    old: Option<&Value>,
    new: Option<&Value>,
    at: &Path<'_>,
    errors: &mut ErrorList,
) {
    let why = match rule {
        Mutability::AdditionOnly => "only additions are allowed",
        Mutability::DeletionOnly => "only deletions are allowed",
        Mutability::Immutable | Mutability::ImmutableKeys => "keys are immutable",
    };
    let (may_add, may_remove) = (rule == Mutability::AdditionOnly, rule == Mutability::DeletionOnly);
    if !may_add {
        let old = CollectionKeys::new(node, old);
        for entry in entries(node, new).filter(|entry| !old.contain(entry)) {
            entry.with_path(node, at, Side::New, &mut |at| {
                errors.push(changed(at, None, Some(entry.value), why));
            });
        }
    }
    if !may_remove {
        let new = CollectionKeys::new(node, new);
        for entry in entries(node, old).filter(|entry| !new.contain(entry)) {
            entry.with_path(node, at, Side::Old, &mut |at| {
                errors.push(changed(at, Some(entry.value), None, why));
            });
        }
    }
}

/// The keys of a collection.
enum CollectionKeys<'v> {
    None,
    Map(&'v Map),
    Keyed(OldList<'v>),
    Set(Option<&'v PlanNode>, &'v [Value]),
}

impl<'v> CollectionKeys<'v> {
    fn new(node: &'v PlanNode, collection: Option<&'v Value>) -> Self {
        match collection {
            Some(Value::Object(map)) => CollectionKeys::Map(map),
            Some(Value::Array(list)) => match OldList::new(node, list) {
                Some(keyed) => CollectionKeys::Keyed(keyed),
                None => CollectionKeys::Set(node.items().map(|n| &**n), list),
            },
            _ => CollectionKeys::None,
        }
    }

    fn contain(&self, entry: &CollectionEntry<'_>) -> bool {
        match (self, entry.name) {
            (CollectionKeys::Map(map), Some(name)) => map.contains_key(name),
            (CollectionKeys::Keyed(keyed), None) => keyed.get(entry.value).is_some(),
            (CollectionKeys::Set(items, list), None) => {
                // Most elements are still at the same index.
                let beside = list.get(entry.index) == Some(entry.value);
                beside || list.iter().any(|other| is_same(*items, other, entry.value))
            }
            _ => false,
        }
    }
}

/// An entry of a map or an element of a list.
struct CollectionEntry<'v> {
    name: Option<&'v Str>,
    index: usize,
    value: &'v Value,
}

/// The object that contains an entry.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Old,
    New,
}

fn entries<'v>(
    node: &'v PlanNode,
    collection: Option<&'v Value>,
) -> impl Iterator<Item = CollectionEntry<'v>> {
    let (map, list) = match collection {
        Some(Value::Object(map)) => (Some(map), &[][..]),
        Some(Value::Array(list)) => (None, list.as_slice()),
        _ => (None, &[][..]),
    };
    // Declared fields are not keys.
    let undeclared = |name: &Str| node.property(name).is_none();
    let map = map
        .into_iter()
        .flat_map(Map::iter)
        .filter(move |(name, _)| undeclared(name));
    let entry = |(index, value)| CollectionEntry {
        name: None,
        index,
        value,
    };
    map.map(|(name, value)| CollectionEntry {
        name: Some(name),
        index: 0,
        value,
    })
    .chain(list.iter().enumerate().map(entry))
}

impl CollectionEntry<'_> {
    /// Calls a function with the entry's path. A removed element has no index in the new object and is named
    /// by its keys.
    fn with_path(&self, node: &PlanNode, at: &Path<'_>, side: Side, then: &mut dyn FnMut(&Path<'_>)) {
        match (self.name, side) {
            (Some(name), _) => then(&at.key(name)),
            (None, Side::New) => then(&at.index(self.index)),
            (None, Side::Old) => {
                let keys = node.list_keys().unwrap_or_default();
                let key = |name: &Str| Some((name.clone(), self.value.get(name)?.clone()));
                let keys: Map = keys.iter().filter_map(key).collect();
                let shown = if keys.is_empty() {
                    self.value.to_json()
                } else {
                    Value::Object(keys).to_json()
                };
                then(&at.key(&shown));
            }
        }
    }
}

fn changed(at: &Path<'_>, old: Option<&Value>, new: Option<&Value>, why: &str) -> FieldError {
    let was = match old {
        Some(old) => format!("was {}", old.to_json()),
        None => "was not set".into(),
    };
    FieldError::invalid(at, new.cloned().unwrap_or_default(), format!("{why}, {was}"))
}

/// Returns whether two values are stored alike, ignoring the order of sets. Numbers are compared as stored,
/// so `1.0` equals `1`.
fn is_same(node: Option<&PlanNode>, a: &Value, b: &Value) -> bool {
    deadline::tick();
    match (a, b) {
        (Value::Int(i), Value::Float(f)) | (Value::Float(f), Value::Int(i)) => has_same_json(*f, *i),
        (Value::Object(a), Value::Object(b)) => {
            let members = node.map(FieldLookup::new);
            same_objects(node, members, a, b)
        }
        (Value::Array(a), Value::Array(b)) => {
            let items = node.and_then(|n| n.items()).map(|n| &**n);
            let set = node.is_some_and(|n| n.schema().list_type() == Some(ListType::Set));
            a.len() == b.len()
                && if set {
                    same_sets(items, a, b)
                } else {
                    same_lists(items, a, b)
                }
        }
        _ => a == b,
    }
}

fn same_objects(node: Option<&PlanNode>, mut members: Option<FieldLookup<'_>>, a: &Map, b: &Map) -> bool {
    a.len() == b.len()
        && a.iter().zip(b.iter()).all(|((name, a), (other, b))| {
            let child = members
                .as_mut()
                .and_then(|m| m.declared(name))
                .or(node.and_then(|n| n.additional()));
            name == other && is_same(child.map(|n| &**n), a, b)
        })
}

fn same_lists(items: Option<&PlanNode>, a: &[Value], b: &[Value]) -> bool {
    a.iter().zip(b).all(|(a, b)| is_same(items, a, b))
}

/// Sets have unique elements, but objects stored before a list became a set may not: each element must match
/// a different one.
fn same_sets(items: Option<&PlanNode>, a: &[Value], b: &[Value]) -> bool {
    if same_lists(items, a, b) {
        return true;
    }
    let mut free: Vec<&Value> = b.iter().collect();
    a.iter().all(|a| {
        let partner = free.iter().position(|b| is_same(items, a, b));
        partner.map(|i| free.swap_remove(i)).is_some()
    })
}

fn has_same_json(f: f64, i: i64) -> bool {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    let same = f.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&f) && f as i64 == i;
    same
}
