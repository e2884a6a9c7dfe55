//! ResourceSlice.

use super::{GROUP, claim_spec};
use crate::checks::labels::Values;
use crate::checks::update::{immutable, immutable_struct};
use crate::checks::{Report, Rule, go, names, nodes};
use crate::prepare::{count_spec_changes, set_generation};
use crate::{BuiltinKind, Cursor, KindFacts, Operation, Write};
use scantling_notation::semver::{Semver, SemverSyntax};
use scantling_schema::meta::Scope;
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::BTreeSet;

/// A part of the devices of a pool.
#[derive(Debug)]
pub(super) struct ResourceSlice;

const FACTS: KindFacts = KindFacts {
    scope: Scope::Cluster,
    selectable: &["metadata.name", "spec.driver", "spec.nodeName"],
    delete_returns_object: true,
    has_generation: true,
    ..KindFacts::new(GROUP, "ResourceSlice")
};

const MAX_DEVICES: usize = 128;
const MAX_STRING: usize = 64;

/// The fields that say on which nodes the devices are.
const PLACES: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];

/// The fields of an attribute. Exactly one is set.
const ATTRIBUTE: [&str; 8] = [
    "int", "bool", "string", "version", "ints", "bools", "strings", "versions",
];

impl BuiltinKind for ResourceSlice {
    fn facts(&self) -> &'static KindFacts {
        &FACTS
    }

    fn prepare(&self, object: &mut Map, write: &Write<'_>) {
        match write.operation {
            Operation::Create => set_generation(object, 1),
            Operation::Update(_) => count_spec_changes(object, write, ("resource/v1", "ResourceSliceSpec")),
        }
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        let root = Cursor::root(object);
        let spec = root.field("spec");
        check_spec(&spec, errors);
        if let Some(old) = write.old() {
            check_update(&spec, old, errors);
        }
    }
}

fn check_update(spec: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let pool = spec.field("pool");
    immutable(&pool.field("name"), old.at(["spec", "pool", "name"]), errors);
    immutable(&spec.field("driver"), old.at(["spec", "driver"]), errors);
    immutable(&spec.field("nodeName"), old.at(["spec", "nodeName"]), errors);
    let (selector, stored) = (spec.field("nodeSelector"), old.at(["spec", "nodeSelector"]));
    immutable_struct(&selector, stored, "core/v1", "NodeSelector", errors);
    immutable(&spec.field("allNodes"), old.at(["spec", "allNodes"]), errors);
}

fn check_spec(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    Rule::RequiredForm(names::dns1123_subdomain).check(&spec.field("driver"), errors);
    check_pool(&spec.field("pool"), errors);
    check_places(spec, errors);
    let devices = spec.field("devices");
    if !devices.list().is_empty() && !spec.field("sharedCounters").list().is_empty() {
        errors.invalid_value(spec, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let count = devices.list().len();
    if count > MAX_DEVICES {
        return errors.push_with(|| FieldError::too_many(devices.path(), count, MAX_DEVICES));
    }
    let is_per_device = spec.field("perDeviceNodeSelection").bool();
    let mut seen = BTreeSet::new();
    for device in devices.items() {
        let name = device.field("name");
        if !seen.insert(name.str()) {
            errors.duplicate(&device, name.str());
        }
        claim_spec::check_name(&name, errors);
        check_device(&device, is_per_device, errors);
    }
}

fn check_pool(pool: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let name = pool.field("name");
    if name.str().is_empty() {
        errors.required(&name, "");
    } else {
        for part in name.str().split('/') {
            for why in names::dns1123_subdomain(part) {
                errors.invalid_value(&name, part, why);
            }
        }
    }
    let count = pool.field("resourceSliceCount");
    if count.int() <= 0 {
        errors.invalid_value(&count, count.int(), "must be greater than zero");
    }
    let generation = pool.field("generation");
    if generation.int() < 0 {
        errors.invalid(&generation, "must be greater than or equal to zero");
    }
}

/// Exactly one field says on which nodes the devices are.
fn check_places(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let is_given = |name: &&&str| !spec.field(name).is_empty();
    let given: Vec<String> = PLACES
        .iter()
        .filter(is_given)
        .map(|name| format!("`{name}`"))
        .collect();
    match given.len() {
        0 => errors.required(spec, one),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            errors.invalid_value(spec, shown, format!("{one}, but multiple fields are set"));
        }
    }
    Rule::Form(names::dns1123_subdomain).check(&spec.field("nodeName"), errors);
    check_node_selector(&spec.field("nodeSelector"), errors);
}

fn check_node_selector(selector: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !selector.is_set() {
        return;
    }
    nodes::selector(selector, Values::Checked, errors);
    let terms = selector.field("nodeSelectorTerms");
    if terms.list().len() != 1 {
        let shown = go::list("core/v1", "NodeSelectorTerm", terms.value());
        errors.invalid_value(&terms, shown, "must have exactly one node selector term");
    }
}

fn check_device(device: &Cursor<'_, '_>, is_per_device: bool, errors: &mut ErrorList) {
    let attributes = device.field("attributes");
    for (name, attribute) in attributes.entries() {
        check_qualified_name(&attributes, name, errors);
        check_attribute(&attribute, errors);
    }
    let capacity = device.field("capacity");
    for (name, _) in capacity.entries() {
        check_qualified_name(&capacity, name, errors);
    }
    for taint in device.field("taints").items() {
        check_taint(&taint, errors);
    }
    let places = PLACES.iter().take(3);
    let given = places.filter(|name| device.field(name).is_set()).count();
    if is_per_device {
        let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                   `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
        if given == 0 {
            errors.required(device, why);
        }
    } else if given > 0 {
        let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                   true in the ResourceSlice spec";
        errors.invalid_value(device, Value::Null, why);
    }
}

/// The name of an attribute or a capacity: an identifier, with or without a domain.
fn check_qualified_name(at: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    let (domain, identifier) = match name.split_once('/') {
        Some((domain, identifier)) => (Some(domain), identifier),
        None => (None, name),
    };
    if let Some(domain) = domain {
        for why in names::dns1123_subdomain(domain) {
            errors.invalid_value(at, domain, why);
        }
    }
    for why in names::c_identifier(identifier) {
        errors.invalid_value(at, identifier, why);
    }
}

fn check_attribute(attribute: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let given: Vec<&str> = ATTRIBUTE
        .into_iter()
        .filter(|name| attribute.field(name).is_set())
        .collect();
    let all = ATTRIBUTE.map(|name| format!("`{name}`")).join(", ");
    match given.len() {
        0 => errors.invalid_value(attribute, "", format!("must specify one of: {all}")),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            errors.invalid_value(attribute, shown, format!("must specify exactly one of: {all}"));
        }
    }
    for name in ["string", "version"] {
        let text = attribute.field(name);
        if text.str().len() > MAX_STRING {
            errors.push_with(|| FieldError::too_long(text.path(), MAX_STRING));
        }
    }
    let version = attribute.field("version");
    if version.is_set() && Semver::parse(version.str(), SemverSyntax::Strict).is_err() {
        errors.invalid(&version, "must be a string compatible with semver.org spec 2.0.0");
    }
}

fn check_taint(taint: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let key = taint.field("key");
    errors.invalid_for(&key, names::label_key(key.str()));
    let value = taint.field("value");
    errors.invalid_for(&value, names::label_value(value.str()));
    Rule::RequiredOneOf(&["NoExecute", "NoSchedule", "None"]).check(&taint.field("effect"), errors);
}
