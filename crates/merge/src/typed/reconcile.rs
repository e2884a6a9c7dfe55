//! Reconciles field sets with a schema that changed.

use super::object_type::{ChosenType, TypeRef};
use crate::fields::{Element, FieldsKey, FieldsNode, Set};
use scantling_value::deadline;

/// Reconciles a set with a type: managers of parts of a value that became atomic own the whole value.
pub(crate) fn reconcile(owned: &mut Set, ty: TypeRef<'_>) {
    let mut whole = Vec::new();
    collect(owned.root(), OwnedExtent::Part, ty, &mut Vec::new(), &mut whole);
    if !whole.is_empty() {
        let whole = Set::union_of(whole);
        owned.subtract_below(&whole);
        owned.unite(whole);
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
    whole: &mut Vec<Set>,
) {
    // Without a value, the first kind of the type decides.
    let shape = ty.kinds().choose(None).0;
    match shape {
        Some(ChosenType::Map(kind)) => {
            // structured-merge-diff does not reconcile deduced types, which cannot be atomic.
            if kind.is_deduced() {
                return;
            }
            if kind.atomic {
                if owned == OwnedExtent::Part && !node.is_leaf() {
                    whole.push(set_of(path));
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
                    whole.push(set_of(path));
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

/// The set of one path.
fn set_of(path: &[FieldsKey<'_>]) -> Set {
    let path: Vec<Element> = path.iter().filter_map(|key| key.element()).collect();
    Set::from(path.as_slice())
}

fn step<'w>(
    key: FieldsKey<'w>,
    below: FieldsNode<'w>,
    ty: TypeRef<'_>,
    path: &mut Vec<FieldsKey<'w>>,
    whole: &mut Vec<Set>,
) {
    deadline::tick();
    let owned = if below.is_leaf() {
        OwnedExtent::Whole
    } else {
        OwnedExtent::Part
    };
    path.push(key);
    collect(below, owned, ty, path, whole);
    path.pop();
}
