//! Fields that objects lose between versions without a conversion webhook.

use crate::rules::SchemaStep;
use scantling_schema::definition::CrdVersion;
use scantling_schema::structural::{Additional, Structural, Type};
use std::sync::Arc;

/// Returns the fields of a version that another version does not declare, each with the effect.
pub(super) fn lost(
    version: &CrdVersion,
    schema: &Arc<Structural>,
    other: &CrdVersion,
    others: &Arc<Structural>,
) -> Vec<(Vec<SchemaStep>, String)> {
    let name = &other.name;
    let effect = if other.storage {
        format!(
            "the storage version {name} does not declare this field, and conversion is None: the field is pruned"
        )
    } else if other.served && version.storage {
        format!(
            "version {name} does not declare this field, and conversion is None: an update in {name} prunes it"
        )
    } else {
        return Vec::new();
    };
    let mut missing = Vec::new();
    compare(schema, others, &mut Vec::new(), &mut missing);
    missing.into_iter().map(|at| (at, effect.clone())).collect()
}

/// The topmost fields of one schema that another drops.
fn compare(
    one: &Arc<Structural>,
    other: &Arc<Structural>,
    at: &mut Vec<SchemaStep>,
    missing: &mut Vec<Vec<SchemaStep>>,
) {
    // Equal schemas are shared, so pointers can be compared.
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
    // A declared map accepts any name, so a property of the other version survives as an entry.
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

/// Returns whether values of a schema lose no fields, because it allows any field or has none.
fn keeps_any(schema: &Structural) -> bool {
    matches!(schema.additional, Some(Additional::Any(true))) || schema.ty != Some(Type::Object)
}
