//! From a request to its answer: who asks, what for, and which handler knows.

mod access;
mod resource_request;
mod routes;

pub(crate) use resource_request::ResourceRequest;
use routes::{check_route, check_verb, is_long_running, routed};

use crate::auth::authentication;
use crate::auth::authentication::{Credential, Tokens, User};
use crate::auth::authorization::Attributes;
use crate::auth::service_accounts::TokenIssuer;
use crate::codec::media::{self, Accept, Encoding, Encodings};
use crate::codec::pretty;
use crate::config::AuthorizationMode;
use crate::controllers::barrier::CrdBarrier;
use crate::discovery::{self, Root};
use crate::health;
use crate::http::compute::{self, Class};
use crate::http::connection::Connection;
use crate::http::memory::{Budget, Charge, Memory};
use crate::http::reply::{Content, Reply};
use crate::http::send::{Held, ResponseBody};
use crate::http::transport;
use crate::http::websocket::Upgrade;
use crate::kinds::definitions::GROUP;
use crate::kinds::kind::{Document, Kinds};
use crate::metrics::{Answered, Label, Metrics};
use crate::openapi;
use crate::request::{GroupVersion, ObjectPath, Probe, Query, Target};
use crate::rest::listing::SharedListings;
use crate::rest::options::ListOptions;
use crate::rest::pods;
use crate::rest::read;
use crate::rest::watch;
use crate::rest::write;
use crate::status::{ApiError, ApiResult};
use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri, Version};
use scantling_store::{KeySpace, Store};
use scantling_value::{DeadlineExceeded, Map, Value};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch as signal};
use tokio_util::task::TaskTracker;

/// The most bytes of a request's body.
pub(crate) const MAX_BODY: usize = 3 * 1024 * 1024;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: KeySpace,
    pub(crate) kinds: ArcSwap<Kinds>,
    pub(crate) documents: openapi::Documents,
    pub(crate) lines: crate::rest::lines::Lines,
    pub(crate) tokens: Tokens,
    /// Signs the tokens of service accounts.
    pub(crate) issuer: TokenIssuer,
    /// The user of requests without a credential, if there are such requests.
    pub(crate) anonymous: Option<Arc<User>>,
    pub(crate) authorization: AuthorizationMode,
    /// What requests and answers may be written in.
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
    /// The connections that have changed their protocol.
    pub(crate) upgraded: TaskTracker,
    /// Definitions are compiled against these, and share their parts through these.
    pub(crate) compiler: crate::kinds::definitions::Compiler,
    pub(crate) crds: CrdBarrier,
    /// Held while a Service takes addresses and ports.
    pub(crate) services: tokio::sync::Mutex<()>,
    /// The definitions that requests of this server have written, and the controller has not yet seen.
    pub(crate) pending: crate::kinds::definitions::PendingDefinitions,
}

/// The answer to a request that fails. What clients are not told is logged: loudly where the fault is the server's.
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

/// What of a request outlives its body.
#[derive(Debug)]
pub(crate) struct RequestMeta {
    pub(crate) method: Method,
    pub(crate) query: Query,
    pub(crate) accept: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) if_none_match: Option<String>,
    pub(crate) user_agent: String,
    pub(crate) user: Option<Arc<User>>,
    /// The path and the query, as they came.
    pub(crate) uri: Uri,
    /// What the server speaks.
    pub(crate) encodings: Encodings,
}

impl RequestMeta {
    /// What the client takes.
    pub(crate) fn accept(&self) -> Accept<'_> {
        Accept {
            text: self.accept.as_deref(),
            encodings: self.encodings,
        }
    }

    /// What the body says it is written in.
    pub(crate) fn body_encoding(&self) -> ApiResult<Encoding> {
        media::body_encoding(self.content_type.as_deref(), self.encodings)
    }
}

/// What becomes of a request while as many run as may.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WhenFull {
    Serve,
    Refuse,
}

impl Api {
    /// Answers one request. Nothing that happens here ends the connection of another.
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
            return refusal.map(|body| ResponseBody::new(body, Held::default(), active));
        }
        let mut upgrade = Upgrade::asked(&mut parts);
        let text = |name: HeaderName| header_text(&parts.headers, name);
        let accept = text(header::ACCEPT);
        let gzip = text(header::ACCEPT_ENCODING).is_some_and(|e| e.split(',').any(|e| e.trim() == "gzip"));
        let target = Target::parse(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let long = is_long_running(&parts.method, &query, &target);
        let content_type = text(header::CONTENT_TYPE);
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
        let indents = pretty::is_wanted(&head) && !target.is_document();
        let (mut reply, held) = match &access.verdict {
            Ok(()) => {
                // As on a real server, those who may do everything get through even when it is crowded.
                let when_full = match (&target, &access.user) {
                    (Target::Health { .. }, _) => WhenFull::Serve,
                    (_, Some(user)) if user.is_master() => WhenFull::Serve,
                    _ => WhenFull::Refuse,
                };
                let (reply, place) = self.guarded(&head, target, body, &label, when_full).await;
                self.held(&head, reply, place, gzip)
            }
            Err(e) => (
                access::refusal(e, Reply::error(e, head.accept())),
                Held::default(),
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
        let upgrade = upgrade.filter(|_| matches!(reply.body, Content::Events(_)));
        if let Some(v) = &self.strict_transport_security {
            reply.headers.insert(header::STRICT_TRANSPORT_SECURITY, v.clone());
        }
        self.metrics.request(
            &label,
            &Answered {
                // As on a real server, what is said on a connection that was handed over counts under no code.
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
            (Some(upgrade), Content::Events(events)) => upgrade.answer(events, &self.upgraded),
            (_, body) => {
                let reply = Reply { body, ..reply };
                compute::in_place(reply.size().unwrap_or(0), || reply.into_response(gzip))
            }
        };
        response.map(|body| ResponseBody::new(body, held, active))
    }

    /// Charges a reply for the memory it takes until it is sent, or refuses the request.
    fn held(
        &self,
        head: &RequestMeta,
        reply: Reply,
        place: Option<OwnedSemaphorePermit>,
        gzip: bool,
    ) -> (Reply, Held) {
        match reply.charge(&self.memory.responses, gzip) {
            None => (refusal(&too_many_requests(), head.accept()), Held::default()),
            memory => {
                // Watches do not count among the requests in flight.
                let place = place.filter(|_| !matches!(reply.body, Content::Events(_)));
                (reply, Held { place, memory })
            }
        }
    }

    /// Whether an answer may change with a definition that was just made. Kinds that are served already do not.
    fn depends_on_definitions(&self, method: &Method, target: &Target) -> bool {
        match target {
            Target::Health { .. } | Target::Metrics | Target::Version => false,
            Target::Object(path) if path.gv.group == GROUP => method != Method::POST,
            Target::Object(path) => self.kinds.load().get(&path.gv.group, &path.resource).is_none(),
            _ => true,
        }
    }

    /// With limits on how many requests run at once and how long one takes; a panic is that request's alone.
    async fn guarded(
        self: &Arc<Self>,
        head: &RequestMeta,
        target: Target,
        body: Incoming,
        label: &Label,
        when_full: WhenFull,
    ) -> (Reply, Option<OwnedSemaphorePermit>) {
        let refuse = |e: &ApiError| refusal(e, head.accept());
        let place = Arc::clone(&self.in_flight).try_acquire_owned().ok();
        if place.is_none() && when_full == WhenFull::Refuse {
            return (refuse(&too_many_requests()), None);
        }
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
        let answer = pin!(self.answer(head, target, body, label));
        let work = self.compute.run(class, end, answer);
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(work));
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
        (reply, place)
    }

    async fn answer(
        self: &Arc<Self>,
        head: &RequestMeta,
        target: Target,
        body: Incoming,
        label: &Label,
    ) -> ApiResult<Reply> {
        let accept = head.accept();
        if let Target::Object(path) = target {
            return self.object(head, &path, body, label).await;
        }
        if let Some(offered) = routed(&self.kinds.load(), &target, accept.encodings) {
            if head.method != Method::GET {
                return Err(ApiError::no_such_method());
            }
            media::check(accept.text, offered, media::Route::One)?;
        }
        // Documents of many kinds, or of large ones, take their time; so does a list of all that there is.
        let is_written = match &target {
            Target::OpenApiV2 | Target::OpenApiV3(_) => false,
            Target::OpenApiV3Index => self.kinds.load().cache.index.get().is_some(),
            Target::CoreVersions => self.kinds.load().cache.discovery(Root::Core).get().is_some(),
            Target::Groups => self.kinds.load().cache.discovery(Root::Groups).get().is_some(),
            _ => true,
        };
        if !is_written {
            compute::offload(compute::LIGHT).await;
        }
        let kinds = self.kinds.load();
        let document = |v: Value, accept: Accept<'_>| -> ApiResult<Reply> {
            let wanted = media::wanted(accept, media::Supported::Document)?;
            Ok(Reply::object(200, &v, wanted.encoding))
        };
        match target {
            Target::Index => Ok(Reply::object(200, &index(&kinds), Encoding::Json).indented()),
            Target::Health { probe, check } => {
                Ok(health::answer(self, probe, check.as_deref(), &head.query).await)
            }
            Target::Metrics => Ok(Reply::bytes(
                200,
                "text/plain; version=0.0.4; charset=utf-8",
                Box::pin(self.metrics.render(self)).await,
            )),
            Target::Version => Ok(Reply::object(200, &version(), Encoding::Json).indented()),
            Target::OpenApiV2 => self.documents.v2(&kinds, head),
            Target::OpenApiV3Index => self.documents.index(&kinds, head),
            Target::OpenApiV3(name) => self.documents.v3(&kinds, &name, head),
            Target::CoreVersions => self.aggregated(&kinds, head, Root::Core, || {
                discovery::core_versions(&self.address)
            }),
            Target::Groups => self.aggregated(&kinds, head, Root::Groups, || discovery::groups(&kinds)),
            Target::Group(name) => {
                let found = discovery::group(&kinds, &name);
                found.map_or_else(|| Ok(Reply::page_not_found()), |group| document(group, accept))
            }
            Target::Resources(GroupVersion { group, version }) => {
                match discovery::resources(&kinds, &group, &version) {
                    Some(found) if kinds.has_builtin_group(&group) => document(found, accept),
                    // What definitions make is described in what every server speaks.
                    Some(found) => {
                        let encodings = Encoding::USUAL;
                        document(found, Accept { encodings, ..accept })
                    }
                    None if kinds.has_builtin_group(&group) => Err(ApiError::no_resource()),
                    None => Ok(Reply::page_not_found()),
                }
            }
            Target::Incomplete => Ok(Reply::incomplete(&head.uri.to_string())),
            Target::Object(_) | Target::Unknown => Ok(Reply::page_not_found()),
        }
    }

    /// `/api` and `/apis`: plain or aggregated, with a tag by which clients keep what they have.
    fn aggregated(
        &self,
        kinds: &Kinds,
        head: &RequestMeta,
        root: Root,
        plain: impl Fn() -> Value,
    ) -> ApiResult<Reply> {
        let accept = head.accept();
        let Some(encoding) = discovery::aggregated_encoding(accept) else {
            let wanted = media::wanted(accept, media::Supported::Document)?;
            return Ok(Reply::object(200, &plain(), wanted.encoding));
        };
        let place = kinds.cache.discovery(root);
        let written = place.get_or_init(|| Document::new(discovery::aggregated(kinds, root).to_json()));
        let mut reply = match encoding {
            _ if head.if_none_match.as_ref() == Some(&written.tag) => {
                Reply::bytes(304, Encoding::Json.content_type(), Bytes::new())
            }
            Encoding::Yaml | Encoding::Cbor => {
                Reply::object(200, &discovery::aggregated(kinds, root), encoding)
            }
            Encoding::Json | Encoding::Protobuf => {
                Reply::bytes(200, Encoding::Json.content_type(), written.text.clone())
            }
        };
        reply.content_type = discovery::aggregated_type(encoding);
        Ok(reply
            .with(header::VARY, "Accept")
            .with(header::CACHE_CONTROL, "public")
            .with(header::ETAG, &written.tag))
    }

    /// A request about objects.
    async fn object(
        self: &Arc<Self>,
        head: &RequestMeta,
        path: &ObjectPath,
        body: Incoming,
        label: &Label,
    ) -> ApiResult<Reply> {
        let kinds = self.kinds.load_full();
        let built_in = kinds.has_builtin_group(&path.gv.group);
        let found = kinds.get(&path.gv.group, &path.resource).and_then(|kind| {
            let version = kind.served_version(&path.gv.version)?;
            // Namespaced objects are named within a namespace, others without one; lists may cross namespaces.
            let across = path.namespace.is_none()
                && (path.name.is_none() || (path.watch && !built_in))
                && (built_in || path.watch || matches!(head.method, Method::GET | Method::HEAD));
            let fits = kind.namespaced == path.namespace.is_some() || (kind.namespaced && across);
            fits.then_some((kind, version))
        });
        let Some((kind, version)) = found else {
            return match built_in {
                true => Err(ApiError::no_resource()),
                false => Ok(Reply::page_not_found()),
            };
        };
        if built_in {
            check_route(head, path, kind, version)?;
        }
        if !kind.servable {
            let why = format!("the schemas of {} cannot be served", kind.kind);
            return Err(ApiError::internal_error("error resolving resource").private(why));
        }
        let call = ResourceRequest {
            api: self,
            kind,
            version,
            path,
            query: &head.query,
            accept: head.accept(),
            label,
        };
        let mut warnings: Vec<String> = version.deprecation.iter().cloned().collect();
        if !warnings.is_empty() {
            self.metrics.deprecated(kind, &version.name);
        }
        let mut answer = self.dispatch(&call, head, body, &mut warnings).await;
        if !warnings.is_empty() {
            let mut reply = answer.unwrap_or_else(|e| refusal(&e, head.accept()));
            reply.warn(&warnings);
            answer = Ok(reply);
        }
        answer
    }

    async fn dispatch(
        self: &Arc<Self>,
        call: &ResourceRequest<'_>,
        head: &RequestMeta,
        body: Incoming,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Reply> {
        let name = call.path.name.as_deref();
        let sub = call.path.subresource.as_deref();
        let known = match sub {
            None => true,
            Some("status") => call.version.has_status(),
            Some("scale") => call.version.scale.is_some(),
            Some(name) => call.version.subresource(name).is_some(),
        };
        if !known {
            return Err(ApiError::not_found(
                call.group_resource(),
                name.unwrap_or_default(),
            ));
        }
        if call.path.watch && sub.is_some() {
            return Err(ApiError::method_not_allowed(call.group_resource(), "watch"));
        }
        check_verb(call, &head.method)?;
        // What cannot be answered is not looked at; only a patch is asked first what it is.
        if head.method != Method::PATCH {
            call.wanted()?;
        }
        if call.path.watch || head.method == Method::GET || head.method == Method::HEAD {
            return match (name, sub) {
                (Some(name), Some("scale")) => crate::rest::scale::get(call, name).await,
                (Some(name), Some("log")) if call.kind.built_in => pods::log(call, name).await,
                (Some(_), Some(sub @ ("exec" | "attach" | "portforward" | "proxy")))
                    if call.kind.built_in =>
                {
                    Err(pods::not_implemented(sub))
                }
                (Some(name), _) if !call.path.watch => read::get(call, name).await,
                _ => {
                    let options = ListOptions::parse(call.query, call.path.watch)?;
                    if options.watch {
                        Box::pin(watch::watch(call, &options)).await
                    } else {
                        Box::pin(read::list(call, &options)).await
                    }
                }
            };
        }
        // Every connection has room for the largest answer in the making, for as long as it lasts: what is large and
        // not asked for most often gets its room when it is asked for.
        Box::pin(self.change(call, head, body, warnings)).await
    }

    /// A request that changes objects.
    async fn change(
        self: &Arc<Self>,
        call: &ResourceRequest<'_>,
        head: &RequestMeta,
        body: Incoming,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Reply> {
        let (name, sub) = (call.path.name.as_deref(), call.path.subresource.as_deref());
        let (body, _memory) = read_body(body, &self.memory.requests).await?;
        call.offload(body.len()).await;
        let mut write = write::Write {
            call,
            head,
            body,
            warnings,
            text: None,
        };
        match (&head.method, name, sub) {
            (&Method::POST, name, Some("binding")) => write.bind(name).await,
            (&Method::POST, Some(name), Some("token")) => write.create_token(name).await,
            (&Method::POST, Some(name), Some("eviction")) => write.evict(name).await,
            (_, _, Some(sub @ ("exec" | "attach" | "portforward" | "proxy"))) if call.kind.built_in => {
                Err(pods::not_implemented(sub))
            }
            (&Method::POST, None, None) if is_binding(call) => write.bind(None).await,
            (&Method::POST, ..) => write.create().await,
            (method @ (&Method::PUT | &Method::PATCH), None, _) => {
                // What is no patch at all is told before what it is for.
                if method == Method::PATCH {
                    write.patch_type()?;
                }
                Err(ApiError::bad_request("name must be provided"))
            }
            (&Method::PUT, Some(name), Some("scale")) => crate::rest::scale::update(&mut write, name).await,
            (&Method::PUT, Some(name), _) => write.update(name).await,
            (&Method::PATCH, Some(name), _) => write.patch(name).await,
            (_, Some(name), _) => write.delete(name).await,
            (_, None, _) => write.delete_collection().await,
        }
    }
}

/// Whether a request is about `bindings`, whose objects are actions on Pods.
fn is_binding(call: &ResourceRequest<'_>) -> bool {
    call.kind.built_in && call.kind.group.is_empty() && call.kind.kind == "Binding"
}

/// The error for a request that exceeds a limit of all clients together.
pub(crate) fn too_many_requests() -> ApiError {
    ApiError::too_many_requests("Too many requests, please try again later.", 1)
}

/// A header; of several of one name the first counts.
fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The bytes of a body that are not charged. Nearly all bodies are smaller.
const UNCHARGED_BODY: usize = 64 * 1024;

/// Reads a body. The memory for a large one is charged as it arrives, for as long as the charge lives.
async fn read_body(mut body: Incoming, memory: &Budget) -> ApiResult<(Bytes, Charge)> {
    let too_large = || ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY}"));
    if body.size_hint().lower() > MAX_BODY as u64 {
        discard(body).await;
        return Err(too_large());
    }
    let mut charge = memory.empty();
    let (mut first, mut whole) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        // Trailers mean nothing here.
        let Ok(data) = frame.map_err(|e| unread_body(&e))?.into_data() else {
            continue;
        };
        let before = first.len() + whole.len();
        let after = before + data.len();
        if after > MAX_BODY {
            discard(body).await;
            return Err(too_large());
        }
        let more = after.saturating_sub(before.max(UNCHARGED_BODY));
        if more > 0 && !charge.grow(more) {
            return Err(too_many_requests());
        }
        if before == 0 {
            first = data;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
    }
    let read = if whole.is_empty() { first } else { whole.into() };
    Ok((read, charge))
}

/// Reads the rest of a body that is refused, as far as that is worth it. Many clients read the response only after they
/// have sent their body, and would meet a closed connection instead.
async fn discard(mut body: Incoming) {
    const MAX_DISCARDED: usize = 4 * MAX_BODY;
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, Bytes::len);
        if discarded > MAX_DISCARDED {
            return;
        }
    }
}

/// Why a body could not be read: its chunks are malformed. What is wrong with them is told in the words of Go's reader.
fn unread_body(e: &hyper::Error) -> ApiError {
    let e: &dyn std::error::Error = e;
    let chain = std::iter::successors(Some(e), |e| e.source());
    let cause = chain.last().map(ToString::to_string).unwrap_or_default();
    let why = match &*cause {
        "Invalid chunk size line: Invalid Size" | "Invalid chunk size line: missing size digit" => {
            "invalid byte in chunk length"
        }
        "invalid chunk size: overflow" => "http chunk length too large",
        _ => "malformed chunked encoding",
    };
    ApiError::bad_request(why).private(cause)
}

/// `/`: the paths that there are.
fn index(kinds: &Kinds) -> Value {
    let mut paths: Vec<String> = ["/api", "/api/v1", "/apis", "/apis/"]
        .iter()
        .map(|p| (*p).to_owned())
        .collect();
    for group in kinds.groups().filter(|g| !g.is_empty()) {
        paths.push(format!("/apis/{group}"));
        paths.extend(
            discovery::served_versions(kinds, group)
                .iter()
                .map(|v| format!("/apis/{group}/{v}")),
        );
    }
    paths.extend(health::paths(Probe::Health));
    paths.extend(health::paths(Probe::Live));
    paths.extend(["/metrics", "/openapi/v2", "/openapi/v3"].map(str::to_owned));
    paths.extend(health::paths(Probe::Ready));
    paths.push("/version".to_owned());
    Value::Object(Map::from_iter([("paths", Value::from(paths))]))
}

/// `/version`: the Kubernetes release whose behaviour this is, in Kubernetes' form.
fn version() -> Value {
    let entries = [
        ("major", "1"),
        ("minor", "37"),
        ("emulationMajor", "1"),
        ("emulationMinor", "37"),
        ("minCompatibilityMajor", "1"),
        ("minCompatibilityMinor", "36"),
        (
            "gitVersion",
            concat!("v1.37.0+scantling-", env!("CARGO_PKG_VERSION")),
        ),
        ("gitCommit", ""),
        ("gitTreeState", "clean"),
        ("buildDate", "1970-01-01T00:00:00Z"),
        ("goVersion", "none"),
        ("compiler", "rustc"),
        ("platform", "linux/amd64"),
    ];
    Value::Object(entries.into_iter().map(|(k, v)| (k, Value::from(v))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, F>(_: impl FnOnce(A, B, C) -> F) -> usize {
        size_of::<F>()
    }

    /// Each connection holds it, idle ones and watchers, too.
    #[test]
    fn an_answer_in_the_making_is_small() {
        assert!(size(Api::serve) <= 4096, "{} bytes", size(Api::serve));
    }
}
