//! Normalizes the metadata of embedded resources in the defaults of a CRD.

use super::check::DefaultLocation;
use crate::meta::{self, MalformedFields};
use crate::plan::{Features, Plan, PlanNode};
use crate::prune::is_meta;
use scantling_value::{Map, Path, Value};

/// Removes unknown fields of such metadata from a schema document. kube-apiserver stores a CRD this way,
/// because its validation of defaults modifies the CRD.
pub(crate) fn coerce_defaults(plan: &Plan, schema: &mut Value) {
    coerce_default(plan.root(), schema, DefaultLocation::Values, true);
}

fn coerce_default(node: &PlanNode, schema: &mut Value, inside: DefaultLocation, is_root: bool) {
    if !node.has(Features::DEFAULT) || !node.has(Features::EMBEDDED) {
        return;
    }
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    let is_embedded = node.has_here(Features::EMBEDDED);
    let inside = if is_embedded {
        DefaultLocation::Values
    } else {
        inside
    };
    if inside == DefaultLocation::Values
        && let Some(default) = schema.get_mut("default")
    {
        // The CRD was accepted, so nothing in the default is malformed.
        let _ = meta::coerce_embedded(node, default, MalformedFields::Refuse, &Path::ROOT);
    }
    if let (Some(items), Some(schema)) = (node.items(), schema.get_mut("items")) {
        coerce_default(items, schema, inside, false);
    }
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    for (name, field) in node.fields() {
        let inside = match (is_root || is_embedded) && is_meta(name) {
            true => DefaultLocation::Metadata,
            false => inside,
        };
        if let Some(schema) = Map::get_mut(properties, name) {
            coerce_default(field, schema, inside, false);
        }
    }
}
