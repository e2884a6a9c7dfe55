//! The methods and media types of each path.

use super::{RequestMeta, ResourceRequest};
use crate::codec::media::{self, Encoding, Encodings, Route};
use crate::kinds::kind::{Kind, Kinds, Version};
use crate::request::{ObjectPath, Query, Target};
use crate::rest::patch;
use crate::status::{ApiError, ApiResult};
use hyper::Method;

/// The encodings of a path that has only `GET`; `None` for paths that answer every method alike.
pub(super) fn routed(kinds: &Kinds, target: &Target, encodings: Encodings) -> Option<Encodings> {
    match target {
        Target::Version => Some(&[Encoding::Json]),
        Target::CoreVersions => Some(encodings),
        Target::Resources(gv) if kinds.serves_builtin(&gv.group, &gv.version) => Some(encodings),
        _ => None,
    }
}

/// Checks path, method and media types of a request to a built-in kind. In contrast to custom resources, that happens
/// before anything else.
pub(super) fn check_route(
    head: &RequestMeta,
    path: &ObjectPath,
    kind: &Kind,
    version: &Version,
) -> ApiResult<()> {
    let named = path.name.is_some();
    let all: &[(&str, &str)] = match path.subresource.as_deref() {
        Some(_) if !path.watch => &[
            ("get", "GET"),
            ("create", "POST"),
            ("update", "PUT"),
            ("patch", "PATCH"),
            ("delete", "DELETE"),
        ],
        _ if path.watch => &[("watch", "GET")],
        None if named => &[
            ("get", "GET"),
            ("update", "PUT"),
            ("patch", "PATCH"),
            ("delete", "DELETE"),
        ],
        // Objects of all namespaces can be listed; anything else needs a namespace.
        None if kind.namespaced && path.namespace.is_none() => &[("list", "GET")],
        _ => &[
            ("list", "GET"),
            ("create", "POST"),
            ("deletecollection", "DELETE"),
        ],
    };
    let verbs: &[&str] = match path.subresource.as_deref() {
        None => &kind.verbs,
        Some(name) => version.subresource(name).map_or(&[], |s| &s.verbs),
    };
    // Only what is proxied has a path of its own (`pods/x/proxy/a/b`).
    let is_whole = path.ends || path.subresource.as_deref() == Some("proxy");
    let verbs = if is_whole { verbs } else { &[] };
    let methods: Vec<&str> = all
        .iter()
        .filter(|(verb, _)| verbs.contains(verb))
        .map(|(_, method)| *method)
        .collect();
    if methods.is_empty() {
        return Err(ApiError::no_resource());
    }
    if !methods.contains(&head.method.as_str()) {
        return Err(ApiError::no_such_method());
    }
    if head.method == Method::PATCH {
        let types = patch::accepted_types(kind, head.encodings);
        media::check_body(head.content_type.as_deref(), &types)?;
    }
    let route = match path.watch || head.method == Method::GET && !named {
        true => Route::Collection,
        false => Route::One,
    };
    media::check(head.accept.as_deref(), head.encodings, route)
}

/// Returns whether a request lasts until its client ends it.
pub(super) fn is_long_running(method: &Method, query: &Query, target: &Target) -> bool {
    let Target::Object(path) = target else {
        return false;
    };
    // kube-apiserver ignores `watch` on the path of an object, which is an ordinary GET.
    *method == Method::GET && (path.watch || (query.flag("watch") && path.name.is_none()))
}

/// Refuses methods that objects or their subresources do not have, before anything else of a request is checked.
pub(super) fn check_verb(call: &ResourceRequest<'_>, method: &Method) -> ApiResult<()> {
    let subresource = call.path.subresource.as_deref();
    let (verb, is_allowed) = match (method, subresource) {
        (&Method::GET | &Method::HEAD | &Method::PUT | &Method::PATCH, _) => return Ok(()),
        (&Method::POST, Some(name)) => ("create", call.version.has_verb(name, "create")),
        (&Method::DELETE, Some(name)) => ("delete", call.version.has_verb(name, "delete")),
        (&Method::POST, None) => return Ok(()),
        (&Method::DELETE, None) => {
            let is_allowed = call.path.name.is_some() || call.kind.has_verb("deletecollection");
            ("", is_allowed)
        }
        // Other methods have no verb.
        _ => ("", false),
    };
    match is_allowed {
        true => Ok(()),
        false => Err(ApiError::method_not_allowed(call.group_resource(), verb)),
    }
}
