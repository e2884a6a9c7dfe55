//! Sets of fields against a schema that may have changed since.

use super::ty::{Shape, TypeRef};
use crate::fields::{Element, Set};

/// Brings a set into line with a type: what became atomic is owned as a whole by those who owned a part of it.
/// Returns none if nothing is to be done.
pub(crate) fn reconcile(set: &Set, ty: TypeRef<'_>) -> Option<Set> {
    let mut whole = Set::new();
    collect(set, Ownership::Part, ty, &mut Vec::new(), &mut whole);
    if whole.is_empty() {
        return None;
    }
    Some(set.recursive_difference(&whole).union(&whole))
}

/// How a value is owned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ownership {
    /// As a whole, with nothing below it.
    Whole,
    /// By what is below it.
    Part,
}

fn collect<'s>(
    set: &'s Set,
    owned: Ownership,
    ty: TypeRef<'_>,
    path: &mut Vec<&'s Element>,
    whole: &mut Set,
) {
    // No value is at hand: the type's first kind decides.
    let shape = ty.kinds().shape(None).0;
    match shape {
        Some(Shape::Map(kind)) => {
            if kind.is_deduced() {
                return;
            }
            if kind.atomic {
                if owned == Ownership::Part && !set.is_empty() {
                    insert(whole, path);
                }
                return;
            }
            for (element, member, below) in set.steps() {
                let Element::Field(name) = element else { continue };
                if let Some(ty) = kind.member(name) {
                    step(element, member, below, ty, path, whole);
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
            for (element, member, below) in set.steps() {
                step(element, member, below, kind.element, path, whole);
            }
        }
        Some(Shape::Scalar(_)) | None => {}
    }
}

fn insert(whole: &mut Set, path: &[&Element]) {
    let path: Vec<Element> = path.iter().map(|e| (*e).clone()).collect();
    whole.insert(&path);
}

fn step<'s>(
    element: &'s Element,
    member: bool,
    below: &'s Set,
    ty: TypeRef<'_>,
    path: &mut Vec<&'s Element>,
    whole: &mut Set,
) {
    let owned = if member && below.is_empty() {
        Ownership::Whole
    } else {
        Ownership::Part
    };
    path.push(element);
    collect(below, owned, ty, path, whole);
    path.pop();
}
