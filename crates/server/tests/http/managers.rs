//! Field managers, their times, and several versions.

use crate::client::{Answer, Asking, Client};
use crate::support::{DEFINITION, DEFINITIONS, WIDGETS, eventually, serve, serve_widgets, widget};
use scantling_server::Config;
use scantling_value::Value;
use std::time::Duration;

async fn patch(client: &mut Client, path: &str, form: &str, body: &str) -> Answer {
    let asking = Asking {
        body: Some(body.as_bytes().to_vec()),
        content_type: Some(form),
        ..Asking::default()
    };
    client.ask("PATCH", path, asking).await.expect("an answer")
}

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// The entry of a manager.
fn entry(object: &Value, manager: &str) -> Value {
    let entries = object.at(["metadata", "managedFields"]).and_then(Value::as_array);
    let mut entries = entries.unwrap_or_default().iter();
    let of = |e: &&Value| e.get("manager").and_then(Value::as_str) == Some(manager);
    entries.find(of).cloned().unwrap_or_default()
}

/// Widgets in two versions, with an atomic map that has a default inside.
async fn two_versions(client: &mut Client) {
    let mut definition = DEFINITION.replace(
        r#""size":{"type":"integer"}"#,
        r#""size":{"type":"integer"},"at":{"type":"object","x-kubernetes-map-type":"atomic",
           "properties":{"x":{"type":"string"},"y":{"type":"string","default":"here"}}}"#,
    );
    let versions = definition.split_once(r#""versions":["#).expect("versions").1;
    let old = versions
        .trim_end_matches("]}}")
        .replace(r#""storage":true"#, r#""storage":false"#);
    let old = old.replace(r#""name":"v1""#, r#""name":"v1beta1""#);
    definition.truncate(definition.len() - "]}}".len());
    let made = client
        .send("POST", DEFINITIONS, &format!("{definition},{old}]}}}}"))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    eventually("widgets are served", async || {
        client.get(WIDGETS).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn status_updates_keep_fields_of_other_versions() {
    let (server, mut client) = serve(Config::default()).await;
    two_versions(&mut client).await;
    let path = format!("{WIDGETS}/a?fieldManager=applier");
    let before = patch(&mut client, &path, APPLY, &widget("a")).await.json();
    let old = WIDGETS.replace("/v1/", "/v1beta1/");
    let body = r#"{"spec":{"size":7},"status":{"replicas":1}}"#;
    let after = patch(
        &mut client,
        &format!("{old}/a/status?fieldManager=other"),
        MERGE,
        body,
    )
    .await;
    assert_eq!(after.status, 200, "{}", after.text());
    let after = after.json();
    assert_eq!(
        entry(&after, "applier").to_json(),
        entry(&before, "applier").to_json()
    );
    assert_eq!(
        entry(&after, "other")
            .get("fieldsV1")
            .map(Value::to_json)
            .unwrap_or_default(),
        r#"{"f:status":{".":{},"f:replicas":{}}}"#
    );
    server.stop().await;
}

#[tokio::test]
async fn a_no_op_apply_writes_nothing() {
    let (server, mut client) = serve(Config::default()).await;
    two_versions(&mut client).await;
    let path = format!("{WIDGETS}/a?fieldManager=applier");
    let body = widget("a").replace(r#""size":1"#, r#""at":{"x":"there"}"#);
    let first = patch(&mut client, &path, APPLY, &body).await;
    assert_eq!(first.status, 201, "{}", first.text());
    // Manager times have a resolution of one second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let second = patch(&mut client, &path, APPLY, &body).await;
    assert_eq!(second.json().to_json(), first.json().to_json());
    server.stop().await;
}

#[tokio::test]
async fn new_scale_managers_sort_first_without_time() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let body = widget("a").replace(r#""size":1"#, r#""size":1,"replicas":1"#);
    assert_eq!(client.send("POST", WIDGETS, &body).await.status, 201);
    let path = format!("{WIDGETS}/a/scale?fieldManager=scaler");
    let scaled = patch(&mut client, &path, MERGE, r#"{"spec":{"replicas":5}}"#).await;
    assert_eq!(scaled.status, 200, "{}", scaled.text());
    let object = client.get(&format!("{WIDGETS}/a")).await.json();
    let entries = object.at(["metadata", "managedFields"]).and_then(Value::as_array);
    let first = entries.and_then(|e| e.first()).cloned().unwrap_or_default();
    assert_eq!(first.get("manager").and_then(Value::as_str), Some("scaler"));
    assert!(first.get("time").is_none(), "{}", first.to_json());
    server.stop().await;
}

#[tokio::test]
async fn fields_that_are_not_persisted_have_no_owner() {
    let (server, mut client) = serve(Config::default()).await;
    let definition = DEFINITION.replace(r#""shortNames":["wd"]"#, r#""shortNames":[],"categories":[]"#);
    let path = format!("{DEFINITIONS}?fieldManager=maker");
    let made = client.send("POST", &path, &definition).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let entry = entry(&made.json(), "maker");
    let names = entry.at(["fieldsV1", "f:spec", "f:names"]).cloned();
    let want = r#"{"f:kind":{},"f:listKind":{},"f:plural":{},"f:singular":{}}"#;
    assert_eq!(names.unwrap_or_default().to_json(), want);
    server.stop().await;
}
