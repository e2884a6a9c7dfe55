//! PriorityClass.

use crate::checks::{Report, Rule, update};
use crate::prepare::set_generation;
use crate::{Cursor, KindBehavior, KindFacts, Operation, Write};
use scantling_value::{ErrorList, Map, Value};

/// A named priority of pods.
pub(super) const KIND: KindBehavior = KindBehavior {
    default: |object, _| {
        object.get_or_insert_with("preemptionPolicy", || "PreemptLowerPriority".into());
    },
    prepare,
    validate,
    protection,
    ..KindBehavior::new(KindFacts::new("scheduling.k8s.io", "PriorityClass"))
};

/// Names with this prefix are reserved.
const SYSTEM_PREFIX: &str = "system-";

/// The classes that every cluster has, with their values.
const SYSTEM_CLASSES: &[(&str, i64)] = &[
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// The highest value of a class that users define.
const MAX_VALUE: i64 = 1_000_000_000;

fn protection(name: &str) -> Option<&'static str> {
    let is_system = SYSTEM_CLASSES.iter().any(|(system, _)| *system == name);
    is_system.then_some("this is a system priority class and cannot be deleted")
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    if matches!(write.operation, Operation::Create) {
        set_generation(object, 1);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    match write.old() {
        None => check_new(&root, errors),
        Some(old) => check_immutable(&root, old, errors),
    }
}

fn check_new(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let value = root.field("value");
    let metadata = root.field("metadata");
    let name = metadata.field("name");
    // System classes have values above the maximum.
    if name.str().starts_with(SYSTEM_PREFIX) {
        if let Err(why) = check_system_class(name.str(), value.int(), root.field("globalDefault").bool()) {
            let why = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
            );
            errors.forbidden(&name, why);
        }
    } else if value.int() > MAX_VALUE {
        let why = format!("maximum allowed value of a user defined priority is {MAX_VALUE}");
        errors.forbidden(&value, why);
    }
    let policy = root.field("preemptionPolicy");
    if policy.is_set() {
        Rule::RequiredOneOf(&["PreemptLowerPriority", "Never"]).check(&policy, errors);
    }
}

fn check_system_class(name: &str, value: i64, is_default: bool) -> Result<(), String> {
    let Some((_, expected)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Err(format!("{name} is not a known system priority class"));
    };
    if value != *expected {
        return Err(format!("value of {name} PriorityClass must be {expected}"));
    }
    if is_default {
        return Err(format!("globalDefault of {name} PriorityClass must be false"));
    }
    Ok(())
}

fn check_immutable(root: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let value = root.field("value");
    if value.int() != old.get("value").and_then(Value::as_int).unwrap_or(0) {
        errors.forbidden(&value, "may not be changed in an update.");
    }
    update::immutable(
        &root.field("preemptionPolicy"),
        old.get("preemptionPolicy"),
        errors,
    );
}
