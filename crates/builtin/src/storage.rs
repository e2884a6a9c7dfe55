//! Kinds of the group `storage.k8s.io`.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use crate::checks::{Report, names};
use crate::{Cursor, KindBehavior};
use scantling_value::{ErrorList, FieldError, Str, Value};

/// The name of the group.
const GROUP: &str = "storage.k8s.io";

/// The kinds of this group.
pub(crate) const KINDS: &[&KindBehavior] = &[
    &csi_driver::KIND,
    &csi_node::KIND,
    &csi_storage_capacity::KIND,
    &storage_class::KIND,
    &volume_attachment::KIND,
    &volume_attributes_class::KIND,
];

/// Checks the name of the provisioner or driver of a class.
fn check_provisioner(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.str().is_empty() {
        return errors.required(at, "");
    }
    let name = at.str().to_lowercase();
    for why in names::label_key(&name) {
        errors.invalid_value(at, name.as_str(), why);
    }
}

/// Checks the size of the parameters of a class.
fn check_parameters(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MAX_PARAMETERS: usize = 512;
    const MAX_BYTES: usize = 256 << 10;
    let parameters = at.map().map_or(&[][..], |m| m.entries());
    if parameters.len() > MAX_PARAMETERS {
        // UPSTREAM: too many parameters are reported as too many bytes.
        return errors.push(FieldError::too_long(at.path(), MAX_PARAMETERS));
    }
    if parameters.iter().any(|(key, _)| key.is_empty()) {
        errors.invalid_value(at, "", "field can not be empty.");
    }
    let size = |(key, value): &(Str, Value)| key.len() + value.as_str().map_or(0, str::len);
    if parameters.iter().map(size).sum::<usize>() > MAX_BYTES {
        errors.push(FieldError::too_long(at.path(), MAX_BYTES));
    }
}
