//! Bodies that cost more to decode than to send: JSON, YAML, CBOR, protobuf, deep, wide, broken, compressed.

use crate::cluster::{
    CONFIG_MAPS, DEFINITIONS, GROUP, JSON, THINGS, YAML, create_text, define, numbered, open, repeated,
    thing_text, things, with_spec,
};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use serde_json::json;

const ANY: &[u16] = &[200, 201, 400, 413, 415, 422, 500, 504];

/// Creates an object in JSON as a dry run, with a schema that allows anything below `spec`.
fn open_json(name: &'static str, request: &'static str, spec: impl Fn(Size) -> String + 'static) -> Attack {
    Attack::one(name, request, move |size| create_text("?dryRun=All", &spec(size)))
        .after_one(|_| define(&things(&open())))
        .expect(ANY)
}

/// Creates an object in YAML; the text below `spec:` is indented by two spaces.
fn open_yaml(name: &'static str, request: &'static str, spec: impl Fn(Size) -> String + 'static) -> Attack {
    Attack::one(name, request, move |size| {
        let body = format!(
            "apiVersion: {GROUP}/v1\nkind: Things\nmetadata:\n  name: a\nspec:\n{}",
            spec(size)
        );
        HttpRequest::new("POST", format!("{THINGS}?dryRun=All"), YAML, body)
    })
    .after_one(|_| define(&things(&open())))
    .expect(ANY)
}

/// A schema with one property, so that everything else is unknown.
fn closed() -> serde_json::Value {
    with_spec(&json!({"type": "object", "properties": {"known": {"type": "string"}}}))
}

/// An object with fields that the schema does not declare.
fn unknown(name: &'static str, request: &'static str, query: &'static str, n: usize) -> Attack {
    Attack::one(name, request, move |size| {
        create_text(
            query,
            &format!("{{{}}}", numbered(size.scale(n), |i| format!(r#""f{i}":0"#))),
        )
    })
    .after_one(|_| define(&things(&closed())))
    .expect(ANY)
}

/// The head of a CBOR item: its major type and its number.
fn cbor_head(major: u8, n: u32) -> Vec<u8> {
    // 26 announces a number of four bytes.
    let mut out = vec![major << 5 | 26];
    out.extend(n.to_be_bytes());
    out
}

fn cbor_text(text: &str) -> Vec<u8> {
    let mut out = cbor_head(3, u32::try_from(text.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(text.as_bytes());
    out
}

/// An object in CBOR around the bytes of `spec`.
fn cbor_object(spec: &[u8]) -> Vec<u8> {
    // The tag 55799 marks CBOR; kube-apiserver recognizes the format by it.
    let mut out = vec![0xd9, 0xd9, 0xf7];
    out.extend(cbor_head(5, 4));
    for (key, value) in [("apiVersion", "attack.example.com/v1"), ("kind", "Things")] {
        out.extend(cbor_text(key));
        out.extend(cbor_text(value));
    }
    out.extend(cbor_text("metadata"));
    out.extend(cbor_head(5, 1));
    out.extend(cbor_text("name"));
    out.extend(cbor_text("a"));
    out.extend(cbor_text("spec"));
    out.extend_from_slice(spec);
    out
}

fn cbor(name: &'static str, request: &'static str, spec: impl Fn(Size) -> Vec<u8> + 'static) -> Attack {
    Attack::one(name, request, move |size| {
        HttpRequest::new(
            "POST",
            format!("{THINGS}?dryRun=All"),
            "application/cbor",
            cbor_object(&spec(size)),
        )
    })
    .flags(&["--feature-gates", "CBORServingAndStorage=true"])
    .after_one(|_| define(&things(&open())))
    .expect(ANY)
}

/// A length-delimited protobuf field.
fn proto_field(number: u8, payload: &[u8]) -> Vec<u8> {
    // Wire type 2 is length-delimited.
    let mut out = vec![number << 3 | 2];
    let mut n = payload.len();
    while n >= 0x80 {
        out.push(u8::try_from(n & 0x7f).unwrap_or(0) | 0x80);
        n >>= 7;
    }
    out.push(u8::try_from(n).unwrap_or(0));
    out.extend_from_slice(payload);
    out
}

/// A ConfigMap in protobuf around the bytes of its message.
fn proto(name: &'static str, request: &'static str, message: impl Fn(Size) -> Vec<u8> + 'static) -> Attack {
    Attack::one(name, request, move |size| {
        // `runtime.Unknown` with its type; the prefix marks Kubernetes' protobuf.
        let mut meta = proto_field(1, b"v1");
        meta.extend(proto_field(2, b"ConfigMap"));
        let mut unknown = proto_field(1, &meta);
        unknown.extend(proto_field(2, &message(size)));
        let mut body = b"k8s\0".to_vec();
        body.extend(unknown);
        HttpRequest::new(
            "POST",
            format!("{CONFIG_MAPS}?dryRun=All"),
            "application/vnd.kubernetes.protobuf",
            body,
        )
    })
    .expect(ANY)
}

pub(crate) fn table() -> Vec<Attack> {
    vec![
        unknown(
            "warnings/unknown-fields",
            "40 000 unknown fields",
            "?dryRun=All&fieldValidation=Warn",
            40_000,
        ),
        unknown(
            "warnings/unknown-fields-200000",
            "200 000 unknown fields",
            "?dryRun=All&fieldValidation=Warn",
            200_000,
        ),
        unknown(
            "warnings/unknown-fields-strict",
            "200 000 unknown fields, strict",
            "?dryRun=All&fieldValidation=Strict",
            200_000,
        ),
        Attack::one("warnings/duplicate-keys", "200 000 duplicate keys", |size| {
            create_text(
                "?dryRun=All&fieldValidation=Warn",
                &format!("{{{}}}", repeated(r#""known":"a""#, size.scale(200_000))),
            )
        })
        .after_one(|_| define(&things(&closed())))
        .expect(ANY),
        Attack::one(
            "warnings/duplicate-keys-strict",
            "200 000 duplicate keys, strict",
            |size| {
                create_text(
                    "?dryRun=All&fieldValidation=Strict",
                    &format!("{{{}}}", repeated(r#""known":"a""#, size.scale(200_000))),
                )
            },
        )
        .after_one(|_| define(&things(&closed())))
        .expect(ANY),
        open_yaml(
            "warnings/duplicate-yaml-keys",
            "400 000 lines of one key",
            |size| "  a: b\n".repeat(size.scale(400_000)),
        ),
        Attack::one(
            "warnings/config-map",
            "60 000 unknown fields of a ConfigMap",
            |size| {
                let fields = numbered(size.scale(60_000), |i| format!(r#""f{i}":0"#));
                let body =
                    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},{fields}}}"#);
                HttpRequest::new(
                    "POST",
                    format!("{CONFIG_MAPS}?dryRun=All&fieldValidation=Warn"),
                    JSON,
                    body,
                )
            },
        )
        .expect(ANY),
        Attack::one(
            "warnings/definition",
            "60 000 unknown fields in a definition",
            |size| {
                let fields = numbered(size.scale(60_000), |i| format!(r#""f{i}":0"#));
                let text =
                    things(&open())
                        .to_string()
                        .replacen(r#""spec":{"#, &format!(r#""spec":{{{fields},"#), 1);
                HttpRequest::new(
                    "POST",
                    format!("{DEFINITIONS}?dryRun=All&fieldValidation=Warn"),
                    JSON,
                    text,
                )
            },
        )
        .expect(ANY),
        open_json("json/deep-lists", "lists 1 000 000 deep", |size| {
            format!(
                "{}{}",
                "[".repeat(size.scale(1_000_000)),
                "]".repeat(size.scale(1_000_000))
            )
        }),
        open_json("json/deep-objects", "objects 9 900 deep", |size| {
            format!(
                "{}1{}",
                r#"{"a":"#.repeat(size.scale(9_900)),
                "}".repeat(size.scale(9_900))
            )
        }),
        open_json("json/unclosed", "500 000 open brackets", |size| {
            "[".repeat(size.scale(500_000))
        }),
        open_json("json/numbers", "a number of 2 000 000 digits", |size| {
            format!(r#"{{"a":{}}}"#, "9".repeat(size.scale(2_000_000)))
        }),
        open_json("json/exponents", "200 000 × 1e400", |size| {
            format!(r#"{{"a":[{}]}}"#, repeated("1e400", size.scale(200_000)))
        }),
        open_json("json/fractions", "60 000 fractions of 40 digits", |size| {
            format!(
                r#"{{"a":[{}]}}"#,
                repeated(
                    "0.1234567890123456789012345678901234567890e-3",
                    size.scale(60_000)
                )
            )
        }),
        open_json("json/escapes", "400 000 escapes", |size| {
            format!(r#"{{"a":"{}"}}"#, r"\u0000".repeat(size.scale(400_000)))
        }),
        open_json("json/empty-objects", "900 000 empty objects", |size| {
            format!(r#"{{"a":[{}]}}"#, repeated("{}", size.scale(900_000)))
        }),
        open_json("json/small-keys", "300 000 objects of one member", |size| {
            format!(r#"{{"a":[{}]}}"#, repeated(r#"{"a":0}"#, size.scale(300_000)))
        }),
        open_json("json/whitespace", "2.9 MB of spaces", |size| {
            format!("{}{{}}", " ".repeat(size.scale(2_900_000)))
        }),
        open_json("json/long-key", "a key of 2.9 MB", |size| {
            format!(r#"{{"{}":0}}"#, "k".repeat(size.scale(2_900_000)))
        }),
        open_json("json/too-large", "a body of 4 MB", |_| {
            // Above the size limit whatever the run's size, so it is not scaled.
            format!(r#"{{"a":"{}"}}"#, "x".repeat(4_000_000))
        })
        .expect(&[413]),
        open_json(
            "json/many-decoders",
            "900 000 empty objects, 8 connections",
            |size| format!(r#"{{"a":[{}]}}"#, repeated("{}", size.scale(900_000))),
        )
        .expect(&[201, 400, 413, 429, 504])
        .connections(8),
        open_yaml("yaml/aliases", "nine levels of aliases to ten aliases", |size| {
            let mut text = "  a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
            for level in 1..=size.pick(9, 6) {
                text.push_str(&format!(
                    "  a{level}: &a{level} [{}]\n",
                    repeated(&format!("*a{}", level - 1), 10)
                ));
            }
            text
        })
        .expect(&[400, 413, 415, 422]),
        open_yaml(
            "yaml/alias-of-large-value",
            "20 000 aliases to a string of 100 kB",
            |size| {
                let mut text = format!("  a: &a {}\n  l:\n", "x".repeat(size.scale(100_000)));
                text.push_str(&"  - *a\n".repeat(size.scale(20_000)));
                text
            },
        )
        .expect(&[400, 413, 415, 422]),
        open_yaml("yaml/merge-keys", "2 000 merges of 2 000 members", |size| {
            let mut text = format!(
                "  a: &a {{{}}}\n  l:\n",
                numbered(size.scale(2_000), |i| format!("k{i}: 0"))
            );
            text.push_str(&"  - <<: *a\n".repeat(size.scale(2_000)));
            text
        }),
        open_yaml("yaml/anchors", "150 000 anchors", |size| {
            (0..size.scale(150_000))
                .map(|i| format!("  k{i}: &x{i} 0\n"))
                .collect()
        }),
        open_yaml("yaml/deep-flow", "flow lists 100 000 deep", |size| {
            format!(
                "  a: {}{}\n",
                "[".repeat(size.scale(100_000)),
                "]".repeat(size.scale(100_000))
            )
        }),
        open_yaml("yaml/deep-blocks", "blocks 1 500 deep by indentation", |size| {
            (1..size.scale(1_500))
                .map(|i| format!("{}a:\n", " ".repeat(i + 1)))
                .collect()
        }),
        open_yaml("yaml/deep-sequences", "- - - 100 000 deep", |size| {
            format!("  a:\n   {} x\n", "- ".repeat(size.scale(100_000)))
        }),
        open_yaml("yaml/comments", "1 000 000 comments", |size| {
            format!("{}  a: b\n", "#\n".repeat(size.scale(1_000_000)))
        }),
        open_yaml("yaml/documents", "500 000 document markers", |size| {
            format!("  a: b\n{}", "---\n".repeat(size.scale(500_000)))
        }),
        open_yaml("yaml/long-scalar", "a folded scalar of 400 000 lines", |size| {
            format!("  a: >\n{}", "    x\n".repeat(size.scale(400_000)))
        }),
        open_yaml("yaml/quoted", "a quoted scalar of 600 000 escapes", |size| {
            format!("  a: \"{}\"\n", "\\x41".repeat(size.scale(600_000)))
        }),
        open_yaml("yaml/timestamps", "100 000 dates", |size| {
            (0..size.scale(100_000))
                .map(|i| format!("  k{i}: 2001-01-01\n"))
                .collect()
        }),
        open_yaml("yaml/complex-keys", "50 000 complex keys", |size| {
            "  ? [a, b]\n  : 0\n".repeat(size.scale(50_000))
        }),
        cbor("cbor/deep", "lists 1 000 000 deep", |size| {
            // Each byte begins a list of one element, which is the next list.
            let mut spec = vec![0x81; size.scale(1_000_000)];
            spec.push(0);
            spec
        }),
        cbor(
            "cbor/claimed-length",
            "a list that claims 4 294 967 295 items",
            |_| cbor_head(4, u32::MAX),
        ),
        cbor("cbor/claimed-text", "a text that claims 4 GB", |_| {
            cbor_head(3, u32::MAX)
        }),
        cbor(
            "cbor/claimed-maps",
            "100 000 maps that claim 4 294 967 295 members",
            |size| cbor_head(5, u32::MAX).repeat(size.scale(100_000)),
        ),
        cbor("cbor/indefinite", "a text of 600 000 empty chunks", |size| {
            // A text of indefinite length, an empty chunk, and the break.
            let mut spec = vec![0x7f];
            spec.extend(vec![0x60; size.scale(600_000)]);
            spec.push(0xff);
            spec
        }),
        cbor("cbor/duplicate-keys", "400 000 equal keys", |size| {
            let n = size.scale(400_000);
            let mut spec = cbor_head(5, u32::try_from(n).unwrap_or(0));
            spec.extend(b"\x61a\x00".repeat(n));
            spec
        }),
        cbor("cbor/big-numbers", "10 000 big numbers of 200 bytes", |size| {
            let n = size.scale(10_000);
            let mut spec = cbor_head(4, u32::try_from(n).unwrap_or(0));
            // Tag 2 is a positive big number, followed by a byte string.
            let mut number = vec![0xc2, 0x58, 200];
            number.extend(vec![0xff; 200]);
            spec.extend(number.repeat(n));
            spec
        }),
        cbor("cbor/tags", "1 000 000 tags", |size| {
            // Tag 1, which may be nested without end.
            let mut spec = vec![0xc1; size.scale(1_000_000)];
            spec.push(0);
            spec
        }),
        cbor("cbor/empty-maps", "2 900 000 empty maps", |size| {
            let n = size.scale(2_900_000);
            let mut spec = cbor_head(4, u32::try_from(n).unwrap_or(0));
            spec.extend(vec![0xa0; n]);
            spec
        }),
        proto("protobuf/empty-fields", "1 000 000 empty fields", |size| {
            proto_field(2, b"").repeat(size.scale(1_000_000))
        }),
        proto("protobuf/claimed-length", "a field that claims 4 GB", |_| {
            // A field whose length is the largest of 32 bits.
            vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x0f]
        }),
        proto(
            "protobuf/many-owners",
            "1 000 000 empty owner references",
            |size| proto_field(1, &proto_field(13, b"").repeat(size.scale(1_000_000))),
        ),
        proto("protobuf/unknown-fields", "1 400 000 unknown fields", |size| {
            // Field 15 is not declared.
            [0x78, 1].repeat(size.scale(1_400_000))
        }),
        proto("protobuf/groups", "1 000 000 nested groups", |size| {
            // The start of a group of field 15, which never ends.
            vec![0x7b; size.scale(1_000_000)]
        }),
        Attack::one(
            "compressed/request-bomb",
            "a gzip body that unpacks to 300 MB",
            |size| {
                let zeros = vec![b' '; 1 << 20];
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
                for _ in 0..size.scale(300) {
                    let _ = std::io::Write::write_all(&mut encoder, &zeros);
                }
                let body = encoder.finish().unwrap_or_default();
                HttpRequest::new("POST", THINGS, JSON, body).header("Content-Encoding", "gzip")
            },
        )
        .after_one(|_| define(&things(&open())))
        .expect(&[400, 413, 415]),
        Attack::one("json/many-documents", "20 000 objects in one body", |size| {
            HttpRequest::new(
                "POST",
                format!("{THINGS}?dryRun=All"),
                JSON,
                thing_text("{}").repeat(size.scale(20_000)),
            )
        })
        .after_one(|_| define(&things(&open())))
        .expect(&[400, 413]),
    ]
}
