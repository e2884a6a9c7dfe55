//! Watches over WebSocket: frames, authentication, and the end of streams.

use crate::client::{Asking, Client};
use crate::metrics::{metrics, sample};
use crate::support::{WIDGETS, eventually, serve_widgets, widget};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use expect_test::expect;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::{HeaderMap, Request};
use scantling_server::{Config, Server};
use scantling_value::{Limits, Value, json};
use std::collections::BTreeMap;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// The headers of the handshake.
const HANDSHAKE: [(&str, &str); 5] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Origin", "https://example.com"),
];

/// Existing objects, and then a bookmark.
const FROM_THE_START: &str =
    "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// Opens a WebSocket; `headers` are added to or replace those of the handshake.
async fn open(client: &Client, path: &str, headers: &[(&str, &str)]) -> Result<(Socket, HeaderMap), String> {
    let mut all = BTreeMap::from(HANDSHAKE);
    all.extend(client.authorization().map(|a| ("Authorization", a)));
    all.extend(headers.iter().copied());
    let mut request = Request::builder()
        .uri(format!("wss://x{path}"))
        .header("Host", "x");
    for (name, value) in all {
        request = request.header(name, value);
    }
    let request = request.body(()).expect("a request");
    let connection = client.open().await.expect("a connection");
    match client_async(request, connection).await {
        Ok((socket, response)) => Ok((socket, response.headers().clone())),
        Err(Error::Http(response)) => Err(response.status().to_string()),
        Err(e) => Err(e.to_string()),
    }
}

async fn watch(client: &Client, path: &str) -> Socket {
    let opened = open(client, path, &[]).await;
    opened.unwrap_or_else(|e| panic!("{path}: {e}")).0
}

/// The next event: its type, and the name of its object.
async fn event(socket: &mut Socket) -> String {
    let message = socket
        .next()
        .await
        .expect("a frame")
        .expect("a frame that is one");
    let Message::Text(text) = message else {
        panic!("not an event: {message:?}");
    };
    let event = json::decode(text.as_bytes(), Limits::SAFE).expect("an event");
    let get = |path: &[&str]| {
        let found = path.iter().try_fold(&event, |v, key| v.get(key));
        found.map_or_else(String::new, |v| {
            v.as_str().map_or_else(|| v.to_json(), str::to_owned)
        })
    };
    let about = match get(&["type"]).as_str() {
        "ERROR" => get(&["object", "message"]).replace(|c: char| c.is_ascii_digit(), ""),
        "BOOKMARK" => get(&["object", "metadata", "annotations"]),
        _ => get(&["object", "metadata", "name"]),
    };
    format!("{} {about}", get(&["type"]))
}

/// Expects nothing more until the server closes the connection; returns the code.
async fn closed(socket: &mut Socket) -> Option<CloseCode> {
    let last = socket
        .next()
        .await
        .expect("a frame")
        .expect("a frame that is one");
    let Message::Close(frame) = last else {
        panic!("not the end: {last:?}");
    };
    assert!(socket.next().await.is_none_or(|end| end.is_err()));
    frame.map(|f| f.code)
}

/// The number of running watches of widgets.
async fn watches(client: &mut Client) -> Option<f64> {
    let labels = "{verb=\"WATCH\",group=\"example.com\",version=\"v1\",resource=\"widgets\",subresource=\"\",\
                  scope=\"namespace\",component=\"apiserver\"}";
    let text = metrics(client).await;
    sample(&text, &format!("apiserver_longrunning_requests{labels}"))
}

async fn no_watch_is_left(client: &mut Client) {
    eventually("the watch is closed", async || watches(client).await == Some(0.0)).await;
}

#[tokio::test]
async fn events_are_sent_as_frames() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    for name in ["a", "b"] {
        client.send("POST", WIDGETS, &widget(name)).await;
    }
    let mut socket = watch(&client, &format!("{WIDGETS}?{FROM_THE_START}")).await;
    assert_eq!(event(&mut socket).await, "ADDED a");
    assert_eq!(event(&mut socket).await, "ADDED b");
    assert_eq!(
        event(&mut socket).await,
        "BOOKMARK {\"k8s.io/initial-events-end\":\"true\"}"
    );
    assert_eq!(watches(&mut client).await, Some(1.0));
    client.send("POST", WIDGETS, &widget("c")).await;
    assert_eq!(event(&mut socket).await, "ADDED c");
    let patch = r#"{"spec":{"size":2}}"#;
    client.send("PATCH", &format!("{WIDGETS}/c"), patch).await;
    assert_eq!(event(&mut socket).await, "MODIFIED c");
    client.send("DELETE", &format!("{WIDGETS}/c"), "").await;
    assert_eq!(event(&mut socket).await, "DELETED c");
    // Client messages are ignored, except pings.
    socket.send(Message::text("hello")).await.expect("sent");
    socket
        .send(Message::binary(vec![0xff; 1 << 20]))
        .await
        .expect("sent");
    let ping = Bytes::from_static(b"are you there");
    socket.send(Message::Ping(ping.clone())).await.expect("sent");
    let pong = socket
        .next()
        .await
        .expect("a frame")
        .expect("a frame that is one");
    assert_eq!(pong, Message::Pong(ping));
    let goodbye = CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    };
    socket.close(Some(goodbye)).await.expect("sent");
    assert_eq!(closed(&mut socket).await, Some(CloseCode::Normal));
    no_watch_is_left(&mut client).await;
    let text = metrics(&mut client).await;
    let requests = "apiserver_request_total{verb=\"WATCH\",group=\"example.com\",version=\"v1\",\
                    resource=\"widgets\",subresource=\"\",scope=\"namespace\",component=\"apiserver\",\
                    dry_run=\"\",code=\"0\"}";
    assert_eq!(sample(&text, requests), Some(1.0), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn a_disconnected_client_ends_its_watch() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let mut socket = watch(&client, &format!("{WIDGETS}?{FROM_THE_START}")).await;
    event(&mut socket).await;
    assert_eq!(watches(&mut client).await, Some(1.0));
    drop(socket);
    no_watch_is_left(&mut client).await;
    server.stop().await;
}

#[tokio::test]
async fn watches_end_on_timeout_or_error() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    client.send("POST", WIDGETS, &widget("a")).await;
    let old_path = "/apis/example.com/v1/watch/namespaces/default/widgets/a";
    for (path, want) in [
        (format!("{WIDGETS}?watch=1&timeoutSeconds=1"), "ADDED a"),
        (format!("{old_path}?timeoutSeconds=1"), "ADDED a"),
        // A watch that cannot resume has been upgraded nevertheless.
        (
            format!("{WIDGETS}?watch=1&resourceVersion=1"),
            "ERROR too old resource version:  ()",
        ),
    ] {
        let mut socket = watch(&client, &path).await;
        assert_eq!(event(&mut socket).await, want, "{path}");
        assert_eq!(closed(&mut socket).await, Some(CloseCode::Normal), "{path}");
    }
    no_watch_is_left(&mut client).await;
    server.stop().await;
}

#[tokio::test]
async fn shutdown_sends_a_close_frame() {
    let (server, client) = serve_widgets(Config::default()).await;
    let mut socket = watch(&client, &format!("{WIDGETS}?{FROM_THE_START}")).await;
    event(&mut socket).await;
    let stopping = tokio::spawn(server.stop());
    assert_eq!(closed(&mut socket).await, Some(CloseCode::Normal));
    stopping.await.expect("stopped");
}

#[tokio::test]
async fn protobuf_events_are_binary_frames() {
    let (server, client) = serve_widgets(Config::default()).await;
    let path = "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Ddefault&timeoutSeconds=1";
    let accept = [("Accept", "application/vnd.kubernetes.protobuf")];
    let (mut socket, _) = open(&client, path, &accept).await.expect("a watch");
    let message = socket
        .next()
        .await
        .expect("a frame")
        .expect("a frame that is one");
    let Message::Binary(bytes) = message else {
        panic!("not binary: {message:?}");
    };
    // No length prefix: the frame has a length.
    assert!(bytes.starts_with(b"\n\x05ADDED"), "{bytes:?}");
    assert_eq!(closed(&mut socket).await, Some(CloseCode::Normal));
    server.stop().await;
}

#[tokio::test]
async fn refused_upgrades() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let watch = format!("{WIDGETS}?watch=1&timeoutSeconds=1");
    let bad_timeout = format!("{WIDGETS}?watch=1&timeoutSeconds=x");
    let old_path = "/apis/example.com/v1/watch/namespaces/default/widgets";
    let mut said = String::new();
    // Headers with an empty value are removed.
    for (method, path, headers) in [
        ("GET", bad_timeout.as_str(), &[][..]),
        ("GET", watch.as_str(), &[("Accept", "application/yaml")]),
        ("POST", old_path, &[]),
        ("GET", &watch, &[("Sec-WebSocket-Key", "")]),
        ("GET", &watch, &[("Sec-WebSocket-Version", "8")]),
        ("GET", &watch, &[("Origin", "")]),
        ("GET", &watch, &[("Origin", "null")]),
        ("GET", &watch, &[("Sec-WebSocket-Protocol", "x, y")]),
        // Without both of these, or without a watch, the request is ordinary.
        ("GET", &watch, &[("Connection", "")]),
        ("GET", &watch, &[("Upgrade", "h2c")]),
        ("GET", WIDGETS, &[]),
        ("GET", &format!("{WIDGETS}/a?watch=1"), &[]),
    ] {
        let mut all = BTreeMap::from(HANDSHAKE);
        all.extend(headers.iter().copied());
        let accept = all.remove("Accept");
        let all: Vec<_> = all.into_iter().filter(|(_, v)| !v.is_empty()).collect();
        let asking = Asking {
            accept,
            headers: &all,
            ..Asking::default()
        };
        let answer = client.ask(method, path, asking).await;
        let answer = answer.unwrap_or_else(|e| panic!("{headers:?}: {e}"));
        let (status, text) = answer.said();
        let version = answer.headers.get("sec-websocket-version");
        let version = version.map_or("", |v| v.to_str().unwrap_or_default());
        let text = text.lines().next().unwrap_or_default();
        said += &format!(
            "{method} {headers:?}: {status} {version} {}",
            text.get(..50).unwrap_or(text)
        );
        said.truncate(said.trim_end().len());
        said.push('\n');
    }
    expect![[r#"
        GET []: 400  strconv.ParseInt: parsing "x": invalid syntax
        GET [("Accept", "application/yaml")]: 406  apiVersion: v1
        POST []: 405  bad method
        GET [("Sec-WebSocket-Key", "")]: 400  mismatch challenge/response
        GET [("Sec-WebSocket-Version", "8")]: 400 13 missing or bad WebSocket Version
        GET [("Origin", "")]: 403
        GET [("Origin", "null")]: 403
        GET [("Sec-WebSocket-Protocol", "x, y")]: 400
        GET [("Connection", "")]: 200
        GET [("Upgrade", "h2c")]: 200
        GET []: 200  {"apiVersion":"example.com/v1","items":[],"kind":"
        GET []: 404  widgets.example.com "a" not found
    "#]]
    .assert_eq(&said);
    no_watch_is_left(&mut client).await;
    server.stop().await;
}

fn protocol(token: &str) -> String {
    let token = URL_SAFE_NO_PAD.encode(token);
    format!("base64url.bearer.authorization.k8s.io.{token}")
}

/// Opens a watch with subprotocols only; returns the selected one.
async fn by_protocols(server: &Server, protocols: &str) -> Result<Option<String>, String> {
    let nobody = Client::anonymous(server);
    let headers = [("Sec-WebSocket-Protocol", protocols)];
    let opened = open(&nobody, &format!("{WIDGETS}?watch=1&timeoutSeconds=1"), &headers).await;
    opened.map(|(_, headers)| {
        let chosen = headers.get("sec-websocket-protocol");
        chosen.map(|c| String::from_utf8_lossy(c.as_bytes()).into_owned())
    })
}

#[tokio::test]
async fn tokens_in_subprotocols() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let good = protocol(server.admin_token());
    let unknown = protocol("somebody's");
    let chosen = by_protocols(&server, &format!("{good}, watch.example.com")).await;
    assert_eq!(chosen, Ok(Some("watch.example.com".to_owned())));
    let chosen = by_protocols(&server, "watch.example.com").await;
    assert_eq!(chosen, Err("403 Forbidden".to_owned()));
    for refused in [
        &good,
        &format!("{unknown}, watch.example.com"),
        &format!("{good}, {good}, watch.example.com"),
    ] {
        let chosen = by_protocols(&server, refused).await;
        assert_eq!(chosen, Err("401 Unauthorized".to_owned()), "{refused}");
    }
    // Without an upgrade, they are ignored.
    let protocols = format!("{good}, watch.example.com");
    let asking = Asking {
        headers: &[("Sec-WebSocket-Protocol", &protocols)],
        ..Asking::default()
    };
    let answer = Client::anonymous(&server).ask("GET", WIDGETS, asking).await;
    assert_eq!(answer.expect("an answer").status, 403);
    no_watch_is_left(&mut client).await;
    server.stop().await;
}

#[tokio::test]
async fn large_frames_are_refused() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    for size in [4 << 20, 64 << 20] {
        let mut socket = watch(&client, &format!("{WIDGETS}?{FROM_THE_START}")).await;
        event(&mut socket).await;
        // The server may refuse it before everything is sent.
        let _ = socket.send(Message::binary(vec![0; size])).await;
        while let Some(Ok(message)) = socket.next().await {
            assert!(message.is_close(), "{message:?}");
        }
        no_watch_is_left(&mut client).await;
    }
    server.stop().await;
}

/// A client that does not read is disconnected, however many events there are.
#[tokio::test]
async fn slow_clients_are_disconnected() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    client.send("POST", WIDGETS, &widget("a")).await;
    let mut socket = watch(&client, &format!("{WIDGETS}?{FROM_THE_START}")).await;
    event(&mut socket).await;
    let mut n = 0;
    eventually("the watch is closed", async || {
        for _ in 0..20 {
            n += 1;
            let much = "x".repeat(200_000);
            let patch = Value::from(format!("{n}{much}")).to_json();
            let patch = format!(r#"{{"metadata":{{"annotations":{{"much":{patch}}}}}}}"#);
            let patched = client.send("PATCH", &format!("{WIDGETS}/a"), &patch).await;
            assert_eq!(patched.status, 200);
        }
        watches(&mut client).await == Some(0.0)
    })
    .await;
    // Once it reads, it gets what was buffered, and the end.
    let mut seen = 0;
    while let Some(Ok(message)) = socket.next().await {
        if message.is_close() {
            break;
        }
        seen += 1;
    }
    assert!((20..n).contains(&seen), "{seen} of {n}");
    server.stop().await;
}
