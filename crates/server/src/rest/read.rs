//! GET of objects and collections.

use crate::api::ResourceRequest;
use crate::codec::cbor;
use crate::codec::protobuf;
use crate::codec::text::{Listed, Text};
use crate::http::reply::{Reply, STREAMED};
use crate::request::parse_uint;
use crate::rest::conversion::{self, Converted};
use crate::rest::entry_cache::is_normalized;
use crate::rest::listing::{ListItem, Listing};
use crate::rest::options::{ListOptions, VersionMatch};
use crate::rest::page::Continue;
use crate::rest::render::{ListFrame, ListTexts, Renderer, Rows};
use crate::rest::selector::{FieldSelector, LabelSelector};
use crate::rest::view::ListMeta;
use crate::status::{ApiError, ApiResult};
use scantling_store::{Entry, ListRequest, Page, ReadAt, StoreError};
use scantling_value::{Limits, Value, deadline, go, json};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The selectors of a list or watch.
#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    /// Checks that the kind has the fields of the selectors.
    pub(crate) fn new(call: &ResourceRequest<'_>, options: &ListOptions) -> ApiResult<Selection> {
        let (labels, mut fields) = (options.labels.clone(), options.fields.clone());
        for term in &fields.terms {
            let rules = &call.kind.rules;
            // Before the name of the path is added: that field is always known.
            let known = rules.check_selectable(call.kind, call.version, &term.field);
            known.map_err(ApiError::bad_request)?;
        }
        // The old watch paths name an object.
        if let Some(name) = call.path.name.as_ref().filter(|_| call.path.watch) {
            if !fields.terms.is_empty() && fields.exact("metadata.name") != Some(name) {
                let why = "fieldSelector metadata.name doesn't match requested name";
                return Err(ApiError::bad_request(why));
            }
            let term = crate::rest::selector::FieldTerm {
                field: "metadata.name".to_owned(),
                value: name.clone(),
                equal: true,
            };
            fields.terms.push(term);
        }
        Ok(Selection { labels, fields })
    }

    /// An estimate of the bytes that matching one object compares.
    pub(crate) fn bytes_compared(&self) -> usize {
        const EACH: usize = 64;
        EACH * (self.labels.len() + self.fields.terms.len())
    }

    /// Returns whether everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.terms.is_empty()
    }

    /// Returns whether an entry is selected, if that depends only on its name.
    pub(crate) fn selects_by_name(&self, entry: &Entry) -> Option<bool> {
        // The last segment of a key is the name, so such a selection needs no decoding.
        let name = entry.key.rsplit('/').next();
        self.is_by_name()
            .then(|| self.fields.terms.iter().all(|t| name == Some(&t.value)))
    }

    /// Returns whether the selection depends only on the name.
    fn is_by_name(&self) -> bool {
        let by_name = |t: &crate::rest::selector::FieldTerm| t.equal && t.field == "metadata.name";
        // Two terms on the name could contradict each other, which `exact` would not notice.
        self.labels.is_empty() && self.fields.terms.len() <= 1 && self.fields.terms.iter().all(by_name)
    }

    /// Returns whether an object is selected.
    pub(crate) fn matches(&self, call: &ResourceRequest<'_>, object: &Value) -> bool {
        let labels = object.at(["metadata", "labels"]).and_then(Value::as_object);
        self.labels.matches(labels) && self.fields.matches(|f| call.kind.selector_field(object, f))
    }
}

impl ResourceRequest<'_> {
    /// Returns the current entry of a name.
    pub(crate) async fn live(&self, key: &str, name: &str) -> ApiResult<Arc<Entry>> {
        let entry = self.entry(key, name, ReadAt::Latest).await?;
        self.offload(entry.value.len()).await;
        Ok(entry)
    }

    /// Returns the entry of a name at a revision.
    pub(crate) async fn entry(&self, key: &str, name: &str, at: ReadAt) -> ApiResult<Arc<Entry>> {
        // kube-apiserver reads kinds without a watch cache from etcd, whose error about the future has no retry.
        let memory = self.kind.behavior.facts.is_cached;
        let entry = self.api.store.get(key, at).await;
        let entry = entry.map_err(|e| read_error(e, memory))?;
        entry.ok_or_else(|| ApiError::not_found(self.group_resource(), name))
    }
}

/// Decodes an entry and adds its resource version.
pub(crate) fn stored(entry: &Entry) -> ApiResult<Value> {
    // Other API servers may share the store, so nothing about the content of a value is certain.
    let value = entry.value.bytes();
    let damaged = |why| undecodable(entry.mod_revision, ApiError::unreadable(why));
    let mut object = decode(&value).map_err(damaged)?;
    let is_kind = |kind: &Value| kind.as_str().is_some_and(|kind| !kind.is_empty());
    if !object.get("kind").is_some_and(is_kind) {
        let shown = String::from_utf8_lossy(&value);
        return Err(damaged(format!("Object 'Kind' is missing in '{shown}'")));
    }
    if let Some(m) = object.as_object_mut() {
        let metadata = m.get_or_insert_with("metadata", || Value::Object(scantling_value::Map::new()));
        let found = go::value_type(metadata);
        let Value::Object(metadata) = metadata else {
            return Err(damaged(format!("invalid metadata: expected object, got {found}")));
        };
        metadata.insert("resourceVersion", entry.mod_revision.to_string().into());
    }
    Ok(object)
}

/// Decodes a stored value: JSON, CBOR (custom resources while CBOR is enabled), or protobuf (built-in kinds
/// of kube-apiserver).
fn decode(value: &[u8]) -> Result<Value, String> {
    if cbor::is_tagged(value) {
        return cbor::decode(value);
    }
    // The prefixes of CBOR and protobuf cannot begin a JSON text.
    if !protobuf::is_enveloped(value) {
        return json::decode(value, Limits::SERVER).map_err(|e| e.to_string());
    }
    let envelope = protobuf::open(value)?;
    match protobuf::described(&envelope) {
        Some(definition) => protobuf::read(&envelope, definition),
        None => Err(format!(
            "{} {} has no protobuf form",
            envelope.api_version, envelope.kind
        )),
    }
}

/// Returns a stored object in the version of the request.
pub(crate) async fn object_in_version(call: &ResourceRequest<'_>, entry: &Entry) -> ApiResult<Value> {
    let object = stored(entry)?;
    if is_normalized(call, entry) {
        return Ok(object);
    }
    let read = call.read(object).await;
    read.map_err(|e| undecodable(entry.mod_revision, e))
}

/// Adds the revision to an error about an object that cannot be decoded.
pub(crate) fn undecodable(revision: u64, e: ApiError) -> ApiError {
    if !e.is_unreadable() {
        return e;
    }
    let why = format!("object not decodable revision={revision}: {}", e.message());
    e.with_message(why)
}

/// Adds the key to an error about an object that cannot be decoded.
pub(crate) fn by_key(call: &ResourceRequest<'_>, entry: &Entry, e: ApiError) -> ApiError {
    if !e.is_unreadable() {
        return e;
    }
    ApiError::internal_error(corrupt(key_within(call, &entry.key), &e))
}

/// A key without the prefix of all keys, as errors of dry runs show it.
pub(crate) fn key_within<'k>(call: &ResourceRequest<'_>, key: &'k str) -> &'k str {
    let root = call.api.keys.prefix();
    key.strip_prefix(root.trim_end_matches('/')).unwrap_or(key)
}

/// The text about an entry that cannot be decoded.
fn corrupt(key: &str, e: &ApiError) -> String {
    format!(
        "StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {}",
        e.message()
    )
}

/// The maximum number of undecodable objects that an error lists.
const MOST_UNREADABLE: usize = 100;

fn parse_version(text: &str) -> Result<u64, String> {
    parse_uint(text).map_err(|e| format!("resourceVersion: Invalid value: {}: {e}", go::quote(text)))
}

/// The maximum size of a request of etcd's client. It is larger than etcd's own limit and has another error.
const LARGEST_MESSAGE: usize = 2 << 20;

/// The error about a failed read. Clients need not retry reads of future revisions of kinds that are not cached.
fn read_error(e: StoreError, memory: bool) -> ApiError {
    match e {
        StoreError::FutureRevision { requested, current } if !memory => {
            ApiError::version_too_large(requested, current)
        }
        e => store_error(e),
    }
}

/// The error about a failed read or write.
pub(crate) fn store_error(e: StoreError) -> ApiError {
    match e {
        StoreError::FutureRevision { requested, current } => {
            ApiError::version_too_large(requested, current).retry_after(1)
        }
        StoreError::Compacted { .. } => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
        // etcd's client refuses such a request itself, before the server sees it.
        StoreError::TooLarge { request, .. } if request > LARGEST_MESSAGE => ApiError::internal(format!(
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max ({request} vs. \
             {LARGEST_MESSAGE})"
        )),
        StoreError::TooLarge { .. } => ApiError::internal("etcdserver: request is too large"),
        other => ApiError::internal_error("the store failed").private(other.to_string()),
    }
}

/// The revision at which a single object is read.
pub(crate) fn asked_state(call: &ResourceRequest<'_>) -> ApiResult<ReadAt> {
    match call.query.get_or_empty("resourceVersion") {
        "" => Ok(ReadAt::Latest),
        text => parse_version(text)
            .map(ReadAt::AtLeast)
            .map_err(ApiError::internal),
    }
}

/// GET of one object.
pub(crate) async fn get(call: &ResourceRequest<'_>, name: &str) -> ApiResult<Reply> {
    // Errors about tables arise only if the object exists.
    call.wanted()?;
    if call.query.flag("export") {
        let why = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(ApiError::bad_request(why));
    }
    let at = asked_state(call)?;
    let key = call.key(name)?;
    let entry = call.entry(&key, name, at).await?;
    let shape = call.view_renderer()?;
    let unread = |e| by_key(call, &entry, e);
    // A text that is known to be sent as it is stored costs a copy, whatever its size.
    if Text::noted(call, &entry).is_none() || !shape.is_plain() {
        call.offload(entry.value.len()).await;
    }
    if shape.is_plain() {
        return Ok(shape.text_reply(200, &Text::for_entry(call, &entry).await.map_err(unread)?));
    }
    shape.object(200, object_in_version(call, &entry).await.map_err(unread)?)
}

/// GET of a collection.
pub(crate) async fn list(call: &ResourceRequest<'_>, options: &ListOptions) -> ApiResult<Reply> {
    let selection = Selection::new(call, options)?;
    let (api_version, kind) = (call.api_version(), &call.kind.list_kind);
    let shape = call.view_renderer()?;
    if shape.is_plain() {
        let mut texts = ListTexts::new(call);
        let take =
            |c: &ResourceRequest<'_>, s: &Selection, e: &Arc<Entry>, v: &Converted| texts.take(c, s, e, v);
        let found = find(call, options, &selection, take).await?;
        let is_whole = found.items.iter().all(|item| matches!(item, ListItem::Text(_)));
        let renderer = match is_whole {
            true => None,
            false => Some(Renderer::new(call, &shape)?),
        };
        let frame = match call.kind.built_in {
            true => ListFrame::declared(&api_version, &call.kind.kind, kind, &found.meta),
            false => ListFrame::sorted(&api_version, kind, &found.meta),
        };
        let list = Listing::of_items(frame, found.items, renderer);
        let is_page = options.limit != 0 || !options.continue_token.is_empty();
        // Only long lists are worth sharing, and only complete ones are likely to be requested alike.
        if list.len().is_some_and(|length| length < STREAMED) || !selection.is_everything() || is_page {
            return Ok(Reply::list(list));
        }
        let revision = &found.meta.resource_version;
        // The serial changes with the kind, so a list in an outdated form is never shared.
        let key = format!(
            "{} {revision} {} {}",
            call.prefix()?,
            call.kind.serial,
            call.version.name
        );
        return Ok(Reply::list(call.api.lists.share(key, list)));
    }
    let mut rows = Rows::new(call, &shape)?;
    let take = |c: &ResourceRequest<'_>, s: &Selection, e: &Arc<Entry>, v: &Converted| rows.take(c, s, e, v);
    let found = find(call, options, &selection, take).await?;
    rows.reply(call, &shape, found)
}

/// A page of selected objects.
pub(crate) struct SelectedItems<T> {
    pub(crate) items: Vec<T>,
    pub(crate) meta: ListMeta,
}

/// Returns an object, if it is selected.
pub(crate) fn object_if_selected(
    call: &ResourceRequest<'_>,
    selection: &Selection,
    entry: &Arc<Entry>,
    converted: &Converted,
) -> ApiResult<Option<Value>> {
    let object = converted.object(call, entry)?;
    Ok(selection.matches(call, &object).then_some(object))
}

/// Returns whether an object is selected; fails if a selected object cannot be decoded.
pub(crate) fn is_selected(
    call: &ResourceRequest<'_>,
    selection: &Selection,
    entry: &Arc<Entry>,
    converted: &Converted,
) -> ApiResult<bool> {
    if selection.is_by_name() && is_normalized(call, entry) {
        return Ok(true);
    }
    Ok(selection.matches(call, &converted.object(call, entry)?))
}

/// Returns the text of an object, if it is selected.
pub(crate) fn text_if_selected(
    call: &ResourceRequest<'_>,
    selection: &Selection,
    entry: &Arc<Entry>,
    converted: &Converted,
) -> ApiResult<Option<Listed>> {
    if selection.is_by_name()
        && let Some(text) = Listed::noted(call, entry)
    {
        return Ok(Some(text));
    }
    let object = converted.object(call, entry)?;
    let selected = selection.matches(call, &object);
    Ok(selected.then(|| Listed::of_object(call, entry, &object)))
}

/// The number of objects that are decoded before the task yields.
const TURN: usize = 256;

/// Splits entries into those that are decoded, and converted by a webhook, before the task yields.
fn turns<'e>(
    call: &ResourceRequest<'_>,
    mut entries: &'e [Arc<Entry>],
) -> impl Iterator<Item = &'e [Arc<Entry>]> + use<'e> {
    // Converted objects of a turn are held together, so their number and size are bounded.
    let (most, bytes) = match call.kind.codec.webhook() {
        Some(_) => (conversion::AT_ONCE, conversion::BYTES_AT_ONCE),
        None => (TURN, usize::MAX),
    };
    std::iter::from_fn(move || {
        let mut sum: usize = 0;
        let fits = |entry: &&Arc<Entry>| {
            sum = sum.saturating_add(entry.value.len());
            sum <= bytes
        };
        let count = entries.iter().take(most).take_while(fits).count();
        // An object that exceeds the bound alone still gets a turn; no entries end the iteration.
        let (turn, rest) = entries.split_at_checked(count.max(1))?;
        entries = rest;
        Some(turn)
    })
}

/// Reads pages of the store until enough objects are selected.
pub(crate) async fn find<T>(
    call: &ResourceRequest<'_>,
    options: &ListOptions,
    selection: &Selection,
    mut take: impl FnMut(&ResourceRequest<'_>, &Selection, &Arc<Entry>, &Converted) -> ApiResult<Option<T>>,
) -> ApiResult<SelectedItems<T>> {
    let prefix = call.prefix()?;
    // A list at any version comes from memory, in one page.
    let any = options.resource_version == "0";
    let limit = usize::try_from(options.limit)
        .ok()
        .and_then(NonZeroUsize::new)
        .filter(|_| !any);
    // A selector on the name finds one key: there are no pages.
    let only = selection.fields.exact("metadata.name").map(str::to_owned);
    // With both names known, kube-apiserver reads one key instead of a range.
    let names_one_namespace = call.path.namespace.is_some()
        || !call.kind.namespaced
        || selection.fields.exact("metadata.namespace").is_some();
    let single = only.is_some() && names_one_namespace;
    let exact = limit.is_some() || options.version_match == Some(VersionMatch::Exact);
    let memory = call.kind.behavior.facts.is_cached && !(single && exact);
    let (mut after, mut at) = start(options, limit.is_some() && !single)?;
    after = after.map(|a| format!("{prefix}{a}"));
    let mut items = Vec::new();
    let mut unreadable = Vec::new();
    loop {
        let request = ListRequest {
            prefix: prefix.clone(),
            after: after.clone(),
            limit,
            at,
            remaining: None,
        };
        let Page {
            revision,
            entries,
            remaining,
        } = call.api.store.list(request).await.map_err(|e| match e {
            StoreError::Compacted { .. } if !options.continue_token.is_empty() => {
                match Continue::decode(&options.continue_token) {
                    Ok(c) => {
                        let latest = Continue { revision: None, ..c }.encode();
                        ApiError::expired(CONTINUE_EXPIRED).continuing(latest)
                    }
                    Err(why) => ApiError::bad_request(why),
                }
            }
            e => read_error(e, memory),
        })?;
        // Later pages of the store read the same revision, so the list is one snapshot.
        at = ReadAt::Exact(revision);
        let work = |entry: &Arc<Entry>| entry.value.len() + selection.bytes_compared();
        call.offload(entries.iter().map(work).sum()).await;
        let mut last = None;
        'page: for turn in turns(call, &entries) {
            // Other names are skipped undecoded: one that cannot be decoded does not fail a list for another object.
            let is_named = |entry: &&Arc<Entry>| {
                let name = only.as_deref();
                name.is_none_or(|name| entry.key.rsplit('/').next() == Some(name))
            };
            let converted = Converted::for_entries(call, turn.iter().filter(is_named)).await;
            for entry in turn {
                // Entries with another name do no other work that observes the deadline.
                deadline::tick();
                last = Some(&entry.key);
                if !is_named(&entry) {
                    continue;
                }
                match take(call, selection, entry, &converted) {
                    Ok(item) => items.extend(item),
                    Err(e) if e.is_unreadable() && unreadable.len() < MOST_UNREADABLE => {
                        let key = entry.key.to_string();
                        let why = corrupt(&key, &e);
                        unreadable.push((key, why));
                    }
                    Err(e) => return Err(e),
                }
                if limit.is_some_and(|l| items.len() >= l.get()) {
                    break 'page;
                }
            }
            if turn.len() < entries.len() {
                tokio::task::yield_now().await;
            }
        }
        // The page may be full before all entries that the store returned were looked at.
        let rest = remaining > 0 || last != entries.last().map(|e| &e.key);
        // A selection may leave a page of the store short: like kube-apiserver, the list goes on until it is full.
        let full = limit.is_some_and(|l| items.len() >= l.get());
        if rest && !full {
            after = last.map(ToString::to_string);
            continue;
        }
        // Reported together at the end, so that an operator sees all damaged keys at once.
        if !unreadable.is_empty() {
            return Err(ApiError::unreadable_list(call.group_resource(), &unreadable));
        }
        let meta = ListMeta {
            resource_version: revision.to_string(),
            continue_token: match (rest, last) {
                (true, Some(key)) => {
                    let after = key.strip_prefix(prefix.as_str()).unwrap_or(key).to_owned();
                    let revision = Some(revision);
                    Continue { revision, after }.encode()
                }
                _ => String::new(),
            },
            // The number of selected objects that remain is unknown, so it is left out.
            remaining: (rest && selection.is_everything()).then_some(remaining),
            // Unstructured lists always write `continue`; typed ones omit it when it is empty.
            says_end: !call.kind.built_in,
        };
        return Ok(SelectedItems { items, meta });
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You \
     can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
     created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The key after which a list begins, and its revision.
fn start(options: &ListOptions, limited: bool) -> ApiResult<(Option<String>, ReadAt)> {
    let version = options.resource_version.as_str();
    if !options.continue_token.is_empty() {
        let c = Continue::decode(&options.continue_token)
            .map_err(|e| ApiError::bad_request(format!("invalid continue token: {e}")))?;
        if !matches!(version, "" | "0") {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        return Ok((Some(c.after), c.revision.map_or(ReadAt::Latest, ReadAt::Exact)));
    }
    if version.is_empty() {
        return Ok((None, ReadAt::Latest));
    }
    let n = parse_version(version)
        .map_err(|e| ApiError::bad_request(format!("invalid resource version: {e}")))?;
    let at = match options.version_match {
        Some(VersionMatch::Exact) => ReadAt::Exact(n),
        // For pages, a resource version means exactly that version.
        None if limited && n > 0 => ReadAt::Exact(n),
        _ => ReadAt::AtLeast(n),
    };
    Ok((None, at))
}

/// The revision after which a watch begins.
pub(crate) fn watch_version(version: &str) -> ApiResult<u64> {
    if version.is_empty() {
        Ok(0)
    } else {
        parse_version(version).map_err(ApiError::internal)
    }
}
