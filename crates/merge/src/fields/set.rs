//! A set of field paths as a trie, in the form of `managedFields` (`FieldsV1`).
//!
//! Most sets are stored again unchanged or after small changes, so they stay in that form.

use super::key::{FIELD, FieldsError, SELF, element_key, field_key, parse_element};
use super::{Element, FieldPath};
use scantling_value::{Map, Str, Value, deadline};

/// A set of field paths.
///
/// Paths share common prefixes. A path can be in the set with or without its descendants. Equal elements have equal
/// keys.
// INVARIANT: every node is an object. A node without children is in the set; one with children is if it has the child
// `.`, which is empty. The root is not a path: it has no `.`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Set(Map);

/// The treatment of the descendants of removed paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Descendants {
    Kept,
    Removed,
}

impl Set {
    /// The empty set.
    pub const fn new() -> Self {
        Set(Map::new())
    }

    /// Decodes a set: `{"f:spec":{".":{},"f:size":{}}}`. Elements of unknown kinds are skipped.
    pub fn from_fields(fields: Value) -> Result<Set, FieldsError> {
        match fields {
            // A `.` at the root is dropped by reading, because no set contains the empty path.
            Value::Object(map) if !map.contains_key(SELF) && is_canonical(&map) => Ok(Set(map)),
            other => read(other).map(|(_, below)| Set(below)),
        }
    }

    /// The encoded set.
    pub fn into_fields(self) -> Value {
        self.0.into()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.root().len()
    }

    /// The root node.
    pub(crate) fn root(&self) -> FieldsNode<'_> {
        FieldsNode(&self.0)
    }

    /// Returns whether the path is in the set.
    pub fn contains(&self, path: &[Element]) -> bool {
        let node = path.iter().try_fold(self.root(), FieldsNode::step);
        !path.is_empty() && node.is_some_and(FieldsNode::is_member)
    }

    /// All paths; on each level, the paths that end there come first.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut out = Vec::new();
        self.root().collect_paths(&mut Vec::new(), &mut out);
        out
    }

    /// Returns whether the sets share a path.
    pub fn intersects(&self, other: &Set) -> bool {
        self.root().intersects(other.root())
    }

    /// Returns whether this set is a subset of the other.
    pub fn is_subset(&self, other: &Set) -> bool {
        self.root().is_subset(other.root())
    }

    /// The intersection.
    #[must_use]
    pub fn intersection(&self, other: &Set) -> Set {
        Set(self.root().intersection(other.root()))
    }

    /// Adds the paths of a set.
    pub fn unite(&mut self, other: Set) {
        unite(&mut self.0, other.0);
    }

    /// The union of several sets. Sets are merged pairwise, so that a large set is not merged with each small one.
    pub(crate) fn union_of(mut sets: Vec<Set>) -> Set {
        while sets.len() > 1 {
            let mut rest = sets.into_iter();
            let mut merged = Vec::with_capacity(rest.len().div_ceil(2));
            while let Some(mut first) = rest.next() {
                if let Some(second) = rest.next() {
                    first.unite(second);
                }
                merged.push(first);
            }
            sets = merged;
        }
        sets.pop().unwrap_or_default()
    }

    /// Removes the paths of a set.
    pub fn subtract(&mut self, other: &Set) {
        subtract(&mut self.0, other.root(), Descendants::Kept);
    }

    /// Removes the paths of a set and their descendants.
    pub fn subtract_below(&mut self, other: &Set) {
        subtract(&mut self.0, other.root(), Descendants::Removed);
    }
}

impl From<&[Element]> for Set {
    /// The set of one path; the empty path is in no set.
    fn from(path: &[Element]) -> Set {
        let elements = path.iter().rev();
        Set(elements.fold(Map::new(), |below, element| {
            Map::from_iter([(element_key(element), below.into())])
        }))
    }
}

impl FromIterator<FieldPath> for Set {
    fn from_iter<I: IntoIterator<Item = FieldPath>>(paths: I) -> Self {
        Set::union_of(
            paths
                .into_iter()
                .map(|path| Set::from(path.0.as_slice()))
                .collect(),
        )
    }
}

/// Builds a node of a set.
#[derive(Default)]
pub(crate) struct NodeBuilder(Vec<(Str, Value)>);

impl NodeBuilder {
    /// Starts a node that will have up to this many children.
    pub(crate) fn with_capacity(children: usize) -> NodeBuilder {
        NodeBuilder(Vec::with_capacity(children + 1))
    }

    /// Returns whether the node has no children.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a field if its own path is in the set or it has descendants.
    pub(crate) fn field(&mut self, name: &str, is_member: bool, below: NodeBuilder) {
        if is_member || !below.is_empty() {
            self.0.push((field_key(name), below.finish(is_member).into()));
        }
    }

    /// Adds an element of a list likewise.
    pub(crate) fn element(&mut self, element: &Element, is_member: bool, below: NodeBuilder) {
        if is_member || !below.is_empty() {
            self.0
                .push((element_key(element), below.finish(is_member).into()));
        }
    }

    fn finish(mut self, is_member: bool) -> Map {
        if is_member && !self.0.is_empty() {
            // Keys are mostly ascending, which `.` at the beginning does not change.
            self.0.insert(0, (SELF.into(), Map::new().into()));
        }
        Map::from_unsorted(self.0)
    }

    /// The set with this root.
    pub(crate) fn into_set(self) -> Set {
        Set(self.finish(false))
    }
}

/// A node of a set.
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
    pub(crate) fn is_leaf(self) -> bool {
        self.0.is_empty()
    }

    /// The children of the node.
    pub(crate) fn steps(self) -> impl Iterator<Item = (FieldsKey<'w>, FieldsNode<'w>)> {
        deadline::tick_for(self.0.len());
        let step = |(key, below): (&'w Str, &'w Value)| {
            let below = below.as_object().filter(|_| key != SELF)?;
            Some((FieldsKey(key), FieldsNode(below)))
        };
        self.0.iter().filter_map(step)
    }

    fn child(self, key: &str) -> Option<FieldsNode<'w>> {
        self.0.get(key)?.as_object().map(FieldsNode)
    }

    /// The node of a path element.
    pub(crate) fn step(self, element: &Element) -> Option<FieldsNode<'w>> {
        self.child(&element_key(element))
    }

    /// The node of a field.
    pub(crate) fn field(self, name: &str) -> Option<FieldsNode<'w>> {
        self.child(&field_key(name))
    }

    fn len(self) -> usize {
        let below = |(_, below): (_, FieldsNode<'_>)| usize::from(below.is_member()) + below.len();
        self.steps().map(below).sum()
    }

    fn collect_paths(self, prefix: &mut Vec<Element>, out: &mut Vec<FieldPath>) {
        let steps = self
            .steps()
            .filter_map(|(key, below)| Some((key.element()?, below)));
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by(|(a, _), (b, _)| a.cmp(b));
        // structured-merge-diff stores members and children separately and lists members first.
        for (element, _) in steps.iter().filter(|(_, below)| below.is_member()) {
            let path = prefix.iter().chain([element]);
            out.push(FieldPath(path.cloned().collect()));
        }
        for (element, below) in steps {
            prefix.push(element);
            below.collect_paths(prefix, out);
            prefix.pop();
        }
    }

    fn intersects(self, other: FieldsNode<'_>) -> bool {
        self.steps().any(|(key, below)| {
            let other = other.child(key.0);
            other.is_some_and(|other| (below.is_member() && other.is_member()) || below.intersects(other))
        })
    }

    fn is_subset(self, other: FieldsNode<'_>) -> bool {
        self.steps().all(|(key, below)| {
            let other = other.child(key.0);
            other.is_some_and(|other| (other.is_member() || !below.is_member()) && below.is_subset(other))
        })
    }

    fn intersection(self, other: FieldsNode<'_>) -> Map {
        let step = |(key, below): (FieldsKey<'_>, FieldsNode<'_>)| {
            let other = other.child(key.0)?;
            let is_member = below.is_member() && other.is_member();
            let mut common = below.intersection(other);
            if is_member && !common.is_empty() {
                common.insert(SELF, Map::new().into());
            }
            // Two nodes of the same element may have nothing in common.
            (is_member || !common.is_empty()).then(|| (Str::from(key.0), Value::from(common)))
        };
        self.steps().filter_map(step).collect()
    }
}

impl<'w> FieldsKey<'w> {
    /// The field name, if the element is a field.
    pub(crate) fn field(self) -> Option<&'w str> {
        self.0.strip_prefix(FIELD)
    }

    /// The decoded path element.
    pub(crate) fn element(self) -> Option<Element> {
        // The set is canonical, so every key can be parsed.
        parse_element(self.0).ok().flatten()
    }
}

/// Returns whether a document is in canonical form.
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
        (key.starts_with(FIELD) || own(key)) && is_canonical(below)
    })
}

/// Decodes a node in any form: whether its own path is in the set, and its descendants.
fn read(fields: Value) -> Result<(bool, Map), FieldsError> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((true, Map::new())),
        _ => return Err(FieldsError("expected an object of fields".into())),
    };
    let mut is_member = false;
    let mut children: Vec<(Str, Map)> = Vec::with_capacity(map.len());
    for (key, value) in map {
        if key == SELF {
            is_member = true;
            continue;
        }
        let Some(element) = parse_element(&key)? else {
            continue;
        };
        let (own, mut below) = read(value)?;
        if own && !below.is_empty() {
            below.insert(SELF, Map::new().into());
        }
        if own || !below.is_empty() {
            children.push((element_key(&element), below));
        }
    }
    children.sort_by(|(a, _), (b, _)| a.cmp(b));
    // One element may have several spellings.
    children.dedup_by(|(later, below), (earlier, all)| {
        let same = later == earlier;
        if same {
            unite_nodes(all, std::mem::take(below));
        }
        same
    });
    let below: Map = children
        .into_iter()
        .map(|(key, below)| (key, below.into()))
        .collect();
    // The encoding omits the `.` of leaves.
    Ok((is_member || below.is_empty(), below))
}

/// Adds a node to another one of the same element.
fn unite_nodes(node: &mut Map, other: Map) {
    let is_member = FieldsNode(node).is_member() || FieldsNode(&other).is_member();
    unite(node, other);
    if is_member && !node.is_empty() {
        node.get_or_insert_with(SELF, || Map::new().into());
    }
}

/// Adds the children of a node to those of another one.
fn unite(node: &mut Map, other: Map) {
    deadline::tick_for(other.len());
    if node.is_empty() {
        *node = other;
        return;
    }
    // New entries are inserted together, because each insertion moves all entries after it.
    let mut new = Vec::new();
    for (key, below) in other {
        match (node.get_mut(&key), below) {
            (Some(Value::Object(own)), Value::Object(below)) => unite_nodes(own, below),
            (_, below) => new.push((key, below)),
        }
    }
    node.insert_all(new);
}

fn subtract(node: &mut Map, other: FieldsNode<'_>, descendants: Descendants) {
    // Removing them one by one would move all others each time.
    let mut emptied = Vec::new();
    for (key, other) in other.steps() {
        let Some(Value::Object(own)) = node.get_mut(key.0) else {
            continue;
        };
        if other.is_member() && descendants == Descendants::Removed {
            emptied.push(key.0);
            continue;
        }
        let stays = FieldsNode(own).is_member() && !other.is_member();
        // Removed first, so that an empty node below means that no descendants remain.
        own.remove(SELF);
        subtract(own, other, descendants);
        match (own.is_empty(), stays) {
            (true, false) => emptied.push(key.0),
            (false, true) => drop(own.insert(SELF, Map::new().into())),
            (true, true) | (false, false) => {}
        }
    }
    if !emptied.is_empty() {
        // The keys of the other set are ascending.
        node.retain(|key, _| emptied.binary_search(&key).is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

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
            (
                r#"{"k:{ \"a\":1 }":{"f:x":{}},"k:{\"a\":1.0}":{},"k:{\"a\":1}":{"f:y":{}}}"#,
                r#"{"k:{\"a\":1}":{".":{},"f:x":{},"f:y":{}}}"#,
            ),
            (r#"{"i:007":{}}"#, r#"{"i:7":{}}"#),
        ];
        for (given, expected) in table {
            let given = json::decode(given.as_bytes(), Limits::SAFE).unwrap();
            assert_eq!(Set::from_fields(given).unwrap().into_fields().to_json(), expected);
        }
    }
}
