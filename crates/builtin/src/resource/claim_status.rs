//! The status of a ResourceClaim.

use super::claim_spec::{self, Requests, check_count, versioned};
use super::{names, taint};
use crate::Cursor;
use crate::checks::labels::Values;
use crate::checks::{Report, Rule, conditions, ip, nodes, update};
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::BTreeSet;

const MAX_CONSUMERS: usize = 256;
const MAX_RESULTS: usize = 32;
const MAX_CONFIGURATIONS: usize = 64;
const MAX_DEVICE_CONDITIONS: usize = 8;
const MAX_ADDRESSES: usize = 16;
const MAX_INTERFACE: usize = 256;
const MAX_HARDWARE_ADDRESS: usize = 128;

/// A device that a claim may share with others: driver, pool, device and share.
type DeviceId<'v> = [&'v str; 4];

/// Checks the status of a claim. Consumers are unique, and there are none without an allocation, which does not change once it
/// is there.
pub(super) fn check(claim: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let status = claim.field("status");
    let consumers = status.field("reservedFor");
    check_consumers(&consumers, errors);
    let allocation = status.field("allocation");
    check_devices(&status.field("devices"), &allocation, errors);
    if !consumers.list().is_empty() {
        let metadata = claim.field("metadata");
        let stored = old.list_at(["status", "reservedFor"]);
        if !allocation.is_set() {
            errors.forbidden(&consumers, "may not be specified when `allocated` is not set");
        } else if metadata.field("deletionTimestamp").is_set()
            && !consumers.list().iter().all(|consumer| stored.contains(consumer))
        {
            let why =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.forbidden(&consumers, why);
        }
    }
    let before = old.at(["status", "allocation"]).filter(|v| !v.is_null());
    match before {
        // An allocation may be removed. The check of consumers above keeps one that is in use.
        _ if !allocation.is_set() => {}
        None => {
            let requests = claim_spec::requests_of(claim.field("spec").value());
            check_allocation(&allocation, &requests, errors);
        }
        Some(before) => {
            let is_same = update::same_of(
                "resource/v1",
                "AllocationResult",
                allocation.value(),
                Some(before),
            );
            if !is_same {
                let why = "field cannot be modified once set";
                errors.invalid_value(&allocation, Value::Null, why);
            }
        }
    }
}

/// Drops the status of devices that an update deallocates.
pub(super) fn drop_deallocated(claim: &mut Map, old: &Value) {
    fn allocated(claim: &Value) -> BTreeSet<DeviceId<'_>> {
        let results = claim.list_at(["allocation", "devices", "results"]);
        results.iter().map(id).collect()
    }
    let Some(status) = claim.get_mut("status") else {
        return;
    };
    let none = Value::Null;
    let before = allocated(old.get("status").unwrap_or(&none));
    let now = allocated(status);
    let is_kept = |device: &Value| !before.contains(&id(device)) || now.contains(&id(device));
    let kept: Vec<Value> = status
        .list("devices")
        .iter()
        .filter(|d| is_kept(d))
        .cloned()
        .collect();
    if let Some(status) = status.as_object_mut()
        && status.contains_key("devices")
    {
        match kept.is_empty() {
            true => drop(status.remove("devices")),
            false => drop(status.insert("devices", Value::Array(kept))),
        }
    }
}

fn check_consumers(consumers: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !check_count(consumers, MAX_CONSUMERS, errors) {
        return;
    }
    let mut seen = BTreeSet::new();
    for consumer in consumers.items() {
        for name in ["resource", "name", "uid"] {
            Rule::Required.check(&consumer.field(name), errors);
        }
        if !seen.insert(consumer.field("uid").str()) {
            errors.duplicate(
                &consumer,
                versioned("ResourceClaimConsumerReference", consumer.map()),
            );
        }
    }
}

fn id(device: &Value) -> DeviceId<'_> {
    ["driver", "pool", "device", "shareID"].map(|field| device.get_str(field))
}

/// The status of devices is about allocated ones.
fn check_devices(devices: &Cursor<'_, '_>, allocation: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let allocated = allocation
        .value()
        .map_or(&[][..], |a| a.list_at(["devices", "results"]));
    let allocated: BTreeSet<DeviceId<'_>> = allocated.iter().map(id).collect();
    let mut seen = BTreeSet::new();
    for device in devices.items() {
        names::driver(&device.field("driver"), errors);
        names::pool(&device.field("pool"), errors);
        names::label(&device.field("device"), errors);
        check_share(&device.field("shareID"), errors);
        let own = device.value().map(id).unwrap_or_default();
        if !allocated.contains(&own) {
            let shown = ["Driver", "Pool", "Device", "ShareID"].into_iter().zip(own);
            let shown: Vec<String> = shown
                .map(|(name, value)| format!("\"{name}\":{}", Value::from(value).to_json()))
                .collect();
            let shown = scantling_value::BadValue::Raw(format!("{{{}}}", shown.join(",")));
            errors.invalid_value(&device, shown, "must be an allocated device in the claim");
        }
        let list = device.field("conditions");
        check_count(&list, MAX_DEVICE_CONDITIONS, errors);
        conditions::check(&list, errors);
        claim_spec::check_raw(&device.field("data"), errors);
        check_network(&device.field("networkData"), errors);
        if !seen.insert(own) {
            errors.duplicate(&device, versioned("AllocatedDeviceStatus", device.map()));
        }
    }
}

fn check_network(network: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for (name, max) in [
        ("interfaceName", MAX_INTERFACE),
        ("hardwareAddress", MAX_HARDWARE_ADDRESS),
    ] {
        let text = network.field(name);
        if text.str().len() > max {
            errors.push_with(|| FieldError::too_long(text.path(), max));
        }
    }
    let addresses = network.field("ips");
    if check_count(&addresses, MAX_ADDRESSES, errors) {
        let mut seen = BTreeSet::new();
        for address in addresses.items() {
            ip::interface_address(&address, errors);
            errors.unique(&mut seen, &address);
        }
    }
}

/// A share is a UUID in its usual form.
fn check_share(share: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let lengths = share.str().split('-').map(str::len);
    let is_uuid = lengths.eq([8, 4, 4, 4, 12]) && share.str().chars().all(|c| c == '-' || is_hex(c));
    if share.is_set() && !is_uuid {
        errors.invalid(share, "must be a lowercase UUID in 8-4-4-4-12 format");
    }
}

fn check_allocation(allocation: &Cursor<'_, '_>, requests: &Requests<'_>, errors: &mut ErrorList) {
    let devices = allocation.field("devices");
    let results = devices.field("results");
    if check_count(&results, MAX_RESULTS, errors) {
        for result in results.items() {
            claim_spec::check_reference(&result.field("request"), requests, errors);
            names::declared_driver(&result.field("driver"), errors);
            names::declared_pool(&result.field("pool"), errors);
            names::label(&result.field("device"), errors);
            taint::check_binding(&result, errors);
            Rule::Each(taint::check_toleration).check(&result.field("tolerations"), errors);
            check_share(&result.field("shareID"), errors);
        }
    }
    let configurations = devices.field("config");
    if check_count(&configurations, MAX_CONFIGURATIONS, errors) {
        for configuration in configurations.items() {
            Rule::RequiredOneOf(&["FromClaim", "FromClass"]).check(&configuration.field("source"), errors);
            claim_spec::check_references(&configuration.field("requests"), requests, errors);
            claim_spec::check_configuration(&configuration, errors);
        }
    }
    let selector = allocation.field("nodeSelector");
    if selector.is_set() {
        nodes::selector(&selector, Values::Checked, errors);
    }
}
