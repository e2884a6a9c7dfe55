//! Long lists and documents, rendered chunk by chunk while they are sent, so that no list is in memory as a whole.

use crate::codec::text::Listed;
use crate::http::memory::{Budget, Charge};
use crate::rest::render::{ListFrame, Renderer};
use crate::status::ApiError;
use bytes::Bytes;
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame, SizeHint};
use scantling_store::Entry;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};

/// The size of a chunk: a few TLS records.
const CHUNK: usize = 32 * 1024;

/// The number of chunks that are compressed before the task yields. Repetitive texts compress to almost nothing.
const CHUNKS_PER_TURN: usize = 4;

/// The memory for compressing a response.
pub(crate) const COMPRESSOR: usize = 320 * 1024;

/// A list of objects, or the parts of a document, not yet rendered. Responses with the same list share it.
#[derive(Clone, Debug)]
pub(crate) struct Listing(Arc<ListingParts>);

/// An item of a list.
#[derive(Debug)]
pub(crate) enum ListItem {
    Text(Listed),
    /// An entry that the renderer of the list renders.
    Entry(Arc<Entry>),
}

#[derive(Debug)]
struct ListingParts {
    before: Vec<u8>,
    items: Vec<ListItem>,
    /// The bytes of the first members of each text that the list leaves out.
    omitted: usize,
    after: Vec<u8>,
    /// The text between two items.
    between: &'static [u8],
    /// Renders entries.
    renderer: Option<Renderer>,
    /// The length, if it is known.
    length: Option<usize>,
    /// The memory that the list takes, once it is charged.
    charge: OnceLock<Charge>,
}

impl Listing {
    /// A sequence of parts with a separator.
    pub(crate) fn joined(
        before: Vec<u8>,
        items: Vec<Listed>,
        after: Vec<u8>,
        between: &'static [u8],
    ) -> Listing {
        let frame = ListFrame {
            before,
            after,
            between,
            omitted: 0,
        };
        Listing::of_items(frame, items.into_iter().map(ListItem::Text).collect(), None)
    }

    /// A list of texts, and of entries that are rendered while it is sent.
    pub(crate) fn of_items(frame: ListFrame, items: Vec<ListItem>, renderer: Option<Renderer>) -> Listing {
        let between = frame.between.len() * items.len().saturating_sub(1);
        let around = frame.before.len() + between + frame.after.len();
        let length = |item: &ListItem| match item {
            ListItem::Text(text) => Some(text.len().saturating_sub(frame.omitted)),
            ListItem::Entry(_) => None,
        };
        let written: Option<usize> = items.iter().map(length).sum();
        Listing::rendered(frame, items, renderer, written.map(|written| around + written))
    }

    /// A list whose items are rendered while it is sent. The length is that of the whole text, if it is known.
    pub(crate) fn rendered(
        frame: ListFrame,
        items: Vec<ListItem>,
        renderer: Option<Renderer>,
        length: Option<usize>,
    ) -> Listing {
        Listing(Arc::new(ListingParts {
            before: frame.before,
            items,
            omitted: frame.omitted,
            after: frame.after,
            between: frame.between,
            renderer,
            length,
            charge: OnceLock::new(),
        }))
    }

    /// The length in bytes, if it is known in advance.
    pub(crate) fn len(&self) -> Option<usize> {
        self.0.length
    }

    /// Charges the memory of the list to a budget, once for all responses that share it.
    pub(crate) fn charge(&self, budget: &Budget) -> bool {
        if self.0.charge.get().is_some() {
            return true;
        }
        let held = |item: &ListItem| match item {
            ListItem::Text(text) => text.held(),
            ListItem::Entry(_) => size_of::<ListItem>(),
        };
        let items: usize = self.0.items.iter().map(held).sum();
        let held = self.0.before.len() + items + self.0.after.len();
        // Two responses may charge a shared list at once: the second charge is dropped, and the first one counts.
        let charge = budget.charge(held);
        charge.is_some_and(|charge| self.0.charge.set(charge).is_ok() || self.0.charge.get().is_some())
    }

    /// The whole text.
    pub(crate) fn into_bytes(self) -> Bytes {
        let mut out = Vec::with_capacity(self.len().unwrap_or_default());
        ListingWriter::new(self).write(usize::MAX, &mut out);
        out.into()
    }

    /// A body that is rendered while it is sent.
    pub(crate) fn into_body(self) -> ListBody {
        ListBody {
            left: self.len().map(|length| length as u64),
            writer: ListingWriter::new(self),
        }
    }

    /// The same, compressed.
    pub(crate) fn into_gzip(self) -> GzipBody {
        GzipBody::new(CompressorInput::List(ListingWriter::new(self)))
    }
}

/// The lists that are being sent. Many clients often request the same one.
#[derive(Debug, Default)]
pub(crate) struct SharedListings {
    // Weak, so that a list is freed with the last response that sends it.
    recent: Mutex<VecDeque<(String, Weak<ListingParts>)>>,
}

/// The maximum number of lists.
const SHARED: usize = 64;

impl SharedListings {
    /// A list that is being sent, with its key.
    pub(crate) fn get(&self, key: &str) -> Option<Listing> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let found = recent.iter().find(|(k, _)| k == key);
        found.and_then(|(_, list)| list.upgrade()).map(Listing)
    }

    /// Returns the list that is being sent under a key, or adds this one.
    pub(crate) fn share(&self, key: String, list: Listing) -> Listing {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(_, list)| list.strong_count() > 0);
        // Another request may have built the same list since `get`; sending that one keeps a single copy in memory.
        let found = recent.iter().find(|(k, _)| *k == key);
        if let Some(shared) = found.and_then(|(_, list)| list.upgrade()) {
            return Listing(shared);
        }
        if recent.len() >= SHARED {
            recent.pop_front();
        }
        recent.push_back((key, Arc::downgrade(&list.0)));
        list
    }
}

/// A list that is being rendered.
struct ListingWriter {
    list: Listing,
    /// The number of items written; `None` before the beginning is.
    written: Option<usize>,
    is_complete: bool,
}

impl ListingWriter {
    fn new(list: Listing) -> ListingWriter {
        ListingWriter {
            list,
            written: None,
            is_complete: false,
        }
    }

    /// Appends text until there are that many bytes, or the list ends.
    fn write(&mut self, enough: usize, out: &mut Vec<u8>) {
        let parts = &self.list.0;
        let written = self.written.get_or_insert_with(|| {
            out.extend_from_slice(&parts.before);
            0
        });
        while out.len() < enough && !self.is_complete {
            let Some(item) = parts.items.get(*written) else {
                self.is_complete = true;
                out.extend_from_slice(&parts.after);
                return;
            };
            if *written > 0 {
                out.extend_from_slice(parts.between);
            }
            *written += 1;
            let rendered = match (item, &parts.renderer) {
                (ListItem::Text(text), _) => {
                    text.write_without(parts.omitted, out);
                    continue;
                }
                (ListItem::Entry(entry), Some(renderer)) => renderer.write_entry(entry, parts.omitted, out),
                (ListItem::Entry(_), None) => Err(ApiError::internal_error("a list lacks its renderer")),
            };
            if let Err(e) = rendered {
                // Every item was readable before. The text ends here, unclosed, so that clients reject it.
                tracing::error!(why = e.message(), "a list cannot be written");
                self.is_complete = true;
            }
        }
    }
}

/// An uncompressed body.
pub(crate) struct ListBody {
    writer: ListingWriter,
    left: Option<u64>,
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.is_end_stream() {
            return Poll::Ready(None);
        }
        // The writer stops after the item that passes the limit, so chunks are longer than it by part of an item.
        let mut chunk = Vec::with_capacity(CHUNK + CHUNK / 4);
        self.writer.write(CHUNK, &mut chunk);
        let length = chunk.len() as u64;
        self.left = self.left.map(|left| left.saturating_sub(length));
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn is_end_stream(&self) -> bool {
        match self.left {
            Some(left) => left == 0,
            None => self.writer.is_complete,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The input of the compressor.
enum CompressorInput {
    List(ListingWriter),
    Bytes(Bytes),
}

/// A compressed body.
pub(crate) struct GzipBody {
    source: CompressorInput,
    /// `None` once everything is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl GzipBody {
    fn new(source: CompressorInput) -> GzipBody {
        // Level 1 is what kube-apiserver uses, for the same reason: lists are written far more often than kept.
        let encoder = GzEncoder::new(Vec::with_capacity(CHUNK), flate2::Compression::fast());
        GzipBody {
            source,
            encoder: Some(encoder),
        }
    }

    /// Bytes that are compressed as they are sent.
    pub(crate) fn of_bytes(bytes: Bytes) -> GzipBody {
        GzipBody::new(CompressorInput::Bytes(bytes))
    }
}

/// The end of a body that cannot be compressed. It lacks the trailer of gzip, by which clients notice.
fn broken_off(e: &std::io::Error) -> Option<Result<Frame<Bytes>, Infallible>> {
    tracing::error!(error = %e, "cannot compress a response");
    None
}

impl Body for GzipBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(mut encoder) = self.encoder.take() else {
            return Poll::Ready(None);
        };
        let mut written = Vec::new();
        for _ in 0..CHUNKS_PER_TURN {
            let chunk = match &mut self.source {
                CompressorInput::List(writer) => {
                    written.clear();
                    writer.write(CHUNK, &mut written);
                    Bytes::new()
                }
                CompressorInput::Bytes(bytes) => bytes.split_to(bytes.len().min(CHUNK)),
            };
            let chunk = if chunk.is_empty() { &*written } else { &*chunk };
            if let Err(e) = encoder.write_all(chunk) {
                return Poll::Ready(broken_off(&e));
            }
            if chunk.is_empty() {
                return Poll::Ready(match encoder.finish() {
                    Ok(rest) => Some(Ok(Frame::data(rest.into()))),
                    Err(e) => broken_off(&e),
                });
            }
            // Compressed output collects until it fills a TLS record; a frame per chunk of input would be tiny.
            if encoder.get_ref().len() >= CHUNK / 2 {
                let out = std::mem::replace(encoder.get_mut(), Vec::with_capacity(CHUNK));
                self.encoder = Some(encoder);
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
        self.encoder = Some(encoder);
        // Nothing will wake the task later: it only lets others run between two turns.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
