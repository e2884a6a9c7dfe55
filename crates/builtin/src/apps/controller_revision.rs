//! ControllerRevision.

use super::GROUP;
use crate::checks::{Report, numbers, update};
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Value};

/// A snapshot of a workload's state.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    ..KindBehavior::new(KindFacts {
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "ControllerRevision")
    })
};

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    numbers::non_negative(&root.field("revision"), errors);
    let data = root.field("data");
    match write.old() {
        // The bytes are compared, so that an empty object differs from none.
        Some(old) if data.value() == old.get("data") => {}
        Some(_) => errors.invalid_value(
            &data,
            data.value().cloned().unwrap_or_default(),
            update::IMMUTABLE,
        ),
        None => match data.value() {
            None => errors.required(&data, "data is mandatory"),
            Some(Value::Object(_)) => {}
            Some(_) => errors.required(&data, "data must be a valid JSON object"),
        },
    }
}
