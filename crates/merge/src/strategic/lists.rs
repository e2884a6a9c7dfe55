//! Lists that merge: by a key if their elements are objects, by value otherwise.
//!
//! Elements are found through an index, so the cost is linear in the lists. Where the order of elements only
//! follows from kube-apiserver's implementation, a comment says so.

use super::{LIST_OF_LISTS, ListDirective, ListStrategy, PATCH, SET_ORDER, StrategicError, strategy};
use super::{bad_directive, bad_type, merge_objects, no_merge_key};
use scantling_schema::structural::{Structural, Type};
use scantling_value::{Str, Value, ValueKey, deadline, go};
use std::collections::{BTreeMap, BTreeSet};

/// A list after a merge.
pub(super) struct MergedList {
    pub(super) items: Vec<Value>,
    /// The list that determines the order: the original list as kube-apiserver still has it. Objects may have
    /// only their merge key.
    pub(super) before: Vec<Value>,
}

/// The identity of an element: the value of the merge key, if the list has one, or the element itself.
fn identity<'v>(item: &'v Value, merge_key: Option<&str>) -> Result<ValueKey<'v>, StrategicError> {
    match (merge_key, item) {
        (None, item) => Ok(ValueKey(item)),
        (Some(key), Value::Object(map)) => {
            let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
            Ok(ValueKey(value))
        }
        (Some(_), other) => Err(bad_type("map[string]interface {}", other)),
    }
}

/// The first position of each element of a list.
struct ElementIndex<'v> {
    positions: BTreeMap<ValueKey<'v>, usize>,
    /// The first element that has no key because it is not an object.
    other: Option<usize>,
}

impl<'v> ElementIndex<'v> {
    fn new(list: &'v [Value], merge_key: Option<&str>) -> Self {
        let mut index = ElementIndex {
            positions: BTreeMap::new(),
            other: None,
        };
        for (i, item) in list.iter().enumerate() {
            deadline::tick();
            match (merge_key, item) {
                (None, item) => {
                    index.positions.entry(ValueKey(item)).or_insert(i);
                }
                (Some(key), Value::Object(map)) => {
                    if let Some(value) = map.get(key) {
                        index.positions.entry(ValueKey(value)).or_insert(i);
                    }
                }
                (Some(_), _) => index.other = index.other.or(Some(i)),
            }
        }
        index
    }

    fn get(&self, identity: ValueKey<'_>) -> Option<usize> {
        self.positions.get(&identity).copied()
    }

    /// Finds an element like `get`, but stops at elements that are not objects.
    fn find(&self, identity: ValueKey<'_>) -> Result<Option<usize>, StrategicError> {
        match (self.get(identity), self.other) {
            (Some(found), Some(other)) if found < other => Ok(Some(found)),
            (_, Some(other)) => Err(StrategicError::Internal(format!(
                "value for key {other} is not a map"
            ))),
            (found, None) => Ok(found),
        }
    }
}

/// The kind of elements of a merging list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Objects,
    Scalars,
}

/// Lists that are merged with each other.
pub(super) struct ListGroup<'v>(pub(super) &'v [&'v [Value]]);

impl ListGroup<'_> {
    /// The kind of all elements.
    pub(super) fn kind(&self) -> Result<ElementKind, StrategicError> {
        let mut items = self.0.iter().copied().flatten();
        let first = match items.next() {
            None => {
                let text = "no elements in any of the given slices";
                return Err(StrategicError::Internal(text.into()));
            }
            Some(Value::Array(_)) => return Err(LIST_OF_LISTS),
            Some(first) => first,
        };
        // Go compares types, so integers and floats do not mix.
        let same = |item: &Value| std::mem::discriminant(first) == std::mem::discriminant(item);
        if !items.all(same) {
            let all = self.0.iter().map(|l| Value::Array(l.to_vec())).collect();
            return Err(StrategicError::Internal(format!(
                "list element types are not identical: {}",
                go::value_v(&Value::Array(all))
            )));
        }
        Ok(match first {
            Value::Object(_) => ElementKind::Objects,
            _ => ElementKind::Scalars,
        })
    }
}

/// Checks that a list in a patch has the order given by `$setElementOrder`.
pub(super) fn check_order(
    items: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), StrategicError> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let directive = |item: &Value| item.get(PATCH).is_some();
    let mut stay = Vec::with_capacity(items.len());
    for item in items {
        if merge_key.is_some() && !matches!(item, Value::Object(_)) {
            return Err(bad_type("map[string]interface {}", item));
        }
        if merge_key.is_none() || item.get(PATCH).and_then(Value::as_str) != Some("delete") {
            stay.push(item);
        }
    }
    let mut left = stay.into_iter().peekable();
    for wanted in order {
        // Other directives have no position in the order.
        while left.next_if(|item| directive(item)).is_some() {}
        let Some(item) = left.peek() else { break };
        if merge_key.is_some() && !matches!(wanted, Value::Object(_)) {
            return Err(bad_type("map[string]interface {}", wanted));
        }
        if identity(item, merge_key)? == identity(wanted, merge_key)? {
            left.next();
        }
    }
    match left.peek() {
        None => Ok(()),
        Some(_) => {
            let display = |list: &[Value]| go::value_v(&Value::Array(list.to_vec()));
            Err(StrategicError::Internal(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                display(items),
                display(order)
            )))
        }
    }
}

/// Merges a list of a patch into the original one: by key, by value, or by replacing it.
pub(super) fn merge_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    schema: Option<&Structural>,
    purpose: ListDirective,
) -> Result<MergedList, StrategicError> {
    let (strategy, merge_key) = strategy(schema);
    if strategy != ListStrategy::Merge && purpose == ListDirective::Set {
        return Ok(MergedList {
            items: patch,
            before: original,
        });
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(MergedList {
            before: original.clone(),
            items: original,
        });
    }
    match ListGroup(&[&original, &patch]).kind()? {
        ElementKind::Scalars if purpose == ListDirective::Delete => {
            let delete = ElementIndex::new(&patch, None);
            let (mut items, before) = (original.clone(), original);
            items.retain(|item| delete.get(ValueKey(item)).is_none());
            Ok(MergedList { items, before })
        }
        ElementKind::Scalars => merge_scalars(original, &patch, merge_key.map(Str::as_str)),
        ElementKind::Objects => {
            let Some(key) = merge_key else {
                let element = go_kind(schema.and_then(|s| s.items.as_deref()));
                let text = format!("cannot merge lists without merge key for {element}");
                return Err(StrategicError::Internal(text));
            };
            merge_keyed(original, patch, key, schema.and_then(|s| s.items.as_deref()))
        }
    }
}

/// The Go kind of the type that kube-apiserver has for values of a schema.
fn go_kind(schema: Option<&Structural>) -> &'static str {
    match schema.and_then(|s| s.ty) {
        Some(Type::String) => "string",
        Some(Type::Boolean) => "bool",
        Some(Type::Integer) => "int64",
        Some(Type::Number) => "float64",
        Some(Type::Array) => "slice",
        Some(Type::Object) if schema.is_some_and(|s| s.additional.is_some()) => "map",
        Some(Type::Object) | None => "struct",
    }
}

fn merge_scalars(
    original: Vec<Value>,
    patch: &[Value],
    merge_key: Option<&str>,
) -> Result<MergedList, StrategicError> {
    let both: Vec<Value> = original.iter().chain(patch).cloned().collect();
    let items = deduplicate(both);
    // kube-apiserver works in place: if nothing is added, the original list loses its duplicates, too.
    let before = if patch.is_empty() { items.clone() } else { original };
    let list = MergedList {
        items,
        before: before.clone(),
    };
    let items = arrange(list, patch, merge_key, Ok(ElementKind::Scalars))?;
    Ok(MergedList { items, before })
}

/// Removes duplicates. As on kube-apiserver, the last element fills the gap.
fn deduplicate(items: Vec<Value>) -> Vec<Value> {
    let mut kinds: BTreeMap<ValueKey<'_>, usize> = BTreeMap::new();
    let kind_of: Vec<usize> = items
        .iter()
        .map(|item| {
            let next = kinds.len();
            *kinds.entry(ValueKey(item)).or_insert(next)
        })
        .collect();
    if kinds.len() == items.len() {
        return items;
    }
    // The class of equal elements at each position, and the positions of each class.
    let mut slots: Vec<usize> = (0..items.len()).collect();
    let mut places = vec![BTreeSet::new(); kinds.len()];
    for (place, kind) in kind_of.iter().enumerate() {
        if let Some(places) = places.get_mut(*kind) {
            places.insert(place);
        }
    }
    let mut at = 0;
    while let Some(kind) = slots.get(at).and_then(|slot| kind_of.get(*slot)).copied() {
        let again = places
            .get(kind)
            .and_then(|places| places.range(at + 1..).next())
            .copied();
        let Some(again) = again else {
            at += 1;
            continue;
        };
        let last = slots.len() - 1;
        let moved = slots.swap_remove(again);
        let filler = slots.get(again).and_then(|slot| kind_of.get(*slot)).copied();
        if let Some(places) = kind_of.get(moved).and_then(|kind| places.get_mut(*kind)) {
            places.remove(&again);
        }
        if let Some(places) = filler.and_then(|kind| places.get_mut(kind)) {
            places.remove(&last);
            places.insert(again);
        }
    }
    let mut items: Vec<Option<Value>> = items.into_iter().map(Some).collect();
    slots
        .into_iter()
        .filter_map(|slot| items.get_mut(slot)?.take())
        .collect()
}

/// An element with only its merge key.
fn key_alone(item: &Value, key: &str) -> Value {
    let value = item.get(key).map(|value| (key, value.clone()));
    Value::Object(value.into_iter().collect())
}

fn merge_keyed(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    items: Option<&Structural>,
) -> Result<MergedList, StrategicError> {
    let mut before: Vec<Value> = original.iter().map(|item| key_alone(item, key)).collect();
    // Elements with directives are processed first, wherever they are.
    let mut changes = Vec::with_capacity(patch.len());
    let mut deletions = Vec::new();
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = &item else {
            return Err(bad_type("map[string]interface {}", &item));
        };
        match map.get(PATCH) {
            None => changes.push(item),
            Some(Value::String(s)) if s == "delete" => {
                let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                deletions.push(value.clone());
            }
            Some(Value::String(s)) if s == "replace" => replace = true,
            Some(Value::String(s)) if s == "merge" => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Internal(text.into()));
            }
            Some(other) => return Err(bad_directive(other, map)),
        }
    }
    delete_keyed(&mut original, &mut before, &deletions, key);
    let kind = Ok(ElementKind::Objects);
    if replace {
        let list = MergedList {
            before: changes.iter().map(|item| key_alone(item, key)).collect(),
            items: changes,
        };
        let items = arrange(list, &[], Some(key), kind)?;
        return Ok(MergedList { items, before });
    }
    let order: Vec<Value> = changes.iter().map(|item| key_alone(item, key)).collect();
    let standing: Vec<Value> = original.iter().map(|item| key_alone(item, key)).collect();
    let mut index = ElementIndex::new(&standing, Some(key)).positions;
    for (change, stand_in) in changes.into_iter().zip(&order) {
        let Value::Object(change) = change else { continue };
        let Ok(identity) = identity(stand_in, Some(key)) else {
            return Err(no_merge_key(&change, key));
        };
        let place = *index.entry(identity).or_insert(original.len());
        match original.get_mut(place) {
            Some(slot) => {
                if let Value::Object(old) = std::mem::take(slot) {
                    *slot = Value::Object(merge_objects(old, change, items)?);
                }
                // An element whose key is null loses it in the merge, so the next element with this key is
                // the target from now on.
                if identity.0.is_null() {
                    let rest = original.iter().enumerate().skip(place + 1);
                    let mut rest = rest.filter(|(_, item)| item.get(key) == Some(&Value::Null));
                    match rest.next() {
                        Some((next, _)) => index.insert(identity, next),
                        None => index.remove(&identity),
                    };
                }
            }
            None => {
                // The position of a deleted element is reused in the original list, too.
                if let Some(slot) = before.get_mut(place) {
                    *slot = stand_in.clone();
                }
                original.push(Value::Object(change));
            }
        }
    }
    let list = MergedList {
        items: original,
        before: standing,
    };
    let items = arrange(list, &order, Some(key), kind)?;
    Ok(MergedList { items, before })
}

/// Removes elements and updates the original list as kube-apiserver does: it shifts later elements forward
/// and leaves the end unchanged, so after each deletion the position behind the last element keeps its old
/// content.
fn delete_keyed(original: &mut Vec<Value>, before: &mut Vec<Value>, deletions: &[Value], key: &str) {
    if deletions.is_empty() {
        return;
    }
    let mut positions: BTreeMap<ValueKey<'_>, Vec<usize>> = BTreeMap::new();
    for (i, item) in before.iter().enumerate() {
        if let Some(value) = item.get(key) {
            positions.entry(ValueKey(value)).or_default().push(i);
        }
    }
    let mut stays = vec![true; before.len()];
    let mut left_behind = Vec::new();
    let mut end = before.len();
    for at in deletions
        .iter()
        .flat_map(|value| positions.remove(&ValueKey(value)).unwrap_or_default())
    {
        left_behind.extend(end.checked_sub(1).and_then(|last| before.get(last)).cloned());
        if let Some(stays) = stays.get_mut(at) {
            *stays = false;
        }
        while end > 0 && stays.get(end - 1) == Some(&false) {
            end -= 1;
        }
    }
    let mut after: Vec<Value> = before
        .iter()
        .zip(&stays)
        .filter(|(_, stays)| **stays)
        .map(|(item, _)| item.clone())
        .collect();
    after.extend(left_behind.into_iter().rev());
    *before = after;
    let mut stays = stays.into_iter();
    original.retain(|_| stays.next() == Some(true));
}

/// An element with its positions.
struct PositionedElement {
    item: Value,
    /// The position in the order of its group.
    place: Option<usize>,
    /// The position in the original list.
    before: Option<usize>,
}

/// Orders the elements that an order names, and inserts the others between them at their original positions.
pub(super) fn arrange(
    list: MergedList,
    order: &[Value],
    merge_key: Option<&str>,
    kind: Result<ElementKind, StrategicError>,
) -> Result<Vec<Value>, StrategicError> {
    let MergedList { items, before } = list;
    let wanted = ElementIndex::new(order, merge_key);
    let stood = ElementIndex::new(&before, merge_key);
    let mut named = Vec::with_capacity(items.len());
    let mut others = Vec::new();
    for item in items {
        deadline::tick();
        let identity = identity(&item, merge_key)?;
        let place = match merge_key {
            Some(_) => wanted.find(identity)?,
            None => wanted.get(identity),
        };
        let before = stood.get(identity);
        match place {
            Some(_) => named.push(PositionedElement { item, place, before }),
            None => others.push(PositionedElement {
                item,
                place: before,
                before,
            }),
        }
    }
    if kind? == ElementKind::Objects {
        let key = Some(merge_key.unwrap_or_default());
        let named = named.iter().map(|placed| &placed.item);
        let others = others.iter().map(|placed| &placed.item);
        for item in named.chain(order).chain(others).chain(&before) {
            identity(item, key)?;
        }
    }
    let (named, others) = (in_place(named), in_place(others));
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        // As on kube-apiserver, another element comes first only if the original list has both.
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return Ok(out),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(a), Some(b)) => matches!((a.before, b.before), (Some(a), Some(b)) if a < b),
        };
        let next = if other_first { others.next() } else { named.next() };
        out.extend(next.map(|placed| placed.item));
    }
}

/// Sorts elements by position. Elements that the patch deletes come last, if they are still present.
fn in_place(items: Vec<PositionedElement>) -> Vec<PositionedElement> {
    let deleted =
        |placed: &PositionedElement| placed.item.get(PATCH).and_then(Value::as_str) == Some("delete");
    let (deleted, mut items): (Vec<_>, Vec<_>) = items.into_iter().partition(deleted);
    if items.iter().all(|placed| placed.place.is_some()) {
        items.sort_by_key(|placed| placed.place);
    } else {
        items = in_partial_order(items);
    }
    items.extend(deleted);
    items
}

/// Sorts elements that partly have no position. kube-apiserver uses insertion sort and moves each element
/// past all incomparable ones, so elements without a position end up at the front, before the front at that
/// time.
fn in_partial_order(items: Vec<PositionedElement>) -> Vec<PositionedElement> {
    let mut placed: BTreeMap<(usize, usize), (Vec<PositionedElement>, PositionedElement)> = BTreeMap::new();
    let mut at_end = Vec::new();
    for (i, item) in items.into_iter().enumerate() {
        match item.place {
            Some(place) => {
                placed.insert((place, i), (Vec::new(), item));
            }
            None => match placed.first_entry() {
                Some(mut first) => first.get_mut().0.push(item),
                None => at_end.push(item),
            },
        }
    }
    let mut out = Vec::new();
    for (in_front, item) in placed.into_values() {
        out.extend(in_front.into_iter().rev());
        out.push(item);
    }
    out.extend(at_end.into_iter().rev());
    out
}
