//! Fast mode gives the results and costs of thorough mode.
#![expect(
    clippy::panic,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::{ListType, Shape, ShapeKind};
use scantling_cel::val::{Arena, Val};
use scantling_value::{Limits as JsonLimits, json};
use std::sync::Arc;

const LIMITS: Limits<'static> = Limits {
    cost: 1_000_000,
    interrupt: None,
};

fn list(element: Arc<Shape>) -> Arc<Shape> {
    Shape::of_kind(ShapeKind::List {
        element,
        list_type: ListType::Atomic,
    })
}

fn element() -> Arc<Shape> {
    let kind = Shape::of_kind;
    Shape::object([
        ("name", kind(ShapeKind::String)),
        ("size", kind(ShapeKind::Int)),
        ("tags", list(kind(ShapeKind::String))),
    ])
}

fn shape() -> Arc<Shape> {
    let kind = Shape::of_kind;
    let inner = Shape::object([("flag", kind(ShapeKind::Bool)), ("text", kind(ShapeKind::String))]);
    Shape::object([
        ("age", kind(ShapeKind::Duration)),
        ("any", kind(ShapeKind::IntOrString)),
        ("count", kind(ShapeKind::Int)),
        ("flag", kind(ShapeKind::Bool)),
        ("inner", inner),
        ("items", list(element())),
        (
            "labels",
            kind(ShapeKind::Map {
                value: kind(ShapeKind::String),
            }),
        ),
        ("text", kind(ShapeKind::String)),
    ])
}

const RULES: &[&str] = &[
    "has(self.text)",
    "!has(self.text) || self.text == 'a'",
    "(has(self.text) && size(self.text) > 0) == (has(self.count) && self.count >= 1)",
    "has(self.text) != has(self.count)",
    "self.text in ['a', 'b']",
    "self.text == 'x' || self.text == 'a text that is longer than ten' || self.text == 'a' || self.text == 'b'",
    "!(self.text == '' || self.text == 'x') || has(self.count)",
    "self.text == 'a' || self.text == 'b' || self.any == 'x' || self.any == 'y'",
    "self.text.startsWith('a') && self.text.endsWith('b')",
    "self.text.matches('^[a-z]+$') ? self.count < 3 : self.count == 3",
    "self.text.find('[0-9]+') == '12'",
    "self.text.find('^([^/]+)').endsWith('b')",
    "self.text.find('^([^/]+)') != 'x'",
    "has(self.inner) && has(self.inner.flag) && self.inner.flag",
    "has(self.inner.text) || self.inner.text != ''",
    "!has(self.inner.flag) || self.inner.flag",
    "self.flag ? self.inner.flag : !self.inner.flag",
    "self.flag == true || self.count != 1",
    "self.items.all(x, x.name != '' && size(x.tags) <= 2)",
    "self.items.exists(x, x.size > 1 && x.tags.all(t, t != 'no'))",
    "self.items.all(x, self.items.exists(y, y.name == x.name && y.size == 1))",
    "self.items.all(x, int(x.tags[0]) > 0 || x.name == self.text)",
    "size(self.labels) == 1 && 'a' in self.labels",
    "has(self.age) || self.any == 'x' || self.any == 1",
    "has(self.any) && (self.any == 'x' || self.any == 1)",
    "size(self.items) > self.count",
    "self.items.exists_one(x, x.size == 1)",
];

const OBJECTS: &[&str] = &[
    "{}",
    r#"{"text": "a", "count": 1, "flag": true, "inner": {"flag": true}}"#,
    r#"{"text": "ab/12b", "count": 3, "flag": false, "inner": {"text": "t"}}"#,
    r#"{"text": "", "count": null, "inner": null, "items": []}"#,
    r#"{"text": "éa long text, longer than ten characters", "inner": {"flag": false, "text": ""}}"#,
    r#"{"items": [{"name": "a", "size": 1, "tags": ["1"]}, {"name": "b", "size": 2, "tags": ["no", "x"]}],
        "count": 1, "text": "b"}"#,
    r#"{"items": [{"name": "a", "size": 1, "tags": []}, null], "labels": {"a": "b"}}"#,
    r#"{"items": [{"size": 2, "tags": ["2"]}, {"name": ""}], "any": "x", "age": "1h"}"#,
    r#"{"any": 1, "age": "no duration", "labels": {"b": "c"}, "flag": true}"#,
    r#"{"text": 1, "count": "2", "inner": [], "items": {}, "flag": "yes"}"#,
];

#[test]
fn fast_mode_agrees_with_thorough_mode() {
    let shape = shape();
    let scope = Arc::new(for_stored_expressions(KubernetesVersion::LATEST));
    let env = Env::new(scope).with_variable("self", shape.ty("self"));
    let mut results = 0;
    for rule in RULES {
        let checked = env.compile(rule).unwrap_or_else(|e| panic!("{rule}: {e}"));
        let program = Program::compile(&env, &checked).unwrap_or_else(|e| panic!("{rule}: {e}"));
        for object in OBJECTS {
            let value = json::decode(object.as_bytes(), JsonLimits::default()).unwrap();
            let inputs = [Input::Json(&value, &shape)];
            // Debug builds compare the result and the cost of fast mode with those of thorough mode.
            let arena = Arena::new();
            let fast = program.test(&arena, &inputs, LIMITS);
            let outcome = program.eval(&arena, &inputs, LIMITS);
            if let Some((holds, cost)) = fast {
                assert!(
                    matches!(outcome.result, Ok(Val::Bool(b)) if b == holds),
                    "{rule}: {object}"
                );
                assert_eq!(outcome.cost, cost, "{rule}: {object}");
                results += 1;
            }
        }
    }
    // Fast mode must not give up more often: this number guards its coverage.
    assert_eq!(results, 118);
}
