//! Malformed requests: every response is a `Status` that says what is wrong, and the server keeps running.

use crate::client::Asking;
use crate::support::{DEFINITION, DEFINITIONS, WIDGETS, eventually, serve, serve_widgets, widget};
use scantling_server::Config;
use scantling_value::{Limits, Value};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn malformed_bodies() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    client.send("POST", WIDGETS, &widget("a")).await;
    let one = format!("{WIDGETS}/a");
    let scale = format!("{one}/scale");
    let json = "application/json";
    type Row<'a> = (&'a str, &'a str, &'a str, &'a [u8], u16, &'a str);
    let table: &[Row<'_>] = &[
        (
            "POST",
            WIDGETS,
            json,
            b"",
            400,
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse \
             error: unexpected end of JSON input (<empty>)",
        ),
        (
            "POST",
            WIDGETS,
            json,
            b"{",
            400,
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse \
             error: unexpected end of JSON input ({)",
        ),
        (
            "POST",
            WIDGETS,
            json,
            b"[1]",
            400,
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse \
             error: json: cannot unmarshal array into Go value of type struct { APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" } (5b315d)",
        ),
        (
            "POST",
            WIDGETS,
            json,
            b"\xff\xfe\x00",
            400,
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse \
             error: invalid character '\u{ff}' looking for beginning of value (fffe00)",
        ),
        (
            "POST",
            WIDGETS,
            "text/html",
            b"{}",
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            "POST",
            WIDGETS,
            "application/vnd.kubernetes.protobuf",
            b"k8s\0\n\x05hello",
            400,
            "the object provided is unrecognized (must be of type Widget): proto: illegal wireType 4 \
             (6b3873000a0568656c6c6f)",
        ),
        (
            "PATCH",
            &one,
            json,
            b"{}",
            415,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        ),
        (
            "PATCH",
            &one,
            "application/json-patch+json",
            b"{}",
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            "PATCH",
            &one,
            "application/merge-patch+json",
            b"{",
            400,
            "invalid JSON patch",
        ),
        (
            "PUT",
            &scale,
            json,
            b"[]",
            400,
            "no kind is registered for the type v1.Scale in scheme \
             \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"",
        ),
        (
            "DELETE",
            &one,
            json,
            b"7",
            400,
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        ),
    ];
    for (method, path, content_type, body, status, message) in table {
        let asking = Asking {
            body: Some(body.to_vec()),
            content_type: Some(content_type),
            ..Asking::default()
        };
        let answer = client.ask(method, path, asking).await.expect("an answer");
        let what = format!(
            "{method} {path} {content_type} {:?}",
            String::from_utf8_lossy(body)
        );
        assert_eq!(answer.said(), (*status, (*message).to_owned()), "{what}");
        let said = answer.json();
        assert_eq!(said.get("kind").and_then(Value::as_str), Some("Status"), "{what}");
        assert_eq!(
            said.get("code").and_then(Value::as_int),
            Some(i64::from(*status)),
            "{what}"
        );
    }
    assert_eq!(client.get(&one).await.status, 200);
    server.stop().await;
}

/// Documents may nest deeper than the stack of a test thread allows.
#[test]
fn deep_documents() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(Limits::SERVER_STACK)
        .enable_all()
        .build()
        .expect("a runtime");
    // The server runs on the threads of the runtime.
    runtime.block_on(refuse_deep_documents());
}

async fn refuse_deep_documents() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let deep = |open: &str, close: &str, n: usize| open.repeat(n) + &close.repeat(n);
    for (content_type, body) in [
        ("application/json", deep("[", "]", 100_000)),
        (
            "application/json",
            deep("{\"a\":", "}", 100_000).replace(":}", ":1}"),
        ),
        ("application/yaml", deep("[", "]", 100_000)),
        ("application/yaml", deep("- ", "", 50_000)),
    ] {
        let asking = Asking {
            body: Some(body.into_bytes()),
            content_type: Some(content_type),
            ..Asking::default()
        };
        let answer = client.ask("POST", WIDGETS, asking).await.expect("an answer");
        assert_eq!(answer.status, 400, "{content_type}: {}", answer.text());
    }
    assert_eq!(client.get(WIDGETS).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn oversized_requests() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let padded = |size: usize| {
        let (head, tail) = (
            r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"x":""#,
            r#""}"#,
        );
        format!("{head}{}{tail}", "x".repeat(size - head.len() - tail.len()))
    };
    let limit = 3 * 1024 * 1024;
    let fits = client.send("POST", WIDGETS, &padded(limit)).await;
    assert_eq!(fits.status, 201, "{}", fits.text());
    for (method, path) in [
        ("POST", WIDGETS.to_owned()),
        ("PUT", format!("{WIDGETS}/a")),
        ("PATCH", format!("{WIDGETS}/a")),
        ("PUT", format!("{WIDGETS}/a/scale")),
        ("DELETE", format!("{WIDGETS}/a")),
        ("POST", DEFINITIONS.to_owned()),
    ] {
        let answer = client.send(method, &path, &padded(limit + 1)).await;
        assert_eq!(
            answer.said(),
            (413, "Request entity too large: limit is 3145728".to_owned()),
            "{method} {path}"
        );
    }
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn oversized_heads() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    // More headers, or more header bytes, than allowed.
    let many: String = (0..400).map(|i| format!("X-{i}: y\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "y".repeat(2 << 20));
    for head in [many, long] {
        let mut stream = client.open().await.expect("a connection");
        let request = format!("GET /version HTTP/1.1\r\nHost: x\r\n{head}\r\n");
        // The server may close before it has read everything.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431"),
            "{answer}"
        );
    }
    assert_eq!(client.get("/version").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn unusual_paths_are_not_found() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    client.send("POST", WIDGETS, &widget("a")).await;
    for path in [
        "/apis/example.com/v1/namespaces/default/widgets/%2e%2e",
        "/apis/example.com/v1/namespaces/default/widgets/..",
        "/apis/example.com/v1/namespaces/default/widgets/%2e%2e%2fgadgets/a",
        "/apis/example.com/v1/namespaces/%2e%2e/widgets/a",
        "/apis/example.com/v1/namespaces/default/widgets/a%00",
        "/apis/example.com/v1/namespaces/default/widgets/%ff%fe",
        "/apis/example.com/v1/namespaces/default/widgets/%25%32%66",
        "/apis/example.com/v1/namespaces/default//widgets/a",
        "/apis//v1/namespaces/default/widgets",
        "/api/v1/namespaces/default/../kube-system",
        "/openapi/v3/apis/../../etc/passwd",
        "/registry/example.com/widgets/default/a",
    ] {
        for method in ["GET", "DELETE", "PUT"] {
            let answer = client
                .ask(method, path, Asking::default())
                .await
                .expect("an answer");
            // Either the name or the body is refused.
            let refused = matches!(answer.status, 400 | 404);
            assert!(refused, "{method} {path}: {} {}", answer.status, answer.text());
        }
    }
    // Percent-escaped paths equal unescaped ones.
    for path in ["/widgets/%61", "%2Fwidgets/a", "/widgets%2Fa"] {
        let path = format!("/apis/example.com/v1/namespaces/default{path}");
        assert_eq!(client.get(&path).await.status, 200, "{path}");
    }
    // A name that no object can have is not found, whatever the store would make of it.
    let odd = client.get(&format!("{WIDGETS}/{}", "a".repeat(5000))).await;
    assert_eq!(odd.status, 404, "{}", odd.text());
    server.stop().await;
}

#[tokio::test]
async fn queries_that_do_not_parse() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    for (query, status) in [
        ("?limit=x", 400),
        ("?continue=%%%", 400),
        ("?labelSelector=a%3D%3D%3Db", 400),
        ("?fieldSelector=spec.size=1", 400),
        ("?resourceVersion=x", 400),
        ("?resourceVersionMatch=Exact", 422),
        ("?timeoutSeconds=x", 400),
        ("?%zz=%zz&&=&", 200),
    ] {
        let answer = client.get(&format!("{WIDGETS}{query}")).await;
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
    }
    server.stop().await;
}

/// Watches without a timeout end after one to two minimum timeouts, and every response has the HSTS header.
#[tokio::test]
async fn watch_timeouts_are_bounded() {
    let config = Config {
        min_request_timeout: Duration::from_secs(1),
        strict_transport_security_directives: vec!["max-age=31536000".into(), "preload".into()],
        ..Config::default()
    };
    let (server, mut client) = serve_widgets(config).await;
    let started = Instant::now();
    let watched = client.get(&format!("{WIDGETS}?watch=1")).await;
    let took = started.elapsed();
    assert!((1..4).contains(&took.as_secs()), "{took:?}");
    let missing = client.get(&format!("{WIDGETS}/missing")).await;
    for answer in [watched, missing] {
        let said = answer.headers.get("strict-transport-security");
        let expected = "max-age=31536000; preload";
        assert!(said.is_some_and(|v| v == expected), "{said:?}");
    }
    server.stop().await;
}

/// A client that never completes its request occupies only its own slot.
#[tokio::test]
async fn slow_clients() {
    let config = Config {
        request_timeout: Duration::from_secs(2),
        ..Config::default()
    };
    let (server, mut client) = serve_widgets(config).await;
    let mut half_a_head = client.open().await.expect("a connection");
    half_a_head
        .write_all(b"GET /version HTTP/1.1\r\nHost")
        .await
        .expect("sent");
    let mut half_a_body = client.open().await.expect("a connection");
    let authorization = client.authorization().unwrap_or_default().to_owned();
    let head = format!(
        "POST {WIDGETS} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    half_a_body.write_all(head.as_bytes()).await.expect("sent");
    assert_eq!(client.get("/version").await.status, 200);
    // The missing body times out.
    let mut answer = vec![0; 4096];
    let read = half_a_body.read(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    assert!(
        answer.contains("request did not complete within the allotted timeout"),
        "{answer}"
    );
    server.stop().await;
}

#[tokio::test]
async fn idle_connections() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let mut idle = Vec::new();
    // None of them sends anything, some not even a handshake.
    for _ in 0..2000 {
        idle.push(
            tokio::net::TcpStream::connect(server.address())
                .await
                .expect("a connection"),
        );
    }
    let mut shaken = Vec::new();
    for _ in 0..50 {
        shaken.push(client.open().await.expect("a connection"));
    }
    assert_eq!(client.get("/version").await.status, 200);
    drop(idle);
    drop(shaken);
    let mut other = crate::client::Client::of(&server);
    assert_eq!(other.get("/version").await.status, 200);
    server.stop().await;
}

/// A pending request occupies a slot; the next one gets 429, unless it is an administrator's.
#[tokio::test]
async fn too_many_requests() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("tokens.csv");
    std::fs::write(&path, "token,alice,1,dev\n").expect("written");
    let config = Config {
        max_requests_inflight: 1,
        token_auth_file: Some(path),
        ..Config::default()
    };
    let (server, mut admin) = serve_widgets(config).await;
    let mut client = crate::client::Client::anonymous(&server).with_token("token");
    let mut slow = client.open().await.expect("a connection");
    let authorization = client.authorization().unwrap_or_default().to_owned();
    let body = widget("slow");
    let head = format!(
        "POST {WIDGETS} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    slow.write_all(head.as_bytes()).await.expect("sent");
    let mut refused = client.get(WIDGETS).await;
    eventually("the place is taken", async || {
        refused = client.get(WIDGETS).await;
        refused.status == 429
    })
    .await;
    assert_eq!(
        refused.said(),
        (429, "Too many requests, please try again later.".to_owned())
    );
    assert_eq!(
        refused
            .headers
            .get("retry-after")
            .map(hyper::header::HeaderValue::as_bytes),
        Some(&b"1"[..])
    );
    // Health checks and administrators are never refused.
    assert_eq!(admin.get(WIDGETS).await.status, 200);
    assert_eq!(client.get("/readyz").await.status, 200);
    slow.write_all(body.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(client.get(WIDGETS).await.status, 200);
    server.stop().await;
}

/// kube-apiserver accepts defaults below the `items` of a root, and then cannot apply them.
#[tokio::test]
async fn a_crd_that_does_not_compile_is_not_served() {
    let (server, mut client) = serve(Config::default()).await;
    let definition = DEFINITION.replacen(
        r#""openAPIV3Schema":{"#,
        r#""openAPIV3Schema":{"items":{"type":"string","default":"a"},"#,
        1,
    );
    let made = client.send("POST", DEFINITIONS, &definition).await;
    assert_eq!(made.status, 201, "{}", made.text());
    eventually("requests about widgets are refused", async || {
        client.get(WIDGETS).await.status == 500
    })
    .await;
    for (method, path, body) in [
        ("GET", WIDGETS.to_owned(), String::new()),
        ("GET", format!("{WIDGETS}/a"), String::new()),
        ("POST", WIDGETS.to_owned(), widget("a")),
    ] {
        let answer = client.send(method, &path, &body).await;
        let message = answer.json().get("message").cloned().unwrap_or_default();
        let want = Value::from("Internal error occurred: error resolving resource");
        assert_eq!((answer.status, message), (500, want), "{method} {path}");
    }
    server.stop().await;
}
