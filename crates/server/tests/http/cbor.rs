//! CBOR with its gate: bodies, responses, applies, streams, and stored objects.

use crate::client::{Answer, Asking, Client};
use crate::support::{DEFINITION, DEFINITIONS, WIDGETS, define, serve_widgets, widget};
use ciborium::Value as Item;
use scantling_server::{Config, Server};
use scantling_store::{ListRequest, MemStore, Store};
use std::sync::Arc;

const CBOR: &str = "application/cbor";

fn config(on: bool) -> Config {
    Config {
        feature_gates: [("CBORServingAndStorage".to_owned(), on)].into(),
        ..Config::default()
    }
}

async fn ask(client: &mut Client, method: &str, path: &str, body: Option<(&str, Vec<u8>)>) -> Answer {
    let asking = Asking {
        accept: Some(CBOR),
        content_type: body.as_ref().map(|(ty, _)| *ty),
        body: body.map(|(_, bytes)| bytes),
        ..Asking::default()
    };
    client.ask(method, path, asking).await.expect("an answer")
}

/// Encodes JSON as a CBOR client does.
fn written(json: &str) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let mut out = Vec::new();
    ciborium::into_writer(&value, &mut out).expect("CBOR");
    out
}

fn content_type(answer: &Answer) -> &str {
    let header = answer.headers.get("content-type");
    header.and_then(|h| h.to_str().ok()).unwrap_or_default()
}

/// The items of a body, as JSON.
fn read(mut body: &[u8]) -> Vec<serde_json::Value> {
    let mut items = Vec::new();
    while !body.is_empty() {
        assert!(body.starts_with(&[0xd9, 0xd9, 0xf7]), "it says that it is CBOR");
        items.push(json(ciborium::from_reader(&mut body).expect("CBOR")));
    }
    items
}

/// An item as JSON; text comes as byte strings.
fn json(item: Item) -> serde_json::Value {
    let text = |item: Item| String::from_utf8(item.into_bytes().expect("bytes")).expect("text");
    match item {
        Item::Tag(_, inner) => json(*inner),
        Item::Array(items) => items.into_iter().map(json).collect(),
        Item::Map(members) => members.into_iter().map(|(k, v)| (text(k), json(v))).collect(),
        Item::Integer(n) => i64::try_from(n).expect("a small number").into(),
        Item::Float(n) => n.into(),
        Item::Bool(b) => b.into(),
        Item::Null => serde_json::Value::Null,
        bytes => text(bytes).into(),
    }
}

#[tokio::test]
async fn objects_in_cbor() {
    let (server, mut client) = serve_widgets(config(true)).await;
    let one = &format!("{WIDGETS}/a");
    let three = widget("a").replace("\"size\":1", "\"replicas\":3");
    let made = ask(&mut client, "POST", WIDGETS, Some((CBOR, written(&three)))).await;
    assert_eq!((made.status, content_type(&made)), (201, CBOR));
    let plain: serde_json::Value = serde_json::from_str(&client.get(one).await.text()).expect("JSON");
    let got = ask(&mut client, "GET", one, None).await;
    assert_eq!(read(&got.body), [plain]);
    let apply = ("application/apply-patch+cbor", written(&widget("b")));
    let path = format!("{WIDGETS}/b?fieldManager=m");
    let applied = ask(&mut client, "PATCH", &path, Some(apply)).await;
    assert_eq!(applied.status, 201);
    let listed = ask(&mut client, "GET", WIDGETS, None).await;
    assert_eq!(read(&listed.body)[0]["items"][1]["spec"]["size"], 1);
    let scale = ask(&mut client, "GET", &format!("{one}/scale"), None).await;
    assert_eq!(read(&scale.body)[0]["spec"]["replicas"], 3);
    let watch = format!("{WIDGETS}?watch=1&timeoutSeconds=1");
    let watched = ask(&mut client, "GET", &watch, None).await;
    assert_eq!(content_type(&watched), "application/cbor-seq");
    let names: Vec<_> = read(&watched.body)
        .iter()
        .map(|e| (e["type"].clone(), e["object"]["metadata"]["name"].clone()))
        .collect();
    assert_eq!(
        names,
        [("ADDED".into(), "a".into()), ("ADDED".into(), "b".into())]
    );
    let options = written(r#"{"apiVersion":"v1","kind":"DeleteOptions","dryRun":["All"]}"#);
    let deleted = ask(&mut client, "DELETE", one, Some((CBOR, options))).await;
    assert_eq!(read(&deleted.body)[0]["status"], "Success");
    assert_eq!(client.get(one).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn cbor_bodies_must_be_objects() {
    let (server, mut client) = serve_widgets(config(true)).await;
    let unrecognized = "the object provided is unrecognized (must be of type Widget): ";
    let named = written(r#"{"kind":"Widget","metadata":{"name":"a"}}"#);
    let table = [
        (
            vec![0xa1, 0x61],
            format!("{unrecognized}unable to determine group/version/kind: unexpected EOF (a161)"),
        ),
        (
            vec![0xa1, 0x61, 0x61, 0x01],
            format!("{unrecognized}Object 'Kind' is missing in '{{\"a\": 1}}' (a1616101)"),
        ),
        (
            named,
            "Widget in version \"\" cannot be handled as a Widget: Object 'apiVersion' is missing in '{\"kind\": \
             \"Widget\", \"metadata\": {\"name\": \"a\"}}'"
                .to_owned(),
        ),
    ];
    for (body, message) in table {
        let refused = ask(&mut client, "POST", WIDGETS, Some((CBOR, body))).await;
        assert_eq!((refused.status, content_type(&refused)), (400, CBOR));
        assert_eq!(read(&refused.body)[0]["message"], message);
    }
    let apply = ("application/apply-patch+cbor", vec![0x01]);
    let path = format!("{WIDGETS}/b?fieldManager=m");
    let refused = ask(&mut client, "PATCH", &path, Some(apply)).await;
    let why = "error decoding patch: cbor: cannot unmarshal positive integer into Go value of type \
               map[string]interface {}";
    assert_eq!(read(&refused.body)[0]["message"], why);
    server.stop().await;
}

#[tokio::test]
async fn cbor_needs_its_gate() {
    let (server, mut client) = serve_widgets(config(false)).await;
    assert_eq!(ask(&mut client, "GET", WIDGETS, None).await.status, 406);
    let body = || Some((CBOR, written(&widget("a"))));
    let asking = |ty| Asking {
        content_type: Some(ty),
        body: body().map(|(_, bytes)| bytes),
        ..Asking::default()
    };
    for (method, path, ty) in [
        ("POST", WIDGETS.to_owned(), CBOR),
        (
            "PATCH",
            format!("{WIDGETS}/a?fieldManager=m"),
            "application/apply-patch+cbor",
        ),
    ] {
        let refused = client.ask(method, &path, asking(ty)).await.expect("an answer");
        let (code, message) = refused.said();
        assert_eq!(code, 415);
        assert!(!message.contains("cbor"), "{message}");
    }
    server.stop().await;
}

#[tokio::test]
async fn stored_cbor_is_readable_without_the_gate() {
    let store = Arc::new(MemStore::default());
    for (round, on) in [false, true, false].into_iter().enumerate() {
        let server = Server::start(config(on), Arc::clone(&store) as Arc<dyn Store>)
            .await
            .expect("the server starts");
        let mut client = Client::of(&server);
        if round == 0 {
            define(&mut client).await;
        }
        let made = client.send("POST", WIDGETS, &widget(&format!("w{round}"))).await;
        assert_eq!(made.status, 201, "{}", made.text());
        for earlier in 0..=round {
            let path = format!("{WIDGETS}/w{earlier}");
            let got = client.get(&path).await;
            assert_eq!(got.status, 200, "{}", got.text());
            // Writing it again changes nothing, in either storage encoding.
            let put = client.send("PUT", &path, &got.text()).await;
            assert_eq!(put.text(), got.text());
        }
        server.stop().await;
    }
    let all = ListRequest {
        prefix: "/registry/example.com/".to_owned(),
        ..ListRequest::default()
    };
    let page = store.list(all).await.expect("a list");
    let forms: Vec<_> = page
        .entries
        .iter()
        .map(|e| e.value.bytes().starts_with(&[0xd9, 0xd9, 0xf7]))
        .collect();
    assert_eq!(forms, [false, true, false]);
}

/// Unlike protobuf, CBOR can represent all JSON.
#[tokio::test]
async fn definitions_keep_their_extensions() {
    let mut config = config(true);
    for gate in [
        "CustomResourceImmutability",
        "CustomResourceUnions",
        "CustomResourceRulesOnCreate",
    ] {
        config.feature_gates.insert(gate.to_owned(), true);
    }
    let (server, mut client) = serve_widgets(config).await;
    let extended = DEFINITION.replace(
        r#""spec":{"type":"object","#,
        r#""x":{"type":"object","x-kubernetes-unions":[{"fields":{"a":"A","b":"B"},"discriminator":"type"}],
            "properties":{"type":{"type":"string"},"a":{"type":"string"},"b":{"type":"string"},
            "i":{"type":"string","x-kubernetes-immutable":true,
            "x-kubernetes-validations":[{"rule":"oldSelf == null || self == oldSelf","appliesOnCreate":true}]},
            "k":{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-immutable-keys":true},
            "p":{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-addition-only":true},
            "d":{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-deletion-only":true}}},
            "spec":{"type":"object","#,
    );
    let extended = extended
        .replace("widgets", "gadgets")
        .replace("Widget", "Gadget")
        .replace("widget", "gadget");
    let extended = extended.replace(r#""shortNames":["wd"]"#, r#""shortNames":["gd"]"#);
    let made = ask(&mut client, "POST", DEFINITIONS, Some((CBOR, written(&extended)))).await;
    assert_eq!(made.status, 201, "{:?}", read(&made.body));
    let path = format!("{DEFINITIONS}/gadgets.example.com");
    let schema = |answer: &Answer| {
        let body = &read(&answer.body)[0];
        body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["x"].clone()
    };
    let got = ask(&mut client, "GET", &path, None).await;
    let sent: serde_json::Value = serde_json::from_str(&extended).expect("JSON");
    assert_eq!(
        schema(&got),
        sent["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["x"]
    );
    server.stop().await;
}
