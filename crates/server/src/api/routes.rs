//! Which methods and media types there are where.

use super::{RequestMeta, ResourceRequest};
use crate::codec::media::{self, Encoding, Encodings, Route};
use crate::kinds::kind::{Kind, Kinds, Version};
use crate::request::{ObjectPath, Query, Target};
use crate::rest::patch;
use crate::status::{ApiError, ApiResult};
use hyper::Method;

/// What is offered at a path that takes `GET` alone; nothing where every method is answered alike.
pub(super) fn routed(kinds: &Kinds, target: &Target, encodings: Encodings) -> Option<Encodings> {
    match target {
        Target::Version => Some(&[Encoding::Json]),
        Target::CoreVersions => Some(encodings),
        Target::Resources(gv) if kinds.serves_builtin(&gv.group, &gv.version) => Some(encodings),
        _ => None,
    }
}

/// Refuses what the routes of built-in kinds do not lead to: there, in contrast to custom resources, paths, methods and
/// media types are looked at before anything else.
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
        None => kind.verbs(),
        Some(name) => version.subresource(name).map_or(&[], |s| &s.verbs),
    };
    // A subresource may be followed by a path of its own (`pods/x/proxy/a/b`), which nothing here serves.
    let verbs = if path.ends { verbs } else { &[] };
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
        let types = patch::taken(&*kind.strategy, head.encodings);
        media::check_body(head.content_type.as_deref(), &types)?;
    }
    let route = match path.watch || head.method == Method::GET && !named {
        true => Route::Collection,
        false => Route::One,
    };
    media::check(head.accept.as_deref(), head.encodings, route)
}

/// Whether a request lasts as long as its client likes.
pub(super) fn is_long_running(method: &Method, query: &Query, target: &Target) -> bool {
    let Target::Object(path) = target else {
        return false;
    };
    *method == Method::GET && (path.watch || (query.flag("watch") && path.name.is_none()))
}

/// Refuses what cannot be done with objects or their subresources, before anything else of a request is looked at.
pub(super) fn check_verb(call: &ResourceRequest<'_>, method: &Method) -> ApiResult<()> {
    let sub = call.path.subresource.is_some();
    let refused = match *method {
        Method::GET | Method::HEAD | Method::PUT | Method::PATCH => return Ok(()),
        Method::POST | Method::DELETE if sub && call.kind.built_in => return Ok(()),
        Method::POST if sub => "create",
        Method::DELETE if sub => "delete",
        Method::POST => return Ok(()),
        Method::DELETE if call.path.name.is_some() || call.kind.has_verb("deletecollection") => {
            return Ok(());
        }
        // A method that means nothing has no verb, either.
        _ => "",
    };
    Err(ApiError::method_not_allowed(call.group_resource(), refused))
}
