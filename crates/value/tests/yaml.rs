//! YAML decoding: values, duplicates and error messages equal those of Kubernetes' decoder.
#![expect(
    clippy::needless_pass_by_value,
    reason = "a test may panic, and reads best so"
)]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use scantling_value::{Escape, FindingList, Limits, Path, PathBuf, Position, json, yaml};

#[track_caller]
fn check(texts: &[&str], expect: Expect) {
    let mut out = String::new();
    for text in texts {
        let shown = text
            .trim_end_matches('\n')
            .replace('\n', "\\n")
            .replace('\r', "\\r");
        match yaml::decode_strict(text.as_bytes(), Limits::SAFE) {
            Ok(d) => {
                out += &format!("{shown}  =>  {}", d.value.to_json_with(Escape::Minimal));
                if !d.duplicates.is_empty() {
                    out += &format!(
                        "  {}",
                        d.duplicates
                            .iter()
                            .map(ToString::to_string)
                            .collect::<Vec<_>>()
                            .join(", ")
                    );
                }
            }
            Err(e) => out += &format!("{shown}  =>  {e}"),
        }
        out.push('\n');
    }
    expect.assert_eq(&out);
}

#[test]
fn scalars() {
    check(
        &[
            "[y, Y, yes, n, No, on, OFF, true, False, t]",
            "[~, null, Null, NULL, nUll, '']",
            "[010, 0o17, 0x1f, 0b11, 08, 1_000, +5, -0, -0b11, 0x, 1__0, _1]",
            "[.5, 1., 1e3, 12e03, -.5, 1.5, 1.0, -0.0, ., 1e400, .5e3]",
            "[9223372036854775807, 9223372036854775808, 18446744073709551616, 1e21]",
            "[1:20, 2001-01-01, 2001-12-14t21:59:43.10-05:00, 1.2.3, 0.0.0.0]",
            ".inf",
            "[.nan]",
            "[!!str 1, !!int \"5\", !!float 3, !foo bar, !!binary aGVsbG8=, ! 5, !!timestamp 2001-01-01]",
            "!!int x",
            "!!timestamp x",
            "!!binary '?'",
        ],
        expect![[r#"
            [y, Y, yes, n, No, on, OFF, true, False, t]  =>  [true,true,true,false,false,true,false,true,false,"t"]
            [~, null, Null, NULL, nUll, '']  =>  [null,null,null,null,"nUll",""]
            [010, 0o17, 0x1f, 0b11, 08, 1_000, +5, -0, -0b11, 0x, 1__0, _1]  =>  [8,15,31,3,8,1000,5,0,-3,"0x",10,"_1"]
            [.5, 1., 1e3, 12e03, -.5, 1.5, 1.0, -0.0, ., 1e400, .5e3]  =>  [0.5,1,1000,12000,-0.5,1.5,1,0,".","1e400",500]
            [9223372036854775807, 9223372036854775808, 18446744073709551616, 1e21]  =>  [9223372036854775807,9223372036854776000,18446744073709552000,1e+21]
            [1:20, 2001-01-01, 2001-12-14t21:59:43.10-05:00, 1.2.3, 0.0.0.0]  =>  ["1:20","2001-01-01","2001-12-14t21:59:43.10-05:00","1.2.3","0.0.0.0"]
            .inf  =>  json: unsupported value: +Inf
            [.nan]  =>  json: unsupported value: NaN
            [!!str 1, !!int "5", !!float 3, !foo bar, !!binary aGVsbG8=, ! 5, !!timestamp 2001-01-01]  =>  ["1",5,3,"bar","hello","5","2001-01-01"]
            !!int x  =>  yaml: cannot decode !!str `x` as a !!int
            !!timestamp x  =>  yaml: cannot decode !!str `x` as a !!timestamp
            !!binary '?'  =>  yaml: !!binary value contains invalid base64 data
        "#]],
    );
}

#[test]
fn structure() {
    check(
        &[
            "a: 1\nb:\n- x\n- y: z\n  w: v\n-\n",
            "- - a\n  - b\n- c\n",
            "{a: 1, b: [x, {c}], ? d : e, \"f\":g}",
            "[a: b, c]",
            "? a\n: b\n? c\n",
            "a: |\n  l1\n   l2\n\n  l3\nb: >-\n  fold\n  ed\n\n  x\nc: |+\n  keep\n\n",
            "a: 'it''s'\nb: \"x\\ty\\u00e9\\\n  z\"\nc: 'multi\n  line'\nd: plain\n  text\n",
            "a: b # c\n#x\nc: d#e\n",
            "a: b\r\nc:\r\n  - d\r\n",
            "1: a\ntrue: b\n1.5: c\n1e7: d\non: e\n",
            "--- a\n...\n]",
            "",
            "# nothing\n",
            "\u{feff}a: 1",
        ],
        expect![[r#"
            a: 1\nb:\n- x\n- y: z\n  w: v\n-  =>  {"a":1,"b":["x",{"true":"z","w":"v"},null]}
            - - a\n  - b\n- c  =>  [["a","b"],"c"]
            {a: 1, b: [x, {c}], ? d : e, "f":g}  =>  {"a":1,"b":["x",{"c":null}],"d":"e","f":"g"}
            [a: b, c]  =>  [{"a":"b"},"c"]
            ? a\n: b\n? c  =>  {"a":"b","c":null}
            a: |\n  l1\n   l2\n\n  l3\nb: >-\n  fold\n  ed\n\n  x\nc: |+\n  keep  =>  {"a":"l1\n l2\n\nl3\n","b":"fold ed\nx","c":"keep\n\n"}
            a: 'it''s'\nb: "x\ty\u00e9\\n  z"\nc: 'multi\n  line'\nd: plain\n  text  =>  {"a":"it's","b":"x\tyéz","c":"multi line","d":"plain text"}
            a: b # c\n#x\nc: d#e  =>  {"a":"b","c":"d#e"}
            a: b\r\nc:\r\n  - d\r  =>  {"a":"b","c":["d"]}
            1: a\ntrue: b\n1.5: c\n1e7: d\non: e  =>  {"1":"a","1.5":"c","1e+07":"d","true":"e"}  line 5: key true already set in map
            --- a\n...\n]  =>  "a"
              =>  null
            # nothing  =>  null
            ﻿a: 1  =>  {"a":1}
        "#]],
    );
}

#[test]
fn anchors_and_merges() {
    check(
        &[
            "a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n",
            "d: {e: 2, <<: {e: 1, f: 3}}",
            "d: {<<: [{a: 1}, {a: 2, b: 3}]}",
            "<<: 5",
            "a: *y",
            "&a [*a]",
        ],
        expect![[r#"
            a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}  =>  {"a":{"b":1},"c":{"b":1},"d":{"b":1,"e":2}}
            d: {e: 2, <<: {e: 1, f: 3}}  =>  {"d":{"e":1,"f":3}}  line 1: key "e" already set in map
            d: {<<: [{a: 1}, {a: 2, b: 3}]}  =>  {"d":{"a":1,"b":3}}  line 1: key "a" already set in map
            <<: 5  =>  yaml: map merge requires map or sequence of maps as the value
            a: *y  =>  yaml: unknown anchor 'y' referenced
            &a [*a]  =>  yaml: anchor 'a' value contains itself
        "#]],
    );
}

#[test]
fn duplicates() {
    check(
        &[
            "a: 1\nspec:\n  size: 1\n  x: y\n  size: 2\n",
            "{a: 1, a: 2, 1: x, 1: y, true: 1, on: 2}",
            "a: 1\nb: 2\na:\n  c: 3\n",
        ],
        expect![[r#"
            a: 1\nspec:\n  size: 1\n  x: y\n  size: 2  =>  {"a":1,"spec":{"size":2,"x":true}}  line 5: key "size" already set in map
            {a: 1, a: 2, 1: x, 1: y, true: 1, on: 2}  =>  {"1":true,"a":2,"true":2}  line 1: key "a" already set in map, line 1: key 1 already set in map, line 1: key true already set in map
            a: 1\nb: 2\na:\n  c: 3  =>  {"a":{"c":3},"b":2}  line 4: key "a" already set in map
        "#]],
    );
    let d = yaml::decode_strict(b"a: 1\na: 2\na: 3\n", Limits::SAFE).unwrap();
    assert_eq!(
        d.duplicates.into_iter().collect::<FindingList>().strict_error(),
        "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map\n  line 3: key \"a\" already set in map"
    );
}

#[test]
fn errors() {
    check(
        &[
            "a: b: c",
            "a: 1\nb: c: d\n",
            "a:\n\tb: 1\n",
            "a: [1, 2\nb: 3\n",
            "a: {x: 1\n",
            "a: 'x\n",
            "a: \"x\\q\"",
            "a\nb: c\n",
            "a: b\n- c\n",
            "- a\nb: c\n",
            "a: @x",
            "a: %x\nb: `y`\n",
            "{{ .Values.x }}",
            "? [a]\n: b",
            "~: x",
            "a: |0\n",
            "a: ]",
            "%YAML 1.2\n---\na",
            "!x!y z",
            "a: \u{1}",
            "a: !!bool x",
            "[!,",
            "a: ''|\n 0",
        ],
        expect![[r#"
            a: b: c  =>  yaml: mapping values are not allowed in this context
            a: 1\nb: c: d  =>  yaml: line 2: mapping values are not allowed in this context
            a:\n	b: 1  =>  yaml: line 2: found character that cannot start any token
            a: [1, 2\nb: 3  =>  yaml: line 1: did not find expected ',' or ']'
            a: {x: 1  =>  yaml: line 1: did not find expected ',' or '}'
            a: 'x  =>  yaml: line 2: found unexpected end of stream
            a: "x\q"  =>  yaml: found unknown escape character
            a\nb: c  =>  yaml: line 2: mapping values are not allowed in this context
            a: b\n- c  =>  yaml: line 1: did not find expected key
            - a\nb: c  =>  yaml: line 1: did not find expected '-' indicator
            a: @x  =>  yaml: found character that cannot start any token
            a: %x\nb: `y`  =>  yaml: found character that cannot start any token
            {{ .Values.x }}  =>  yaml: invalid map key: map[interface {}]interface {}{".Values.x":interface {}(nil)}
            ? [a]\n: b  =>  yaml: invalid map key: []interface {}{"a"}
            ~: x  =>  unsupported map key of type: %!s(<nil>), key: <nil>, value: "x"
            a: |0  =>  yaml: found an indentation indicator equal to 0
            a: ]  =>  yaml: did not find expected node content
            %YAML 1.2\n---\na  =>  yaml: found incompatible YAML document
            !x!y z  =>  yaml: found undefined tag handle
            a:   =>  yaml: control characters are not allowed
            a: !!bool x  =>  yaml: cannot decode !!str `x` as a !!bool
            [!,  =>  yaml: line 1: did not find expected ',' or ']'
            a: ''|\n 0  =>  yaml: did not find expected key
        "#]],
    );
    let invalid = yaml::decode(b"a: \xff", Limits::SAFE).unwrap_err();
    assert_eq!(invalid.to_string(), "yaml: invalid leading UTF-8 octet");
}

#[test]
fn bombs_are_refused() {
    let mut bomb = String::from("a: &a [x,x,x,x,x,x,x,x,x]\n");
    for (name, previous) in ('b'..='z').zip('a'..) {
        let refs = vec![format!("*{previous}"); 9].join(",");
        bomb += &format!("{name}: &{name} [{refs}]\n");
    }
    let error = yaml::decode(bomb.as_bytes(), Limits::SAFE).unwrap_err();
    assert_eq!(error.to_string(), "yaml: document contains excessive aliasing");

    // Depth by aliases: each level is flat in the text.
    let mut ladder = String::from("l0: &l0 [x]\n");
    for i in 1..2000 {
        ladder += &format!("l{i}: &l{i} [*l{}]\n", i - 1);
    }
    let error = yaml::decode(ladder.as_bytes(), Limits::SAFE).unwrap_err();
    assert_eq!(error.to_string(), "invalid character '[' exceeded max depth");

    for deep in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000)] {
        let error = yaml::decode(deep.as_bytes(), Limits::SAFE).unwrap_err();
        assert_eq!(error.to_string(), "yaml: exceeded max depth of 200");
    }
    let blocks: String = (0..1000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    let error = yaml::decode(blocks.as_bytes(), Limits::SAFE).unwrap_err();
    assert_eq!(error.to_string(), "yaml: line 201: exceeded max depth of 200");
}

#[test]
fn streams() {
    let text = b"# first\na: 1\n--- # second\nb: 2\n---\n---\nc: 3\n";
    let all: Vec<_> = yaml::documents(text).map(Result::unwrap).collect();
    let shown: Vec<_> = all
        .iter()
        .map(|d| {
            let value = yaml::decode(d.text, Limits::SAFE).unwrap().to_json();
            (d.line, d.offset, value)
        })
        .collect();
    assert_eq!(
        shown,
        [
            (0, 0, r#"{"a":1}"#.into()),
            (3, 26, r#"{"b":2}"#.into()),
            (5, 35, r#"{"c":3}"#.into()),
        ]
    );
    let error = yaml::documents(b"a: 1\n--- b\n").last().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "invalid Yaml document separator: b");
}

#[test]
fn positions() {
    let yaml_text = "a: 1\nspec:\n  list:\n  - x: 1\n  - x: é\n    y: 2\n  on: 5\n";
    let json_text =
        "{\"a\": 1,\n \"spec\": {\"list\": [{\"x\": 1},\n   {\"x\": \"é\", \"y\": 2}], \"true\": [[1], 2]}}";
    let spec = Path::ROOT.field("spec");
    let list = spec.field("list");
    let (first, second, third) = (list.index(0), list.index(1), list.index(2));
    let on = spec.key("true");
    for (path, in_yaml, in_json) in [
        (&Path::ROOT, (1, 1), (1, 1)),
        (&spec, (2, 1), (2, 2)),
        (&list, (3, 3), (2, 11)),
        (&first.field("x"), (4, 5), (2, 21)),
        (&second, (5, 5), (3, 4)),
        (&second.field("y"), (6, 5), (3, 15)),
        (&second.field("missing"), (5, 5), (3, 4)),
        (&third, (3, 3), (2, 11)),
        (&on, (7, 3), (3, 25)),
    ] {
        let path = PathBuf::from(path);
        let at = Position::in_yaml(yaml_text.as_bytes(), &path, Limits::SAFE).unwrap();
        assert_eq!((at.line, at.column), in_yaml, "{path} in YAML");
        let at = Position::in_json(json_text.as_bytes(), &path).unwrap();
        assert_eq!((at.line, at.column), in_json, "{path} in JSON");
    }
}

proptest! {
    #[test]
    fn json_is_yaml(text in r#"\{("[a-z ]{1,6}": ?(-?[1-9][0-9]{0,8}|"[a-zA-Z0-9 :#,\-]{0,12}"|\[(true|null|1\.5)?\]|\{\}),? ?){0,5}\}"#) {
        if let Ok(value) = json::decode(text.as_bytes(), Limits::SAFE) {
            prop_assert_eq!(yaml::decode(text.as_bytes(), Limits::SAFE), Ok(value));
        }
    }

    #[test]
    fn decoding_yaml_never_panics(text in r#"([-?:,\[\]{}#&*!|>'"%@`\\ \t\n.a0~\r\u{85}]|- |: |\n  |&a|\*a|<<: |!!){0,40}"#) {
        let decoded = yaml::decode_strict(text.as_bytes(), Limits::SAFE);
        if let Ok(d) = decoded {
            let again = json::decode(d.value.to_json().as_bytes(), Limits::SAFE);
            prop_assert_eq!(again, Ok(d.value));
        }
        let _ = yaml::documents(text.as_bytes()).count();
    }
}
