//! OpenAPI documents: one per group and version, rendered on request.
//!
//! The parameters of operations are data, in `openapi/parameters.json`. A document's hash is computed from what the
//! document depends on, not from its text, so that the index of thousands of CRDs renders none of them.

mod gnostic;
pub(crate) mod models;
mod names;
mod operations;
mod paths;
mod routes;
mod v2;
mod v2_parts;

use crate::api::RequestMeta;
use crate::codec::media;
use crate::discovery::served_versions;
use crate::http::reply::{PLAIN_TEXT, Reply};
use crate::kinds::kind::{Document, Kind, Kinds, Version};
use crate::rest::listing::SharedListings;
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use hyper::header;
use models::ModelRenderer;
use scantling_schema::publish::OpenApiVersion;
use scantling_value::{Limits, Map, Str, Value, json};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use v2_parts::{DocumentFormat, V2Parts};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// The parameters of operations, by name. A server does not start without them: see [`check`].
static PARAMETERS: LazyLock<Result<Map, String>> = LazyLock::new(|| {
    let parameters = json::decode(include_bytes!("openapi/parameters.json"), Limits::SAFE);
    let parameters = parameters.map_err(|e| e.to_string())?;
    parameters.into_object().ok_or_else(|| "not an object".to_owned())
});

/// Fails if the embedded parameters cannot be parsed. They are part of the program; still, a server that would publish
/// incomplete documents must not start.
pub(crate) fn check() -> Result<(), String> {
    PARAMETERS
        .as_ref()
        .map(drop)
        .map_err(|why| format!("parameters.json: {why}"))
}

/// The parameters that operations share, without those that name a kind.
fn shared_parameters() -> impl Iterator<Item = &'static Value> {
    PARAMETERS.iter().flat_map(Map::values)
}

/// The parameter of an operation on a kind.
fn parameter(name: &str, kind: &str) -> Value {
    let found = PARAMETERS.as_ref().ok().and_then(|all| all.get(name));
    let mut parameter = found.cloned().unwrap_or_default();
    if name == "name"
        && let Some(members) = parameter.as_object_mut()
    {
        members.insert("description", format!("name of the {kind}").into());
    }
    parameter
}

/// Recently requested documents, by name and hash.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    written: Mutex<BTreeMap<String, (String, Bytes)>>,
    parts: V2Parts,
    /// OpenAPI v2 documents that are being sent, by their entity tag.
    sent: SharedListings,
}

/// The number of rendered documents that are kept.
const KEPT: usize = 64;

/// The entity tag of a text.
pub(crate) fn tag(text: &[u8]) -> String {
    format!("\"{}\"", hash(&[text]))
}

fn hash(parts: &[&[u8]]) -> String {
    let mut h = sha2::Sha256::new();
    for p in parts {
        // The length separates the parts: otherwise `ab`, `c` and `a`, `bc` would have one hash.
        h.update((p.len() as u64).to_le_bytes());
        h.update(p);
    }
    h.finalize().iter().map(|b| format!("{b:02X}")).collect()
}

/// The kinds of a group that a version serves.
fn kinds_of<'a>(
    kinds: &'a Kinds,
    group: &str,
    version: &'a str,
) -> impl Iterator<Item = (&'a Arc<Kind>, &'a Version)> {
    let of: Vec<_> = kinds
        .listed(group, version)
        .filter_map(|k| Some((k, k.served_version(version)?)))
        .collect();
    of.into_iter()
}

fn path_of(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("api/{version}")
    } else {
        format!("apis/{group}/{version}")
    }
}

fn hash_of(kinds: &Kinds, group: &str, version: &str) -> String {
    let marks: Vec<String> = kinds_of(kinds, group, version)
        .map(|(k, _)| format!("{}:{}", k.plural, k.mark))
        .collect();
    let parts: Vec<&[u8]> = marks.iter().map(String::as_bytes).collect();
    hash(&parts)
}

/// The hash of documents that depend only on the version of the program.
fn route_hash() -> String {
    hash(&[env!("CARGO_PKG_VERSION").as_bytes()])
}

fn index(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    let mut add = |path: String, hash: String| {
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, object([("serverRelativeURL", url.into())]));
    };
    routes::names(kinds).for_each(|name| add(name, route_hash()));
    for group in kinds.groups() {
        for version in served_versions(kinds, group) {
            add(path_of(group, &version), hash_of(kinds, group, &version));
        }
    }
    object([("paths", paths.into())])
}

/// A hash of everything that the OpenAPI v2 document depends on.
fn hash_of_all(kinds: &Kinds) -> String {
    let groups = kinds.groups();
    let hashes: Vec<String> = groups
        .flat_map(|g| served_versions(kinds, g).into_iter().map(move |v| (g, v)))
        .map(|(g, v)| format!("{g}/{v}:{}", hash_of(kinds, g, &v)))
        .collect();
    let parts: Vec<&[u8]> = hashes.iter().map(String::as_bytes).collect();
    hash(&parts)
}

impl Documents {
    /// `/openapi/v3`
    pub(crate) fn index(&self, kinds: &Kinds, head: &RequestMeta) -> ApiResult<Reply> {
        let index = kinds
            .cache
            .index
            .get_or_init(|| Document::new(index(kinds).to_json()));
        let mut reply = conditional(head, &index.tag, index.text.clone());
        // kube-apiserver sets no content type, so that it is text, and ignores `Accept`.
        reply.content_type = PLAIN_TEXT;
        reply.headers.remove(header::VARY);
        Ok(reply)
    }

    /// `/openapi/v3/apis/<group>/<version>`
    pub(crate) fn v3(&self, kinds: &Kinds, name: &str, head: &RequestMeta) -> ApiResult<Reply> {
        let Some(subject) = V3Subject::find(kinds, name) else {
            return Ok(nothing());
        };
        let Some(format) = form_of(head, &V3_PROTOBUF) else {
            return Ok(Reply::bytes(406, "", Bytes::new()).with(header::VARY, "Accept"));
        };
        let hash = subject.hash(kinds);
        let tag = format!("\"{hash}\"");
        let asked = head.query.get("hash").filter(|asked| !asked.is_empty());
        let mut reply = if asked.is_some_and(|asked| asked != hash) {
            // Clients cache a document with a hash forever: another document has another address.
            let reply = Reply::bytes(301, "", Bytes::new());
            let reply = reply.with(header::ETAG, &tag).with(header::VARY, "Accept");
            reply.with(header::LOCATION, &format!("/openapi/v3/{name}?hash={hash}"))
        } else {
            let key = match format {
                DocumentFormat::Json => name.to_owned(),
                DocumentFormat::Protobuf => format!("{name} as protobuf"),
            };
            let write = || Ok(format.write(&subject.document(kinds)?));
            let text = self.written(&key, &hash, write).map_err(unwritten)?;
            let reply = conditional(head, &tag, text);
            match asked {
                Some(_) => reply.with(header::CACHE_CONTROL, "public, immutable"),
                None => reply,
            }
        };
        reply.content_type = format.content_type(&V3_PROTOBUF);
        Ok(reply)
    }

    fn written(
        &self,
        name: &str,
        hash: &str,
        write: impl FnOnce() -> Result<Bytes, String>,
    ) -> Result<Bytes, String> {
        // After a panic of another request, documents are simply rendered every time.
        if let Ok(written) = self.written.lock()
            && let Some((h, text)) = written.get(name)
            // The name stays while the kinds change, so the hash decides.
            && h == hash
        {
            return Ok(text.clone());
        }
        let text = write()?;
        if let Ok(mut written) = self.written.lock() {
            // The first by name, not the oldest: the limit only bounds the memory.
            if written.len() >= KEPT {
                written.pop_first();
            }
            written.insert(name.to_owned(), (hash.to_owned(), text.clone()));
        }
        Ok(text)
    }

    /// `/openapi/v2`
    pub(crate) fn v2(&self, kinds: &Kinds, head: &RequestMeta) -> ApiResult<Reply> {
        let hash = kinds.cache.hash.get_or_init(|| hash_of_all(kinds));
        let Some(format) = form_of(head, &V2_PROTOBUF) else {
            return Ok(Reply::bytes(406, "", Bytes::new()));
        };
        let tag = match format {
            DocumentFormat::Json => format!("\"{hash}\""),
            // The two formats have one address, so their tags must differ.
            DocumentFormat::Protobuf => format!("\"{hash}P\""),
        };
        // The body is set below, so that a 304 renders nothing.
        let mut reply = conditional(head, &tag, Bytes::new());
        if reply.status != 304 {
            let list = match self.sent.get(&tag) {
                Some(list) => list,
                None => {
                    let list = self.parts.document(kinds, format).map_err(unwritten)?;
                    self.sent.share(tag, list)
                }
            };
            reply.body = Reply::list(list).body;
        }
        reply.content_type = format.content_type(&V2_PROTOBUF);
        Ok(reply)
    }
}

/// Logs an internal error and returns it as 500.
fn unwritten(why: String) -> ApiError {
    tracing::error!(why, "cannot write an OpenAPI document");
    ApiError::internal_error(why)
}

/// The subject of an OpenAPI v3 document.
enum V3Subject<'n> {
    /// The kinds of a group and version.
    Kinds(&'n str, &'n str),
    /// A route without a kind.
    Route(&'n str),
}

impl<'n> V3Subject<'n> {
    /// The subject of a document's name, if there is one.
    fn find(kinds: &Kinds, name: &'n str) -> Option<V3Subject<'n>> {
        let (group, version) = match name.split('/').collect::<Vec<_>>().as_slice() {
            ["api", version] => ("", *version),
            ["apis", group, version] => (*group, *version),
            _ => {
                return routes::names(kinds)
                    .any(|n| n == name)
                    .then_some(V3Subject::Route(name));
            }
        };
        kinds_of(kinds, group, version).next()?;
        Some(V3Subject::Kinds(group, version))
    }

    fn hash(&self, kinds: &Kinds) -> String {
        match self {
            V3Subject::Kinds(group, version) => hash_of(kinds, group, version),
            V3Subject::Route(_) => route_hash(),
        }
    }

    fn document(&self, kinds: &Kinds) -> Result<Value, String> {
        match self {
            V3Subject::Kinds(group, version) => document(kinds, group, version),
            V3Subject::Route(name) => routes::document(kinds, name),
        }
    }
}

impl DocumentFormat {
    /// The media type of a document, given those of its protobuf format.
    fn content_type(self, protobuf: &[&'static str; 2]) -> &'static str {
        match self {
            DocumentFormat::Json => "application/json",
            DocumentFormat::Protobuf => protobuf[0],
        }
    }

    /// A document of OpenAPI v3.
    fn write(self, document: &Value) -> Bytes {
        match self {
            DocumentFormat::Json => document.to_json().into(),
            DocumentFormat::Protobuf => gnostic::document(document).into(),
        }
    }
}

/// The format of a document that a client prefers, given the media types of its protobuf format.
fn form_of(head: &RequestMeta, protobuf: &[&str; 2]) -> Option<DocumentFormat> {
    let accept = head.accept.as_deref().filter(|accept| !accept.is_empty());
    media::clauses(accept.unwrap_or("*/*")).iter().find_map(|clause| {
        let json = clause.takes("application/json").then_some(DocumentFormat::Json);
        json.or_else(|| {
            protobuf
                .iter()
                .any(|t| clause.takes(t))
                .then_some(DocumentFormat::Protobuf)
        })
    })
}

/// The media types of `/openapi/v2` in protobuf: the one that is sent, and another one that is accepted.
const V2_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// The media types of `/openapi/v3` in protobuf.
const V3_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
];

/// The response for a document that does not exist.
fn nothing() -> Reply {
    Reply::bytes(404, "", Bytes::new())
}

fn conditional(head: &RequestMeta, tag: &str, text: Bytes) -> Reply {
    let same = head.if_none_match.as_deref().is_some_and(|asked| {
        let asked = asked.split(',').map(|t| t.trim().trim_start_matches("W/"));
        asked.into_iter().any(|t| t == "*" || t == tag)
    });
    let reply = if same {
        Reply::bytes(304, "application/json", Bytes::new())
    } else {
        Reply::bytes(200, "application/json", text)
    };
    reply.with(header::ETAG, tag).with(header::VARY, "Accept")
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().collect())
}

fn reference(name: &str) -> Value {
    object([("$ref", format!("#/components/schemas/{name}").into())])
}

/// The name of a kind's schema: its package and the kind. A CRD does not replace the schema of a built-in type.
pub(crate) fn schema_name(group: &str, version: &str, kind: &str) -> String {
    let name = format!("{}.{kind}", models::package(group, version));
    match models::is_taken(group, &name) {
        true => format!("{name}_v2"),
        false => name,
    }
}

/// The document of a group and version.
fn document(kinds: &Kinds, group: &str, version: &str) -> Result<Value, String> {
    let is_built_in = kinds_of(kinds, group, version).all(|(kind, _)| kind.built_in);
    let renderer = match is_built_in {
        true => ModelRenderer::for_version(group, version),
        false => ModelRenderer::for_scheme(&[]),
    };
    let mut paths: Vec<(Str, Value)> = Vec::new();
    let mut schemas: Vec<(Str, Value)> = Vec::new();
    for (kind, v) in kinds_of(kinds, group, version) {
        let writer = paths::PathsWriter::new(kind, v);
        paths.extend(writer.paths());
        if !kind.built_in {
            let published = kind.codec.published(kind, &[v], OpenApiVersion::V3)?.into_iter();
            schemas.extend(published.map(|schema| (writer.name.as_str().into(), schema)));
            schemas.push((writer.list_name().into(), writer.list_schema()));
        }
    }
    if is_built_in {
        paths.push(routes::resources(group, version));
    }
    // Thousands of kinds have tens of thousands of paths: they are sorted once.
    let (paths, mut schemas) = (Map::from_unsorted(paths), Map::from_unsorted(schemas));
    renderer.add_references(paths.values(), &mut schemas);
    let mut components = Map::from_iter([("schemas", schemas.into())]);
    let info = match is_built_in {
        true => {
            components.insert("securitySchemes", v2::security().1);
            v2::info()
        }
        false => object([
            ("title", "Kubernetes CRD Swagger".into()),
            ("version", "v0.1.0".into()),
        ]),
    };
    Ok(object([
        ("openapi", "3.0.0".into()),
        ("info", info),
        ("paths", paths.into()),
        ("components", components.into()),
    ]))
}

/// The extension by which clients find the schema of a kind.
fn gvk_list(group: &str, version: &str, kind: &str) -> Value {
    Value::Array(vec![gvk(group, version, kind)])
}

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    object([
        ("group", group.into()),
        ("version", version.into()),
        ("kind", kind.into()),
    ])
}

/// The schema of a string.
fn string_schema(description: &str) -> Value {
    object([("type", "string".into()), ("description", description.into())])
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. \
     Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More \
     info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers \
     may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const LIST_META: &str = "Standard list metadata. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_names() {
        assert_eq!(
            schema_name("s5-162.example.com", "v1", "Widget"),
            "com.example.s5-162.v1.Widget"
        );
        let group = "apiextensions.apis.pkg.apiextensions-apiserver.k8s.io";
        let taken = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
        assert_eq!(
            schema_name(crate::kinds::definitions::GROUP, "v1", "CustomResourceDefinition"),
            taken
        );
        assert_eq!(
            schema_name(group, "v1", "CustomResourceDefinition"),
            format!("{taken}_v2")
        );
        assert_eq!(
            schema_name(group, "v1", "CustomResourceDefinitionList"),
            format!("{taken}List_v2")
        );
    }

    #[test]
    fn parameters_are_read() {
        check().unwrap();
        assert_eq!(parameter("name", "Pod").get_str("description"), "name of the Pod");
        assert_eq!(
            parameter("fieldManager of a patch", "Pod").get_str("name"),
            "fieldManager"
        );
    }
}
