//! Errors, warnings and messages that are much larger than their cause.

use crate::cluster::{
    CONFIG_MAPS, DEFINITIONS, JSON, THING, THINGS, create_text, define, members, numbered, open, post, put,
    repeated, thing, things, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

const REFUSED: &[u16] = &[400, 413, 422, 500, 504];

fn items(schema: &Value) -> Value {
    with_spec(&json!({"type": "object", "properties": {"l": {"type": "array", "items": schema}}}))
}

/// An object with `n` equal items that violate the schema of items.
fn bad_items(
    name: &'static str,
    request: &'static str,
    schema: impl Fn(Size) -> Value + 'static,
    item: &'static str,
    n: usize,
) -> Attack {
    Attack::one(name, request, move |size| {
        create_text("", &format!(r#"{{"l":[{}]}}"#, repeated(item, size.scale(n))))
    })
    .after_one(move |size| define(&things(&items(&schema(size)))))
    .expect(REFUSED)
}

fn words(n: usize) -> Value {
    (0..n).map(|i| json!(format!("value-{i}"))).collect()
}

/// A create of a ConfigMap with some metadata.
fn metadata(name: &'static str, request: &'static str, metadata: impl Fn(Size) -> Value + 'static) -> Attack {
    Attack::one(name, request, move |size| {
        post(
            CONFIG_MAPS,
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(size)}),
        )
    })
    .expect(REFUSED)
}

/// A CRD that is refused.
fn bad_definition(
    name: &'static str,
    request: &'static str,
    change: impl Fn(Size, &mut Value) + 'static,
) -> Attack {
    Attack::one(name, request, move |size| {
        let mut definition = things(&open());
        change(size, &mut definition);
        define(&definition)
    })
    .expect(REFUSED)
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        bad_items(
            "errors/enum-60000",
            "an enum of 60 000 values, 2 000 bad items",
            |size| json!({"type": "string", "enum": words(size.scale(60_000))}),
            r#""x""#,
            2_000,
        ),
        bad_items(
            "errors/enum-200",
            "an enum of 200 values, 16 000 bad items",
            |size| json!({"type": "string", "enum": words(size.scale(200))}),
            r#""x""#,
            16_000,
        ),
        bad_items(
            "errors/pattern-echo",
            "a pattern of 20 kB, 20 000 bad items",
            |size| json!({"type": "string", "pattern": format!("^({})$", "abcdefghij".repeat(size.scale(2_000)))}),
            r#""x""#,
            20_000,
        ),
        bad_items(
            "errors/required",
            "2 000 required fields, 2 000 empty items",
            |size| {
                let n = size.scale(2_000);
                json!({"type": "object", "required": words(n),
                    "properties": members(n, |i| (format!("value-{i}"), json!({"type": "string"})))})
            },
            "{}",
            2_000,
        ),
        bad_items("errors/types", "400 000 items of the wrong type", |_| json!({"type": "string"}), "0", 400_000),
        bad_items("errors/format", "100 000 bad dates", |_| json!({"type": "string", "format": "date-time"}), r#""x""#, 100_000),
        bad_items("errors/bounds", "400 000 numbers that break four bounds",
            |_| json!({"type": "integer", "minimum": 5, "maximum": -5, "multipleOf": 7}), "1", 400_000),
        bad_items("errors/any-of", "anyOf of 100 enums of 100, 5 000 bad items",
            |size| {
                let any: Value = (0..size.scale(100)).map(|_| json!({"enum": words(100)})).collect();
                json!({"type": "string", "anyOf": any})
            },
            r#""x""#, 5_000),
        Attack::one("errors/value-echo", "a string of 2 MB that breaks 50 constraints", |size| {
            create_text("", &format!(r#"{{"s":"{}"}}"#, "x".repeat(size.scale(2_000_000))))
        })
        .after_one(|_| {
            let all: Value = (0..50).map(|i| json!({"pattern": format!("^{i}$")})).collect();
            define(&things(&with_spec(&json!({"type": "object", "properties": {"s": {"type": "string", "allOf": all}}}))))
        })
        .expect(REFUSED),
        Attack::one("errors/path-echo", "20 000 errors at a path of 100 kB", |size| {
            let key = "k".repeat(size.scale(100_000));
            create_text("", &format!(r#"{{"{key}":[{}]}}"#, repeated("0", size.scale(20_000))))
        })
        .after_one(|_| {
            define(&things(&with_spec(&json!({"type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "string"}}}))))
        })
        .expect(REFUSED),
        Attack::one("errors/deep-path-echo", "20 000 errors at a path of 15 kB, 15 levels deep", |size| {
            let n = 15;
                let key = "k".repeat(1_000);
            create_text("", &format!("{}[{}]{}", format!(r#"{{"{key}":"#).repeat(n), repeated("0", size.scale(20_000)), "}".repeat(n)))
        })
        .after_one(|_| {
            let mut schema = json!({"type": "array", "items": {"type": "string"}});
            for _ in 0..15 {
                schema = json!({"type": "object", "properties": {"k".repeat(1_000): schema}});
            }
            define(&things(&with_spec(&schema)))
        })
        .expect(REFUSED),
        Attack::one("errors/rule-messages", "a message of 2 kB for 10 000 items", |size| {
            create_text("", &format!(r#"{{"l":[{}]}}"#, repeated("0", size.scale(10_000))))
        })
        .after_one(|_| {
            let rule = json!({"rule": "self > 0", "message": "m".repeat(2_000)});
            define(&things(&with_spec(&json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 20_000,
                "items": {"type": "integer", "x-kubernetes-validations": [rule]}}}}))))
        })
        .expect(REFUSED),
        Attack::one("errors/message-expressions", "a messageExpression of 5 kB for 3 000 items", |size| {
            create_text("", &format!(r#"{{"l":[{}]}}"#, repeated(&format!(r#""{}""#, "x".repeat(20)), size.scale(3_000))))
        })
        .after_one(|_| {
            let rule = json!({"rule": "self.size() > 100", "messageExpression": "self + self + self + self + self"});
            define(&things(&with_spec(&json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 3_000,
                "items": {"type": "string", "maxLength": 100, "x-kubernetes-validations": [rule]}}}}))))
        })
        .expect(REFUSED),
        Attack::one("errors/duplicates", "a set of 200 000 equal strings", |size| {
            create_text("", &format!(r#"{{"l":[{}]}}"#, repeated(r#""aaaaaaaa""#, size.scale(200_000))))
        })
        .after_one(|_| {
            define(&things(&with_spec(&json!({"type": "object", "properties": {"l": {"type": "array",
                "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}))))
        })
        .expect(REFUSED),
        Attack::one("errors/duplicates-large", "a set of 100 equal strings of 20 kB", |size| {
            let item = format!(r#""{}""#, "a".repeat(size.scale(20_000)));
            create_text("", &format!(r#"{{"l":[{}]}}"#, repeated(&item, 100)))
        })
        .after_one(|_| {
            define(&things(&with_spec(&json!({"type": "object", "properties": {"l": {"type": "array",
                "x-kubernetes-list-type": "set", "items": {"type": "string"}}}}))))
        })
        .expect(REFUSED),
        metadata("errors/labels", "120 000 bad labels", |size| {
            json!({"name": "a", "labels": members(size.scale(120_000), |i| (format!("-{i}"), json!("-")))})
        }),
        metadata("errors/annotations", "120 000 bad annotations", |size| {
            json!({"name": "a", "annotations": members(size.scale(120_000), |i| (format!("-{i}"), json!("-")))})
        }),
        metadata("errors/label-long", "a label key of 2 MB", |size| {
            json!({"name": "a", "labels": {"x".repeat(size.scale(2_000_000)): "-".repeat(size.scale(500_000))}})
        }),
        metadata("errors/name-long", "a name of 2 MB", |size| json!({"name": "A".repeat(size.scale(2_000_000))})),
        metadata("errors/generate-name", "a generateName of 2 MB", |size| json!({"generateName": "A".repeat(size.scale(2_000_000))})),
        metadata("errors/finalizers", "200 000 bad finalizers", |size| {
            json!({"name": "a", "finalizers": vec!["-"; size.scale(200_000)]})
        }),
        metadata("errors/owner-references", "60 000 empty owner references", |size| {
            json!({"name": "a", "ownerReferences": vec![json!({}); size.scale(60_000)]})
        }),
        metadata("metadata/owner-references", "14 000 owner references", |size| {
            let owner = |i: usize| json!({"apiVersion": "v1", "kind": "Node", "name": format!("n{i}"), "uid": format!("{i:08}")});
            json!({"name": "a", "ownerReferences": (0..size.scale(14_000)).map(owner).collect::<Value>()})
        })
        .expect(&[201, 409, 422]),
        metadata("metadata/finalizers", "60 000 finalizers", |size| {
            json!({"name": "a", "finalizers": (0..size.scale(60_000)).map(|i| json!(format!("example.com/{i}"))).collect::<Value>()})
        })
        .expect(&[201, 409, 422]),
        metadata("metadata/labels", "60 000 labels", |size| {
            json!({"name": "a", "labels": members(size.scale(60_000), |i| (format!("k{i}"), json!("v")))})
        })
        .expect(&[201, 409, 422]),
        metadata("errors/managed-fields", "30 000 bad managed fields", |size| {
            json!({"name": "a", "managedFields": vec![json!({"operation": "x"}); size.scale(30_000)]})
        })
        .expect(&[201, 422]),
        Attack::one("errors/config-map-keys", "120 000 bad keys of a ConfigMap", |size| {
            post(CONFIG_MAPS, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                "data": members(size.scale(120_000), |i| (format!("/{i}"), json!("")))}))
        })
        .expect(REFUSED),
        Attack::one("errors/config-map-types", "120 000 numbers in a ConfigMap", |size| {
            post(CONFIG_MAPS, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                "data": members(size.scale(120_000), |i| (format!("k{i}"), json!(i)))}))
        })
        .expect(REFUSED),
        Attack::one("errors/strict-fields", "20 000 unknown fields of long names, strict", |size| {
            let fields = numbered(size.scale(20_000), |i| format!(r#""{}{i}":0"#, "f".repeat(100)));
            create_text("?fieldValidation=Strict", &format!("{{{fields}}}"))
        })
        .after_one(|_| define(&things(&with_spec(&json!({"type": "object", "properties": {}})))))
        .expect(REFUSED),
        bad_definition("errors/definition-versions", "20 000 bad versions", |size, d| {
            d["spec"]["versions"] = vec![json!({"name": "-", "served": true, "storage": true}); size.scale(20_000)].into();
        }),
        bad_definition("errors/definition-short-names", "200 000 bad short names", |size, d| {
            d["spec"]["names"]["shortNames"] = vec!["-"; size.scale(200_000)].into();
        }),
        bad_definition("errors/definition-categories", "200 000 bad categories", |size, d| {
            d["spec"]["names"]["categories"] = vec!["-"; size.scale(200_000)].into();
        }),
        bad_definition("errors/definition-columns", "20 000 bad columns", |size, d| {
            d["spec"]["versions"][0]["additionalPrinterColumns"] =
                vec![json!({"name": "a", "type": "x", "jsonPath": "]"}); size.scale(20_000)].into();
        }),
        bad_definition("errors/definition-selectable", "20 000 bad selectable fields", |size, d| {
            d["spec"]["versions"][0]["selectableFields"] = vec![json!({"jsonPath": "]"}); size.scale(20_000)].into();
        }),
        bad_definition("errors/definition-schema", "30 000 properties without a type", |size, d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
                json!({"type": "object", "properties": members(size.scale(30_000), |i| (format!("p{i}"), json!({})))});
        }),
        bad_definition("errors/definition-rules", "20 000 rules that do not compile", |size, d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
                vec![json!({"rule": "a b"}); size.scale(20_000)].into();
        }),
        bad_definition("errors/definition-long-rule", "a rule of 1 MB that does not compile", |size, d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
                json!([{"rule": format!("self.x + {}", "\n) ".repeat(size.scale(300_000)))}]);
        }),
        bad_definition("errors/definition-defaults", "5 000 bad defaults", |size, d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object",
                "properties": members(size.scale(5_000), |i| (format!("p{i}"), json!({"type": "string", "default": {"a": "x".repeat(200)}})))});
        }),
        bad_definition("errors/definition-patterns", "20 000 bad patterns", |size, d| {
            d["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object",
                "properties": members(size.scale(20_000), |i| (format!("p{i}"), json!({"type": "string", "pattern": format!("({i}")})))});
        }),
        Attack::one("errors/status-subresource", "2 000 bad items against an enum of 60 000 in status", |size| {
            let mut object = thing("a", &json!({}));
            object["status"] = json!({"l": vec!["x"; size.scale(2_000)]});
            put(&format!("{THING}/status"), &object)
        })
        .after_one(|size| {
            let mut definition = things(&json!({"type": "object", "properties": {
                "spec": {"type": "object"},
                "status": {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string", "enum": words(size.scale(60_000))}}}}}}));
            definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
            define(&definition)
        })
        .after_one(|_| create_text("", "{}"))
        .expect(REFUSED),
        Attack::one("errors/query-echo", "a query of 60 kB", |size| {
            HttpRequest::get(format!("{THINGS}?fieldSelector={}&labelSelector={}", "a%3D%3Db,".repeat(size.scale(4_000)), "%21%21".repeat(2_000)))
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[400, 414, 431]),
        Attack::one("errors/path", "a path of 60 kB", |size| HttpRequest::get(format!("/apis/{}", "a/".repeat(size.scale(30_000)))))
            .expect(&[400, 403, 404, 414, 431]),
        Attack::one("errors/review", "an access review of 2 MB", |size| {
            HttpRequest::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", JSON,
                json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                    "spec": {"resourceAttributes": {"namespace": "n".repeat(size.scale(2_000_000)), "verb": "get"}}}).to_string())
        })
        .expect(&[201, 400, 413, 422]),
        Attack::one("errors/definition-dry-run", "60 000 enum values in a definition", |size| {
            let definition = things(&items(&json!({"type": "string", "enum": words(size.scale(60_000))})));
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"), ..define(&definition) }
        }),
    ]
}
