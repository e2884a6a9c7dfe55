//! Long lists and documents, written while they are sent: a chunk at a time, so that no list stands in memory as a whole.

use crate::text::Text;
use crate::view::ListMeta;
use bytes::Bytes;
use flate2::write::GzEncoder;
use hyper::body::{Body, Frame, SizeHint};
use scantling_value::Value;
use std::convert::Infallible;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};

/// How much is written at once: a few records of TLS.
const CHUNK: usize = 64 * 1024;

/// A list of objects, or of the parts of a document, not yet written.
#[derive(Debug)]
pub(crate) struct Listing {
    before: Vec<u8>,
    items: Vec<Text>,
    after: Vec<u8>,
    /// What stands between two items.
    between: &'static [u8],
}

impl Listing {
    /// A list of a kind.
    pub(crate) fn new(api_version: &str, kind: &str, items: Vec<Text>, meta: &ListMeta) -> Listing {
        let mut before = b"{\"apiVersion\":".to_vec();
        Value::from(api_version).write_json(&mut before);
        before.extend_from_slice(b",\"items\":[");
        let mut after = b"],\"kind\":".to_vec();
        Value::from(kind).write_json(&mut after);
        after.extend_from_slice(b",\"metadata\":");
        meta.to_value().write_json(&mut after);
        after.extend_from_slice(b"}\n");
        Listing {
            before,
            items,
            after,
            between: b",",
        }
    }

    /// Parts that follow each other.
    pub(crate) fn joined(before: Vec<u8>, items: Vec<Text>, after: Vec<u8>) -> Listing {
        Listing {
            before,
            items,
            after,
            between: b"",
        }
    }

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        let items: usize = self.items.iter().map(Text::len).sum();
        let between = self.between.len() * self.items.len().saturating_sub(1);
        self.before.len() + items + between + self.after.len()
    }

    /// All of it.
    pub(crate) fn into_bytes(self) -> Bytes {
        let mut out = Vec::with_capacity(self.len());
        Writer::of(self).write(usize::MAX, &mut out);
        out.into()
    }

    /// A body that is written as it is sent.
    pub(crate) fn into_body(self) -> ListBody {
        ListBody {
            left: self.len() as u64,
            writer: Writer::of(self),
        }
    }

    /// The same, compressed.
    pub(crate) fn into_gzip(self) -> GzipBody {
        GzipBody {
            // Level 1 is what kube-apiserver uses, for the same reason: lists are written far more often than kept.
            encoder: Some(GzEncoder::new(
                Vec::with_capacity(CHUNK),
                flate2::Compression::fast(),
            )),
            writer: Writer::of(self),
        }
    }
}

/// A list on its way out.
struct Writer {
    before: Vec<u8>,
    items: std::vec::IntoIter<Text>,
    after: Vec<u8>,
    between: &'static [u8],
    begun: bool,
}

impl Writer {
    fn of(list: Listing) -> Writer {
        Writer {
            before: list.before,
            items: list.items.into_iter(),
            after: list.after,
            between: list.between,
            begun: false,
        }
    }

    /// Appends what comes next, until there are that many bytes or it is at its end.
    fn write(&mut self, enough: usize, out: &mut Vec<u8>) {
        out.append(&mut self.before);
        while out.len() < enough {
            let Some(item) = self.items.next() else {
                out.append(&mut self.after);
                return;
            };
            if self.begun {
                out.extend_from_slice(self.between);
            }
            self.begun = true;
            item.write(out);
        }
    }
}

/// A list as it is.
pub(crate) struct ListBody {
    writer: Writer,
    left: u64,
}

impl Body for ListBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut chunk = Vec::with_capacity(CHUNK + CHUNK / 4);
        self.writer.write(CHUNK, &mut chunk);
        self.left = self.left.saturating_sub(chunk.len() as u64);
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A list that is compressed on its way.
pub(crate) struct GzipBody {
    writer: Writer,
    /// Gone once everything is written.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Body for GzipBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(mut encoder) = self.encoder.take() else {
            return Poll::Ready(None);
        };
        let mut chunk = Vec::with_capacity(CHUNK + CHUNK / 4);
        loop {
            chunk.clear();
            self.writer.write(CHUNK, &mut chunk);
            // Writing to memory does not fail.
            let _ = encoder.write_all(&chunk);
            if chunk.is_empty() {
                let rest = encoder.finish().unwrap_or_default();
                return Poll::Ready(Some(Ok(Frame::data(rest.into()))));
            }
            if encoder.get_ref().len() >= CHUNK / 4 {
                let out = std::mem::replace(encoder.get_mut(), Vec::with_capacity(CHUNK));
                self.encoder = Some(encoder);
                return Poll::Ready(Some(Ok(Frame::data(out.into()))));
            }
        }
    }
}
