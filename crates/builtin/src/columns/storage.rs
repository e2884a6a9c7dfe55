//! Computed cells of the group `storage.k8s.io`.

use super::Printer;
use super::text::UNSET;
use crate::admission::classes::{STORAGE_CLASS_DEFAULTS, default_class};
use scantling_value::Value;

const GROUP: &str = "storage.k8s.io";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "CSIDriver", |object, _| {
        let attach = object.at(["spec", "attachRequired"]).and_then(Value::as_bool);
        let requests = object.at(["spec", "tokenRequests"]).and_then(Value::as_array);
        let audiences = |requests: &[Value]| {
            let audiences: Vec<&str> = requests.iter().map(|r| r.get_str("audience")).collect();
            audiences.join(",")
        };
        let audiences = requests.map_or_else(|| UNSET.to_owned(), audiences);
        vec![attach.unwrap_or(true).into(), audiences.into()]
    }),
    (GROUP, "StorageClass", |object, printing| {
        let mut name = object.str_at(["metadata", "name"]).to_owned();
        // Only one class of a list is shown as the default, even if several are marked.
        if !name.is_empty() && name == printing.default_class {
            name.push_str(" (default)");
        }
        vec![name.into()]
    }),
];

/// The name of the default class among storage classes; empty if there is none.
pub(super) fn default_storage_class(classes: &[Value]) -> &str {
    default_class(classes.iter(), &STORAGE_CLASS_DEFAULTS).unwrap_or("")
}
