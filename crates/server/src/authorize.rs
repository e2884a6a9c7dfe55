//! Who may do what.

use crate::auth::User;
use crate::config::AuthorizationMode;
use crate::request::{ObjectPath, Target};
use crate::status::{About, ApiError, ApiResult};
use hyper::Method;
use scantling_value::go;

/// Why something is refused.
pub(crate) const FORBIDDEN: &str = "Everything is forbidden.";

/// Whether a user may do anything at all, which is whether it may do everything.
pub(crate) fn is_allowed(mode: AuthorizationMode, user: &User) -> bool {
    match mode {
        AuthorizationMode::AlwaysAllow => true,
        AuthorizationMode::AlwaysDeny => user.is_master(),
    }
}

/// Refuses what a user may not do.
pub(crate) fn authorize(
    mode: AuthorizationMode,
    user: &User,
    method: &Method,
    path: &str,
    target: &Target,
    watch: bool,
) -> ApiResult<()> {
    if is_allowed(mode, user) {
        return Ok(());
    }
    let who = go::quote(&user.name);
    let Target::Object(object) = target else {
        let verb = method.as_str().to_ascii_lowercase();
        let why = format!("User {who} cannot {verb} path {}: {FORBIDDEN}", go::quote(path));
        return Err(ApiError::forbidden(About { group: "", kind: "" }, "", &why));
    };
    let group = &object.gv.group;
    let resource = match &object.subresource {
        Some(sub) => format!("{}/{sub}", object.resource),
        None => object.resource.clone(),
    };
    let place = match &object.namespace {
        Some(namespace) => format!("in the namespace {}", go::quote(namespace)),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User {who} cannot {} resource {} in API group {} {place}: {FORBIDDEN}",
        verb(method, object, watch),
        go::quote(&resource),
        go::quote(group)
    );
    let about = About {
        group,
        kind: &object.resource,
    };
    Err(ApiError::forbidden(
        about,
        object.name.as_deref().unwrap_or_default(),
        &why,
    ))
}

fn verb(method: &Method, path: &ObjectPath, watch: bool) -> &'static str {
    let named = path.name.is_some();
    match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if named => "delete",
        "DELETE" => "deletecollection",
        _ if watch => "watch",
        _ if named => "get",
        _ => "list",
    }
}
