//! Which methods and media types there are where.

use super::{RequestMeta, ResourceRequest};
use crate::codec::media::{self, Encoding, Encodings, Route};
use crate::kinds::builtin;
use crate::kinds::kind::{Kind, Version};
use crate::request::{ObjectPath, Query, Target};
use crate::rest::patch;
use crate::status::{ApiError, ApiResult};
use hyper::Method;

/// What is offered at a path that takes `GET` alone; nothing where every method is answered alike.
pub(super) fn routed(target: &Target, encodings: Encodings) -> Option<Encodings> {
    match target {
        Target::Version => Some(&[Encoding::Json]),
        Target::CoreVersions => Some(encodings),
        Target::Resources(gv) if builtin::serves(&gv.group, &gv.version) => Some(encodings),
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
    let methods: &[&str] = match path.subresource.as_deref() {
        _ if !path.ends => &[],
        _ if kind.review.is_some() && !named && !path.watch => &["POST"],
        _ if kind.review.is_some() => &[],
        _ if path.watch => &["GET"],
        Some("status") if version.has_status() => &["GET", "PUT", "PATCH"],
        Some("finalize") if version.finalize => &["PUT"],
        Some(_) => &[],
        None if named => &["GET", "PUT", "PATCH", "DELETE"],
        None if kind.namespaced && path.namespace.is_none() => &["GET"],
        None if kind.strategy.deletes_collections() => &["GET", "POST", "DELETE"],
        None => &["GET", "POST"],
    };
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
        Method::POST if sub => "create",
        Method::DELETE if sub => "delete",
        Method::POST => return Ok(()),
        Method::DELETE if call.path.name.is_some() || call.kind.strategy.deletes_collections() => {
            return Ok(());
        }
        // A method that means nothing has no verb, either.
        _ => "",
    };
    Err(ApiError::method_not_allowed(call.group_resource(), refused))
}
