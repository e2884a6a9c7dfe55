//! A server for one test.

use crate::client::Client;
use scantling_server::{Config, Server};
use scantling_store::MemStore;
use std::sync::Arc;

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A CRD with a rule, a status and a scale.
pub(crate) const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList","shortNames":["wd"]},
"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"replicas":{"type":"integer"},"size":{"type":"integer"}},
"x-kubernetes-validations":[{"rule":"!has(self.size) || self.size < 100"}]},
"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}"#;

pub(crate) async fn serve(config: Config) -> (Server, Client) {
    let server = Server::start(config, Arc::new(MemStore::default()))
        .await
        .expect("the server starts");
    let client = Client::of(&server);
    (server, client)
}

/// A server with the CRD of widgets.
pub(crate) async fn serve_widgets(config: Config) -> (Server, Client) {
    let (server, mut client) = serve(config).await;
    define(&mut client).await;
    (server, client)
}

pub(crate) async fn define(client: &mut Client) {
    let made = client.send("POST", DEFINITIONS, DEFINITION).await;
    assert_eq!(made.status, 201, "{}", made.text());
    eventually("widgets are served", async || {
        client.get(WIDGETS).await.status == 200
    })
    .await;
}

pub(crate) fn widget(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{{"size":1}}}}"#
    )
}

/// Waits for an asynchronous effect.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..1500 {
        if holds().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("not within half a minute: {what}");
}
