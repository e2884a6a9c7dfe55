//! OpenAPI documents: one per group and version, written when it is asked for.
//!
//! What all documents share (the schemas of metadata, the descriptions of parameters) is data, in
//! `openapi/common.json`. A document's hash is made from what it depends on, not from its text, so that the index of
//! thousands of definitions costs no document.

mod gnostic;
pub(crate) mod models;
mod parts;
mod paths;
mod routes;
mod v2;

use crate::api::RequestMeta;
use crate::codec::media;
use crate::discovery::served_versions;
use crate::http::reply::{PLAIN_TEXT, Reply};
use crate::kinds::kind::{Document, Kind, Kinds, Version};
use crate::rest::listing::SharedListings;
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use hyper::header;
use parts::{Form, Parts};
use scantling_schema::publish::OpenApiVersion;
use scantling_value::{Limits, Map, Str, Value, json};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

const COMMON: &str = include_str!("openapi/common.json");
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

/// What all documents share.
#[derive(Default)]
struct Common {
    schemas: Map,
    parameters: Map,
}

static SHARED: LazyLock<&Common> = LazyLock::new(|| PARSED.as_ref().unwrap_or(&NONE));

static NONE: LazyLock<Common> = LazyLock::new(Common::default);

/// A server does not start without it: see [`check`].
static PARSED: LazyLock<Result<Common, String>> = LazyLock::new(|| {
    let mut doc = json::decode(COMMON.as_bytes(), Limits::SAFE).map_err(|e| e.to_string())?;
    let mut take = |key| {
        let part = doc.as_object_mut().and_then(|m| m.remove(key));
        let part = part.and_then(Value::into_object);
        part.ok_or_else(|| format!("it has no {key}"))
    };
    Ok(Common {
        schemas: take("schemas")?,
        parameters: take("parameters")?,
    })
});

/// Fails if the embedded schemas cannot be parsed. They are part of the program; still, a server that would publish
/// empty documents and accept fields of any type must not start.
pub(crate) fn check() -> Result<(), String> {
    match &*PARSED {
        Ok(_) => models::check(),
        Err(why) => Err(format!("common.json: {why}")),
    }
}

/// The documents that were asked for lately, by name and hash.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    written: Mutex<BTreeMap<String, (String, Bytes)>>,
    parts: Parts,
    /// Those of OpenAPI v2 that are being sent, by their tag.
    sent: SharedListings,
}

/// How many written documents are kept.
const KEPT: usize = 64;

/// A tag for a text.
pub(crate) fn tag(text: &[u8]) -> String {
    format!("\"{}\"", hash(&[text]))
}

fn hash(parts: &[&[u8]]) -> String {
    let mut h = sha2::Sha256::new();
    for p in parts {
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

/// The hash of documents that change with this program alone.
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

/// A hash of all that the document of OpenAPI v2 depends on.
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
        // A server does not say what it is, which makes it text, and does not ask what the client takes.
        reply.content_type = PLAIN_TEXT;
        reply.headers.remove(header::VARY);
        Ok(reply)
    }

    /// `/openapi/v3/apis/<group>/<version>`
    pub(crate) fn v3(&self, kinds: &Kinds, name: &str, head: &RequestMeta) -> ApiResult<Reply> {
        let Some(subject) = Subject::find(kinds, name) else {
            return Ok(nothing());
        };
        let Some(form) = form_of(head, &V3_PROTOBUF) else {
            return Ok(Reply::bytes(406, "", Bytes::new()).with(header::VARY, "Accept"));
        };
        let hash = subject.hash(kinds);
        let tag = format!("\"{hash}\"");
        let asked = head.query.get("hash").filter(|asked| !asked.is_empty());
        let mut reply = if asked.is_some_and(|asked| asked != hash) {
            // Clients keep what is behind an address for good: another document has another address.
            let reply = Reply::bytes(301, "", Bytes::new());
            let reply = reply.with(header::ETAG, &tag).with(header::VARY, "Accept");
            reply.with(header::LOCATION, &format!("/openapi/v3/{name}?hash={hash}"))
        } else {
            let key = match form {
                Form::Json => name.to_owned(),
                Form::Protobuf => format!("{name} as protobuf"),
            };
            let write = || Ok(form.write(&subject.document(kinds)?));
            let text = self.written(&key, &hash, write).map_err(unwritten)?;
            let reply = conditional(head, &tag, text);
            match asked {
                Some(_) => reply.with(header::CACHE_CONTROL, "public, immutable"),
                None => reply,
            }
        };
        reply.content_type = form.content_type(&V3_PROTOBUF);
        Ok(reply)
    }

    fn written(
        &self,
        name: &str,
        hash: &str,
        write: impl FnOnce() -> Result<Bytes, String>,
    ) -> Result<Bytes, String> {
        if let Ok(written) = self.written.lock()
            && let Some((h, text)) = written.get(name)
            && h == hash
        {
            return Ok(text.clone());
        }
        let text = write()?;
        if let Ok(mut written) = self.written.lock() {
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
        let Some(form) = form_of(head, &V2_PROTOBUF) else {
            return Ok(Reply::bytes(406, "", Bytes::new()));
        };
        let tag = match form {
            Form::Json => format!("\"{hash}\""),
            Form::Protobuf => format!("\"{hash}P\""),
        };
        let mut reply = conditional(head, &tag, Bytes::new());
        if reply.status != 304 {
            let list = match self.sent.get(&tag) {
                Some(list) => list,
                None => {
                    let list = self.parts.document(kinds, form).map_err(unwritten)?;
                    self.sent.share(tag, list)
                }
            };
            reply.body = Reply::list(list).body;
        }
        reply.content_type = form.content_type(&V2_PROTOBUF);
        Ok(reply)
    }
}

/// 500 of a document that cannot be written because something of the server's own is not as it should be.
fn unwritten(why: String) -> ApiError {
    tracing::error!(why, "cannot write an OpenAPI document");
    ApiError::internal_error(why)
}

/// What a document of OpenAPI v3 is about.
enum Subject<'n> {
    /// The kinds of a group and version.
    Kinds(&'n str, &'n str),
    /// A route that is about no kind.
    Route(&'n str),
}

impl<'n> Subject<'n> {
    /// The subject of a document's name, if there is one.
    fn find(kinds: &Kinds, name: &'n str) -> Option<Subject<'n>> {
        let (group, version) = match name.split('/').collect::<Vec<_>>().as_slice() {
            ["api", version] => ("", *version),
            ["apis", group, version] => (*group, *version),
            _ => {
                return routes::names(kinds)
                    .any(|n| n == name)
                    .then_some(Subject::Route(name));
            }
        };
        kinds_of(kinds, group, version).next()?;
        Some(Subject::Kinds(group, version))
    }

    fn hash(&self, kinds: &Kinds) -> String {
        match self {
            Subject::Kinds(group, version) => hash_of(kinds, group, version),
            Subject::Route(_) => route_hash(),
        }
    }

    fn document(&self, kinds: &Kinds) -> Result<Value, String> {
        match self {
            Subject::Kinds(group, version) => document(kinds, group, version),
            Subject::Route(name) => routes::document(kinds, name),
        }
    }
}

impl Form {
    /// The media type of a document, given the names of its protobuf form.
    fn content_type(self, protobuf: &[&'static str; 2]) -> &'static str {
        match self {
            Form::Json => "application/json",
            Form::Protobuf => protobuf[0],
        }
    }

    /// A document of OpenAPI v3.
    fn write(self, document: &Value) -> Bytes {
        match self {
            Form::Json => document.to_json().into(),
            Form::Protobuf => gnostic::v3::document(document).into(),
        }
    }
}

/// The form of a document that a client prefers, given the names of its protobuf form.
fn form_of(head: &RequestMeta, protobuf: &[&str; 2]) -> Option<Form> {
    let accept = head.accept.as_deref().filter(|accept| !accept.is_empty());
    media::clauses(accept.unwrap_or("*/*")).iter().find_map(|clause| {
        let json = clause.takes("application/json").then_some(Form::Json);
        json.or_else(|| protobuf.iter().any(|t| clause.takes(t)).then_some(Form::Protobuf))
    })
}

/// The names of the protobuf form of `/openapi/v2`: the one that is sent, and one that is understood, too.
const V2_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
];

/// The same of the documents of `/openapi/v3`.
const V3_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
];

/// The answer for a document that is not there.
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

/// The name of a kind's schema: its package and the kind. What is built in is not replaced by what a definition makes.
pub(crate) fn schema_name(group: &str, version: &str, kind: &str) -> String {
    let name = format!("{}.{kind}", models::package(group, version));
    match models::is_taken(group, &name) {
        true => format!("{name}_v2"),
        false => name,
    }
}

/// The document of a group and version.
fn document(kinds: &Kinds, group: &str, version: &str) -> Result<Value, String> {
    let mut paths = Vec::new();
    let mut schemas: Vec<(Str, Value)> = Vec::new();
    let mut scales = false;
    for (kind, v) in kinds_of(kinds, group, version) {
        let writer = paths::Writer::new(kind, v);
        paths.extend(writer.paths());
        let published = kind.strategy.published(kind, &[v], OpenApiVersion::V3)?;
        schemas.extend(
            published
                .into_iter()
                .map(|schema| (writer.name.as_str().into(), schema)),
        );
        if kind.review.is_none() {
            schemas.push((writer.list_name().into(), writer.list_schema()));
        }
        scales |= v.scale.is_some();
    }
    // Thousands of kinds have tens of thousands of paths: they are sorted once.
    let (paths, mut schemas) = (Map::from_unsorted(paths), Map::from_unsorted(schemas));
    models::add_references(&mut schemas);
    for (name, schema) in SHARED.schemas.iter() {
        if scales || !name.starts_with(SCALE) {
            schemas.insert(name.clone(), schema.clone());
        }
    }
    Ok(object([
        ("openapi", "3.0.0".into()),
        (
            "info",
            object([
                ("title", "Kubernetes CRD Swagger".into()),
                ("version", "v0.1.0".into()),
            ]),
        ),
        ("paths", paths.into()),
        ("components", object([("schemas", schemas.into())])),
    ]))
}

/// The extension by which clients find the schema of a kind.
fn gvk_list(group: &str, version: &str, kind: &str) -> Value {
    let gvk = object([
        ("group", group.into()),
        ("version", version.into()),
        ("kind", kind.into()),
    ]);
    Value::Array(vec![gvk])
}

/// The schema of a text.
fn string_schema(description: &str) -> Value {
    object([("type", "string".into()), ("description", description.into())])
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. \
     Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More \
     info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers \
     may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_META: &str = "Standard list metadata. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
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
    fn common_data_is_read() {
        assert!(SHARED.schemas.contains_key(&format!("{META}.ObjectMeta")));
        assert!(SHARED.parameters.contains_key("fieldManager of a patch"));
    }
}
