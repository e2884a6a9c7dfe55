//! JSON merge patch (RFC 7386), with kube-apiserver's deviation: it also drops nulls in objects inside lists.
//!
//! No crate is used: the algorithm is a few lines, and the deviation is in the middle of it.

use crate::members::MergeMembers;
use crate::text::TextNode;
use scantling_value::{Map, Value, deadline};

/// The merge patch cannot be applied (HTTP 400).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnObject;

impl std::fmt::Display for NotAnObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Invalid JSON Patch")
    }
}

impl std::error::Error for NotAnObject {}

/// Applies a merge patch to an object. The patch must be an object, or a list, which replaces the whole
/// object.
pub fn apply(mut document: Value, patch: Value) -> Result<Value, NotAnObject> {
    match patch {
        Value::Object(patch) => {
            if let Value::Object(document) = &mut document {
                return Ok(merge(std::mem::take(document), patch).into());
            }
            let mut patch = Value::Object(patch);
            prune_nulls(&mut patch);
            Ok(patch)
        }
        mut list @ Value::Array(_) => {
            prune_nulls(&mut list);
            Ok(list)
        }
        _ => Err(NotAnObject),
    }
}

fn merge(document: Map, patch: Map) -> Map {
    let mut document = MergeMembers::new(document, patch.len());
    for (key, mut change) in patch {
        deadline::tick();
        if change.is_null() {
            document.remove(&key);
            continue;
        }
        match (document.get_mut(&key), change) {
            (Some(Value::Object(current)), Value::Object(change)) => {
                *current = merge(std::mem::take(current), change);
            }
            // A value that replaces an object is taken unchanged; one that replaces anything else loses its
            // nulls.
            (Some(current @ Value::Object(_)), other) => *current = other,
            (Some(current), other) => {
                change = other;
                prune_nulls(&mut change);
                *current = change;
            }
            (None, other) => {
                change = other;
                prune_nulls(&mut change);
                document.insert(key, change);
            }
        }
    }
    document.into_map()
}

/// Removes null members at any depth. Elements of lists stay.
pub(crate) fn prune_nulls(value: &mut Value) {
    deadline::tick();
    match value {
        Value::Object(map) => map.retain(|_, v| {
            prune_nulls(v);
            !v.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

/// Applies a patch to the text of a document, as error messages show it: numbers and strings keep the
/// notation of the patch.
pub fn patched_text(document: &str, patch: &str) -> String {
    let (mut made, mut patch) = (TextNode::read(document), TextNode::read(patch));
    match patch.open() {
        TextNode::Object(_) => merge_texts(&mut made, patch),
        TextNode::List(_) | TextNode::Text(_) | TextNode::Null => {
            prune_null_texts(&mut patch);
            made = patch;
        }
    }
    let mut out = String::new();
    made.write(&mut out);
    out
}

fn merge_texts(document: &mut TextNode, mut patch: TextNode) {
    let TextNode::Object(members) = document.open() else {
        prune_null_texts(&mut patch);
        *document = patch;
        return;
    };
    let TextNode::Object(changes) = patch.open() else {
        // As in `merge`, a value that replaces an object keeps its nulls.
        *document = patch;
        return;
    };
    for (name, mut change) in std::mem::take(changes) {
        match members.get_mut(&name) {
            _ if change.is_null() => {
                members.remove(&name);
            }
            Some(current) => merge_texts(current, change),
            None => {
                prune_null_texts(&mut change);
                members.insert(name, change);
            }
        }
    }
}

fn prune_null_texts(node: &mut TextNode) {
    match node.open() {
        TextNode::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(prune_null_texts);
        }
        TextNode::List(items) => items.iter_mut().for_each(prune_null_texts),
        TextNode::Text(_) | TextNode::Null => {}
    }
}

/// Computes the patch between two documents. Documents with nulls cannot be produced by patches.
pub fn diff(from: &Map, to: &Map) -> Map {
    let mut out = Vec::new();
    for (key, old) in from.iter() {
        match (old, to.get(key)) {
            (_, None) => out.push((key.clone(), Value::Null)),
            (old, Some(new)) if old == new => {}
            (Value::Object(old), Some(Value::Object(new))) => {
                out.push((key.clone(), Value::Object(diff(old, new))));
            }
            (_, Some(new)) => out.push((key.clone(), new.clone())),
        }
    }
    let added = to.iter().filter(|(key, _)| !from.contains_key(key));
    out.extend(added.map(|(key, new)| (key.clone(), new.clone())));
    Map::from_unsorted(out)
}
