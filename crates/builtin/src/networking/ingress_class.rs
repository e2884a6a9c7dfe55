//! Ingress classes.

use super::GROUP;
use super::ingress::path_segment;
use crate::checks::update::immutable;
use crate::checks::{Report, Rule, check_fields, names};
use crate::prepare::{count_spec_changes, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Map, Value};

/// An ingress class.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare: |object, write| count_spec_changes(object, write, ("networking/v1", "IngressClassSpec")),
    validate,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "IngressClass")
    })
};

const MAX_CONTROLLER: usize = 250;
const SCOPES: &[&str] = &["Cluster", "Namespace"];

const PARAMETERS: &[(&str, Rule)] = &[
    ("apiGroup", Rule::FormIfSet(names::dns1123_subdomain)),
    ("kind", Rule::RequiredForm(path_segment)),
    ("name", Rule::RequiredForm(path_segment)),
];

fn default(object: &mut Map, _context: &Context<'_>) {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let parameters = spec
        .and_then(|s| s.get_mut("parameters"))
        .and_then(Value::as_object_mut);
    if let Some(parameters) = parameters {
        set_default(parameters, "scope", "Cluster");
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let controller = spec.field("controller");
    if let Some(old) = write.old() {
        // An absent controller is an empty string in Go, and the error shows it so.
        let old: Value = old.str_at(["spec", "controller"]).into();
        let new: Value = controller.str().into();
        immutable(&Cursor::at(Some(&new), *controller.path()), Some(&old), errors);
    }
    errors.max_bytes(&controller, MAX_CONTROLLER);
    names::domain_prefixed_path(&controller, errors);
    let parameters = spec.field("parameters");
    Rule::IfSet(check_parameters).check(&parameters, errors);
}

fn check_parameters(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    check_fields(PARAMETERS, at, errors);
    let (scope, namespace) = (at.field("scope"), at.field("namespace"));
    match (scope.value().map(|_| scope.str()), namespace.is_set()) {
        (None, _) => errors.required(&scope, ""),
        (Some("Namespace"), false) => {
            errors.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        (Some("Namespace"), true) => errors.invalid_for(&namespace, names::dns1123_label(namespace.str())),
        (Some("Cluster"), true) => errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'"),
        (Some("Cluster"), false) => {}
        (Some(_), _) => errors.not_supported(&scope, SCOPES),
    }
}
