//! Merging of an applied value into a live one.

use super::ty::{ListKind, MapKind, Shape, TypeRef};
use crate::fields::Element;
use scantling_value::{Map, Str, Value};
use std::cmp::Ordering;

/// The left value with all that the right one says; none if nothing is left of either.
// INVARIANT: both values were validated against the type, the right one without duplicates.
pub(super) fn merge(left: Option<&Value>, right: Option<&Value>, ty: TypeRef<'_>) -> Option<Value> {
    let Some(right_value) = right else {
        return left.cloned();
    };
    match (ty.kinds().shape(right).0, left, right_value) {
        (Some(Shape::Map(kind)), left, right) if !kind.atomic => {
            let (left, right) = (left.and_then(Value::as_object), right.as_object());
            match (left.filter(|m| !m.is_empty()), right.filter(|m| !m.is_empty())) {
                (None, None) => Some(right_value.clone()),
                (left, right) => merge_maps(left, right, kind),
            }
        }
        (Some(Shape::List(kind)), left, right) if !kind.is_atomic() => {
            let (left, right) = (left.and_then(Value::as_array), right.as_array());
            match (left.unwrap_or_default(), right.unwrap_or_default()) {
                ([], []) => Some(right_value.clone()),
                (left, right) => merge_lists(left, right, kind),
            }
        }
        _ => Some(right_value.clone()),
    }
}

fn merge_maps(left: Option<&Map>, right: Option<&Map>, kind: MapKind<'_>) -> Option<Value> {
    let mut out: Vec<(Str, Value)> = Vec::new();
    let mut left = left.map_or(&[][..], Map::entries).iter().peekable();
    let mut right = right.map_or(&[][..], Map::entries).iter().peekable();
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        let (l, r) = match order {
            Ordering::Less => (left.next(), None),
            Ordering::Greater => (None, right.next()),
            Ordering::Equal => (left.next(), right.next()),
        };
        let Some((name, _)) = l.or(r) else { break };
        let (l, r) = (l.map(|(_, v)| v), r.map(|(_, v)| v));
        let merged = match kind.member(name) {
            Some(ty) => merge(l, r, ty),
            None => r.or(l).cloned(),
        };
        out.extend(merged.map(|v| (name.clone(), v)));
    }
    (!out.is_empty()).then(|| Value::Object(Map::from_unsorted(out)))
}

/// The elements of a list, found by what tells them apart.
struct Index {
    elements: Vec<Option<Element>>,
    /// Positions in the order of the elements; equal ones in list order.
    sorted: Vec<usize>,
}

impl Index {
    fn new(items: &[Value], kind: ListKind<'_>) -> Self {
        let elements: Vec<_> = items.iter().map(|item| kind.element_of(item).ok()).collect();
        let mut sorted: Vec<usize> = (0..elements.len()).collect();
        sorted.sort_by(|a, b| elements.get(*a).cmp(&elements.get(*b)));
        Index { elements, sorted }
    }

    fn get(&self, position: usize) -> Option<&Element> {
        self.elements.get(position).and_then(Option::as_ref)
    }

    /// The positions of an element.
    fn find(&self, element: &Element) -> &[usize] {
        let key = |p: &usize| self.get(*p);
        let start = self.sorted.partition_point(|p| key(p) < Some(element));
        let rest = self.sorted.get(start..).unwrap_or_default();
        let count = rest.iter().take_while(|p| key(p) == Some(element)).count();
        rest.get(..count).unwrap_or_default()
    }
}

/// Merges lists whose elements are told apart. Shared elements come in the order of the right list; the others stay
/// where they are relative to their neighbours, as far as that goes.
fn merge_lists(left: &[Value], right: &[Value], kind: ListKind<'_>) -> Option<Value> {
    let left_index = Index::new(left, kind);
    let right_index = Index::new(right, kind);
    let in_right = |e: &Element| right_index.find(e).first().copied();
    let in_left = |e: &Element| match left_index.find(e) {
        [] => None,
        [one] => left.get(*one),
        // Which of several is meant cannot be said: the right one replaces them all.
        _ => Some(&Value::Null),
    };
    // For each position on the right, the next one whose element is on the left, too.
    let mut next_shared = vec![None; right.len() + 1];
    for position in (0..right.len()).rev() {
        let shared = right_index.get(position).and_then(in_left).is_some();
        let next = if shared {
            Some(position)
        } else {
            next_shared.get(position + 1).copied().flatten()
        };
        if let Some(slot) = next_shared.get_mut(position) {
            *slot = next;
        }
    }

    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if l < left.len() {
            // Where the element on the left stands on the right.
            match left_index.get(l).and_then(in_right) {
                None => {
                    out.extend(merge(left.get(l), None, kind.element));
                    l += 1;
                    continue;
                }
                Some(twin) if twin == r => l += 1,
                // It stands elsewhere on the right, and is merged there. What follows it on the left comes first, as
                // long as there are elements to come that both sides share.
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
            let old = right_index.get(r).and_then(in_left);
            out.extend(merge(old, right.get(r), kind.element));
            r += 1;
        }
    }
    (!out.is_empty()).then_some(Value::Array(out))
}
