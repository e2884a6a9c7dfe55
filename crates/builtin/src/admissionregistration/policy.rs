//! ValidatingAdmissionPolicy, and the parts that mutating policies share.

use super::expressions::{Declarations, ExpressionCompiler, Result};
use super::matching::{self, FAILURE_POLICIES, stored_expressions};
use super::reserved;
use crate::checks::{Report, Rule, conditions, go, names, update};
use crate::prepare::{self, object_if_set, object_in, set_default};
use crate::{Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// Expressions that requests must satisfy.
pub(super) const KIND: KindBehavior = KindBehavior {
    default: |object, _| default_spec(object),
    prepare,
    validate,
    warn: reserved::warn_name,
    ..KindBehavior::new(KindFacts {
        status_keeps: &[&["spec"], &["metadata"]],
        ..super::facts("ValidatingAdmissionPolicy")
    })
};

const SPEC: prepare::StructName = ("admissionregistration/v1", "ValidatingAdmissionPolicySpec");

const MAX_AUDIT_ANNOTATIONS: usize = 20;
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];

fn prepare(object: &mut Map, write: &Write<'_>) {
    prepare::spec_and_status(object, write, SPEC);
    if let (Some(old), Subresource::Status) = (write.old(), write.subresource) {
        prepare::keep_metadata_of_status(object, old);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        check_status(&root.field("status"), errors);
        return;
    }
    reserved::check_name(object, write, errors);
    let spec = root.field("spec");
    check_common(&spec, write, errors);
    check_expressions(object.str_at(["metadata", "name"]), &spec, write, errors);
}

/// Fills in the defaults that all policies share.
pub(super) fn default_spec(object: &mut Map) {
    if let Some(spec) = object_in(object, "spec") {
        set_default(spec, "failurePolicy", "Fail");
        if let Some(resources) = object_if_set(spec, "matchConstraints") {
            matching::default_resources(resources);
        }
    }
}

/// Checks what all policies have: failures, parameters, resources and match conditions.
pub(super) fn check_common(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let failure = spec.field("failurePolicy");
    if failure.is_set() {
        Rule::OneOf(FAILURE_POLICIES).check(&failure, errors);
    } else {
        errors.required(&failure, "");
    }
    let params = spec.field("paramKind");
    Rule::IfSet(check_param_kind).check(&params, errors);
    let resources = spec.field("matchConstraints");
    if resources.is_set() {
        matching::check_resources(&resources, errors);
        Rule::Required.check(&resources.field("resourceRules"), errors);
    } else {
        errors.required(&resources, "");
    }
    let old = |name| write.old().and_then(|old| old.at(["spec", name]));
    let conditions = spec.field("matchConditions");
    // Conditions may use `params` only if there is a `paramKind`, so both must be unchanged.
    let is_unchanged = write.old().is_some()
        && update::same(params.value(), old("paramKind"))
        && update::same(conditions.value(), old("matchConditions"));
    if !is_unchanged {
        let stored = old("matchConditions").and_then(Value::as_array).unwrap_or(&[]);
        let stored = stored_expressions(stored, "expression");
        matching::check_conditions(&conditions, params.is_set(), &stored, errors);
    }
}

fn check_param_kind(params: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let version = params.field("apiVersion");
    let text = version.str();
    let (group, name) = text.split_once('/').unwrap_or(("", text));
    if text.is_empty() {
        errors.required(&version, "");
    } else if name.contains('/') {
        errors.invalid(&version, format!("unexpected GroupVersion string: {text}"));
    } else {
        let wrong = names::dns1123_subdomain(group);
        if !group.is_empty() && !wrong.is_empty() {
            errors.invalid_value(&version, group, wrong.join(","));
        }
        let wrong = names::dns1035_label(name);
        if name.is_empty() {
            errors.invalid(&version, "version must be specified");
        } else if !wrong.is_empty() {
            errors.invalid_value(&version, name, wrong.join(","));
        }
    }
    let kind = params.field("kind");
    let wrong = names::dns1035_label(&kind.str().to_lowercase());
    if kind.str().is_empty() {
        errors.required(&kind, "");
    } else if !wrong.is_empty() {
        let why = format!(
            "may have mixed case, but should otherwise match: {}",
            wrong.join(",")
        );
        errors.invalid(&kind, why);
    }
}

/// Checks the variables of a policy; each may use those before it.
pub(super) fn check_variables(
    spec: &Cursor<'_, '_>,
    compiler: &mut ExpressionCompiler,
    stored: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    let declarations = declarations(spec);
    for variable in spec.field("variables").items() {
        let (name, expression) = (variable.field("name"), variable.field("expression"));
        if name.str().trim().is_empty() {
            errors.required(&name, "name is not specified");
        } else if !is_identifier(name.str()) {
            errors.invalid(&name, "must be a valid CEL identifier");
        }
        let text = expression.str();
        if text.trim().is_empty() {
            errors.required(&expression, "expression is not specified");
        } else {
            let ty = compiler.check(&expression, text, text, declarations, Result::Any, stored, errors);
            compiler.declare(name.str(), ty.as_ref());
        }
    }
}

/// The variables that expressions of a policy may use.
pub(super) fn declarations(spec: &Cursor<'_, '_>) -> Declarations {
    Declarations {
        has_params: spec.field("paramKind").is_set(),
        has_authorizer: true,
        has_patch_types: false,
    }
}

fn is_identifier(name: &str) -> bool {
    let is_start = |c: char| c == '_' || c.is_ascii_alphabetic();
    name.starts_with(is_start)
        && name.chars().all(|c| is_start(c) || c.is_ascii_digit())
        && !scantling_cel::shape::is_reserved(name)
}

fn check_expressions(name: &str, spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let old = |list| write.old().map_or(&[][..], |old| old.list_at(["spec", list]));
    // kube-apiserver looks up variables among the stored validations, too.
    let stored = stored_expressions(old("validations"), "expression");
    let mut compiler = match spec.field("variables").list() {
        [] => ExpressionCompiler::default(),
        _ => ExpressionCompiler::with_variables(),
    };
    check_variables(spec, &mut compiler, &stored, errors);
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.list().is_empty() && annotations.list().is_empty() {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.required(&validations, why);
        errors.required(&annotations, why);
        return;
    }
    let stored_messages = stored_expressions(old("validations"), "messageExpression");
    for validation in validations.items() {
        check_validation(
            &validation,
            &compiler,
            declarations(spec),
            &stored,
            &stored_messages,
            errors,
        );
    }
    if annotations.list().len() > MAX_AUDIT_ANNOTATIONS {
        let shown = go::list("admissionregistration/v1", "AuditAnnotation", annotations.value());
        let why = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.invalid_value(&annotations, shown, why);
    }
    let stored = stored_expressions(old("auditAnnotations"), "valueExpression");
    let mut seen = BTreeSet::new();
    for annotation in annotations.items() {
        check_audit_annotation(name, &annotation, &compiler, declarations(spec), &stored, errors);
        let key = annotation.field("key");
        errors.unique(&mut seen, &key);
    }
}

fn check_validation(
    validation: &Cursor<'_, '_>,
    compiler: &ExpressionCompiler,
    declarations: Declarations,
    stored: &BTreeSet<&str>,
    stored_messages: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    let expression = validation.field("expression");
    let text = expression.str();
    if text.trim().is_empty() {
        errors.required(&expression, "expression is not specified");
    } else {
        compiler.check(
            &expression,
            text,
            text,
            declarations,
            Result::Bool,
            stored,
            errors,
        );
    }
    let message_expression = validation.field("messageExpression");
    let text = message_expression.str();
    if !text.is_empty() && text.trim().is_empty() {
        errors.invalid(&message_expression, "must be non-empty if specified");
    } else if !text.is_empty() {
        let declarations = Declarations {
            has_authorizer: false,
            ..declarations
        };
        compiler.check(
            &message_expression,
            text,
            text,
            declarations,
            Result::String,
            stored_messages,
            errors,
        );
    }
    let message = validation.field("message");
    if !message.str().is_empty() && message.str().trim().is_empty() {
        errors.invalid(&message, "must be non-empty if specified");
    } else if message.str().trim().contains(['\n', '\r']) {
        errors.invalid(&message, "must not contain line breaks");
    }
    Rule::OneOf(REASONS).check(&validation.field("reason"), errors);
}

fn check_audit_annotation(
    policy: &str,
    annotation: &Cursor<'_, '_>,
    compiler: &ExpressionCompiler,
    declarations: Declarations,
    stored: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    let key = annotation.field("key");
    // The name of the policy becomes the prefix of the key.
    if policy.is_empty() {
        errors.invalid_value(&key, key.str(), "requires metadata.name be non-empty");
    } else {
        let full = format!("{policy}/{}", key.str());
        for why in names::label_key(&full) {
            errors.invalid_value(&key, full.as_str(), why);
        }
    }
    let expression = annotation.field("valueExpression");
    let text = expression.str().trim();
    if text.is_empty() {
        errors.required(&expression, "valueExpression is not specified");
    } else if text.len() > MAX_VALUE_EXPRESSION {
        // UPSTREAM: an expression that is too long is reported as missing.
        errors.required(
            &expression,
            &format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length"),
        );
    } else {
        let shown = expression.str();
        compiler.check(
            &expression,
            text,
            shown,
            declarations,
            Result::StringOrNull,
            stored,
            errors,
        );
    }
}

fn check_status(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let checking = status.field("typeChecking");
    for warning in checking.field("expressionWarnings").items() {
        Rule::Required.check(&warning.field("warning"), errors);
        let reference = warning.field("fieldRef");
        if reference.str().trim().is_empty() {
            errors.required(&reference, "");
        }
    }
    conditions::check(&status.field("conditions"), errors);
}
