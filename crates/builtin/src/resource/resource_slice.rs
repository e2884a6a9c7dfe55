//! ResourceSlice.

use super::{GROUP, capacity, claim_spec, names, taint};
use crate::checks::gates::drop_disabled_in;
use crate::checks::labels::Values;
use crate::checks::names::{declared, dns1123_label, dns1123_subdomain};
use crate::checks::update::immutable;
use crate::checks::{Report, Rule, go, nodes};
use crate::prepare::{count_spec_changes, object_if_set, objects_in, set_generation};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Write};
use scantling_notation::semver::{Semver, SemverSyntax};
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A part of the devices of a pool.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        selectable: &["spec.driver", "spec.nodeName"],
        delete_returns_object: true,
        has_generation: true,
        ..KindFacts::new(GROUP, "ResourceSlice")
    })
};

const MAX_DEVICES: usize = 128;
const MAX_ADVANCED_DEVICES: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_COUNTERS: usize = 32;
const MAX_CONSUMED: usize = 2;
const MAX_ENTRIES: usize = 32;
const MAX_TAINTS: usize = 16;
const MAX_STRING: usize = 64;

/// The fields that say on which nodes the devices are.
const PLACES: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];

/// The fields of an attribute. Exactly one is set.
const ATTRIBUTE: [&str; 8] = [
    "int", "bool", "string", "version", "ints", "bools", "strings", "versions",
];

/// The fields of an attribute that hold lists.
const LISTS: [&str; 4] = ["ints", "bools", "strings", "versions"];

fn default(object: &mut Map, context: &Context<'_>) {
    if let Some(spec) = object_if_set(object, "spec") {
        for device in objects_in(spec, "devices") {
            objects_in(device, "taints").for_each(|t| taint::set_time(t, context.now));
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(_) => count_spec_changes(object, write, ("resource/v1", "ResourceSliceSpec")),
    }
    drop_disabled_in(object, "spec", ("resource/v1", "ResourceSliceSpec"), write);
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    check_spec(&spec, write.old(), errors);
    if let Some(old) = write.old() {
        check_update(&spec, old, errors);
    }
}

fn warn(object: &Value, _write: &Write<'_>, warnings: &mut Vec<String>) {
    let driver = object.str_at(["spec", "driver"]);
    if driver != driver.to_lowercase() {
        let driver = scantling_value::go::quote(driver);
        warnings.push(format!(
            "spec.driver: driver names should be lowercase; {driver} contains uppercase characters"
        ));
    }
}

fn check_update(spec: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let pool = spec.field("pool");
    immutable(&pool.field("name"), old.at(["spec", "pool", "name"]), errors);
    immutable(&spec.field("driver"), old.at(["spec", "driver"]), errors);
    immutable(&spec.field("nodeName"), old.at(["spec", "nodeName"]), errors);
}

fn check_spec(spec: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    names::driver(&spec.field("driver"), errors);
    check_pool(&spec.field("pool"), errors);
    check_places(spec, errors);
    let (devices, counters) = (spec.field("devices"), spec.field("sharedCounters"));
    if devices.is_set() && counters.is_set() {
        errors.invalid_value(spec, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let max = match devices.list().iter().any(is_advanced) {
        true => MAX_ADVANCED_DEVICES,
        false => MAX_DEVICES,
    };
    if errors.max_items(&devices, max) {
        let is_per_device = spec.field("perDeviceNodeSelection").bool();
        let stored = old.map_or(&[][..], |old| old.list_at(["spec", "devices"]));
        let mut by_name: BTreeMap<&str, &Value> = BTreeMap::new();
        for device in stored {
            by_name.entry(device.get_str("name")).or_insert(device);
        }
        let mut seen = BTreeSet::new();
        for device in devices.items() {
            let name = device.field("name");
            names::label(&name, errors);
            check_device(&device, by_name.get(name.str()).copied(), is_per_device, errors);
            if !seen.insert(name.str()) {
                errors.duplicate(&device, name.str());
            }
        }
    }
    if errors.max_items(&counters, MAX_COUNTER_SETS) {
        let mut seen = BTreeSet::new();
        for set in counters.items() {
            check_counters(&set, "name", errors);
            if !seen.insert(set.field("name").str()) {
                errors.duplicate(&set, claim_spec::versioned("CounterSet", set.map()));
            }
        }
    }
}

/// Returns whether a device uses features that allow fewer devices in a slice.
fn is_advanced(device: &Value) -> bool {
    let has_lists = |attribute: &Value| LISTS.iter().any(|list| attribute.get(list).is_some());
    let attributes = device.get("attributes").and_then(Value::as_object);
    !device.list("taints").is_empty()
        || !device.list("consumesCounters").is_empty()
        || attributes.is_some_and(|all| all.iter().any(|(_, attribute)| has_lists(attribute)))
}

/// Checks a set of counters, or the consumption of such a set.
fn check_counters(set: &Cursor<'_, '_>, name: &str, errors: &mut ErrorList) {
    names::required_label(&set.field(name), errors);
    let counters = set.field("counters");
    let count = counters.map().map_or(0, Map::len);
    if count == 0 {
        return errors.required(&counters, "");
    }
    if count > MAX_COUNTERS {
        return errors.push_with(|| FieldError::too_many(counters.path(), count, MAX_COUNTERS));
    }
    for (key, _) in counters.entries() {
        for why in declared(dns1123_label(key)) {
            errors.invalid_value(&counters, key, why);
        }
    }
}

fn check_pool(pool: &Cursor<'_, '_>, errors: &mut ErrorList) {
    names::pool(&pool.field("name"), errors);
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
    let name = spec.field("nodeName");
    match name.str() {
        "" if name.is_set() => errors.invalid(&name, "must be either unset or set to a non-empty string"),
        _ => Rule::Form(dns1123_subdomain).check(&name, errors),
    }
    check_node_selector(&spec.field("nodeSelector"), errors);
    for field in ["allNodes", "perDeviceNodeSelection"].map(|field| spec.field(field)) {
        check_true(&field, errors);
    }
    let given = given_places(spec, &PLACES);
    match given.len() {
        0 => errors.required(spec, one),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", given.join(", "));
            errors.invalid_value(spec, shown, format!("{one}, but multiple fields are set"));
        }
    }
}

/// A flag that is never false.
fn check_true(flag: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if flag.is_set() && !flag.bool() {
        errors.invalid(flag, "must be either unset or set to true");
    }
}

/// The fields that name nodes, quoted.
fn given_places(at: &Cursor<'_, '_>, places: &[&str]) -> Vec<String> {
    let is_given = |name: &&&str| match at.field(name).value() {
        Some(Value::Object(_)) => true,
        _ => !at.field(name).is_empty(),
    };
    let given = places.iter().filter(is_given);
    given.map(|name| format!("`{name}`")).collect()
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

fn check_device(
    device: &Cursor<'_, '_>,
    stored: Option<&Value>,
    is_per_device: bool,
    errors: &mut ErrorList,
) {
    let (attributes, capacity) = (device.field("attributes"), device.field("capacity"));
    let entries = |map: &Cursor<'_, '_>| map.map().map_or(0, Map::len);
    let count = entries(&attributes) + entries(&capacity);
    if count > MAX_ENTRIES {
        let why = format!("the total number of attributes and capacities must not exceed {MAX_ENTRIES}");
        errors.invalid_value(device, i64::try_from(count).unwrap_or(i64::MAX), why);
    }
    for (name, attribute) in attributes.entries() {
        names::qualified(&attributes, name, errors);
        check_attribute(&attribute, errors);
    }
    let stored_of = |field: &str| stored.map(|stored| stored.get(field));
    // kube-apiserver checks capacities and taints only if they change.
    if stored_of("capacity").is_none_or(|stored| stored != capacity.value()) {
        let is_shared = device.field("allowMultipleAllocations").bool();
        for (name, amount) in capacity.entries() {
            names::qualified(&capacity, name, errors);
            capacity::check(&amount, is_shared, errors);
        }
    }
    let taints = device.field("taints");
    if stored_of("taints").is_none_or(|stored| stored != taints.value())
        && errors.max_items(&taints, MAX_TAINTS)
    {
        taints.items().for_each(|t| taint::check(&t, None, errors));
    }
    let consumed = device.field("consumesCounters");
    if errors.max_items(&consumed, MAX_CONSUMED) {
        let mut seen = BTreeSet::new();
        for set in consumed.items() {
            check_counters(&set, "counterSet", errors);
            if !seen.insert(set.field("counterSet").str()) {
                errors.duplicate(&set, claim_spec::versioned("DeviceCounterConsumption", set.map()));
            }
        }
    }
    check_device_places(device, is_per_device, errors);
    taint::check_binding(device, errors);
}

/// Devices name nodes if the slice says so.
fn check_device_places(device: &Cursor<'_, '_>, is_per_device: bool, errors: &mut ErrorList) {
    let [name, selector, all] = ["nodeName", "nodeSelector", "allNodes"].map(|field| device.field(field));
    if !is_per_device {
        if name.is_set() || selector.is_set() || all.is_set() {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set \
                       to true in the ResourceSlice spec";
            errors.invalid_value(device, Value::Null, why);
        }
        return;
    }
    match name.str() {
        "" if name.is_set() => errors.invalid(&name, "must not be empty"),
        _ => Rule::Form(dns1123_subdomain).check(&name, errors),
    }
    if selector.is_set() {
        nodes::selector(&selector, Values::Checked, errors);
    }
    check_true(&all, errors);
    let why = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set \
               to true in the ResourceSlice spec";
    let given = given_places(device, &["nodeName", "nodeSelector", "allNodes"]);
    match given.len() {
        0 => errors.required(device, why),
        1 => {}
        _ => errors.invalid_value(device, format!("{{{}}}", given.join(", ")), why),
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
        errors.max_bytes(&text, MAX_STRING);
    }
    let version = attribute.field("version");
    if version.is_set() && Semver::parse(version.str(), SemverSyntax::Strict).is_err() {
        errors.invalid(&version, "must be a string compatible with semver.org spec 2.0.0");
    }
}
