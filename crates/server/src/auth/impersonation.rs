//! Impersonation: the `Impersonate-*` headers, the right to send them, and the resulting user.
//!
//! The right to impersonate has two forms. Constrained impersonation limits what may be done as the other
//! user, and has a mode for each kind of user; legacy impersonation allows everything that the other user may
//! do. Either suffices.

use crate::auth::authentication::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};
use crate::auth::authorization::{Attributes, RequestTarget, Resource, decide};
use crate::config::AuthorizationMode;
use crate::status::{ApiError, ApiResult};
use hyper::header::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use scantling_schema::names::{dns1123_label, dns1123_subdomain};
use scantling_value::go;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The common prefix of impersonation headers.
const HEADERS: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// The API group of the resources that constrained impersonation is granted on.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The maximum number of impersonation headers of a request.
const MAX_HEADERS: usize = 1024;

/// The maximum size of their names and values, in bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Returns the impersonated user, if the headers of a request name one. Fails if the requesting user may not
/// impersonate it.
pub(crate) fn impersonated(
    headers: &HeaderMap,
    mode: AuthorizationMode,
    user: &User,
    request: &Attributes<'_>,
) -> ApiResult<Option<User>> {
    if !headers.keys().any(|name| name.as_str().starts_with(HEADERS)) {
        return Ok(None);
    }
    let Some(wanted) = ImpersonationHeaders::read(headers)? else {
        return Ok(None);
    };
    let check = RightsCheck { mode, user };
    let kind = UserKind::parse(&wanted.name);
    let constrained = kind.constrained_mode(wanted.is_name_alone());
    let refused = match constrained.map(|name| check.constrained(&wanted, &kind, name, request)) {
        Some(Ok(())) => return Ok(Some(wanted.into_user(&kind, constrained))),
        Some(Err(e)) => Some(e),
        None => None,
    };
    match check.legacy(&wanted, &kind) {
        Ok(()) => Ok(Some(wanted.into_user(&kind, None))),
        // Of two refusals, kube-apiserver reports that of the constrained mode.
        Err(e) => Err(refused.unwrap_or(e)),
    }
}

/// The user that the headers name.
#[derive(Debug, Default)]
struct ImpersonationHeaders {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl ImpersonationHeaders {
    fn read(headers: &HeaderMap) -> ApiResult<Option<ImpersonationHeaders>> {
        check_size(headers)?;
        let one = |name| headers.get(name).map_or(Ok(String::new()), header_value);
        let mut wanted = ImpersonationHeaders {
            name: one(USER)?,
            uid: one(UID)?,
            groups: headers
                .get_all(GROUP)
                .iter()
                .map(header_value)
                .collect::<Result<_, _>>()?,
            extra: BTreeMap::new(),
        };
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(EXTRA) {
                wanted
                    .extra
                    .entry(unescape(key)?)
                    .or_default()
                    .push(header_value(value)?);
            }
        }
        match wanted.name.is_empty() {
            false => Ok(Some(wanted)),
            // Empty headers are the same as none.
            true if wanted.is_name_alone() => Ok(None),
            true => Err(ApiError::bad_request(format!(
                "requested {} without impersonating a user name",
                wanted.go_syntax()
            ))),
        }
    }

    /// Returns whether the headers contain only a name.
    fn is_name_alone(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// The value in Go syntax, which kube-apiserver's error message quotes.
    fn go_syntax(&self) -> String {
        let list = |values: &[String]| {
            let values: Vec<String> = values.iter().map(|v| go::quote(v)).collect();
            format!("[]string{{{}}}", values.join(", "))
        };
        let groups = match self.groups.as_slice() {
            [] => "[]string(nil)".to_owned(),
            groups => list(groups),
        };
        let extra = match self.extra.is_empty() {
            true => "map[string][]string(nil)".to_owned(),
            false => {
                let entry =
                    |(key, values): (&String, &Vec<String>)| format!("{}:{}", go::quote(key), list(values));
                let entries: Vec<String> = self.extra.iter().map(entry).collect();
                format!("map[string][]string{{{}}}", entries.join(", "))
            }
        };
        let (name, uid) = (go::quote(&self.name), go::quote(&self.uid));
        format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
    }

    /// The user with the groups that its name implies.
    fn into_user(self, kind: &UserKind, constrained: Option<&str>) -> User {
        let mut groups = match kind {
            // Legacy impersonation gives a node only the groups in the headers.
            UserKind::Node { .. } if constrained.is_some() => vec!["system:nodes".to_owned()],
            UserKind::ServiceAccount { namespace, .. } if self.groups.is_empty() => vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
            _ => self.groups,
        };
        let is_in = |group: &str| groups.iter().any(|g| g == group);
        let implied = match self.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ => AUTHENTICATED,
        };
        // Impersonating the unauthenticated group must not make the user an authenticated one.
        if !is_in(UNAUTHENTICATED) && !is_in(implied) {
            groups.push(implied.to_owned());
        }
        User {
            name: self.name,
            uid: self.uid,
            groups,
            extra: self.extra,
        }
    }
}

fn check_size(headers: &HeaderMap) -> ApiResult<()> {
    let (mut count, mut bytes) = (0, 0);
    for (name, value) in headers {
        if name.as_str().starts_with(HEADERS) {
            count += 1;
            bytes += name.as_str().len() + value.len();
        }
    }
    if count > MAX_HEADERS || bytes > MAX_BYTES {
        return Err(ApiError::bad_request(format!(
            "too many impersonation headers: at most {MAX_HEADERS} headers with {MAX_BYTES} bytes are allowed"
        )));
    }
    Ok(())
}

/// The value of a header. A lossy conversion could turn two users into one.
fn header_value(value: &HeaderValue) -> ApiResult<String> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(str::to_owned).map_err(|_| not_utf8())
}

/// Decodes the percent-encoded key of an extra attribute. A malformed key is taken verbatim.
fn unescape(key: &str) -> ApiResult<String> {
    let mut escapes = key.split('%').skip(1);
    let is_escaped = escapes.all(|e| {
        e.as_bytes()
            .get(..2)
            .is_some_and(|e| e.iter().all(u8::is_ascii_hexdigit))
    });
    if !is_escaped {
        return Ok(key.to_owned());
    }
    let key = percent_decode_str(key).decode_utf8();
    key.map(Cow::into_owned).map_err(|_| not_utf8())
}

fn not_utf8() -> ApiError {
    ApiError::bad_request("impersonation headers must be valid UTF-8")
}

/// The kind of a user, as its name tells.
#[derive(Debug, PartialEq)]
enum UserKind {
    Node { name: String },
    ServiceAccount { namespace: String, name: String },
    Other,
}

impl UserKind {
    fn parse(user: &str) -> UserKind {
        if let Some(name) = user.strip_prefix("system:node:")
            && dns1123_subdomain(name).is_empty()
        {
            let name = name.to_owned();
            return UserKind::Node { name };
        }
        let account = user.strip_prefix("system:serviceaccount:");
        match account.and_then(|account| account.split_once(':')) {
            Some((namespace, name))
                if dns1123_label(namespace).is_empty() && dns1123_subdomain(name).is_empty() =>
            {
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                UserKind::ServiceAccount { namespace, name }
            }
            _ => UserKind::Other,
        }
    }

    /// The constrained mode for this kind. A node or a service account is impersonated by its name only.
    fn constrained_mode(&self, is_name_alone: bool) -> Option<&'static str> {
        match self {
            UserKind::Node { .. } if is_name_alone => Some("arbitrary-node"),
            UserKind::ServiceAccount { .. } if is_name_alone => Some("serviceaccount"),
            UserKind::Node { .. } | UserKind::ServiceAccount { .. } => None,
            UserKind::Other => Some("user-info"),
        }
    }
}

/// Checks the rights of the requesting user.
struct RightsCheck<'a> {
    mode: AuthorizationMode,
    user: &'a User,
}

impl RightsCheck<'_> {
    /// Checks the rights to make this request in a mode and to impersonate the user in that mode.
    fn constrained(
        &self,
        wanted: &ImpersonationHeaders,
        kind: &UserKind,
        mode: &str,
        request: &Attributes<'_>,
    ) -> ApiResult<()> {
        self.allowed(&request.with_verb(format!("impersonate-on:{mode}:{}", request.verb)))?;
        let verb = format!("impersonate:{mode}");
        let target = match kind {
            UserKind::Node { name } => resource(AUTHENTICATION, "nodes", name),
            UserKind::ServiceAccount { .. } | UserKind::Other => username(AUTHENTICATION, &wanted.name, kind),
        };
        self.may(&verb, target)?;
        self.others(&verb, AUTHENTICATION, wanted, Strictness::Constrained)
    }

    /// Checks the right to impersonate the user for any request.
    fn legacy(&self, wanted: &ImpersonationHeaders, kind: &UserKind) -> ApiResult<()> {
        self.may("impersonate", username("", &wanted.name, kind))?;
        self.others("impersonate", "", wanted, Strictness::Legacy)
    }

    /// Checks the rights to the UID, to each group and to each extra value.
    fn others(
        &self,
        verb: &str,
        group: &str,
        wanted: &ImpersonationHeaders,
        strictness: Strictness,
    ) -> ApiResult<()> {
        if !wanted.uid.is_empty() {
            self.may(verb, resource(AUTHENTICATION, "uids", &wanted.uid))?;
        }
        let groups = wanted.groups.iter().map(|name| resource(group, "groups", name));
        // All groups are checked for forbidden ones before the right to any is.
        if strictness == Strictness::Constrained {
            let found = groups.clone().find_map(|g| Some((group_fault(&g.name)?, g)));
            found.map_or(Ok(()), |(why, group)| self.refused(verb, group, why))?;
        }
        for group in groups {
            self.may(verb, group)?;
        }
        for (key, values) in &wanted.extra {
            if strictness == Strictness::Constrained
                && let Some(why) = extra_fault(key, values)
            {
                return self.refused(verb, resource(AUTHENTICATION, "userextras", ""), why);
            }
            for value in values {
                let mut extra = resource(AUTHENTICATION, "userextras", value);
                extra.subresource = key;
                self.may(verb, extra)?;
            }
        }
        Ok(())
    }

    fn may(&self, verb: &str, target: Resource<'_>) -> ApiResult<()> {
        self.allowed(&attributes(verb, target))
    }

    fn allowed(&self, attributes: &Attributes<'_>) -> ApiResult<()> {
        decide(self.mode, self.user, attributes).map_err(|reason| attributes.forbidden(self.user, reason))
    }

    fn refused(&self, verb: &str, target: Resource<'_>, why: &str) -> ApiResult<()> {
        Err(attributes(verb, target).forbidden(self.user, why))
    }
}

/// Constrained modes refuse values that legacy impersonation has always accepted.
#[derive(Clone, Copy, PartialEq)]
enum Strictness {
    Constrained,
    Legacy,
}

/// The reason why constrained modes refuse a group.
fn group_fault(group: &str) -> Option<&'static str> {
    match group {
        "" => Some("impersonating the empty string group is not allowed"),
        MASTERS => Some("impersonating the system:masters group is not allowed"),
        _ => None,
    }
}

/// The reason why constrained modes refuse an extra attribute.
fn extra_fault(key: &str, values: &[String]) -> Option<&'static str> {
    let is_path = |path: &str| {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b);
        !path.is_empty() && path.bytes().all(is_plain)
    };
    match key.split_once('/') {
        _ if key.is_empty() => Some("impersonating the empty string key in extra is not allowed"),
        Some((domain, path)) if dns1123_subdomain(domain).is_empty() && is_path(path) => {
            if key.chars().any(char::is_uppercase) {
                return Some("impersonating a non-lowercase key in extra is not allowed");
            }
            let is_empty = values.iter().any(String::is_empty);
            is_empty.then_some("impersonating the empty string value in extra is not allowed")
        }
        _ => Some("impersonating an invalid key in extra is not allowed"),
    }
}

fn username<'a>(group: &'a str, user: &'a str, kind: &'a UserKind) -> Resource<'a> {
    match kind {
        UserKind::ServiceAccount { namespace, name } => Resource {
            namespace,
            ..resource(group, "serviceaccounts", name)
        },
        UserKind::Node { .. } | UserKind::Other => resource(group, "users", user),
    }
}

fn resource<'a>(group: &'a str, resource: &'a str, name: &'a str) -> Resource<'a> {
    Resource {
        group,
        resource,
        name: name.into(),
        ..Resource::default()
    }
}

fn attributes<'a>(verb: &'a str, target: Resource<'a>) -> Attributes<'a> {
    Attributes {
        verb: verb.into(),
        target: RequestTarget::Resource(target),
    }
}
