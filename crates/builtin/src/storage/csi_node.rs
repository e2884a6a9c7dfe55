//! CSI nodes.

use super::GROUP;
use crate::checks::update::{IMMUTABLE, same_of, separate_status};
use crate::checks::{Report, Rule, go, names, numbers};
use crate::core::pod::volumes::csi_driver;
use crate::prepare::keep_metadata_of_status;
use crate::{Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// The CSI drivers of a node.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        validates_name_on_update: true,
        unconditional_update: false,
        delete_returns_object: true,
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new(GROUP, "CSINode")
    })
};

const MAX_NODE_ID: usize = 256;

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    if let (Some(old), Subresource::Status) = (write.old(), write.subresource) {
        keep_metadata_of_status(object, old);
    }
    let health = write
        .old()
        .map_or(&[][..], |o| o.list_at(["status", "storageHealth"]));
    if health.is_empty() && !(write.context.enabled)("CSIVolumeHealth") {
        object.remove("status");
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    if write.subresource == Subresource::Status {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let drivers = spec.field("drivers");
    let mut seen = BTreeSet::new();
    for driver in drivers.items() {
        check_driver(&driver, &mut seen, errors);
    }
    let stored = write.old().map_or(&[][..], |o| o.list_at(["spec", "drivers"]));
    check_unchanged(&drivers, stored, write, errors);
}

fn check_driver<'v>(at: &Cursor<'v, '_>, seen: &mut BTreeSet<&'v str>, errors: &mut ErrorList) {
    let (name, id) = (at.field("name"), at.field("nodeID"));
    csi_driver(&name, errors);
    Rule::Required.check(&id, errors);
    if id.str().len() > MAX_NODE_ID {
        errors.invalid(&id, format!("must be {MAX_NODE_ID} characters or less"));
    }
    let allocatable = at.field("allocatable");
    numbers::non_negative(&allocatable.field("count"), errors);
    errors.unique(seen, &name);
    let mut keys = BTreeSet::new();
    // Errors about keys are at the driver.
    for key in at.field("topologyKeys").items().map(|k| k.str()) {
        if key.is_empty() {
            errors.required(at, "");
        }
        if !keys.insert(key) {
            errors.duplicate(at, key);
        }
        for why in names::label_key(key) {
            errors.invalid_value(at, key, why);
        }
    }
}

/// A driver that is stored already may only change how many volumes it can attach.
fn check_unchanged(drivers: &Cursor<'_, '_>, stored: &[Value], write: &Write<'_>, errors: &mut ErrorList) {
    let is_mutable = (write.context.enabled)("MutableCSINodeAllocatableCount");
    let comparable = |driver: &Value| {
        let mut driver = driver.clone();
        if let (true, Some(members)) = (is_mutable, driver.as_object_mut()) {
            members.remove("allocatable");
        }
        driver
    };
    for old in stored {
        for new in drivers
            .list()
            .iter()
            .filter(|n| n.get_str("name") == old.get_str("name"))
        {
            let (new, old) = (comparable(new), comparable(old));
            if !same_of("storage/v1", "CSINodeDriver", Some(&new), Some(&old)) {
                let shown = go::structure("storage/v1", "CSINodeDriver", Some(&new));
                errors.invalid_value(drivers, shown, IMMUTABLE);
            }
        }
    }
}
