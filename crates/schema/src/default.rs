//! Fills in defaults, and says what is wrong with those of a definition.

mod check;

pub use check::{Pruned, check_defaults};

use crate::plan::{Features, Node};
use scantling_value::{Map, Value, deadline};

/// Fills in the defaults of absent fields, and of `null`s that are no values; then those inside of what is there.
pub fn fill(node: &Node, value: &mut Value) {
    if !node.has(Features::DEFAULT) {
        return;
    }
    deadline::tick();
    match value {
        Value::Object(map) => fill_object(node, map),
        Value::Array(list) => {
            if let Some(items) = node.items() {
                for item in list {
                    fill_element(items, item);
                }
            }
        }
        _ => {}
    }
}

fn fill_object(node: &Node, map: &mut Map) {
    for (name, field, default) in node.defaulted() {
        deadline::tick();
        match map.get_mut(name) {
            None => {
                map.insert(name.clone(), default.clone());
            }
            Some(value) if value.is_null() && !field.schema().nullable => *value = default.clone(),
            Some(_) => {}
        }
    }
    node.all_members(map.iter_mut(), Features::DEFAULT, |member| {
        if member.declared {
            fill(member.node, member.value);
        } else {
            fill_element(member.node, member.value);
        }
        true
    });
}

/// Elements of lists and values of maps are there already: a default replaces only a `null`.
fn fill_element(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.schema().nullable
        && let Some(default) = node.default()
    {
        *value = default.clone();
    }
    fill(node, value);
}
