//! The labels of metrics.

use crate::codec::media;
use crate::kinds::kind::{Kind, Kinds};
use crate::request::Target;
use hyper::Method;
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};
use scantling_value::Str;
use std::hash::{BuildHasher, Hash, Hasher};

/// The component of all requests.
const COMPONENT: &str = "apiserver";

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    verb: &'static str,
    group: Str,
    version: Str,
    resource: Str,
    subresource: &'static str,
    scope: &'static str,
    /// A hash of the labels, because several metrics look them up.
    digest: u64,
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.digest);
    }
}

impl EncodeLabelSet for Label {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), std::fmt::Error> {
        let labels = [
            ("verb", self.verb),
            ("group", self.group.as_str()),
            ("version", self.version.as_str()),
            ("resource", self.resource.as_str()),
            ("subresource", self.subresource),
            ("scope", self.scope),
            ("component", COMPONENT),
        ];
        labels
            .iter()
            .try_for_each(|label| label.encode(encoder.encode_label()))
    }
}

/// The same, with the dry-run flag.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Timed {
    #[prometheus(flatten)]
    label: Label,
    dry_run: &'static str,
}

/// The same, with the status code.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Coded {
    #[prometheus(flatten)]
    timed: Timed,
    code: u16,
}

/// A version of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VersionLabel {
    group: String,
    version: String,
    resource: String,
}

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ResourceLabel {
    group: String,
    resource: String,
}

/// The label for the kind of a request: reading or mutating.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestKind {
    pub(super) request_kind: &'static str,
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) result: &'static str,
}

/// The reason why the server closed a connection or a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Closed {
    /// The limit of connections is reached.
    Limit,
    /// The limit of connections of the client address is reached.
    ClientLimit,
    /// A newer connection took its place.
    Evicted,
    HandshakeTimeout,
    /// No request, or not all of its head, arrived in time.
    Idle,
    /// The client did not read.
    Stalled,
    /// The memory for unfinished heads is used up.
    OutOfMemory,
}

impl Closed {
    pub(super) fn name(self) -> &'static str {
        match self {
            Closed::Limit => "limit",
            Closed::ClientLimit => "client_limit",
            Closed::Evicted => "evicted",
            Closed::HandshakeTimeout => "handshake_timeout",
            Closed::Idle => "idle",
            Closed::Stalled => "stalled",
            Closed::OutOfMemory => "out_of_memory",
        }
    }
}

/// A reason, as a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reason {
    pub(super) reason: &'static str,
}

/// The field validation of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FieldValidation {
    field_validation: &'static str,
}

impl Label {
    /// Returns the labels of a request. One for an unknown resource has only a verb.
    pub(crate) fn new(
        method: &Method,
        target: &Target,
        content_type: Option<&str>,
        kinds: &Kinds,
        watch: bool,
    ) -> Label {
        let served = match target {
            Target::Object(path) => kinds
                .get(&path.gv.group, &path.resource)
                .and_then(|k| Some((path, k, k.served_version(&path.gv.version)?))),
            _ => None,
        };
        let mut label = Label {
            verb: "",
            group: Str::default(),
            version: Str::default(),
            resource: Str::default(),
            subresource: "",
            scope: "",
            digest: 0,
        };
        if let Some((path, kind, version)) = served {
            label.group = Str::from(&kind.group);
            label.version = Str::from(&version.name);
            label.resource = Str::from(&kind.plural);
            label.subresource = match path.subresource.as_deref() {
                Some("status") if version.has_status() => "status",
                Some("scale") if version.scale.is_some() => "scale",
                Some(name) => version.subresource(name).map_or("", |s| s.name),
                None => "",
            };
            // As in kube-apiserver's `CleanScope`, a create is about one object.
            label.scope = if path.name.is_some() || method == Method::POST {
                "resource"
            } else if path.namespace.is_some() {
                "namespace"
            } else {
                "cluster"
            };
        }
        let many = matches!(label.scope, "namespace" | "cluster");
        label.verb = match method.as_str() {
            "GET" if watch => "WATCH",
            "GET" | "HEAD" if many => "LIST",
            "GET" | "HEAD" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" if media::essence(content_type) == "application/apply-patch+yaml" => "APPLY",
            "PATCH" => "PATCH",
            "DELETE" if many => "DELETECOLLECTION",
            "DELETE" => "DELETE",
            // Clients may send any method, and each would be a series of its own.
            _ => "other",
        };
        // A collision only costs time, because equality compares the labels themselves.
        label.digest = foldhash::fast::FixedState::default().hash_one((
            label.verb,
            label.group.as_str(),
            label.version.as_str(),
            label.resource.as_str(),
            label.subresource,
            label.scope,
        ));
        label
    }

    /// Returns whether it reads objects.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.verb, "GET" | "LIST") && !self.resource.is_empty()
    }

    /// Returns whether the fields of its body are validated.
    pub(super) fn is_validated(&self) -> bool {
        matches!(self.verb, "POST" | "PUT" | "PATCH" | "APPLY") && !self.resource.is_empty()
    }

    pub(super) fn timed(&self, dry_run: &[&str]) -> Timed {
        Timed {
            label: self.clone(),
            dry_run: match dry_run {
                [] => "",
                all if all.iter().all(|d| *d == "All") => "All",
                _ => "invalid",
            },
        }
    }
}

impl Timed {
    pub(super) fn coded(self, code: u16) -> Coded {
        Coded { timed: self, code }
    }
}

impl Coded {
    pub(super) fn timed(&self) -> &Timed {
        &self.timed
    }
}

impl VersionLabel {
    pub(super) fn new(kind: &Kind, version: &str) -> VersionLabel {
        VersionLabel {
            group: kind.group.clone(),
            version: version.to_owned(),
            resource: kind.plural.clone(),
        }
    }
}

impl ResourceLabel {
    pub(super) fn new(kind: &Kind) -> ResourceLabel {
        ResourceLabel {
            group: kind.group.clone(),
            resource: kind.plural.clone(),
        }
    }
}

impl FieldValidation {
    pub(super) fn new(asked: &[&str]) -> FieldValidation {
        let field_validation = match asked {
            [] | [""] => "",
            ["Ignore"] => "Ignore",
            ["Warn"] => "Warn",
            ["Strict"] => "Strict",
            _ => "invalid",
        };
        FieldValidation { field_validation }
    }
}
