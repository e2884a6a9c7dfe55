//! The kinds that are built in: their tables, their published schemas, and how they merge.

use crate::client::{Asking, Client};
use crate::support::{DEFINITIONS, serve, serve_widgets};
use scantling_server::Config;
use scantling_value::{Limits, Value, json};

const EVENTS: &str = "/api/v1/namespaces/default/events";

async fn table(client: &mut Client, path: &str) -> (Vec<String>, Vec<String>) {
    let asking = Asking {
        accept: Some("application/json;as=Table;v=v1;g=meta.k8s.io"),
        ..Asking::default()
    };
    let table = client.ask("GET", path, asking).await.expect("an answer").json();
    let list = |key: &str| {
        table
            .get(key)
            .and_then(Value::as_array)
            .unwrap_or_default()
            .to_vec()
    };
    let columns = list("columnDefinitions").into_iter().map(|c| {
        let name = c.get("name").and_then(Value::as_str).unwrap_or_default();
        match c.get("priority").and_then(Value::as_int) {
            Some(1) => format!("({name})"),
            _ => name.to_owned(),
        }
    });
    let rows = list("rows")
        .iter()
        .map(|r| r.get("cells").map(Value::to_json).unwrap_or_default())
        .collect();
    (columns.collect(), rows)
}

#[tokio::test]
async fn tables_of_kinds() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let event = r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"reason":"Sunk","type":"Warning",
        "message":"it sank","involvedObject":{"namespace":"default","kind":"Widget","name":"a"},
        "firstTimestamp":"2001-01-01T00:00:00Z","lastTimestamp":"2001-01-01T00:00:00Z","count":2,
        "source":{"component":"tide"}}"#;
    let made = client.send("POST", EVENTS, event).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let (columns, rows) = table(&mut client, EVENTS).await;
    let want = "Last Seen,Type,Reason,Object,(Subobject),(Source),Message,(First Seen),(Count),(Name)";
    assert_eq!(columns.join(","), want);
    let [row] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    let (_, after) = row.split_once(',').unwrap_or_default();
    assert!(
        after.starts_with(r#""Warning","Sunk","widget/a","","tide","it sank","#),
        "{row}"
    );
    assert!(after.ends_with(r#",2,"e"]"#), "{row}");
    let (columns, rows) = table(&mut client, "/api/v1/namespaces/default").await;
    assert_eq!(columns.join(","), "Name,Status,Age");
    assert!(rows.join("").starts_with(r#"["default","Active","#), "{rows:?}");
    let (columns, rows) = table(&mut client, DEFINITIONS).await;
    assert_eq!(
        columns.join(","),
        "Name,Scope,Versions,Created At,(Group),(Kind),(ShortNames),(Established)"
    );
    assert!(rows.join("").ends_with("true]"), "{rows:?}");
    server.stop().await;
}

/// Every response has the fields in declaration order. The items of a list do not repeat its kind.
#[tokio::test]
async fn fields_are_in_declaration_order_in_every_response() {
    let (server, mut client) = serve(Config::default()).await;
    let sent = r#"{"data":{"b":"1","a":"2"},"metadata":{"labels":{"z":"1"},"name":"c"},"kind":"ConfigMap","apiVersion":"v1"}"#;
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = client.send("POST", maps, sent).await.text();
    let body = made
        .strip_prefix(r#"{"kind":"ConfigMap","apiVersion":"v1","#)
        .expect(&made);
    let members = |json: &str| -> Vec<usize> {
        let names = [
            "metadata",
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "labels",
            "data",
        ];
        names
            .map(|name| json.find(&format!("\"{name}\":")).unwrap_or_default())
            .to_vec()
    };
    assert!(members(body).is_sorted(), "{body}");
    let object = made.trim_end().to_owned();
    assert_eq!(client.get(&format!("{maps}/c")).await.text().trim_end(), object);
    let revision = |list: &str| {
        let list = json::decode(list.as_bytes(), Limits::SAFE).expect("JSON");
        list.str_at(["metadata", "resourceVersion"]).to_owned()
    };
    for selector in ["?fieldSelector=metadata.name%3Dc", "?labelSelector=z%3D1"] {
        let list = client.get(&format!("{maps}{selector}")).await.text();
        let want = format!(
            r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}},"items":[{{{}]}}"#,
            revision(&list),
            body.trim_end()
        );
        assert_eq!(list.trim_end(), want);
    }
    let watch = format!("{maps}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dc");
    let events = client.get(&watch).await.text();
    assert_eq!(
        events.trim_end(),
        format!(r#"{{"type":"ADDED","object":{object}}}"#)
    );
    server.stop().await;
}

/// All references of a document, and what it defines.
fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value.as_str() {
                    Some(s) if key == "$ref" => out.push(s.to_owned()),
                    _ => references(value, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|i| references(i, out)),
        _ => {}
    }
}

#[tokio::test]
async fn openapi_references_resolve() {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let index = client.get("/openapi/v3").await.json();
    let names = index
        .get("paths")
        .and_then(Value::as_object)
        .expect("an index")
        .keys();
    let documents = names.map(|name| format!("/openapi/v3/{name}"));
    for path in documents.chain(["/openapi/v2".to_owned()]) {
        let document = client.get(&path).await.json();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty(), "{path}");
        for reference in found {
            let place = reference.strip_prefix("#/").expect("a place in the document");
            assert!(document.at(place.split('/')).is_some(), "{path}: {reference}");
        }
    }
    server.stop().await;
}

/// The resources that discovery lists, by group.
async fn resources(client: &mut Client) -> String {
    let mut out = Vec::new();
    for path in ["/api", "/apis"] {
        let asking = Asking {
            accept: Some("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
            ..Asking::default()
        };
        let list = client.ask("GET", path, asking).await.expect("an answer").json();
        for group in list.list("items") {
            let names = group.list("versions").iter().flat_map(|v| v.list("resources"));
            let names: Vec<&str> = names.map(|r| r.get_str("resource")).collect();
            let group = group
                .at(["metadata", "name"])
                .and_then(Value::as_str)
                .unwrap_or("core");
            out.push(format!("{group}: {}", names.join(" ")));
        }
    }
    out.join("\n")
}

#[tokio::test]
async fn crds_only() {
    let config = Config {
        crds_only: true,
        ..Config::default()
    };
    let (server, mut client) = serve_widgets(config).await;
    expect_test::expect![[r#"
        core: configmaps events namespaces secrets
        events.k8s.io: events
        authentication.k8s.io: selfsubjectreviews
        authorization.k8s.io: selfsubjectaccessreviews selfsubjectrulesreviews
        apiextensions.k8s.io: customresourcedefinitions customresourcedefinitions
        coordination.k8s.io: leases
        example.com: widgets"#]]
    .assert_eq(&resources(&mut client).await);
    assert_eq!(client.get("/api/v1/pods").await.status, 404);
    let document = client.get("/openapi/v2").await.json();
    let has = |kind: &str| {
        document
            .at(["definitions", &format!("io.k8s.api.core.v1.{kind}")])
            .is_some()
    };
    assert!(has("ConfigMap") && !has("Pod"));
    server.stop().await;
}

#[tokio::test]
async fn published_schemas() {
    let (server, mut client) = serve(Config::default()).await;
    let package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
    let document = client
        .get("/openapi/v3/apis/apiextensions.k8s.io/v1")
        .await
        .json();
    let model = |name: &str| {
        document
            .at(["components", "schemas", &format!("{package}.{name}")])
            .cloned()
    };
    let spec = model("CustomResourceDefinitionSpec").expect("a model");
    assert_eq!(
        spec.get("required").map(Value::to_json).as_deref(),
        Some(r#"["group","names","scope","versions"]"#)
    );
    let rules = model("JSONSchemaProps").expect("a model");
    let rules = rules
        .at(["properties", "x-kubernetes-validations"])
        .map(Value::to_json);
    assert!(rules.is_some_and(|r| r.contains("ValidationRule")));
    let patch = document.at([
        "paths",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}",
        "patch",
        "requestBody",
        "content",
    ]);
    let types: Vec<&str> = patch
        .and_then(Value::as_object)
        .map(|m| m.keys().map(scantling_value::Str::as_str).collect())
        .unwrap_or_default();
    assert!(
        types.contains(&"application/strategic-merge-patch+json"),
        "{types:?}"
    );
    server.stop().await;
}

/// Conditions merge by their type, in strategic patches and in applies.
#[tokio::test]
async fn conditions_merge_by_type() {
    let (server, mut client) = serve(Config::default()).await;
    let path = "/api/v1/namespaces/default/status";
    let send = async |client: &mut Client, content_type: &str, query: &str, body: &str| {
        let asking = Asking {
            body: Some(body.as_bytes().to_vec()),
            content_type: Some(content_type),
            ..Asking::default()
        };
        let answer = client
            .ask("PATCH", &format!("{path}{query}"), asking)
            .await
            .expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        let conditions = answer.json();
        let conditions = conditions.at(["status", "conditions"]).and_then(Value::as_array);
        let text = |c: &Value, f: &str| c.get(f).and_then(Value::as_str).unwrap_or_default().to_owned();
        let shown = conditions.unwrap_or_default().iter();
        shown
            .map(|c| format!("{}={}", text(c, "type"), text(c, "status")))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let strategic = "application/strategic-merge-patch+json";
    let one = r#"{"status":{"conditions":[{"type":"A","status":"True"}]}}"#;
    assert_eq!(send(&mut client, strategic, "", one).await, "A=True");
    let two = r#"{"status":{"conditions":[{"type":"B","status":"True"}]}}"#;
    let both = send(&mut client, strategic, "", two).await;
    assert!(both.contains("A=True") && both.contains("B=True"), "{both}");
    let apply = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"},
        "status":{"conditions":[{"type":"C","status":"False"}]}}"#;
    let all = send(
        &mut client,
        "application/apply-patch+yaml",
        "?fieldManager=x",
        apply,
    )
    .await;
    assert!(
        all.contains("A=True") && all.contains("B=True") && all.contains("C=False"),
        "{all}"
    );
    server.stop().await;
}
