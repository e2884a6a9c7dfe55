//! Health checks: all checks of a probe together, or single ones.

use crate::api::Api;
use crate::http::reply::{PLAIN_TEXT, Reply};
use crate::request::{Probe, Query};
use scantling_value::go;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The checks, under the names that kube-apiserver uses, where there is an equivalent.
const CHECKS: [(&str, When); 9] = [
    ("ping", When::Always),
    ("log", When::Always),
    ("etcd", When::Always),
    ("etcd-readiness", When::Ready),
    ("informer-sync", When::Ready),
    ("poststarthook/start-apiextensions-informers", When::Always),
    ("poststarthook/start-apiextensions-controllers", When::Always),
    ("poststarthook/crd-informer-synced", When::Always),
    ("shutdown", When::Ready),
];

/// The probes that a check belongs to.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Always,
    /// Readiness only.
    Ready,
}

impl Probe {
    fn name(self) -> &'static str {
        match self {
            Probe::Health => "healthz",
            Probe::Live => "livez",
            Probe::Ready => "readyz",
        }
    }
}

/// The timeout of the store check.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves `/healthz`, `/livez`, `/readyz`, and single checks below them.
pub(crate) async fn answer(api: &Api, probe: Probe, check: Option<&str>, query: &Query) -> Reply {
    if let Some(one) = check {
        return match names(probe).find(|name| *name == one) {
            Some(name) if is_well(api, name).await => Reply::bytes(200, PLAIN_TEXT, "ok"),
            Some(name) => Reply::plain_text(500, format!("internal server error: {name}: not ready\n")),
            None => Reply::page_not_found(),
        };
    }
    let mut excluded = query.all("exclude");
    excluded.dedup();
    let (mut out, mut well) = (String::new(), true);
    for name in names(probe) {
        let before = excluded.len();
        excluded.retain(|e| *e != name);
        out.push_str(&if excluded.len() < before {
            format!("[+]{name} excluded: ok\n")
        } else if is_well(api, name).await {
            format!("[+]{name} ok\n")
        } else {
            well = false;
            format!("[-]{name} failed: reason withheld\n")
        });
    }
    if !excluded.is_empty() {
        let unknown: Vec<String> = excluded.iter().map(|e| go::quote(e)).collect();
        let unknown = unknown.join(", ");
        out.push_str(&format!(
            "warn: some health checks cannot be excluded: no matches for {unknown}\n"
        ));
    }
    let name = probe.name();
    match well {
        false => Reply::plain_text(500, format!("{out}{name} check failed\n")),
        // Probes need one word; a person asks for the list.
        true if query.has("verbose") => Reply::plain_text(200, format!("{out}{name} check passed\n")),
        true => Reply::plain_text(200, "ok"),
    }
}

/// Runs a check. A server that answers has read its CRDs and keeps serving them; but its store may be
/// unreachable, or it may be shutting down.
async fn is_well(api: &Api, name: &str) -> bool {
    match name {
        "etcd" => {
            let revision = tokio::time::timeout(STORE_TIMEOUT, api.store.revision()).await;
            matches!(revision, Ok(Ok(_)))
        }
        "etcd-readiness" => {
            let writable = tokio::time::timeout(STORE_TIMEOUT, api.store.check_writable()).await;
            matches!(writable, Ok(Ok(())))
        }
        "shutdown" => api.ready.load(Ordering::Acquire),
        _ => true,
    }
}

/// The checks of a probe.
fn names(probe: Probe) -> impl Iterator<Item = &'static str> {
    let asked = CHECKS
        .iter()
        .filter(move |(_, when)| *when == When::Always || probe == Probe::Ready);
    asked.map(|(name, _)| *name)
}

/// The paths of all checks.
pub(crate) fn paths(probe: Probe) -> impl Iterator<Item = String> {
    let path = probe.name();
    std::iter::once(format!("/{path}")).chain(names(probe).map(move |check| format!("/{path}/{check}")))
}
