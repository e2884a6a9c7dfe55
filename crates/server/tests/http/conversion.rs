//! Conversion webhooks. The expected errors are those of kube-apiserver with the same webhook.

use crate::client::{Answer, Asking, Client};
use crate::support::{DEFINITIONS, eventually, serve};
use crate::webhook::{Way, Webhook};
use expect_test::expect;
use scantling_server::Config;
use scantling_value::{Map, Value};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const GOOD: Way = Way::Review(|_| {});

/// A CRD with two versions and a conversion webhook.
fn definition(group: &str, client: &str, reviews: &str) -> String {
    let version = |name: &str, storage: bool, field: &str, default: &str| {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{storage},
            "subresources":{{"status":{{}},
            "scale":{{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}}},
            "schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
            "spec":{{"type":"object","properties":{{"{field}":{{"type":"integer"}},"replicas":{{"type":"integer"}},
            "note":{{"type":"string"}},"{default}":{{"type":"string","default":"{default}"}}}}}},
            "status":{{"type":"object","properties":{{"phase":{{"type":"string"}}}}}}}}}}}}}}"#
        )
    };
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{{"name":"parts.{group}"}},"spec":{{"group":"{group}","scope":"Namespaced",
        "names":{{"plural":"parts","singular":"part","kind":"Part","listKind":"PartList"}},
        "conversion":{{"strategy":"Webhook","webhook":{{"conversionReviewVersions":{reviews},
        "clientConfig":{client}}}}},"versions":[{},{}]}}}}"#,
        version("v1", true, "size", "first"),
        version("v2", false, "count", "second"),
    )
}

fn parts(group: &str, version: &str) -> String {
    format!("/apis/{group}/{version}/namespaces/default/parts")
}

fn part(group: &str, version: &str, name: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"{group}/{version}","kind":"Part","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
    )
}

/// Creates a CRD, and an object in its first version.
async fn define(client: &mut Client, group: &str, definition: &str) {
    let made = client.send("POST", DEFINITIONS, definition).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let body = part(group, "v1", "a", r#"{"size":3}"#);
    let path = parts(group, "v1");
    eventually("parts are served", async || {
        client.send("POST", &path, &body).await.status == 201
    })
    .await;
}

async fn apply(client: &mut Client, path: &str, manager: &str, body: &str) -> Answer {
    let asking = Asking {
        body: Some(body.as_bytes().to_vec()),
        content_type: Some("application/apply-patch+yaml"),
        ..Asking::default()
    };
    let path = format!("{path}?fieldManager={manager}");
    client.ask("PATCH", &path, asking).await.expect("an answer")
}

/// The specification in a response.
fn spec(answer: &Answer) -> String {
    let spec = answer.json().get("spec").map(Value::to_json);
    spec.unwrap_or_else(|| answer.text())
}

#[tokio::test]
async fn objects_are_served_in_every_version() {
    let webhook = Webhook::start([GOOD]).await;
    let (server, mut client) = serve(Config::default()).await;
    let group = "convert.example.com";
    define(
        &mut client,
        group,
        &definition(group, &webhook.settings(0), r#"["v1"]"#),
    )
    .await;
    let (v1, v2) = (parts(group, "v1"), parts(group, "v2"));
    let (a1, a2) = (format!("{v1}/a"), format!("{v2}/a"));
    let mut seen = Vec::new();
    let mut see =
        |what: &str, answer: &Answer| seen.push(format!("{what}: {} {}", answer.status, spec(answer)));

    see("v1", &client.get(&a1).await);
    see("v2", &client.get(&a2).await);
    see(
        "patched in v2",
        &client.send("PATCH", &a2, r#"{"spec":{"count":4}}"#).await,
    );
    see("then in v1", &client.get(&a1).await);
    let dry = format!("{a2}?dryRun=All");
    see(
        "dry",
        &client.send("PATCH", &dry, r#"{"spec":{"count":5}}"#).await,
    );
    let created = client
        .send("POST", &v2, &part(group, "v2", "b", r#"{"count":7}"#))
        .await;
    see("created in v2", &created);
    see("then in v1", &client.get(&format!("{v1}/b")).await);
    let status = format!("{a2}/status");
    see(
        "status",
        &client.send("PATCH", &status, r#"{"status":{"phase":"x"}}"#).await,
    );
    let scale = format!("{a2}/scale");
    see(
        "scale",
        &client.send("PATCH", &scale, r#"{"spec":{"replicas":2}}"#).await,
    );
    let listed = client.get(&v2).await.json();
    let items = listed.get("items").and_then(Value::as_array).unwrap_or_default();
    seen.extend(
        items
            .iter()
            .map(|item| format!("listed: {}", item.get("spec").unwrap_or(&Value::Null).to_json())),
    );
    expect![[r#"
        v1: 200 {"first":"first","size":3}
        v2: 200 {"count":3}
        patched in v2: 200 {"count":4}
        then in v1: 200 {"first":"first","size":4}
        dry: 200 {"count":5}
        created in v2: 201 {"count":7}
        then in v1: 200 {"first":"first","size":7}
        status: 200 {"count":4}
        scale: 200 {"replicas":2}
        listed: {"count":4,"replicas":2}
        listed: {"count":7}"#]]
    .assert_eq(&seen.join("\n"));
    let deleted = client.send("DELETE", &a2, "").await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert_eq!(client.get(&a1).await.status, 404);
    // Sequential reviews reuse one connection.
    assert!(webhook.reviews().len() > 10);
    assert!(webhook.connections() < 4, "{}", webhook.connections());
    server.stop().await;
}

#[tokio::test]
async fn conversion_reviews_match_kube_apiserver() {
    let webhook = Webhook::start([GOOD]).await;
    let (server, mut client) = serve(Config::default()).await;
    for (group, reviews, version) in [
        ("first.example.com", r#"["v1","v1beta1"]"#, "v1"),
        ("second.example.com", r#"["v7","v1beta1","v1"]"#, "v1beta1"),
    ] {
        define(
            &mut client,
            group,
            &definition(group, &webhook.settings(0), reviews),
        )
        .await;
        let path = format!("{}/a", parts(group, "v2"));
        assert_eq!(client.get(&path).await.status, 200);
        let review = webhook.reviews().pop().expect("a review");
        let object = review.at(["request", "objects"]).and_then(Value::as_array);
        let object = object.and_then(|o| o.first()).expect("an object").clone();
        assert!(object.at(["metadata", "uid"]).is_some());
        assert!(object.at(["metadata", "managedFields"]).is_some());
        assert!(
            object.at(["metadata", "resourceVersion"]).is_none(),
            "it is the store's"
        );
        assert_eq!(
            object.get("apiVersion").and_then(Value::as_str),
            Some(&*format!("{group}/v1"))
        );
        let mut known = review.as_object().expect("a review").clone();
        let request = known.remove("request").expect("a request");
        let wanted = request.get("desiredAPIVersion").and_then(Value::as_str);
        assert_eq!(wanted, Some(&*format!("{group}/v2")));
        assert_eq!(
            Value::from(known).to_json(),
            format!(
                r#"{{"apiVersion":"apiextensions.k8s.io/{version}","kind":"ConversionReview",{}}}"#,
                r#""response":{"convertedObjects":null,"result":{"metadata":{}},"uid":""}"#
            )
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn managers_of_different_versions_share_an_object() {
    let webhook = Webhook::start([GOOD]).await;
    let (server, mut client) = serve(Config::default()).await;
    let group = "managers.example.com";
    define(
        &mut client,
        group,
        &definition(group, &webhook.settings(0), r#"["v1"]"#),
    )
    .await;
    let path = |version: &str| format!("{}/m", parts(group, version));
    let body = |version: &str, spec: &str| part(group, version, "m", spec);
    let made = apply(
        &mut client,
        &path("v1"),
        "one",
        &body("v1", r#"{"size":1,"note":"n"}"#),
    )
    .await;
    assert_eq!(made.status, 201, "{}", made.text());
    // A field that one manager owns under another name conflicts.
    let refused = apply(&mut client, &path("v2"), "two", &body("v2", r#"{"count":2}"#)).await;
    let conflict = r#"Apply failed with 1 conflict: conflict with "one": .spec.size"#;
    assert_eq!(refused.said(), (409, conflict.to_owned()));
    let shared = apply(&mut client, &path("v2"), "two", &body("v2", r#"{"count":1}"#)).await;
    assert_eq!(
        (shared.status, spec(&shared)),
        (200, r#"{"count":1,"note":"n"}"#.to_owned())
    );
    // The first manager releases it; it stays, because the other one owns it in its own version.
    let left = apply(&mut client, &path("v1"), "one", &body("v1", r#"{"note":"n"}"#)).await;
    assert_eq!(spec(&left), r#"{"first":"first","note":"n","size":1}"#);
    let gone = apply(&mut client, &path("v2"), "two", &body("v2", r#"{}"#)).await;
    assert_eq!(spec(&gone), r#"{"note":"n"}"#);
    server.stop().await;
}

#[tokio::test]
async fn writes_migrate_the_storage_version() {
    let webhook = Webhook::start([GOOD]).await;
    let (server, mut client) = serve(Config::default()).await;
    let group = "storage.example.com";
    let before = definition(group, &webhook.settings(0), r#"["v1"]"#);
    define(&mut client, group, &before).await;
    let path = format!("{DEFINITIONS}/parts.{group}");
    let after = before.replace(r#""storage":true"#, r#""storage":false"#);
    let after = after.replacen(
        r#""name":"v2","served":true,"storage":false"#,
        r#""name":"v2","served":true,"storage":true"#,
        1,
    );
    assert_eq!(replace(&mut client, &path, &after).await.status, 200);
    let a2 = format!("{}/a", parts(group, "v2"));
    let asked = webhook.reviews().len();
    let found = client.get(&a2).await;
    assert_eq!(spec(&found), r#"{"count":3}"#);
    assert_eq!(
        webhook.reviews().len(),
        asked + 1,
        "it is stored in the first version"
    );
    let patched = client.send("PATCH", &a2, "{}").await;
    assert_eq!(
        (patched.status, spec(&patched)),
        (200, r#"{"count":3,"second":"second"}"#.to_owned())
    );
    let asked = webhook.reviews().len();
    assert_eq!(spec(&client.get(&a2).await), r#"{"count":3,"second":"second"}"#);
    assert_eq!(webhook.reviews().len(), asked, "it is stored in the second");
    server.stop().await;
}

/// Replaces a CRD.
async fn replace(client: &mut Client, path: &str, definition: &str) -> Answer {
    let found = client.get(path).await.json();
    let version = found.at(["metadata", "resourceVersion"]).and_then(Value::as_str);
    let name = r#""metadata":{"#;
    let named = format!(r#"{name}"resourceVersion":"{}","#, version.expect("a version"));
    client
        .send("PUT", path, &definition.replacen(name, &named, 1))
        .await
}

#[tokio::test]
async fn conversion_settings_take_effect_at_once() {
    let webhook = Webhook::start([GOOD, Way::Text(500, "boom")]).await;
    let (server, mut client) = serve(Config::default()).await;
    let group = "settings.example.com";
    let path = format!("{DEFINITIONS}/parts.{group}");
    let settings = |way| definition(group, &webhook.settings(way), r#"["v1"]"#);
    define(&mut client, group, &settings(0)).await;
    let a2 = format!("{}/a", parts(group, "v2"));
    for (way, code) in [(1, 500), (0, 200), (1, 500)] {
        assert_eq!(replace(&mut client, &path, &settings(way)).await.status, 200);
        assert_eq!(client.get(&a2).await.status, code);
    }
    let counted = client.get("/metrics").await.text();
    for sample in [
        r#"apiserver_conversion_webhook_request_total{result="success",failure_type=""} 1"#,
        r#"apiserver_conversion_webhook_request_total{result="failure",failure_type="conversion_webhook_call_failure"} 2"#,
        r#"apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="parts.settings.example.com",from_version="v1",to_version="v2",succeeded="true"} 1"#,
    ] {
        assert!(counted.contains(sample), "{sample}\n{counted}");
    }
    // An object stored in the requested version needs no webhook.
    assert_eq!(client.get(&format!("{}/a", parts(group, "v1"))).await.status, 200);
    server.stop().await;
}

/// Does something to the answer of a webhook.
fn response(review: &mut Value) -> &mut Map {
    let response = review
        .as_object_mut()
        .and_then(|review| review.get_mut("response"));
    response.and_then(Value::as_object_mut).expect("a response")
}

fn object(review: &mut Value) -> &mut Map {
    let objects = response(review)
        .get_mut("convertedObjects")
        .and_then(Value::as_array_mut);
    let object = objects.and_then(|objects| objects.first_mut());
    object.and_then(Value::as_object_mut).expect("an object")
}

fn metadata(review: &mut Value) -> &mut Map {
    let metadata = object(review).get_mut("metadata").and_then(Value::as_object_mut);
    metadata.expect("metadata")
}

fn set_objects(review: &mut Value, objects: Vec<Value>) {
    response(review).insert("convertedObjects", Value::Array(objects));
}

fn set_result(review: &mut Value, result: impl IntoIterator<Item = (&'static str, Value)>) {
    response(review).insert("result", Map::from_iter(result).into());
}

/// Malformed responses, and the expected errors.
const BAD: &[(Way, &str)] = &[
    (
        Way::Review(|r| drop(response(r).insert("uid", "nope".into()))),
        r#"failed: expected response.uid="UID", got "nope""#,
    ),
    (
        Way::Review(|r| drop(response(r).insert("uid", 17.into()))),
        "failed: json: cannot unmarshal number into Go struct field ConversionResponse.response.uid of type types.UID",
    ),
    (
        Way::Review(|r| set_objects(r, Vec::new())),
        "returned 0 objects, expected 1",
    ),
    (
        Way::Review(|r| set_objects(r, vec![Value::Null, Value::Null])),
        "returned 2 objects, expected 1",
    ),
    (
        Way::Review(|r| drop(metadata(r).insert("name", "b".into()))),
        "returned invalid object: must have the same name: a != b",
    ),
    (
        Way::Review(|r| drop(metadata(r).insert("namespace", "b".into()))),
        "returned invalid object: must have the same namespace: default != b",
    ),
    (
        Way::Review(|r| drop(metadata(r).insert("uid", "b".into()))),
        "returned invalid object: must have the same UID: UID != b",
    ),
    (
        Way::Review(|r| drop(object(r).insert("kind", "Whole".into()))),
        "returned invalid object at index 0: invalid kind (expected Part, received Whole)",
    ),
    (
        Way::Review(|r| drop(object(r).insert("apiVersion", "other/v9".into()))),
        "returned invalid object at index 0: invalid groupVersion (expected GROUP/v2, received other/v9)",
    ),
    (
        Way::Review(|r| drop(metadata(r).insert("labels", "x".into()))),
        "returned invalid metadata: invalid metadata.labels of type string in converted object",
    ),
    (
        Way::Review(|r| drop(metadata(r).insert("labels", Map::from_iter([("a", Value::Int(1))]).into()))),
        "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
    ),
    (
        Way::Review(|r| {
            drop(metadata(r).insert("annotations", Map::from_iter([("a!", Value::from("x"))]).into()));
        }),
        "returned invalid metadata: metadata.annotation: Invalid value: \"a!\": name part must consist of alphanumeric \
         characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or \
         'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ),
    (
        Way::Review(|r| drop(object(r).remove("metadata"))),
        "returned invalid object: must have the same name: a != ",
    ),
    (
        Way::Review(|r| set_result(r, [("status", "Failure".into()), ("message", "cannot".into())])),
        "failed: cannot",
    ),
    (
        Way::Review(|r| set_result(r, [("status", "Failure".into())])),
        "failed: response.result.status was 'Failure', not 'Success'",
    ),
    (
        Way::Review(|r| set_result(r, [])),
        "failed: response.result.status was '', not 'Success'",
    ),
    (
        Way::Review(|r| drop(r.as_object_mut().map(|r| r.remove("response")))),
        "failed: no response provided",
    ),
    (
        Way::Review(|r| drop(r.as_object_mut().map(|r| r.insert("kind", "Other".into())))),
        "failed: no kind \"Other\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \
         \"k8s.io/apiserver/pkg/util/webhook/client.go:74\"",
    ),
    (
        Way::Review(|r| drop(r.as_object_mut().map(|r| r.remove("kind")))),
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
         apiextensions.k8s.io/v1, Kind=",
    ),
    (
        Way::Review(|r| {
            drop(
                r.as_object_mut()
                    .map(|r| r.insert("apiVersion", "apiextensions.k8s.io/v1beta1".into())),
            );
        }),
        "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    ),
    (
        Way::Text(200, ""),
        "failed: 0-length response with status code: 200 and content type: text/plain",
    ),
    (
        Way::Text(200, "garbage"),
        "failed: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct \
         { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
    ),
    (
        Way::Text(500, "boom"),
        "failed: an error on the server (\"boom\") has prevented the request from succeeding",
    ),
    (
        Way::Text(404, "404 page not found"),
        "failed: the server could not find the requested resource",
    ),
    (Way::Text(403, "no way"), "failed: no way"),
    (
        Way::Text(
            403,
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told so"}"#,
        ),
        "failed: told so",
    ),
    (Way::Nothing, "failed: Post \"URL?timeout=30s\": EOF"),
];

#[tokio::test]
async fn malformed_webhook_responses_are_reported() {
    let webhook = Webhook::start(BAD.iter().map(|(way, _)| *way)).await;
    let (server, mut client) = serve(Config::default()).await;
    for (way, (_, expected)) in BAD.iter().enumerate() {
        let group = format!("bad{way}.example.com");
        let settings = webhook.settings(way);
        define(&mut client, &group, &definition(&group, &settings, r#"["v1"]"#)).await;
        let uid = client.get(&format!("{}/a", parts(&group, "v1"))).await.json();
        let uid = uid
            .at(["metadata", "uid"])
            .and_then(Value::as_str)
            .expect("a uid")
            .to_owned();
        let (code, said) = client.get(&format!("{}/a", parts(&group, "v2"))).await.said();
        let (_, said) = said
            .split_once(": conversion webhook for ")
            .expect("of the webhook");
        let (kind, said) = said.split_once("Kind=Part ").expect("of the kind");
        assert_eq!((code, kind), (500, &*format!("{group}/v1, ")));
        let said = mask(said, &uid, &webhook).replace(&group, "GROUP");
        let url = settings.split('"').nth(3).expect("an address");
        assert_eq!(said.replace(url, "URL"), *expected);
    }
    server.stop().await;
}

#[tokio::test]
async fn no_webhook_gets_a_request_twice() {
    let webhook = Webhook::start([Way::Once]).await;
    let (server, mut client) = serve(Config::default()).await;
    let settings = webhook.settings(0);
    define(
        &mut client,
        "once.example.com",
        &definition("once.example.com", &settings, r#"["v1"]"#),
    )
    .await;
    let v2 = parts("once.example.com", "v2");
    assert_eq!(client.get(&format!("{v2}/a")).await.status, 200);
    let body = part("once.example.com", "v2", "b", r#"{"count":1}"#);
    let (code, said) = client.send("POST", &v2, &body).await.said();
    assert!(code == 500 && said.ends_with(": EOF"), "{said}");
    assert_eq!((webhook.reviews().len(), webhook.connections()), (2, 1));
    server.stop().await;
}

/// Blanks identifiers in an error.
fn mask(said: &str, uid: &str, webhook: &Webhook) -> String {
    let review = webhook.reviews().pop().expect("a review");
    let asked = review.at(["request", "uid"]).and_then(Value::as_str);
    said.replace(uid, "UID").replace(asked.expect("a uid"), "UID")
}

#[tokio::test]
async fn failed_webhook_calls_are_reported() {
    let webhook = Webhook::start([GOOD]).await;
    let (server, mut client) = serve(Config::default()).await;
    let settings = webhook.settings(0);
    let url = settings.split('"').nth(3).expect("an address").to_owned();
    let bundle = settings.split('"').nth(7).expect("an authority").to_owned();
    let free = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address")
    };
    let table = [
        (
            format!(r#"{{"url":"{url}"}}"#),
            format!(
                "Post \"{url}?timeout=30s\": tls: failed to verify certificate: x509: certificate signed by unknown \
                 authority"
            ),
        ),
        (
            format!(r#"{{"url":"https://{free}/x","caBundle":"{bundle}"}}"#),
            format!("Post \"https://{free}/x?timeout=30s\": dial tcp {free}: connect: connection refused"),
        ),
        (
            format!(r#"{{"service":{{"namespace":"none","name":"hook"}},"caBundle":"{bundle}"}}"#),
            "Post \"https://hook.none.svc:443/?timeout=30s\": service \"hook\" not found".to_owned(),
        ),
        (
            format!(
                r#"{{"url":"{}","caBundle":"{bundle}"}}"#,
                url.replace("127.0.0.1", "localhost")
            ),
            format!(
                "Post \"{}?timeout=30s\": tls: failed to verify certificate: x509: certificate is not valid for any \
                 names, but wanted to match localhost",
                url.replace("127.0.0.1", "localhost")
            ),
        ),
    ];
    for (i, (settings, expected)) in table.iter().enumerate() {
        let group = format!("call{i}.example.com");
        define(&mut client, &group, &definition(&group, settings, r#"["v1"]"#)).await;
        let v2 = parts(&group, "v2");
        let failed =
            |version: &str| format!("conversion webhook for {group}/{version}, Kind=Part failed: {expected}");
        let (code, said) = client.get(&format!("{v2}/a")).await.said();
        assert!(
            code == 500 && said.ends_with(&failed("v1")),
            "{said}\n{}",
            failed("v1")
        );
        let body = part(&group, "v2", "b", r#"{"count":1}"#);
        assert_eq!(client.send("POST", &v2, &body).await.said(), (500, failed("v2")));
        let (code, said) = client.get(&v2).await.said();
        let unread = format!("failed to read one or more parts.{group} from the storage: ");
        assert!(
            code == 500 && said.starts_with(&unread) && said.ends_with(&failed("v1")),
            "{said}"
        );
    }
    server.stop().await;
}

#[tokio::test]
async fn watches_convert_objects() {
    static DOWN: AtomicBool = AtomicBool::new(false);
    const SOMETIMES: Way = Way::Review(|review| {
        if DOWN.load(Ordering::SeqCst) {
            set_result(review, []);
        }
    });
    let webhook = Webhook::start([SOMETIMES]).await;
    let (server, mut client) = serve(Config::default()).await;
    let group = "watch.example.com";
    define(
        &mut client,
        group,
        &definition(group, &webhook.settings(0), r#"["v1"]"#),
    )
    .await;
    let v2 = parts(group, "v2");
    let mut watch = client.open().await.expect("a connection");
    let authorization = client.authorization().expect("a token").to_owned();
    let request = format!(
        "GET {v2}?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n\r\n"
    );
    watch.write_all(request.as_bytes()).await.expect("sent");
    let mut seen = String::new();
    let mut until = async |what: &str| {
        let mut bytes = [0; 4096];
        while !seen.contains(what) {
            let read = watch.read(&mut bytes).await.expect("a piece");
            assert!(read > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(bytes.get(..read).unwrap_or_default()));
        }
    };
    until(r#""spec":{"count":3}"#).await;
    DOWN.store(true, Ordering::SeqCst);
    let asked = webhook.reviews().len();
    let patched = client
        .send(
            "PATCH",
            &format!("{}/a", parts(group, "v1")),
            r#"{"spec":{"size":8}}"#,
        )
        .await;
    assert_eq!(patched.status, 200);
    eventually("the webhook is asked", async || webhook.reviews().len() > asked).await;
    DOWN.store(false, Ordering::SeqCst);
    until(r#""spec":{"count":8}"#).await;
    let asked = webhook.reviews().len();
    assert_eq!(client.get(&v2).await.status, 200);
    assert_eq!(
        webhook.reviews().len(),
        asked,
        "lists know what watches were told"
    );
    server.stop().await;
}
