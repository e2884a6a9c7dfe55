//! Requests for documents: discovery, OpenAPI, health, metrics, version.

use super::health;
use super::routes::routed;
use super::{Api, RequestMeta};
use crate::codec::media::{self, Accept, Encoding};
use crate::discovery::{self, Root};
use crate::http::compute;
use crate::http::reply::Reply;
use crate::kinds::kind::{Document, Kinds};
use crate::request::{GroupVersion, Probe, Target};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use hyper::Method;
use hyper::header;
use scantling_value::{Map, Value};

impl Api {
    /// Serves a document.
    pub(super) async fn document(&self, head: &RequestMeta, target: Target) -> ApiResult<Reply> {
        let accept = head.accept();
        if let Some(offered) = routed(&self.kinds.load(), &target, accept.encodings) {
            if head.method != Method::GET {
                return Err(ApiError::no_such_method());
            }
            media::check(accept.text, offered, media::Route::One)?;
        }
        // Rendering the documents of many kinds, or of large ones, takes long.
        let is_written = match &target {
            Target::OpenApiV2 | Target::OpenApiV3(_) => false,
            Target::OpenApiV3Index => self.kinds.load().cache.index.get().is_some(),
            Target::CoreVersions => self.kinds.load().cache.discovery(Root::Core).get().is_some(),
            Target::Groups => self.kinds.load().cache.discovery(Root::Groups).get().is_some(),
            _ => true,
        };
        if !is_written {
            compute::offload(compute::LIGHT).await;
        }
        let kinds = self.kinds.load();
        let document = |v: Value, accept: Accept<'_>| -> ApiResult<Reply> {
            let wanted = media::negotiate(accept, media::Supported::Document)?;
            Ok(Reply::object(200, &v, wanted.encoding))
        };
        match target {
            Target::Index => Ok(Reply::object(200, &index(&kinds), Encoding::Json).indented()),
            Target::Health { probe, check } => {
                Ok(health::answer(self, probe, check.as_deref(), &head.query).await)
            }
            Target::Metrics => Ok(Reply::bytes(
                200,
                "text/plain; version=0.0.4; charset=utf-8",
                Box::pin(self.metrics.render(self)).await,
            )),
            Target::Version => Ok(Reply::object(200, &version(), Encoding::Json).indented()),
            Target::OpenApiV2 => self.documents.v2(&kinds, head),
            Target::OpenApiV3Index => self.documents.index(&kinds, head),
            Target::OpenApiV3(name) => self.documents.v3(&kinds, &name, head),
            Target::CoreVersions => self.aggregated(&kinds, head, Root::Core, || {
                discovery::core_versions(&self.address)
            }),
            Target::Groups => self.aggregated(&kinds, head, Root::Groups, || discovery::groups(&kinds)),
            Target::Group(name) => {
                let found = discovery::group(&kinds, &name);
                found.map_or_else(|| Ok(Reply::page_not_found()), |group| document(group, accept))
            }
            Target::Resources(GroupVersion { group, version }) => {
                match discovery::resources(&kinds, &group, &version) {
                    Some(found) if kinds.has_builtin_group(&group) => document(found, accept),
                    // kube-apiserver describes custom resources only in the usual encodings.
                    Some(found) => {
                        let encodings = Encoding::USUAL;
                        document(found, Accept { encodings, ..accept })
                    }
                    None if kinds.has_builtin_group(&group) => Err(ApiError::no_resource()),
                    None => Ok(Reply::page_not_found()),
                }
            }
            Target::Incomplete => Ok(Reply::incomplete(&head.uri.to_string())),
            Target::Object(_) | Target::Unknown => Ok(Reply::page_not_found()),
        }
    }

    /// `/api` and `/apis`: plain or aggregated, with an entity tag.
    fn aggregated(
        &self,
        kinds: &Kinds,
        head: &RequestMeta,
        root: Root,
        plain: impl Fn() -> Value,
    ) -> ApiResult<Reply> {
        let accept = head.accept();
        let Some(encoding) = discovery::aggregated_encoding(accept) else {
            let wanted = media::negotiate(accept, media::Supported::Document)?;
            return Ok(Reply::object(200, &plain(), wanted.encoding));
        };
        let place = kinds.cache.discovery(root);
        let written = place.get_or_init(|| Document::new(discovery::aggregated(kinds, root).to_json()));
        let mut reply = match encoding {
            // kube-apiserver compares the header as a whole here: it knows neither lists of tags nor `*`.
            _ if head.if_none_match.as_ref() == Some(&written.tag) => {
                Reply::bytes(304, Encoding::Json.content_type(), Bytes::new())
            }
            Encoding::Yaml | Encoding::Cbor => {
                Reply::object(200, &discovery::aggregated(kinds, root), encoding)
            }
            // The document has no protobuf message, so `aggregated_encoding` never returns that encoding.
            Encoding::Json | Encoding::Protobuf => {
                Reply::bytes(200, Encoding::Json.content_type(), written.text.clone())
            }
        };
        reply.content_type = discovery::aggregated_type(encoding);
        Ok(reply
            .with(header::VARY, "Accept")
            .with(header::CACHE_CONTROL, "public")
            .with(header::ETAG, &written.tag))
    }
}

/// `/`: all paths.
fn index(kinds: &Kinds) -> Value {
    let mut paths: Vec<String> = ["/api", "/api/v1", "/apis", "/apis/"]
        .iter()
        .map(|p| (*p).to_owned())
        .collect();
    for group in kinds.groups().filter(|g| !g.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(
            discovery::served_versions(kinds, group)
                .iter()
                .map(|v| format!("/apis/{group}/{v}")),
        );
    }
    paths.extend(health::paths(Probe::Health));
    paths.extend(health::paths(Probe::Live));
    paths.extend(["/metrics", "/openapi/v2", "/openapi/v3"].map(str::to_owned));
    paths.extend(health::paths(Probe::Ready));
    paths.push("/version".to_owned());
    Value::Object(Map::from_iter([("paths", Value::from(paths))]))
}

/// `/version`: the Kubernetes release whose behaviour this is, in Kubernetes' form.
fn version() -> Value {
    let entries = [
        ("major", "1"),
        ("minor", "37"),
        ("emulationMajor", "1"),
        ("emulationMinor", "37"),
        ("minCompatibilityMajor", "1"),
        ("minCompatibilityMinor", "36"),
        (
            "gitVersion",
            concat!("v1.37.0+scantling-", env!("CARGO_PKG_VERSION")),
        ),
        ("gitCommit", ""),
        ("gitTreeState", "clean"),
        ("buildDate", "1970-01-01T00:00:00Z"),
        ("goVersion", "none"),
        ("compiler", "rustc"),
        ("platform", "linux/amd64"),
    ];
    Value::Object(entries.into_iter().map(|(k, v)| (k, Value::from(v))).collect())
}
