//! Expensive requests end in time and do not delay others.

use crate::client::{Asking, Client};
use crate::support::{DEFINITIONS, eventually, serve, serve_widgets, widget};
use scantling_server::Config;
use scantling_value::{Map, Value};

const TIMEOUT: &str = "Timeout: request did not complete within the allotted timeout";

const THINGS: &str = "/apis/heavy.example.com/v1/namespaces/default/things";

/// A CRD whose schema has many branches. No object matches any of them.
fn definition(branches: usize) -> String {
    let branch = |i: usize| format!(r#"{{"minimum":{}}}"#, 10 + i);
    let branches: Vec<String> = (0..branches).map(branch).collect();
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{{"name":"things.heavy.example.com"}},"spec":{{"group":"heavy.example.com","scope":"Namespaced",
        "names":{{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}},
        "versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object",
        "properties":{{"spec":{{"type":"object","properties":{{"l":{{"type":"array",
        "items":{{"type":"integer","anyOf":[{}]}}}}}}}}}}}}}}}}]}}}}"#,
        branches.join(",")
    )
}

fn thing(items: usize) -> String {
    let list = vec!["1"; items].join(",");
    format!(
        r#"{{"apiVersion":"heavy.example.com/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{{"l":[{list}]}}}}"#
    )
}

/// On a single worker, nothing else could be answered before the heavy request.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn heavy_writes_do_not_block_other_requests() {
    let (server, mut client) = serve(Config::default()).await;
    let made = client.send("POST", DEFINITIONS, &definition(2000)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    eventually("things are served", async || {
        client.get(THINGS).await.status == 200
    })
    .await;

    let mut other = Client::of(&server);
    let heavy = tokio::spawn(async move {
        let path = format!("{THINGS}?timeout=5s");
        other.send("POST", &path, &thing(20_000)).await
    });
    let running = r#"apiserver_current_inflight_requests{request_kind="mutating"} 1"#;
    eventually("the write is at work", async || {
        client.get("/metrics").await.text().contains(running)
    })
    .await;
    for _ in 0..10 {
        assert_eq!(client.get(THINGS).await.status, 200);
        assert_eq!(client.get("/openapi/v2").await.status, 200);
    }
    assert!(!heavy.is_finished(), "the others waited for the heavy write");
    let ended = heavy.await.expect("an answer");
    assert_eq!(ended.said(), (504, TIMEOUT.to_owned()));
    // It has no effect.
    assert_eq!(client.get(&format!("{THINGS}/a")).await.status, 404);
    let free = r#"apiserver_current_inflight_requests{request_kind="mutating"} 0"#;
    assert!(client.get("/metrics").await.text().contains(free));
    server.stop().await;
}

#[tokio::test]
async fn cancelled_requests_stop_on_a_single_threaded_runtime() {
    let (server, mut client) = serve(Config::default()).await;
    client.send("POST", DEFINITIONS, &definition(2000)).await;
    eventually("things are served", async || {
        client.get(THINGS).await.status == 200
    })
    .await;
    let ended = client
        .send("POST", &format!("{THINGS}?timeout=1s"), &thing(20_000))
        .await;
    assert_eq!(ended.said(), (504, TIMEOUT.to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_patch_of_many_operations_on_a_long_list() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let definition = definition(0).replace(r#","anyOf":[]"#, "");
    client.send("POST", DEFINITIONS, &definition).await;
    eventually("things are served", async || {
        client.get(THINGS).await.status == 200
    })
    .await;
    let made = client.send("POST", THINGS, &thing(20_000)).await;
    assert_eq!(made.status, 201);
    let operation = Map::from_iter([
        ("op", Value::from("add")),
        ("path", "/spec/l/7".into()),
        ("value", Value::Int(5)),
    ]);
    let patch = Value::Array(vec![Value::Object(operation); 2000]);
    let asking = Asking {
        body: Some(patch.to_json().into_bytes()),
        content_type: Some("application/json-patch+json"),
        ..Asking::default()
    };
    let patched = client.ask("PATCH", &format!("{THINGS}/a"), asking).await;
    let patched = patched.expect("an answer").json();
    let list = patched.at(["spec", "l"]).and_then(Value::as_array);
    let list = list.expect("a list");
    assert_eq!(list.len(), 22_000);
    assert_eq!(
        list.get(6..9),
        Some(&[Value::Int(1), Value::Int(5), Value::Int(5)][..])
    );
    // Small writes are unaffected.
    let made = client.send("POST", crate::support::WIDGETS, &widget("a")).await;
    assert_eq!(made.status, 201);
    server.stop().await;
}
