//! Expensive reads: lists, tables, selectors, watches, encodings.

use crate::cluster::{
    THING, THINGS, create_text, define, members, numbered, open, post, repeated, thing, things, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::{Value, json};

pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Objects of about a kilobyte each, with labels.
pub(crate) fn many_objects(size: Size) -> Vec<HttpRequest> {
    let n = size.pick(5_000, 200);
    let object = |i: usize| {
        let mut object = thing(&format!("o{i:05}"), &json!({"s": "x".repeat(1_000), "n": i}));
        object["metadata"]["labels"] = json!({"a": format!("v{i}"), "b": "c"});
        post(THINGS, &object)
    };
    (0..n).map(object).collect()
}

/// Reads while many objects are stored.
fn of_many(
    name: &'static str,
    request: &'static str,
    path: impl Fn(Size) -> String + 'static,
    headers: &'static [(&'static str, &'static str)],
) -> Attack {
    Attack::one(name, request, move |size| {
        headers
            .iter()
            .fold(HttpRequest::get(path(size)), |request, (name, value)| {
                request.header(name, *value)
            })
    })
    .after_one(|_| define(&things(&open())))
    .after(many_objects)
    .expect(&[200, 400, 414, 431, 500, 504])
}

/// Reads of one large object.
fn of_one(
    name: &'static str,
    request: &'static str,
    path: &'static str,
    accept: &'static str,
    spec: impl Fn(Size) -> String + 'static,
) -> Attack {
    Attack::one(name, request, move |_| {
        HttpRequest::get(path).header("Accept", accept)
    })
    .after_one(|_| define(&things(&open())))
    .after_one(move |size| create_text("", &spec(size)))
    .expect(&[200, 406, 413, 500, 504])
}

fn deep(n: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n))
}

/// Table columns whose paths select many values.
fn columns(name: &'static str, request: &'static str, path: &'static str, columns: usize) -> Attack {
    Attack::one(name, request, |_| {
        HttpRequest::get(THINGS).header("Accept", TABLE)
    })
    .after_one(move |size| {
        let mut definition = things(&open());
        let column = |i: usize| json!({"name": format!("c{i}"), "type": "string", "jsonPath": path});
        definition["spec"]["versions"][0]["additionalPrinterColumns"] =
            (0..size.pick(columns, columns.min(20))).map(column).collect();
        define(&definition)
    })
    .after_one(|size| {
        create_text(
            "",
            &format!(
                r#"{{"l":[{}]}}"#,
                numbered(size.scale(50_000), |i| format!(r#"{{"a":{i},"b":"x"}}"#))
            ),
        )
    })
    .expect(&[200, 413, 500, 504])
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        of_many("list/all", "a list of 5 000 objects", |_| THINGS.to_owned(), &[]),
        of_many(
            "list/all-8-clients",
            "a list of 5 000 objects, 8 connections",
            |_| THINGS.to_owned(),
            &[],
        )
        .connections(8),
        of_many(
            "list/pretty",
            "the list, pretty-printed",
            |_| format!("{THINGS}?pretty=true"),
            &[],
        ),
        of_many(
            "list/yaml",
            "the list in YAML",
            |_| THINGS.to_owned(),
            &[("Accept", "application/yaml")],
        ),
        of_many(
            "list/table",
            "the list as a table",
            |_| THINGS.to_owned(),
            &[("Accept", TABLE)],
        ),
        of_many(
            "list/table-objects",
            "the list as a table with objects",
            |_| format!("{THINGS}?includeObject=Object"),
            &[("Accept", TABLE)],
        ),
        of_many(
            "list/gzip",
            "the list, compressed",
            |_| THINGS.to_owned(),
            &[("Accept-Encoding", "gzip")],
        ),
        of_many(
            "list/gzip-8-clients",
            "the list, compressed, 8 connections",
            |_| THINGS.to_owned(),
            &[("Accept-Encoding", "gzip")],
        )
        .connections(8),
        of_many(
            "list/label-selector",
            "a selector with 2 000 labels",
            |size| {
                format!(
                    "{THINGS}?labelSelector=a%20notin%20({})",
                    numbered(size.scale(2_000), |i| format!("w{i}"))
                )
            },
            &[],
        ),
        of_many(
            "list/label-requirements",
            "a selector with 2 000 requirements",
            |size| {
                format!(
                    "{THINGS}?labelSelector={}",
                    numbered(size.scale(2_000), |i| format!("k{i}!=v"))
                )
            },
            &[],
        ),
        of_many(
            "list/field-selector",
            "a selector with 2 000 fields",
            |size| {
                format!(
                    "{THINGS}?fieldSelector={}",
                    numbered(size.scale(2_000), |i| format!("metadata.name!=x{i}"))
                )
            },
            &[],
        ),
        of_many(
            "list/limit-one",
            "pages of one object",
            |_| format!("{THINGS}?limit=1"),
            &[],
        ),
        of_many(
            "list/continue-forged",
            "a forged continue token",
            |_| format!("{THINGS}?limit=1&continue={}", "A".repeat(10_000)),
            &[],
        )
        .expect(&[400, 410]),
        of_many(
            "list/old-revision",
            "a list at revision 1",
            |_| format!("{THINGS}?resourceVersion=1&resourceVersionMatch=Exact"),
            &[],
        )
        .expect(&[200, 400, 410, 504]),
        of_many(
            "list/future-revision",
            "a list at a revision to come",
            |_| format!("{THINGS}?resourceVersion=9999999"),
            &[],
        )
        .expect(&[200, 400, 410, 504]),
        of_many(
            "list/cbor",
            "the list in CBOR",
            |_| THINGS.to_owned(),
            &[("Accept", "application/cbor")],
        )
        .flags(&["--feature-gates", "CBORServingAndStorage=true"]),
        of_many(
            "list/metadata-only",
            "the metadata of the list",
            |_| THINGS.to_owned(),
            &[(
                "Accept",
                "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            )],
        ),
        Attack::one(
            "list/delete-collection",
            "a dry run of deleting 5 000 objects",
            |_| HttpRequest::new("DELETE", format!("{THINGS}?dryRun=All"), "", ""),
        )
        .after_one(|_| define(&things(&open())))
        .after(many_objects)
        .expect(&[200]),
        of_many(
            "watch/initial-events",
            "the first events of a watch of 5 000 objects",
            |_| format!("{THINGS}?watch=true&resourceVersion=0&timeoutSeconds=1"),
            &[],
        ),
        of_many(
            "watch/initial-events-table",
            "the same as tables",
            |_| format!("{THINGS}?watch=true&resourceVersion=0&timeoutSeconds=1"),
            &[("Accept", TABLE)],
        ),
        of_many(
            "watch/send-initial-events",
            "a watch list of 5 000 objects",
            |_| {
                format!(
                    "{THINGS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"
                )
            },
            &[],
        ),
        of_many(
            "watch/selector",
            "a watch with 2 000 requirements",
            |size| {
                format!(
                    "{THINGS}?watch=true&resourceVersion=0&timeoutSeconds=1&labelSelector={}",
                    numbered(size.scale(2_000), |i| format!("k{i}!=v"))
                )
            },
            &[],
        ),
        of_many(
            "watch/future-revision",
            "a watch from a revision to come",
            |_| format!("{THINGS}?watch=true&resourceVersion=9999999&timeoutSeconds=1"),
            &[],
        )
        .expect(&[200, 400, 410, 504]),
        of_one(
            "read/pretty-deep",
            "an object 9 000 deep, pretty-printed",
            "/apis/attack.example.com/v1/namespaces/default/things/a?pretty=true",
            "application/json",
            |size| deep(size.scale(9_000)),
        ),
        of_one(
            "read/yaml-deep",
            "an object 9 000 deep in YAML",
            THING,
            "application/yaml",
            |size| deep(size.scale(9_000)),
        ),
        of_one(
            "read/pretty-wide-deep",
            "400 objects 500 deep, pretty-printed",
            "/apis/attack.example.com/v1/namespaces/default/things/a?pretty=true",
            "application/json",
            |size| format!(r#"{{"l":[{}]}}"#, repeated(&deep(500), size.scale(400))),
        ),
        of_one(
            "read/yaml-wide-deep",
            "400 objects 500 deep in YAML",
            THING,
            "application/yaml",
            |size| format!(r#"{{"l":[{}]}}"#, repeated(&deep(500), size.scale(400))),
        ),
        of_one(
            "read/yaml-strings",
            "a string of 1 MB of control characters in YAML",
            THING,
            "application/yaml",
            |size| format!(r#"{{"s":"{}"}}"#, r"\u0001".repeat(size.scale(240_000))),
        ),
        of_one(
            "read/table-one",
            "an object of 700 000 items as a table",
            THING,
            TABLE,
            |size| format!(r#"{{"l":[{}]}}"#, repeated("0", size.scale(700_000))),
        ),
        of_one(
            "read/gzip-large",
            "an object of 1.4 MB, compressed",
            THING,
            "application/json",
            |size| format!(r#"{{"l":[{}]}}"#, repeated("0", size.scale(700_000))),
        ),
        columns(
            "table/columns-wildcard",
            "100 columns of .spec.l[*] over 50 000 items",
            ".spec.l[*].a",
            100,
        ),
        columns(
            "table/columns-filter",
            "100 columns with a filter over 50 000 items",
            ".spec.l[?(@.b=='x')].a",
            100,
        ),
        columns(
            "table/columns-recursive",
            "100 columns of ..a over 50 000 items",
            ".spec..a",
            100,
        ),
        columns(
            "table/columns-slice",
            "100 columns of a slice",
            ".spec.l[0:50000:1]",
            100,
        ),
        columns("table/columns-many", "2 000 columns", ".spec.l[0].a", 2_000),
        columns(
            "table/columns-nested-filter",
            "20 columns that select all items for each item",
            ".spec..[?(@..a)]",
            20,
        ),
        Attack::one(
            "read/selectable-fields",
            "a list by 8 selectable fields of large objects",
            |_| {
                HttpRequest::get(format!(
                    "{THINGS}?fieldSelector={}",
                    numbered(8, |i| format!("spec.f{i}!=x"))
                ))
            },
        )
        .after_one(|_| {
            let mut d = things(&with_spec(
                &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": members(8, |i| (format!("f{i}"), json!({"type": "string"})))}),
            ));
            d["spec"]["versions"][0]["selectableFields"] = (0..8)
                .map(|i| json!({"jsonPath": format!(".spec.f{i}")}))
                .collect::<Value>();
            define(&d)
        })
        .after(many_objects)
        .expect(&[200]),
        Attack::one("read/query-parameters", "4 000 query parameters", |size| {
            HttpRequest::get(format!(
                "{THINGS}?{}",
                numbered(size.scale(4_000), |i| format!("k{i}=v&")).replace(',', "")
            ))
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 400, 414, 431]),
        Attack::one("read/headers", "2 000 headers", |size| {
            (0..size.scale(2_000)).fold(HttpRequest::get(THINGS), |request, i| {
                request.header(&format!("X-{i}"), "a")
            })
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 400, 431]),
        Attack::one("read/accept-header", "an Accept header of 1 000 types", |size| {
            HttpRequest::get(THINGS).header(
                "Accept",
                numbered(size.scale(1_000), |i| format!("application/x{i};q=0.{i}")),
            )
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[200, 406, 431]),
        Attack::one("read/metrics", "/metrics after 300 writes", |_| {
            HttpRequest::get("/metrics")
        })
        .after(|size| {
            (0..size.pick(300, 30))
                .map(|i| {
                    let mut object = thing(&format!("m{i}"), &json!({}));
                    object["metadata"]["name"] = json!(format!("m{i}"));
                    post(THINGS, &object)
                })
                .collect::<Vec<_>>()
                .into_iter()
                .map(|r| HttpRequest {
                    path: r
                        .path
                        .replace("/things", "/configmaps")
                        .replace("/apis/attack.example.com/v1", "/api/v1"),
                    body: String::from_utf8_lossy(&r.body)
                        .replace("attack.example.com/v1", "v1")
                        .replace("\"Things\"", "\"ConfigMap\"")
                        .replace(",\"spec\":{}", "")
                        .into_bytes(),
                    ..r
                })
                .collect()
        })
        .expect(&[200]),
    ]
}
