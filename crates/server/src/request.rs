//! Parsing of paths and queries.

use crate::status::{ApiError, ApiResult};
use percent_encoding::percent_decode_str;
use scantling_notation::duration;
use smallvec::SmallVec;
use std::time::Duration;

/// The target of a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    /// `/`
    Index,
    /// `/healthz`, `/livez`, `/readyz`, with a single check behind a slash.
    Health {
        /// The endpoint.
        probe: Probe,
        /// A single check.
        check: Option<String>,
    },
    /// `/metrics`
    Metrics,
    /// `/version`
    Version,
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApiV3Index,
    /// `/openapi/v3/apis/<group>/<version>`: the part after `/openapi/v3/`.
    OpenApiV3(String),
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/apis/<group>/<version>`, `/api/v1`
    Resources(GroupVersion),
    /// A collection, an object or a subresource.
    Object(ObjectPath),
    /// `/apis/<group>/<version>/watch` without a resource.
    Incomplete,
    /// Any other path.
    Unknown,
}

/// The three health endpoints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Probe {
    Health,
    Live,
    Ready,
}

/// An API group, empty for the core group, and a version.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupVersion {
    pub(crate) group: String,
    pub(crate) version: String,
}

/// A path to a collection, an object or a subresource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ObjectPath {
    pub(crate) gv: GroupVersion,
    pub(crate) namespace: Option<String>,
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// True if nothing follows the subresource. Custom resources ignore what follows.
    pub(crate) ends: bool,
    /// True if the old form `/apis/G/V/watch/…` was used.
    pub(crate) watch: bool,
}

impl Target {
    /// Returns whether it is a document about the API, which is sent as it was rendered.
    pub(crate) fn is_document(&self) -> bool {
        matches!(
            self,
            Target::OpenApiV2 | Target::OpenApiV3Index | Target::OpenApiV3(_)
        )
    }

    /// Parses a path after percent-decoding.
    pub(crate) fn parse(path: &str) -> Target {
        let decoded = match path.contains('%') {
            true => percent_decode_str(path).decode_utf8(),
            false => Ok(path.into()),
        };
        let Ok(path) = decoded else {
            return Target::Unknown;
        };
        if path.starts_with("//") {
            return Target::Unknown;
        }
        let trimmed = path.trim_matches('/');
        if trimmed.is_empty() {
            return Target::Index;
        }
        let words: SmallVec<[&str; 8]> = trimmed.split('/').collect();
        let slash = path.ends_with('/');
        let health = |probe, check: &[&str]| match check {
            [] => Target::Health { probe, check: None },
            words => Target::Health {
                probe,
                check: Some(words.join("/")),
            },
        };
        match words.as_slice() {
            ["healthz", check @ ..] if !slash => health(Probe::Health, check),
            ["livez", check @ ..] if !slash => health(Probe::Live, check),
            ["readyz", check @ ..] if !slash => health(Probe::Ready, check),
            ["metrics"] if !slash => Target::Metrics,
            ["version"] => Target::Version,
            ["openapi", "v2"] if !slash => Target::OpenApiV2,
            ["openapi", "v3"] if !slash => Target::OpenApiV3Index,
            ["openapi", "v3", doc @ ..] if !slash => Target::OpenApiV3(doc.join("/")),
            // With a trailing slash, the handler of documents finds none and answers with an empty 404.
            ["openapi", "v3", ..] => Target::OpenApiV3(String::new()),
            ["api"] => Target::CoreVersions,
            ["apis"] => Target::Groups,
            ["apis", "", ..] => Target::Unknown,
            ["api", version, rest @ ..] => Target::in_version("", version, rest),
            ["apis", group] => Target::Group((*group).to_owned()),
            ["apis", group, version, rest @ ..] => Target::in_version(group, version, rest),
            _ => Target::Unknown,
        }
    }

    fn in_version(group: &str, version: &str, rest: &[&str]) -> Target {
        let gv = GroupVersion {
            group: group.to_owned(),
            version: version.to_owned(),
        };
        let (watch, rest) = match rest {
            [] => return Target::Resources(gv),
            ["watch"] => return Target::Incomplete,
            ["watch", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        // A namespace is an object itself: `/namespaces/x` and its subresources, in contrast to resources in it.
        let namespace_subresource = |s: &str| matches!(s, "status" | "finalize");
        let (namespace, rest) = match rest {
            ["namespaces", ns, resource, more @ ..]
                if !(more.is_empty() && namespace_subresource(resource)) =>
            {
                // `/namespaces//pods` means all namespaces.
                let ns = (!ns.is_empty()).then(|| (*ns).to_owned());
                (ns, rest.get(2..).unwrap_or_default())
            }
            rest => (None, rest),
        };
        let own = |s: &&str| (*s).to_owned();
        let [resource, more @ ..] = rest else {
            return Target::Unknown;
        };
        Target::Object(ObjectPath {
            gv,
            namespace,
            resource: own(resource),
            name: more.first().map(own),
            subresource: more.get(1).map(own),
            ends: more.len() <= 2,
            watch,
        })
    }
}

/// Returns the reason why a name cannot be a path segment.
pub(crate) fn segment_fault(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        _ if name.contains('/') => Some("may not contain '/'"),
        _ if name.contains('%') => Some("may not contain '%'"),
        _ => None,
    }
}

/// The parameters of a query, with Go's conversions and their error texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Parses a query string; pairs that cannot be decoded are skipped, as in Go.
    pub(crate) fn parse(text: &str) -> Query {
        let decode = |s: &str| {
            // Before percent-decoding, so that an escaped plus sign stays one.
            let plus = s.replace('+', " ");
            percent_decode_str(&plus)
                .decode_utf8()
                .ok()
                .map(std::borrow::Cow::into_owned)
        };
        let pairs = text
            .split('&')
            .filter(|p| !p.is_empty())
            .filter_map(|p| {
                let (k, v) = p.split_once('=').unwrap_or((p, ""));
                Some((decode(k)?, decode(v)?))
            })
            .collect();
        Query { pairs }
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(k, _)| k == name)
            .map(|(_, v)| v.as_str())
    }

    /// The first value of a parameter; empty if absent.
    pub(crate) fn get_or_empty(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// The `timeout` parameter, in Go's notation of durations.
    pub(crate) fn timeout(&self) -> ApiResult<Option<Duration>> {
        let Some(text) = self.get("timeout").filter(|t| !t.is_empty()) else {
            return Ok(None);
        };
        let nanos = duration::parse_or_error(text).map_err(|why| {
            ApiError::bad_request(format!(
                "invalid timeout specified in the request URL - time: {why}"
            ))
        })?;
        Ok(u64::try_from(nanos)
            .ok()
            // As in kube-apiserver, a timeout of zero is that of the server.
            .filter(|n| *n > 0)
            .map(Duration::from_nanos))
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.pairs
            .iter()
            .filter(|(k, _)| k == name)
            .map(|(_, v)| v.as_str())
            .collect()
    }

    /// Returns whether the parameter is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A boolean parameter: present, and neither `0` nor `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|v| v != "0" && !v.eq_ignore_ascii_case("false"))
    }

    /// An integer parameter.
    pub(crate) fn int(&self, name: &str) -> ApiResult<Option<i64>> {
        self.get(name)
            .map(|v| parse_int(v).map_err(ApiError::bad_request))
            .transpose()
    }
}

/// Parses a decimal 64-bit integer, with Go's errors.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    scantling_value::go::parse_integer("ParseInt", text)
}

/// Parses an unsigned decimal 64-bit integer, with Go's errors.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    scantling_value::go::parse_integer("ParseUint", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(path: &str) -> String {
        match Target::parse(path) {
            Target::Object(o) => format!(
                "{}/{} ns={:?} {} name={:?} sub={:?} watch={}",
                o.gv.group, o.gv.version, o.namespace, o.resource, o.name, o.subresource, o.watch
            ),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn paths() {
        let table = [
            (
                "/api/v1/namespaces",
                r#"/v1 ns=None namespaces name=None sub=None watch=false"#,
            ),
            (
                "/api/v1/namespaces/a",
                r#"/v1 ns=None namespaces name=Some("a") sub=None watch=false"#,
            ),
            (
                "/api/v1/namespaces/a/status",
                r#"/v1 ns=None namespaces name=Some("a") sub=Some("status") watch=false"#,
            ),
            (
                "/api/v1/namespaces/a/events",
                r#"/v1 ns=Some("a") events name=None sub=None watch=false"#,
            ),
            (
                "/apis/g/v1/namespaces/a/ws/x/scale",
                r#"g/v1 ns=Some("a") ws name=Some("x") sub=Some("scale") watch=false"#,
            ),
            (
                "/apis/g/v1/namespaces/a/status/x",
                r#"g/v1 ns=Some("a") status name=Some("x") sub=None watch=false"#,
            ),
            (
                "/apis/g/v1/watch/namespaces/a/ws",
                r#"g/v1 ns=Some("a") ws name=None sub=None watch=true"#,
            ),
            (
                "/apis/g/v1/ws/a%2Fb",
                r#"g/v1 ns=None ws name=Some("a") sub=Some("b") watch=false"#,
            ),
            (
                "/apis/g/v1/ws/%2e%2e",
                r#"g/v1 ns=None ws name=Some("..") sub=None watch=false"#,
            ),
            ("/apis/g/v1/watch/", "Incomplete"),
            ("/healthz/", "Unknown"),
            ("//apis/g/v1/ws", "Unknown"),
            ("/apis//g/v1/ws", "Unknown"),
            (
                "/apis/g/v1/namespaces//ws",
                r#"g/v1 ns=None ws name=None sub=None watch=false"#,
            ),
            (
                "/apis/g/v1/",
                r#"Resources(GroupVersion { group: "g", version: "v1" })"#,
            ),
            (
                "/apis/g/v1/ws/a/b/c",
                r#"g/v1 ns=None ws name=Some("a") sub=Some("b") watch=false"#,
            ),
            (
                "/healthz/ping",
                r#"Health { probe: Health, check: Some("ping") }"#,
            ),
        ];
        for (path, want) in table {
            assert_eq!(object(path), want, "{path}");
        }
    }

    #[test]
    fn query_conversions() {
        let q = Query::parse("limit=two&watch=perhaps&b=false&c=0&empty=&x=a%20b+c&n=99999999999999999999");
        assert_eq!(
            q.int("limit").unwrap_err().message(),
            r#"strconv.ParseInt: parsing "two": invalid syntax"#
        );
        assert_eq!(
            q.int("empty").unwrap_err().message(),
            r#"strconv.ParseInt: parsing "": invalid syntax"#
        );
        assert!(q.int("n").unwrap_err().message().ends_with("value out of range"));
        assert!(q.flag("watch") && q.flag("empty") && !q.flag("b") && !q.flag("c") && !q.flag("none"));
        assert_eq!(q.get("x"), Some("a b c"));
    }
}
