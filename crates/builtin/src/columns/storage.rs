//! Cells of the group `storage.k8s.io`.

use super::text::{NONE, UNSET, age, flag, joined, length, name, text, text_or};
use super::{Printer, Printing};
use crate::admission::classes::{STORAGE_CLASS_DEFAULTS, default_class};
use scantling_value::Value;

const GROUP: &str = "storage.k8s.io";

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    (GROUP, "CSIDriver", csi_driver),
    (GROUP, "CSINode", |o, p| {
        vec![name(o), length(o, ["spec", "drivers"]), age(o, p)]
    }),
    (GROUP, "StorageClass", storage_class),
    (GROUP, "VolumeAttachment", volume_attachment),
    (GROUP, "VolumeAttributesClass", |o, p| {
        vec![name(o), text(o, ["driverName"]), age(o, p)]
    }),
];

/// The name of the default class among storage classes; empty if there is none.
pub(super) fn default_storage_class(classes: &[Value]) -> &str {
    default_class(classes.iter(), &STORAGE_CLASS_DEFAULTS).unwrap_or("")
}

fn storage_class(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let mut name = object.str_at(["metadata", "name"]).to_owned();
    // Only one class of a list is shown as the default, even if several are marked.
    if !name.is_empty() && name == printing.default_class {
        name.push_str(" (default)");
    }
    vec![
        name.into(),
        text(object, ["provisioner"]),
        text_or(object, ["reclaimPolicy"], "Delete"),
        text_or(object, ["volumeBindingMode"], "Immediate"),
        flag(object, ["allowVolumeExpansion"]).into(),
        age(object, printing),
    ]
}

fn csi_driver(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let is = |field| flag(object, ["spec", field]);
    let attach = object
        .at(["spec", "attachRequired"])
        .and_then(Value::as_bool)
        .unwrap_or(true);
    let requests = object.at(["spec", "tokenRequests"]).and_then(Value::as_array);
    let audiences = requests.map_or_else(
        || UNSET.to_owned(),
        |requests| {
            let audiences: Vec<&str> = requests.iter().map(|r| r.get_str("audience")).collect();
            audiences.join(",")
        },
    );
    let modes = joined(object, ["spec", "volumeLifecycleModes"]);
    vec![
        name(object),
        attach.into(),
        is("podInfoOnMount").into(),
        is("storageCapacity").into(),
        audiences.into(),
        is("requiresRepublish").into(),
        (if modes.is_empty() { NONE.to_owned() } else { modes }).into(),
        age(object, printing),
    ]
}

fn volume_attachment(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    vec![
        name(object),
        text(object, ["spec", "attacher"]),
        text(object, ["spec", "source", "persistentVolumeName"]),
        text(object, ["spec", "nodeName"]),
        flag(object, ["status", "attached"]).into(),
        age(object, printing),
    ]
}
