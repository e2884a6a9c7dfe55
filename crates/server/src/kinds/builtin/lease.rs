//! What is particular about leases.

use super::core::{RestStrategy, ValidationContext};
use scantling_notation::names;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, FieldError, Map, Path, Value};

pub(super) static PARTICULARS: RestStrategy = RestStrategy {
    scope: Scope::Namespaced,
    names: NameRule::Subdomain,
    selectable: &super::NAMES,
    qualifies_finalizers: false,
    creates_on_update: true,
    unconditional_update: false,
    kept_in_memory: true,
    complete: |_| {},
    prepare,
    check,
    warn: |_| Vec::new(),
};

/// The one way to choose a holder that has a name without a domain.
const OLDEST: &str = "OldestEmulationVersion";

/// Holders are not chosen by the server: how that would be done is forgotten, unless it is known of the lease already.
fn prepare(lease: &mut Map, old: Option<&Value>) {
    let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["strategy", "preferredHolder"] {
        if old.and_then(|old| old.at(["spec", field])).is_none() {
            spec.remove(field);
        }
    }
}

fn check(ctx: &ValidationContext<'_>) -> ErrorList {
    let root = Path::ROOT;
    let at = root.field("spec");
    let field = |name: &str| ctx.object.get("spec").and_then(|spec| spec.get(name));
    let mut errors = ErrorList::new();
    for (name, least, why) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        if let Some(number) = field(name).and_then(Value::as_int).filter(|n| *n < least) {
            errors.push_with(|| FieldError::invalid(&at.field(name), Value::Int(number), why));
        }
    }
    let text = |name: &str| field(name).and_then(Value::as_str);
    if let Some(strategy) = text("strategy") {
        let within = at.field("strategy");
        // Its name stands twice on the way to it.
        let at = within.field("strategy");
        if strategy.contains('/') {
            let wrong = names::label_key(strategy).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(&at, strategy, why)));
        } else if strategy != OLDEST {
            errors.push_with(|| FieldError::not_supported(&at, strategy, [OLDEST]));
        }
    }
    let is_empty = |name: &str| text(name).is_none_or(str::is_empty);
    if !is_empty("preferredHolder") && is_empty("strategy") {
        let why = "may only be specified if `strategy` is defined";
        errors.push_with(|| FieldError::forbidden(&at.field("preferredHolder"), why));
    }
    errors
}
