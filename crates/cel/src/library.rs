//! Function libraries: tables of overloads.
//!
//! The environment decides which libraries it has, and in which version. A library with several versions has
//! one table per version, with the additions only; a version consists of the tables up to its own.

pub mod authz;
pub mod bindings;
pub mod comprehensions;
pub mod encoders;
pub mod format;
pub mod lists;
pub mod math;
pub mod net;
pub mod optional;
mod ordered;
pub mod quantity;
pub mod regex;
mod scalars;
pub mod semver;
pub mod sets;
pub mod standard;
pub mod strings;
pub mod url;

use crate::estimate::TEXT_FACTOR;
use crate::val::{Arena, Val};

/// The cost of traversing a value: a tenth of the bytes of text, 1 for any other scalar, and the sum of the
/// members for lists and maps. `None` stands for an error.
pub(crate) fn traversal_cost(value: Option<Val<'_>>) -> u64 {
    // An arena of its own: values that are read only to count them must not use up that of the evaluation.
    let arena = Arena::new();
    let mut cost: u64 = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        let text = match value {
            // Bytes, not characters: kube-apiserver's `traversalCost` uses Go's `len`.
            Some(Val::Str(s)) => s.len(),
            Some(Val::Bytes(b)) => b.len(),
            other => {
                if let Some(list) = other.and_then(Val::as_list) {
                    pending.extend(list.iter(&arena).map(Result::ok));
                } else if let Some(map) = other.and_then(Val::as_map) {
                    let mut hidden = map.len();
                    for key in map.keys() {
                        hidden = hidden.saturating_sub(1);
                        pending.push(Some(key));
                        pending.push(map.get(&arena, key).and_then(Result::ok));
                    }
                    // Undeclared members count, too: 1 for the name and 1 for the value.
                    cost = cost.saturating_add(2 * hidden as u64);
                } else {
                    cost = cost.saturating_add(1);
                }
                continue;
            }
        };
        // Rounded down for each text, unlike most costs, so that a list of short texts is free.
        cost = cost.saturating_add((text as f64 * TEXT_FACTOR) as u64);
    }
    cost
}
