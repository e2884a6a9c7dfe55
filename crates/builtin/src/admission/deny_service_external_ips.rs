//! `DenyServiceExternalIPs`: services get no new external IPs. Off by default.

use super::{Action, Found, Plugin, Request, Verdict};
use scantling_value::Value;
use std::collections::BTreeSet;

/// The plugin.
#[derive(Debug)]
pub(super) struct DenyServiceExternalIPs;

impl Plugin for DenyServiceExternalIPs {
    fn name(&self) -> &'static str {
        "DenyServiceExternalIPs"
    }

    fn is_on_by_default(&self) -> bool {
        false
    }

    fn handles(&self, request: &Request<'_>) -> bool {
        request.is_for("", "services") && request.action != Action::Delete && request.is_validating()
    }

    fn check(&self, object: &Value, request: &Request<'_>, _found: &Found<'_>) -> Verdict {
        const PATH: [&str; 2] = ["spec", "externalIPs"];
        let old = request.old.map_or(&[][..], |o| o.list_at(PATH)).iter();
        let old: BTreeSet<&str> = old.filter_map(Value::as_str).collect();
        let mut addresses = object.list_at(PATH).iter();
        if addresses.all(|ip| ip.as_str().is_some_and(|ip| old.contains(ip))) {
            return Ok(());
        }
        Err(request.forbidden(object, "Use of external IPs is denied by admission control"))
    }
}
