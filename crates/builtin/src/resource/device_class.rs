//! DeviceClass.

use super::{GROUP, claim_spec, selector};
use crate::checks::{Report, Rule, names};
use crate::prepare::{count_change, is_changed, set_generation};
use crate::{Cursor, KindBehavior, KindFacts, Operation, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};

/// A class of devices.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        names: NameRule::GeneratedSubdomain,
        delete_returns_object: true,
        has_generation: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "DeviceClass")
    })
};

fn prepare(object: &mut Map, write: &Write<'_>) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(old) => {
            let changed = is_changed(object, old, "spec", ("resource/v1", "DeviceClassSpec"));
            count_change(object, old, changed);
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let selectors = spec.field("selectors");
    let old = write.old().and_then(|old| old.at(["spec", "selectors"]));
    // Stored selectors were valid once, perhaps for another version.
    if write.old().is_none() || selectors.value() != old {
        selector::check_selectors(&selectors, errors);
    }
    claim_spec::check_class_configurations(&spec.field("config"), errors);
    let name = spec.field("extendedResourceName");
    Rule::IfSet(check_extended_name).check(&name, errors);
}

/// A name with a domain that is not Kubernetes' own, short enough for the name of its quota.
fn check_extended_name(name: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const NATIVE: &str = "kubernetes.io/";
    const QUOTA: &str = "requests.";
    if !name.str().contains('/') {
        let why = "a name must be a domain-prefixed path, such as 'example.com/my-prop'";
        errors.invalid(name, why);
    } else if name.str().contains(NATIVE) {
        errors.invalid(name, format!("must not have \"{NATIVE}\" domain"));
    }
    if name.str().starts_with(QUOTA) {
        errors.invalid(name, format!("must not have \"{QUOTA}\" prefix"));
    }
    errors.invalid_for(name, names::label_key(&format!("{QUOTA}{}", name.str())));
}
