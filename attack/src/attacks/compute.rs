//! Validation and rules: small schemas or objects that are expensive to check.

use crate::cluster::{
    DEFINITIONS, MERGE_PATCH, THING, THINGS, create_text, define, list, members, numbered, open, patch, post,
    put, repeated, thing, things, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

/// The acceptable responses to an object that is expensive to check.
const DONE_OR_REFUSED: &[u16] = &[201, 400, 409, 413, 422, 500, 504];

/// A schema of `spec`, and the `spec` to validate. The object is created as a dry run, so that each
/// repetition validates it again.
fn checked(
    name: &'static str,
    request: &'static str,
    schema: impl Fn(Size) -> Value + 'static,
    spec: impl Fn(Size) -> String + 'static,
) -> Attack {
    Attack::one(name, request, move |size| create_text("?dryRun=All", &spec(size)))
        .after_one(move |size| define(&things(&with_spec(&schema(size)))))
        .expect(DONE_OR_REFUSED)
}

fn items(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"l": {"type": "array", "items": schema}}})
}

fn numbers(n: usize) -> String {
    format!(r#"{{"l":[{}]}}"#, repeated("0", n))
}

fn string(text: &str) -> String {
    format!(r#"{{"s":"{text}"}}"#)
}

fn pattern(pattern: &str) -> Value {
    json!({"type": "object", "properties": {"s": {"type": "string", "pattern": pattern}}})
}

/// A schema with one rule on `spec`. `l` is a list of integers, `t` a list of short strings and `s` a string,
/// with the given limits on items and characters.
fn rule(rule: &str, items: usize, length: usize) -> Value {
    json!({
        "type": "object",
        "properties": {
            "l": {"type": "array", "maxItems": items, "items": {"type": "integer"}},
            "t": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 30}},
            "s": {"type": "string", "maxLength": length},
        },
        "x-kubernetes-validations": [{"rule": rule}],
    })
}

/// A rule and an object to evaluate it on. If the cost estimate refuses the CRD, the refusal itself is the
/// attack.
fn ruled(
    name: &'static str,
    request: &'static str,
    text: &'static str,
    limits: (usize, usize),
    spec: impl Fn(Size) -> String + 'static,
) -> Attack {
    let definition = move || define(&things(&with_spec(&rule(text, limits.0, limits.1))));
    Attack::requests(name, request, move |size| {
        // The second CRD has other names, because a dry run does not create it and the first one exists.
        let other = definition();
        let other_text = String::from_utf8_lossy(&other.body)
            .replace("things", "others")
            .replace("Things", "Others");
        vec![
            HttpRequest {
                path: format!("{DEFINITIONS}?dryRun=All"),
                body: other_text.into_bytes(),
                ..other
            },
            create_text("?dryRun=All", &spec(size)),
        ]
    })
    .after_attempt(move |_| definition())
    .expect(&[201, 400, 404, 413, 422, 500])
}

pub(crate) fn table() -> Vec<Attack> {
    let branches = |n: usize| -> Value { (1..=n).map(|i| json!({"minimum": i})).collect() };
    vec![
        checked(
            "validate/any-of",
            "anyOf of 2 000 branches, 20 000 items",
            move |size| items(&json!({"type": "integer", "anyOf": branches(size.scale(2_000))})),
            |size| numbers(size.scale(20_000)),
        ),
        checked(
            "validate/any-of-10-clients",
            "anyOf of 2 000 branches, 20 000 items, 10 connections",
            move |size| items(&json!({"type": "integer", "anyOf": branches(size.scale(2_000))})),
            |size| numbers(size.scale(20_000)),
        )
        .expect(&[201, 400, 413, 422, 429, 500, 504])
        .connections(10),
        checked(
            "validate/one-of",
            "oneOf of 2 000 branches, 20 000 items",
            move |size| items(&json!({"type": "integer", "oneOf": branches(size.scale(2_000))})),
            |size| numbers(size.scale(20_000)),
        ),
        checked(
            "validate/all-of",
            "allOf of 2 000 broken branches, 20 000 items",
            move |size| items(&json!({"type": "integer", "allOf": branches(size.scale(2_000))})),
            |size| numbers(size.scale(20_000)),
        ),
        checked(
            "validate/not-nest",
            "not in not, 200 deep, around anyOf, 100 000 items",
            move |size| {
                let mut nest = json!({"anyOf": branches(50)});
                for _ in 0..size.scale(200) {
                    nest = json!({"not": nest});
                }
                nest["type"] = json!("integer");
                items(&nest)
            },
            |size| numbers(size.scale(100_000)),
        ),
        checked(
            "validate/any-of-nest",
            "anyOf in oneOf in allOf, 9 levels of 3 branches, 20 000 items",
            move |size| {
                let mut nest = json!({"minimum": 1});
                for level in 0..size.pick(9, 5) {
                    let key = ["anyOf", "oneOf", "allOf"].get(level % 3).copied().unwrap_or("anyOf");
                    nest = json!({key: [nest, nest, nest]});
                }
                nest["type"] = json!("integer");
                items(&nest)
            },
            |size| numbers(size.scale(20_000)),
        ),
        checked(
            "validate/any-of-required",
            "anyOf of 2 000 × required over 10 000 objects",
            move |size| {
                let any: Value = (0..size.scale(2_000)).map(|i| json!({"required": [format!("a{i}")]})).collect();
                items(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "anyOf": any}))
            },
            |size| format!(r#"{{"l":[{}]}}"#, repeated("{}", size.scale(10_000))),
        ),
        checked(
            "validate/set-of-objects",
            "a set of 50 000 objects",
            |_| {
                json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "set",
                    "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "integer"}}}}}})
            },
            |size| format!(r#"{{"l":[{}]}}"#, numbered(size.scale(50_000), |i| format!(r#"{{"a":{i}}}"#))),
        ),
        checked(
            "validate/list-map-duplicates",
            "a list of type map with 100 000 equal keys",
            |_| {
                json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "required": ["k"],
                    "properties": {"k": {"type": "string"}}}}}})
            },
            |size| format!(r#"{{"l":[{}]}}"#, repeated(r#"{"k":"a"}"#, size.scale(100_000))),
        ),
        checked(
            "validate/enum-of-objects",
            "an enum of 2 000 objects, 10 000 items that equal the last",
            |size| {
                let value = |i: usize| json!({"a": "x".repeat(100), "b": i});
                items(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "enum": (0..size.scale(2_000)).map(value).collect::<Value>()}))
            },
            |size| {
                let last = json!({"a": "x".repeat(100), "b": size.scale(2_000) - 1}).to_string();
                format!(r#"{{"l":[{}]}}"#, repeated(&last, size.scale(10_000)))
            },
        ),
        checked(
            "validate/wide-properties",
            "10 000 properties required of 2 000 objects",
            |size| {
                let n = size.scale(10_000);
                items(&json!({"type": "object",
                    "properties": members(n, |i| (format!("p{i}"), json!({"type": "string"}))),
                    "required": (0..n).map(|i| json!(format!("p{i}"))).collect::<Value>()}))
            },
            |size| format!(r#"{{"l":[{}]}}"#, repeated("{}", size.scale(2_000))),
        ),
        checked(
            "validate/additional-properties",
            "200 000 members by a schema",
            |_| {
                json!({"type": "object", "additionalProperties": {"type": "string", "pattern": "^[a-z0-9]+$", "maxLength": 3}})
            },
            |size| format!("{{{}}}", numbered(size.scale(200_000), |i| format!(r#""k{i}":"A""#))),
        ),
        checked(
            "pattern/many-states",
            "[01]*1[01]{900} on 1 MB",
            |_| pattern("^[01]*1[01]{900}$"),
            |size| string(&"0110100110010110".repeat(size.scale(62_500))),
        ),
        checked(
            "pattern/nested-repetition",
            "((a{1,30}){1,30})*b on 1 MB",
            |_| pattern("^((a{1,30}){1,30})*b$"),
            |size| string(&"a".repeat(size.scale(1_000_000))),
        ),
        checked(
            "pattern/unicode",
            "(\\pL|\\pN|\\pS){1,60} on 1 MB",
            |_| pattern(r"^(\pL|\pN|\pS){1,60}$"),
            |size| string(&"é".repeat(size.scale(500_000))),
        ),
        checked(
            "pattern/alternatives",
            "(.*a.*b.*c.*d.*e.*f)+$ on 1 MB",
            |_| pattern("^(.*a.*b.*c.*d.*e.*f.*)+z$"),
            |size| string(&"abcdef".repeat(size.scale(160_000))),
        ),
        checked(
            "pattern/many-items",
            "a pattern of 900 states on 100 000 items",
            |_| items(&json!({"type": "string", "pattern": "[01]*1[01]{900}$"})),
            |size| format!(r#"{{"l":[{}]}}"#, repeated(r#""010110110""#, size.scale(100_000))),
        ),
        Attack::one("pattern/compile-unicode", "200 patterns of (\\pL{1,100}){1,9} in a definition", |size| {
            let properties = members(size.scale(200), |i| {
                (format!("p{i}"), json!({"type": "string", "pattern": format!(r"(\pL{{1,100}}){{1,9}}{i}")}))
            });
            let mut definition = things(&with_spec(&json!({"type": "object", "properties": properties})));
            definition["metadata"]["resourceVersion"] = json!("");
            HttpRequest { path: format!("{DEFINITIONS}?dryRun=All"), ..define(&definition) }
        })
        .expect(&[201, 422, 500, 504]),
        checked(
            "pattern/compile-on-use",
            "200 patterns of (\\pL{1,50}) each with a value",
            |size| {
                json!({"type": "object", "properties": members(size.scale(200), |i| {
                    (format!("p{i}"), json!({"type": "string", "pattern": format!(r"^(\pL{{1,50}}|x{i})$")}))
                })})
            },
            |size| format!("{{{}}}", numbered(size.scale(200), |i| format!(r#""p{i}":"é""#))),
        ),
        Attack::one("pattern/compile-repetition", "100 patterns of ((a{1000}){1000}) in a definition", |size| {
            let properties = members(size.scale(100), |i| {
                (format!("p{i}"), json!({"type": "string", "pattern": format!("((a{{1,1000}}){{1,1000}}){i}")}))
            });
            HttpRequest {
                path: format!("{DEFINITIONS}?dryRun=All"),
                ..define(&things(&with_spec(&json!({"type": "object", "properties": properties}))))
            }
        })
        .expect(&[201, 422, 500, 504]),
        ruled("rules/all-pairs", "l.all(x, l.exists(y, y > x)), 1 000 items", "self.l.all(x, self.l.exists(y, y > x))", (1_000, 10), |size| {
            numbers(size.scale(1_000))
        }),
        ruled("rules/matches", "s.matches('[01]*1[01]{900}$'), 1 MB", "self.s.matches('[01]*1[01]{900}$')", (10, 2_000_000), |size| {
            string(&"0110100110010110".repeat(size.scale(62_500)))
        }),
        ruled("rules/matches-dynamic", "s.matches(s) of 100 kB", "self.s.matches(self.s)", (10, 100_000), |size| {
            string(&"(a|b)*".repeat(size.scale(16_000)))
        }),
        ruled("rules/matches-dynamic-classes", "t.all(p, s.matches(p)), 100 large patterns", "self.t.all(p, !self.s.matches(p))", (10, 10_000), |size| {
            let patterns = numbered(size.scale(100), |i| format!(r#""(\\pL{{1,90}}){{1,9}}{i}""#));
            format!(r#"{{"t":[{patterns}],"s":"{}"}}"#, "é".repeat(10_000))
        }),
        ruled("rules/replace", "s.replace('', 'xxxxxxxxxx').size() of 300 kB", "self.s.replace('', 'xxxxxxxxxxxxxxxxxxxx').size() > 1", (10, 2_000_000), |size| {
            string(&"a".repeat(size.scale(300_000)))
        }),
        ruled("rules/split", "s.split('').size() of 1 MB", "self.s.split('').size() > 1", (10, 2_000_000), |size| string(&"a".repeat(size.scale(1_000_000)))),
        ruled("rules/concat", "a string of 300 kB, 256 times itself", "[self.s].all(a, [a+a+a+a].all(b, [b+b+b+b].all(c, [c+c+c+c].all(d, [d+d+d+d].all(e, e.size() > 1)))))", (10, 2_000_000), |size| {
            string(&"a".repeat(size.scale(300_000)))
        }),
        ruled("rules/map-lists", "l.map(x, l + l).size(), 1 000 items", "self.l.map(x, self.l + self.l).size() >= 0", (1_000, 10), |size| numbers(size.scale(1_000))),
        ruled("rules/format", "'%s'.format([l]) in l.all, 3 000 items", "self.l.all(x, '%s'.format([self.l]).size() > 0)", (3_000, 10), |size| numbers(size.scale(3_000))),
        ruled("rules/sort", "l.sort() in l.all, 1 000 items", "self.l.all(x, self.l.sort().size() > 0)", (1_000, 10), |size| numbers(size.scale(1_000))),
        ruled("rules/sets", "sets.equivalent(l, l), 1 500 items", "sets.equivalent(self.l, self.l) && sets.contains(self.l, self.l)", (1_500, 10), |size| {
            format!(r#"{{"l":[{}]}}"#, numbered(size.scale(1_500), |i| i.to_string()))
        }),
        ruled("rules/index-of", "s.indexOf('ab…') of 1 MB", "self.s.indexOf('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab') < 0", (10, 2_000_000), |size| {
            string(&"a".repeat(size.scale(1_000_000)))
        }),
        ruled("rules/conditions", "a chain of eight conditions", CONDITIONS, (10, 10), |_| numbers(1)),
        Attack::one("rules/many", "a definition with 4 000 rules", |size| {
            let rules: Value = (0..size.scale(4_000)).map(|i| json!({"rule": format!("self.a{} != {i}", i % 10)})).collect();
            let properties = members(10, |i| (format!("a{i}"), json!({"type": "integer"})));
            HttpRequest {
                path: format!("{DEFINITIONS}?dryRun=All"),
                ..define(&things(&with_spec(&json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules}))))
            }
        })
        .expect(&[201, 422, 500, 504]),
        Attack::one("rules/long", "a rule of 1 MB", |size| {
            let rule = vec!["self.a0 == 1"; size.scale(80_000)].join(" || ");
            HttpRequest {
                path: format!("{DEFINITIONS}?dryRun=All"),
                ..define(&things(&with_spec(&json!({"type": "object", "properties": {"a0": {"type": "integer"}},
                    "x-kubernetes-validations": [{"rule": rule}]}))))
            }
        })
        .expect(&[201, 422, 500, 504]),
        Attack::one("rules/deep-parentheses", "a rule of 200 000 parentheses", |size| {
            let rule = format!("{}true{}", "(".repeat(size.scale(200_000)), ")".repeat(size.scale(200_000)));
            HttpRequest {
                path: format!("{DEFINITIONS}?dryRun=All"),
                ..define(&things(&with_spec(&json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}]}))))
            }
        })
        .expect(&[201, 422, 500, 504]),
        Attack::requests("rules/update-transition", "oldSelf over a list of type map with 5 000 items, updated", |size| {
            let body = |value: &str| {
                format!(r#"{{"l":[{}]}}"#, numbered(size.scale(5_000), |i| format!(r#"{{"k":{i},"v":"{value}"}}"#)))
            };
            let mut object = thing("a", &json!({}));
            ["a", "b"]
                .iter()
                .map(|value| {
                    object["spec"] = serde_json::from_str(&body(value)).unwrap_or_default();
                    put(THING, &object)
                })
                .collect()
        })
        .after_one(|_| {
            define(&things(&with_spec(&json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 10_000,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer"},
                    "v": {"type": "string", "maxLength": 10, "x-kubernetes-validations": [{"rule": "self.size() >= oldSelf.size()"}]}}}}}}))))
        })
        .after_one(|_| create_text("", "{}"))
        .expect(&[200, 400, 409, 413, 422, 500, 504]),
        Attack::requests("validate/update-ratchet", "updates of 100 000 bad items that are forgiven", |size| {
            let object = |n: usize| thing("a", &json!({"l": list(&json!("bad"), n)}));
            vec![put(THING, &object(size.scale(100_000))), put(THING, &object(size.scale(100_000) + 1))]
        })
        .after_one(|_| define(&things(&open())))
        .after_one(|size| create_text("", &format!(r#"{{"l":[{}]}}"#, repeated(r#""bad""#, size.scale(100_000)))))
        .after_one(|_| {
            let schema = with_spec(&items(&json!({"type": "string", "maxLength": 1})));
            let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]);
            HttpRequest::new("PATCH", format!("{DEFINITIONS}/things.attack.example.com"), "application/json-patch+json", patch.to_string())
        })
        .expect(&[200, 400, 409, 413, 422, 500, 504]),
        Attack::requests("validate/immutable-set", "updates that reverse a set of 200 000 numbers whose elements are immutable", |size| {
            // Both orders in turn, so that each write changes the list.
            let reorder = |set: Vec<usize>| patch(THING, MERGE_PATCH, &json!({"spec": {"l": set}}));
            let n = size.scale(200_000);
            vec![reorder((0..n).rev().collect()), reorder((0..n).collect())]
        })
        .after_one(|_| {
            define(&things(&json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "set",
                "x-kubernetes-immutable": true, "items": {"type": "integer"}}}})))
        })
        .after_one(|size| post(THINGS, &thing("a", &json!({"l": (0..size.scale(200_000)).collect::<Vec<_>>()}))))
        .flags(&["--feature-gates", "CustomResourceImmutability=true"])
        .expect(&[200, 409, 413, 504]),
        Attack::requests("validate/bulk-writes", "creates of 1 MB, deleted again", |size| {
            let spec = format!(r#"{{"s":"{}"}}"#, "x".repeat(size.scale(1_000_000)));
            // Each create is followed by a delete, so the object can be created again.
            vec![create_text("", &spec), HttpRequest::new("DELETE", format!("{THINGS}/a"), "", "")]
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 201, 404, 413]),
    ]
}

/// A chain of conditional expressions.
const CONDITIONS: &str = concat!(
    "self.l.size() == 0 ? true : self.l.size() == 1 ? true : self.l.size() == 2 ? true : self.l.size() == 3 ? true : ",
    "self.l.size() == 4 ? true : self.l.size() == 5 ? true : self.l.size() == 6 ? true : self.l.size() == 7 ? true : false"
);
