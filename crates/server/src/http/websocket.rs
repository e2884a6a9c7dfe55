//! Watches over WebSocket: the handshake, and events as frames.

use crate::api::MAX_BODY;
use crate::auth::authentication::{Credential, KnownTokens};
use crate::codec::cbor;
use crate::codec::media::Encoding;
use crate::http::reply::Body;
use crate::rest::watch::Events;
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf as _, Bytes};
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use scantling_notation::url::Url;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::sync::PollSemaphore;
use tokio_util::task::TaskTracker;

/// The prefix of a subprotocol that is a token, because browsers cannot send an `Authorization` header.
const BEARER: &str = "base64url.bearer.authorization.k8s.io.";

/// The version of WebSocket.
const VERSION: &str = "13";

/// The size of reads: clients send almost nothing.
const READ: usize = 4096;

/// The time for sending the rest once a watch has ended.
const LINGER: Duration = Duration::from_secs(1);

/// Go's base64, which ignores trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The watches over WebSocket that are running.
#[derive(Debug)]
pub(crate) struct Watches {
    pub(crate) tasks: TaskTracker,
    /// Held by the one watch that is sending. An event wakes all watches at once; without turns, copying and encrypting
    /// large events for all of them would occupy every worker.
    turn: Arc<Semaphore>,
}

impl Default for Watches {
    fn default() -> Watches {
        let (tasks, turn) = (TaskTracker::new(), Arc::new(Semaphore::new(1)));
        Watches { tasks, turn }
    }
}

/// A request to upgrade the connection to WebSocket.
#[derive(Debug)]
pub(crate) struct Upgrade {
    connection: OnUpgrade,
    method: Method,
    headers: HeaderMap,
    /// The `Host` header.
    location: String,
    /// The offered subprotocols.
    protocols: String,
}

impl Upgrade {
    /// Returns the upgrade that a request asks for. Only HTTP/1.1 connections can be upgraded.
    pub(crate) fn asked(parts: &mut Parts) -> Option<Box<Upgrade>> {
        let mut connection = parts.headers.get_all(header::CONNECTION).iter();
        if !header_str(&parts.headers, header::UPGRADE).eq_ignore_ascii_case("websocket")
            || !connection.any(mentions_upgrade)
        {
            return None;
        }
        let host = match parts.uri.authority() {
            Some(authority) => authority.to_string(),
            None => header_str(&parts.headers, header::HOST),
        };
        let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
        Some(Box::new(Upgrade {
            connection: parts.extensions.remove()?,
            method: parts.method.clone(),
            location: format!("wss://{host}{path}"),
            protocols: header_str(&parts.headers, header::SEC_WEBSOCKET_PROTOCOL),
            headers: parts.headers.clone(),
        }))
    }

    /// The credential among the subprotocols. If it is accepted, it is no longer offered.
    pub(crate) fn credential(&mut self, tokens: &KnownTokens) -> Credential {
        let lines = self.headers.get_all(header::SEC_WEBSOCKET_PROTOCOL);
        let lines = lines.iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        let (token, others) = match bearer(lines) {
            Ok(Some(found)) => found,
            Ok(None) => return Credential::Absent,
            Err(Malformed) => return Credential::Rejected,
        };
        let credential = tokens.holder(&token);
        // kube-apiserver's authenticator hides the token from the handshake only after it was accepted.
        if matches!(credential, Credential::Accepted(_)) {
            self.protocols = others;
        }
        credential
    }

    /// The response to a watch. Its events are sent as frames once the connection is upgraded.
    pub(crate) fn answer(self, events: Events, watches: &Watches) -> Response<Body> {
        let answer = self.handshake();
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let turn = PollSemaphore::new(Arc::clone(&watches.turn));
            watches.tasks.spawn(serve(self.connection, events, turn));
        }
        answer
    }

    /// Checks the handshake, with kube-apiserver's errors in its order.
    fn handshake(&self) -> Response<Body> {
        let field = |name| header_str(&self.headers, name);
        let bad = |why: &str| refusal(StatusCode::BAD_REQUEST, why);
        if self.method != Method::GET {
            return refusal(StatusCode::METHOD_NOT_ALLOWED, "bad method");
        }
        if !self.headers.get(header::CONNECTION).is_some_and(mentions_upgrade) {
            return bad("not websocket protocol");
        }
        let key = field(header::SEC_WEBSOCKET_KEY);
        if key.is_empty() {
            return bad("mismatch challenge/response");
        }
        if field(header::SEC_WEBSOCKET_VERSION) != VERSION {
            let mut refusal = bad("missing or bad WebSocket Version");
            let version = HeaderValue::from_static(VERSION);
            refusal
                .headers_mut()
                .insert(header::SEC_WEBSOCKET_VERSION, version);
            return refusal;
        }
        if let Err(why) = Url::check(&self.location) {
            return bad(&why);
        }
        // An origin is required, but any origin is accepted.
        if Url::check(&field(header::ORIGIN)).is_err() {
            return refusal(StatusCode::FORBIDDEN, "");
        }
        // No subprotocol is known: a single one is accepted, several are not.
        let protocol = self.protocols.trim();
        if protocol.contains(',') {
            return bad("");
        }
        let mut response = Response::new(Full::default().boxed_unsync());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(accept) = derive_accept_key(key.as_bytes()).try_into() {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let (false, Ok(protocol)) = (protocol.is_empty(), protocol.try_into()) {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

/// A header; the first of several with one name.
fn header_str(headers: &HeaderMap, name: HeaderName) -> String {
    let value = headers.get(name).map(HeaderValue::as_bytes);
    String::from_utf8_lossy(value.unwrap_or_default()).into_owned()
}

fn mentions_upgrade(connection: &HeaderValue) -> bool {
    let mut words = connection.as_bytes().windows("upgrade".len());
    words.any(|w| w.eq_ignore_ascii_case(b"upgrade"))
}

/// The error about a malformed token among the subprotocols.
#[derive(Debug, PartialEq)]
struct Malformed;

/// Returns the token among the subprotocols, and the others. A token needs another subprotocol, with which the server
/// responds.
fn bearer(lines: impl Iterator<Item = impl AsRef<str>>) -> Result<Option<(String, String)>, Malformed> {
    let (mut token, mut others) = (None, Vec::new());
    for line in lines {
        for protocol in line.as_ref().split(',').map(str::trim) {
            match protocol.strip_prefix(BEARER) {
                None => others.push(protocol.to_owned()),
                Some(_) if token.is_some() => return Err(Malformed),
                Some(encoded) => {
                    let decoded = BASE64.decode(encoded).map_err(|_| Malformed)?;
                    token = Some(String::from_utf8(decoded).map_err(|_| Malformed)?);
                }
            }
        }
    }
    match token.filter(|t| !t.is_empty()) {
        None => Ok(None),
        Some(_) if others.is_empty() => Err(Malformed),
        Some(token) => Ok(Some((token, others.join(",")))),
    }
}

fn refusal(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(Full::from(why.to_owned()).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Sends events until the watch ends or the client disconnects.
async fn serve(connection: OnUpgrade, mut events: Events, turn: PollSemaphore) {
    let Ok(connection) = connection.await else {
        return;
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .max_frame_size(Some(MAX_BODY))
        .max_message_size(Some(MAX_BODY));
    let socket = Socket::from_raw_socket(TokioIo::new(connection), Role::Server, Some(config)).await;
    // Concurrently, because a client that does not read may still close.
    let (mut sink, mut stream) = socket.split();
    let sent = async {
        while let Some(mut chunk) = events.chunks.recv().await {
            while let Some(message) = next_event(events.encoding, &mut chunk) {
                // One flush for the events of a chunk, which are often small.
                sink.feed(message).await?;
            }
            sink.flush().await?;
        }
        Ok::<_, Error>(())
    };
    let done = async {
        loop {
            match stream.next().await {
                // Messages of clients are ignored; pings are answered by the library.
                Some(Ok(message)) if !message.is_close() => {}
                Some(Err(Error::Protocol(_))) => return CloseCode::Protocol,
                Some(Err(Error::Utf8(_))) => return CloseCode::Invalid,
                _ => return CloseCode::Normal,
            }
        }
    };
    let code = tokio::select! {
        _ = in_turns(sent, turn) => CloseCode::Normal,
        code = done => code,
    };
    // Ends the watch before the closing handshake, which may take until its timeout.
    drop(events);
    if let Ok(socket) = sink.reunite(stream) {
        // The rest is dropped after the timeout.
        let _ = tokio::time::timeout(LINGER, close(socket, code)).await;
    }
}

/// Polls a future only while it holds the permit, and releases the permit after every poll.
async fn in_turns<F: Future>(future: F, mut turn: PollSemaphore) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let permit = ready!(turn.poll_acquire(context));
        let output = future.as_mut().poll(context);
        drop(permit);
        output
    })
    .await
}

/// Splits the first event off a chunk, without the separator of events.
fn next_event(encoding: Encoding, chunk: &mut Bytes) -> Option<Message> {
    match encoding {
        Encoding::Protobuf => {
            let length = usize::try_from(chunk.try_get_u32().ok()?).ok()?;
            (length <= chunk.len()).then(|| Message::Binary(chunk.split_to(length)))
        }
        Encoding::Cbor => {
            let length = cbor::first_item(chunk)?;
            Some(Message::Binary(chunk.split_to(length)))
        }
        Encoding::Json | Encoding::Yaml => {
            // JSON has line breaks only between events; kube-apiserver keeps them.
            let end = chunk.iter().position(|b| *b == b'\n')? + 1;
            Utf8Bytes::try_from(chunk.split_to(end)).ok().map(Message::Text)
        }
    }
}

/// Closes the connection, and waits until the client has noticed: closing a socket with unread input would discard
/// output that the client has not read yet.
async fn close(mut socket: Socket, code: CloseCode) {
    let reason = Utf8Bytes::default();
    // Fails if the client closed first; then the reply is still to be sent.
    let _ = socket.close(Some(CloseFrame { code, reason })).await;
    let _ = socket.flush().await;
    let mut connection = socket.into_inner();
    let _ = connection.shutdown().await;
    let _ = tokio::io::copy(&mut connection, &mut tokio::io::sink()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(lines: &[&str]) -> Result<Option<(String, String)>, Malformed> {
        let lines: Vec<String> = lines.iter().map(|l| l.replace("B.", BEARER)).collect();
        bearer(lines.iter())
    }

    #[test]
    fn tokens_in_subprotocols() {
        let found = |others: &str| Ok(Some(("admintoken".to_owned(), others.to_owned())));
        let table: [(&[&str], _); 14] = [
            (&["B.YWRtaW50b2tlbg, x"], found("x")),
            (&["x,B.YWRtaW50b2tlbg"], found("x")),
            (&["x", "B.YWRtaW50b2tlbg", "y"], found("x,y")),
            (&["B.YWRtaW50b2tlbg,"], found("")),
            // Trailing bits of a group are ignored.
            (&["B.YWRtaW50b2tlbh, x"], found("x")),
            (&["x"], Ok(None)),
            (&["B.YWRtaW50b2tlbg"], Err(Malformed)),
            (&["B.YWRtaW50b2tlbg, B.YWRtaW50b2tlbg, x"], Err(Malformed)),
            (&["B.YWRtaW50b2tlbg==, x"], Err(Malformed)),
            (&["B., x"], Ok(None)),
            (&["B.!!, x"], Err(Malformed)),
            (&["B.+/+/, x"], Err(Malformed)),
            (&["B._w, x"], Err(Malformed)),
            (&[], Ok(None)),
        ];
        for (lines, want) in table {
            assert_eq!(token(lines), want, "{lines:?}");
        }
    }

    #[test]
    fn chunks_are_split_into_events() {
        let events = |encoding, chunk: &'static [u8]| {
            let mut chunk = Bytes::from_static(chunk);
            let events = std::iter::from_fn(|| next_event(encoding, &mut chunk));
            events.map(|e| format!("{e:?}")).collect::<Vec<_>>().join(" ")
        };
        let text = |t: &str| format!("{:?}", Message::text(t));
        let binary = |b: &'static [u8]| format!("{:?}", Message::binary(b));
        let want = [text("{\"a\":1}\n"), text("{}\n")].join(" ");
        assert_eq!(events(Encoding::Json, b"{\"a\":1}\n{}\n"), want);
        assert_eq!(events(Encoding::Json, b""), "");
        let want = [binary(b"a\n"), binary(b""), binary(b"c")].join(" ");
        let chunk = b"\0\0\0\x02a\n\0\0\0\0\0\0\0\x01c";
        assert_eq!(events(Encoding::Protobuf, chunk), want);
        assert_eq!(events(Encoding::Protobuf, b"\0\0\0\x09c"), "");
        let want = [binary(b"\x81\x01"), binary(b"\xa0")].join(" ");
        assert_eq!(events(Encoding::Cbor, b"\x81\x01\xa0"), want);
        assert_eq!(events(Encoding::Cbor, b"\x81"), "");
    }
}
