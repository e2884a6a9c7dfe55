//! JSON decoding: values, duplicates and error messages equal those of kube-apiserver's decoder.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::string_slice,
    reason = "a test may panic, and reads best so"
)]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use scantling_value::{Escape, Finding, FindingList, Limits, Map, Path, Str, Value, json};

/// Renders one line per text: the document (floats marked by `f`), its duplicates, or the error with its
/// offset.
fn render(texts: &[&[u8]]) -> String {
    let mut out = String::new();
    for text in texts {
        let shown = String::from_utf8_lossy(text).replace('\n', "\\n");
        match json::decode_strict(text, Limits::SAFE) {
            Ok(d) if d.duplicates.is_empty() => out += &format!("{shown}  =>  {}\n", typed(&d.value)),
            Ok(d) => out += &format!("{shown}  =>  {}  {}\n", typed(&d.value), findings(d.duplicates)),
            Err(e) => out += &format!("{shown}  =>  {e} @{}\n", e.offset().unwrap()),
        }
    }
    out
}

fn findings(found: impl IntoIterator<Item = Finding>) -> String {
    found.into_iter().collect::<FindingList>().strict_error()
}

fn typed(v: &Value) -> String {
    match v {
        Value::Float(_) => format!("{}f", v.to_json()),
        Value::Array(a) => format!("[{}]", a.iter().map(typed).collect::<Vec<_>>().join(",")),
        Value::Object(m) => {
            let members = m.iter().map(|(k, v)| format!("{k:?}:{}", typed(v)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        other => other.to_json_with(Escape::Minimal),
    }
}

#[track_caller]
fn check(texts: &[&[u8]], expect: Expect) {
    expect.assert_eq(&render(texts));
}

#[test]
fn numbers() {
    check(
        &[
            b"0",
            b"-0",
            b"-0.0",
            b"1.0",
            b"1e3",
            b"1E-2",
            b"9223372036854775807",
            b"-9223372036854775808",
            b"9223372036854775808",
            b"1e400",
            b"[1e400,-1e999]",
            b"[1e400,]",
            b"1e-400",
        ],
        expect![[r#"
            0  =>  0
            -0  =>  0
            -0.0  =>  -0f
            1.0  =>  1f
            1e3  =>  1000f
            1E-2  =>  0.01f
            9223372036854775807  =>  9223372036854775807
            -9223372036854775808  =>  -9223372036854775808
            9223372036854775808  =>  9223372036854776000f
            1e400  =>  json: cannot unmarshal number 1e400 into Go value of type float64 @0
            [1e400,-1e999]  =>  json: cannot unmarshal number 1e400 into Go value of type float64 @1
            [1e400,]  =>  invalid character ']' looking for beginning of value @7
            1e-400  =>  0f
        "#]],
    );
}

#[test]
fn strings() {
    check(
        &[
            br#""plain""#,
            br#""\"\\\/\b\f\n\r\t""#,
            br#""\u00e9\u20AC\ud83d\ude00""#,
            br#""\ud800""#,
            br#""\ud800\u0041""#,
            br#""\udc00\ud800x""#,
            b"\"\xff\xe2\x82 \xc3\xa9\"",
        ],
        expect![[r#"
            "plain"  =>  "plain"
            "\"\\\/\b\f\n\r\t"  =>  "\"\\/\b\f\n\r\t"
            "\u00e9\u20AC\ud83d\ude00"  =>  "é€😀"
            "\ud800"  =>  "�"
            "\ud800\u0041"  =>  "�A"
            "\udc00\ud800x"  =>  "��x"
            "�� é"  =>  "��� é"
        "#]],
    );
}

#[test]
fn duplicates() {
    check(
        &[
            br#"{"a":1,"a":2}"#,
            br#"{"spec":{"a":[{"b":1},{"b":1,"b":2,"b":3}]}}"#,
            br#"{"a":{"x":1,"x":2},"a":{"y":1,"y":2},"a":3}"#,
            br#"[{"a":1,"a":2}]"#,
            br#"{"":1,"":{"":1,"":2}}"#,
            br#"{"a\"b":1,"a\u0022b":2}"#,
        ],
        expect![[r#"
            {"a":1,"a":2}  =>  {"a":2}  duplicate field "a"
            {"spec":{"a":[{"b":1},{"b":1,"b":2,"b":3}]}}  =>  {"spec":{"a":[{"b":1},{"b":3}]}}  duplicate field "spec.a[1].b"
            {"a":{"x":1,"x":2},"a":{"y":1,"y":2},"a":3}  =>  {"a":3}  duplicate field "a.x", duplicate field "a", duplicate field "a.y"
            [{"a":1,"a":2}]  =>  [{"a":2}]  duplicate field "[0].a"
            {"":1,"":{"":1,"":2}}  =>  {"":{"":2}}  duplicate field "", duplicate field "."
            {"a\"b":1,"a\u0022b":2}  =>  {"a\"b":2}  duplicate field "a\"b"
        "#]],
    );
    let many: Vec<String> = (0..150).map(|i| format!("\"k{i}\":1,\"k{i}\":2")).collect();
    let decoded = json::decode_strict(format!("{{{}}}", many.join(",")).as_bytes(), Limits::SAFE).unwrap();
    assert_eq!(
        (decoded.value.as_object().unwrap().len(), decoded.duplicates.len()),
        (150, 100)
    );
}

#[test]
fn syntax_errors() {
    check(
        &[
            b"",
            b" ",
            b"{",
            b"{\"a\"",
            b"{\"a\":",
            b"{\"a\":1",
            b"[",
            b"[1",
            b"\"abc",
            b"{a:1}",
            b"{'a':1}",
            b"{\"a\" 1}",
            b"{\"a\":1 \"b\"}",
            b"{\"a\":1,}",
            b"[1,]",
            b"[1 2]",
            b"{}}",
            b"1 2",
            b"01",
            b"+1",
            b".5",
            b"-",
            b"-a",
            b"1.",
            b"1.x",
            b"1e",
            b"1e+",
            b"1ex",
            b"tru",
            b"trux",
            b"fals!",
            b"nulL",
            b"\"\\",
            b"\"\\x\"",
            b"\"\\u12",
            b"\"\\u12g4\"",
            b"\"a\nb\"",
            b"\xef\xbb\xbf{}",
            b"\xff",
            b"x",
            b"\\",
        ],
        expect![[r#"
              =>  unexpected end of JSON input @0
               =>  unexpected end of JSON input @1
            {  =>  unexpected end of JSON input @1
            {"a"  =>  unexpected end of JSON input @4
            {"a":  =>  unexpected end of JSON input @5
            {"a":1  =>  unexpected end of JSON input @6
            [  =>  unexpected end of JSON input @1
            [1  =>  unexpected end of JSON input @2
            "abc  =>  unexpected end of JSON input @4
            {a:1}  =>  invalid character 'a' looking for beginning of object key string @1
            {'a':1}  =>  invalid character '\'' looking for beginning of object key string @1
            {"a" 1}  =>  invalid character '1' after object key @5
            {"a":1 "b"}  =>  invalid character '"' after object key:value pair @7
            {"a":1,}  =>  invalid character '}' looking for beginning of object key string @7
            [1,]  =>  invalid character ']' looking for beginning of value @3
            [1 2]  =>  invalid character '2' after array element @3
            {}}  =>  invalid character '}' after top-level value @2
            1 2  =>  invalid character '2' after top-level value @2
            01  =>  invalid character '1' after top-level value @1
            +1  =>  invalid character '+' looking for beginning of value @0
            .5  =>  invalid character '.' looking for beginning of value @0
            -  =>  invalid character ' ' in numeric literal @1
            -a  =>  invalid character 'a' in numeric literal @1
            1.  =>  invalid character ' ' after decimal point in numeric literal @2
            1.x  =>  invalid character 'x' after decimal point in numeric literal @2
            1e  =>  invalid character ' ' in exponent of numeric literal @2
            1e+  =>  invalid character ' ' in exponent of numeric literal @3
            1ex  =>  invalid character 'x' in exponent of numeric literal @2
            tru  =>  invalid character ' ' in literal true (expecting 'e') @3
            trux  =>  invalid character 'x' in literal true (expecting 'e') @3
            fals!  =>  invalid character '!' in literal false (expecting 'e') @4
            nulL  =>  invalid character 'L' in literal null (expecting 'l') @3
            "\  =>  invalid character ' ' in string escape code @2
            "\x"  =>  invalid character 'x' in string escape code @2
            "\u12  =>  invalid character ' ' in \u hexadecimal character escape @5
            "\u12g4"  =>  invalid character 'g' in \u hexadecimal character escape @5
            "a\nb"  =>  invalid character '\n' in string literal @2
            ﻿{}  =>  invalid character 'ï' looking for beginning of value @0
            �  =>  invalid character 'ÿ' looking for beginning of value @0
            x  =>  invalid character 'x' looking for beginning of value @0
            \  =>  invalid character '\\' looking for beginning of value @0
        "#]],
    );
}

/// Returns nested lists or objects.
fn nested(depth: usize, open: &str, close: &str) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn depth_is_bounded_and_safe_to_handle() {
    let limit = Limits::SAFE.depth;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let text = nested(limit, open, close);
        let value = json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        let copy = value.clone();
        assert!(copy == value);
        assert_eq!(copy.to_json(), text);
        assert!(!format!("{copy:?}").is_empty());

        let text = nested(limit + 1, open, close);
        let error = json::decode(text.as_bytes(), Limits::SAFE)
            .unwrap_err()
            .to_string();
        let opening = &open[..1];
        assert_eq!(error, format!("invalid character '{opening}' exceeded max depth"));
    }
    let bomb = "[".repeat(3_000_000);
    assert!(json::decode(bomb.as_bytes(), Limits::SERVER).is_err());
}

#[test]
fn a_thread_with_a_server_stack_bears_server_depth() {
    let handle = || {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = nested(Limits::SERVER.depth, open, close);
            let value = json::decode(text.as_bytes(), Limits::SERVER).unwrap();
            let copy = value.clone();
            assert!(copy == value);
            assert_eq!(copy.to_json(), text);
        }
    };
    let builder = std::thread::Builder::new().stack_size(Limits::SERVER_STACK);
    builder.spawn(handle).unwrap().join().unwrap();
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        // Whole floats are written as integers (as Go does), so only other floats round-trip.
        any::<f64>()
            .prop_filter("fraction", |f| f.is_finite() && f.fract() != 0.0)
            .prop_map(Value::Float),
        any::<String>().prop_map(|s| Value::String(Str::from(s))),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|m| Value::Object(Map::from_iter(m))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in any_value()) {
        for escape in [Escape::Html, Escape::Minimal] {
            let text = value.to_json_with(escape);
            prop_assert_eq!(&json::decode(text.as_bytes(), Limits::SAFE).unwrap(), &value);
        }
    }

    #[test]
    fn decoding_json_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = json::decode_strict(&bytes, Limits::SAFE);
    }

    #[test]
    fn nothing_like_json_panics(text in r#"([\[\]{},:"\\0-9eE.+ -]|true|null|"a"|\\u[0-9a-f]{3}){0,40}"#) {
        let _ = json::decode_strict(text.as_bytes(), Limits::SAFE);
    }
}

#[test]
fn findings_come_in_the_order_of_the_text() {
    let text = br#"{"b": {"y": 1, "x": [{"q": 1}, {"q": 2, "q": 3}]}, "a": 1}"#;
    let (b, root) = (Path::ROOT.field("b"), Path::ROOT);
    let x = b.field("x");
    let unknown = |at: &Path<'_>| Finding::UnknownField(at.into());
    let mut found: FindingList = [
        unknown(&root.field("a")),
        Finding::DuplicateField((&x.index(1).field("q")).into()),
        unknown(&x.index(0).field("q")),
        unknown(&root.field("elsewhere")),
        unknown(&b.field("y")),
    ]
    .into_iter()
    .collect();
    json::sort_findings(text, &mut found);
    assert_eq!(
        found.strict_error(),
        "unknown field \"b.y\", unknown field \"b.x[0].q\", duplicate field \"b.x[1].q\", unknown field \"a\", \
         unknown field \"elsewhere\""
    );
}
