//! Field sets in the encoding of `managedFields`. A write changes a few paths of large sets, so sets are
//! edited in their encoded form and decoded only if the whole set matters.

use super::codec::{SELF, document, element_key, parse_element, reread};
use super::{Element, FieldsError, Set, SetBuilder};
use scantling_value::{Map, Value};
use std::collections::BTreeSet;

/// A set of field paths in the form of `managedFields` (`FieldsV1`).
// INVARIANT: equals the output of `Set::to_fields`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldsV1(Map);

impl FieldsV1 {
    /// Wraps an encoded set. Normalizes documents that are not in canonical form.
    pub(crate) fn from_fields(fields: Value) -> Result<Self, FieldsError> {
        match fields {
            // A `.` at the root is dropped by decoding, because no set contains the empty path.
            Value::Object(map) if !map.contains_key(SELF) && is_canonical(&map) => Ok(FieldsV1(map)),
            other => Set::from_fields(&other).map(|set| FieldsV1::from(&set)),
        }
    }

    /// Returns the encoded set.
    pub(crate) fn into_fields(self) -> Value {
        Value::Object(self.0)
    }

    /// The set.
    pub(crate) fn to_set(&self) -> Set {
        set_of(self.root())
    }

    /// Returns whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the root node.
    pub(crate) fn root(&self) -> FieldsNode<'_> {
        FieldsNode(&self.0)
    }

    /// Returns whether the sets share a path.
    pub(crate) fn intersects(&self, set: &Set) -> bool {
        intersects(self.root(), set)
    }

    /// The intersection of two sets.
    pub(crate) fn intersection(&self, set: &Set) -> Set {
        intersection(self.root(), set)
    }

    /// Returns whether this set is a subset of the other.
    pub(crate) fn is_subset(&self, set: &Set) -> bool {
        is_subset(self.root(), set)
    }

    /// Removes the paths of a set.
    pub(crate) fn subtract(&mut self, set: &Set) {
        subtract(&mut self.0, set);
    }

    /// Adds the paths of a set.
    pub(crate) fn unite(&mut self, set: &Set) {
        unite(&mut self.0, set);
    }
}

impl From<&Set> for FieldsV1 {
    fn from(set: &Set) -> Self {
        FieldsV1(document(false, set))
    }
}

/// A node of the encoded trie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldsNode<'w>(&'w Map);

/// The encoded key of a path element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldsKey<'w>(&'w str);

impl<'w> FieldsNode<'w> {
    /// Returns whether the path that ends here is in the set.
    pub(crate) fn is_member(self) -> bool {
        // A leaf is always a member, and its `.` is omitted.
        self.0.is_empty() || self.0.contains_key(SELF)
    }

    /// Returns whether the node is a leaf.
    pub(crate) fn is_end(self) -> bool {
        self.0.is_empty()
    }

    /// The children of the node.
    pub(crate) fn steps(self) -> impl Iterator<Item = (FieldsKey<'w>, FieldsNode<'w>)> {
        let step = |(key, below): (&'w scantling_value::Str, &'w Value)| {
            let below = below.as_object().filter(|_| key != SELF)?;
            Some((FieldsKey(key), FieldsNode(below)))
        };
        self.0.iter().filter_map(step)
    }

    fn step(self, element: &Element) -> Option<FieldsNode<'w>> {
        self.0.get(&element_key(element))?.as_object().map(FieldsNode)
    }
}

impl<'w> FieldsKey<'w> {
    /// The field name, if the element is a field.
    pub(crate) fn field(self) -> Option<&'w str> {
        self.0.strip_prefix("f:")
    }

    /// The decoded path element.
    pub(crate) fn element(self) -> Option<Element> {
        // The set is canonical, so every key can be parsed.
        parse_element(self.0).ok().flatten()
    }
}

/// Returns whether the document is in canonical form.
fn is_canonical(node: &Map) -> bool {
    node.iter().all(|(key, below)| {
        let Value::Object(below) = below else {
            return false;
        };
        if key == SELF {
            return below.is_empty() && node.len() > 1;
        }
        // A field name has one spelling. Keys that contain JSON are canonical only if they encode to
        // themselves.
        let own = |key: &str| FieldsKey(key).element().is_some_and(|e| element_key(&e) == key);
        (key.starts_with("f:") || own(key)) && is_canonical(below)
    })
}

fn set_of(node: FieldsNode<'_>) -> Set {
    let mut out = SetBuilder::default();
    for (key, step) in node.steps() {
        if let Some(element) = key.element() {
            out.push(element, step.is_member(), set_of(step));
        }
    }
    out.finish()
}

fn intersects(node: FieldsNode<'_>, set: &Set) -> bool {
    set.steps().any(|(element, member, below)| {
        let step = node.step(element);
        step.is_some_and(|step| (member && step.is_member()) || intersects(step, below))
    })
}

fn intersection(node: FieldsNode<'_>, set: &Set) -> Set {
    let mut out = SetBuilder::default();
    for (element, member, below) in set.steps() {
        if let Some(step) = node.step(element) {
            out.push(
                // Decoded elements hold floats; an integer would change how conflicts print the path.
                reread(element),
                member && step.is_member(),
                intersection(step, below),
            );
        }
    }
    out.finish()
}

fn is_subset(node: FieldsNode<'_>, set: &Set) -> bool {
    node.steps().all(|(key, step)| {
        let found = match key.field() {
            Some(name) => set.field(name),
            None => key.element().and_then(|element| set.step(&element)),
        };
        match found {
            Some((member, below)) => (member || !step.is_member()) && is_subset(step, below),
            None => false,
        }
    })
}

fn subtract(node: &mut Map, set: &Set) {
    // Removing them one by one would move all others each time.
    let mut emptied = BTreeSet::new();
    for (element, member, below) in set.steps() {
        let key = element_key(element);
        let Some(Value::Object(step)) = node.get_mut(&key) else {
            continue;
        };
        let stays = FieldsNode(step).is_member() && !member;
        // Removed first, so that an empty node below means that no descendants remain.
        step.remove(SELF);
        subtract(step, below);
        match (step.is_empty(), stays) {
            (true, false) => drop(emptied.insert(key)),
            (false, true) => drop(step.insert(SELF, Map::new().into())),
            (true, true) | (false, false) => {}
        }
    }
    if !emptied.is_empty() {
        node.retain(|key, _| !emptied.contains(key));
    }
}

fn unite(node: &mut Map, set: &Set) {
    // New entries are inserted together, because each insertion moves all entries after it.
    let mut new = Vec::new();
    for (element, member, below) in set.steps() {
        let key = element_key(element);
        match node.get_mut(&key) {
            Some(Value::Object(step)) => {
                let member = member || FieldsNode(step).is_member();
                unite(step, below);
                if member && !step.is_empty() {
                    step.get_or_insert_with(SELF, || Map::new().into());
                }
            }
            _ => new.push((key, document(member, below).into())),
        }
    }
    node.insert_all(new);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::FieldPath;
    use proptest::prelude::*;
    use scantling_value::Limits;

    fn any_set() -> impl Strategy<Value = Set> {
        let key = |k: &str| Element::Key([("k".into(), Value::from(k))].into());
        let element = prop::sample::select(vec![
            Element::field("a"),
            Element::field("b"),
            Element::field("."),
            key("x"),
            key("y"),
            Element::Value(Value::Int(1)),
            Element::Value(Value::from("f:a")),
            Element::Index(3),
        ]);
        let path = prop::collection::vec(element, 1..4).prop_map(FieldPath);
        prop::collection::vec(path, 0..8).prop_map(Set::from_iter)
    }

    proptest! {
        #[test]
        fn fields_v1_round_trips(a in any_set(), b in any_set()) {
            let written = FieldsV1::from(&a);
            prop_assert_eq!(&written.to_set(), &a);
            prop_assert_eq!(FieldsV1::from_fields(a.to_fields()), Ok(written.clone()));
            prop_assert_eq!(written.is_empty(), a.is_empty());
            prop_assert_eq!(written.is_subset(&b), a.is_subset(&b));
            let common = a.clone().intersection(&b);
            prop_assert_eq!(written.intersects(&b), !common.is_empty());
            prop_assert_eq!(written.intersection(&b), common);
            let mut less = written.clone();
            less.subtract(&b);
            prop_assert_eq!(less, FieldsV1::from(&a.clone().difference(&b)));
            let mut more = written;
            more.unite(&b);
            prop_assert_eq!(more, FieldsV1::from(&a.union(b)));
        }
    }

    #[test]
    fn foreign_fields_v1_is_normalized() {
        let table = [
            (r#"{}"#, r#"{}"#),
            (r#"{".":{},"f:a":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
            (
                r#"{"f:a":{".":{"f:b":{}},"f:c":{}}}"#,
                r#"{"f:a":{".":{},"f:c":{}}}"#,
            ),
            (r#"{"f:a":null}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":{"x:b":{}}}"#, r#"{"f:a":{}}"#),
            (
                r#"{"k:{ \"b\":1, \"a\":\"x\" }":{}}"#,
                r#"{"k:{\"a\":\"x\",\"b\":1}":{}}"#,
            ),
            (r#"{"i:007":{}}"#, r#"{"i:7":{}}"#),
        ];
        for (given, expected) in table {
            let given = scantling_value::json::decode(given.as_bytes(), Limits::SAFE).unwrap();
            assert_eq!(
                FieldsV1::from_fields(given).unwrap().into_fields().to_json(),
                expected
            );
        }
    }
}
