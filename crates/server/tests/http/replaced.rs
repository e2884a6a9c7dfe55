//! Changed, deleted and foreign CRDs: effects on watches, writes and conditions.

use crate::client::{Asking, Client};
use crate::support::{DEFINITIONS, WIDGETS, eventually, serve_widgets, widget};
use scantling_server::{Config, Server};
use scantling_store::{MemStore, Store, Write};
use scantling_value::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[tokio::test]
async fn watches_end_when_their_crd_is_replaced() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let change = r#"[{"op":"add","path":"/spec/names/shortNames/-","value":"wid"}]"#;
    for (method, body) in [("PATCH", Some(change)), ("DELETE", None)] {
        let mut watcher = Client::of(&server);
        let started = Instant::now();
        let watching = tokio::spawn(async move {
            let path = format!("{WIDGETS}?watch=1&timeoutSeconds=300");
            watcher
                .ask("GET", &path, Asking::default())
                .await
                .map(|a| a.status)
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!watching.is_finished(), "{method}");
        let asking = Asking {
            body: body.map(|b| b.as_bytes().to_vec()),
            content_type: body.map(|_| "application/json-patch+json"),
            ..Asking::default()
        };
        let changed = client.ask(method, &path, asking).await.expect("an answer");
        assert_eq!(changed.status, 200, "{}", changed.text());
        let ended = watching.await.expect("the watch ends");
        assert_eq!(ended.expect("an answer"), 200);
        assert!(started.elapsed() < Duration::from_secs(60), "{method}");
    }
    server.stop().await;
}

#[tokio::test]
async fn watches_start_with_the_replaced_crd() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let created = client.send("POST", WIDGETS, &widget("a")).await;
    let version = created.json().at(["metadata", "resourceVersion"]).cloned();
    let version = version.as_ref().and_then(Value::as_str).expect("a version");
    let watch = format!("{WIDGETS}?watch=1&timeoutSeconds=1&resourceVersion={version}");
    let patch = |body: &str| Asking {
        body: Some(body.as_bytes().to_vec()),
        content_type: Some("application/merge-patch+json"),
        ..Asking::default()
    };
    let definition = format!("{DEFINITIONS}/widgets.example.com");
    let changes = [
        (r#"{"metadata":{"labels":{"a":"b"}}}"#, ""),
        (
            r#"{"spec":{"names":{"shortNames":["wid"]}}}"#,
            "too old resource version: ",
        ),
    ];
    for (change, why) in changes {
        let changed = client.ask("PATCH", &definition, patch(change)).await;
        assert_eq!(changed.expect("an answer").status, 200, "{change}");
        let events = client.get(&watch).await.text();
        assert_eq!(
            events.contains(r#""code":410"#),
            !why.is_empty(),
            "{change}: {events}"
        );
        assert!(events.contains(why), "{change}: {events}");
    }
    server.stop().await;
}

#[tokio::test]
async fn apply_cannot_create_while_the_crd_terminates() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    create_held(&mut client).await;
    let definition = format!("{DEFINITIONS}/widgets.example.com");
    let gone = client.ask("DELETE", &definition, Asking::default()).await;
    assert_eq!(gone.expect("an answer").status, 200);
    let asking = Asking {
        body: Some(widget("new").into_bytes()),
        content_type: Some("application/apply-patch+yaml"),
        ..Asking::default()
    };
    let path = format!("{WIDGETS}/new?fieldManager=m&dryRun=All");
    let refused = client.ask("PATCH", &path, asking).await.expect("an answer");
    let why = "widgets.example.com \"new\" is forbidden: create not allowed while custom resource definition is \
               terminating";
    assert_eq!(refused.said(), (403, why.to_owned()));
    server.stop().await;
}

#[tokio::test]
async fn a_crd_with_finalizers_reports_its_termination() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    create_held(&mut client).await;
    let definition = format!("{DEFINITIONS}/widgets.example.com");
    let merge = |body: String| Asking {
        body: Some(body.into_bytes()),
        content_type: Some("application/merge-patch+json"),
        ..Asking::default()
    };
    let hold = merge(r#"{"metadata":{"finalizers":["example.com/other"]}}"#.to_owned());
    let answer = client.ask("PATCH", &definition, hold).await;
    assert_eq!(answer.expect("an answer").status, 200);
    let gone = client.ask("DELETE", &definition, Asking::default()).await;
    assert_eq!(gone.expect("an answer").status, 200);
    eventually("its objects are being deleted", async || {
        terminating(&client.get(&definition).await.json()) == "InstanceDeletionInProgress"
    })
    .await;
    let release = merge(r#"{"metadata":{"finalizers":null}}"#.to_owned());
    let answer = client.ask("PATCH", &format!("{WIDGETS}/held"), release).await;
    assert_eq!(answer.expect("an answer").status, 200);
    eventually("its objects are gone", async || {
        terminating(&client.get(&definition).await.json()) == "InstanceDeletionCompleted"
    })
    .await;
    let late = client.send("POST", WIDGETS, &widget("late")).await;
    assert_eq!(late.status, 403, "{}", late.text());
    // Nothing is left to do: only this client writes.
    let mut shown = client.get(&definition).await.json();
    for round in 0..10 {
        let version = shown.at(["metadata", "resourceVersion"]).and_then(Value::as_str);
        let note = format!(
            r#"{{"metadata":{{"resourceVersion":"{}","labels":{{"round":"{round}"}}}}}}"#,
            version.expect("a version")
        );
        let answer = client.ask("PATCH", &definition, merge(note)).await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        shown = answer.json();
    }
    let release = merge(r#"{"metadata":{"finalizers":null}}"#.to_owned());
    let answer = client.ask("PATCH", &definition, release).await;
    assert_eq!(answer.expect("an answer").status, 200);
    let gone = client.get(&definition).await;
    assert_eq!(gone.status, 404, "{}", gone.text());
    server.stop().await;
}

/// Creates a widget with a finalizer.
async fn create_held(client: &mut Client) {
    let held = widget("held").replace(
        r#""name":"held""#,
        r#""name":"held","finalizers":["example.com/hold"]"#,
    );
    assert_eq!(client.send("POST", WIDGETS, &held).await.status, 201);
}

/// The reason of a CRD's `Terminating` condition.
fn terminating(definition: &Value) -> String {
    let conditions = definition.at(["status", "conditions"]).and_then(Value::as_array);
    conditions
        .unwrap_or_default()
        .iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some("Terminating"))
        .and_then(|c| c.get("reason")?.as_str())
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn crds_stored_as_v1beta1_are_served() {
    let store: Arc<dyn Store> = Arc::new(MemStore::default());
    let server = Server::start(Config::default(), Arc::clone(&store)).await;
    let server = server.expect("the server starts");
    let mut client = Client::of(&server);
    let old = r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition",
        "metadata":{"name":"widgets.example.com","uid":"u"},"spec":{"group":"example.com","version":"v1",
        "scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
        "validation":{"openAPIV3Schema":{"properties":{"a":{}}}},"subresources":{"status":{}},
        "versions":[{"name":"v1","served":true,"storage":true}]}}"#;
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
    let write = Write::Create { value: old.into() };
    store.write(key, write).await.expect("the store takes it");
    eventually("widgets are served", async || {
        client.get(WIDGETS).await.status == 200
    })
    .await;
    assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 201);
    let status = client.get(&format!("{WIDGETS}/a/status")).await;
    assert_eq!(status.status, 200, "{}", status.text());
    let shown = client
        .get(&format!("{DEFINITIONS}/widgets.example.com"))
        .await
        .json();
    let conditions = shown.at(["status", "conditions"]).and_then(Value::as_array);
    let message = conditions
        .unwrap_or_default()
        .iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some("NonStructuralSchema"))
        .and_then(|c| c.get("message")?.as_str())
        .unwrap_or_default();
    for part in [
        "spec.preserveUnknownFields: Invalid value: true: must be false",
        "spec.versions[0].schema.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified \
         object fields",
        "spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root",
    ] {
        assert!(message.contains(part), "{message}");
    }
    server.stop().await;
}

#[tokio::test]
async fn crds_with_invalid_rules_are_not_served() {
    let store: Arc<dyn Store> = Arc::new(MemStore::default());
    let server = Server::start(Config::default(), Arc::clone(&store)).await;
    let server = server.expect("the server starts");
    let mut client = Client::of(&server);
    let stored = r##"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{"name":"widgets.example.com","uid":"u"},"spec":{"group":"example.com","scope":"Namespaced",
        "names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
        "preserveUnknownFields":true,"versions":[{"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"properties":{"spec":{"patternProperties":{"^a":{"type":"string"}}}}}}}]}}"##;
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
    let write = Write::Create { value: stored.into() };
    store.write(key, write).await.expect("the store takes it");
    eventually("widgets are known", async || {
        client.get(WIDGETS).await.status != 404
    })
    .await;
    let created = client.send("POST", WIDGETS, &widget("a")).await;
    assert_eq!(created.status, 500, "{}", created.text());
    assert!(
        created.text().contains("error resolving resource"),
        "{}",
        created.text()
    );
}
