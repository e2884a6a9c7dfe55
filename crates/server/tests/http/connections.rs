//! Clients that connect and do nothing, send incomplete requests, or do not read responses.

use crate::client::{Asking, Client};
use crate::support::{WIDGETS, eventually, serve_widgets, widget};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use scantling_server::{Config, ConnectionLimits, Server};
use scantling_value::{Limits, Value, json, yaml};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(500);
/// Longer than any test should take; not an assertion about time.
const WATCHDOG: Duration = Duration::from_secs(120);

fn limits(change: impl FnOnce(&mut ConnectionLimits)) -> Config {
    let mut config = Config::default();
    change(&mut config.connections);
    config
}

/// Reads until the server closes the connection.
async fn closed(mut stream: impl AsyncRead + Unpin) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(WATCHDOG, stream.read_to_end(&mut answer)).await;
    let _ = read.expect("the server closes the connection");
    String::from_utf8_lossy(&answer).into_owned()
}

/// A server with the token of a user without privileges, to whom limits apply.
async fn serve_somebody(mut config: Config) -> (Server, Client, Client) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tokens.csv");
    std::fs::write(&path, "token,alice,1,dev\n").expect("written");
    config.token_auth_file = Some(path);
    let (server, admin) = serve_widgets(config).await;
    let client = Client::anonymous(&server).with_token("token");
    (server, admin, client)
}

/// Creates a list of several megabytes: more than the buffers of a connection hold.
async fn fill(client: &mut Client) {
    let text = "0123456789abcdef".repeat(12 * 1024);
    for i in 0..60 {
        let object = format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"w{i}","annotations":{{"a":"{text}"}}}}}}"#
        );
        let made = client.send("POST", WIDGETS, &object).await;
        assert_eq!(made.status, 201, "{}", made.text());
    }
}

/// An HTTP/2 connection whose streams have a window of a few bytes until they are read.
async fn http2_client(client: &Client) -> SendRequest<Empty<Bytes>> {
    let stream = client.open().await.expect("a connection");
    let made = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(16)
        .handshake(TokioIo::new(stream))
        .await;
    let (sender, connection) = made.expect("a handshake");
    tokio::spawn(connection);
    sender
}

async fn http2_get(
    sender: &mut SendRequest<Empty<Bytes>>,
    client: &Client,
    path: &str,
) -> hyper::Response<Incoming> {
    let request = Request::get(format!("https://server{path}"))
        .header("Authorization", client.authorization().unwrap_or_default())
        .body(Empty::new());
    let answer = sender.send_request(request.expect("a request")).await;
    answer.expect("an answer")
}

fn get(client: &Client, path: &str) -> String {
    let authorization = client.authorization().unwrap_or_default();
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n")
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let config = limits(|l| {
        l.handshake_timeout = SHORT;
        l.read_header_timeout = SHORT;
    });
    let (server, client) = serve_widgets(config).await;
    let no_handshake = TcpStream::connect(server.address()).await.expect("a connection");
    assert_eq!(closed(no_handshake).await, "");
    let no_request = client.open().await.expect("a connection");
    assert_eq!(closed(no_request).await, "");
    for half in [
        "GET",
        "GET /version HTTP/1.1\r\nHost: x\r\n",
        "PRI * HTTP/2.0\r\n",
    ] {
        let mut stream = client.open().await.expect("a connection");
        stream.write_all(half.as_bytes()).await.expect("sent");
        assert_eq!(closed(stream).await, "", "{half}");
    }
    // One byte after the other, but never a complete head.
    let mut drip = client.open().await.expect("a connection");
    drip.write_all(b"GET /version HTTP/1.1\r\n").await.expect("sent");
    let mut sent = 0;
    while drip.write_all(b"X").await.is_ok() && drip.flush().await.is_ok() {
        tokio::time::sleep(SHORT / 20).await;
        sent += 1;
        assert!(sent < 2000, "it is never closed");
    }
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_are_not() {
    let config = limits(|l| {
        l.idle_timeout = SHORT;
        l.write_timeout = SHORT;
    });
    let (server, client) = serve_widgets(config).await;
    // A watch is quiet, but not idle.
    let mut watch = client.open().await.expect("a connection");
    let request = get(&client, &format!("{WIDGETS}?watch=1&timeoutSeconds=4"));
    watch.write_all(request.as_bytes()).await.expect("sent");
    let mut idle = client.open().await.expect("a connection");
    idle.write_all(get(&client, "/version").as_bytes())
        .await
        .expect("sent");
    let answer = closed(idle).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut streams = http2_client(&client).await;
    let answer = http2_get(&mut streams, &client, "/readyz").await;
    assert_eq!(
        answer.into_body().collect().await.expect("a body").to_bytes(),
        "ok"
    );
    eventually("the idle HTTP/2 connection is closed", async || {
        streams.is_closed()
    })
    .await;
    let mut http1 = Client::of(&server);
    assert_eq!(http1.send("POST", WIDGETS, &widget("late")).await.status, 201);
    watch.write_all(b"").await.expect("it is open");
    let mut told = vec![0; 4096];
    let mut seen = String::new();
    while !seen.contains("late") {
        let read = watch.read(&mut told).await.expect("an event");
        assert!(read > 0, "the watch ended early: {seen}");
        seen.push_str(&String::from_utf8_lossy(&told[..read]));
    }
    server.stop().await;
}

#[tokio::test]
async fn silent_connections_are_evicted() {
    let config = limits(|l| {
        l.max_connections = Some(8);
        l.max_connections_per_client = Some(6);
    });
    let (server, mut client) = serve_widgets(config).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(server.address()).await.expect("a connection"));
    }
    // The client's connection survives, and a new one is served.
    assert_eq!(client.get("/version").await.status, 200);
    let mut known = Vec::new();
    for _ in 0..5 {
        let mut other = Client::of(&server);
        assert_eq!(other.get("/version").await.status, 200);
        known.push(other);
    }
    // Six are authenticated, so none is evicted for a seventh.
    let mut refused = TcpStream::connect(server.address()).await.expect("a connection");
    let _ = refused.write_all(b"hello").await;
    assert_eq!(closed(refused).await, "");
    let metrics = client.get("/metrics").await.text();
    for line in [
        "scantling_connections_closed_total{reason=\"client_limit\"} ",
        "scantling_connections_closed_total{reason=\"evicted\"} ",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    drop(known);
    eventually("there is room again", async || {
        let mut again = Client::of(&server);
        let answer = again.ask("GET", "/version", Asking::default()).await;
        answer.is_ok_and(|a| a.status == 200)
    })
    .await;
    server.stop().await;
}

/// A response keeps its permit until it is read; an unread one times out.
#[tokio::test]
async fn unread_responses_time_out() {
    let mut config = limits(|l| l.write_timeout = SHORT);
    config.max_requests_inflight = 1;
    let (server, mut admin, mut client) = serve_somebody(config).await;
    fill(&mut admin).await;
    let mut streams = http2_client(&client).await;
    let unread = http2_get(&mut streams, &client, WIDGETS).await;
    assert_eq!(unread.status(), 200);
    let mut refused = false;
    eventually("the stream is reset", async || {
        match client.get(WIDGETS).await.status {
            429 => {
                refused = true;
                false
            }
            status => {
                assert_eq!(status, 200);
                true
            }
        }
    })
    .await;
    assert!(refused, "the unread response had no place");
    assert!(unread.into_body().collect().await.is_err(), "it was given up");
    // The connection still serves other requests.
    let small = http2_get(&mut streams, &client, "/readyz").await;
    assert_eq!(
        small.into_body().collect().await.expect("a body").to_bytes(),
        "ok"
    );
    // The same over HTTP/1.1, where the whole connection is closed.
    let mut stream = client.open().await.expect("a connection");
    stream
        .write_all(get(&client, WIDGETS).as_bytes())
        .await
        .expect("sent");
    let mut beginning = [0; 100];
    stream.read_exact(&mut beginning).await.expect("an answer");
    eventually("the connection is closed", async || {
        client.get("/version").await.status == 200
    })
    .await;
    let metrics = admin.get("/metrics").await.text();
    let stalled = "scantling_connections_closed_total{reason=\"stalled\"} 2";
    assert!(metrics.contains(stalled), "{metrics}");
    server.stop().await;
}

/// All responses together hold a bounded amount of memory, including those of administrators.
#[tokio::test]
async fn unread_responses_share_their_memory() {
    let config = limits(|l| l.max_buffered_bytes = 4 << 20);
    let (server, mut client) = serve_widgets(config).await;
    fill(&mut client).await;
    let mut streams = http2_client(&client).await;
    let mut unread = Vec::new();
    loop {
        let answer = http2_get(&mut streams, &client, WIDGETS).await;
        if answer.status() == 429 {
            assert_eq!(
                answer
                    .headers()
                    .get("retry-after")
                    .map(hyper::header::HeaderValue::as_bytes),
                Some(&b"1"[..])
            );
            break;
        }
        assert_eq!(answer.status(), 200);
        unread.push(answer);
        assert!(unread.len() < 90, "there is no bound");
    }
    assert_eq!(client.get(&format!("{WIDGETS}/missing")).await.status, 404);
    drop(unread);
    eventually("the memory is given back", async || {
        client.get(WIDGETS).await.status == 200
    })
    .await;
    server.stop().await;
}

/// A large list is encoded while it is sent, and equals its pages.
#[tokio::test]
async fn large_lists_in_every_encoding() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    fill(&mut client).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for i in 0..5 {
        let text = "0123456789abcdef".repeat(8 * 1024);
        let object = format!(r#"{{"metadata":{{"name":"m{i}"}},"data":{{"a":"{text}"}}}}"#);
        assert_eq!(client.send("POST", maps, &object).await.status, 201);
    }
    let forms = [
        "application/json",
        "application/yaml",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/yaml;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/yaml;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ];
    for path in [WIDGETS, maps] {
        for accept in forms {
            let is_yaml = accept.starts_with("application/yaml");
            let mut get = async |query: &str| {
                let asking = Asking {
                    accept: Some(accept),
                    ..Asking::default()
                };
                let answer = client
                    .ask("GET", &format!("{path}?includeObject=Object{query}"), asking)
                    .await;
                let answer = answer.expect("an answer");
                assert_eq!(answer.status, 200, "{accept}: {}", answer.text());
                match is_yaml {
                    true => yaml::decode(&answer.body, Limits::SAFE).expect("it is YAML"),
                    false => json::decode(&answer.body, Limits::SAFE).expect("it is JSON"),
                }
            };
            let whole = get("").await;
            let member = if accept.contains("Table") { "rows" } else { "items" };
            let items = |list: &Value| match list.get(member) {
                // The cells of a row contain the age of its object.
                Some(Value::Array(rows)) if member == "rows" => {
                    rows.iter().filter_map(|row| row.get("object").cloned()).collect()
                }
                Some(Value::Array(items)) => items.clone(),
                other => panic!("{accept}: {other:?}"),
            };
            let (mut paged, mut token) = (Vec::new(), String::new());
            let last = loop {
                let page = get(&format!("&limit=1&continue={token}")).await;
                paged.extend(items(&page));
                let next = page.at(["metadata", "continue"]).and_then(Value::as_str);
                match next.filter(|next| !next.is_empty()) {
                    Some(next) => token = next.to_owned(),
                    None => break page,
                }
            };
            let bare = |list: &Value| {
                let mut list = list.clone();
                if let Some(members) = list.as_object_mut() {
                    members.remove(member);
                }
                list.to_json()
            };
            assert!(items(&whole) == paged, "{path} {accept}");
            assert_eq!(bare(&whole), bare(&last), "{path} {accept}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn malformed_chunks() {
    let (server, client) = serve_widgets(Config::default()).await;
    let table = [
        ("x\r\n", "invalid byte in chunk length"),
        ("1x\r\n", "invalid byte in chunk length"),
        ("fffffffffffffffff\r\n", "http chunk length too large"),
        ("2\r\n{}{}\r\n", "malformed chunked encoding"),
        (
            "2\r\n{}\r\n0\r\nbad trailer\r\n\r\n",
            "malformed chunked encoding",
        ),
    ];
    for (body, message) in table {
        let mut stream = client.open().await.expect("a connection");
        let authorization = client.authorization().unwrap_or_default();
        let request = format!(
            "POST {WIDGETS} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\n\
             Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let answer = closed(stream).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?}: {answer}");
        assert!(
            answer.contains(&format!("\"message\":\"{message}\"")),
            "{body:?}: {answer}"
        );
    }
    server.stop().await;
}

/// A shutdown ends in time, whatever clients do.
#[tokio::test]
async fn shutdown_with_misbehaving_clients() {
    let config = Config {
        shutdown_grace_period: SHORT,
        ..Config::default()
    };
    let (server, mut client) = serve_widgets(config).await;
    fill(&mut client).await;
    let authorization = client.authorization().unwrap_or_default().to_owned();
    let half_a_body = format!(
        "POST {WIDGETS} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    let initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let requests = [
        half_a_body,
        "GET /version HTTP/1.1\r\n".to_owned(),
        get(&client, WIDGETS),
        get(&client, &format!("{WIDGETS}?{initial}")),
    ];
    let mut open = Vec::new();
    for request in requests {
        let mut stream = client.open().await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        open.push(stream);
    }
    let silent = TcpStream::connect(server.address()).await.expect("a connection");
    let mut streams = http2_client(&client).await;
    let list = http2_get(&mut streams, &client, WIDGETS).await;
    let watch = http2_get(&mut streams, &client, &format!("{WIDGETS}?{initial}")).await;
    let stopped = tokio::time::timeout(WATCHDOG, server.stop()).await;
    stopped.expect("it stops");
    drop((open, silent, list, watch));
}
