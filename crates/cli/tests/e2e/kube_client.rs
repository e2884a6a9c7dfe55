//! The `kube` crate against a server process.

use crate::server::Process;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::core::Status;
use kube::discovery::{ApiResource, Discovery, Scope};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

fn definition() -> CustomResourceDefinition {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector"
                    }
                },
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "replicas": {"type": "integer", "default": 1},
                        "colour": {"type": "string", "enum": ["red", "blue"]},
                        "parts": {
                            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string"}, "size": {"type": "integer"}}}
                        }
                    }, "x-kubernetes-validations": [
                        {"rule": "self.replicas <= 10", "message": "at most ten"},
                        {"rule": "!has(oldSelf.colour) || has(self.colour)", "message": "a colour stays"}
                    ]},
                    "status": {"type": "object", "properties": {
                        "replicas": {"type": "integer"}, "selector": {"type": "string"},
                        "conditions": {"type": "array", "items": {"type": "object", "properties": {
                            "type": {"type": "string"}, "status": {"type": "string"}}}}
                    }}
                }}}
            }]
        }
    });
    serde_json::from_value(definition).expect("a definition")
}

fn resource() -> ApiResource {
    ApiResource {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.com/v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    }
}

pub(crate) fn widgets(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &resource())
}

pub(crate) fn widget(name: &str, replicas: i64) -> DynamicObject {
    DynamicObject::new(name, &resource()).data(json!({"spec": {"replicas": replicas}}))
}

/// Creates the CRD and waits until it is established.
pub(crate) async fn define(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("e2e");
    let name = "widgets.example.com";
    definitions
        .patch(name, &apply, &Patch::Apply(definition()))
        .await
        .expect("applied");
    await_condition(definitions, name, conditions::is_crd_established())
        .await
        .expect("established");
}

async fn started() -> (Process, Client, Api<DynamicObject>) {
    let server = Process::start(&[]);
    let client = server.client().await;
    define(&client).await;
    let api = widgets(&client);
    (server, client, api)
}

/// The error of a call.
fn refused<T: std::fmt::Debug>(result: kube::Result<T>) -> Status {
    match result {
        Err(kube::Error::Api(e)) => *e,
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test]
async fn discovery_finds_the_kind() {
    let (_server, client, _) = started().await;
    let discovery = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .expect("discovered");
    let group = discovery.get("example.com").expect("the group");
    let (found, capabilities) = group.recommended_kind("Widget").expect("the kind");
    assert_eq!(found.plural, "widgets");
    assert_eq!(capabilities.scope, Scope::Namespaced);
    let subresources: Vec<&str> = capabilities
        .subresources
        .iter()
        .map(|(r, _)| r.kind.as_str())
        .collect();
    assert_eq!(subresources.len(), 2, "{subresources:?}");
    let plain = Discovery::new(client).run().await.expect("discovered");
    assert!(
        plain
            .get("example.com")
            .is_some_and(|g| g.recommended_kind("Widget").is_some())
    );
}

#[tokio::test]
async fn server_side_apply() {
    let (_server, _, api) = started().await;
    let apply = |colour: &str, part: &str| {
        Patch::Apply(json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"},
            "spec": {"colour": colour, "parts": [{"name": part, "size": 1}]}
        }))
    };
    let one = PatchParams::apply("one");
    let two = PatchParams::apply("two");
    let made = api
        .patch("a", &one, &apply("red", "hull"))
        .await
        .expect("applied");
    assert_eq!(made.data["spec"]["replicas"], 1, "defaults are filled in");
    let conflict = refused(api.patch("a", &two, &apply("blue", "mast")).await);
    assert_eq!(conflict.code, 409);
    assert!(
        conflict.message.contains("conflict with \"one\": .spec.colour"),
        "{}",
        conflict.message
    );
    let forced = api
        .patch("a", &two.clone().force(), &apply("blue", "mast"))
        .await
        .expect("forced");
    assert_eq!(forced.data["spec"]["colour"], "blue");
    let parts = forced.data["spec"]["parts"].as_array().map(Vec::len);
    assert_eq!(parts, Some(2), "a map list holds the parts of both");
    // Fields that a manager no longer applies are removed.
    let less = Patch::Apply(json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"replicas": 2}
    }));
    let after = api.patch("a", &one, &less).await.expect("applied");
    let parts = after.data["spec"]["parts"]
        .as_array()
        .map(|p| p.iter().map(|p| p["name"].clone()).collect());
    assert_eq!(parts, Some(vec![json!("mast")]));
    let again = api.patch("a", &one, &less).await.expect("applied");
    assert_eq!(
        again.resource_version(),
        after.resource_version(),
        "nothing changed"
    );
}

#[tokio::test]
async fn patches_and_rules() {
    let (_server, _, api) = started().await;
    api.create(&PostParams::default(), &widget("a", 2))
        .await
        .expect("made");
    let params = PatchParams::default();
    let merged = api
        .patch("a", &params, &Patch::Merge(json!({"spec": {"colour": "red"}})))
        .await
        .expect("merged");
    assert_eq!(merged.data["spec"], json!({"colour": "red", "replicas": 2}));
    let strategic = refused(
        api.patch("a", &params, &Patch::Strategic(json!({"spec": {}})))
            .await,
    );
    assert_eq!(strategic.code, 415);
    let broken = refused(
        api.patch("a", &params, &Patch::Merge(json!({"spec": {"replicas": 11}})))
            .await,
    );
    assert_eq!((broken.code, broken.reason.as_str()), (422, "Invalid"));
    assert!(broken.message.contains("at most ten"), "{}", broken.message);
    let transition = refused(
        api.patch("a", &params, &Patch::Merge(json!({"spec": {"colour": null}})))
            .await,
    );
    assert!(
        transition.message.contains("a colour stays"),
        "{}",
        transition.message
    );
    let dry = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let tried = api
        .patch("a", &dry, &Patch::Merge(json!({"spec": {"replicas": 5}})))
        .await
        .expect("tried");
    assert_eq!(tried.data["spec"]["replicas"], 5);
    assert_eq!(api.get("a").await.expect("there").data["spec"]["replicas"], 2);
    let strict = PatchParams::default().validation_strict();
    let unknown = refused(
        api.patch("a", &strict, &Patch::Merge(json!({"spec": {"mass": 1}})))
            .await,
    );
    assert!(
        unknown.message.contains("unknown field \"spec.mass\""),
        "{}",
        unknown.message
    );
}

/// A reflector mirrors the server, by list and watch and by streaming lists, while objects are created and
/// deleted.
#[tokio::test]
async fn reflectors_follow_changes() {
    let (_server, _, api) = started().await;
    for i in 0..20 {
        api.create(&PostParams::default(), &widget(&format!("w{i}"), 1))
            .await
            .expect("made");
    }
    for config in [
        watcher::Config::default().page_size(7),
        watcher::Config::default().any_semantic(),
        watcher::Config::default().streaming_lists(),
    ] {
        let (reader, writer) = {
            let writer = reflector::store::Writer::new(resource());
            (writer.as_reader(), writer)
        };
        let stream = watcher(api.clone(), config.clone())
            .default_backoff()
            .reflect(writer);
        let mut stream = Box::pin(stream);
        let mut seen = 0;
        while reader.len() < 20 {
            stream.next().await.expect("it goes on").expect("no error");
            seen += 1;
            assert!(seen < 1000, "{config:?}: too many events");
        }
        api.delete("w0", &DeleteParams::default()).await.expect("deleted");
        let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
        api.patch("w1", &PatchParams::default(), &patch)
            .await
            .expect("patched");
        api.create(&PostParams::default(), &widget("new", 9))
            .await
            .expect("made");
        let key = |name: &str| ObjectRef::<DynamicObject>::new_with(name, resource()).within("default");
        while reader.get(&key("new")).is_none() {
            stream.next().await.expect("it goes on").expect("no error");
        }
        assert!(reader.get(&key("w0")).is_none(), "{config:?}");
        let changed = reader.get(&key("w1")).map(|w| w.data["spec"]["replicas"].clone());
        assert_eq!(changed, Some(json!(7)), "{config:?}");
        // Restores the state for the next one.
        api.delete("new", &DeleteParams::default())
            .await
            .expect("deleted");
        api.create(&PostParams::default(), &widget("w0", 1))
            .await
            .expect("made");
        let patch = Patch::Merge(json!({"spec": {"replicas": 1}}));
        api.patch("w1", &PatchParams::default(), &patch)
            .await
            .expect("patched");
    }
}

#[tokio::test]
async fn scale_and_status() {
    let (_server, _, api) = started().await;
    api.create(&PostParams::default(), &widget("a", 2))
        .await
        .expect("made");
    let scale = api.get_scale("a").await.expect("a scale");
    assert_eq!(scale.spec.and_then(|s| s.replicas), Some(2));
    let patch = Patch::Merge(json!({"spec": {"replicas": 4}}));
    let scaled = api
        .patch_scale("a", &PatchParams::default(), &patch)
        .await
        .expect("scaled");
    assert_eq!(scaled.spec.and_then(|s| s.replicas), Some(4));
    let refusal = Patch::Merge(json!({"spec": {"replicas": 40}}));
    assert_eq!(
        refused(api.patch_scale("a", &PatchParams::default(), &refusal).await).code,
        422
    );
    // A status update through its endpoint wakes a waiting client.
    let ready = |object: Option<&DynamicObject>| {
        object.is_some_and(|o| o.data["status"]["conditions"][0]["status"] == "True")
    };
    let waiting = tokio::spawn(await_condition(api.clone(), "a", ready));
    let ignored = Patch::Merge(json!({"status": {"replicas": 9}}));
    let patched = api
        .patch("a", &PatchParams::default(), &ignored)
        .await
        .expect("patched");
    assert_eq!(patched.data.get("status"), None);
    let status = Patch::Merge(json!({"spec": {"replicas": 9}, "status": {
        "replicas": 4, "selector": "app=a", "conditions": [{"type": "Ready", "status": "True"}]}}));
    let patched = api
        .patch_status("a", &PatchParams::default(), &status)
        .await
        .expect("patched");
    assert_eq!(patched.data["spec"]["replicas"], 4);
    waiting.await.expect("no panic").expect("the condition holds");
    let mut whole = api.get_status("a").await.expect("there");
    let generation = whole.metadata.generation;
    whole.data["status"]["replicas"] = json!(5);
    let replaced = api
        .replace_status("a", &PostParams::default(), &whole)
        .await
        .expect("replaced");
    assert_eq!(
        replaced.metadata.generation, generation,
        "only the specification makes a new generation"
    );
    let scale = api.get_scale("a").await.expect("a scale");
    let status = scale.status.expect("a status");
    assert_eq!((status.replicas, status.selector.as_deref()), (5, Some("app=a")));
}

#[tokio::test]
async fn finalizers_and_propagation() {
    let (_server, _, api) = started().await;
    let mut held = widget("held", 1);
    held.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    let made = api.create(&PostParams::default(), &held).await.expect("made");
    let marked = api
        .delete("held", &DeleteParams::default())
        .await
        .expect("asked")
        .left()
        .expect("it is held");
    assert!(marked.metadata.deletion_timestamp.is_some());
    let uid = made.uid().expect("a uid");
    let gone = {
        let (api, uid) = (api.clone(), uid.clone());
        tokio::spawn(async move { await_condition(api, "held", conditions::is_deleted(&uid)).await })
    };
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("held", &PatchParams::default(), &free)
        .await
        .expect("freed");
    gone.await.expect("no panic").expect("gone");
    assert_eq!(refused(api.get("held").await).code, 404);
    for (policy, finalizer) in [
        (PropagationPolicy::Foreground, Some("foregroundDeletion")),
        (PropagationPolicy::Orphan, Some("orphan")),
        (PropagationPolicy::Background, None),
    ] {
        api.create(&PostParams::default(), &widget("a", 1))
            .await
            .expect("made");
        let params = DeleteParams {
            propagation_policy: Some(policy),
            ..DeleteParams::default()
        };
        match (api.delete("a", &params).await.expect("asked").left(), finalizer) {
            (Some(held), Some(finalizer)) => {
                assert_eq!(held.finalizers(), [finalizer]);
                api.patch("a", &PatchParams::default(), &free)
                    .await
                    .expect("freed");
            }
            (None, None) => {}
            (held, _) => panic!("{finalizer:?}: {held:?}"),
        }
        assert_eq!(refused(api.get("a").await).code, 404);
    }
    // A delete with the uid of another object.
    api.create(&PostParams::default(), &widget("a", 1))
        .await
        .expect("made");
    let stale = DeleteParams::default().preconditions(kube::api::Preconditions {
        uid: Some(uid),
        resource_version: None,
    });
    assert_eq!(refused(api.delete("a", &stale).await).code, 409);
}

#[tokio::test]
async fn pages_and_collections() {
    let (_server, _, api) = started().await;
    for i in 0..25 {
        let mut w = widget(&format!("w{i:02}"), 1);
        w.labels_mut().insert("half".to_owned(), (i % 2).to_string());
        api.create(&PostParams::default(), &w).await.expect("made");
    }
    let mut names = Vec::new();
    let mut params = ListParams::default().limit(10);
    let mut versions = Vec::new();
    loop {
        let page = api.list(&params).await.expect("a page");
        versions.push(page.metadata.resource_version.clone());
        names.extend(page.items.iter().map(ResourceExt::name_any));
        // Objects created between pages are on none of them.
        let late = widget(&format!("w05-late{}", names.len()), 1);
        api.create(&PostParams::default(), &late).await.expect("made");
        match page.metadata.continue_.filter(|c| !c.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    let want: Vec<String> = (0..25).map(|i| format!("w{i:02}")).collect();
    assert_eq!(names, want);
    versions.dedup();
    assert_eq!(versions.len(), 1, "all pages show one state");
    let odd = ListParams::default().labels("half=1");
    api.delete_collection(&DeleteParams::default(), &odd)
        .await
        .expect("deleted");
    assert_eq!(api.list(&odd).await.expect("a list").items.len(), 0);
    assert_eq!(
        api.list(&ListParams::default().labels("half"))
            .await
            .expect("a list")
            .items
            .len(),
        13
    );
    let named = ListParams::default().fields("metadata.name=w02");
    assert_eq!(api.list(&named).await.expect("a list").items.len(), 1);
    let metadata = api.list_metadata(&ListParams::default()).await.expect("metadata");
    assert_eq!(metadata.items.len(), 16);
    api.delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .expect("deleted");
    assert_eq!(
        api.list(&ListParams::default())
            .await
            .expect("a list")
            .items
            .len(),
        0
    );
}

/// Writers that read, modify, write and retry on conflicts lose no change.
#[tokio::test]
async fn conflicts_are_retried() {
    let (_server, _, api) = started().await;
    api.create(&PostParams::default(), &widget("a", 0))
        .await
        .expect("made");
    let writers = (0..4).map(|_| {
        let api = api.clone();
        tokio::spawn(async move {
            let mut conflicts = 0;
            for _ in 0..2 {
                loop {
                    let mut object = api.get("a").await.expect("there");
                    let replicas = object.data["spec"]["replicas"].as_i64().unwrap_or_default();
                    object.data["spec"]["replicas"] = json!(replicas + 1);
                    match api.replace("a", &PostParams::default(), &object).await {
                        Ok(_) => break,
                        Err(kube::Error::Api(e)) if e.is_conflict() => conflicts += 1,
                        Err(e) => panic!("{e}"),
                    }
                }
            }
            conflicts
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    let replicas = api.get("a").await.expect("there").data["spec"]["replicas"].clone();
    assert_eq!(replicas, json!(8));
    let mut stale = api.get("a").await.expect("there");
    let patch = Patch::Merge(json!({"spec": {"replicas": 9}}));
    api.patch("a", &PatchParams::default(), &patch)
        .await
        .expect("patched");
    stale.data["spec"]["replicas"] = json!(1);
    assert_eq!(
        refused(api.replace("a", &PostParams::default(), &stale).await).code,
        409
    );
}

/// Built-in kinds with their client types.
#[tokio::test]
async fn namespaces_and_events() {
    let (_server, client, _) = started().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ships: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "ships"}})).expect("a namespace");
    let made = namespaces
        .create(&PostParams::default(), &ships)
        .await
        .expect("made");
    assert_eq!(made.status.and_then(|s| s.phase).as_deref(), Some("Active"));
    let events: Api<Event> = Api::namespaced(client.clone(), "ships");
    let event: Event = serde_json::from_value(json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Widget", "name": "a", "namespace": "ships"},
        "reason": "Sunk", "type": "Warning", "message": "it sank"
    }))
    .expect("an event");
    events.create(&PostParams::default(), &event).await.expect("made");
    let of_widgets = ListParams::default().fields("involvedObject.kind=Widget,type=Warning");
    assert_eq!(events.list(&of_widgets).await.expect("events").items.len(), 1);
    let inside: Api<DynamicObject> = Api::namespaced_with(client, "ships", &resource());
    inside
        .create(&PostParams::default(), &widget("a", 1))
        .await
        .expect("made");
    namespaces
        .delete("ships", &DeleteParams::default())
        .await
        .expect("asked");
    let uid = made.metadata.uid.expect("a uid");
    await_condition(namespaces, "ships", conditions::is_deleted(&uid))
        .await
        .expect("gone");
    let refusal = refused(inside.create(&PostParams::default(), &widget("b", 1)).await);
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (404, "namespaces \"ships\" not found")
    );
}

/// Deleting a CRD deletes its objects; watches see it.
#[tokio::test]
async fn deleting_a_crd_deletes_its_objects() {
    let (_server, client, api) = started().await;
    api.create(&PostParams::default(), &widget("a", 1))
        .await
        .expect("made");
    let mut events = Box::pin(watcher(api.clone(), watcher::Config::default()));
    let mut next = async || loop {
        match events.next().await.expect("it goes on").expect("no error") {
            watcher::Event::InitDone => return "known".to_owned(),
            watcher::Event::Apply(object) => return format!("changed {}", object.name_any()),
            watcher::Event::Delete(object) => return format!("deleted {}", object.name_any()),
            watcher::Event::Init | watcher::Event::InitApply(_) => {}
        }
    };
    assert_eq!(next().await, "known");
    // Once a change is seen, the watch is open.
    let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
    api.patch("a", &PatchParams::default(), &patch)
        .await
        .expect("patched");
    assert_eq!(next().await, "changed a");
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let name = "widgets.example.com";
    let uid = definitions
        .get(name)
        .await
        .expect("there")
        .metadata
        .uid
        .expect("a uid");
    definitions
        .delete(name, &DeleteParams::default())
        .await
        .expect("asked");
    assert_eq!(next().await, "deleted a");
    await_condition(definitions, name, conditions::is_deleted(&uid))
        .await
        .expect("gone");
    assert_eq!(refused(api.get("a").await).code, 404);
}
