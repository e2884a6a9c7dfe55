//! Hand-written HTTP/2 frames: attacks send what a client library refuses to send.

use crate::AttackError;
use crate::http::{Endpoint, Protocol, Tls};
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::time::Duration;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection of HTTP/2.
pub(crate) struct Http2 {
    pub(crate) stream: Tls,
    token: String,
}

impl Http2 {
    /// Connects and sends the preface. `window` is the initial stream window: how much of each body the
    /// server may send before the client asks for more.
    pub(crate) fn connect(
        endpoint: &Endpoint,
        source: Ipv4Addr,
        patience: Duration,
        window: u32,
    ) -> Result<Http2, AttackError> {
        let stream = endpoint.tls(endpoint.tcp(source, patience)?, Protocol::Http2)?;
        let mut connection = Http2 {
            stream,
            token: endpoint.token.clone(),
        };
        // Setting 4 is SETTINGS_INITIAL_WINDOW_SIZE.
        let mut settings = vec![0, 4];
        settings.extend_from_slice(&window.to_be_bytes());
        let mut out = PREFACE.to_vec();
        out.extend(frame(SETTINGS, 0, 0, &settings));
        connection.send(&out)?;
        Ok(connection)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), AttackError> {
        self.stream.write_all(bytes)?;
        self.stream.flush()?;
        Ok(())
    }

    /// The frame that begins a request and, without a body, ends it.
    pub(crate) fn request(
        &self,
        stream: u32,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        end: bool,
    ) -> Vec<u8> {
        let block = self.block(method, path, more);
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        frame(HEADERS, flags, stream, &block)
    }

    /// The header block of a request, as literals without indexing.
    pub(crate) fn block(&self, method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let credentials = format!("Bearer {}", self.token);
        let mut block = Vec::new();
        let pseudo = [
            (":method", method),
            (":scheme", "https"),
            (":authority", "localhost"),
            (":path", path),
        ];
        for (name, value) in pseudo
            .iter()
            .chain(&[("authorization", credentials.as_str())])
            .chain(more)
        {
            literal(&mut block, name, value);
        }
        block
    }
}

/// One frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    // The length of a frame has 24 bits.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = length.get(1..).unwrap_or_default().to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// Appends a header field as a literal without indexing or Huffman coding.
pub(crate) fn literal(out: &mut Vec<u8>, name: &str, value: &str) {
    // A literal header field without indexing and with a new name, so no dynamic table is needed.
    out.push(0);
    for text in [name, value] {
        integer(out, text.len());
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends an integer with a 7-bit prefix.
fn integer(out: &mut Vec<u8>, mut n: usize) {
    let low = |n: usize| u8::try_from(n & 0x7f).unwrap_or(0);
    // An HPACK integer with a prefix of seven bits; the eighth bit would announce Huffman coding.
    if n < 0x7f {
        out.push(low(n));
        return;
    }
    out.push(0x7f);
    n -= 0x7f;
    while n >= 0x80 {
        out.push(low(n) | 0x80);
        n >>= 7;
    }
    out.push(low(n));
}
