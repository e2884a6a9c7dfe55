//! What objects lose on their way from one version to another where nothing converts them.

use crate::rules::SchemaStep;
use scantling_schema::definition::CrdVersion;
use scantling_schema::structural::{Additional, Structural, Type};
use std::sync::Arc;

/// The fields of a version that another version does not know, each with what becomes of it.
pub(super) fn lost(
    version: &CrdVersion,
    schema: &Arc<Structural>,
    other: &CrdVersion,
    others: &Arc<Structural>,
) -> Vec<(Vec<SchemaStep>, String)> {
    let name = &other.name;
    let fate = if other.storage {
        format!(
            "version {name}, in which objects are stored, does not know this field, and conversion is None: it is dropped"
        )
    } else if other.served && version.storage {
        format!(
            "version {name} does not know this field, and conversion is None: an update through {name} drops it"
        )
    } else {
        return Vec::new();
    };
    let mut missing = Vec::new();
    compare(schema, others, &mut Vec::new(), &mut missing);
    missing.into_iter().map(|at| (at, fate.clone())).collect()
}

/// The topmost fields of one schema that another drops.
fn compare(
    one: &Arc<Structural>,
    other: &Arc<Structural>,
    at: &mut Vec<SchemaStep>,
    missing: &mut Vec<Vec<SchemaStep>>,
) {
    // Equal schemas are one.
    if Arc::ptr_eq(one, other) || other.preserves_unknown_fields() {
        return;
    }
    let mut below = |step: SchemaStep, one: &Arc<Structural>, other: Option<&Arc<Structural>>| {
        at.push(step);
        match other {
            Some(other) => compare(one, other, at, missing),
            None => missing.push(at.clone()),
        }
        at.pop();
    };
    let values = other.additional_schema();
    for (name, property) in &one.properties {
        let same = other.property(name).or(values);
        if same.is_some() || !keeps_any(other) {
            below(SchemaStep::Property(name.to_string()), property, same);
        }
    }
    if let (Some(items), Some(others)) = (&one.items, &other.items) {
        below(SchemaStep::Items, items, Some(others));
    }
    if let (Some(one), Some(other)) = (one.additional_schema(), values) {
        below(SchemaStep::Additional, one, Some(other));
    }
}

/// Whether nothing is dropped from values of a schema, because any field may stand there, or because they have none.
fn keeps_any(schema: &Structural) -> bool {
    matches!(schema.additional, Some(Additional::Any(true))) || schema.ty != Some(Type::Object)
}
