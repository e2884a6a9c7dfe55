//! Cluster IPs, IP families and the policy that relates them.

use super::{HEADLESS, ServiceView, stored_texts};
use crate::Cursor;
use crate::checks::{Report, ip};
use scantling_value::{ErrorList, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The IP families.
pub(super) const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];

/// The IP family of an address.
pub(super) fn family_of(address: &str) -> &'static str {
    match ip::parse_sloppy(address).map(|a| a.to_canonical()) {
        Some(IpAddr::V6(_)) => "IPv6",
        Some(IpAddr::V4(_)) => "IPv4",
        None => "unknown",
    }
}

/// The value of a list as errors show it.
fn shown(list: &Cursor<'_, '_>) -> Value {
    list.value().cloned().unwrap_or_default()
}

/// Checks the fields of one service against each other.
pub(super) fn check(object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let view = ServiceView::of_value(object);
    if view.is_external_name() {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let (addresses, families) = (spec.field("clusterIPs"), spec.field("ipFamilies"));
    check_first_address(view, &addresses, errors);
    check_families(&families, errors);
    let policy = spec.field("ipFamilyPolicy");
    if policy.is_set() && !POLICIES.contains(&policy.str()) {
        errors.not_supported(&policy, POLICIES);
    }
    if !check_addresses(&addresses, old, errors) {
        return;
    }
    if addresses.list().len() > 1 && !has_both_families(view) {
        let why = "may specify no more than one IP for each IP family";
        errors.invalid_value(&addresses, shown(&addresses), why);
    }
    if !view.is_headless() {
        check_families_of_addresses(&addresses, &families, errors);
    }
}

fn has_both_families(view: ServiceView<'_>) -> bool {
    let addresses = view.texts("clusterIPs");
    FAMILIES
        .iter()
        .all(|family| addresses.iter().any(|ip| family_of(ip) == *family))
}

/// `clusterIP` is the first of `clusterIPs`.
fn check_first_address(view: ServiceView<'_>, addresses: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let first = addresses.list().first().and_then(Value::as_str);
    match (view.text("clusterIP"), first) {
        ("", None) => {}
        ("", Some(_)) => {
            let why = "must be empty when `clusterIP` is not specified";
            errors.invalid_value(addresses, shown(addresses), why);
        }
        (_, None) => errors.required(addresses, ""),
        (cluster_ip, Some(first)) => {
            if cluster_ip != first {
                errors.invalid_value(addresses, shown(addresses), "first value must match `clusterIP`");
            }
        }
    }
}

fn check_families(families: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for family in families.items() {
        if !FAMILIES.contains(&family.str()) {
            errors.not_supported(&family, &FAMILIES);
        }
        errors.unique(&mut seen, &family);
    }
}

/// Checks each address; returns whether all of them can be compared.
fn check_addresses(addresses: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) -> bool {
    let stored = stored_texts(old, "clusterIPs");
    let mut are_valid = true;
    for (i, address) in addresses.items().enumerate() {
        let before = errors.total();
        if i > 0 || address.str() != HEADLESS {
            ip::check_unless_stored(&address, &stored, errors);
        } else if addresses.list().len() > 1 {
            errors.invalid_value(
                addresses,
                shown(addresses),
                "'None' must be the first and only value",
            );
        }
        are_valid &= errors.total() == before;
    }
    if addresses.list().len() > 2 {
        errors.invalid_value(addresses, shown(addresses), "may only hold up to 2 values");
    }
    are_valid
}

fn check_families_of_addresses(
    addresses: &Cursor<'_, '_>,
    families: &Cursor<'_, '_>,
    errors: &mut ErrorList,
) {
    for (i, (address, family)) in addresses.items().zip(families.items()).enumerate() {
        let is_wrong = match family.str() {
            "IPv4" => family_of(address.str()) == "IPv6",
            "IPv6" => family_of(address.str()) != "IPv6",
            _ => false,
        };
        if is_wrong {
            let family = family.str();
            errors.invalid(
                &address,
                format!("expected an {family} value as indicated by `ipFamilies[{i}]`"),
            );
        }
    }
}

/// Checks that an update keeps the first address, and says so if it gives up the second one.
pub(super) fn check_changed_addresses(object: &Value, old: &Value, errors: &mut ErrorList) {
    let (new_view, old_view) = (ServiceView::of_value(object), ServiceView::of_value(old));
    if new_view.is_external_name() || old_view.is_external_name() {
        return;
    }
    if new_view.is_headless() && old_view.is_headless() {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let addresses = spec.field("clusterIPs");
    let (new, stored) = (new_view.texts("clusterIPs"), old_view.texts("clusterIPs"));
    let at = |i: usize, why: &str, errors: &mut ErrorList| {
        let path = addresses.path().index(i);
        errors.invalid_value(&Cursor::at(None, path), shown(&addresses), why);
    };
    if new.len() == stored.len() {
        for (i, _) in new
            .iter()
            .zip(&stored)
            .enumerate()
            .filter(|(_, (new, old))| new != old)
        {
            at(i, "may not change once set", errors);
        }
        return;
    }
    if new.is_empty() {
        at(0, "primary clusterIP can not be unset", errors);
    }
    if let (Some(new), Some(old)) = (new.first(), stored.first())
        && new != old
    {
        at(0, "may not change once set", errors);
    }
    if stored.len() > new.len() && new.len() == 1 {
        check_single_stack(&spec, "clusterIP", errors);
    }
}

/// Checks that an update keeps the first IP family, and says so if it gives up the second one.
pub(super) fn check_changed_families(object: &Value, old: &Value, errors: &mut ErrorList) {
    let (new_view, old_view) = (ServiceView::of_value(object), ServiceView::of_value(old));
    if new_view.is_external_name() || old_view.is_external_name() {
        return;
    }
    if new_view.is_headless() || old_view.is_headless() {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let families = spec.field("ipFamilies");
    let (new, stored) = (new_view.texts("ipFamilies"), old_view.texts("ipFamilies"));
    let path = families.path().index(0);
    let first = Cursor::at(None, path);
    let addresses = || shown(&spec.field("clusterIPs"));
    if new.len() == stored.len() {
        for _ in new.iter().zip(&stored).filter(|(new, old)| new != old) {
            errors.invalid_value(&first, shown(&families), "may not change once set");
        }
        return;
    }
    if stored.len() > new.len() && new_view.list("clusterIPs").is_empty() {
        errors.invalid_value(&first, shown(&families), "primary ipFamily can not be unset");
    }
    if let (Some(new), Some(old)) = (new.first(), stored.first())
        && new != old
    {
        // UPSTREAM: the error shows the addresses, not the families.
        errors.invalid_value(&first, addresses(), "may not change once set");
    }
    if stored.len() > new.len() && new.len() == 1 {
        check_single_stack(&spec, "ipFamily", errors);
    }
}

fn check_single_stack(spec: &Cursor<'_, '_>, released: &str, errors: &mut ErrorList) {
    let policy = spec.field("ipFamilyPolicy");
    if policy.str() != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {released}");
        errors.invalid_value(&policy, shown(&policy), why);
    }
}
