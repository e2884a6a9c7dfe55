//! Fused rules about one value give the results of their programs.
#![expect(
    clippy::panic,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::program::{FusedRules, Input, Limits, Program};
use scantling_cel::shape::{ListType, Shape, ShapeKind};
use scantling_cel::val::{Arena, Val};
use scantling_value::{Limits as JsonLimits, Value, json};
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

fn programs(shape: &Arc<Shape>) -> Vec<Arc<Program>> {
    compiled(RULES, shape)
}

fn compiled(rules: &[&str], shape: &Arc<Shape>) -> Vec<Arc<Program>> {
    let scope = Arc::new(for_stored_expressions(KubernetesVersion::LATEST));
    let env = Env::new(scope).with_variable("self", shape.ty("self"));
    let compile = |rule: &&str| {
        let checked = env.compile(rule).unwrap_or_else(|e| panic!("{rule}: {e}"));
        Arc::new(Program::compile(&env, &checked).unwrap_or_else(|e| panic!("{rule}: {e}")))
    };
    rules.iter().map(compile).collect()
}

/// The total cost of the programs, if all of them hold.
fn sum(programs: &[&Arc<Program>], value: &Value, shape: &Shape) -> Option<u64> {
    let cost = |program: &&Arc<Program>| {
        let arena = Arena::new();
        let outcome = program.eval(&arena, &[Input::Json(value, shape)], LIMITS);
        matches!(outcome.result, Ok(Val::Bool(true))).then_some(outcome.cost)
    };
    programs.iter().map(cost).sum()
}

/// Compares fused rules with their programs. If a program has an error, even an absorbed one, the fused rules
/// may return no result. Returns whether they returned one.
fn assert_together(programs: &[&Arc<Program>], value: &Value, shape: &Arc<Shape>) -> bool {
    let fused = FusedRules::new(shape, programs.iter().map(|program| Some(Arc::clone(program))));
    let together = fused.all_hold(value, &Arena::new(), LIMITS.cost);
    let alone = sum(programs, value, shape);
    let said = format!("{programs:?} of {}", value.to_json());
    assert!(
        together.is_none() || together == alone,
        "{together:?} is not {alone:?}: {said}"
    );
    together.is_some()
}

#[test]
fn fused_rules_agree_with_their_programs() {
    let shape = shape();
    let programs = programs(&shape);
    let mut answers = 0;
    for object in OBJECTS {
        let value = json::decode(object.as_bytes(), JsonLimits::default()).unwrap();
        for program in &programs {
            answers += usize::from(assert_together(&[program], &value, &shape));
        }
        let holds = |program: &&Arc<Program>| sum(&[program], &value, &shape).is_some();
        let kept: Vec<&Arc<Program>> = programs.iter().filter(holds).collect();
        for several in kept.windows(2).chain(kept.windows(3)).chain([&*kept]) {
            answers += usize::from(assert_together(several, &value, &shape));
        }
        assert_together(&programs.iter().collect::<Vec<_>>(), &value, &shape);
    }
    // Rules without a fused result are evaluated one by one: this number guards the coverage.
    assert_eq!(answers, 158);
}

#[test]
fn all_over_one_list_is_merged() {
    let shape = list(element());
    let rules = [
        "self.all(x, x.name == 'a' ? x.tags.size() != 0 : true)",
        "self.all(x, (x.name == 'b' || x.name == 'c') ? x.tags.size() == 1 && int(x.tags[0]) >= 0 : true)",
        "self.all(x, x.tags.all(t, t != ''))",
        "self.all(y, y.size > 0) && size(self) > 1",
        "self.exists(x, x.size == 1)",
        "self.all(x, !has(x.size) || x.size < 5)",
    ];
    let programs = compiled(&rules, &shape);
    let programs: Vec<&Arc<Program>> = programs.iter().collect();
    let kept = r#"[{"name": "a", "size": 1, "tags": ["x"]}, {"name": "b", "size": 2, "tags": ["3"]}]"#;
    let broken = [
        r#"[{"name": "a", "size": 1, "tags": []}, {"name": "b", "size": 2, "tags": ["3"]}]"#,
        r#"[{"name": "a", "size": 1, "tags": ["x"]}, {"name": "b", "size": 2, "tags": ["-3"]}]"#,
        r#"[{"name": "a", "size": 1, "tags": ["x"]}, {"name": "b", "size": 5, "tags": ["3"]}]"#,
        r#"[{"name": "a", "size": 1, "tags": ["x", ""]}, {"name": "b", "size": 2, "tags": ["3"]}]"#,
        r#"[{"name": "a", "size": 1, "tags": ["x"]}]"#,
        "[]",
    ];
    let decode = |text: &str| json::decode(text.as_bytes(), JsonLimits::default()).unwrap();
    assert!(assert_together(&programs, &decode(kept), &shape));
    for object in broken {
        assert!(!assert_together(&programs, &decode(object), &shape), "{object}");
    }
}

#[test]
fn more_fields_than_slots() {
    let names: Vec<String> = (0..50).map(|i| format!("field{i:02}")).collect();
    let field = |name: &String| (name.clone(), Shape::of_kind(ShapeKind::Int));
    let fields: Vec<(String, Arc<Shape>)> = names.iter().map(field).collect();
    let shape = Shape::object(
        fields
            .iter()
            .map(|(name, shape)| (name.as_str(), Arc::clone(shape))),
    );
    let rule = |name: &String| format!("!has(self.{name}) || self.{name} == 1");
    let rules: Vec<String> = names.iter().map(rule).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let programs = compiled(&rules, &shape);
    let members: Vec<String> = names
        .iter()
        .step_by(3)
        .map(|name| format!("\"{name}\": 1"))
        .collect();
    let object = format!("{{{}}}", members.join(","));
    let value = json::decode(object.as_bytes(), JsonLimits::default()).unwrap();
    assert!(assert_together(
        &programs.iter().collect::<Vec<_>>(),
        &value,
        &shape
    ));
}
