//! Watch streams: what is there, then what changes, each event once and in order.

use crate::api::{Api, Call};
use crate::kind::Kind;
use crate::media::Encoding;
use crate::metrics::{Events, Label, Running};
use crate::options::ListOptions;
use crate::read::{self, Selection};
use crate::reply::{Body, Content, Reply};
use crate::request::{ObjectPath, Query};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use scantling_store::{Change, Event, StoreError, Watch};
use scantling_value::{Map, Value};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many chunks a client may be behind before it is let go.
const BEHIND: usize = 100;

/// How often a quiet watch is told how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long before its end a watch gets a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How long a watch lasts whose client does not say: 30 to 60 minutes, so that clients come back spread out.
fn default_timeout(seed: u64) -> Duration {
    Duration::from_secs(1800 + seed % 1800)
}

/// Everything that a stream needs, owned: it outlives the request's handler.
struct Stream {
    api: Arc<Api>,
    kind: Arc<Kind>,
    version: usize,
    path: ObjectPath,
    query: Query,
    accept: Option<String>,
    selection: Selection,
    out: mpsc::Sender<Bytes>,
    first: bool,
    label: Label,
    events: Events,
    /// Counts the stream as open.
    _open: Running,
}

/// Answers a watch.
pub(crate) async fn watch(call: &Call<'_>, options: &ListOptions) -> ApiResult<Reply> {
    let selection = Selection::parse(call, options)?;
    let shape = call.shape()?;
    if shape.wanted.encoding == Encoding::Protobuf {
        return Err(crate::media::not_acceptable());
    }
    let version = read::watch_version(&options.resource_version)?;
    let (out, mut chunks) = mpsc::channel::<Bytes>(BEHIND);
    let stream = Stream {
        api: Arc::clone(call.api),
        kind: Arc::clone(call.kind),
        version: call
            .kind
            .versions
            .iter()
            .position(|v| v.name == call.version.name)
            .unwrap_or(0),
        path: call.path.clone(),
        query: call.query.clone(),
        accept: call.accept.map(str::to_owned),
        selection,
        out,
        first: true,
        label: call.label.clone(),
        events: call.api.metrics.events(call.kind, &call.version.name),
        _open: call.api.metrics.long_running(call.label),
    };
    let timeout = match options.timeout_seconds {
        Some(s) if s > 0 => Duration::from_secs(s.cast_unsigned()),
        _ => default_timeout(uuid::Uuid::new_v4().as_u64_pair().0),
    };
    tokio::spawn(stream.run(options.clone(), version, Instant::now() + timeout));
    let frames = futures_util::stream::poll_fn(move |cx| {
        chunks
            .poll_recv(cx)
            .map(|c| c.map(|b| Ok::<_, Infallible>(Frame::data(b))))
    });
    let body: Body = StreamBody::new(frames).boxed_unsync();
    let mut reply = Reply::bytes(200, Encoding::Json.content_type(), Bytes::new());
    reply.body = Content::Stream(body);
    Ok(reply)
}

impl Stream {
    async fn run(mut self, options: ListOptions, version: u64, deadline: Instant) {
        let mut stop = self.api.stop.clone();
        let client = self.out.clone();
        let work = self.events(&options, version, deadline);
        tokio::select! {
            () = client.closed() => {}
            _ = work => {}
            () = tokio::time::sleep_until(deadline) => {}
            _ = stop.wait_for(|s| *s) => {}
        }
    }

    /// Sends events until the client is gone, too slow, or the store ends the watch.
    async fn events(&mut self, options: &ListOptions, version: u64, deadline: Instant) {
        let result = self.events_or_error(options, version, deadline).await;
        if let Err(Some(e)) = result {
            let _ = self.send("ERROR", &e.to_status());
        }
    }

    async fn events_or_error(
        &mut self,
        options: &ListOptions,
        version: u64,
        deadline: Instant,
    ) -> Result<(), Option<ApiError>> {
        let api = Arc::clone(&self.api);
        let prefix = self.with(|c: &Call<'_>| c.prefix()).map_err(Some)?;
        let mut after = version;
        if options.send_initial_events == Some(true) {
            after = self.initial(options, version).await?;
        }
        let mut watch = match api.store.watch(&prefix, after).await {
            Ok(w) => w,
            Err(StoreError::FutureRevision { .. }) => {
                std::future::pending::<()>().await;
                return Ok(());
            }
            Err(e) => return Err(Some(too_old(&e))),
        };
        let mut next_bookmark = bookmark_time(deadline);
        loop {
            let event = tokio::select! {
                biased;
                e = watch.next() => e,
                () = tokio::time::sleep_until(next_bookmark), if options.bookmarks => {
                    self.bookmark(&mut watch)?;
                    next_bookmark = bookmark_time(deadline);
                    continue;
                }
            };
            let event = event.map_err(|e| Some(too_old(&e)))?;
            self.change(&event)?;
        }
    }

    /// What is there already; returns the revision up to which that is all.
    async fn initial(&mut self, options: &ListOptions, version: u64) -> Result<u64, Option<ApiError>> {
        let mut list = options.clone();
        list.limit = 0;
        list.continue_token.clear();
        list.version_match = None;
        list.resource_version = if version == 0 {
            String::new()
        } else {
            version.to_string()
        };
        let found = {
            let stream = &*self;
            let version = stream.kind.versions.get(stream.version).ok_or(None)?;
            let call = stream.call(version);
            read::find(&call, &list, &stream.selection).await.map_err(Some)?
        };
        let revision = found.meta.resource_version.parse().unwrap_or(0);
        for object in found.items {
            // What is there is sent at the client's pace: a slow reader of a long list is not a slow watcher yet.
            let line = self.line("ADDED", object);
            self.events.sent(line.len());
            self.out.send(line).await.map_err(|_| None)?;
        }
        if options.bookmarks {
            let annotations = Map::from_iter([("k8s.io/initial-events-end", Value::from("true"))]);
            self.send_bookmark(revision, Some(annotations))?;
        }
        Ok(revision)
    }

    fn with<T>(&self, f: impl Fn(&Call<'_>) -> ApiResult<T>) -> ApiResult<T> {
        let version = self
            .kind
            .versions
            .get(self.version)
            .ok_or_else(ApiError::no_resource)?;
        f(&self.call(version))
    }

    fn call<'a>(&'a self, version: &'a crate::kind::Version) -> Call<'a> {
        Call {
            api: &self.api,
            kind: &self.kind,
            version,
            path: &self.path,
            query: &self.query,
            accept: self.accept.as_deref(),
            label: &self.label,
        }
    }

    /// One change, as far as it concerns what is selected: what leaves the selection is deleted for this client.
    fn change(&mut self, event: &Event) -> Result<(), Option<ApiError>> {
        let (kind, object) = {
            let Some(version) = self.kind.versions.get(self.version) else {
                return Err(None);
            };
            let call = self.call(version);
            let load = |e: &Arc<scantling_store::Entry>| read::shown(&call, e).map_err(Some);
            let selected = |o: &Value| self.selection.matches(&call, o);
            match &event.change {
                Change::Create { new } => {
                    let object = load(new)?;
                    if !selected(&object) {
                        return Ok(());
                    }
                    ("ADDED", object)
                }
                Change::Update { old, new } => {
                    let object = load(new)?;
                    let was = self.selection.is_everything() || selected(&load(old)?);
                    match (was, selected(&object)) {
                        (true, true) => ("MODIFIED", object),
                        (false, true) => ("ADDED", object),
                        (true, false) => ("DELETED", at_revision(load(old)?, event.revision)),
                        (false, false) => return Ok(()),
                    }
                }
                Change::Delete { old } => {
                    let object = load(old)?;
                    if !selected(&object) {
                        return Ok(());
                    }
                    ("DELETED", at_revision(object, event.revision))
                }
            }
        };
        let line = self.line(kind, object);
        self.push(line)
    }

    fn bookmark(&mut self, watch: &mut Watch) -> Result<(), Option<ApiError>> {
        let revision = watch.progress().map_err(|e| Some(too_old(&e)))?;
        self.send_bookmark(revision, None)
    }

    fn send_bookmark(&mut self, revision: u64, annotations: Option<Map>) -> Result<(), Option<ApiError>> {
        let api_version = self.with(|c| Ok(c.api_version())).map_err(Some)?;
        let mut metadata = Map::from_iter([("resourceVersion", Value::from(revision.to_string()))]);
        if let Some(a) = annotations {
            metadata.insert("annotations", a.into());
        }
        let entries = [
            ("kind", Value::from(self.kind.kind.as_str())),
            ("apiVersion", api_version.into()),
            ("metadata", metadata.into()),
        ];
        let object = Value::Object(entries.into_iter().collect());
        let line = self.line("BOOKMARK", object);
        self.push(line)
    }

    /// An event in the form that the client asked for.
    fn line(&mut self, kind: &str, object: Value) -> Bytes {
        let shown = self.with(|call| Ok(call.shape()?.event(object.clone(), self.first)));
        self.first = false;
        line(kind, &shown.unwrap_or(object))
    }

    fn send(&self, kind: &str, object: &Value) -> Result<(), Option<ApiError>> {
        self.push(line(kind, object))
    }

    /// Hands a chunk to the connection; a client that does not keep up is let go.
    fn push(&self, line: Bytes) -> Result<(), Option<ApiError>> {
        self.events.sent(line.len());
        self.out.try_send(line).map_err(|_| None)
    }
}

fn line(kind: &str, object: &Value) -> Bytes {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    object.write_json(&mut out);
    out.extend_from_slice(b"}\n");
    out.into()
}

/// The last state of an object under the revision of its deletion.
fn at_revision(mut object: Value, revision: u64) -> Value {
    if let Some(m) = object
        .as_object_mut()
        .and_then(|o| o.get_mut("metadata"))
        .and_then(Value::as_object_mut)
    {
        m.insert("resourceVersion", revision.to_string().into());
    }
    object
}

fn too_old(e: &StoreError) -> ApiError {
    match e {
        StoreError::Compacted { requested, oldest } => {
            ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
        }
        other => read::store_error(other.clone()),
    }
}

fn bookmark_time(deadline: Instant) -> Instant {
    let now = Instant::now();
    let last = deadline.checked_sub(LAST_BOOKMARK).filter(|l| *l > now);
    let regular = now + BOOKMARK_EVERY;
    last.map_or(regular, |l| l.min(regular))
}
