//! Sets of fields against a schema that may have changed since.

use super::ty::{Shape, TypeRef};
use crate::fields::{Element, Key, Node, Set, Written};
use scantling_value::deadline;

/// Brings a set into line with a type: what became atomic is owned as a whole by those who owned a part of it.
pub(crate) fn reconcile(owned: &mut Written, ty: TypeRef<'_>) {
    let mut whole = Set::new();
    collect(owned.root(), Ownership::Part, ty, &mut Vec::new(), &mut whole);
    if !whole.is_empty() {
        *owned = Written::from(&owned.to_set().recursive_difference(&whole).union(&whole));
    }
}

/// How a value is owned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// As a whole, with nothing below it.
    Whole,
    /// By what is below it.
    Part,
}

fn collect<'w>(node: Node<'w>, owned: Ownership, ty: TypeRef<'_>, path: &mut Vec<Key<'w>>, whole: &mut Set) {
    deadline::tick();
    // No value is at hand: the type's first kind decides.
    let shape = ty.kinds().shape(None).0;
    match shape {
        Some(Shape::Map(kind)) => {
            if kind.is_deduced() {
                return;
            }
            if kind.atomic {
                if owned == Ownership::Part && !node.is_end() {
                    insert(whole, path);
                }
                return;
            }
            for (key, below) in node.steps() {
                if let Some(ty) = key.field().and_then(|name| kind.member(name)) {
                    step(key, below, ty, path, whole);
                }
            }
        }
        Some(Shape::List(kind)) => {
            if kind.is_atomic() {
                if owned == Ownership::Part {
                    insert(whole, path);
                }
                return;
            }
            for (key, below) in node.steps() {
                step(key, below, kind.element, path, whole);
            }
        }
        Some(Shape::Scalar(_)) | None => {}
    }
}

fn insert(whole: &mut Set, path: &[Key<'_>]) {
    let path: Vec<Element> = path.iter().filter_map(|key| key.element()).collect();
    whole.insert(&path);
}

fn step<'w>(key: Key<'w>, below: Node<'w>, ty: TypeRef<'_>, path: &mut Vec<Key<'w>>, whole: &mut Set) {
    let owned = if below.is_end() {
        Ownership::Whole
    } else {
        Ownership::Part
    };
    path.push(key);
    collect(below, owned, ty, path, whole);
    path.pop();
}
