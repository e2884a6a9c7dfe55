//! Metrics of calls to conversion webhooks.

use super::{Histograms, histograms};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

const CALL_SECONDS: [f64; 15] = [
    0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0,
];

/// The calls of all webhooks.
#[derive(Clone, Debug)]
pub(crate) struct Conversions {
    calls: Family<Called, Counter>,
    call_durations: Histograms<Called>,
    durations: Histograms<Conversion>,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    result: &'static str,
    failure_type: &'static str,
}

/// A conversion of an object of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Conversion {
    pub(crate) crd_name: String,
    pub(crate) from_version: String,
    pub(crate) to_version: String,
    pub(crate) succeeded: String,
}

impl Conversions {
    /// Metrics at zero.
    pub(super) fn new() -> Conversions {
        Conversions {
            calls: Family::default(),
            call_durations: histograms(|| Histogram::new(CALL_SECONDS)),
            durations: histograms(|| Histogram::new(exponential_buckets(0.001, 2.0, 15))),
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "apiserver_conversion_webhook_request",
            "Calls of conversion webhooks, by how they went",
            self.calls.clone(),
        );
        registry.register(
            "apiserver_conversion_webhook_duration_seconds",
            "Time of calls of conversion webhooks, by how they went",
            self.call_durations.clone(),
        );
        registry.register(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "Time of conversions by webhooks, by definition and versions",
            self.durations.clone(),
        );
    }

    /// Counts a call of a webhook, with the kind of its failure, if it failed.
    pub(crate) fn called(&self, conversion: &Conversion, failure: Option<&'static str>, took: Duration) {
        let called = Called {
            result: if failure.is_none() { "success" } else { "failure" },
            failure_type: failure.unwrap_or(""),
        };
        let seconds = took.as_secs_f64();
        self.calls.get_or_create(&called).inc();
        self.call_durations.get_or_create(&called).observe(seconds);
        self.durations.get_or_create(conversion).observe(seconds);
    }
}
