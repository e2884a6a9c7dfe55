//! Deletion of namespaces with their contents.

use crate::client::Client;
use crate::support::{WIDGETS, eventually, serve_widgets, widget};
use scantling_server::Config;
use scantling_value::Value;

const NAMESPACES: &str = "/api/v1/namespaces";
const SHIPS: &str = "/apis/example.com/v1/namespaces/ships/widgets";

async fn make(client: &mut Client, name: &str) {
    let body = format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
    let made = client.send("POST", NAMESPACES, &body).await;
    assert_eq!(made.status, 201, "{}", made.text());
}

#[tokio::test]
async fn system_namespaces_cannot_be_deleted() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    for name in ["default", "kube-system", "kube-public"] {
        let answer = client.send("DELETE", &format!("{NAMESPACES}/{name}"), "").await;
        let said = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!(answer.said(), (403, said));
    }
    let all = client.send("DELETE", NAMESPACES, "").await;
    assert_eq!(all.status, 405, "{}", all.text());
    server.stop().await;
}

/// A prefix is truncated, so that the generated name is not too long.
#[tokio::test]
async fn generated_names_are_truncated() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let body = |prefix: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"generateName":"{prefix}"}}}}"#)
    };
    for (prefix, kept) in [("short-", "short-"), (&"l".repeat(63), &"l".repeat(58))] {
        let made = client.send("POST", NAMESPACES, &body(prefix)).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let made = made.json();
        let name = made.at(["metadata", "name"]).and_then(Value::as_str);
        let name = name.expect("it has a name");
        let own = name.strip_prefix(kept).map(str::len);
        assert_eq!(own, Some(5), "{name}");
    }
    server.stop().await;
}

#[tokio::test]
async fn namespace_contents_are_deleted_first() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    make(&mut client, "ships").await;
    for i in 0..20 {
        client.send("POST", SHIPS, &widget(&format!("w{i}"))).await;
    }
    client.send("POST", WIDGETS, &widget("elsewhere")).await;
    let event = r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"namespace":"ships"}}"#;
    let made = client
        .send("POST", "/api/v1/namespaces/ships/events", event)
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let answer = client.send("DELETE", &format!("{NAMESPACES}/ships"), "").await;
    assert_eq!(answer.status, 200);
    let phase = answer.json();
    assert_eq!(
        phase.at(["status", "phase"]).and_then(Value::as_str),
        Some("Terminating")
    );
    eventually("the namespace is gone", async || {
        client.get(&format!("{NAMESPACES}/ships")).await.status == 404
    })
    .await;
    make(&mut client, "ships").await;
    for path in [SHIPS, "/api/v1/namespaces/ships/events"] {
        let left = client.get(path).await.json();
        assert_eq!(
            left.get("items").and_then(Value::as_array).map(<[Value]>::len),
            Some(0)
        );
    }
    assert_eq!(client.get(&format!("{WIDGETS}/elsewhere")).await.status, 200);
    server.stop().await;
}

/// The condition of a type: its status, reason and message.
fn condition(namespace: &Value, ty: &str) -> Option<[String; 3]> {
    let conditions = namespace.at(["status", "conditions"])?.as_array()?;
    let found = conditions
        .iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some(ty))?;
    let text = |field: &str| {
        found
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    Some([text("status"), text("reason"), text("message")])
}

#[tokio::test]
async fn finalizers_block_namespace_deletion_with_conditions() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    make(&mut client, "ships").await;
    let held = widget("held").replace("\"name\"", "\"finalizers\":[\"example.com/hold\"],\"name\"");
    assert_eq!(client.send("POST", SHIPS, &held).await.status, 201);
    assert_eq!(client.send("POST", SHIPS, &widget("free")).await.status, 201);
    let path = format!("{NAMESPACES}/ships");
    client.send("DELETE", &path, "").await;
    let mut namespace = Value::Null;
    eventually("conditions are set", async || {
        namespace = client.get(&path).await.json();
        condition(&namespace, "NamespaceFinalizersRemaining").is_some()
    })
    .await;
    let said = |ty: &str| condition(&namespace, ty).unwrap_or_default();
    assert_eq!(
        said("NamespaceFinalizersRemaining"),
        [
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        ]
    );
    assert_eq!(
        said("NamespaceContentRemaining"),
        [
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: widgets.example.com has 1 resource instances"
        ]
    );
    assert_eq!(
        said("NamespaceDeletionContentFailure"),
        [
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization"
        ]
    );
    assert_eq!(client.get(&format!("{SHIPS}/free")).await.status, 404);
    // Creates are refused.
    let refused = client.send("POST", SHIPS, &widget("new")).await;
    let said = "widgets.example.com \"new\" is forbidden: unable to create new content in namespace ships because it is \
                being terminated";
    assert_eq!(refused.said(), (403, said.to_owned()));
    let details = refused.json();
    let cause = details
        .at(["details", "causes"])
        .and_then(Value::as_array)
        .and_then(|c| c.first());
    assert_eq!(
        cause.map(Value::to_json).as_deref(),
        Some(
            r#"{"field":"metadata.namespace","message":"namespace ships is being terminated","reason":"NamespaceTerminating"}"#
        )
    );
    let apply = crate::client::Asking {
        body: Some(widget("new").into_bytes()),
        content_type: Some("application/apply-patch+yaml"),
        ..Default::default()
    };
    let path_of_new = format!("{SHIPS}/new?fieldManager=x");
    let refused = client.ask("PATCH", &path_of_new, apply).await.expect("an answer");
    assert_eq!(refused.status, 403, "{}", refused.text());
    // Existing objects can still change: removing the finalizer deletes the object and then the namespace.
    let free = r#"{"metadata":{"finalizers":null}}"#;
    assert_eq!(
        client.send("PATCH", &format!("{SHIPS}/held"), free).await.status,
        200
    );
    eventually("the namespace is gone", async || {
        client.get(&path).await.status == 404
    })
    .await;
    server.stop().await;
}

/// Entries in `spec.finalizers` hold the namespace until they are removed through its `finalize` endpoint.
#[tokio::test]
async fn namespace_finalizers() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    make(&mut client, "ships").await;
    let path = format!("{NAMESPACES}/ships");
    let with = |finalizers: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"ships"}},"spec":{{"finalizers":[{finalizers}]}}}}"#
        )
    };
    let held = client
        .send(
            "PUT",
            &format!("{path}/finalize"),
            &with(r#""kubernetes","example.com/dock""#),
        )
        .await;
    assert_eq!(held.status, 200, "{}", held.text());
    client.send("DELETE", &path, "").await;
    eventually("this server has let go", async || {
        let namespace = client.get(&path).await.json();
        let holders = namespace.at(["spec", "finalizers"]).map(Value::to_json);
        holders.as_deref() == Some(r#"["example.com/dock"]"#)
    })
    .await;
    let again = client.send("DELETE", &path, "").await;
    assert_eq!(
        again.status,
        200,
        "a second deletion changes nothing: {}",
        again.text()
    );
    assert_eq!(client.get(&path).await.status, 200);
    client.send("PUT", &format!("{path}/finalize"), &with("")).await;
    eventually("the namespace is gone", async || {
        client.get(&path).await.status == 404
    })
    .await;
    server.stop().await;
}
