//! MutatingAdmissionPolicy.

use super::expressions::{Declarations, ExpressionCompiler, Result};
use super::{matching, policy, reserved};
use crate::checks::{Report, Rule};
use crate::prepare::{count_change, is_changed, set_generation};
use crate::{Cursor, KindBehavior, Operation, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// Expressions that change objects.
pub(super) const KIND: KindBehavior = KindBehavior {
    default: |object, _| policy::default_spec(object),
    prepare,
    validate,
    warn: reserved::warn_name,
    ..KindBehavior::new(super::facts("MutatingAdmissionPolicy"))
};

/// The types of patches with the fields that belong to them.
const PATCH_TYPES: [(&str, &str); 2] = [
    ("ApplyConfiguration", "applyConfiguration"),
    ("JSONPatch", "jsonPatch"),
];

fn prepare(object: &mut Map, write: &Write<'_>) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(old) => {
            let ty = ("admissionregistration/v1", "MutatingAdmissionPolicySpec");
            let changed = is_changed(object, old, "spec", ty);
            count_change(object, old, changed);
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    reserved::check_name(object, write, errors);
    let spec = root.field("spec");
    policy::check_common(&spec, write, errors);
    matching::check_mutating_operations(&spec.field("matchConstraints"), errors);
    let mut compiler = ExpressionCompiler::with_variables();
    policy::check_variables(&spec, &mut compiler, &BTreeSet::new(), errors);
    let mutations = spec.field("mutations");
    Rule::RequiredFor("mutations must contain at least one item").check(&mutations, errors);
    let old = write
        .old()
        .map_or(&[][..], |old| old.list_at(["spec", "mutations"]));
    // UPSTREAM: JSON patches that are stored get no newer libraries.
    let applied = old.iter().map(|m| m.str_at(["applyConfiguration", "expression"]));
    let stored = applied.map(str::trim).collect();
    let declarations = Declarations {
        has_patch_types: true,
        ..policy::declarations(&spec)
    };
    for mutation in mutations.items() {
        check_mutation(&mutation, &compiler, declarations, &stored, errors);
    }
    Rule::RequiredOneOf(&["IfNeeded", "Never"]).check(&spec.field("reinvocationPolicy"), errors);
}

fn check_mutation(
    mutation: &Cursor<'_, '_>,
    compiler: &ExpressionCompiler,
    declarations: Declarations,
    stored: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    let kind = mutation.field("patchType");
    if kind.str().is_empty() {
        return errors.required(&kind, "");
    }
    if !PATCH_TYPES.iter().any(|(name, _)| *name == kind.str()) {
        return errors.not_supported(&kind, &["ApplyConfiguration", "JSONPatch"]);
    }
    for (name, field) in PATCH_TYPES {
        let patch = mutation.field(field);
        if name != kind.str() {
            if patch.is_set() {
                let why = format!("must not be specified when patchType is {}", kind.str());
                // UPSTREAM: the error shows the name of the field in braces.
                errors.invalid_value(&patch, format!("{{{field}}}"), why);
            }
            continue;
        }
        if !patch.is_set() {
            errors.required(&patch, &format!("must be specified when patchType is {name}"));
            continue;
        }
        let expression = patch.field("expression");
        let expected = if name == "JSONPatch" {
            Result::JsonPatches
        } else {
            Result::Object
        };
        match expression.str().trim() {
            "" => errors.required(&expression, ""),
            text => drop(compiler.check(&expression, text, text, declarations, expected, stored, errors)),
        }
    }
}
