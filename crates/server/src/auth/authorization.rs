//! Authorization of requests.

use crate::auth::authentication::{AUTHENTICATED, User};
use crate::config::AuthorizationMode;
use crate::request::{self, ObjectPath, Query, Target};
use crate::rest::selector::FieldSelector;
use crate::status::{ApiError, GroupResource};
use hyper::Method;
use percent_encoding::percent_decode_str;
use scantling_value::go;
use std::borrow::Cow;

/// The attributes of an action that authorization decides on.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) verb: Cow<'a, str>,
    pub(crate) target: RequestTarget<'a>,
}

/// The target of an action.
#[derive(Clone, Debug)]
pub(crate) enum RequestTarget<'a> {
    /// A path outside resources.
    Path(Cow<'a, str>),
    /// A resource. Empty parts are not given.
    Resource(Resource<'a>),
}

/// A resource, or one object of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource<'a> {
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: Cow<'a, str>,
}

impl<'a> Attributes<'a> {
    /// The attributes of a request.
    pub(crate) fn of_request(
        method: &'a Method,
        path: &'a str,
        target: &'a Target,
        query: &'a Query,
    ) -> Self {
        let Target::Object(object) = target else {
            return Attributes {
                verb: method.as_str().to_ascii_lowercase().into(),
                target: RequestTarget::Path(percent_decode_str(path).decode_utf8_lossy()),
            };
        };
        let name = object.name.as_deref().unwrap_or_default();
        let verb = verb(method, object, query);
        let selected = match verb {
            "list" | "watch" if name.is_empty() && !object.watch => selected_name(query),
            _ => None,
        };
        // A namespace is in itself.
        let namespace = match object.resource.as_str() {
            "namespaces" if object.namespace.is_none() => name,
            _ => object.namespace.as_deref().unwrap_or_default(),
        };
        Attributes {
            verb: verb.into(),
            target: RequestTarget::Resource(Resource {
                group: &object.gv.group,
                resource: &object.resource,
                subresource: object.subresource.as_deref().unwrap_or_default(),
                namespace,
                name: selected.map_or(Cow::Borrowed(name), Cow::Owned),
            }),
        }
    }

    /// The same with another verb.
    pub(crate) fn with_verb(&self, verb: String) -> Self {
        Attributes {
            verb: verb.into(),
            target: self.target.clone(),
        }
    }

    /// Returns whether the role `system:public-info-viewer`, which every user has, allows the action.
    fn is_public(&self) -> bool {
        let RequestTarget::Path(path) = &self.target else {
            return false;
        };
        let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
        self.verb == "get" && public.contains(&path.as_ref())
    }

    fn is_impersonation(&self) -> bool {
        self.verb.starts_with("impersonate")
    }

    /// The 403 error for a user.
    pub(crate) fn forbidden(&self, user: &User, reason: &str) -> ApiError {
        let (who, verb) = (go::quote(&user.name), &self.verb);
        let (what, about, name) = match &self.target {
            RequestTarget::Path(path) => {
                let nothing = GroupResource { group: "", kind: "" };
                (format!("path {}", go::quote(path)), nothing, &Cow::Borrowed(""))
            }
            RequestTarget::Resource(r) => {
                let resource = match r.subresource {
                    "" => Cow::Borrowed(r.resource),
                    subresource => format!("{}/{subresource}", r.resource).into(),
                };
                let place = match r.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", go::quote(namespace)),
                };
                let (resource, group) = (go::quote(&resource), go::quote(r.group));
                let about = GroupResource {
                    group: r.group,
                    kind: r.resource,
                };
                (
                    format!("resource {resource} in API group {group} {place}"),
                    about,
                    &r.name,
                )
            }
        };
        // Only this part is escaped, as in kube-apiserver: the reason is the server's own text.
        let mut why = without_markup(&format!("User {who} cannot {verb} {what}"));
        if !reason.is_empty() {
            why.push_str(": ");
            why.push_str(reason);
        }
        ApiError::forbidden(about, name, &why)
    }
}

/// Escapes the characters that would make a browser read a message as HTML.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Refuses an action that a user may not do, with the reason, which may be empty.
///
/// With `AlwaysAllow`, kube-apiserver admits no anonymous requests at all. Here they are admitted and may do
/// what a cluster's roles allow them: read the version and the health of the server.
pub(crate) fn decide(
    mode: AuthorizationMode,
    user: &User,
    attributes: &Attributes<'_>,
) -> Result<(), &'static str> {
    match mode {
        // Before the mode: kube-apiserver puts the authorizer of privileged groups first.
        _ if user.is_master() => Ok(()),
        AuthorizationMode::AlwaysDeny => Err("Everything is forbidden."),
        // Otherwise every user could become a master.
        AuthorizationMode::AlwaysAllow if attributes.is_impersonation() => Err(""),
        AuthorizationMode::AlwaysAllow if user.is_in(AUTHENTICATED) || attributes.is_public() => Ok(()),
        AuthorizationMode::AlwaysAllow => Err(""),
    }
}

fn verb(method: &Method, path: &ObjectPath, query: &Query) -> &'static str {
    let named = path.name.is_some();
    match method.as_str() {
        _ if path.watch => "watch",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if named => "delete",
        "DELETE" => "deletecollection",
        "GET" | "HEAD" if named => "get",
        "GET" | "HEAD" if query.flag("watch") => "watch",
        "GET" | "HEAD" => "list",
        _ => "",
    }
}

/// The name that a field selector requires.
fn selected_name(query: &Query) -> Option<String> {
    let selector = FieldSelector::parse(query.get("fieldSelector")?).ok()?;
    let name = selector.exact("metadata.name")?;
    // kube-apiserver ignores a selected name that could not be in a path.
    request::segment_fault(name).is_none().then(|| name.to_owned())
}
