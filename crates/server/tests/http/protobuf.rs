//! Protobuf, as Go clients request it.

use crate::client::{Answer, Asking, Client};
use crate::support::{DEFINITIONS, WIDGETS, serve_widgets, widget};
use scantling_server::Config;
use scantling_value::Value;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn get(client: &mut Client, path: &str, accept: &str) -> Answer {
    let asking = Asking {
        accept: Some(accept),
        ..Asking::default()
    };
    client.ask("GET", path, asking).await.expect("an answer")
}

fn content_type(answer: &Answer) -> &str {
    let header = answer.headers.get("content-type");
    header.and_then(|h| h.to_str().ok()).unwrap_or_default()
}

/// A Go client would drop the extensions of a CRD that it reads and writes in protobuf.
#[tokio::test]
async fn extensions_are_not_lost_in_protobuf() {
    for gate in [
        "CustomResourceImmutability",
        "CustomResourceUnions",
        "CustomResourceRulesOnCreate",
    ] {
        let on = Config {
            feature_gates: [(gate.to_owned(), true)].into(),
            ..Config::default()
        };
        let (_off, mut client) = serve_widgets(Config::default()).await;
        let definition = format!("{DEFINITIONS}/widgets.example.com");
        let message = get(&mut client, &definition, PROTOBUF).await.body.to_vec();
        let (server, mut client) = serve_widgets(on).await;
        for path in [
            DEFINITIONS,
            &definition,
            &format!("{definition}/status"),
            &format!("{DEFINITIONS}?watch=1"),
        ] {
            let (status, message) = get(&mut client, path, PROTOBUF).await.said();
            assert_eq!(status, 406, "{path}");
            assert!(
                message.contains("whose feature gates are on: use JSON, YAML or CBOR"),
                "{message}"
            );
        }
        let both = format!("{PROTOBUF},application/json");
        let got = get(&mut client, &definition, &both).await;
        assert_eq!((got.status, content_type(&got)), (200, "application/json"));
        let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        assert_eq!(get(&mut client, &definition, &metadata).await.status, 200);
        for (method, path) in [("POST", DEFINITIONS), ("PUT", &definition)] {
            let asking = Asking {
                body: Some(message.clone()),
                content_type: Some(PROTOBUF),
                ..Asking::default()
            };
            let (status, message) = client.ask(method, path, asking).await.expect("an answer").said();
            assert_eq!(status, 415, "{method}: {message}");
            assert!(message.contains("use JSON, YAML or CBOR"), "{message}");
        }
        // Other kinds keep protobuf.
        assert_eq!(get(&mut client, "/api/v1/namespaces", PROTOBUF).await.status, 200);
        server.stop().await;
    }
}

#[tokio::test]
async fn builtin_objects_in_protobuf() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let definition = format!("{DEFINITIONS}/widgets.example.com");
    let old = definition.replace("/v1/", "/v1beta1/");
    for path in ["/api/v1/namespaces/default", &definition, &old] {
        let before = client.get(path).await.json();
        let got = get(&mut client, path, PROTOBUF).await;
        assert_eq!((got.status, content_type(&got)), (200, PROTOBUF), "{path}");
        assert!(got.body.starts_with(b"k8s\0"), "{path}");
        // The received object is written back unchanged: decoding and encoding lose nothing.
        let asking = Asking {
            body: Some(got.body.to_vec()),
            content_type: Some(PROTOBUF),
            ..Asking::default()
        };
        let put = client.ask("PUT", path, asking).await.expect("an answer");
        assert_eq!(put.status, 200, "{}", put.text());
        assert_eq!(put.json().to_json(), before.to_json(), "{path}");
    }
    for path in [
        "/api",
        "/apis",
        "/apis/example.com",
        "/api/v1",
        "/api/v1/namespaces",
        DEFINITIONS,
    ] {
        let got = get(&mut client, path, PROTOBUF).await;
        assert_eq!((got.status, content_type(&got)), (200, PROTOBUF), "{path}");
    }
    let watch = "/api/v1/namespaces?watch=1&timeoutSeconds=1";
    let got = get(&mut client, watch, PROTOBUF).await;
    assert_eq!(
        content_type(&got),
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    let (length, event) = got.body.split_first_chunk().expect("an event");
    assert!(u32::from_be_bytes(*length) as usize <= event.len());
    server.stop().await;
}

#[tokio::test]
async fn custom_resources_have_only_metadata_in_protobuf() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 201);
    let one = &format!("{WIDGETS}/a");
    let watch = &format!("{WIDGETS}?watch=1&timeoutSeconds=1");
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let both = "application/vnd.kubernetes.protobuf,application/json";
    let stream = "application/vnd.kubernetes.protobuf;stream=watch";
    let table = [
        (one, PROTOBUF, 406, PROTOBUF),
        (one, both, 200, "application/json"),
        (one, metadata, 200, PROTOBUF),
        (watch, metadata, 200, stream),
        (
            one,
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1",
            406,
            "application/json",
        ),
        (
            one,
            "application/json;g=meta.k8s.io;v=v1",
            406,
            "application/json",
        ),
        (one, "application/json;stream=other", 406, "application/json"),
        (watch, "application/yaml", 406, "application/yaml"),
    ];
    for (path, accept, status, form) in table {
        let got = get(&mut client, path, accept).await;
        assert_eq!(
            (got.status, content_type(&got)),
            (status, form),
            "{path} {accept}"
        );
    }
    // Delete options in protobuf, with the uid of another object as precondition.
    let mut preconditions = b"\x0a\x05other".to_vec();
    let mut options = vec![0x12, preconditions.len() as u8];
    options.append(&mut preconditions);
    let mut body = b"k8s\0\x12".to_vec();
    body.push(options.len() as u8);
    body.append(&mut options);
    let asking = Asking {
        body: Some(body),
        content_type: Some(PROTOBUF),
        ..Asking::default()
    };
    let refused = client.ask("DELETE", one, asking).await.expect("an answer");
    assert_eq!(refused.status, 409, "{}", refused.text());
    assert_eq!(refused.json().get("kind").and_then(Value::as_str), Some("Status"));
    server.stop().await;
}
