//! Storage limits, and several servers on one etcd cluster.

use crate::client::Client;
use crate::support::{DEFINITION, DEFINITIONS, WIDGETS, define, eventually, serve_widgets, widget};
use scantling_server::{Config, Server};
use scantling_store::{
    EmbeddedConfig, EmbeddedStore, FaultInjector, FaultKind, FileOperation, ListRequest, MemStore, ReadAt,
    Store, Write,
};
use scantling_testkit::etcd::{EtcdCluster, Security};
use scantling_value::{Map, Value};
use std::sync::Arc;

fn large(name: &str, bytes: usize) -> String {
    let note = "x".repeat(bytes);
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"size":1}},"status":{{}},"note":"{note}"}}"#
    )
}

/// The CRD of widgets, preserving unknown fields.
fn open_definition() -> String {
    let schema = r#""openAPIV3Schema":{"type":"object","#;
    let open = r#""openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"#;
    DEFINITION.replace(schema, open)
}

/// A server of widgets that may hold anything.
async fn serve_open_widgets() -> (Server, Client) {
    let (server, mut client) = serve_widgets(Config::default()).await;
    let name = "/widgets.example.com";
    let found = client.get(&format!("{DEFINITIONS}{name}")).await.json();
    let body = body_at(&found, &open_definition());
    let opened = client.send("PUT", &format!("{DEFINITIONS}{name}"), &body).await;
    assert_eq!(opened.status, 200, "{}", opened.text());
    eventually("unknown fields are kept", async || {
        let made = client.send("POST", WIDGETS, &large("small", 10)).await;
        let kept = made.json().get("note").is_some();
        client.send("DELETE", &format!("{WIDGETS}/small"), "").await;
        kept
    })
    .await;
    (server, client)
}

#[tokio::test]
async fn objects_over_the_limit_are_refused_as_etcd_does() {
    let (server, mut client) = serve_open_widgets().await;
    let made = client.send("POST", WIDGETS, &large("fits", 1_500_000)).await;
    assert_eq!(made.status, 201, "{:?}", made.said());
    let refused = client.send("POST", WIDGETS, &large("large", 1_600_000)).await;
    let too_large = (500, "etcdserver: request is too large".to_owned());
    assert_eq!(refused.said(), too_large);
    assert_eq!(client.get(&format!("{WIDGETS}/large")).await.status, 404);
    // Anything larger is refused before it is read.
    let (code, text) = client
        .send("POST", WIDGETS, &large("huge", 2_500_000))
        .await
        .said();
    let unsent = "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2500";
    assert!(code == 500 && text.starts_with(unsent), "{code} {text}");
    assert!(text.ends_with(" vs. 2097152)"), "{text}");
    let grown = client
        .send(
            "PATCH",
            &format!("{WIDGETS}/fits"),
            &format!(r#"{{"more":"{}"}}"#, "y".repeat(100_000)),
        )
        .await;
    assert_eq!(grown.said(), too_large);
    let kept = client.get(&format!("{WIDGETS}/fits")).await.json();
    assert!(kept.get("more").is_none(), "nothing of it was stored");
    assert_eq!(
        kept.get("note").and_then(Value::as_str).map(str::len),
        Some(1_500_000)
    );
    server.stop().await;
}

/// An object with so many members that its managed fields are about as large as itself.
fn wide(name: &str) -> String {
    let members: Vec<String> = (0..13_000)
        .map(|n| format!(r#""{n:05}{}":"""#, "y".repeat(60)))
        .collect();
    let members = members.join(",");
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"size":1}},"note":{{{members}}}}}"#
    )
}

#[tokio::test]
async fn managed_fields_are_dropped_from_too_large_objects() {
    let (server, mut client) = serve_open_widgets().await;
    let managed = |object: &Value| object.at(["metadata", "managedFields"]).is_some();
    let made = client.send("POST", WIDGETS, &widget("a")).await;
    assert!(made.status == 201 && managed(&made.json()), "{}", made.text());
    let made = client.send("POST", WIDGETS, &wide("wide")).await;
    assert_eq!(made.status, 201, "{:?}", made.said());
    assert!(!managed(&made.json()));
    // The same by a patch of a small object, and by an update.
    let path = format!("{WIDGETS}/a");
    let grown = client.send("PATCH", &path, &wide("a")).await;
    assert_eq!(grown.status, 200, "{:?}", grown.said());
    assert!(!managed(&grown.json()));
    let body = wide("a").replace(r#""00000y"#, r#""x0000y"#);
    let replaced = client.send("PUT", &path, &body_at(&grown.json(), &body)).await;
    assert_eq!(replaced.status, 200, "{:?}", replaced.said());
    assert!(!managed(&client.get(&path).await.json()));
    server.stop().await;
}

/// A body that replaces an object.
fn body_at(object: &Value, body: &str) -> String {
    let version = object.at(["metadata", "resourceVersion"]).and_then(Value::as_str);
    let metadata = format!(
        r#""metadata":{{"resourceVersion":"{}","#,
        version.expect("a version")
    );
    body.replacen(r#""metadata":{"#, &metadata, 1)
}

/// Values stored by kube-apiserver, and its responses.
const RECORDED: &str = include_str!("../data/kube-apiserver.jsonl");

#[tokio::test]
async fn data_stored_by_kube_apiserver_is_served() {
    let store = MemStore::default();
    let mut rows = Vec::new();
    for line in RECORDED.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let hex = row["value"].as_str().expect("a text").as_bytes();
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).expect("a text");
            u8::from_str_radix(pair, 16).expect("a number")
        };
        let value: Vec<u8> = hex.chunks(2).map(byte).collect();
        let create = Write::Create { value: value.into() };
        store
            .write(row["key"].as_str().expect("a key"), create)
            .await
            .expect("stored");
        rows.push(row);
    }
    let server = Server::start(Config::default(), Arc::new(store))
        .await
        .expect("the server starts");
    let mut client = Client::of(&server);
    eventually("its kinds are served", async || {
        client.get("/apis/example.com/v1/parts").await.status == 200
    })
    .await;
    for row in rows {
        let path = row["path"].as_str().expect("a path");
        let found = client.get(path).await;
        assert_eq!(found.status, 200, "{path}: {}", found.text());
        let mut found: serde_json::Value = serde_json::from_str(&found.text()).expect("JSON");
        let mut expected = row["served"].clone();
        for object in [&mut found, &mut expected] {
            // It comes from another store. Some empty members of events are omitted here.
            let members = object.as_object_mut().expect("an object");
            members.retain(|_, member| !member.is_null() && *member != serde_json::json!({}));
            let metadata = members["metadata"].as_object_mut().expect("an object");
            metadata.remove("resourceVersion").expect("a version");
        }
        assert_eq!(found, expected, "{path}");
    }
    // They can be written, too, and writes without changes are skipped if the stored version is the same.
    let bolt = "/apis/example.com/v1/parts/bolt";
    for path in [
        bolt,
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/events/old",
        "/apis/events.k8s.io/v1/namespaces/default/events/noted",
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/held",
        "/api/v1/namespaces/default/secrets/kept",
    ] {
        let before = client.get(path).await.json();
        let same = client.send("PATCH", path, "{}").await;
        assert_eq!(same.json(), before, "{path}");
        let patch = r#"{"metadata":{"labels":{"changed":"yes"}}}"#;
        let changed = client.send("PATCH", path, patch).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.text());
        assert_eq!(client.get(path).await.json(), changed.json(), "{path}");
    }
    server.stop().await;
}

async fn serve_over(etcd: &EtcdCluster) -> (Server, Client) {
    let server = Server::start(Config::default(), Arc::new(etcd.connect().await))
        .await
        .expect("the server starts");
    let client = Client::of(&server);
    (server, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_on_one_etcd_cluster_share_state() {
    let Some(etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let (one, mut first) = serve_over(&etcd).await;
    let (two, mut second) = serve_over(&etcd).await;
    define(&mut first).await;
    eventually("the other server has the definition", async || {
        second.get(WIDGETS).await.status == 200
    })
    .await;
    let made = second.send("POST", WIDGETS, &widget("a")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let seen = first.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(seen.json(), made.json());
    let again = first.send("POST", WIDGETS, &widget("a")).await;
    assert_eq!(again.status, 409, "{}", again.text());

    // One server restarts and sees what happened meanwhile.
    one.stop().await;
    let made = second.send("POST", WIDGETS, &widget("b")).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let gone = second.send("DELETE", &format!("{WIDGETS}/a"), "").await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    let (one, mut first) = serve_over(&etcd).await;
    assert_eq!(first.get(&format!("{WIDGETS}/a")).await.status, 404);
    assert_eq!(first.get(&format!("{WIDGETS}/b")).await.json(), made.json());
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_keys_match_kube_apiserver() {
    let Some(etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let (server, mut client) = serve_over(&etcd).await;
    define(&mut client).await;
    client.send("POST", WIDGETS, &widget("a")).await;
    let crew = DEFINITION
        .replace("widgets", "crews")
        .replace("widget", "crew")
        .replace("Widget", "Crew")
        .replace("\"wd\"", "\"cr\"")
        .replace("Namespaced", "Cluster");
    let made = client.send("POST", DEFINITIONS, &crew).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let crews = "/apis/example.com/v1/crews";
    eventually("crews are served", async || client.get(crews).await.status == 200).await;
    let body = widget("c").replace("Widget", "Crew");
    assert_eq!(client.send("POST", crews, &body).await.status, 201);
    let namespace = r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ships"}}"#;
    assert_eq!(
        client.send("POST", "/api/v1/namespaces", namespace).await.status,
        201
    );
    let event = r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"namespace":"ships"}}"#;
    let made = client
        .send("POST", "/api/v1/namespaces/ships/events", event)
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let event = r#"{"metadata":{"name":"n"},"eventTime":"2026-01-02T03:04:05.000000Z","reportingController":"example.com/pilot",
        "reportingInstance":"a","action":"Sail","reason":"Moored","type":"Normal","regarding":{"namespace":"ships"}}"#;
    let made = client
        .send("POST", "/apis/events.k8s.io/v1/namespaces/ships/events", event)
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let lease = r#"{"metadata":{"name":"l"},"spec":{"holderIdentity":"a"}}"#;
    let made = client
        .send(
            "POST",
            "/apis/coordination.k8s.io/v1/namespaces/ships/leases",
            lease,
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.text());

    let request = ListRequest {
        prefix: "/".to_owned(),
        ..ListRequest::default()
    };
    let mut config = etcd.config();
    config.keys = scantling_store::KeySpace::new("registry").unwrap();
    let raw = scantling_store::EtcdStore::connect(config).await.unwrap();
    let page = raw.list(request).await.unwrap();
    let keys: Vec<_> = page.entries.iter().map(|entry| entry.key.to_string()).collect();
    for key in [
        "/registry/apiextensions.k8s.io/customresourcedefinitions/crews.example.com",
        "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
        "/registry/events/ships/e",
        "/registry/events/ships/n",
        "/registry/leases/ships/l",
        "/registry/example.com/crews/c",
        "/registry/example.com/widgets/default/a",
        "/registry/namespaces/default",
        "/registry/namespaces/ships",
    ] {
        assert!(
            keys.iter().any(|found| found == key),
            "{key} is not among {keys:?}"
        );
    }
    // Values are JSON objects in their storage version, without a resource version.
    for entry in &page.entries {
        let value =
            scantling_value::json::decode(&entry.value.bytes(), scantling_value::Limits::SAFE).unwrap();
        assert!(
            value.get("apiVersion").is_some() && value.get("kind").is_some(),
            "{}",
            entry.key
        );
        assert!(
            value.at(["metadata", "resourceVersion"]).is_none(),
            "{}",
            entry.key
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_store_is_reported() {
    let Some(mut etcd) = EtcdCluster::start(1, Security::Plain) else {
        return;
    };
    let (server, mut client) = serve_over(&etcd).await;
    assert_eq!(client.get("/readyz").await.text(), "ok");
    etcd.kill(0);
    let unready = client.get("/readyz").await;
    assert_eq!(unready.status, 500);
    let unready = unready.text();
    let failed: Vec<&str> = unready.lines().filter(|line| line.starts_with("[-]")).collect();
    let [etcd_check, readiness] =
        ["etcd", "etcd-readiness"].map(|c| format!("[-]{c} failed: reason withheld"));
    assert_eq!(failed, [etcd_check, readiness]);
    assert_eq!(client.get("/livez?exclude=etcd").await.text(), "ok");
    etcd.resume(0);
    eventually("the store is back", async || {
        client.get("/readyz/etcd").await.status == 200
    })
    .await;
    server.stop().await;
}

/// Readiness follows the disk: it fails after a failed write and recovers by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_write_is_not_ready() {
    let directory = tempfile::tempdir().expect("a directory");
    let faults = Arc::new(FaultInjector::default());
    let store = EmbeddedStore::open(EmbeddedConfig {
        faults: Some(Arc::clone(&faults)),
        ..EmbeddedConfig::new(directory.path())
    });
    let store = Arc::new(store.expect("a store"));
    let server = Server::start(Config::default(), store).await.expect("it starts");
    let mut client = Client::of(&server);
    define(&mut client).await;
    assert_eq!(client.get("/readyz").await.text(), "ok");
    // A write of the client, and some probes of the store.
    let full = FaultKind::Error(std::io::ErrorKind::StorageFull);
    faults.fail(FileOperation::Write, 1, 2, full);
    assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 500);
    let unready = client.get("/readyz").await;
    assert_eq!(unready.status, 500);
    assert!(
        unready
            .text()
            .contains("[-]etcd-readiness failed: reason withheld"),
        "{}",
        unready.text()
    );
    assert_eq!(client.get("/livez").await.status, 200);
    assert_eq!(client.get(WIDGETS).await.status, 200);
    eventually("there is space again", async || {
        client.get("/readyz").await.status == 200
    })
    .await;
    assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 201);
    server.stop().await;
}

#[tokio::test]
async fn damaged_objects_are_reported_and_can_be_deleted() {
    const KEY: &str = "/registry/example.com/widgets/default/a";
    let store = Arc::new(MemStore::default());
    let server = Server::start(Config::default(), Arc::clone(&store) as Arc<dyn Store>)
        .await
        .expect("started");
    let mut client = Client::of(&server);
    define(&mut client).await;
    assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 201);
    let table: [(&[u8], &str); 4] = [
        (b"oops", "invalid character 'o' looking for beginning of value"),
        (b"", "unexpected end of JSON input"),
        (
            br#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":5}"#,
            "invalid metadata: expected object, got int64",
        ),
        (
            br#"{"metadata":{}}"#,
            r#"Object 'Kind' is missing in '{"metadata":{}}'"#,
        ),
    ];
    let ignoring = r#"{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}"#;
    for (value, why) in table {
        let entry = store
            .get(KEY, ReadAt::Latest)
            .await
            .expect("read")
            .expect("there");
        let update = Write::Update {
            value: value.to_vec().into(),
            expected: entry.mod_revision,
        };
        let revision = store.write(KEY, update).await.expect("stored").revision;
        let why = format!(
            "ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision={revision}: {why}"
        );
        for answer in [
            client.get(&format!("{WIDGETS}/a")).await,
            client.get(WIDGETS).await,
            client.send("DELETE", &format!("{WIDGETS}/a"), "").await,
        ] {
            let (code, said) = answer.said();
            assert!(code == 500 && said.ends_with(&why), "{code} {said}");
        }
        let gone = client.send("DELETE", &format!("{WIDGETS}/a"), ignoring).await;
        assert_eq!(gone.status, 200, "{}", gone.text());
        assert_eq!(client.get(WIDGETS).await.status, 200);
        assert_eq!(client.send("POST", WIDGETS, &widget("a")).await.status, 201);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_of_one_object_do_not_conflict() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = EmbeddedStore::open(EmbeddedConfig::new(directory.path())).expect("a store");
    let server = Server::start(Config::default(), Arc::new(store)).await;
    let server = server.expect("the server starts");
    let path = "/api/v1/namespaces/default/configmaps";
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared"}}"#;
    assert_eq!(Client::of(&server).send("POST", path, body).await.status, 201);
    let patches: Vec<_> = (0..40)
        .map(|n| {
            let mut client = Client::of(&server);
            tokio::spawn(async move {
                let body = format!(r#"{{"data":{{"k{n}":"v"}}}}"#);
                client
                    .send("PATCH", &format!("{path}/shared"), &body)
                    .await
                    .said()
            })
        })
        .collect();
    for patch in patches {
        assert_eq!(patch.await.expect("the client runs").0, 200);
    }
    let found = Client::of(&server).get(&format!("{path}/shared")).await.json();
    assert_eq!(
        found.get("data").and_then(Value::as_object).map(Map::len),
        Some(40)
    );
    server.stop().await;
}
