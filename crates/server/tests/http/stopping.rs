//! Graceful shutdown: readiness fails first, then running requests finish.

use crate::client::Client;
use crate::support::{WIDGETS, serve_widgets, widget};
use scantling_server::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn readiness_fails_first() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    assert_eq!(client.get("/readyz").await.text(), "ok");
    server.announce_stop();
    let unready = client.get("/readyz").await;
    assert_eq!(unready.status, 500);
    assert!(
        unready.text().contains("[-]shutdown failed: reason withheld"),
        "{}",
        unready.text()
    );
    assert!(
        unready.text().ends_with("readyz check failed\n"),
        "{}",
        unready.text()
    );
    // It is alive and still serves clients that have not noticed.
    assert_eq!(client.get("/livez").await.status, 200);
    assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 201);
    assert_eq!(Client::of(&server).get(WIDGETS).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn watches_are_closed_and_requests_end() {
    let (server, client) = serve_widgets(Config::default()).await;
    let authorization = client.authorization().unwrap_or_default().to_owned();
    let mut watch = client.open().await.expect("a connection");
    let request = format!(
        "GET {WIDGETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true \
         HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n"
    );
    watch.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = String::new();
    while !seen.contains("initial-events-end") {
        let mut bytes = vec![0; 4096];
        let n = watch.read(&mut bytes).await.expect("events");
        assert!(n > 0, "the watch ended early: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    let mut slow = client.open().await.expect("a connection");
    let body = widget("late");
    let head = format!(
        "POST {WIDGETS} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    // The server asks for the body, so the request is being processed.
    let mut go_on = [0; 25];
    slow.read_exact(&mut go_on).await.expect("asked for");
    assert!(go_on.starts_with(b"HTTP/1.1 100 Continue"));
    let address = server.address();
    let stopping = tokio::spawn(server.stop());
    // The watch is closed properly: its last chunk arrives.
    let mut rest = Vec::new();
    let ended = watch.read_to_end(&mut rest).await;
    assert!(String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n"), "{ended:?}");
    // The pending request is answered.
    slow.write_all(body.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 64];
    let n = slow.read(&mut answer).await.expect("an answer");
    assert!(
        answer[..n].starts_with(b"HTTP/1.1 201"),
        "{}",
        String::from_utf8_lossy(&answer[..n])
    );
    stopping.await.expect("stopped");
    assert!(
        tokio::net::TcpStream::connect(address).await.is_err(),
        "nobody listens any more"
    );
}
