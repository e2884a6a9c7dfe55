//! Type-driven comparison of two objects.

use super::SHARED_DEPTH;
use super::object_type::{ChosenType, ListSchema, MapSchema, TypeRef};
use crate::fields::{Element, Set, SetBuilder, equal};
use itertools::{EitherOrBoth, Itertools};
use scantling_value::{Map, Value, deadline};

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the new object has.
    pub added: Set,
    /// Fields in both whose values differ.
    pub modified: Set,
    /// Fields that only the old object has.
    pub removed: Set,
}

impl Comparison {
    /// Returns whether the objects are equal.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Removes fields and their descendants.
    #[must_use]
    pub(crate) fn without(self, fields: &Set) -> Comparison {
        Comparison {
            added: self.added.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            removed: self.removed.recursive_difference(fields),
        }
    }
}

/// Builds a comparison.
#[derive(Default)]
struct ComparisonBuilder {
    added: SetBuilder,
    modified: SetBuilder,
    removed: SetBuilder,
}

impl ComparisonBuilder {
    /// Adds a member and the differences inside it.
    fn push(&mut self, element: &Element, own: Option<FieldChange>, below: Comparison) {
        let push = |set: &mut SetBuilder, change, below: Set| {
            if own == Some(change) || !below.is_empty() {
                set.push(element.clone(), own == Some(change), below);
            }
        };
        push(&mut self.added, FieldChange::Added, below.added);
        push(&mut self.modified, FieldChange::Modified, below.modified);
        push(&mut self.removed, FieldChange::Removed, below.removed);
    }

    /// Adds a member without members of its own.
    fn push_leaf(&mut self, element: Element, change: FieldChange) {
        let set = match change {
            FieldChange::Added => &mut self.added,
            FieldChange::Modified => &mut self.modified,
            FieldChange::Removed => &mut self.removed,
        };
        set.push(element, true, Set::new());
    }

    fn finish(self) -> Comparison {
        Comparison {
            added: self.added.finish(),
            modified: self.modified.finish(),
            removed: self.removed.finish(),
        }
    }
}

/// The change of a value itself, apart from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldChange {
    Added,
    Modified,
    Removed,
}

pub(super) fn compare(old: &Value, new: &Value, ty: TypeRef<'_>) -> Comparison {
    let mut out = ComparisonBuilder::default();
    values(Some(old), Some(new), ty, SHARED_DEPTH, &mut out);
    out.finish()
}

/// Compares two values and returns the change of the value itself. At least one of them exists. Equal members
/// are skipped for the given number of levels.
fn values(
    old: Option<&Value>,
    new: Option<&Value>,
    ty: TypeRef<'_>,
    levels: u32,
    out: &mut ComparisonBuilder,
) -> Option<FieldChange> {
    deadline::tick();
    let kinds = ty.kinds();
    let (old_shape, old_decided) = kinds.shape(old);
    let (new_shape, new_decided) = kinds.shape(new);
    let (mut change, mut leaf) = (None, false);
    let mut treat_as = |shape: Option<ChosenType<'_>>, counts: bool| {
        let (is_leaf, own) = match shape {
            Some(ChosenType::Map(kind)) => maps(old, new, kind, levels, out),
            Some(ChosenType::List(kind)) => lists(old, new, kind, out),
            Some(ChosenType::Scalar(_)) | None => (true, whole(old, new)),
        };
        change = change.or(own);
        leaf |= is_leaf && counts;
    };
    // An absent value takes the kind of the other one.
    match (old_shape, new_shape) {
        (old_shape, _) if new.is_none() => treat_as(old_shape, true),
        (_, new_shape) if old.is_none() => treat_as(new_shape, true),
        (Some(a), Some(b)) if a.is_same_kind(&b) && old_decided == new_decided => treat_as(new_shape, true),
        // The kind of the value changes: all old members are removed, all new members are added.
        _ => {
            treat_as(old_shape, false);
            treat_as(new_shape, true);
        }
    }
    // A leaf has recorded itself. Anything else is recorded besides its members if it was added or removed.
    if !leaf {
        change = change.or(match (old, new) {
            (None, _) => Some(FieldChange::Added),
            (_, None) => Some(FieldChange::Removed),
            _ => None,
        });
    }
    change
}

/// Returns whether a value is absent or has no members or elements.
fn is_leaf(value: Option<&Value>) -> bool {
    !matches!(value, Some(Value::Object(_) | Value::Array(_)))
}

/// Compares values atomically.
fn whole(old: Option<&Value>, new: Option<&Value>) -> Option<FieldChange> {
    match (old, new) {
        (None, _) => Some(FieldChange::Added),
        (_, None) => Some(FieldChange::Removed),
        (Some(old), Some(new)) => (!equal(old, new)).then_some(FieldChange::Modified),
    }
}

/// Compares objects; the flag says whether they are atomic.
fn maps(
    old: Option<&Value>,
    new: Option<&Value>,
    kind: MapSchema<'_>,
    levels: u32,
    out: &mut ComparisonBuilder,
) -> (bool, Option<FieldChange>) {
    let old_entries = old.and_then(Value::as_object).map_or(&[][..], Map::entries);
    let new_entries = new.and_then(Value::as_object).map_or(&[][..], Map::entries);
    if kind.atomic || (old_entries.is_empty() && new_entries.is_empty()) {
        return (true, whole(old, new));
    }
    for pair in old_entries
        .iter()
        .merge_join_by(new_entries, |(a, _), (b, _)| a.cmp(b))
    {
        let (name, l, r) = match pair {
            EitherOrBoth::Both((_, l), (_, r)) if levels > 0 && l == r => continue,
            EitherOrBoth::Both((name, l), (_, r)) => (name, Some(l), Some(r)),
            EitherOrBoth::Left((name, l)) => (name, Some(l), None),
            EitherOrBoth::Right((name, r)) => (name, None, Some(r)),
        };
        if is_leaf(l) && is_leaf(r) {
            // The result does not depend on the type, and most members are such.
            deadline::tick();
            if let Some(change) = whole(l, r) {
                out.push_leaf(Element::Field(name.clone()), change);
            }
            continue;
        }
        let mut below = ComparisonBuilder::default();
        let own = match kind.member(name) {
            Some(ty) => values(l, r, ty, levels.saturating_sub(1), &mut below),
            None => whole(l, r),
        };
        let below = below.finish();
        if own.is_some() || !below.is_same() {
            out.push(&Element::Field(name.clone()), own, below);
        }
    }
    (false, None)
}

/// Compares lists; the flag says whether they are atomic.
fn lists(
    old: Option<&Value>,
    new: Option<&Value>,
    kind: ListSchema<'_>,
    out: &mut ComparisonBuilder,
) -> (bool, Option<FieldChange>) {
    let old_items = old.and_then(Value::as_array).unwrap_or_default();
    let new_items = new.and_then(Value::as_array).unwrap_or_default();
    if kind.is_atomic() || (old_items.is_empty() && new_items.is_empty()) {
        return (true, whole(old, new));
    }
    // Most lists of an update are equal, which is cheaper to find out than to sort their elements.
    if let (Some(old), Some(new)) = (old, new)
        && equal(old, new)
    {
        return (false, None);
    }
    deadline::tick_for(old_items.len() + new_items.len());
    let (old, new) = (kind.sorted(old_items), kind.sorted(new_items));
    let (mut old, mut new) = (old.as_slice(), new.as_slice());
    while let Some(element) = match (old.first(), new.first()) {
        (Some((a, _)), Some((b, _))) => Some(a.min(b)),
        (a, b) => a.or(b).map(|(element, _)| element),
    } {
        let (element, old, new) = (
            element,
            next_group(&mut old, element),
            next_group(&mut new, element),
        );
        let mut below = ComparisonBuilder::default();
        let own = match (old, new) {
            ([] | [_], [] | [_]) => {
                let (old, new) = (old.first(), new.first());
                let (old, new) = (old.map(|(_, item)| *item), new.map(|(_, item)| *item));
                values(old, new, kind.element, 0, &mut below)
            }
            // Repeated elements are compared atomically.
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(new).all(|((_, a), (_, b))| equal(a, b));
                (!same).then_some(FieldChange::Modified)
            }
            // The group is removed as one element; an element that remains is compared as a new one.
            ([_, _, ..], new) => {
                if let [(_, one)] = new
                    && values(None, Some(one), kind.element, 0, &mut below).is_some()
                {
                    out.added.push(element.clone(), true, Set::new());
                }
                Some(FieldChange::Removed)
            }
            // The reverse of the case above.
            (old, _) => {
                if let [(_, one)] = old
                    && values(Some(one), None, kind.element, 0, &mut below).is_some()
                {
                    out.removed.push(element.clone(), true, Set::new());
                }
                Some(FieldChange::Added)
            }
        };
        out.push(element, own, below.finish());
    }
    (false, None)
}

/// Takes the leading entries with this element.
fn next_group<'g, 'v>(
    items: &mut &'g [(Element, &'v Value)],
    element: &Element,
) -> &'g [(Element, &'v Value)] {
    let count = items.iter().take_while(|(e, _)| e == element).count();
    let (group, rest) = items.split_at_checked(count).unwrap_or_default();
    *items = rest;
    group
}
