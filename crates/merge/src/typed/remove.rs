//! Removing fields from an object.

use super::ty::{Shape, TypeRef};
use crate::fields::{Element, Set};
use scantling_value::Value;

/// Removes fields. What loses all that is inside of it becomes null, as on a server.
pub(crate) fn remove(value: &mut Value, fields: &Set, ty: TypeRef<'_>) {
    let shape = ty.kinds().shape(Some(value)).0;
    let left = match (shape, &mut *value) {
        (Some(Shape::Scalar(_)), _) => return,
        (Some(Shape::Map(kind)), Value::Object(map)) if !kind.atomic => {
            map.retain(|name, member| {
                let element = Element::Field(name.into());
                if fields.has(&element) {
                    return false;
                }
                if let (Some(below), Some(ty)) = (fields.below(&element), kind.member(name)) {
                    remove(member, below, ty);
                }
                true
            });
            map.len()
        }
        (Some(Shape::List(kind)), Value::Array(items)) if !kind.is_atomic() => {
            items.retain_mut(|item| {
                let Ok(element) = kind.element_of(item) else {
                    return true;
                };
                if fields.has(&element) {
                    return false;
                }
                if let Some(below) = fields.below(&element) {
                    remove(item, below, kind.element);
                }
                true
            });
            items.len()
        }
        _ => 0,
    };
    if left == 0 {
        *value = Value::Null;
    }
}
