//! Objects that are small in the store and large when they are shown: compressible ones, and those with defaults that
//! came after them. Objects that stay after their deletion.

use crate::cluster::{
    DEFINITIONS, JSON_PATCH, THINGS, define, list, members, patch, post, things, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": value}})
}

/// Config maps of a megabyte each, which the store compresses to a few kilobytes.
fn compressible(size: Size) -> Vec<HttpRequest> {
    let value = "a".repeat(1_000_000);
    let objects = (0..size.scale(200)).map(|i| post(CONFIG_MAPS, &config_map(&format!("c{i}"), &value)));
    objects.collect()
}

fn of_compressible(
    name: &'static str,
    request: &'static str,
    method: &'static str,
    query: &'static str,
    accept: &'static str,
) -> Attack {
    Attack::one(name, request, move |_| {
        let mut request = HttpRequest::new(method, format!("{CONFIG_MAPS}{query}"), "", "");
        request.headers.push(("Accept".to_owned(), accept.to_owned()));
        request
    })
    .after(compressible)
    .expect(&[200, 429, 504])
}

/// A schema whose items have 3 000 properties, with or without defaults.
fn items(has_defaults: bool) -> Value {
    let property = match has_defaults {
        true => json!({"type": "string", "default": "x".repeat(20)}),
        false => json!({"type": "string"}),
    };
    let properties = members(3_000, |i| (format!("p{i}"), property.clone()));
    let item = json!({"type": "object", "properties": properties});
    with_spec(&json!({"type": "object", "properties": {"a": {"type": "array", "items": item}}}))
}

/// Objects of 20 empty items, which later become two megabytes each.
fn with_later_defaults(name: &'static str, request: &'static str, query: &'static str) -> Attack {
    Attack::one(name, request, move |_| HttpRequest::get(format!("{THINGS}{query}")))
        .after_one(|_| define(&things(&items(false))))
        .after(|size| {
            let object = |i: usize| {
                json!({"apiVersion": "attack.example.com/v1", "kind": "Things", "metadata": {"name": format!("t{i}")},
                    "spec": {"a": list(&json!({}), 20)}})
            };
            (0..size.scale(1_000)).map(|i| post(THINGS, &object(i))).collect()
        })
        .after_one(|_| {
            patch(
                &format!("{DEFINITIONS}/things.attack.example.com"),
                JSON_PATCH,
                &json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": items(true)}]),
            )
        })
        .expect(&[200, 429, 504])
        // One connection: each response alone is two gigabytes.
        .connections(1)
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        of_compressible(
            "expansion/json",
            "a list of 200 MB that the store compresses",
            "GET",
            "",
            "application/json",
        ),
        of_compressible("expansion/protobuf", "the same in protobuf", "GET", "", PROTOBUF),
        of_compressible(
            "expansion/protobuf-metadata",
            "the metadata of these objects in protobuf",
            "GET",
            "",
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ),
        of_compressible(
            "expansion/delete-collection",
            "a dry run of deleting them",
            "DELETE",
            "?dryRun=All",
            "application/json",
        ),
        with_later_defaults(
            "expansion/defaults-list",
            "a list of 1 000 objects that get 2 MB of defaults each",
            "",
        ),
        with_later_defaults(
            "expansion/defaults-watch",
            "the first events of a watch of them",
            "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=2",
        ),
        Attack::requests(
            "deleted/held-objects",
            "a deleted namespace with 10 000 objects that finalizers hold",
            |_| {
                vec![
                    HttpRequest::new("DELETE", "/api/v1/namespaces/full", "", ""),
                    HttpRequest::get("/api/v1/namespaces/full"),
                ]
            },
        )
        .after_one(|_| {
            post(
                "/api/v1/namespaces",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}}),
            )
        })
        .after(|size| {
            let held = |i: usize| {
                let mut object = config_map(&format!("c{i}"), "x");
                // A finalizer that no controller removes keeps the object forever.
                object["metadata"]["finalizers"] = json!(["attack.example.com/held"]);
                object
            };
            let post = |i| post("/api/v1/namespaces/full/configmaps", &held(i));
            (0..size.scale(10_000)).map(post).collect()
        })
        .expect(&[200, 409]),
    ]
}
