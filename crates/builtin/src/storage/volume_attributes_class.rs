//! Volume attributes classes.

use super::{GROUP, check_parameters, check_provisioner};
use crate::checks::Report;
use crate::checks::update::same;
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Map, Value};

/// A class of attributes that volumes can change to.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "VolumeAttributesClass")
    })
};

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let (driver, parameters) = (root.field("driverName"), root.field("parameters"));
    if let Some(old) = write.old() {
        if driver.str() != old.get_str("driverName") {
            errors.forbidden(&driver, "updates to driverName are forbidden.");
        }
        if !same(parameters.value(), old.get("parameters")) {
            errors.forbidden(&parameters, "updates to parameters are forbidden.");
        }
    }
    check_provisioner(&driver, errors);
    check_parameters(&parameters, errors);
    if parameters.map().is_none_or(Map::is_empty) {
        errors.required(&parameters, "must contain at least one key/value pair");
    }
}
