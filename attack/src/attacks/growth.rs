//! Small bodies that become large objects: defaults, conversion, scale.

use crate::cluster::{
    DEFINITIONS, JSON_PATCH, THING, THINGS, create_text, define, definition, list, members, open, patch,
    repeated, things, version, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

/// A list `a` whose items get many defaults.
fn defaulted(properties: usize, default: &Value) -> Value {
    with_spec(
        &json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
        "properties": members(properties, |i| (format!("p{i}"), json!({"type": "string", "default": default})))}}}}),
    )
}

fn empty_items(n: usize) -> String {
    format!(r#"{{"a":[{}]}}"#, repeated("{}", n))
}

/// Replaces the schema of the standard CRD.
fn redefine(schema: &Value) -> HttpRequest {
    patch(
        &format!("{DEFINITIONS}/things.attack.example.com"),
        JSON_PATCH,
        &json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]),
    )
}

/// Stored objects that get defaults when they are read.
fn read_with_defaults(
    name: &'static str,
    request: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
) -> Attack {
    Attack::one(name, request, move |_| {
        headers
            .iter()
            .fold(HttpRequest::get(path), |request, (name, value)| {
                request.header(name, *value)
            })
    })
    .after_one(|_| define(&things(&open())))
    .after(|size| {
        let body = empty_items(size.scale(1_000));
        (0..size.pick(20, 5))
            .map(|i| {
                let text = create_text("", &body);
                HttpRequest {
                    body: String::from_utf8_lossy(&text.body)
                        .replacen(r#""name":"a""#, &format!(r#""name":"a{i}""#), 1)
                        .into_bytes(),
                    ..text
                }
            })
            .chain([create_text("", &body)])
            .collect()
    })
    .after_one(|size| redefine(&defaulted(size.scale(9_000), &json!("x"))))
    .expect(&[200, 413, 422, 500, 504])
}

const GROWN: &[u16] = &[201, 400, 413, 422, 500, 504];

pub(crate) fn table() -> Vec<Attack> {
    vec![
        Attack::one("defaults/wide", "9 000 defaults for each of 1 000 items", |size| {
            create_text("", &empty_items(size.pick(1_000, 200)))
        })
        .after_one(|size| define(&things(&defaulted(size.pick(9_000, 4_000), &json!("x")))))
        .expect(&[400, 413, 422, 500]),
        Attack::one("defaults/large-value", "a default of 100 kB for each of 100 000 items", |size| {
            create_text("", &empty_items(size.scale(100_000)))
        })
        .after_one(|size| define(&things(&defaulted(1, &json!("x".repeat(size.scale(100_000)))))))
        .expect(&[400, 413, 422, 500]),
        Attack::one("defaults/list-value", "a default list of 50 000 for each of 10 000 items", |size| {
            create_text("", &empty_items(size.scale(10_000)))
        })
        .after_one(|size| {
            define(&things(&with_spec(&json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
                "properties": {"l": {"type": "array", "items": {"type": "integer"}, "default": list(&json!(0), size.scale(50_000))}}}}}}))))
        })
        .expect(&[400, 413, 422, 500]),
        Attack::one("defaults/nested", "defaults in defaults: 20 levels of empty objects for 20 000 items", |size| {
            create_text("", &empty_items(size.scale(20_000)))
        })
        .after_one(|_| {
            let mut schema = json!({"type": "object", "properties": {"v": {"type": "string", "default": "x".repeat(50)}}});
            for _ in 0..20 {
                schema = json!({"type": "object", "default": {}, "properties": {"n": schema, "m": {"type": "string", "default": "yyyyyyyy"}}});
            }
            define(&things(&with_spec(&json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"n": schema}}}}}))))
        })
        .expect(GROWN),
        Attack::one("defaults/tree", "defaults of a tree of 3^9 leaves for 200 items", |size| {
            create_text("", &empty_items(size.scale(200)))
        })
        .after_one(|size| {
            let mut schema = json!({"type": "string", "default": "x"});
            for _ in 0..size.pick(9, 6) {
                let node = schema;
                schema = json!({"type": "object", "default": {}, "properties": {"a": node, "b": node, "c": node}});
            }
            define(&things(&with_spec(&json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"n": schema}}}}}))))
        })
        .expect(GROWN),
        Attack::one("defaults/status", "9 000 defaults for each of 1 000 items of a status", |size| {
            let body = json!({"status": {"a": list(&json!({}), size.pick(1_000, 200))}});
            patch(&format!("{THING}/status"), "application/merge-patch+json", &body)
        })
        .after_one(|size| {
            let status = json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
                "properties": members(size.pick(9_000, 4_000), |i| (format!("p{i}"), json!({"type": "string", "default": "x"})))}}}});
            let mut definition = things(&json!({"type": "object", "properties": {"spec": {"type": "object"}, "status": status}}));
            definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            define(&definition)
        })
        .after_one(|_| create_text("", "{}"))
        .expect(&[400, 413, 422, 500]),
        Attack::one("defaults/apply", "an apply of 1 000 items with 9 000 defaults each", |size| {
            HttpRequest::new("PATCH", format!("{THING}?fieldManager=a"), "application/apply-patch+yaml",
                crate::cluster::thing_text(&empty_items(size.pick(1_000, 200))))
        })
        .after_one(|size| define(&things(&defaulted(size.pick(9_000, 4_000), &json!("x")))))
        .expect(&[400, 413, 422, 500]),
        read_with_defaults("defaults/read", "a GET of 1 000 items that get 9 000 defaults each", THING, &[]),
        read_with_defaults("defaults/list", "a list of 21 such objects", THINGS, &[]),
        read_with_defaults("defaults/table", "a table of them", THINGS, &[("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")]),
        read_with_defaults("defaults/watch", "the first events of a watch of them",
            "/apis/attack.example.com/v1/namespaces/default/things?watch=true&timeoutSeconds=1", &[]),
        Attack::one("conversion/defaults-of-versions", "a read in another of 20 versions, 2 000 defaults each", |_| {
            HttpRequest::get("/apis/attack.example.com/v7/namespaces/default/things")
        })
        .after_one(|size: Size| {
            let versions: Vec<Value> = (1..=20)
                .map(|i| version(&format!("v{i}"), i == 1, &if i == 1 { open() } else { defaulted(size.pick(2_000, 100), &json!("x")) }))
                .collect();
            define(&definition("things", &versions))
        })
        .after_one(|size| create_text("", &empty_items(size.scale(5_000))))
        .expect(&[200, 413, 422, 500, 504]),
        Attack::requests("scale/patches", "patches of a scale whose object has 700 000 items", |_| {
            vec![
                patch(&format!("{THING}/scale"), "application/merge-patch+json", &json!({"spec": {"replicas": 1}})),
                patch(&format!("{THING}/scale"), "application/merge-patch+json", &json!({"spec": {"replicas": 2}})),
            ]
        })
        .after_one(|_| {
            let mut definition = things(&json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "l": {"type": "array", "items": {"type": "integer"}}}},
                "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}));
            definition["spec"]["versions"][0]["subresources"] =
                json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}});
            define(&definition)
        })
        .after_one(|size| create_text("", &format!(r#"{{"replicas":0,"l":[{}]}}"#, repeated("0", size.scale(700_000)))))
        .expect(&[200, 409, 422, 500, 504]),
    ]
}
