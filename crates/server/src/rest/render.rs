//! Large lists. Each item that is not sent as it is stored is decoded when it is sent, so that the decoded list is never
//! in memory as a whole.

use crate::api::{Api, ResourceRequest};
use crate::codec::media::{Accept, Encoding, Negotiated, View};
use crate::codec::order;
use crate::codec::protobuf;
use crate::codec::text::{Listed, Text};
use crate::discovery::api_version;
use crate::http::memory::{self, Charge};
use crate::http::reply::Reply;
use crate::kinds::kind::Kind;
use crate::metrics::Label;
use crate::request::{ObjectPath, Query};
use crate::rest::conversion::Converted;
use crate::rest::listing::{ListItem, Listing};
use crate::rest::read::{SelectedItems, Selection, is_selected, object_if_selected, text_if_selected};
use crate::rest::view::{ListMeta, RowObject, ViewRenderer};
use crate::status::{ApiError, ApiResult};
use scantling_store::{Entry, MaybeCompressed};
use scantling_value::{Map, Value, yaml};
use std::fmt;
use std::sync::Arc;

/// Lists whose decoded objects take more memory than this are rendered while they are sent.
const RENDERED_AT_ONCE: usize = 1536 * 1024;

/// The same for lists in protobuf, whose items are encoded once more to learn their length.
const MEASURED_AT_ONCE: usize = 32 << 20;

/// The maximum memory of the objects of a list that cannot be decoded again while it is sent.
pub(crate) const MAX_DECODED: usize = 128 << 20;

/// An object of a list.
pub(crate) enum Row {
    Object(Value),
    /// An entry that was decoded once, and is decoded again when it is sent.
    Entry(Arc<Entry>),
}

impl Row {
    /// The name of the object.
    pub(crate) fn name(&self) -> &str {
        match self {
            Row::Object(object) => object.str_at(["metadata", "name"]),
            Row::Entry(entry) => entry.key.rsplit('/').next().unwrap_or_default(),
        }
    }
}

/// Collects the objects of a list.
pub(crate) struct Rows {
    /// The memory of decoded objects beyond which entries are decoded again when they are sent. `None` if they cannot
    /// be, because a webhook converts them, or the encoding has no pieces.
    lazy_beyond: Option<usize>,
    /// True if the metadata of objects is enough.
    is_metadata: bool,
    /// The memory that the decoded objects take.
    decoded: usize,
    /// The encoded length of the entries, in protobuf.
    length: usize,
    renderer: Option<Renderer>,
    charge: Charge,
}

impl Rows {
    pub(crate) fn new(call: &ResourceRequest<'_>, shape: &ViewRenderer<'_>) -> ApiResult<Rows> {
        let wanted = &shape.wanted;
        let is_message = wanted.encoding == Encoding::Protobuf && wanted.view == View::Object;
        let lazy_beyond = match wanted.encoding {
            // Decoding again would call the webhook again, for every item and while the client waits.
            _ if call.kind.codec.webhook().is_some() => None,
            Encoding::Json | Encoding::Yaml => Some(RENDERED_AT_ONCE),
            Encoding::Protobuf if is_message => Some(MEASURED_AT_ONCE),
            Encoding::Protobuf | Encoding::Cbor => None,
        };
        Ok(Rows {
            lazy_beyond,
            is_metadata: matches!(wanted.view, View::Metadata(_) | View::MetadataList(_)),
            decoded: 0,
            length: 0,
            renderer: match is_message {
                true => Some(Renderer::new(call, shape)?),
                false => None,
            },
            charge: call.api.memory.responses.empty(),
        })
    }

    /// Adds an entry, if it is selected.
    pub(crate) fn take(
        &mut self,
        call: &ResourceRequest<'_>,
        selection: &Selection,
        entry: &Arc<Entry>,
        converted: &Converted,
    ) -> ApiResult<Option<Row>> {
        let is_lazy = self.lazy_beyond.is_some_and(|limit| self.decoded > limit);
        if is_lazy && self.renderer.is_none() {
            let selected = is_selected(call, selection, entry, converted)?;
            return Ok(selected.then(|| Row::Entry(Arc::clone(entry))));
        }
        let Some(mut object) = object_if_selected(call, selection, entry, converted)? else {
            return Ok(None);
        };
        if is_lazy && let Some(renderer) = &self.renderer {
            let mut text = Vec::new();
            renderer.write_object(object, &mut text)?;
            // Protobuf states the length of a list before its items, so it is measured now. The text is dropped.
            self.length += text.len();
            return Ok(Some(Row::Entry(Arc::clone(entry))));
        }
        if self.is_metadata
            && let Some(members) = object.as_object_mut()
        {
            let metadata = members.remove("metadata");
            object = metadata
                .map(|m| ("metadata", m))
                .into_iter()
                .collect::<Map>()
                .into();
        }
        // Measured after the rest was dropped: lists of metadata hold only the metadata.
        let memory = memory::size_of_value(&object);
        self.decoded += memory;
        if self.decoded > MAX_DECODED {
            return Err(too_large());
        }
        // Small lists are not charged: they count as part of their request.
        if self.decoded > RENDERED_AT_ONCE && !self.charge.grow(memory) {
            return Err(crate::api::too_many_requests());
        }
        Ok(Some(Row::Object(object)))
    }

    /// The response with the rows that were added.
    pub(crate) fn reply(
        self,
        call: &ResourceRequest<'_>,
        shape: &ViewRenderer<'_>,
        found: SelectedItems<Row>,
    ) -> ApiResult<Reply> {
        let (api_version, kind) = (call.api_version(), &call.kind.list_kind);
        if found.items.iter().all(|row| matches!(row, Row::Object(_))) {
            let objects = found.items.into_iter().filter_map(|row| match row {
                Row::Object(object) => Some(object),
                Row::Entry(_) => None,
            });
            return shape.list(&api_version, kind, objects.collect(), &found.meta);
        }
        let content_type = shape.wanted.encoding.content_type();
        let renderer = Renderer::new(call, shape)?;
        let mut items = Vec::with_capacity(found.items.len());
        let mut length = self.length;
        for row in found.items {
            let item = renderer.item(row)?;
            if let ListItem::Text(text) = &item {
                length += text.len();
            }
            items.push(item);
        }
        let list = match self.renderer {
            Some(_) => {
                let frame = shape.message_frame(&api_version, kind, &found.meta, length)?;
                let length = frame.before.len() + length + frame.after.len();
                Listing::rendered(frame, items, Some(renderer), Some(length))
            }
            None => {
                let frame = shape.list_frame(&api_version, kind, &found.meta)?;
                Listing::rendered(frame, items, Some(renderer), None)
            }
        };
        let mut reply = Reply::list(list);
        reply.content_type = content_type;
        Ok(reply)
    }
}

/// The error about a list that does not fit into memory.
pub(crate) fn too_large() -> ApiError {
    ApiError::internal_error(format!(
        "the objects of this list take more than {MAX_DECODED} bytes; request fewer with the limit parameter"
    ))
}

/// The texts of a list in JSON.
pub(crate) struct ListTexts {
    /// True if entries can be decoded again without a webhook.
    is_lazy: bool,
    /// The memory of the texts that are not those of the store.
    held: usize,
    charge: Charge,
}

impl ListTexts {
    pub(crate) fn new(call: &ResourceRequest<'_>) -> ListTexts {
        ListTexts {
            is_lazy: call.kind.codec.webhook().is_none(),
            held: 0,
            charge: call.api.memory.responses.empty(),
        }
    }

    /// Adds an entry, if it is selected.
    pub(crate) fn take(
        &mut self,
        call: &ResourceRequest<'_>,
        selection: &Selection,
        entry: &Arc<Entry>,
        converted: &Converted,
    ) -> ApiResult<Option<ListItem>> {
        let Some(text) = text_if_selected(call, selection, entry, converted)? else {
            return Ok(None);
        };
        // Texts of the store are shared with it and take no memory of their own.
        if let Listed::Text(_) = text {
            let held = text.held();
            if self.is_lazy && self.held + held > RENDERED_AT_ONCE {
                return Ok(Some(ListItem::Entry(Arc::clone(entry))));
            }
            self.held += held;
            if self.held > MAX_DECODED {
                return Err(too_large());
            }
            if self.held > RENDERED_AT_ONCE && !self.charge.grow(held) {
                return Err(crate::api::too_many_requests());
            }
        }
        Ok(Some(ListItem::Text(text)))
    }
}

/// The text around and between the items of a list.
#[derive(Debug)]
pub(crate) struct ListFrame {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    pub(crate) between: &'static [u8],
    /// The bytes of the first members of each text that the list leaves out.
    pub(crate) omitted: usize,
}

impl ListFrame {
    /// The frame of a list of custom resources, whose members are sorted by name.
    pub(crate) fn sorted(api_version: &str, kind: &str, meta: &ListMeta) -> ListFrame {
        let mut before = b"{\"apiVersion\":".to_vec();
        Value::from(api_version).write_json(&mut before);
        before.extend_from_slice(b",\"items\":[");
        let mut after = b"],\"kind\":".to_vec();
        Value::from(kind).write_json(&mut after);
        after.extend_from_slice(b",\"metadata\":");
        meta.to_value().write_json(&mut after);
        after.extend_from_slice(b"}\n");
        ListFrame {
            before,
            after,
            between: b",",
            omitted: 0,
        }
    }

    /// The frame of a list of a built-in kind. Its members are in declaration order, and its items have no `kind` and
    /// `apiVersion`, because the list names them.
    pub(crate) fn declared(
        api_version: &str,
        item_kind: &str,
        list_kind: &str,
        meta: &ListMeta,
    ) -> ListFrame {
        let mut before = vec![b'{'];
        before.append(&mut order::write_type(list_kind, api_version));
        before.extend_from_slice(b"\"metadata\":");
        order::write_list_meta(&meta.to_value(), &mut before);
        before.extend_from_slice(b",\"items\":[");
        ListFrame {
            before,
            after: b"]}\n".to_vec(),
            between: b",",
            // Types outside the table have the two members in the other order, which takes the same number of bytes.
            omitted: order::write_type(item_kind, api_version).len(),
        }
    }
}

/// Renders entries for a request whose handler has ended.
pub(crate) struct Renderer {
    api: Arc<Api>,
    kind: Arc<Kind>,
    version: usize,
    path: ObjectPath,
    query: Query,
    label: Label,
    wanted: Negotiated,
    row_object: RowObject,
    now: i64,
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderer")
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl Renderer {
    pub(crate) fn new(call: &ResourceRequest<'_>, shape: &ViewRenderer<'_>) -> ApiResult<Renderer> {
        let mut versions = call.kind.versions.iter();
        let version = versions.position(|v| v.name == call.version.name);
        Ok(Renderer {
            api: Arc::clone(call.api),
            kind: Arc::clone(call.kind),
            version: version.ok_or_else(|| ApiError::internal_error("a kind lacks its version"))?,
            path: call.path.clone(),
            query: call.query.clone(),
            label: call.label.clone(),
            wanted: shape.wanted.clone(),
            row_object: shape.row_object,
            now: shape.now,
        })
    }

    /// A row as an item of a list.
    pub(crate) fn item(&self, row: Row) -> ApiResult<ListItem> {
        match row {
            Row::Entry(entry) => Ok(ListItem::Entry(entry)),
            Row::Object(object) => {
                let mut out = Vec::new();
                self.write_object(object, &mut out)?;
                Ok(ListItem::Text(
                    Text::raw(MaybeCompressed::uncompressed(out.into())).into(),
                ))
            }
        }
    }

    /// Appends an entry in the view and encoding of the request. A text is written without its first members, which take
    /// `omitted` bytes.
    pub(crate) fn write_entry(&self, entry: &Arc<Entry>, omitted: usize, out: &mut Vec<u8>) -> ApiResult<()> {
        let version = self.kind.versions.get(self.version);
        let call = ResourceRequest {
            api: &self.api,
            kind: &self.kind,
            version: version.ok_or_else(|| ApiError::internal_error("a kind lacks its version"))?,
            path: &self.path,
            query: &self.query,
            accept: Accept {
                text: None,
                encodings: self.api.encodings,
            },
            label: &self.label,
        };
        let object = Converted::default().object(&call, entry)?;
        if self.wanted.is_plain() {
            Listed::of_object(&call, entry, &object).write_without(omitted, out);
            return Ok(());
        }
        self.write_object(object, out)
    }

    fn write_object(&self, object: Value, out: &mut Vec<u8>) -> ApiResult<()> {
        let version = self.kind.versions.get(self.version);
        let version = version.ok_or_else(|| ApiError::internal_error("a kind lacks its version"))?;
        let shape = ViewRenderer {
            wanted: self.wanted.clone(),
            row_object: self.row_object,
            kind: &self.kind,
            columns: &version.columns,
            now: self.now,
        };
        let item = shape.list_item(object)?;
        match (self.wanted.encoding, &self.wanted.view) {
            // As a sequence of one, so that the text has the indentation and the dash of an item.
            (Encoding::Yaml, _) => out.extend_from_slice(yaml::encode(&Value::Array(vec![item])).as_bytes()),
            (Encoding::Protobuf, _) => {
                let api_version = api_version(&self.kind.group, &version.name);
                let message = protobuf::list_item(&api_version, &self.kind.kind, &item);
                let lost = || ApiError::internal_error("a kind lacks its protobuf encoding");
                out.append(&mut message.ok_or_else(lost)?);
            }
            (_, View::Table(_)) => order::write_row(&item, out),
            (_, View::Object | View::Metadata(_) | View::MetadataList(_)) => order::write(&item, out),
        }
        Ok(())
    }
}

/// Splits the text of a list with one item, which is a mark, at that item.
pub(crate) fn frame(list: &[u8], mark: &str, encoding: Encoding) -> Option<ListFrame> {
    // Items in YAML end with a line feed, so nothing stands between them.
    let (item, between): (String, &[u8]) = match encoding {
        Encoding::Yaml => (format!("- {mark}\n"), b""),
        _ => (format!("\"{mark}\""), b","),
    };
    let start = list.windows(item.len()).position(|w| w == item.as_bytes())?;
    let (before, rest) = list.split_at_checked(start)?;
    Some(ListFrame {
        before: before.to_vec(),
        after: rest.get(item.len()..)?.to_vec(),
        between,
        omitted: 0,
    })
}
