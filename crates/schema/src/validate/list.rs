//! Lists: `minItems`, `maxItems`, `uniqueItems` and `items`.

use super::sink::{Sink, Stop};
use super::{SizeLimits, check_size, is_size_valid};
use crate::plan::PlanNode;
use crate::structural::ValueValidation;
use scantling_value::{Path, Value, deadline};
use std::collections::HashMap;

#[inline(never)]
pub(super) fn is_valid_with_elements(node: &PlanNode, list: &[Value]) -> bool {
    deadline::tick_for(list.len());
    is_valid(node, list, super::is_valid)
}

/// Returns whether a list is valid; `is_element_valid` checks its elements.
#[inline]
pub(super) fn is_valid(
    node: &PlanNode,
    list: &[Value],
    mut is_element_valid: impl FnMut(&PlanNode, &Value) -> bool,
) -> bool {
    if let Some(limits) = node.limits()
        && (!is_size_valid(list.len(), size_limits(limits)) || (limits.unique_items && has_duplicates(list)))
    {
        return false;
    }
    node.items()
        .is_none_or(|items| list.iter().all(|item| is_element_valid(items, item)))
}

/// Checks a list and its elements. Returns the number of matches.
pub(super) fn check<S: Sink>(
    node: &PlanNode,
    list: &[Value],
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    let mut matched = 0;
    // go-openapi checks the elements before the size.
    if let Some(items) = node.items() {
        let old = old.and_then(|old| sink.correlate(node, old));
        for (i, item) in list.iter().enumerate() {
            let before = old.as_ref().and_then(|old| old.get(item));
            matched += super::check(items, item, before, &at.index(i), sink)?;
        }
    }
    if let Some(limits) = node.limits() {
        check_size(list.len(), size_limits(limits), "items", at, sink)?;
        if limits.unique_items && has_duplicates(list) {
            sink.fail(at, |site| site.invalid("", "shouldn't contain duplicates"))?;
        }
    }
    Ok(matched)
}

fn size_limits(limits: &ValueValidation) -> SizeLimits {
    (limits.min_items, limits.max_items)
}

/// Returns whether an element occurs twice. Only elements with the same JSON can be equal.
fn has_duplicates(list: &[Value]) -> bool {
    // Grouped by JSON: comparing all pairs would be quadratic, and a client chooses the length of the list.
    let mut seen: HashMap<String, Vec<&Value>> = HashMap::with_capacity(list.len());
    list.iter().any(|item| {
        let same_json = seen.entry(item.to_json()).or_default();
        let is_duplicate = same_json.contains(&item);
        // Few different values have the same JSON: only numbers of different types.
        if !is_duplicate {
            same_json.push(item);
        }
        is_duplicate
    })
}
