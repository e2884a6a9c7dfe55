//! Metrics under the names, labels and buckets that Kubernetes uses.
//!
//! Only served resources become labels: requests to unknown groups, resources or subresources are counted without, so
//! that clients cannot create series.

mod conversions;
mod label;
#[cfg(target_os = "linux")]
mod process;

pub(crate) use conversions::{Conversion, Conversions};
pub(crate) use label::{Closed, Label};
use label::{Coded, FieldValidation, Outcome, Reason, RequestKind, ResourceLabel, Timed, VersionLabel};

use crate::api::Api;
use crate::kinds::kind::Kind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use scantling_admit::Stats;
use scantling_store::{ListRequest, ReadAt};
use std::fmt::Debug;
use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// All metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Coded, Counter>,
    durations: Histograms<Timed>,
    sizes: Histograms<Label>,
    terminations: Family<Coded, Counter>,
    deprecated: Family<VersionLabel, Gauge>,
    field_validation: Histograms<FieldValidation>,
    in_flight: Family<RequestKind, Gauge>,
    long_running: Family<Label, Gauge>,
    watch_events: Family<VersionLabel, Counter>,
    watch_event_sizes: Histograms<VersionLabel>,
    objects: Family<ResourceLabel, Gauge>,
    authentications: Family<Outcome, Counter>,
    handshake_errors: Counter,
    closed_connections: Family<Reason, Counter>,
    ratcheting: Histogram,
    compilation: Histogram,
    evaluation: Histogram,
    conversions: Conversions,
}

const REQUEST_SECONDS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
const FIELD_VALIDATION_SECONDS: [f64; 21] = [
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
/// The default buckets of Prometheus' libraries.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

fn histograms<L: Clone + Hash + Eq>(make: fn() -> Histogram) -> Histograms<L> {
    Family::new_with_constructor(make)
}

impl Metrics {
    /// Metrics at zero.
    pub(crate) fn new() -> Metrics {
        let metrics = Metrics {
            registry: Registry::default(),
            requests: Family::default(),
            durations: histograms(|| Histogram::new(REQUEST_SECONDS)),
            sizes: histograms(|| Histogram::new(exponential_buckets(1000.0, 10.0, 7))),
            terminations: Family::default(),
            deprecated: Family::default(),
            field_validation: histograms(|| Histogram::new(FIELD_VALIDATION_SECONDS)),
            in_flight: Family::default(),
            long_running: Family::default(),
            watch_events: Family::default(),
            watch_event_sizes: histograms(|| Histogram::new(exponential_buckets(1024.0, 2.0, 8))),
            objects: Family::default(),
            authentications: Family::default(),
            handshake_errors: Counter::default(),
            closed_connections: Family::default(),
            ratcheting: Histogram::new(exponential_buckets(0.000_01, 4.0, 10)),
            compilation: Histogram::new(SECONDS),
            evaluation: Histogram::new(SECONDS),
            conversions: Conversions::new(),
        };
        metrics.registered()
    }

    fn registered(mut self) -> Metrics {
        let r = &mut self.registry;
        // Counters are given without `_total`, which is appended.
        r.register(
            "apiserver_request",
            "Requests by verb, dry run value, group, version, resource, scope, component and code",
            self.requests.clone(),
        );
        r.register(
            "apiserver_request_duration_seconds",
            "Time to the answer; of a watch, to its first byte",
            self.durations.clone(),
        );
        r.register(
            "apiserver_response_sizes",
            "Bytes of the answers to reads",
            self.sizes.clone(),
        );
        r.register(
            "apiserver_request_terminations",
            "Requests that the server ended to protect itself",
            self.terminations.clone(),
        );
        r.register(
            "apiserver_requested_deprecated_apis",
            "Deprecated versions that were asked for",
            self.deprecated.clone(),
        );
        r.register(
            "field_validation_request_duration_seconds",
            "Time to the answer of writes, by field validation",
            self.field_validation.clone(),
        );
        r.register(
            "apiserver_current_inflight_requests",
            "Requests that are being worked on, by kind",
            self.in_flight.clone(),
        );
        r.register(
            "apiserver_longrunning_requests",
            "Watches that are open",
            self.long_running.clone(),
        );
        r.register(
            "apiserver_watch_events",
            "Events sent to watches",
            self.watch_events.clone(),
        );
        r.register(
            "apiserver_watch_events_sizes",
            "Bytes of events sent to watches",
            self.watch_event_sizes.clone(),
        );
        r.register(
            "apiserver_resource_objects",
            "Stored objects by kind; -1 where the store did not answer",
            self.objects.clone(),
        );
        r.register(
            "authentication_attempts",
            "Requests by whether it is known who asks",
            self.authentications.clone(),
        );
        r.register(
            "apiserver_tls_handshake_errors",
            "Connections that ended in their handshake",
            self.handshake_errors.clone(),
        );
        r.register(
            "scantling_connections_closed",
            "Connections and HTTP/2 streams that the server closed to protect itself, by reason",
            self.closed_connections.clone(),
        );
        r.register(
            "apiextensions_apiserver_validation_ratcheting_seconds",
            "Time spent comparing old and new values for ratcheting, per update",
            self.ratcheting.clone(),
        );
        r.register(
            "apiserver_cel_compilation_duration_seconds",
            "Time to compile the schema and the rules of a version",
            self.compilation.clone(),
        );
        r.register(
            "apiserver_cel_evaluation_duration_seconds",
            "Time to evaluate the rules on an object",
            self.evaluation.clone(),
        );
        self.conversions.register(r);
        #[cfg(target_os = "linux")]
        r.register_collector(Box::new(process::Process));
        self
    }

    /// Counts a request.
    pub(crate) fn request(&self, label: &Label, request: &Answered<'_>) {
        let seconds = request.took.as_secs_f64();
        let coded = label.timed(request.dry_run).coded(request.code);
        // kube-apiserver counts these where it sheds load; here the code tells.
        if matches!(request.code, 429 | 504) {
            self.terminations.get_or_create(&coded).inc();
        }
        self.requests.get_or_create(&coded).inc();
        self.durations.get_or_create(coded.timed()).observe(seconds);
        if let Some(bytes) = request.size.filter(|_| label.is_read()) {
            #[expect(clippy::cast_precision_loss, reason = "a histogram counts in doubles")]
            self.sizes.get_or_create(label).observe(bytes as f64);
        }
        if label.is_validated() {
            let mode = FieldValidation::new(request.field_validation);
            self.field_validation.get_or_create(&mode).observe(seconds);
        }
    }

    /// A request to a deprecated version.
    pub(crate) fn deprecated(&self, kind: &Kind, version: &str) {
        let labels = VersionLabel::new(kind, version);
        // As on kube-apiserver, the gauge marks versions that were requested and does not count requests.
        self.deprecated.get_or_create(&labels).set(1);
    }

    /// Counts a request as running until the result is dropped.
    pub(crate) fn in_flight(&self, mutating: bool) -> Running {
        let kind = if mutating { "mutating" } else { "readOnly" };
        Running::new(&self.in_flight, &RequestKind { request_kind: kind })
    }

    /// Counts a watch as open until the result is dropped.
    pub(crate) fn long_running(&self, label: &Label) -> Running {
        Running::new(&self.long_running, label)
    }

    /// The counters of a watch's events.
    pub(crate) fn events(&self, kind: &Kind, version: &str) -> Events {
        let labels = VersionLabel::new(kind, version);
        Events {
            count: self.watch_events.get_or_create_owned(&labels),
            sizes: self.watch_event_sizes.get_or_create_owned(&labels),
        }
    }

    /// Counts an authentication.
    pub(crate) fn authenticated(&self, known: bool) {
        let result = if known { "success" } else { "failure" };
        self.authentications.get_or_create(&Outcome { result }).inc();
    }

    /// A connection that ended in its handshake.
    pub(crate) fn handshake_failed(&self) {
        self.handshake_errors.inc();
    }

    /// A connection or a stream that the server closed.
    pub(crate) fn closed(&self, why: Closed) {
        let reason = Reason { reason: why.name() };
        self.closed_connections.get_or_create(&reason).inc();
    }

    /// Records the work of admission.
    pub(crate) fn admitted(&self, stats: &Stats) {
        if !stats.ratcheting.is_zero() {
            self.ratcheting.observe(stats.ratcheting.as_secs_f64());
        }
        if let Some(took) = stats.rules {
            self.evaluation.observe(took.as_secs_f64());
        }
        if let Some(took) = stats.compilation {
            self.compilation.observe(took.as_secs_f64());
        }
    }

    /// The histogram of compilation times.
    pub(crate) fn compilation(&self) -> Histogram {
        self.compilation.clone()
    }

    /// The metrics of conversion webhooks.
    pub(crate) fn conversions(&self) -> Conversions {
        self.conversions.clone()
    }

    /// The text that Prometheus reads.
    pub(crate) async fn render(&self, api: &Api) -> String {
        self.count_objects(api).await;
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut out, &self.registry);
        classic(&out)
    }

    async fn count_objects(&self, api: &Api) {
        // Only kinds that are served now are counted.
        self.objects.clear();
        // A kind that serves the objects of another is not counted.
        let is_counted = |kind: &&Arc<Kind>| kind.review.is_none() && kind.object_group == kind.group;
        for kind in api.kinds.load_full().all().filter(is_counted) {
            let count = count(api, kind).await.unwrap_or(-1);
            self.objects.get_or_create(&ResourceLabel::new(kind)).set(count);
        }
    }
}

/// The counted properties of a response.
#[derive(Debug)]
pub(crate) struct Answered<'a> {
    pub(crate) code: u16,
    pub(crate) took: Duration,
    /// The length of the body, unless it is a stream.
    pub(crate) size: Option<usize>,
    pub(crate) dry_run: &'a [&'a str],
    pub(crate) field_validation: &'a [&'a str],
}

/// The counters of the events that one watch sends.
#[derive(Debug)]
pub(crate) struct Events {
    count: Counter,
    sizes: Histogram,
}

impl Events {
    /// Counts an event of that many bytes.
    pub(crate) fn sent(&self, bytes: usize) {
        self.count.inc();
        #[expect(clippy::cast_precision_loss, reason = "a histogram counts in doubles")]
        self.sizes.observe(bytes as f64);
    }
}

/// A gauge that counts this value while it lives.
#[derive(Debug)]
pub(crate) struct Running(Gauge);

impl Running {
    fn new<L>(family: &Family<L, Gauge>, label: &L) -> Running
    where
        L: Clone + Hash + Eq + EncodeLabelSet + Debug,
    {
        let gauge = family.get_or_create_owned(label);
        gauge.inc();
        Running(gauge)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}

async fn count(api: &Api, kind: &Kind) -> Option<i64> {
    let request = ListRequest {
        prefix: api.keys.collection(&kind.key_group, &kind.plural).ok()?,
        // From the cache: a scrape must not load the store.
        at: ReadAt::AtLeast(0),
        // Only the number of remaining entries matters.
        limit: NonZeroUsize::new(1),
        ..ListRequest::default()
    };
    let page = api.store.list(request).await.ok()?;
    let all = page.remaining.saturating_add(page.entries.len() as u64);
    i64::try_from(all).ok()
}

/// Returns the classic text format: counters are declared with their `_total`, and the end mark is absent.
fn classic(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1024);
    let mut help = "";
    for line in text.lines() {
        if line == "# EOF" {
            continue;
        }
        if line.starts_with("# HELP ") {
            // The help text belongs to the next line.
            help = line;
            continue;
        }
        let kind = line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' '));
        let Some((name, kind)) = kind else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let suffix = if kind == "counter" { "_total" } else { "" };
        let said = help.splitn(4, ' ').nth(3).unwrap_or_default();
        out.push_str(&format!(
            "# HELP {name}{suffix} {said}\n# TYPE {name}{suffix} {kind}\n"
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_as_their_samples() {
        let text = "# HELP a_b What.\n# TYPE a_b counter\na_b_total{x=\"1\"} 2\n# HELP c C.\n# TYPE c gauge\nc 1\n# EOF\n";
        assert_eq!(
            classic(text),
            "# HELP a_b_total What.\n# TYPE a_b_total counter\na_b_total{x=\"1\"} 2\n# HELP c C.\n# TYPE c gauge\nc 1\n"
        );
    }
}
