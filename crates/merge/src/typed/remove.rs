//! Removes fields from an object.
//!
//! A set names a field if it contains its path or, for a declared field, a path through it.

use super::object_type::{ChosenType, ListSchema, MapSchema, TypeRef};
use super::owned::sets_member;
use crate::fields::{Element, FieldsNode};
use scantling_value::{Map, Value, deadline};

/// Removes the fields that a set names. Containers that become empty become null, as on kube-apiserver.
pub(crate) fn remove(value: &mut Value, fields: FieldsNode<'_>, ty: TypeRef<'_>) {
    deadline::tick();
    let shape = ty.kinds().choose(Some(value)).0;
    let left = match (shape, &mut *value) {
        (Some(ChosenType::Scalar(_)), _) => return,
        (Some(ChosenType::Map(kind)), Value::Object(map)) if !kind.atomic => {
            map.retain(|name, member| {
                let Some(field) = fields.field(name) else {
                    return true;
                };
                // As in structured-merge-diff, a path through a declared field also names the field itself.
                if field.is_member() || kind.field(name).is_some() {
                    return false;
                }
                if let Some(ty) = kind.member(name) {
                    remove(member, field, ty);
                }
                true
            });
            map.len()
        }
        (Some(ChosenType::List(kind)), Value::Array(items)) if !kind.is_atomic() => {
            items.retain_mut(|item| {
                let step = kind.element_of(item).ok().and_then(|e| fields.step(&e));
                let Some(step) = step.filter(|step| !step.is_member()) else {
                    return step.is_none();
                };
                remove(item, step, kind.element);
                true
            });
            items.len()
        }
        // As in structured-merge-diff, nothing remains of an atomic value if something inside it is removed.
        _ => 0,
    };
    if left == 0 {
        *value = Value::Null;
    }
}

/// Selects the fields that may be removed.
#[derive(Clone, Copy)]
pub(crate) enum RemovalFilter<'s> {
    /// Fields that a set names.
    Named(FieldsNode<'s>),
    /// Fields that a set does not name.
    Unnamed(Option<FieldsNode<'s>>),
}

impl<'s> RemovalFilter<'s> {
    /// Applies the filter to an element: whether the element itself is selected, and the filter for its
    /// contents, if any.
    fn step(
        self,
        step: impl Fn(FieldsNode<'s>) -> Option<FieldsNode<'s>>,
        declared: bool,
    ) -> (bool, Option<Self>) {
        let named = |node: FieldsNode<'_>| node.is_member() || declared;
        let inside = |node: FieldsNode<'s>| Some(node).filter(|node| !node.is_leaf());
        match self {
            RemovalFilter::Named(set) => match step(set) {
                Some(found) => (named(found), inside(found).map(RemovalFilter::Named)),
                None => (false, None),
            },
            RemovalFilter::Unnamed(set) => match set.and_then(step) {
                Some(found) => (!named(found), Some(RemovalFilter::Unnamed(inside(found)))),
                None => (true, Some(RemovalFilter::Unnamed(None))),
            },
        }
    }
}

/// Removes from a value those selected fields that `lost`, which was derived from it, does not have any more.
/// Containers that become empty become null, as on kube-apiserver.
pub(crate) fn prune(value: &mut Value, lost: Option<&Value>, choice: RemovalFilter<'_>, ty: TypeRef<'_>) {
    deadline::tick();
    let shape = ty.kinds().choose(Some(value)).0;
    let (before, after) = match (shape, &mut *value) {
        (Some(ChosenType::Map(kind)), Value::Object(map)) if !kind.atomic => {
            let before = map.len();
            prune_map(map, lost.and_then(Value::as_object), choice, kind);
            (before, map.len())
        }
        (Some(ChosenType::List(kind)), Value::Array(items)) if !kind.is_atomic() => {
            let before = items.len();
            let lost = lost.and_then(Value::as_array).unwrap_or_default();
            prune_list(items, lost, choice, kind);
            (before, items.len())
        }
        _ => return,
    };
    if after == 0 && before > 0 {
        *value = Value::Null;
    }
}

fn prune_map(map: &mut Map, lost: Option<&Map>, choice: RemovalFilter<'_>, kind: MapSchema<'_>) {
    map.retain(|name, member| {
        let lost = lost.and_then(|lost| lost.get(name));
        let declared = kind.field(name);
        let (chosen, inside) = choice.step(|set| set.field(name), declared.is_some());
        if chosen
            && sets_member(name, member, kind)
            && !lost.is_some_and(|lost| sets_member(name, lost, kind))
        {
            return false;
        }
        if let (Some(inside), Some(ty)) = (inside, declared.or(kind.element)) {
            prune(member, lost, inside, ty);
        }
        true
    });
}

fn prune_list(items: &mut Vec<Value>, lost: &[Value], choice: RemovalFilter<'_>, kind: ListSchema<'_>) {
    let mut elements: Vec<Option<Element>> = items.iter().map(|item| kind.element_of(item).ok()).collect();
    let lost = kind.sorted(lost);
    let repeats = DuplicateElements::find(&elements);
    let mut elements = elements.drain(..);
    items.retain_mut(|item| {
        let Some(element) = elements.next().flatten() else {
            return true;
        };
        let start = lost.partition_point(|(e, _)| *e < element);
        let mut left = lost.iter().skip(start).take_while(|(e, _)| *e == element);
        let left = (left.next(), left.next());
        let (chosen, inside) = choice.step(|set| set.step(&element), false);
        if chosen && left.0.is_none() {
            return false;
        }
        // The contents of repeated elements cannot be distinguished.
        if let Some(inside) = inside.filter(|_| !repeats.has(&element)) {
            let left = match left {
                (Some((_, one)), None) => Some(*one),
                _ => None,
            };
            prune(item, left, inside, kind.element);
        }
        true
    });
}

/// The elements that a list contains more than once.
struct DuplicateElements(Vec<Element>);

impl DuplicateElements {
    fn find(elements: &[Option<Element>]) -> Self {
        let mut sorted: Vec<&Element> = elements.iter().flatten().collect();
        sorted.sort();
        let repeated = sorted.chunk_by(|a, b| a == b).filter(|group| group.len() > 1);
        DuplicateElements(
            repeated
                .filter_map(|group| group.first())
                .map(|e| (*e).clone())
                .collect(),
        )
    }

    fn has(&self, element: &Element) -> bool {
        self.0.binary_search(element).is_ok()
    }
}
