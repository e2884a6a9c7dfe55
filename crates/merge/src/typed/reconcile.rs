//! Reconciles field sets with a schema that changed.

use super::object_type::{ChosenType, TypeRef};
use crate::fields::{Element, FieldsKey, FieldsNode, FieldsV1, Set};
use scantling_value::deadline;

/// Reconciles a set with a type: managers of parts of a value that became atomic own the whole value.
pub(crate) fn reconcile(owned: &mut FieldsV1, ty: TypeRef<'_>) {
    let mut whole = Set::new();
    collect(owned.root(), OwnedExtent::Part, ty, &mut Vec::new(), &mut whole);
    if !whole.is_empty() {
        *owned = FieldsV1::from(&owned.to_set().recursive_difference(&whole).union(whole));
    }
}

/// The extent to which a value is owned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OwnedExtent {
    /// As a whole, with nothing below it.
    Whole,
    /// By what is below it.
    Part,
}

fn collect<'w>(
    node: FieldsNode<'w>,
    owned: OwnedExtent,
    ty: TypeRef<'_>,
    path: &mut Vec<FieldsKey<'w>>,
    whole: &mut Set,
) {
    deadline::tick();
    // Without a value, the first kind of the type decides.
    let shape = ty.kinds().shape(None).0;
    match shape {
        Some(ChosenType::Map(kind)) => {
            // structured-merge-diff does not reconcile deduced types, which cannot be atomic.
            if kind.is_deduced() {
                return;
            }
            if kind.atomic {
                if owned == OwnedExtent::Part && !node.is_end() {
                    insert(whole, path);
                }
                return;
            }
            for (key, below) in node.steps() {
                // As in structured-merge-diff, fields that the schema no longer declares are ignored.
                if let Some(ty) = key.field().and_then(|name| kind.member(name)) {
                    step(key, below, ty, path, whole);
                }
            }
        }
        Some(ChosenType::List(kind)) => {
            if kind.is_atomic() {
                if owned == OwnedExtent::Part {
                    insert(whole, path);
                }
                return;
            }
            for (key, below) in node.steps() {
                step(key, below, kind.element, path, whole);
            }
        }
        Some(ChosenType::Scalar(_)) | None => {}
    }
}

fn insert(whole: &mut Set, path: &[FieldsKey<'_>]) {
    let path: Vec<Element> = path.iter().filter_map(|key| key.element()).collect();
    whole.insert(&path);
}

fn step<'w>(
    key: FieldsKey<'w>,
    below: FieldsNode<'w>,
    ty: TypeRef<'_>,
    path: &mut Vec<FieldsKey<'w>>,
    whole: &mut Set,
) {
    let owned = if below.is_end() {
        OwnedExtent::Whole
    } else {
        OwnedExtent::Part
    };
    path.push(key);
    collect(below, owned, ty, path, whole);
    path.pop();
}
