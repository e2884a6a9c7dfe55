//! CRDs and the documents published about them.

use crate::cluster::{DEFINITIONS, define, definition, members, open, put, things, version, with_spec};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

/// A CRD with many versions.
fn many_versions(n: usize, schema: &Value) -> Value {
    let versions: Vec<Value> = (1..=n)
        .map(|i| version(&format!("v{i}"), i == 1, schema))
        .collect();
    definition("things", &versions)
}

fn wide_schema(n: usize) -> Value {
    with_spec(&json!({"type": "object", "properties": members(n, |i| {
        (format!("property-{i}"), json!({"type": "string", "description": "A property among many others."}))
    })}))
}

/// Reads a document while a CRD changes in between, so that the document is rebuilt each time.
fn republished(
    name: &'static str,
    request: &'static str,
    document: &'static str,
    make: fn(Size) -> Value,
) -> Attack {
    Attack::requests(name, request, move |size| {
        let mut requests = Vec::new();
        for i in 0..2 {
            let mut definition = make(size);
            definition["metadata"]["annotations"] = json!({"turn": i.to_string()});
            // The short name changes discovery as well.
            definition["spec"]["names"]["shortNames"] = json!([format!("t{i}")]);
            // The CRD is read back for its resource version: an update without one is refused.
            let change = json!({"metadata": definition["metadata"], "spec": {"names": definition["spec"]["names"],
                "versions": definition["spec"]["versions"]}});
            requests.push(HttpRequest::new(
                "PATCH",
                format!("{DEFINITIONS}/things.attack.example.com"),
                "application/merge-patch+json",
                change.to_string(),
            ));
            requests.push(HttpRequest::get(document));
        }
        requests
    })
    .after_one(move |size| define(&make(size)))
    .expect(&[200, 406, 413, 422, 500, 504])
}

pub(crate) fn table() -> Vec<Attack> {
    let deep = |size: Size| {
        let mut schema = json!({"type": "string"});
        for _ in 0..size.scale(3_000) {
            schema = json!({"type": "object", "properties": {"a": schema}});
        }
        with_spec(&schema)
    };
    vec![
        republished("openapi/v2-versions", "/openapi/v2 after each change of a definition of 1 000 versions", "/openapi/v2",
            |size| many_versions(size.scale(1_000), &open())),
        republished("openapi/v3-versions", "/openapi/v3 after each change of a definition of 1 000 versions", "/openapi/v3",
            |size| many_versions(size.scale(1_000), &open())),
        republished("openapi/v3-wide", "/openapi/v3 of one version with 12 000 properties",
            "/openapi/v3/apis/attack.example.com/v1", |size| things(&wide_schema(size.scale(12_000)))),
        republished("openapi/v2-wide", "/openapi/v2 with 12 000 properties", "/openapi/v2", |size| things(&wide_schema(size.scale(12_000)))),
        republished("discovery/versions", "aggregated discovery of 1 000 versions", "/apis", |size| many_versions(size.scale(1_000), &open())),
        Attack::requests("definitions/many", "150 definitions of 200 properties, deleted again", |size| {
            let n = size.pick(150, 10);
            let create = (0..n).map(|i| define(&definition(&format!("things{i}"), &[version("v1", true, &wide_schema(200))])));
            let delete = (0..n).map(|i| HttpRequest::new("DELETE", format!("{DEFINITIONS}/things{i}.attack.example.com"), "", ""));
            create.chain(delete).collect()
        })
        .expect(&[200, 201, 403, 404]),
        Attack::one("definitions/wide", "a definition of 30 000 properties", |size| {
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"), ..define(&things(&wide_schema(size.scale(30_000)))) }
        })
        .expect(&[201, 413, 422, 504]),
        Attack::one("definitions/deep", "a schema 3 000 deep", move |size| {
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"), ..define(&things(&deep(size))) }
        })
        .expect(&[201, 400, 413, 422, 504]),
        Attack::one("definitions/deep-any-of", "anyOf 2 000 deep", |size| {
            let mut schema = json!({"minimum": 1});
            for _ in 0..size.scale(2_000) {
                schema = json!({"anyOf": [schema]});
            }
            schema["type"] = json!("integer");
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"),
                ..define(&things(&with_spec(&json!({"type": "object", "properties": {"a": schema}})))) }
        })
        .expect(&[201, 400, 413, 422, 504]),
        Attack::one("definitions/versions", "a definition of 3 000 versions", |size| {
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"), ..define(&many_versions(size.scale(3_000), &open())) }
        })
        .expect(&[201, 400, 413, 422, 504]),
        Attack::requests("definitions/updates", "updates of a definition of 12 000 properties", |size| {
            // Two contents in turn, so that each update changes the schema.
            (0..2)
                .map(|i| {
                    let mut d = things(&wide_schema(size.scale(12_000)));
                    d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = json!(i.to_string());
                    let change = json!({"spec": {"versions": d["spec"]["versions"]}});
                    HttpRequest::new("PATCH", format!("{DEFINITIONS}/things.attack.example.com"), "application/merge-patch+json", change.to_string())
                })
                .collect()
        })
        .after_one(|size| define(&things(&wide_schema(size.scale(12_000)))))
        .expect(&[200, 409, 413, 422, 504]),
        Attack::one("definitions/rules-times-properties", "3 000 properties with two rules each", |size| {
            let properties = members(size.scale(3_000), |i| {
                (format!("p{i}"), json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": [
                    {"rule": format!("self != 'a{i}'")}, {"rule": "self == oldSelf"}]}))
            });
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"),
                ..define(&things(&with_spec(&json!({"type": "object", "properties": properties})))) }
        })
        .expect(&[201, 413, 422, 504]),
        Attack::one("definitions/status-update", "an update of a definition's status with 30 000 conditions", |size| {
            let mut d = things(&open());
            let conditions: Vec<Value> = (0..size.scale(30_000)).map(|i| json!({"type": format!("c{i}"), "status": "x"})).collect();
            d["status"] = json!({"conditions": conditions, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": vec!["v9"; 1_000]});
            put(&format!("{DEFINITIONS}/things.attack.example.com/status"), &d)
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 400, 409, 413, 422]),
    ]
}
