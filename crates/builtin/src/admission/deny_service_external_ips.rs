//! `DenyServiceExternalIPs`: services get no new external IPs. Off by default.

use super::{Action, Effects, Found, Plugin, PluginVerdict, Request};
use scantling_value::Value;
use std::collections::BTreeSet;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    is_on_by_default: false,
    check,
    ..Plugin::new("DenyServiceExternalIPs", handles)
};

fn handles(request: &Request<'_>) -> bool {
    request.is_for("", "services") && request.action != Action::Delete && request.is_validating()
}

fn check(object: &Value, request: &Request<'_>, _: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    const PATH: [&str; 2] = ["spec", "externalIPs"];
    let old = request.old.map_or(&[][..], |o| o.list_at(PATH)).iter();
    let old: BTreeSet<&str> = old.filter_map(Value::as_str).collect();
    let mut addresses = object.list_at(PATH).iter();
    if addresses.all(|ip| ip.as_str().is_some_and(|ip| old.contains(ip))) {
        return Ok(());
    }
    Err(request.forbidden(object, "Use of external IPs is denied by admission control"))
}
