//! Responses: bodies, encodings, headers.

use crate::codec::media::{Accept, Encoding, Supported, negotiate};
use crate::codec::pretty::Indenter;
use crate::http::memory::{Budget, Charge};
use crate::rest::listing::{COMPRESSOR, GzipBody, Listing};
use crate::rest::watch::Events;
use crate::status::ApiError;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Frame;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use scantling_value::Value;
use std::collections::BTreeSet;
use std::convert::Infallible;

/// The body of every response.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A response before it is encoded, so that warnings and compression need no copy.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The media type; empty for none.
    pub(crate) content_type: &'static str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Content,
}

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Content {
    /// The complete body.
    Whole(Bytes),
    /// A list that is rendered while it is sent.
    List(Listing),
    /// A stream that ends by itself.
    Stream(Body),
    /// The events of a watch.
    Events(Events),
}

/// The media type of text.
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// From this size on, bodies are compressed for clients that accept it, as by kube-apiserver, and lists are
/// encoded while they are sent.
pub(crate) const STREAMED: usize = 128 * 1024;

/// Bodies up to this size count as part of their request, whose number is bounded.
const UNCHARGED: usize = 64 * 1024;

/// The bytes of a response that a connection and its body buffer.
const SEND_BUFFER: usize = 128 * 1024;

impl Reply {
    /// Plain text, with a header against content sniffing.
    pub(crate) fn plain_text(status: u16, text: impl Into<Bytes>) -> Reply {
        Reply::bytes(status, PLAIN_TEXT, text).with(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
    }

    /// Bytes of a media type.
    pub(crate) fn bytes(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply {
            status,
            content_type,
            headers: HeaderMap::new(),
            body: Content::Whole(body.into()),
        }
    }

    /// An object in an encoding.
    pub(crate) fn object(status: u16, value: &Value, encoding: Encoding) -> Reply {
        let written = match encoding {
            Encoding::Json => None,
            Encoding::Yaml => Some(scantling_value::yaml::encode(value).into_bytes()),
            Encoding::Protobuf => crate::codec::protobuf::write(value),
            Encoding::Cbor => Some(crate::codec::cbor::encode(value)),
        };
        if let Some(body) = written {
            return Reply::bytes(status, encoding.content_type(), body);
        }
        let mut out = Vec::with_capacity(1024);
        crate::codec::order::write(value, &mut out);
        out.push(b'\n');
        Reply::bytes(status, Encoding::Json.content_type(), out)
    }

    /// A list of objects, as JSON.
    pub(crate) fn list(list: Listing) -> Reply {
        let mut reply = Reply::bytes(200, Encoding::Json.content_type(), Bytes::new());
        reply.body = if list.len().is_some_and(|length| length < STREAMED) {
            Content::Whole(list.into_bytes())
        } else {
            Content::List(list)
        };
        reply
    }

    /// An error in the negotiated encoding, if there is one.
    pub(crate) fn error(e: &ApiError, accept: Accept<'_>) -> Reply {
        let mut r = match negotiate(accept, Supported::Document) {
            Ok(wanted) => Reply::object(e.code(), &e.to_status(), wanted.encoding),
            // JSON, if the client accepts no supported encoding.
            Err(_) => Reply::object(e.code(), &e.to_status(), Encoding::Json).indented(),
        };
        if let Some(seconds) = e.retry_after_seconds() {
            r.headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        r
    }

    /// The plain 404 response.
    pub(crate) fn page_not_found() -> Reply {
        Reply::plain_text(404, "404 page not found\n")
    }

    /// The plain response to a watch path without a resource.
    pub(crate) fn incomplete(uri: &str) -> Reply {
        let text = format!(
            "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, \
             {uri}\n",
            scantling_value::go::quote(uri)
        );
        Reply::plain_text(500, text)
    }

    /// Indents JSON, except in streams.
    pub(crate) fn indented(mut self) -> Reply {
        if !self.content_type.starts_with(Encoding::Json.content_type()) {
            return self;
        }
        let mut indenter = Indenter::default();
        self.body = match self.body {
            Content::Whole(bytes) => {
                let mut out = Vec::with_capacity(2 * bytes.len());
                indenter.write(&bytes, &mut out);
                Content::Whole(out.into())
            }
            Content::List(list) => {
                let indent = move |frame: Frame<Bytes>| {
                    frame.map_data(|piece| {
                        let mut out = Vec::with_capacity(2 * piece.len());
                        indenter.write(&piece, &mut out);
                        Bytes::from(out)
                    })
                };
                Content::Stream(list.into_body().map_frame(indent).boxed_unsync())
            }
            stream @ (Content::Stream(_) | Content::Events(_)) => stream,
        };
        self
    }

    /// Adds a header.
    pub(crate) fn with(mut self, name: HeaderName, value: &str) -> Reply {
        if let Ok(v) = HeaderValue::from_str(value) {
            self.headers.insert(name, v);
        }
        self
    }

    /// Adds `Warning` headers, each text once; long texts are truncated as by kube-apiserver.
    pub(crate) fn warn(&mut self, warnings: &[String]) {
        const TOTAL: usize = 4096;
        const EACH: usize = 256;
        let mut seen = BTreeSet::new();
        let told = warnings
            .iter()
            .filter(|text| !text.is_empty() && seen.insert(*text));
        let texts: Vec<&String> = told.collect();
        // Go counts runes, also where it cuts.
        let all: usize = texts.iter().map(|t| t.chars().count()).sum();
        let mut written = 0;
        for text in texts {
            let text: String = if all > TOTAL {
                text.chars().take(EACH).collect()
            } else {
                text.clone()
            };
            // Checked before the text is added, so the last one may exceed the total, as in kube-apiserver.
            if written >= TOTAL {
                break;
            }
            written += text.chars().count();
            let value = warning(&text).and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok());
            if let Some(value) = value {
                self.headers.append(header::WARNING, value);
            }
        }
    }

    /// The length of the body, unless it is a stream.
    pub(crate) fn size(&self) -> Option<usize> {
        match &self.body {
            Content::Whole(bytes) => Some(bytes.len()),
            Content::List(list) => list.len(),
            Content::Stream(_) | Content::Events(_) => None,
        }
    }

    /// Charges the memory of the body to a budget until it is sent; `None` if the budget is exhausted.
    pub(crate) fn charge(&self, budget: &Budget, accepts_gzip: bool) -> Option<Charge> {
        let compressor = if accepts_gzip { COMPRESSOR } else { 0 };
        match &self.body {
            Content::Whole(bytes) if bytes.len() <= UNCHARGED => Some(budget.empty()),
            Content::Whole(bytes) if bytes.len() < STREAMED => budget.charge(bytes.len()),
            Content::Whole(bytes) => budget.charge(bytes.len() + compressor),
            Content::List(list) => budget
                .charge(SEND_BUFFER + compressor)
                .filter(|_| list.charge(budget)),
            Content::Stream(_) => budget.charge(SEND_BUFFER),
            // A watch charges what it queues.
            Content::Events(_) => Some(budget.empty()),
        }
    }

    /// The HTTP response.
    pub(crate) fn into_response(mut self, accepts_gzip: bool) -> Response<Body> {
        let body = match self.body {
            Content::Stream(body) => body,
            Content::Events(events) => events.into_body(),
            Content::List(list) if accepts_gzip => {
                self.headers
                    .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                list.into_gzip().boxed_unsync()
            }
            Content::List(list) => {
                if let Some(length) = list.len() {
                    self.headers
                        .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
                }
                list.into_body().boxed_unsync()
            }
            // Compressed bodies are sent without a length, because it is unknown until the end.
            Content::Whole(bytes) if accepts_gzip && bytes.len() >= STREAMED => {
                self.headers
                    .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                GzipBody::of_bytes(bytes).boxed_unsync()
            }
            Content::Whole(bytes) => {
                self.headers
                    .insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
                Full::new(bytes).boxed_unsync()
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() =
            // All codes are constants of this program, so the conversion succeeds.
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.headers_mut() = self.headers;
        let headers = response.headers_mut();
        if !self.content_type.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        headers
            // kube-apiserver forbids caching of everything that does not say otherwise.
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }
}

/// A `Warning` header's value: code 299, no agent, a quoted text. Like kube-apiserver, `None` for a text with control
/// characters.
fn warning(text: &str) -> Option<String> {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    (!text.contains(char::is_control)).then(|| format!("299 - \"{quoted}\""))
}
