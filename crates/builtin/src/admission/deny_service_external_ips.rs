//! `DenyServiceExternalIPs`: services get no new external IPs. Off by default.

use super::{Action, Denial, Effects, Found, Plugin, Request};
use scantling_value::Value;

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
        request.is_for("", "services") && request.action != Action::Delete
    }

    fn check(
        &self,
        object: &Value,
        request: &Request<'_>,
        _found: &Found<'_>,
        _effects: &mut Effects,
    ) -> Result<(), Box<Denial>> {
        const PATH: [&str; 2] = ["spec", "externalIPs"];
        let old = request.old.map_or(&[][..], |o| o.list_at(PATH));
        if object.list_at(PATH).iter().all(|ip| old.contains(ip)) {
            return Ok(());
        }
        Err(request.forbidden(object, "Use of external IPs is denied by admission control"))
    }
}
