//! Patches and applies: small bodies, large objects.

use crate::cluster::{
    APPLY, CONFIG_MAPS, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, THING, create_text, define, list, members,
    numbered, open, patch, post, repeated, thing_text, things, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

/// The acceptable responses to an expensive patch: it succeeds, is refused for its size, or times out.
const DONE_OR_REFUSED: &[u16] = &[200, 400, 413, 422, 500, 504];

/// An object whose `spec.l` has `n` zeros.
fn long_list(n: usize) -> HttpRequest {
    create_text("", &format!(r#"{{"l":[{}]}}"#, repeated("0", n)))
}

/// A JSON patch of operations on an object with a long list.
fn on_long_list(
    name: &'static str,
    request: &'static str,
    operations: impl Fn(Size) -> Vec<Value> + 'static,
) -> Attack {
    Attack::one(name, request, move |size| {
        patch(THING, JSON_PATCH, &Value::Array(operations(size)))
    })
    .after_one(|_| define(&things(&open())))
    .after_one(|size| long_list(size.scale(700_001)))
    .expect(DONE_OR_REFUSED)
}

/// A patch of a ConfigMap with large metadata.
fn on_metadata(
    name: &'static str,
    request: &'static str,
    metadata: impl Fn(Size) -> Value + 'static,
    media_type: &'static str,
    body: impl Fn(Size) -> Value + 'static,
) -> Attack {
    Attack::one(name, request, move |size| {
        patch(&format!("{CONFIG_MAPS}/a"), media_type, &body(size))
    })
    .after_one(move |size| {
        let mut metadata = metadata(size);
        if let Some(map) = metadata.as_object_mut() {
            map.insert("name".to_owned(), json!("a"));
        }
        post(
            CONFIG_MAPS,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}),
        )
    })
    .expect(DONE_OR_REFUSED)
}

fn owners(n: usize) -> Value {
    let owner = |i: usize| json!({"apiVersion": "v1", "kind": "Node", "name": format!("n{i}"), "uid": format!("{i:08}")});
    Value::Array((0..n).map(owner).collect())
}

fn finalizers(n: usize) -> Value {
    Value::Array((0..n).map(|i| json!(format!("example.com/f{i}"))).collect())
}

fn apply(path: &str, manager: &str, body: String) -> HttpRequest {
    HttpRequest::new(
        "PATCH",
        format!("{path}?fieldManager={manager}&force=true"),
        APPLY,
        body,
    )
}

/// A CRD whose `spec.l` is a list of the given list type.
fn keyed(kind: &str) -> Value {
    let items = json!({"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"}, "v": {"type": "string"}}});
    let mut l = json!({"type": "array", "items": items, "x-kubernetes-list-type": kind});
    match kind {
        "map" => l["x-kubernetes-list-map-keys"] = json!(["k"]),
        // A set needs scalars, or atomic maps.
        "set" => l["items"] = json!({"type": "integer"}),
        _ => {}
    }
    things(&with_spec(&json!({"type": "object", "properties": {"l": l}})))
}

fn keyed_items(n: usize, value: &str) -> String {
    format!(
        r#"{{"l":[{}]}}"#,
        numbered(n, |i| format!(r#"{{"k":{i},"v":"{value}"}}"#))
    )
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        on_long_list(
            "json-patch/insert-front",
            "2 000 × add /spec/l/0, 700 001 items",
            |size| vec![json!({"op": "add", "path": "/spec/l/0", "value": 1}); size.scale(2_000)],
        ),
        on_long_list(
            "json-patch/insert-front-10000",
            "10 000 × add /spec/l/0, 700 001 items",
            |size| vec![json!({"op": "add", "path": "/spec/l/0", "value": 1}); size.scale(10_000)],
        ),
        on_long_list(
            "json-patch/insert-front-10-clients",
            "2 000 × add /spec/l/0, 700 001 items, 10 connections",
            |size| vec![json!({"op": "add", "path": "/spec/l/0", "value": 1}); size.scale(2_000)],
        )
        .expect(&[200, 400, 409, 413, 422, 429, 500, 504])
        .connections(10),
        on_long_list(
            "json-patch/remove-front",
            "10 000 × remove /spec/l/0, 700 001 items",
            |size| vec![json!({"op": "remove", "path": "/spec/l/0"}); size.scale(10_000)],
        ),
        on_long_list(
            "json-patch/move-front-to-end",
            "10 000 × move /spec/l/0 to /spec/l/-, 700 001 items",
            |size| vec![json!({"op": "move", "from": "/spec/l/0", "path": "/spec/l/-"}); size.scale(10_000)],
        ),
        on_long_list(
            "json-patch/move-list-around",
            "10 000 × move /spec/l to /spec/m and back, 700 001 items",
            |size| {
                let there = json!({"op": "move", "from": "/spec/l", "path": "/spec/m"});
                let back = json!({"op": "move", "from": "/spec/m", "path": "/spec/l"});
                [there, back].into_iter().cycle().take(size.scale(10_000)).collect()
            },
        ),
        on_long_list(
            "json-patch/copy-doubling",
            "30 × copy /spec to /spec/x",
            |_| vec![json!({"op": "copy", "from": "/spec", "path": "/spec/x"}); 30],
        ),
        on_long_list(
            "json-patch/test-list",
            "10 000 × test of /spec/l",
            |size| vec![json!({"op": "test", "path": "/spec/l", "value": [0]}); size.scale(10_000)],
        ),
        on_long_list(
            "json-patch/replace-middle",
            "10 000 × replace and remove in the middle of 700 001 items",
            |size| {
                let middle = size.scale(700_001) / 2;
                let path = format!("/spec/l/{middle}");
                let (replace, remove) = (
                    json!({"op": "replace", "path": path, "value": 1}),
                    json!({"op": "remove", "path": path}),
                );
                [replace, remove].into_iter().cycle().take(size.scale(10_000)).collect()
            },
        ),
        on_long_list("json-patch/too-many-operations", "60 000 operations", |_| {
            vec![json!({"op": "add", "path": "/x", "value": 1}); 60_000]
        })
        .expect(&[413]),
        on_long_list("json-patch/deep-path", "1 000 × add at a path of 1 000 steps", |size| {
            let path = "/a".repeat(1_000);
            vec![json!({"op": "add", "path": path, "value": 1}); size.scale(1_000)]
        }),
        Attack::one(
            "json-patch/insert-between-members",
            "5 000 × add a member that sorts first, 100 000 members",
            |size| {
                let operations = (0..size.scale(5_000))
                    .map(|i| json!({"op": "add", "path": format!("/spec/a{:06}", 999_999 - i), "value": 0}));
                patch(THING, JSON_PATCH, &operations.collect())
            },
        )
        .after_one(|_| define(&things(&open())))
        .after_one(|size| create_text("", &format!("{{{}}}", numbered(size.scale(100_000), |i| format!(r#""z{i}":0"#)))))
        .expect(DONE_OR_REFUSED),
        Attack::one(
            "json-patch/grow-string-in-many-places",
            "10 000 × copy of a string of 250 kB",
            |size| {
                let operations =
                    (0..size.scale(10_000)).map(|i| json!({"op": "copy", "from": "/spec/s", "path": format!("/spec/s{i}")}));
                patch(THING, JSON_PATCH, &operations.collect())
            },
        )
        .after_one(|_| define(&things(&open())))
        .after_one(|_| create_text("", &format!(r#"{{"s":"{}"}}"#, "x".repeat(250_000))))
        .expect(&[400, 413, 422, 500]),
        Attack::one(
            "merge-patch/members",
            "a merge patch of 60 000 members on as many others",
            |size| patch(THING, MERGE_PATCH, &json!({"spec": members(size.scale(60_000), |i| (format!("b{i}"), json!(i)))})),
        )
        .after_one(|_| define(&things(&open())))
        .after_one(|size| create_text("", &format!("{{{}}}", numbered(size.scale(60_000), |i| format!(r#""a{i}":0"#)))))
        .expect(DONE_OR_REFUSED),
        Attack::one(
            "merge-patch/nulls",
            "a merge patch of 250 000 nulls in lists",
            |size| patch(THING, MERGE_PATCH, &json!({"spec": {"l": list(&json!({"a": null}), size.scale(250_000))}})),
        )
        .after_one(|_| define(&things(&open())))
        .after_one(|_| create_text("", "{}"))
        .expect(DONE_OR_REFUSED),
        Attack::one("merge-patch/deep", "a merge patch of 9 000 levels", |size| {
            let n = size.scale(9_000);
            let body = format!(r#"{{"spec":{}1{}}}"#, r#"{"a":"#.repeat(n), "}".repeat(n));
            HttpRequest::new("PATCH", THING, MERGE_PATCH, body)
        })
        .after_one(|_| define(&things(&open())))
        .after_one(|size| {
            let n = size.scale(9_000);
            create_text("", &format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n)))
        })
        .expect(DONE_OR_REFUSED),
        on_metadata(
            "strategic/owner-references",
            "5 000 owner references against as many others",
            |size| json!({"ownerReferences": owners(size.scale(5_000))}),
            STRATEGIC_PATCH,
            |size| {
                let mut patch = owners(size.scale(5_000) * 2);
                if let Some(items) = patch.as_array_mut() {
                    items.drain(..size.scale(5_000));
                }
                json!({"metadata": {"ownerReferences": patch}})
            },
        ),
        on_metadata(
            "strategic/owner-references-deleted",
            "$patch: delete of 5 000 owner references",
            |size| json!({"ownerReferences": owners(size.scale(5_000))}),
            STRATEGIC_PATCH,
            |size| {
                let delete = |i: usize| json!({"$patch": "delete", "uid": format!("{i:08}")});
                json!({"metadata": {"ownerReferences": (0..size.scale(5_000)).rev().map(delete).collect::<Value>()}})
            },
        ),
        on_metadata(
            "strategic/element-order",
            "$setElementOrder of 5 000 owner references in reverse",
            |size| json!({"ownerReferences": owners(size.scale(5_000))}),
            STRATEGIC_PATCH,
            |size| {
                let order = |i: usize| json!({"uid": format!("{i:08}")});
                json!({"metadata": {
                    "$setElementOrder/ownerReferences": (0..size.scale(5_000)).rev().map(order).collect::<Value>(),
                    "ownerReferences": [{"uid": "00000001", "name": "x"}],
                }})
            },
        ),
        on_metadata(
            "strategic/finalizers",
            "20 000 finalizers added to as many",
            |size| json!({"finalizers": finalizers(size.scale(20_000))}),
            STRATEGIC_PATCH,
            |size| {
                let added = (0..size.scale(20_000)).map(|i| json!(format!("example.org/g{i}")));
                json!({"metadata": {"finalizers": added.collect::<Value>()}})
            },
        ),
        on_metadata(
            "strategic/finalizers-deleted",
            "$deleteFromPrimitiveList of 40 000 finalizers",
            |size| json!({"finalizers": finalizers(size.scale(40_000))}),
            STRATEGIC_PATCH,
            |size| {
                let removed = (0..size.scale(40_000)).rev().map(|i| json!(format!("example.com/f{i}")));
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": removed.collect::<Value>()}})
            },
        ),
        Attack::requests("apply/list-map", "12 000 items by key, two managers, reversed", |size| {
            let n = size.scale(12_000);
            let reversed = format!(r#"{{"l":[{}]}}"#, numbered(n, |i| format!(r#"{{"k":{},"v":"b"}}"#, n - i)));
            vec![
                apply(THING, "one", thing_text(&keyed_items(n, "a"))),
                apply(THING, "two", thing_text(&reversed)),
            ]
        })
        .after_one(|_| define(&keyed("map")))
        .expect(&[200, 201, 400, 413, 422, 500, 504]),
        Attack::requests("apply/set", "30 000 numbers of a set, two managers, reversed", |size| {
            let n = size.scale(30_000);
            vec![
                apply(THING, "one", thing_text(&format!(r#"{{"l":[{}]}}"#, numbered(n, |i| i.to_string())))),
                apply(THING, "two", thing_text(&format!(r#"{{"l":[{}]}}"#, numbered(n, |i| (n + n - i).to_string())))),
            ]
        })
        .after_one(|_| define(&keyed("set")))
        .expect(&[200, 201, 400, 413, 422, 500, 504]),
        Attack::requests("apply/managers", "one object with 300 managers of 300 fields each", |size| {
            (0..size.pick(300, 30))
                .map(|manager| {
                    let fields = numbered(300, |i| format!(r#""m{manager}f{i}":0"#));
                    apply(THING, &format!("m{manager}"), thing_text(&format!("{{{fields}}}")))
                })
                .collect()
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 201, 400, 413, 422, 500, 504]),
        Attack::one("apply/conflicts", "an apply that conflicts in 60 000 fields", |size| {
            let fields = numbered(size.scale(60_000), |i| format!(r#""f{i}":1"#));
            HttpRequest::new("PATCH", format!("{THING}?fieldManager=two"), APPLY, thing_text(&format!("{{{fields}}}")))
        })
        .after_one(|_| define(&things(&open())))
        .after_one(|size| {
            let fields = numbered(size.scale(60_000), |i| format!(r#""f{i}":0"#));
            apply(THING, "one", thing_text(&format!("{{{fields}}}")))
        })
        .expect(&[409]),
        Attack::one("apply/deep-fields", "an apply of 9 000 levels", |size| {
            let n = size.scale(9_000);
            apply(THING, "one", thing_text(&format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n))))
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 201, 400, 413, 422, 500]),
        Attack::one("apply/managed-fields-sent", "a create with 3 000 managers of its own", |size| {
            let entry = |i: usize| {
                json!({"manager": format!("m{i}"), "operation": "Update", "apiVersion": "attack.example.com/v1",
                    "fieldsType": "FieldsV1", "time": "2020-01-01T00:00:00Z",
                    "fieldsV1": {"f:spec": members(20, |k| (format!("f:a{k}"), json!({})))}})
            };
            let entries: Value = (0..size.scale(3_000)).map(entry).collect();
            HttpRequest::new("POST", "/apis/attack.example.com/v1/namespaces/default/things", "application/json",
                json!({"apiVersion": "attack.example.com/v1", "kind": "Things",
                    "metadata": {"generateName": "a", "managedFields": entries}, "spec": {"a0": 1}}).to_string())
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[201, 400, 413, 422, 500]),
    ]
}
