//! Errors of requests: a `Status` with the texts of kube-apiserver.
//!
//! Errors of the engine become an [`ApiError`] only here. Text for the log stays in `private` and is never sent.

use scantling_value::{FieldError, Map, Value, aggregate};

/// The resource that an error is about, as `details` and messages name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupResource<'a> {
    /// The API group, empty for the core group.
    pub(crate) group: &'a str,
    /// The plural name, or for validation errors the kind.
    pub(crate) kind: &'a str,
}

impl GroupResource<'_> {
    /// `widgets.example.com`, or `widgets` in the core group.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }
}

/// The error of a request.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(Box<Repr>);

#[derive(Clone, Debug)]
struct Repr {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Map>,
    /// Additional headers.
    retry_after: Option<u32>,
    continue_token: Option<String>,
    private: Option<String>,
    /// True if a stored object cannot be decoded.
    unreadable: bool,
}

/// The result of every handler.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// Returns an error: an HTTP status from 400 up, a reason (may be empty), a message.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        // A mistake here must not make a failure look like a success.
        let code = code.max(400);
        ApiError(Box::new(Repr {
            code,
            reason,
            message: bounded(message.into()),
            details: None,
            retry_after: None,
            continue_token: None,
            private: None,
            unreadable: false,
        }))
    }

    fn with_resource(mut self, resource: GroupResource<'_>, name: &str) -> Self {
        let mut d = Map::new();
        for (key, value) in [("group", resource.group), ("kind", resource.kind), ("name", name)] {
            if !value.is_empty() {
                d.insert(key, limited(value).into());
            }
        }
        self.0.details = Some(d);
        self
    }

    /// 400
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 on a resource.
    pub(crate) fn forbidden(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = match (resource.kind, name) {
            // Paths outside of resources have no name to show.
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", resource.qualified()),
            _ => format!("{} {} is forbidden: {why}", resource.qualified(), quoted(name)),
        };
        Self::new(403, "Forbidden", message).with_resource(resource, name)
    }

    /// 404
    pub(crate) fn not_found(resource: GroupResource<'_>, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} {} not found", resource.qualified(), quoted(name)),
        )
        .with_resource(resource, name)
    }

    /// 404 for an unknown resource, as a `Status`.
    pub(crate) fn no_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .details(Map::new())
    }

    /// 405
    pub(crate) fn method_not_allowed(resource: GroupResource<'_>, action: &str) -> Self {
        let message = format!(
            "{action} is not supported on resources of kind {}",
            quoted(&resource.qualified())
        );
        Self::new(405, "MethodNotAllowed", message).with_resource(resource, "")
    }

    /// 405 for a method without a route, as a `Status`.
    pub(crate) fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).details(Map::new())
    }

    /// 406
    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// 409 for an object that exists already.
    pub(crate) fn already_exists(resource: GroupResource<'_>, name: &str) -> Self {
        let message = format!("{} {} already exists", resource.qualified(), quoted(name));
        Self::new(409, "AlreadyExists", message).with_resource(resource, name)
    }

    /// 409 for a conflicting write.
    pub(crate) fn conflict(resource: GroupResource<'_>, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            resource.qualified(),
            quoted(name)
        );
        Self::new(409, "Conflict", message).with_resource(resource, name)
    }

    /// 410
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415
    pub(crate) fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 422 with field errors. The message lists each error once; the causes list all.
    pub(crate) fn invalid(resource: GroupResource<'_>, name: &str, errors: &[FieldError]) -> Self {
        let what = aggregate(errors);
        let message = format!("{} {} is invalid: {what}", resource.qualified(), quoted(name));
        Self::new(422, "Invalid", message)
            .with_resource(resource, name)
            .causes(errors)
    }

    /// 422 for a patch that cannot be applied, without details.
    pub(crate) fn unprocessable() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .details(Map::new())
    }

    /// 429
    pub(crate) fn too_many_requests(message: impl Into<String>, seconds: u32) -> Self {
        let mut e = Self::new(429, "TooManyRequests", message);
        e.0.retry_after = Some(seconds);
        e
    }

    /// 500 with a message for the client.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        // The reason `Unknown`, which Go's errors without a status get, is an empty text.
        Self::new(500, "", message)
    }

    /// 500 with `Internal error occurred: …` and its cause.
    pub(crate) fn internal_error(why: impl Into<String>) -> Self {
        let why = why.into();
        let e = Self::new(500, "InternalError", format!("Internal error occurred: {why}"));
        let cause: Map = [("message", Value::from(why))].into_iter().collect();
        e.details(
            [("causes", Value::Array(vec![cause.into()]))]
                .into_iter()
                .collect(),
        )
    }

    /// 500 for a stored object that cannot be decoded.
    pub(crate) fn unreadable(why: String) -> Self {
        let mut e = Self::internal(why);
        e.0.unreadable = true;
        e
    }

    /// Returns whether a stored object cannot be decoded.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.0.unreadable
    }

    /// 500 for a list with objects that cannot be decoded: keys and reasons.
    pub(crate) fn unreadable_list(resource: GroupResource<'_>, found: &[(String, String)]) -> Self {
        let first = found.first().map_or("", |(_, why)| why.as_str());
        let more = match found.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        let message = format!(
            "failed to read one or more {} from the storage: {first}{more}",
            resource.qualified()
        );
        let mut e = Self::new(500, "StorageReadError", message).with_resource(resource, "list");
        e.0.unreadable = true;
        let cause = |e: Self, (key, why): &(String, String)| e.cause("UnexpectedServerResponse", why, key);
        found.iter().fold(e, cause)
    }

    /// 504 for a future resource version.
    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let cause: Map = [
            ("message", Value::from("Too large resource version")),
            ("reason", Value::from("ResourceVersionTooLarge")),
        ]
        .into_iter()
        .collect();
        let details = Map::from_iter([("causes", Value::Array(vec![cause.into()]))]);
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).details(details)
    }

    /// Adds the causes of field errors.
    fn causes(mut self, errors: &[FieldError]) -> Self {
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| {
                let entries = [
                    ("reason", e.reason().into()),
                    ("message", e.message().into()),
                    ("field", e.field().into()),
                ];
                Value::Object(
                    entries
                        .into_iter()
                        .filter(|(_, v): &(_, Value)| v.as_str() != Some(""))
                        .collect(),
                )
            })
            .collect();
        self.0
            .details
            .get_or_insert_default()
            .insert("causes", Value::Array(causes));
        self
    }

    /// Adds a cause.
    pub(crate) fn cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        let cause = [("reason", reason), ("message", message), ("field", field)];
        // Go omits empty fields of causes.
        let cause = cause.into_iter().filter(|(_, v)| !v.is_empty());
        let cause: Map = cause.map(|(k, v)| (k, Value::from(v))).collect();
        let details = self.0.details.get_or_insert_default();
        let causes = details.get_or_insert_with("causes", || Value::Array(Vec::new()));
        if let Some(causes) = causes.as_array_mut()
            && causes.len() < MAX_CAUSES
        {
            causes.push(cause.into());
        }
        self
    }

    /// Sets all of `details`.
    pub(crate) fn details(mut self, details: Map) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Sets `details.retryAfterSeconds` and the `Retry-After` header.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.0
            .details
            .get_or_insert_default()
            .insert("retryAfterSeconds", Value::Int(seconds.into()));
        self.0.retry_after = Some(seconds);
        self
    }

    /// Sets `metadata.continue`, with which a list can continue nevertheless.
    pub(crate) fn continuing(mut self, token: String) -> Self {
        self.0.continue_token = Some(token);
        self
    }

    /// Replaces code and reason.
    pub(crate) fn with_code(mut self, code: u16, reason: &'static str) -> Self {
        self.0.code = code.max(400);
        self.0.reason = reason;
        self
    }

    /// Replaces the message.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = bounded(message);
        self
    }

    /// Adds text for the log that the client does not see.
    pub(crate) fn private(mut self, why: impl Into<String>) -> Self {
        self.0.private = Some(why.into());
        self
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> u16 {
        self.0.code
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// The seconds of `Retry-After`.
    pub(crate) fn retry_after_seconds(&self) -> Option<u32> {
        self.0.retry_after
    }

    /// The text for the log.
    pub(crate) fn private_text(&self) -> Option<&str> {
        self.0.private.as_deref()
    }

    /// The `Status` object.
    pub(crate) fn to_status(&self) -> Value {
        let r = &self.0;
        let token = r.continue_token.as_deref();
        let metadata = Map::from_iter(token.map(|token| ("continue", Value::from(token))));
        let mut s: Map = [
            ("kind", Value::from("Status")),
            ("apiVersion", "v1".into()),
            ("metadata", metadata.into()),
            ("status", "Failure".into()),
            ("code", Value::Int(r.code.into())),
        ]
        .into_iter()
        .collect();
        if !r.message.is_empty() {
            s.insert("message", r.message.as_str().into());
        }
        if !r.reason.is_empty() {
            s.insert("reason", r.reason.into());
        }
        if let Some(d) = &r.details {
            s.insert("details", d.clone().into());
        }
        s.into()
    }
}

/// The `Status` of a completed deletion.
pub(crate) fn success(resource: GroupResource<'_>, name: &str, uid: &str) -> Value {
    let details: Map = [
        ("group", resource.group),
        ("kind", resource.kind),
        ("name", name),
        ("uid", uid),
    ]
    .into_iter()
    .filter(|(_, v)| !v.is_empty())
    .map(|(k, v)| (k, Value::from(v)))
    .collect();
    let entries = [
        ("kind", Value::from("Status")),
        ("apiVersion", "v1".into()),
        ("metadata", Map::new().into()),
        ("status", "Success".into()),
        ("details", details.into()),
    ];
    Value::Object(entries.into_iter().collect())
}

/// The maximum number of causes other than field errors, which have their own limit. The message has their
/// number.
const MAX_CAUSES: usize = 1000;

/// The maximum length of a message in bytes: that of field errors, and some more for the text around them.
const MAX_MESSAGE: usize = 2 << 20;

/// Truncates a message: some errors show a whole object or request.
fn bounded(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE));
        message.push_str("... (cut at 2097152 bytes)");
        message.shrink_to_fit();
    }
    message
}

fn quoted(s: &str) -> String {
    scantling_value::go::quote(limited(s))
}

/// Truncates a name to the length of the longest valid name. A client may send megabytes.
fn limited(name: &str) -> &str {
    const MAX_NAME: usize = 64 << 10;
    name.get(..name.floor_char_boundary(MAX_NAME)).unwrap_or(name)
}
