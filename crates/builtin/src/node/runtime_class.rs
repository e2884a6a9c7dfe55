//! RuntimeClass.

use crate::checks::{Report, Rule, go, labels, names, resources, tolerations, update};
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// A container runtime that pods may select.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    ..KindBehavior::new(KindFacts {
        creates_on_update: true,
        unconditional_update: false,
        qualifies_finalizers: false,
        validates_name_on_update: true,
        ..KindFacts::new("node.k8s.io", "RuntimeClass")
    })
};

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let overhead = root.field("overhead");
    Rule::IfSet(check_overhead).check(&overhead, errors);
    check_scheduling(&root.field("scheduling"), errors);
    let handler = root.field("handler");
    // A stored handler stays as it is, so that only a changed one is checked.
    let is_unchanged = |old: &Value| old.get_str("handler") == handler.str();
    if !write.old().is_some_and(is_unchanged) {
        check_handler(&handler, write, errors);
        if write.old().is_some() {
            errors.invalid_value(&handler, Value::Null, update::IMMUTABLE);
        }
    }
}

/// The handler is a DNS label. On a create, the text is that of declarative validation, which counts bytes.
fn check_handler(handler: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    if handler.str().is_empty() {
        return errors.required(handler, "");
    }
    for why in names::dns1123_label(handler.str()) {
        let why = match write.old() {
            None => why.replace("no more than 63 characters", "no more than 63 bytes"),
            Some(_) => why,
        };
        errors.invalid(handler, why);
    }
}

/// The overhead is checked like the limits of a container.
fn check_overhead(overhead: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let limits = overhead.field("podFixed").value().cloned().unwrap_or_default();
    let limits = Map::from_iter([("limits", limits)]).into();
    let context = resources::Requirements {
        names: resources::container_name,
        claims: &BTreeSet::new(),
        allows_partial_pages: false,
    };
    resources::requirements(&Cursor::at(Some(&limits), *overhead.path()), &context, errors);
}

fn check_scheduling(scheduling: &Cursor<'_, '_>, errors: &mut ErrorList) {
    labels::labels(&scheduling.field("nodeSelector"), errors);
    let list = scheduling.field("tolerations");
    tolerations::tolerations(&list, false, errors);
    let mut seen = BTreeSet::new();
    for toleration in list.items() {
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.field(name).str());
        if !seen.insert(key) {
            let shown = go::structure("core/v1", "Toleration", toleration.value());
            errors.duplicate(&toleration, shown);
        }
    }
}
