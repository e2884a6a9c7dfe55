//! Watch streams: existing objects, then changes, each event once and in order.

mod backlog;
mod recent_objects;

pub(crate) use recent_objects::RecentObjects;

use crate::api::{Api, ResourceRequest};
use crate::codec::media::{Accept, Encoding, Negotiated};
use crate::codec::text::{Listed, Text};
use crate::http::compute::{self, Class};
use crate::http::memory;
use crate::http::reply::{Body, Content, Reply};
use crate::kinds::kind::{Kind, Version};
use crate::metrics::{self, Label, Running};
use crate::request::{ObjectPath, Query};
use crate::rest::conversion::Converted;
use crate::rest::event_encoding_cache::{EventKey, WatchEventType};
use crate::rest::options::ListOptions;
use crate::rest::read::{self, Selection};
use crate::rest::render::{MAX_DECODED, too_large};
use crate::rest::view::{RowObject, ViewRenderer};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use recent_objects::ServedForm;
use scantling_store::{Entry, Event, StoreError, Watch};
use scantling_value::{Map, Value};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The bytes of initial events in one chunk.
const INITIAL_CHUNK: usize = 32 * 1024;

/// The interval of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// The time between the last bookmark and the end of a watch.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The time for which a watch continues after its kind has ended, to deliver pending events.
const LAST_STRETCH: Duration = Duration::from_secs(1);

/// The time between calls to a failing webhook.
const RETRY: Duration = Duration::from_secs(1);

/// The longest duration of a watch: no client waits for its end, and adding it to the time does not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The duration of a watch without a timeout: random, up to twice the minimum, so that clients do not reconnect at
/// once.
fn default_timeout(least: Duration, seed: u64) -> Duration {
    let millis = u64::try_from(least.as_millis()).unwrap_or(u64::MAX);
    least.saturating_add(Duration::from_millis(
        seed.checked_rem(millis).unwrap_or_default(),
    ))
}

/// Returns whether an entry of an event cannot be decoded, so that a webhook cannot help.
fn is_damaged(event: &Event) -> bool {
    let states = [event.before(), event.after()];
    let mut states = states.into_iter().flatten();
    states.any(|entry| read::stored(entry).is_err())
}

/// The events of a watch on their way to the connection. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Events {
    /// The encoding of each event.
    pub(crate) encoding: Encoding,
    /// Chunks of complete events.
    pub(crate) chunks: backlog::Receiver,
}

impl Events {
    /// The body of the response.
    pub(crate) fn into_body(mut self) -> Body {
        let frames = futures_util::stream::poll_fn(move |cx| {
            self.chunks
                .poll_recv(cx)
                .map(|c| c.map(|b| Ok::<_, Infallible>(Frame::data(b))))
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// The state of a stream, which outlives the handler of its request.
struct Stream {
    api: Arc<Api>,
    kind: Arc<Kind>,
    version: usize,
    path: ObjectPath,
    query: Query,
    selection: Selection,
    wanted: Negotiated,
    row_object: RowObject,
    out: backlog::Sender,
    first: bool,
    label: Label,
    events: metrics::Events,
    /// Counts the stream as open.
    _open: Running,
}

/// An object to send.
enum Item {
    Text(Listed),
    Object(Value),
    /// An entry that is decoded when it is sent.
    Entry(Arc<Entry>),
}

/// Serves a watch.
pub(crate) async fn watch(call: &ResourceRequest<'_>, options: &ListOptions) -> ApiResult<Reply> {
    let selection = Selection::new(call, options)?;
    let version = read::watch_version(&options.resource_version)?;
    let ViewRenderer {
        wanted, row_object, ..
    } = call.view_renderer()?;
    let content_type = match (wanted.encoding, wanted.encoding.stream_type()) {
        (_, None) => return Err(crate::codec::media::no_stream(call.accept.encodings)),
        (Encoding::Json, _) => Encoding::Json.content_type(),
        (_, Some(ty)) => ty,
    };
    let (out, chunks) = backlog::channel(&call.api.memory.watches);
    let encoding = wanted.encoding;
    let stream = Stream {
        api: Arc::clone(call.api),
        kind: Arc::clone(call.kind),
        version: call
            .kind
            .versions
            .iter()
            // The version belongs to this kind, so it is found; the fallback only avoids an error path.
            .position(|v| v.name == call.version.name)
            .unwrap_or(0),
        path: call.path.clone(),
        query: call.query.clone(),
        selection,
        wanted,
        row_object,
        out,
        first: true,
        label: call.label.clone(),
        events: call.api.metrics.events(call.kind, &call.version.name),
        _open: call.api.metrics.long_running(call.label),
    };
    let timeout = match options.timeout_seconds {
        Some(s) if s > 0 => Duration::from_secs(s.cast_unsigned()).min(LONGEST),
        _ => default_timeout(call.api.min_request_timeout, uuid::Uuid::new_v4().as_u64_pair().0),
    };
    let (api, options) = (Arc::clone(call.api), options.clone());
    let end = Instant::now() + timeout;
    let client = compute::current_flow();
    // The handler returns now, but events arrive for hours; the task holds what it needs of the request.
    tokio::spawn(async move {
        let stream = pin!(stream.run(options, version, end));
        // The timeout of requests does not apply to streams.
        let _ = api.compute.run(Class::Read, &client, None, stream).await;
    });
    let mut reply = Reply::bytes(200, content_type, Bytes::new());
    reply.body = Content::Events(Events { encoding, chunks });
    Ok(reply)
}

impl Stream {
    async fn run(mut self, options: ListOptions, version: u64, deadline: Instant) {
        let mut stop = self.api.stop.clone();
        let client = self.out.client();
        let incarnation = self.kind.incarnation.clone();
        let ended = async {
            incarnation.ended().await;
            tokio::time::sleep(LAST_STRETCH).await;
        };
        let work = self.events(&options, version, deadline);
        tokio::select! {
            () = client.gone() => {}
            _ = work => {}
            () = ended => {}
            () = tokio::time::sleep_until(deadline) => {}
            _ = stop.wait_for(|s| *s) => {}
        }
    }

    /// Sends events until the client is gone, too slow, or the store ends the watch.
    async fn events(&mut self, options: &ListOptions, version: u64, deadline: Instant) {
        let result = self.events_or_error(options, version, deadline).await;
        if let Err(Some(e)) = result {
            let mut line = Vec::new();
            WatchEventType::Error.write_object(&mut line, &e.to_status(), self.wanted.encoding);
            let _ = self.push(line.into());
        }
    }

    async fn events_or_error(
        &mut self,
        options: &ListOptions,
        version: u64,
        deadline: Instant,
    ) -> Result<(), Option<ApiError>> {
        let api = Arc::clone(&self.api);
        let prefix = self.call()?.prefix().map_err(Some)?;
        let after = match options.send_initial_events {
            Some(true) => loop {
                match self.initial(options, version).await {
                    Err(e) if self.awaits_webhook(e.as_ref()) => tokio::time::sleep(RETRY).await,
                    found => break found?,
                }
            },
            // Without a version and initial events, the watch begins now.
            Some(false) if version == 0 => {
                let now = api.store.revision().await;
                now.map_err(|e| Some(read::store_error(e)))?
            }
            // Events before the current incarnation cannot be converted to it.
            _ if (1..self.kind.incarnation.since).contains(&version) => {
                return Err(Some(expired(version, self.kind.incarnation.since)));
            }
            _ => version,
        };
        compute::end_offload();
        let mut watch = match api.store.watch(&prefix, after).await {
            Ok(w) => w,
            Err(StoreError::FutureRevision { .. }) => {
                // As on kube-apiserver, the watch stays open without events until its timeout ends it.
                std::future::pending::<()>().await;
                return Ok(());
            }
            Err(e) => return Err(Some(too_old(&e))),
        };
        let mut next_bookmark = bookmark_time(deadline);
        loop {
            let event = tokio::select! {
                // Pending events precede a bookmark, which promises that everything before its revision was sent.
                biased;
                e = watch.next() => e,
                () = tokio::time::sleep_until(next_bookmark), if options.bookmarks => {
                    self.bookmark(&mut watch)?;
                    next_bookmark = bookmark_time(deadline);
                    continue;
                }
            };
            let event = event.map_err(|e| Some(too_old(&e)))?;
            loop {
                match self.change(&event).await {
                    Err(e) if self.awaits_webhook(e.as_ref()) && !is_damaged(&event) => {
                        tokio::time::sleep(RETRY).await;
                    }
                    sent => break sent?,
                }
            }
            compute::end_offload();
        }
    }

    /// Returns whether a webhook failed to convert an object. A watch waits until it succeeds, and skips no
    /// event.
    fn awaits_webhook(&self, e: Option<&ApiError>) -> bool {
        e.is_some_and(ApiError::is_unreadable) && self.kind.codec.webhook().is_some()
    }

    /// Sends the existing objects; returns their revision.
    async fn initial(&mut self, options: &ListOptions, version: u64) -> Result<u64, Option<ApiError>> {
        let mut list = options.clone();
        list.limit = 0;
        list.continue_token.clear();
        list.version_match = None;
        // Zero must not become a list at any version: the watch continues from the revision of the list.
        list.resource_version = if version == 0 {
            String::new()
        } else {
            version.to_string()
        };
        let is_plain = self.view_renderer()?.is_plain();
        let is_lazy = self.kind.codec.webhook().is_none();
        let mut held = 0;
        let take = |c: &ResourceRequest<'_>, s: &Selection, e: &Arc<Entry>, v: &Converted| {
            if is_lazy && !is_plain {
                return Ok(read::is_selected(c, s, e, v)?.then(|| Item::Entry(Arc::clone(e))));
            }
            let item = match is_plain {
                true => read::text_if_selected(c, s, e, v)?.map(Item::Text),
                false => read::object_if_selected(c, s, e, v)?.map(Item::Object),
            };
            held += match &item {
                Some(Item::Text(Listed::Text(_))) if is_lazy => return Ok(Some(Item::Entry(Arc::clone(e)))),
                Some(Item::Text(text)) => text.held(),
                Some(Item::Object(object)) => memory::size_of_value(object),
                Some(Item::Entry(_)) | None => 0,
            };
            match held > MAX_DECODED {
                true => Err(too_large()),
                false => Ok(item),
            }
        };
        let found = read::find(&self.call()?, &list, &self.selection, take)
            .await
            .map_err(Some)?;
        // The server formatted the number itself.
        let revision = found.meta.resource_version.parse().unwrap_or(0);
        let held = held + found.items.capacity() * size_of::<Item>();
        // Held until the last initial event is queued, because these items are the copy in memory.
        let _held = self
            .api
            .memory
            .watches
            .charge(held)
            .ok_or_else(|| Some(crate::api::too_many_requests()))?;
        // Initial events are sent at the client's pace: a slow reader of a long list is not a slow watcher yet.
        let mut chunk = Vec::new();
        for item in found.items {
            let before = chunk.len();
            self.write(WatchEventType::Added, item, &mut chunk)?;
            self.events.sent(chunk.len() - before);
            if chunk.len() >= INITIAL_CHUNK {
                self.out.send(std::mem::take(&mut chunk).into()).await;
            }
        }
        if !chunk.is_empty() {
            self.out.send(chunk.into()).await;
        }
        if options.bookmarks {
            let annotations = Map::from_iter([("k8s.io/initial-events-end", Value::from("true"))]);
            self.send_bookmark(revision, Some(annotations))?;
        }
        Ok(revision)
    }

    fn version(&self) -> Result<&Version, Option<ApiError>> {
        self.kind.versions.get(self.version).ok_or(None)
    }

    fn call(&self) -> Result<ResourceRequest<'_>, Option<ApiError>> {
        Ok(ResourceRequest {
            api: &self.api,
            kind: &self.kind,
            version: self.version()?,
            path: &self.path,
            query: &self.query,
            accept: Accept {
                text: None,
                encodings: self.api.encodings,
            },
            label: &self.label,
        })
    }

    fn view_renderer(&self) -> Result<ViewRenderer<'_>, Option<ApiError>> {
        Ok(ViewRenderer {
            wanted: self.wanted.clone(),
            row_object: self.row_object,
            kind: &self.kind,
            columns: &self.version()?.columns,
            now: crate::api::now(),
        })
    }

    /// Sends a change if it concerns the selection: for this client, an object that leaves the selection is deleted.
    async fn change(&mut self, event: &Event) -> Result<(), Option<ApiError>> {
        let call = self.call()?;
        let (before, after) = (event.before(), event.after());
        let states = before.iter().chain(&after);
        // A text that is sent as it is stored needs no decoding, whatever its size.
        let unwritten = states.filter(|entry| Text::noted(&call, entry).is_none());
        let unwritten: usize = unwritten.map(|entry| entry.value.len()).sum();
        call.offload(unwritten + self.selection.bytes_compared()).await;
        let converted = Converted::for_entries(&call, before.into_iter().chain(after)).await;
        let form = ServedForm {
            serial: self.kind.serial,
            version: self.version,
        };
        let shown = |e: &Arc<Entry>| self.api.recent.object(e, form, || converted.object(&call, e));
        let selected = |entry: Option<&Arc<Entry>>| {
            let selects = |e: &Arc<Entry>| match self.selection.selects_by_name(e) {
                Some(selected) => Ok(selected),
                None => Ok(self.selection.matches(&call, &*shown(e)?)),
            };
            entry.map_or(Ok(false), |e| selects(e).map_err(Some))
        };
        let (event_type, entry) = match (selected(before)?, selected(after)?) {
            (false, false) => return Ok(()),
            (false, true) => (WatchEventType::Added, after),
            (true, true) => (WatchEventType::Modified, after),
            // The client knows the object only as it was when it was selected.
            (true, false) => (WatchEventType::Deleted, before),
        };
        let entry = entry.ok_or(None)?;
        if self.view_renderer()?.is_plain() {
            let key = EventKey {
                revision: event.revision,
                serial: self.kind.serial,
                version: self.version,
                event_type,
            };
            // All watchers of a kind send the same line, so it is rendered for the first of them.
            let line = self.api.event_encodings.line(key, || {
                // The last state of an object has the revision of its deletion.
                let text = Text::of_converted(&call, entry, &converted).map_err(Some)?;
                let text = text.at_revision(event.revision);
                let mut line = Vec::with_capacity(text.len() + 32);
                event_type.write(&mut line, |out| text.write(out));
                Ok::<_, Option<ApiError>>(line)
            })?;
            return self.push(line);
        }
        let mut object = Value::clone(&*shown(entry).map_err(Some)?);
        crate::rest::write::set_version(&mut object, event.revision);
        let mut line = Vec::new();
        self.write(event_type, Item::Object(object), &mut line)?;
        self.push(line.into())
    }

    fn bookmark(&mut self, watch: &mut Watch) -> Result<(), Option<ApiError>> {
        let revision = watch.progress().map_err(|e| Some(too_old(&e)))?;
        self.send_bookmark(revision, None)
    }

    fn send_bookmark(&mut self, revision: u64, annotations: Option<Map>) -> Result<(), Option<ApiError>> {
        let mut metadata = Map::from_iter([("resourceVersion", Value::from(revision.to_string()))]);
        if let Some(a) = annotations {
            metadata.insert("annotations", a.into());
        }
        let call = self.call()?;
        let bare = call.kind.codec.bookmark_object(call.version);
        let mut object = bare.and_then(Value::into_object).unwrap_or_default();
        object.insert("kind", self.kind.kind.as_str().into());
        object.insert("apiVersion", call.api_version().into());
        object.insert("metadata", metadata.into());
        let object = object.into();
        let mut line = Vec::new();
        self.write(WatchEventType::Bookmark, Item::Object(object), &mut line)?;
        self.push(line.into())
    }

    /// Appends an event in the requested view and encoding.
    fn write(
        &mut self,
        event_type: WatchEventType,
        item: Item,
        out: &mut Vec<u8>,
    ) -> Result<(), Option<ApiError>> {
        match item {
            Item::Text(text) => event_type.write(out, |out| text.write_without(0, out)),
            Item::Object(object) => {
                let shown = self.view_renderer()?.event(object, self.first).map_err(Some)?;
                let shown = shown.ok_or(None)?;
                self.first = false;
                event_type.write_object(out, &shown, self.wanted.encoding);
            }
            Item::Entry(entry) => {
                let call = self.call()?;
                let object = Converted::default().object(&call, &entry).map_err(Some)?;
                let item = match self.view_renderer()?.is_plain() {
                    true => Item::Text(Listed::of_object(&call, &entry, &object)),
                    false => Item::Object(object),
                };
                self.write(event_type, item, out)?;
            }
        }
        Ok(())
    }

    /// Hands a chunk to the connection; fails if the client is too slow.
    fn push(&self, line: Bytes) -> Result<(), Option<ApiError>> {
        self.events.sent(line.len());
        self.out.try_send(line).ok_or(None)
    }
}

fn too_old(e: &StoreError) -> ApiError {
    match e {
        StoreError::Compacted { requested, oldest } => expired(*requested, *oldest),
        other => read::store_error(other.clone()),
    }
}

fn expired(requested: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
}

fn bookmark_time(deadline: Instant) -> Instant {
    let now = Instant::now();
    // The last bookmark lets a client resume after the timeout without relisting.
    let last = deadline.checked_sub(LAST_BOOKMARK).filter(|l| *l > now);
    let regular = now + BOOKMARK_EVERY;
    last.map_or(regular, |l| l.min(regular))
}
