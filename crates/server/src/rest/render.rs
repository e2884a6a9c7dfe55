//! Large lists other than plain JSON: tables, metadata, YAML. Each item is decoded
//! when it is sent, so that the decoded list is never in memory as a whole.

use crate::api::{Api, ResourceRequest};
use crate::codec::media::{Accept, Encoding, Negotiated, View};
use crate::codec::order;
use crate::codec::text::Text;
use crate::kinds::kind::Kind;
use crate::metrics::Label;
use crate::request::{ObjectPath, Query};
use crate::rest::conversion::Converted;
use crate::rest::listing::ListItem;
use crate::rest::read::{Selection, is_selected, object_if_selected};
use crate::rest::view::{RowObject, Shape};
use crate::status::{ApiError, ApiResult};
use scantling_store::{Entry, MaybeCompressed};
use scantling_value::{Value, yaml};
use std::fmt;
use std::sync::Arc;

/// Lists of more stored bytes than this are rendered while they are sent.
const RENDERED_AT_ONCE: usize = 256 * 1024;

/// The bytes of memory per stored byte that a decoded object takes.
const DECODED_FACTOR: usize = 6;

/// An object of a list.
pub(crate) enum Row {
    Object(Value),
    /// An entry that was decoded once, and is decoded again when it is sent.
    Entry(Arc<Entry>),
}

/// Collects the objects of a list.
pub(crate) struct Rows {
    /// True if entries can be decoded again without a webhook, and sent one by one.
    is_lazy: bool,
    /// The stored bytes of the decoded objects.
    decoded: usize,
    charge: crate::http::memory::Charge,
}

impl Rows {
    pub(crate) fn new(call: &ResourceRequest<'_>, wanted: &Negotiated) -> Rows {
        let is_written_in_pieces = matches!(wanted.encoding, Encoding::Json | Encoding::Yaml);
        Rows {
            is_lazy: is_written_in_pieces && call.kind.codec.webhook().is_none(),
            decoded: 0,
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
    ) -> ApiResult<Option<Row>> {
        if self.is_lazy && self.decoded > RENDERED_AT_ONCE {
            let selected = is_selected(call, selection, entry, converted)?;
            return Ok(selected.then(|| Row::Entry(Arc::clone(entry))));
        }
        let Some(object) = object_if_selected(call, selection, entry, converted)? else {
            return Ok(None);
        };
        self.decoded += entry.value.len();
        let is_large = self.decoded > RENDERED_AT_ONCE;
        if is_large && !self.charge.grow(entry.value.len() * DECODED_FACTOR) {
            return Err(crate::api::too_many_requests());
        }
        Ok(Some(Row::Object(object)))
    }
}

/// The text around and between the items of a list.
#[derive(Debug)]
pub(crate) struct ListFrame {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    pub(crate) between: &'static [u8],
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
    pub(crate) fn new(call: &ResourceRequest<'_>, shape: Shape<'_>) -> ApiResult<Renderer> {
        let mut versions = call.kind.versions.iter();
        let version = versions.position(|v| v.name == call.version.name);
        Ok(Renderer {
            api: Arc::clone(call.api),
            kind: Arc::clone(call.kind),
            version: version.ok_or_else(|| ApiError::internal_error("a kind lacks its version"))?,
            path: call.path.clone(),
            query: call.query.clone(),
            label: call.label.clone(),
            wanted: shape.wanted,
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

    /// Appends an entry in the view and encoding of the request.
    pub(crate) fn write_entry(&self, entry: &Arc<Entry>, out: &mut Vec<u8>) -> ApiResult<()> {
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
        self.write_object(Converted::default().object(&call, entry)?, out)
    }

    fn write_object(&self, object: Value, out: &mut Vec<u8>) -> ApiResult<()> {
        let version = self.kind.versions.get(self.version);
        let version = version.ok_or_else(|| ApiError::internal_error("a kind lacks its version"))?;
        let shape = Shape {
            wanted: self.wanted.clone(),
            row_object: self.row_object,
            kind: &self.kind,
            columns: &version.columns,
            now: self.now,
        };
        let item = shape.list_item(object)?;
        match (self.wanted.encoding, &self.wanted.view) {
            (Encoding::Yaml, _) => out.extend_from_slice(yaml::encode(&Value::Array(vec![item])).as_bytes()),
            (_, View::Table(_)) => order::write_row(&item, out),
            (_, View::Object | View::Metadata(_) | View::MetadataList(_)) => order::write(&item, out),
        }
        Ok(())
    }
}

/// Splits the text of a list with one item, which is a mark, at that item.
pub(crate) fn frame(list: &[u8], mark: &str, encoding: Encoding) -> Option<ListFrame> {
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
    })
}
