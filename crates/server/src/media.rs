//! Which form an answer takes (`Accept`), and which form a body has (`Content-Type`).

use crate::status::{ApiError, ApiResult};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
    /// Kubernetes' envelope; custom resources have no such form, but their metadata and refusals do.
    Protobuf,
}

impl Encoding {
    /// The media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// What a client wants an object or a list turned into.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum View {
    /// Nothing else.
    #[default]
    Object,
    /// `as=Table`, in that version of `meta.k8s.io`.
    Table(MetaVersion),
    /// `as=PartialObjectMetadata`
    Metadata(MetaVersion),
    /// `as=PartialObjectMetadataList`
    MetadataList(MetaVersion),
}

/// The versions of `meta.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1`
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// An answer's form.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Wanted {
    pub(crate) encoding: Encoding,
    pub(crate) view: View,
}

/// What can be written: each in its own set of forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// A document, as it is.
    Document,
    /// Objects that have a protobuf form.
    BuiltIn,
    /// Objects that have none.
    Custom,
}

/// One alternative of an `Accept` header.
#[derive(Debug, PartialEq)]
pub(crate) struct Clause<'a> {
    pub(crate) kind: &'a str,
    pub(crate) params: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    /// A parameter.
    pub(crate) fn param(&self, name: &str) -> Option<&'a str> {
        self.params
            .iter()
            .find(|(k, _)| k.eq_ignore_ascii_case(name))
            .map(|(_, v)| *v)
    }
}

/// The alternatives of an `Accept` header, the best first.
pub(crate) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut out: Vec<Clause<'_>> = accept
        .split(',')
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .map(|c| {
            let mut parts = c.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let params: Vec<_> = parts
                .filter_map(|p| p.split_once('='))
                .map(|(k, v)| (k.trim(), v.trim().trim_matches('"')))
                .collect();
            let quality = params
                .iter()
                .find(|(k, _)| *k == "q")
                .and_then(|(_, v)| v.parse().ok())
                .unwrap_or(1.0);
            Clause {
                kind,
                params,
                quality,
            }
        })
        .collect();
    out.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    out
}

const OFFERED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

fn encoding_of(kind: &str) -> Option<Encoding> {
    Some(match kind {
        "*/*" | "application/*" | "application/json" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        "application/vnd.kubernetes.protobuf" => Encoding::Protobuf,
        _ => return None,
    })
}

/// The refusal of an `Accept` header that nothing fits.
pub(crate) fn not_acceptable() -> ApiError {
    ApiError::not_acceptable(format!("only the following media types are accepted: {OFFERED}"))
}

/// The refusal of an `Accept` header that no stream fits.
pub(crate) fn no_stream() -> ApiError {
    ApiError::not_acceptable(
        "only the following media types are accepted: application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch",
    )
}

/// The encoding alone, for errors and documents: what the client prefers of what can be written at all.
pub(crate) fn encoding(accept: Option<&str>) -> Encoding {
    let accept = accept.unwrap_or("*/*");
    clauses(accept)
        .iter()
        .find_map(|c| encoding_of(c.kind))
        .unwrap_or_default()
}

/// The form that the client prefers of those that there are.
pub(crate) fn wanted(accept: Option<&str>, offer: Offer) -> ApiResult<Wanted> {
    let accept = accept.filter(|a| !a.trim().is_empty()).unwrap_or("*/*");
    let fitting = clauses(accept).into_iter().find_map(|c| {
        let encoding = encoding_of(c.kind)?;
        let view = view_of(&c)?;
        let possible = match (encoding, &view) {
            (_, View::Table(_) | View::Metadata(_) | View::MetadataList(_)) if offer == Offer::Document => {
                false
            }
            (Encoding::Protobuf, View::Object) => offer != Offer::Custom,
            (Encoding::Protobuf, View::Table(_)) => false,
            _ => true,
        };
        possible.then_some(Wanted { encoding, view })
    });
    fitting.ok_or_else(not_acceptable)
}

/// What a clause wants an object turned into; nothing for what nobody can do.
fn view_of(clause: &Clause<'_>) -> Option<View> {
    if clause.param("stream").is_some_and(|s| !matches!(s, "" | "watch"))
        || clause.param("sv").is_some_and(|v| !matches!(v, "" | "v1"))
    {
        return None;
    }
    let (target, group, version) = (clause.param("as"), clause.param("g"), clause.param("v"));
    if target.is_none() && group.is_none() && version.is_none() {
        return Some(View::Object);
    }
    let version = match (group?, version?) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
        _ => return None,
    };
    match target? {
        "Table" => Some(View::Table(version)),
        "PartialObjectMetadata" => Some(View::Metadata(version)),
        "PartialObjectMetadataList" => Some(View::MetadataList(version)),
        _ => None,
    }
}

/// What a body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    Json,
    Yaml,
    Protobuf,
}

/// The form of an object's body; none given means JSON.
pub(crate) fn body_form(content_type: Option<&str>) -> ApiResult<BodyForm> {
    match essence(content_type) {
        "" | "application/json" => Ok(BodyForm::Json),
        "application/yaml" => Ok(BodyForm::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyForm::Protobuf),
        _ => Err(ApiError::unsupported_media_type(&[
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ])),
    }
}

/// A media type without its parameters.
pub(crate) fn essence(content_type: Option<&str>) -> &str {
    content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
}
