//! Capacities of CSI storage.

use super::GROUP;
use crate::checks::labels::{self, Values};
use crate::checks::nodes::{deprecated_label, warn_about_requirements};
use crate::checks::update::{IMMUTABLE, same};
use crate::checks::{Report, Rule, go, names, resources};
use crate::{Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Value};

/// The storage capacity that a driver has left in a topology segment.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        unconditional_update: false,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "CSIStorageCapacity")
    })
};

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let (topology, class) = (root.field("nodeTopology"), root.field("storageClassName"));
    labels::selector_with(&topology, tolerated_values(write.old()), errors);
    errors.invalid_for(&class, names::dns1123_subdomain(class.str()));
    Rule::IfSet(resources::non_negative).check(&root.field("capacity"), errors);
    let Some(old) = write.old() else { return };
    let stored = old.get("nodeTopology").filter(|t| !t.is_null());
    // An empty selector selects all nodes, an absent one none.
    if topology.is_set() != stored.is_some() || !same(topology.value(), stored) {
        let shown = go::pointer("meta/v1", "LabelSelector", topology.value());
        errors.invalid_value(&topology, shown, IMMUTABLE);
    }
    if class.str() != old.get_str("storageClassName") {
        errors.invalid(&class, IMMUTABLE);
    }
}

fn warn(object: &Value, _write: &Write<'_>, warnings: &mut Vec<String>) {
    let root = Cursor::root(object);
    let topology = root.field("nodeTopology");
    warn_about_requirements(&topology.field("matchExpressions"), warnings);
    let matched = topology.field("matchLabels");
    for (key, _) in matched.entries() {
        let warning = |why| format!("{}: {why}", matched.path().field(key));
        warnings.extend(deprecated_label(key).map(warning));
    }
}

/// A selector that is stored with errors may keep invalid values.
fn tolerated_values(old: Option<&Value>) -> Values {
    let Some(old) = old else { return Values::Checked };
    let mut errors = ErrorList::new();
    labels::selector(&Cursor::root(old).field("nodeTopology"), &mut errors);
    match errors.is_empty() {
        true => Values::Checked,
        false => Values::Unchecked,
    }
}
