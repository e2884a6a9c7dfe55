//! Storage classes.

use super::{GROUP, check_parameters, check_provisioner};
use crate::checks::nodes::{deprecated_label, topology_term};
use crate::checks::update::{IMMUTABLE, same};
use crate::checks::{Report, Rule};
use crate::prepare::set_default;
use crate::{Context, Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// A storage class.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "StorageClass")
    })
};

const RECLAIM_POLICIES: &[&str] = &["Delete", "Retain"];
const BINDING_MODES: &[&str] = &["Immediate", "WaitForFirstConsumer"];
const IMMUTABLE_FIELDS: [&str; 4] = ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"];

fn default(object: &mut Map, _context: &Context<'_>) {
    set_default(object, "reclaimPolicy", "Delete");
    set_default(object, "volumeBindingMode", "Immediate");
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    check_provisioner(&root.field("provisioner"), errors);
    check_parameters(&root.field("parameters"), errors);
    let policy = root.field("reclaimPolicy");
    if !policy.str().is_empty() {
        Rule::OneOf(RECLAIM_POLICIES).check(&policy, errors);
    }
    let mode = root.field("volumeBindingMode");
    match mode.is_set() {
        true => Rule::OneOf(BINDING_MODES).check(&mode, errors),
        false => errors.required(&mode, ""),
    }
    check_topologies(&root.field("allowedTopologies"), errors);
    for field in IMMUTABLE_FIELDS {
        let new = root.field(field);
        if write.old().is_some_and(|old| !same(new.value(), old.get(field))) {
            errors.invalid_value(&new, Value::Null, IMMUTABLE);
        }
    }
}

fn warn(object: &Value, _write: &Write<'_>, warnings: &mut Vec<String>) {
    let root = Cursor::root(object);
    for term in root.field("allowedTopologies").items() {
        for expression in term.field("matchLabelExpressions").items() {
            let key = expression.field("key");
            warnings.extend(deprecated_label(key.str()).map(|why| format!("{}: {why}", key.path())));
        }
    }
}

fn check_topologies(topologies: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for term in topologies.items() {
        let mut expressions = topology_term(&term, errors);
        expressions.sort_unstable();
        // Kubernetes compares with empty terms first, so that an empty term is always a duplicate.
        if expressions.is_empty() || !seen.insert(expressions) {
            errors.duplicate(&term.field("matchLabelExpressions"), "");
        }
    }
}
