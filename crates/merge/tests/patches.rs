//! Patches: documents in, documents or errors out, exactly as kube-apiserver.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic, and reads best so"
)]

use expect_test::{Expect, expect};
use scantling_merge::json_patch::{self, JsonPatch};
use scantling_merge::patch::{Patch, PatchDecoding, PatchType};
use scantling_merge::{merge_patch, strategic};
use scantling_schema::document::Schema;
use scantling_schema::structural::Interner;
use scantling_value::{Finding, Limits, Value, yaml};

fn doc(text: &str) -> Value {
    yaml::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

fn show<E: ToString>(result: Result<Value, E>) -> String {
    match result {
        Ok(value) => value.to_json(),
        Err(e) => format!("error: {}", e.to_string()),
    }
}

#[track_caller]
fn check(document: &str, patches: &[&str], apply: impl Fn(Value, Value) -> String, expect: Expect) {
    let mut out = String::new();
    for patch in patches {
        out += &format!("{patch}  =>  {}\n", apply(doc(document), doc(patch)));
    }
    expect.assert_eq(&out);
}

#[test]
fn json_patches() {
    let apply = |d: Value, p: Value| {
        show(JsonPatch::decode(p.to_json().as_bytes(), Limits::SAFE).and_then(|p| p.apply(d)))
    };
    check(
        "{a: {b: [1, 2]}, c: x, d~e: {f/g: 1}}",
        &[
            "[{op: add, path: /a/b/-, value: 3}, {op: add, path: /a/b/0, value: 0}, {op: add, path: /new, value: {}}]",
            "[{op: add, path: /a/b/-1, value: z}, {op: remove, path: /a/b/-2}]",
            "[{op: replace, path: /absent, value: 1}]",
            "[{op: replace, path: /a/b/5, value: 1}]",
            "[{op: replace, path: '', value: {all: new}}]",
            "[{op: remove, path: /absent}]",
            "[{op: remove, path: /d~0e/f~1g}, {op: move, from: /c, path: /a/c}]",
            "[{op: copy, from: /a/b, path: /copy}, {op: test, path: /copy, value: [1, 2]}]",
            "[{op: test, path: /c, value: y}]",
            "[{op: test, path: /absent, value: null}]",
            "[{op: test, path: /no/where, value: 1}]",
            "[{op: add, path: /no/where, value: 1}]",
            "[{op: add, path: /a/b/x, value: 1}]",
            "[{op: add, path: /a/b/9, value: 1}]",
            "[{op: add, value: 1}]",
            "[{op: move, path: /c}]",
            "[{op: frob, path: /c}]",
            "[{path: /c}]",
            "{op: add}",
            "[5]",
        ],
        apply,
        expect![[r#"
            [{op: add, path: /a/b/-, value: 3}, {op: add, path: /a/b/0, value: 0}, {op: add, path: /new, value: {}}]  =>  {"a":{"b":[0,1,2,3]},"c":"x","d~e":{"f/g":1},"new":{}}
            [{op: add, path: /a/b/-1, value: z}, {op: remove, path: /a/b/-2}]  =>  {"a":{"b":[1,"z"]},"c":"x","d~e":{"f/g":1}}
            [{op: replace, path: /absent, value: 1}]  =>  {"a":{"b":[1,2]},"absent":1,"c":"x","d~e":{"f/g":1}}
            [{op: replace, path: /a/b/5, value: 1}]  =>  error: replace operation does not apply: doc is missing key: /a/b/5: missing value
            [{op: replace, path: '', value: {all: new}}]  =>  {"all":"new"}
            [{op: remove, path: /absent}]  =>  error: error in remove for path: '/absent': Unable to remove nonexistent key: absent: missing value
            [{op: remove, path: /d~0e/f~1g}, {op: move, from: /c, path: /a/c}]  =>  {"a":{"b":[1,2],"c":"x"},"d~e":{}}
            [{op: copy, from: /a/b, path: /copy}, {op: test, path: /copy, value: [1, 2]}]  =>  {"a":{"b":[1,2]},"c":"x","copy":[1,2],"d~e":{"f/g":1}}
            [{op: test, path: /c, value: y}]  =>  error: testing value /c failed: test failed
            [{op: test, path: /absent, value: null}]  =>  {"a":{"b":[1,2]},"c":"x","d~e":{"f/g":1}}
            [{op: test, path: /no/where, value: 1}]  =>  error: test operation does not apply: is missing path: /no/where: missing value
            [{op: add, path: /no/where, value: 1}]  =>  error: add operation does not apply: doc is missing path: "/no/where": missing value
            [{op: add, path: /a/b/x, value: 1}]  =>  error: error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax
            [{op: add, path: /a/b/9, value: 1}]  =>  error: error in add for path: '/a/b/9': Unable to access invalid index: 9: invalid index referenced
            [{op: add, value: 1}]  =>  error: add operation failed to decode path: missing value
            [{op: move, path: /c}]  =>  error: move operation failed to decode from: operation, missing from field: missing value
            [{op: frob, path: /c}]  =>  error: Unexpected kind: frob
            [{path: /c}]  =>  error: Unexpected kind: unknown
            {op: add}  =>  error: json: cannot unmarshal object into Go value of type jsonpatch.Patch
            [5]  =>  error: json: cannot unmarshal number into Go value of type jsonpatch.Operation
        "#]],
    );
    // kube-apiserver counts the operations after it has decoded them.
    let many = vec![doc("{op: test, path: /c, value: x}"); 10_001];
    let malformed = [many.clone(), vec![Value::Int(5)]].concat();
    for (operations, wanted) in [
        (
            many,
            "The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
        (
            malformed,
            "json: cannot unmarshal number into Go value of type jsonpatch.Operation",
        ),
    ] {
        let text = Value::Array(operations).to_json();
        let error = JsonPatch::decode(text.as_bytes(), Limits::SAFE).unwrap_err();
        assert_eq!(error.to_string(), wanted);
    }
}

#[test]
fn texts_of_patched_documents() {
    let document = doc("{a: {v: 1, x: [1, 2]}, b: z}");
    let mut out = String::new();
    for patch in [
        r#"[{"op":"add","path":"/a","value":{"y": 4, "x": 5, "y": [6, {"b": 1, "a": "<,}"}]}}]"#,
        r#"[{"op":"add","path":"/c","value":{"y":1,"x":2,"y":3}},{"op":"add","path":"/c/z","value":{"k":1,"k":2}}]"#,
        r#"[{"op":"replace","path":"/a/x/0","value":{"y":1,"x":2}},{"op":"copy","from":"/a","path":"/c"}]"#,
        r#"[{"op":"add","path":"/c","value":{"y":1,"x":{"b":1,"a":2}}},{"op":"test","path":"/c","value":{"x":{"a":2,"b":1},"y":1}}]"#,
        r#"[{"op":"add","path":"/c~1d","value":{"y":1,"x":2}},{"op":"move","from":"/c~1d","path":"/a/x/-"},{"op":"remove","path":"/b"}]"#,
    ] {
        let text = json_patch::patched_text(&document.to_json(), patch);
        let value =
            show(JsonPatch::decode(patch.as_bytes(), Limits::SAFE).and_then(|p| p.apply(document.clone())));
        assert_eq!(doc(&text).to_json(), value);
        out += &text;
        out.push('\n');
    }
    expect![[r#"
        {"a":{"y":4,"x":5,"y":[6,{"b":1,"a":"\u003c,}"}]},"b":"z"}
        {"a":{"v":1,"x":[1,2]},"b":"z","c":{"x":2,"y":3,"z":{"k":1,"k":2}}}
        {"a":{"v":1,"x":[{"y":1,"x":2},2]},"b":"z","c":{"v":1,"x":[{"y":1,"x":2},2]}}
        {"a":{"v":1,"x":[1,2]},"b":"z","c":{"x":{"a":2,"b":1},"y":1}}
        {"a":{"v":1,"x":[1,2,{"y":1,"x":2}]}}
    "#]]
    .assert_eq(&out);
}

#[test]
fn merge_patches() {
    check(
        "{a: {b: 1, c: 2}, l: [1, {x: 1}], s: x}",
        &[
            "{a: {b: null, d: 3}}",
            "{a: null, s: {k: null, m: {k: null}}}",
            "{l: [{x: null, z: 1}, null]}",
            "{new: {k: null, l: [{k: null}]}}",
            "{a: [1]}",
            "{}",
            "[{k: null}]",
            "5",
        ],
        |d, p| show(merge_patch::apply(d, p)),
        expect![[r#"
            {a: {b: null, d: 3}}  =>  {"a":{"c":2,"d":3},"l":[1,{"x":1}],"s":"x"}
            {a: null, s: {k: null, m: {k: null}}}  =>  {"l":[1,{"x":1}],"s":{"m":{}}}
            {l: [{x: null, z: 1}, null]}  =>  {"a":{"b":1,"c":2},"l":[{"z":1},null],"s":"x"}
            {new: {k: null, l: [{k: null}]}}  =>  {"a":{"b":1,"c":2},"l":[1,{"x":1}],"new":{"l":[{}]},"s":"x"}
            {a: [1]}  =>  {"a":[1],"l":[1,{"x":1}],"s":"x"}
            {}  =>  {"a":{"b":1,"c":2},"l":[1,{"x":1}],"s":"x"}
            [{k: null}]  =>  [{}]
            5  =>  error: Invalid JSON Patch
        "#]],
    );
}

#[test]
fn strategic_patches() {
    let schema = doc(r"
type: object
properties:
  s: {type: string}
  prim: {type: array, x-kubernetes-patch-strategy: merge, items: {type: string}}
  atomic: {type: array, items: {type: string}}
  rep: {type: object, x-kubernetes-patch-strategy: replace}
  ret: {type: object, x-kubernetes-patch-strategy: retainKeys}
  plain: {type: array, items: {type: object, properties: {v: {type: integer}}}}
  nokey:
    type: array
    x-kubernetes-patch-strategy: merge
    items: {type: object, properties: {v: {type: integer}}}
  keyed:
    type: array
    x-kubernetes-patch-strategy: merge
    x-kubernetes-patch-merge-key: name
    items: {type: object, properties: {name: {type: string}, v: {type: integer}}}
");
    let schema = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    // Repeated, deleted and unpositioned elements: their order only follows from kube-apiserver's
    // implementation.
    check(
        "{prim: [a, a, b, c], keyed: [{name: p}, {name: q}, {name: r}, {name: q, v: 1}], plain: [{v: 1}], nokey: [{v: 1}]}",
        &[
            "{prim: []}",
            "{prim: [d, c, d]}",
            "{prim: [b], $setElementOrder/prim: []}",
            "{keyed: [{name: q, $patch: delete}, {name: s}], $setElementOrder/keyed: [{name: s}, {name: r}]}",
            "{keyed: [{name: p, $patch: delete}], $setElementOrder/keyed: [{name: r}, {name: q}]}",
            "{keyed: [{name: x, v: 1}, {name: y}, {name: x, v: 2}, {$patch: replace}]}",
            "{keyed: [{v: 1}, {$patch: replace}]}",
            "{keyed: [{name: x, v: 1}, {name: x, v: 2}, {name: q, v: 3}]}",
            "{keyed: [{name: t}], $setElementOrder/keyed: []}",
            "{keyed: [{name: p}], $setElementOrder/keyed: [5]}",
            "{keyed: [{name: p, $patch: null}]}",
            "{keyed: [{name: p, $patch: [1, x, {k: true}]}]}",
            "{keyed: [{name: null, v: 1}, {name: null, v: 2}]}",
            "{$setElementOrder/plain: []}",
            "{nokey: [{v: 2}]}",
            "{$deleteFromPrimitiveList/: [a]}",
        ],
        |d, p| show(strategic::apply(d, p, &schema)),
        expect![[r#"
            {prim: []}  =>  {"keyed":[{"name":"p"},{"name":"q"},{"name":"r"},{"name":"q","v":1}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","c","b"]}
            {prim: [d, c, d]}  =>  {"keyed":[{"name":"p"},{"name":"q"},{"name":"r"},{"name":"q","v":1}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["d","a","b","c"]}
            {prim: [b], $setElementOrder/prim: []}  =>  {"keyed":[{"name":"p"},{"name":"q"},{"name":"r"},{"name":"q","v":1}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","b","c"]}
            {keyed: [{name: q, $patch: delete}, {name: s}], $setElementOrder/keyed: [{name: s}, {name: r}]}  =>  {"keyed":[{"name":"p"},{"name":"s"},{"name":"r"}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","a","b","c"]}
            {keyed: [{name: p, $patch: delete}], $setElementOrder/keyed: [{name: r}, {name: q}]}  =>  {"keyed":[{"name":"r"},{"name":"q"},{"name":"q","v":1}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","a","b","c"]}
            {keyed: [{name: x, v: 1}, {name: y}, {name: x, v: 2}, {$patch: replace}]}  =>  {"keyed":[{"name":"x","v":1},{"name":"x","v":2},{"name":true}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","a","b","c"]}
            {keyed: [{v: 1}, {$patch: replace}]}  =>  error: map: map[v:1] does not contain declared merge key: name
            {keyed: [{name: x, v: 1}, {name: x, v: 2}, {name: q, v: 3}]}  =>  {"keyed":[{"name":"x","v":2},{"name":"p"},{"name":"q","v":3},{"name":"q","v":1},{"name":"r"}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","a","b","c"]}
            {keyed: [{name: t}], $setElementOrder/keyed: []}  =>  {"keyed":[{"name":"p"},{"name":"q"},{"name":"q","v":1},{"name":"r"},{"name":"t"}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","a","b","c"]}
            {keyed: [{name: p}], $setElementOrder/keyed: [5]}  =>  error: expected a map[string]interface {}, but received a int64
            {keyed: [{name: p, $patch: null}]}  =>  error: unknown patch type: %!s(<nil>) in map: map[$patch:<nil> name:p]
            {keyed: [{name: p, $patch: [1, x, {k: true}]}]}  =>  error: unknown patch type: [%!s(int64=1) x map[k:%!s(bool=true)]] in map: map[$patch:[1 x map[k:true]] name:p]
            {keyed: [{name: null, v: 1}, {name: null, v: 2}]}  =>  error: map: map[v:2] does not contain declared merge key: name
            {$setElementOrder/plain: []}  =>  error: map: map[v:1] does not contain declared merge key: 
            {nokey: [{v: 2}]}  =>  error: cannot merge lists without merge key for struct
            {$deleteFromPrimitiveList/: [a]}  =>  {"keyed":[{"name":"p"},{"name":"q"},{"name":"r"},{"name":"q","v":1}],"nokey":[{"v":1}],"plain":[{"v":1}],"prim":["a","a","b","c"]}
        "#]],
    );
    check(
        "{s: a, prim: [a, b, c], atomic: [x], rep: {p: 1}, ret: {p: 1, q: 2}, keyed: [{name: one, v: 1}, {name: two, v: 2}]}",
        &[
            "{prim: [d, a]}",
            "{$deleteFromPrimitiveList/prim: [b]}",
            "{prim: [d], $setElementOrder/prim: [c, d, a]}",
            "{atomic: [z], rep: {r: 3}}",
            "{ret: {$retainKeys: [q, r], r: 3}}",
            "{ret: {$retainKeys: [q], r: 3}}",
            "{keyed: [{name: three, v: 3}, {name: one, v: 9}]}",
            "{keyed: [{name: two, $patch: delete}]}",
            "{keyed: [{name: x}, {$patch: replace}]}",
            "{keyed: [{name: three}], $setElementOrder/keyed: [{name: two}, {name: three}, {name: one}]}",
            "{keyed: [{name: one}, {name: two}], $setElementOrder/keyed: [{name: two}, {name: one}]}",
            "{keyed: [{v: 1}]}",
            "{keyed: [{name: one, $patch: frob}]}",
            "{ret: {$patch: replace, z: 1}}",
            "{$patch: delete}",
            "{s: null, new: {k: null, x: {$patch: delete}}}",
            "{keyed: [1]}",
            "{prim: [[1]]}",
            "{$setElementOrder/keyed: 5}",
            "{$deleteFromPrimitiveList: [b]}",
        ],
        |d, p| show(strategic::apply(d, p, &schema)),
        expect![[r#"
            {prim: [d, a]}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"prim":["d","a","b","c"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {$deleteFromPrimitiveList/prim: [b]}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"prim":["a","c"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {prim: [d], $setElementOrder/prim: [c, d, a]}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"prim":["b","c","d","a"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {atomic: [z], rep: {r: 3}}  =>  {"atomic":["z"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"prim":["a","b","c"],"rep":{"r":3},"ret":{"p":1,"q":2},"s":"a"}
            {ret: {$retainKeys: [q, r], r: 3}}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"prim":["a","b","c"],"rep":{"p":1},"ret":{"q":2,"r":3},"s":"a"}
            {ret: {$retainKeys: [q], r: 3}}  =>  error: invalid patch format of retainKeys
            {keyed: [{name: three, v: 3}, {name: one, v: 9}]}  =>  {"atomic":["x"],"keyed":[{"name":"three","v":3},{"name":"one","v":9},{"name":"two","v":2}],"prim":["a","b","c"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {keyed: [{name: two, $patch: delete}]}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1}],"prim":["a","b","c"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {keyed: [{name: x}, {$patch: replace}]}  =>  {"atomic":["x"],"keyed":[{"name":"x"}],"prim":["a","b","c"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {keyed: [{name: three}], $setElementOrder/keyed: [{name: two}, {name: three}, {name: one}]}  =>  {"atomic":["x"],"keyed":[{"name":"two","v":2},{"name":"three"},{"name":"one","v":1}],"prim":["a","b","c"],"rep":{"p":1},"ret":{"p":1,"q":2},"s":"a"}
            {keyed: [{name: one}, {name: two}], $setElementOrder/keyed: [{name: two}, {name: one}]}  =>  error: The order in patch list:
            [map[name:one] map[name:two]]
             doesn't match $setElementOrder list:
            [map[name:two] map[name:one]]

            {keyed: [{v: 1}]}  =>  error: map: map[v:1] does not contain declared merge key: name
            {keyed: [{name: one, $patch: frob}]}  =>  error: unknown patch type: frob in map: map[$patch:frob name:one]
            {ret: {$patch: replace, z: 1}}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"prim":["a","b","c"],"rep":{"p":1},"ret":{"z":1},"s":"a"}
            {$patch: delete}  =>  {}
            {s: null, new: {k: null, x: {$patch: delete}}}  =>  {"atomic":["x"],"keyed":[{"name":"one","v":1},{"name":"two","v":2}],"new":{},"prim":["a","b","c"],"rep":{"p":1},"ret":{"p":1,"q":2}}
            {keyed: [1]}  =>  error: list element types are not identical: [[map[name:one v:1] map[name:two v:2]] [1]]
            {prim: [[1]]}  =>  error: list element types are not identical: [[a b c] [[1]]]
            {$setElementOrder/keyed: 5}  =>  error: expected a []interface {}, but received a int64
            {$deleteFromPrimitiveList: [b]}  =>  error: invalid patch format of primitive list
        "#]],
    );
}

#[test]
fn duplicate_fields_in_patches() {
    let mut out = String::new();
    for (ty, text) in [
        (
            PatchType::Json,
            r#"[{"op":"add","op":"test","path":"/a","value":{"x":1,"x":2}},{"path":"/b","comment":{"z":1,"z":2}}]"#,
        ),
        (PatchType::Json, r#"{"op":"add"}"#),
        (PatchType::Json, r#"[{"op":5}]"#),
        (PatchType::Json, "[{"),
        (PatchType::Merge, r#"{"spec":{"a":1,"a":2}}"#),
        (PatchType::Merge, "[1]"),
        (PatchType::Merge, "null"),
        (PatchType::Merge, "{"),
        (PatchType::Strategic, r#"{"a":1,"a":2}"#),
        (PatchType::Strategic, "5"),
        (PatchType::Apply, "spec:\n  size: 1\n  size: 2\n  size: 3\n"),
        (PatchType::Apply, "a: b: c"),
        (PatchType::Apply, "just text"),
    ] {
        for reading in [PatchDecoding::Strict, PatchDecoding::Lenient] {
            let shown = match Patch::decode(ty, text.as_bytes(), reading, Limits::SAFE) {
                Ok(patch) => format!("{:?}", all_findings(&patch, "{}")),
                Err(e) => format!("error: {e}"),
            };
            out += &format!("{ty:?} {reading:?}: {shown}\n");
        }
    }
    expect![[r#"
        Json Strict: ["json patch duplicate field \"[0].op\"", "json patch duplicate field \"[0].value.x\"", "json patch unknown field \"[1].comment\""]
        Json Lenient: []
        Json Strict: error: error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp
        Json Lenient: error: json: cannot unmarshal object into Go value of type jsonpatch.Patch
        Json Strict: error: error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string
        Json Lenient: []
        Json Strict: error: invalid JSON patch
        Json Lenient: error: invalid JSON patch
        Merge Strict: ["duplicate field \"spec.a\""]
        Merge Lenient: []
        Merge Strict: error: error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}
        Merge Lenient: []
        Merge Strict: error: Invalid JSON Patch
        Merge Lenient: error: Invalid JSON Patch
        Merge Strict: error: invalid JSON patch
        Merge Lenient: error: invalid JSON patch
        Strategic Strict: ["duplicate field \"a\""]
        Strategic Lenient: []
        Strategic Strict: error: json: cannot unmarshal number into Go value of type map[string]interface {}
        Strategic Lenient: error: json: cannot unmarshal number into Go value of type map[string]interface {}
        Apply Strict: ["line 3: key \"size\" already set in map", "line 4: key \"size\" already set in map"]
        Apply Lenient: []
        Apply Strict: error: error encoding patch: yaml: mapping values are not allowed in this context
        Apply Lenient: error: error encoding patch: yaml: mapping values are not allowed in this context
        Apply Strict: error: error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}
        Apply Lenient: error: error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type map[string]interface {}
    "#]].assert_eq(&out);
}

/// The findings in the text of a patch, then those in its result.
fn all_findings(patch: &Patch<'_>, document: &str) -> Vec<String> {
    let in_result = patch.result_findings(|| document.to_owned());
    texts(&[patch.findings(), &in_result].concat())
}

fn texts(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn refused_patches() {
    let document = doc("{kind: W, spec: {size: 2, odd: {a: 1}}}");
    let mut out = String::new();
    for (ty, text) in [
        (
            PatchType::Json,
            r#"[{"op":"add","path":"/spec/w","value":{"y":1.0,"x":1e2,"y":"<"}}]"#,
        ),
        (
            PatchType::Merge,
            r#"{"spec": {"w": {"y": 1.0, "x": 1e2, "z": null, "y": "\u0041<"}, "odd": [{"x": 1, "x": null}]}}"#,
        ),
        (PatchType::Strategic, r#"{"spec":{"weight":1,"weight":1.50}}"#),
        (PatchType::Apply, "spec: {weight: 1, weight: 1.50}"),
    ] {
        let patch = Patch::decode(ty, text.as_bytes(), PatchDecoding::Strict, Limits::SAFE).unwrap();
        let findings = all_findings(&patch, &document.to_json());
        let shown = patch.describe_result(&document.to_json());
        out += &format!("{findings:?} {shown}\n");
        out += &format!("{:?}\n", patch.strict_refusal());
    }
    expect![[r#"
        ["json patch duplicate field \"[0].value.y\"", "duplicate field \"spec.w.y\""] {"kind":"W","spec":{"odd":{"a":1},"size":2,"w":{"y":1.0,"x":1e2,"y":"\u003c"}}}
        None
        ["duplicate field \"spec.w.y\"", "duplicate field \"spec.odd[0].x\"", "duplicate field \"spec.odd[0].x\""] {"kind":"W","spec":{"odd":[{"x":1,"x":null}],"size":2,"w":{"x":1e2,"y":"\u0041\u003c"}}}
        None
        ["duplicate field \"spec.weight\""] map[spec:map[weight:1.5]]
        None
        ["line 1: key \"weight\" already set in map"] map[spec:map[weight:1.5]]
        Some("error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key \"weight\" already set in map")
    "#]].assert_eq(&out);
}
