//! Type-driven comparison of two objects.

use super::object_type::{ChosenType, ListSchema, MapSchema, TypeRef};
use super::validate::fits;
use crate::fields::{Element, NodeBuilder, Set, equal};
use itertools::{EitherOrBoth, Itertools};
use scantling_value::{Map, Value, deadline};

/// The number of levels at which equal members are skipped before their types are considered. A write usually
/// leaves most of an object unchanged; each further level would compare everything below it once more.
const SHARED_DEPTH: u32 = 3;

/// The fields in which two objects differ.
#[derive(Clone, Debug, Default, PartialEq)]
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
    pub(crate) fn subtract(&mut self, fields: &Set) {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.subtract_below(fields);
        }
    }
}

/// A value does not fit its type.
pub(super) struct Misfit;

/// Builds the differences inside a value.
#[derive(Default)]
struct Changes {
    added: NodeBuilder,
    modified: NodeBuilder,
    removed: NodeBuilder,
}

impl Changes {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The fields with a change.
    fn of(&mut self, change: FieldChange) -> &mut NodeBuilder {
        match change {
            FieldChange::Added => &mut self.added,
            FieldChange::Modified => &mut self.modified,
            FieldChange::Removed => &mut self.removed,
        }
    }

    /// Adds a member: the change of the value itself, and the differences inside it.
    fn push(
        &mut self,
        own: Option<FieldChange>,
        below: Changes,
        push: impl Fn(&mut NodeBuilder, bool, NodeBuilder),
    ) {
        let Changes {
            added,
            modified,
            removed,
        } = below;
        for (change, below) in [
            (FieldChange::Added, added),
            (FieldChange::Modified, modified),
            (FieldChange::Removed, removed),
        ] {
            push(self.of(change), own == Some(change), below);
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

/// Compares an object with a valid one. Fails if the new object does not fit the type.
pub(super) fn compare(old: &Value, new: &Value, ty: TypeRef<'_>) -> Result<Comparison, Misfit> {
    let mut out = Changes::default();
    values(old, new, ty, SHARED_DEPTH, &mut out)?;
    Ok(Comparison {
        added: out.added.into_set(),
        modified: out.modified.into_set(),
        removed: out.removed.into_set(),
    })
}

/// Compares two values and returns the change of the value itself. Equal members are skipped for the given number of
/// levels.
fn values(
    old: &Value,
    new: &Value,
    ty: TypeRef<'_>,
    levels: u32,
    out: &mut Changes,
) -> Result<Option<FieldChange>, Misfit> {
    deadline::tick();
    let kinds = ty.kinds();
    let (old_type, old_decided) = kinds.choose(Some(old));
    let (new_type, new_decided) = kinds.choose(Some(new));
    if !is_of_type(new, new_type) {
        return Err(Misfit);
    }
    let mut treat_as = |chosen: Option<ChosenType<'_>>| match chosen {
        Some(ChosenType::Map(kind)) if !kind.atomic => maps(old, new, kind, levels, out),
        Some(ChosenType::List(kind)) if !kind.is_atomic() => lists(old, new, kind, out),
        _ => whole(old, new, ty),
    };
    let is_same_kind = match (&old_type, &new_type) {
        (Some(old), Some(new)) => old.is_same_kind(new) && old_decided == new_decided,
        _ => false,
    };
    // If the kind of the value changes, all old members are removed, and all new members are added.
    let before = if is_same_kind { None } else { treat_as(old_type)? };
    Ok(before.or(treat_as(new_type)?))
}

/// Returns whether a value is of the kind as which it is treated; null is of every kind.
fn is_of_type(value: &Value, chosen: Option<ChosenType<'_>>) -> bool {
    match (chosen, value) {
        (_, Value::Null)
        | (Some(ChosenType::Map(_)), Value::Object(_))
        | (Some(ChosenType::List(_)), Value::Array(_)) => true,
        (Some(ChosenType::Scalar(scalar)), value) => scalar.allows(value),
        _ => false,
    }
}

/// Returns whether a value has neither members nor elements.
fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

/// Compares values as a whole.
fn whole(old: &Value, new: &Value, ty: TypeRef<'_>) -> Result<Option<FieldChange>, Misfit> {
    if equal(old, new) {
        return Ok(None);
    }
    fits(new, ty).then_some(Some(FieldChange::Modified)).ok_or(Misfit)
}

/// Compares objects member by member.
fn maps(
    old: &Value,
    new: &Value,
    kind: MapSchema<'_>,
    levels: u32,
    out: &mut Changes,
) -> Result<Option<FieldChange>, Misfit> {
    let old_members = old.as_object().map_or(&[][..], Map::entries);
    let new_members = new.as_object().map_or(&[][..], Map::entries);
    if old_members.is_empty() && new_members.is_empty() {
        return Ok((!equal(old, new)).then_some(FieldChange::Modified));
    }
    for pair in old_members
        .iter()
        .merge_join_by(new_members, |(a, _), (b, _)| a.cmp(b))
    {
        match pair {
            EitherOrBoth::Both((_, old), (_, new)) if (levels > 0 || is_scalar(old)) && old == new => {}
            EitherOrBoth::Both((name, old), (_, new)) => {
                let mut below = Changes::default();
                let ty = kind.member(name).ok_or(Misfit)?;
                let own = values(old, new, ty, levels.saturating_sub(1), &mut below)?;
                if own.is_some() || !below.is_empty() {
                    out.push(own, below, |set, is_member, below| {
                        set.field(name, is_member, below);
                    });
                }
            }
            EitherOrBoth::Left((name, old)) => {
                out.removed
                    .field(name, true, all(old, kind.member(name).ok_or(Misfit)?)?);
            }
            EitherOrBoth::Right((name, new)) => {
                out.added
                    .field(name, true, all(new, kind.member(name).ok_or(Misfit)?)?);
            }
        }
    }
    Ok(None)
}

/// Compares lists element by element.
fn lists(
    old: &Value,
    new: &Value,
    kind: ListSchema<'_>,
    out: &mut Changes,
) -> Result<Option<FieldChange>, Misfit> {
    let old_items = old.as_array().unwrap_or_default();
    let new_items = new.as_array().unwrap_or_default();
    if old_items.is_empty() && new_items.is_empty() {
        return Ok((!equal(old, new)).then_some(FieldChange::Modified));
    }
    // Most lists of an update are equal, which is cheaper to find out than to sort their elements.
    if equal(old, new) {
        return Ok(None);
    }
    deadline::tick_for(old_items.len() + new_items.len());
    let (old, new) = (sorted(old_items, kind)?, sorted(new_items, kind)?);
    let (mut old, mut new) = (old.as_slice(), new.as_slice());
    while let Some(element) = match (old.first(), new.first()) {
        (Some((a, _)), Some((b, _))) => Some(a.min(b)),
        (a, b) => a.or(b).map(|(element, _)| element),
    } {
        let before = next_group(&mut old, element);
        let after = next_group(&mut new, element);
        match (before, after) {
            ([(_, before)], [(_, after)]) => {
                let mut below = Changes::default();
                let own = values(before, after, kind.element, 0, &mut below)?;
                if own.is_some() || !below.is_empty() {
                    out.push(own, below, |set, is_member, below| {
                        set.element(element, is_member, below);
                    });
                }
            }
            // Repeated elements are compared as a whole.
            ([_, _, ..], [_, _, ..]) => {
                let is_same = before.len() == after.len()
                    && before.iter().zip(after).all(|((_, a), (_, b))| equal(a, b));
                if !is_same {
                    group(after, kind)?;
                    out.modified.element(element, true, NodeBuilder::default());
                }
            }
            (before, after) => {
                if !before.is_empty() {
                    out.removed.element(element, true, group(before, kind)?);
                }
                if !after.is_empty() {
                    out.added.element(element, true, group(after, kind)?);
                }
            }
        }
    }
    Ok(None)
}

/// The identifiable elements of a list; fails if there are others.
fn sorted<'v>(items: &'v [Value], kind: ListSchema<'_>) -> Result<Vec<(Element, &'v Value)>, Misfit> {
    let elements = kind.sorted(items);
    (elements.len() == items.len()).then_some(elements).ok_or(Misfit)
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

/// The fields inside elements with the same identity. The contents of repeated elements cannot be distinguished.
fn group(items: &[(Element, &Value)], kind: ListSchema<'_>) -> Result<NodeBuilder, Misfit> {
    if let [(_, item)] = items {
        return all(item, kind.element);
    }
    let fit = items.iter().all(|(_, item)| fits(item, kind.element));
    fit.then(NodeBuilder::default).ok_or(Misfit)
}

/// The fields inside a value that is added or removed: all of them. A value without a counterpart needs no comparison.
fn all(value: &Value, ty: TypeRef<'_>) -> Result<NodeBuilder, Misfit> {
    deadline::tick();
    match (ty.kinds().choose(Some(value)).0, value) {
        (Some(ChosenType::Map(kind)), Value::Object(map)) if !kind.atomic => {
            let mut out = NodeBuilder::with_capacity(map.len());
            for (name, member) in map.iter() {
                out.field(name, true, all(member, kind.member(name).ok_or(Misfit)?)?);
            }
            Ok(out)
        }
        (Some(ChosenType::List(kind)), Value::Array(items)) if !kind.is_atomic() => {
            let mut out = NodeBuilder::with_capacity(items.len());
            let elements = sorted(items, kind)?;
            for same in elements.chunk_by(|(a, _), (b, _)| a == b) {
                if let [(element, _), ..] = same {
                    out.element(element, true, group(same, kind)?);
                }
            }
            Ok(out)
        }
        // An atomic value.
        (Some(ChosenType::Map(_)), Value::Object(_)) | (Some(ChosenType::List(_)), Value::Array(_)) => {
            fits(value, ty).then(NodeBuilder::default).ok_or(Misfit)
        }
        (chosen, _) => is_of_type(value, chosen).then(NodeBuilder::default).ok_or(Misfit),
    }
}
