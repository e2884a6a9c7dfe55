//! Metrics under the names that Kubernetes uses.

use crate::request::Target;
use hyper::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// What a request is counted under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Label {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Coded {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    code: u16,
}

impl Label {
    /// The labels of a request.
    pub(crate) fn of(method: &Method, target: &Target, watch: bool) -> Label {
        let (group, version, resource, subresource, named) = match target {
            Target::Object(p) => (
                p.gv.group.clone(),
                p.gv.version.clone(),
                p.resource.clone(),
                p.subresource.clone().unwrap_or_default(),
                p.name.is_some(),
            ),
            _ => Default::default(),
        };
        let verb = match method.as_str() {
            "GET" if watch => "WATCH",
            "GET" if !resource.is_empty() && !named => "LIST",
            "GET" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" if named => "DELETE",
            "DELETE" => "DELETECOLLECTION",
            _ => "other",
        };
        Label {
            verb,
            group,
            version,
            resource,
            subresource,
        }
    }
}

type Seconds = fn() -> Histogram;

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Coded, Counter>,
    durations: Family<Label, Histogram, Seconds>,
    ratcheting: Histogram,
}

fn request_buckets() -> Histogram {
    Histogram::new([
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    ])
}

fn short_buckets() -> Histogram {
    Histogram::new([0.000_001, 0.000_01, 0.000_1, 0.001, 0.01, 0.1, 1.0])
}

impl Metrics {
    /// Nothing counted yet.
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::default();
        let requests = Family::default();
        let durations = Family::new_with_constructor(request_buckets as Seconds);
        let ratcheting = short_buckets();
        registry.register(
            "apiserver_request",
            "Requests by verb, resource and code",
            requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "Time to the end of an answer, of a watch to its beginning",
            durations.clone(),
        );
        registry.register(
            "apiextensions_apiserver_validation_ratcheting_seconds",
            "Time spent comparing old and new values for ratcheting, per request",
            ratcheting.clone(),
        );
        Metrics {
            registry,
            requests,
            durations,
            ratcheting,
        }
    }

    /// Counts a request.
    pub(crate) fn request(&self, label: &Label, code: u16, took: Duration) {
        let l = label.clone();
        let coded = Coded {
            verb: l.verb,
            group: l.group,
            version: l.version,
            resource: l.resource,
            subresource: l.subresource,
            code,
        };
        self.requests.get_or_create(&coded).inc();
        self.durations.get_or_create(label).observe(took.as_secs_f64());
    }

    /// Time spent on ratcheting in one request.
    pub(crate) fn ratcheting(&self, took: Duration) {
        self.ratcheting.observe(took.as_secs_f64());
    }

    /// The text that Prometheus reads.
    pub(crate) fn render(&self) -> String {
        let mut out = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut out, &self.registry);
        out
    }
}
