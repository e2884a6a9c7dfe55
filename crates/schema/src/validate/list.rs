//! Lists: `minItems`, `maxItems`, `uniqueItems` and `items`.

use super::sink::{Sink, Stop};
use super::{SizeLimits, check_size};
use crate::plan::PlanNode;
use crate::structural::ValueValidation;
use scantling_value::{Path, Value};
use std::collections::HashMap;

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
        let unchanged = sink.unchanged_elements(at);
        for (i, item) in list.iter().enumerate() {
            if unchanged.get(i) == Some(&true) {
                continue;
            }
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
