//! From an HTTP request to its response: authentication and authorization (`access`), limits, documents (`documents`),
//! and routing to the handlers of objects (`dispatch`, `routes`).

mod access;
mod body;
mod dispatch;
mod documents;
mod health;
mod request_meta;
mod resource_request;
mod routes;

pub(crate) use request_meta::RequestMeta;
use request_meta::header_text;
pub(crate) use resource_request::{ResourceRequest, check_segment};
use routes::is_long_running;

use crate::auth::authentication;
use crate::auth::authentication::{Credential, KnownTokens, User};
use crate::auth::authorization::Attributes;
use crate::auth::service_accounts::TokenIssuer;
use crate::codec::media::{Accept, Encodings};
use crate::codec::pretty;
use crate::config::AuthorizationMode;
use crate::controllers::barrier::CrdBarrier;
use crate::http::compute::{self, Class, FlowKey};
use crate::http::connection::Connection;
use crate::http::memory::Memory;
use crate::http::reply::{Content, Reply};
use crate::http::send::{HeldUntilSent, ResponseBody};
use crate::http::transport;
use crate::http::websocket::{self, Upgrade};
use crate::kinds::definitions::GROUP;
use crate::kinds::kind::Kinds;
use crate::metrics::{Answered, Label, Metrics};
use crate::openapi;
use crate::request::{Query, Target};
use crate::rest::listing::SharedListings;
use crate::rest::watch;
use crate::status::ApiError;
use arc_swap::ArcSwap;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Version};
use scantling_store::{KeySpace, Store};
use scantling_value::{DeadlineExceeded, Map};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch as signal};

/// The maximum length of a request body in bytes.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: KeySpace,
    pub(crate) kinds: ArcSwap<Kinds>,
    pub(crate) documents: openapi::Documents,
    pub(crate) event_encodings: crate::rest::event_encoding_cache::EventEncodingCache,
    pub(crate) tokens: KnownTokens,
    /// Signs the tokens of service accounts.
    pub(crate) issuer: TokenIssuer,
    /// The user of requests without a credential, if they are allowed.
    pub(crate) anonymous: Option<Arc<User>>,
    pub(crate) authorization: AuthorizationMode,
    /// The encodings of requests and responses.
    pub(crate) encodings: Encodings,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) compute: compute::Pool,
    pub(crate) memory: Memory,
    /// The lists that are being sent.
    pub(crate) lists: SharedListings,
    /// The objects of recent events.
    pub(crate) recent: watch::RecentObjects,
    pub(crate) request_timeout: Duration,
    pub(crate) min_request_timeout: Duration,
    pub(crate) strict_transport_security: Option<HeaderValue>,
    pub(crate) address: String,
    pub(crate) ready: AtomicBool,
    pub(crate) stop: signal::Receiver<bool>,
    /// The watches over WebSocket, whose connections have changed their protocol.
    pub(crate) web_sockets: websocket::Watches,
    /// Compiles CRDs, which share parts of their schemas.
    pub(crate) compiler: crate::kinds::custom::Compiler,
    pub(crate) crds: CrdBarrier,
    /// Objects that writes of other objects depend on.
    pub(crate) related_objects: crate::rest::related_objects_cache::RelatedObjectsCache,
    /// The admission plugins that are enabled, in their order.
    pub(crate) plugins: Vec<&'static dyn scantling_builtin::admission::Plugin>,
    /// Held while a write is counted against quotas.
    pub(crate) usage: crate::rest::admission::UsageLocks,
    /// Held while a Service takes addresses and ports.
    pub(crate) services: tokio::sync::Mutex<()>,
    /// The CRDs that this server has written and the controller has not seen yet.
    pub(crate) pending: crate::kinds::definitions::PendingDefinitions,
}

/// The response to a failed request. The private text is logged, as an error if the fault is the server's.
fn refusal(e: &ApiError, accept: Accept<'_>) -> Reply {
    match (e.private_text(), e.code()) {
        (None, _) => {}
        (Some(why), code @ 500..) => tracing::error!(why, code, "request failed"),
        (Some(why), code) => tracing::debug!(why, code, "request refused"),
    }
    Reply::error(e, accept)
}

/// Seconds since the epoch.
pub(crate) fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs().cast_signed())
}

/// The treatment of a request while the limit of running requests is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WhenFull {
    Serve,
    Refuse,
}

impl Api {
    /// Serves one request.
    pub(crate) async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
        connection: Arc<Connection>,
    ) -> Response<ResponseBody> {
        let active = connection.begin_request(request.version() == Version::HTTP_2);
        let started = Instant::now();
        let id = uuid::Uuid::new_v4().to_string();
        let (mut parts, body) = request.into_parts();
        if let Some(refusal) = transport::refusal(&parts) {
            return refusal.map(|body| ResponseBody::new(body, HeldUntilSent::default(), active));
        }
        let mut upgrade = Upgrade::asked(&mut parts);
        let text = |name: HeaderName| header_text(&parts.headers, name);
        let accept = text(header::ACCEPT);
        let gzip = text(header::ACCEPT_ENCODING).is_some_and(|e| e.split(',').any(|e| e.trim() == "gzip"));
        let target = Target::parse(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let long = is_long_running(&parts.method, &query, &target);
        let content_type = text(header::CONTENT_TYPE);
        // Before the label is chosen: metrics must know a kind that the previous request created.
        if self.crds.is_behind() && self.depends_on_definitions(&parts.method, &target) {
            self.crds.wait_all().await;
        }
        let label = Label::new(
            &parts.method,
            &target,
            content_type.as_deref(),
            &self.kinds.load(),
            long,
        );

        let authorization = header_text(&parts.headers, header::AUTHORIZATION);
        let credential = match connection.certificate_user() {
            Some(user) => Credential::Accepted(user),
            None => {
                let protocols = || {
                    upgrade
                        .as_mut()
                        .map_or(Credential::Absent, |u| u.credential(&self.tokens))
                };
                let known = self.tokens.authorization(authorization.as_deref()).or(protocols);
                match (known, authorization.as_deref().and_then(authentication::bearer)) {
                    // Static tokens come first: a token of a service account costs a signature and reads of the store.
                    (Credential::Rejected, Some(token)) => {
                        match Box::pin(self.service_account_user(token)).await {
                            Some(user) => Credential::Accepted(user),
                            None => Credential::Rejected,
                        }
                    }
                    (known, _) => known,
                }
            }
        };
        if matches!(credential, Credential::Accepted(_)) {
            connection.mark_authenticated();
        }
        let attributes = Attributes::of_request(&parts.method, parts.uri.path(), &target, &query);
        let access = self.access(credential, &parts.headers, &attributes);
        let head = RequestMeta {
            method: parts.method.clone(),
            query,
            accept,
            content_type,
            if_none_match: text(header::IF_NONE_MATCH),
            user_agent: text(header::USER_AGENT).unwrap_or_default(),
            user: access.user.clone(),
            uri: parts.uri.clone(),
            encodings: self.encodings,
        };
        // Decided now, because serving the request consumes the target.
        let indents = pretty::is_wanted(&head) && !target.is_document();
        let (mut reply, held) = match &access.verdict {
            Ok(()) => {
                // As on kube-apiserver, limits do not apply to masters.
                let when_full = match (&target, &access.user) {
                    // A busy server is healthy: a kubelet must not restart it for its load.
                    (Target::Health { .. }, _) => WhenFull::Serve,
                    (_, Some(user)) if user.is_master() => WhenFull::Serve,
                    _ => WhenFull::Refuse,
                };
                let flow = FlowKey {
                    user: access.user.clone(),
                    connection: connection.id(),
                };
                let work = self.guarded(&head, target, body, &label, when_full, &flow);
                let (reply, permit) = work.await;
                self.charge_until_sent(&head, reply, permit, gzip)
            }
            Err(e) => (
                access::refusal(e, Reply::error(e, head.accept())),
                HeldUntilSent::default(),
            ),
        };
        if indents {
            reply = compute::in_place(reply.size().unwrap_or(0), || reply.indented());
        }
        if authorization.is_some_and(|a| authentication::is_padded(&a)) {
            reply.warn(&[authentication::PADDED.to_owned()]);
        }
        if let Ok(v) = HeaderValue::from_str(&id) {
            reply.headers.insert(HeaderName::from_static("audit-id"), v);
        }
        // Only watches are upgraded. Any other response, also an error, is sent as plain HTTP.
        let upgrade = upgrade.filter(|_| matches!(reply.body, Content::Events(_)));
        if let Some(v) = &self.strict_transport_security {
            reply.headers.insert(header::STRICT_TRANSPORT_SECURITY, v.clone());
        }
        self.metrics.request(
            &label,
            &Answered {
                // As on kube-apiserver, upgraded connections count under code 0.
                code: if upgrade.is_some() { 0 } else { reply.status },
                took: started.elapsed(),
                size: reply.size(),
                dry_run: &head.query.all("dryRun"),
                field_validation: &head.query.all("fieldValidation"),
            },
        );
        let (user, impersonator) = access.names();
        tracing::debug!(
            id,
            user,
            impersonator,
            method = %parts.method,
            path = parts.uri.path(),
            status = reply.status,
            micros = started.elapsed().as_micros() as u64,
            "request"
        );
        let response = match (upgrade, reply.body) {
            (Some(upgrade), Content::Events(events)) => upgrade.answer(events, &self.web_sockets),
            (_, body) => {
                let reply = Reply { body, ..reply };
                compute::in_place(reply.size().unwrap_or(0), || reply.into_response(gzip))
            }
        };
        response.map(|body| ResponseBody::new(body, held, active))
    }

    /// Charges a reply for the memory it takes until it is sent, or refuses the request.
    fn charge_until_sent(
        &self,
        head: &RequestMeta,
        reply: Reply,
        permit: Option<OwnedSemaphorePermit>,
        gzip: bool,
    ) -> (Reply, HeldUntilSent) {
        match reply.charge(&self.memory.responses, gzip) {
            None => (
                refusal(&too_many_requests(), head.accept()),
                HeldUntilSent::default(),
            ),
            // The permit stays with the response until its body ends, so that slow readers count as requests in flight.
            memory => {
                // Watches do not count among the requests in flight.
                let permit = permit.filter(|_| !matches!(reply.body, Content::Events(_)));
                (reply, HeldUntilSent { permit, memory })
            }
        }
    }

    /// Returns whether the response may depend on a CRD that was just written. Those of served kinds do not.
    fn depends_on_definitions(&self, method: &Method, target: &Target) -> bool {
        match target {
            Target::Health { .. } | Target::Metrics | Target::Version => false,
            // A create of a CRD waits by itself, right before it is stored.
            Target::Object(path) if path.gv.group == GROUP => method != Method::POST,
            Target::Object(path) => self.kinds.load().get(&path.gv.group, &path.resource).is_none(),
            _ => true,
        }
    }

    /// Serves a request within the limits of concurrency and time. A panic fails only this request.
    async fn guarded(
        self: &Arc<Self>,
        head: &RequestMeta,
        target: Target,
        body: Incoming,
        label: &Label,
        when_full: WhenFull,
        flow: &FlowKey,
    ) -> (Reply, Option<OwnedSemaphorePermit>) {
        let refuse = |e: &ApiError| refusal(e, head.accept());
        let permit = Arc::clone(&self.in_flight).try_acquire_owned().ok();
        if permit.is_none() && when_full == WhenFull::Refuse {
            return (refuse(&too_many_requests()), None);
        }
        // For a watch this bounds only its start; `timeout` in its query is not its duration, and is not even parsed.
        let limit = if is_long_running(&head.method, &head.query, &target) {
            self.request_timeout
        } else {
            match head.query.timeout() {
                Ok(asked) => asked.map_or(self.request_timeout, |t| t.min(self.request_timeout)),
                Err(e) => return (refuse(&e), None),
            }
        };
        let _running = self.metrics.in_flight(head.method != Method::GET);
        let class = match head.method {
            Method::GET | Method::HEAD => Class::Read,
            _ => Class::Write,
        };
        let end = Instant::now().checked_add(limit);
        let answer = pin!(async {
            match target {
                Target::Object(path) => self.object(head, &path, body, label).await,
                target => self.document(head, target).await,
            }
        });
        let work = self.compute.run(class, flow, end, answer);
        // State shared with other requests survives a panic: its locks tolerate poisoning.
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(work));
        // Two limits: computations observe the deadline themselves, and the timer ends a request that waits.
        let reply = match tokio::time::timeout(limit, caught).await {
            Ok(Ok(Ok(Ok(reply)))) => reply,
            Ok(Ok(Ok(Err(e)))) => refuse(&e),
            Ok(Err(_)) => {
                tracing::error!("a request handler panicked");
                refuse(&ApiError::internal_error(
                    "this request caused a fault; see the server's log",
                ))
            }
            Ok(Ok(Err(DeadlineExceeded))) | Err(_) => {
                let message = "Timeout: request did not complete within the allotted timeout";
                refuse(&ApiError::new(504, "Timeout", message).details(Map::new()))
            }
        };
        (reply, permit)
    }
}

/// The error for a request that exceeds a limit of all clients together.
pub(crate) fn too_many_requests() -> ApiError {
    ApiError::too_many_requests("Too many requests, please try again later.", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, F>(_: impl FnOnce(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// Every connection holds one, even if it is idle or watches.
    #[test]
    fn response_future_is_small() {
        assert!(size(Api::serve) <= 4096, "{} bytes", size(Api::serve));
    }
}
