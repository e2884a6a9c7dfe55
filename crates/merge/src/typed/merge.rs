//! Merges an applied value into a live one.

use super::object_type::{ChosenType, ListSchema, MapSchema, TypeRef};
use itertools::{EitherOrBoth, Itertools};
use scantling_value::{Map, Str, Value, deadline};

/// Merges the right value into the left one; `None` if both are empty.
// INVARIANT: both values were validated against the type, the right one without duplicates.
pub(super) fn merge(left: Option<Value>, right: Option<&Value>, ty: TypeRef<'_>) -> Option<Value> {
    let Some(right) = right else {
        return left;
    };
    deadline::tick();
    match ty.kinds().choose(Some(right)).0 {
        Some(ChosenType::Map(kind)) if !kind.atomic => {
            let left = left.and_then(Value::into_object).unwrap_or_default();
            match right.as_object() {
                Some(right) if !right.is_empty() => merge_maps(left, right, kind),
                _ if left.is_empty() => Some(right.clone()),
                _ => Some(Value::Object(left)),
            }
        }
        Some(ChosenType::List(kind)) if !kind.is_atomic() => {
            let left = match left {
                Some(Value::Array(items)) => items,
                // Validation accepts null for any type; it has no elements.
                _ => Vec::new(),
            };
            match right.as_array() {
                Some(right) if !right.is_empty() => merge_lists(left, right, kind),
                _ if left.is_empty() => Some(right.clone()),
                _ => Some(Value::Array(left)),
            }
        }
        _ => Some(right.clone()),
    }
}

fn merge_maps(left: Map, right: &Map, kind: MapSchema<'_>) -> Option<Value> {
    let mut out: Vec<(Str, Value)> = Vec::with_capacity(left.len().max(right.len()));
    for pair in left
        .into_iter()
        .merge_join_by(right.iter(), |(a, _), (b, _)| a.cmp(b))
    {
        let (name, l, r) = match pair {
            EitherOrBoth::Both((name, l), (_, r)) => (name, Some(l), Some(r)),
            EitherOrBoth::Left((name, l)) => (name, Some(l), None),
            EitherOrBoth::Right((name, r)) => (name.clone(), None, Some(r)),
        };
        let merged = match kind.member(&name) {
            Some(ty) => merge(l, r, ty),
            None => r.cloned().or(l),
        };
        out.extend(merged.map(|v| (name, v)));
    }
    (!out.is_empty()).then(|| Value::Object(Map::from_unsorted(out)))
}

/// Merges set and keyed lists. Shared elements have the order of the right list; the others keep their
/// position relative to their neighbours where possible.
fn merge_lists(left: Vec<Value>, right: &[Value], kind: ListSchema<'_>) -> Option<Value> {
    deadline::tick_for(left.len() + right.len());
    // Sorted for binary searches: a linear search for each element would be quadratic.
    let mut sorted: Vec<_> = right
        .iter()
        .enumerate()
        .filter_map(|(at, item)| Some((kind.element_of(item).ok()?, at)))
        .collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    // The position of each left element on the right, and the left elements that match each right element.
    let mut twins = Vec::with_capacity(left.len());
    let mut olds = vec![LeftMatch::None; right.len()];
    for (at, item) in left.iter().enumerate() {
        let twin = kind.element_of(item).ok().and_then(|element| {
            let found = sorted.binary_search_by(|(e, _)| e.cmp(&element)).ok()?;
            sorted.get(found).map(|(_, at)| *at)
        });
        if let Some(old) = twin.and_then(|twin| olds.get_mut(twin)) {
            *old = match old {
                LeftMatch::None => LeftMatch::One(at),
                LeftMatch::One(_) | LeftMatch::Several => LeftMatch::Several,
            };
        }
        twins.push(twin);
    }
    // For each position on the right, the next one whose element is also on the left.
    let mut next_shared = vec![None; right.len() + 1];
    let mut next = None;
    for (position, (old, slot)) in olds.iter().zip(&mut next_shared).enumerate().rev() {
        if *old != LeftMatch::None {
            next = Some(position);
        }
        *slot = next;
    }

    let mut left: Vec<Option<Value>> = left.into_iter().map(Some).collect();
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if let Some(twin) = twins.get(l) {
            match *twin {
                None => {
                    out.extend(left.get_mut(l).and_then(Option::take));
                    l += 1;
                    continue;
                }
                Some(twin) if twin == r => l += 1,
                // The element occurs at another position on the right and is merged there. Elements after it
                // on the left come first, as long as shared elements remain.
                Some(twin) => {
                    let next = next_shared.get(r).copied().flatten();
                    if next.is_some_and(|next| next != twin) {
                        l += 1;
                        continue;
                    }
                    if twin < r {
                        l += 1;
                    }
                }
            }
        }
        if r < right.len() {
            let old = match olds.get(r) {
                Some(LeftMatch::One(at)) => left.get_mut(*at).and_then(Option::take),
                // Ambiguous: the right element replaces all of them.
                Some(LeftMatch::Several) => Some(Value::Null),
                _ => None,
            };
            out.extend(merge(old, right.get(r), kind.element));
            r += 1;
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}

/// The elements on the left that match an element on the right.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftMatch {
    None,
    One(usize),
    Several,
}
