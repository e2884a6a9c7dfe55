//! Who manages which field, in the terms of a request.

use scantling_schema::structural::Structural;
use scantling_value::Value;

/// Who writes.
#[derive(Clone, Debug)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: String,
}

/// Sets the managers of an object after an update.
pub(crate) fn on_update(
    _schema: Option<&Structural>,
    _old: Option<&Value>,
    _new: &mut Value,
    _sent: Option<&Value>,
    _manager: &Manager,
) {
}
