//! Content negotiation: the encoding of responses (`Accept`) and of request bodies (`Content-Type`).

use crate::status::{ApiError, ApiResult};
use scantling_value::Map;

/// An encoding of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
    /// Protobuf in Kubernetes' envelope. Custom resources do not have it, but their metadata and error statuses do.
    Protobuf,
    /// Only if the feature gate is enabled.
    Cbor,
}

impl Encoding {
    /// The media type.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
            Encoding::Cbor => "application/cbor",
        }
    }

    /// The media type of a stream; YAML cannot be streamed.
    pub(crate) fn stream_type(self) -> Option<&'static str> {
        match self {
            Encoding::Json => Some("application/json;stream=watch"),
            Encoding::Yaml => None,
            Encoding::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            Encoding::Cbor => Some("application/cbor-seq"),
        }
    }
}

/// The encodings that a server supports.
pub(crate) type Encodings = &'static [Encoding];

/// The `Accept` header of a request, and the encodings that the server supports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accept<'a> {
    /// The header.
    pub(crate) text: Option<&'a str>,
    pub(crate) encodings: Encodings,
}

/// The representation of an object or a list that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum View {
    /// The object or list itself.
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

/// The encoding and the view of a response.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Negotiated {
    pub(crate) encoding: Encoding,
    pub(crate) view: View,
}

impl Negotiated {
    /// Returns whether objects are returned unchanged, as JSON.
    pub(crate) fn is_plain(&self) -> bool {
        self.encoding == Encoding::Json && self.view == View::Object
    }
}

/// The representations that a response can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supported {
    /// A document, unchanged.
    Document,
    /// Objects with a protobuf encoding.
    BuiltIn,
    /// Such objects without a table format.
    WithoutColumns,
    /// Objects without a protobuf encoding.
    Custom,
    /// Such objects without a table format.
    CustomWithoutColumns,
}

/// One alternative of an `Accept` header.
#[derive(Debug, PartialEq)]
pub(crate) struct Clause<'a> {
    /// Before and after the slash.
    kind: (&'a str, &'a str),
    params: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    /// Parses an alternative; `None` if it is not a media type.
    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let mut parts = text.split(';');
        let kind = parts.next().unwrap_or_default();
        let kind = match kind.split_once('/') {
            Some((_, sub)) if sub.contains('/') => return None,
            Some((kind, sub)) if !sub.is_empty() => (kind.trim_matches(' '), sub.trim_matches(' ')),
            _ if kind.trim_matches(['/', ' ']) == "*" => ("*", "*"),
            _ => return None,
        };
        let mut clause = Clause {
            kind,
            params: Vec::new(),
            quality: 1.0,
        };
        // A parameter without a value, or with two, counts as not given.
        let pairs = parts
            .filter_map(|p| p.split_once('='))
            .filter(|(_, v)| !v.is_empty() && !v.contains('='));
        for (name, value) in pairs {
            match name.trim_matches(' ') {
                // An invalid quality counts as zero, as in Go, and zero does not exclude the alternative.
                "q" => clause.quality = value.parse().unwrap_or(0.0),
                name => clause.params.push((name, value.trim_matches(' '))),
            }
        }
        Some(clause)
    }

    /// A parameter; of several of one name the last counts.
    pub(crate) fn param(&self, name: &str) -> Option<&'a str> {
        self.params.iter().rfind(|(k, _)| *k == name).map(|(_, v)| *v)
    }

    /// Returns whether it matches a media type, by name or by a wildcard.
    pub(crate) fn takes(&self, media_type: &str) -> bool {
        match self.kind {
            ("*", "*") => true,
            (kind, "*") => media_type.split_once('/').is_some_and(|(k, _)| k == kind),
            (kind, sub) => media_type.split_once('/') == Some((kind, sub)),
        }
    }

    /// Returns whether it is preferred to another: by quality, then names before wildcards.
    fn precedes(&self, other: &Clause<'_>) -> bool {
        self.quality > other.quality
            || (self.kind.0 != "*" && other.kind.0 == "*")
            || (self.kind.1 != "*" && other.kind.1 == "*")
    }
}

/// The maximum number of alternatives of an `Accept` header; further ones are ignored.
const MAX_CLAUSES: usize = 64;

/// The alternatives of an `Accept` header, the best first.
pub(crate) fn clauses(accept: &str) -> Vec<Clause<'_>> {
    let mut out: Vec<Clause<'_>> = Vec::new();
    let found = accept
        .split(',')
        .filter_map(|c| Clause::parse(c.trim_matches(' ')));
    for clause in found.take(MAX_CLAUSES) {
        // `precedes` is not a strict order (a wildcard of high quality and a name of low quality precede each
        // other), so the result depends on the algorithm: insertion sort, as in kube-apiserver.
        let place = out
            .iter()
            .rposition(|before| !clause.precedes(before))
            .map_or(0, |i| i + 1);
        out.insert(place, clause);
    }
    out
}

impl Encoding {
    /// The default encodings.
    pub(crate) const USUAL: Encodings = &[Encoding::Json, Encoding::Yaml, Encoding::Protobuf];

    /// The encodings with the feature gate for CBOR.
    pub(crate) const WITH_CBOR: Encodings =
        &[Encoding::Json, Encoding::Yaml, Encoding::Protobuf, Encoding::Cbor];
}

/// The media types of encodings.
fn content_types(encodings: &[Encoding]) -> Vec<&'static str> {
    encodings.iter().map(|e| e.content_type()).collect()
}

/// The media types of streams.
fn stream_types(encodings: &[Encoding]) -> Vec<&'static str> {
    encodings.iter().filter_map(|e| e.stream_type()).collect()
}

/// The error for an `Accept` header that nothing matches.
pub(crate) fn not_acceptable(encodings: Encodings) -> ApiError {
    let offered = content_types(encodings).join(", ");
    ApiError::not_acceptable(format!("only the following media types are accepted: {offered}"))
}

/// The media types of objects without a protobuf encoding.
pub(crate) fn without_protobuf(encodings: Encodings) -> Vec<&'static str> {
    let others = encodings
        .iter()
        .filter(|encoding| **encoding != Encoding::Protobuf);
    others.map(|encoding| encoding.content_type()).collect()
}

/// The kind of response of a route.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Route {
    /// A single object or document.
    One,
    /// A collection, which may be watched.
    Collection,
}

/// Rejects an `Accept` header that matches no media type of a route; parameters are ignored.
pub(crate) fn check(accept: Option<&str>, offered: Encodings, route: Route) -> ApiResult<()> {
    let Some(accept) = accept.filter(|a| !a.is_empty()) else {
        return Ok(());
    };
    // This check is go-restful's, which compares whole media types: `application/*` matches nothing here.
    let mut kinds = accept.split(',').map(|c| essence(Some(c)));
    let is_stream = |e: &Encoding, kind| route == Route::Collection && e.stream_type() == Some(kind);
    let is_offered = |kind| {
        let mut offered = offered.iter();
        offered.any(|e| e.content_type() == kind || is_stream(e, kind))
    };
    if kinds.any(|kind| kind == "*/*" || is_offered(kind)) {
        return Ok(());
    }
    let streams = match route {
        Route::One => Vec::new(),
        Route::Collection => stream_types(offered),
    };
    let offered = [content_types(offered), streams].concat();
    let message = format!(
        "406: Not Acceptable\n\nAvailable representations: {}",
        offered.join(", ")
    );
    // kube-apiserver wraps go-restful's plain text in a `Status` with empty details.
    Err(ApiError::not_acceptable(message).details(Map::new()))
}

/// The error for an `Accept` header that no stream matches.
pub(crate) fn no_stream(encodings: Encodings) -> ApiError {
    let offered = stream_types(encodings).join(", ");
    ApiError::not_acceptable(format!("only the following media types are accepted: {offered}"))
}

/// Returns the `Accept` header if it may ask for something other than plain JSON, which most clients ask for.
fn non_default_accept(accept: Option<&str>) -> Option<&str> {
    accept.filter(|a| !matches!(*a, "" | "application/json"))
}

/// Returns the supported encoding and view that the client prefers.
pub(crate) fn negotiate(accept: Accept<'_>, offer: Supported) -> ApiResult<Negotiated> {
    let Some(text) = non_default_accept(accept.text) else {
        return Ok(Negotiated::default());
    };
    let clauses = clauses(text);
    let fitting = clauses.iter().find_map(|clause| {
        let taken = |e: &&Encoding| clause.takes(e.content_type());
        let mut taken = accept.encodings.iter().filter(taken);
        // A wildcard matches several encodings: the first that can hold the requested view is used.
        taken.find_map(|encoding| negotiate_clause(clause, *encoding, offer))
    });
    fitting.ok_or_else(|| not_acceptable(accept.encodings))
}

/// Returns whether the client asks for indented JSON.
pub(crate) fn pretty(accept: Option<&str>) -> bool {
    let clauses = clauses(non_default_accept(accept).unwrap_or_default());
    let json = clauses.iter().find(|c| c.takes(Encoding::Json.content_type()));
    json.is_some_and(|c| c.param("pretty") == Some("1"))
}

/// Returns what a clause asks for in an encoding; `None` if it is not supported.
fn negotiate_clause(clause: &Clause<'_>, encoding: Encoding, offer: Supported) -> Option<Negotiated> {
    let streams = clause
        .param("stream")
        .is_none_or(|s| s == "watch" && encoding.stream_type().is_some());
    let versions = clause
        .param("sv")
        .is_none_or(|v| v == "v1" && offer != Supported::Document);
    if !streams || !versions {
        return None;
    }
    let view = view_of(clause)?;
    let possible = match (encoding, &view) {
        (_, View::Table(_) | View::Metadata(_) | View::MetadataList(_)) if offer == Supported::Document => {
            false
        }
        (Encoding::Protobuf, View::Object) => {
            !matches!(offer, Supported::Custom | Supported::CustomWithoutColumns)
        }
        (Encoding::Protobuf | Encoding::Cbor, View::Table(_)) => false,
        (_, View::Table(_)) => !matches!(offer, Supported::WithoutColumns | Supported::CustomWithoutColumns),
        _ => true,
    };
    possible.then_some(Negotiated { encoding, view })
}

/// Returns the view that a clause asks for; `None` if it asks for an unknown one.
fn view_of(clause: &Clause<'_>) -> Option<View> {
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

/// The encoding of a request body; JSON by default.
pub(crate) fn body_encoding(content_type: Option<&str>, encodings: Encodings) -> ApiResult<Encoding> {
    let Some(text) = content_type.filter(|t| !t.is_empty()) else {
        return Ok(Encoding::Json);
    };
    // An unparsable header is an empty type, which no encoding has: 415.
    let media_type = media_type(text).unwrap_or_default();
    let mut spoken_ones = encodings.iter();
    match spoken_ones.find(|e| e.content_type() == media_type) {
        Some(encoding) => Ok(*encoding),
        None => Err(ApiError::unsupported_media_type(&content_types(encodings))),
    }
}

/// Returns the media type of a `Content-Type` in lower case; `None` if Go's parser rejects it or its
/// parameters.
fn media_type(text: &str) -> Option<String> {
    let (media_type, mut rest) = text.split_at(text.find(';').unwrap_or(text.len()));
    let media_type = media_type.trim().to_ascii_lowercase();
    let mut words = media_type.splitn(2, '/');
    if !words.all(|word| !word.is_empty() && word.chars().all(is_token)) {
        return None;
    }
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.trim_end() == ";" {
            return Some(media_type);
        }
        let (name, after) = token(rest.strip_prefix(';')?.trim_start());
        if name.is_empty() {
            return None;
        }
        rest = value(after.trim_start().strip_prefix('=')?.trim_start())?;
    }
}

/// Returns whether a character may be part of a header token.
fn is_token(c: char) -> bool {
    c.is_ascii_graphic() && !r#"()<>@,;:\"/[]?="#.contains(c)
}

/// Splits off a token.
fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

/// Returns the text after the value of a parameter, which is a token or a quoted string.
fn value(text: &str) -> Option<&str> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, rest) = token(text);
        return (!word.is_empty()).then_some(rest);
    };
    let mut escaped = false;
    let end = quoted.find(|c| match c {
        _ if escaped => {
            escaped = false;
            false
        }
        '\\' => {
            escaped = true;
            false
        }
        c => c == '"',
    })?;
    quoted.get(end + 1..)
}

/// Rejects a body with a `Content-Type` that the route does not support; parameters are ignored.
pub(crate) fn check_body(content_type: Option<&str>, taken: &[&str]) -> ApiResult<()> {
    let mut kinds = content_type
        .unwrap_or_default()
        .split(',')
        .map(|t| essence(Some(t)));
    if kinds.any(|kind| taken.contains(&kind)) {
        return Ok(());
    }
    let message = "415: Unsupported Media Type";
    Err(ApiError::new(415, "UnsupportedMediaType", message).details(Map::new()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let table = [
            ("application/json", Some("application/json")),
            (" Application/JSON ; Charset=utf-8;", Some("application/json")),
            (r#"application/json; a="b;\"c" ; d=e"#, Some("application/json")),
            ("application/json;;", None),
            ("application/json;a", None),
            ("application/json;a=", None),
            ("application/json, text/plain", None),
            ("application/", None),
            ("/", None),
            ("json", Some("json")),
        ];
        for (text, want) in table {
            assert_eq!(media_type(text).as_deref(), want, "{text}");
        }
    }
}
