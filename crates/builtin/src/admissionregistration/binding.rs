//! ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding.

use super::{matching, reserved};
use crate::checks::{Report, Rule, labels, names};
use crate::prepare::{count_change, is_changed, object_if_set, set_generation};
use crate::{Cursor, KindBehavior, Operation, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// Puts a validating policy into effect.
pub(super) const VALIDATING_ADMISSION_POLICY_BINDING: KindBehavior = KindBehavior {
    default: |object, _| default_resources(object),
    prepare: |object, write| prepare_generation(object, write, "ValidatingAdmissionPolicyBindingSpec"),
    validate: validate_validating,
    warn: reserved::warn_name,
    ..KindBehavior::new(super::facts("ValidatingAdmissionPolicyBinding"))
};

/// Puts a mutating policy into effect.
pub(super) const MUTATING_ADMISSION_POLICY_BINDING: KindBehavior = KindBehavior {
    default: |object, _| default_resources(object),
    prepare: |object, write| prepare_generation(object, write, "MutatingAdmissionPolicyBindingSpec"),
    validate: validate_mutating,
    warn: reserved::warn_name,
    ..KindBehavior::new(super::facts("MutatingAdmissionPolicyBinding"))
};

const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];

fn validate_validating(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    reserved::check_name(object, write, errors);
    let root = Cursor::root(object);
    let spec = root.field("spec");
    check_spec(&spec, errors);
    check_actions(&spec.field("validationActions"), errors);
}

fn validate_mutating(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    reserved::check_name(object, write, errors);
    let root = Cursor::root(object);
    let spec = root.field("spec");
    check_spec(&spec, errors);
    matching::check_mutating_operations(&spec.field("matchResources"), errors);
}

fn default_resources(object: &mut Map) {
    let resources = object_if_set(object, "spec").and_then(|spec| object_if_set(spec, "matchResources"));
    if let Some(resources) = resources {
        matching::default_resources(resources);
    }
}

fn prepare_generation(object: &mut Map, write: &Write<'_>, spec: &'static str) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(old) => {
            let changed = is_changed(object, old, "spec", ("admissionregistration/v1", spec));
            count_change(object, old, changed);
        }
    }
}

fn check_spec(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    Rule::RequiredForm(names::dns1123_subdomain).check(&spec.field("policyName"), errors);
    let reference = spec.field("paramRef");
    Rule::IfSet(check_param_ref).check(&reference, errors);
    matching::check_resources(&spec.field("matchResources"), errors);
}

/// Parameters are named or selected, not both.
fn check_param_ref(reference: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (name, selector) = (reference.field("name"), reference.field("selector"));
    let exclusive = "name and selector are mutually exclusive";
    if !name.str().is_empty() {
        errors.invalid_for(&name, NameRule::PathSegment.check(name.str()));
        if selector.is_set() {
            errors.forbidden(&name, exclusive);
        }
    }
    if selector.is_set() {
        labels::selector(&selector, errors);
        if !name.str().is_empty() {
            errors.forbidden(&selector, exclusive);
        }
    }
    if name.str().is_empty() && !selector.is_set() {
        errors.required(reference, "one of name or selector must be specified");
    }
    Rule::RequiredOneOf(&["Deny", "Allow"]).check(&reference.field("parameterNotFoundAction"), errors);
}

fn check_actions(actions: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for action in actions.items() {
        Rule::In(ACTIONS).check(&action, errors);
        errors.unique(&mut seen, &action);
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                   response and headers serves no purpose)";
        errors.invalid(actions, why);
    }
    if seen.is_empty() {
        errors.required(actions, "");
    }
}
