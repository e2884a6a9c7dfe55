//! Objects: `minProperties`, `maxProperties`, `properties`, `additionalProperties` and `required`.

use super::sink::{Sink, Stop};
use super::{SizeLimits, check_size};
use crate::plan::{Features, FieldLookup, PlanNode};
use crate::structural::{Additional, ValueValidation};
use scantling_value::{Map, Path, Value};

/// Checks an object and its members. Returns the number of matches.
pub(super) fn check<S: Sink>(
    node: &PlanNode,
    map: &Map,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    let mut matched = 0;
    let limits = node.limits();
    if let Some(limits) = limits {
        check_size(map.len(), size_limits(limits), "properties", at, sink)?;
    }
    let old = old.and_then(Value::as_object);
    let mut fields = FieldLookup::new(node);
    let mut required = 0;
    for (name, value) in map.iter() {
        // At the root, these name the type that both objects were converted to, so their old value is unknown.
        let hidden = || at.is_root() && (name == "kind" || name == "apiVersion");
        // A closure: members without a schema need no old value.
        let before = || old.filter(|_| !hidden()).and_then(|old| old.get(name));
        if let Some(field) = fields.find(name) {
            required += usize::from(field.required);
            // The header tells whether the node needs to be read at all.
            if !S::COLLECTS && (field.fast_check.accepts(value) || !field.has(Features::LIMITS)) {
                continue;
            }
            if let Some(node) = fields.found() {
                matched += super::check(node, value, before(), &at.field(name), sink)?;
            }
        } else if let Some(additional) = node.additional() {
            matched += super::check(additional, value, before(), &at.key(name), sink)?;
        } else if is_closed(node) {
            sink.fail(at, |site| site.not_allowed(name))?;
        }
    }
    if let Some(limits) = limits
        && required < limits.required.len()
    {
        for name in limits.required.iter().filter(|name| !map.contains_key(name)) {
            sink.fail(at, |site| site.required(name))?;
        }
    }
    Ok(matched)
}

fn size_limits(limits: &ValueValidation) -> SizeLimits {
    (limits.min_properties, limits.max_properties)
}

/// Returns whether undeclared members are forbidden.
fn is_closed(node: &PlanNode) -> bool {
    node.schema().additional == Some(Additional::Any(false))
}
