//! Predicates about one value, asked together, say what their programs say.
#![expect(
    clippy::panic,
    reason = "functions around tests, which the lints do not take for tests"
)]

use scantling_cel::env::Env;
use scantling_cel::kubernetes::{Version, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Predicates, Program, Setting, View};
use scantling_cel::shape::{Kind, ListType, Shape};
use scantling_cel::val::{Arena, Val};
use scantling_value::{Limits as JsonLimits, Value, json};
use std::sync::Arc;

const LIMITS: Limits<'static> = Limits {
    cost: 1_000_000,
    interrupt: None,
};

fn list(element: Arc<Shape>) -> Arc<Shape> {
    Shape::of_kind(Kind::List {
        element,
        list_type: ListType::Atomic,
    })
}

fn shape() -> Arc<Shape> {
    let kind = Shape::of_kind;
    let element = Shape::object([
        ("name", kind(Kind::String)),
        ("size", kind(Kind::Int)),
        ("tags", list(kind(Kind::String))),
    ]);
    let inner = Shape::object([("flag", kind(Kind::Bool)), ("text", kind(Kind::String))]);
    Shape::object([
        ("age", kind(Kind::Duration)),
        ("any", kind(Kind::IntOrString)),
        ("count", kind(Kind::Int)),
        ("flag", kind(Kind::Bool)),
        ("inner", inner),
        ("items", list(element)),
        (
            "labels",
            kind(Kind::Map {
                value: kind(Kind::String),
            }),
        ),
        ("text", kind(Kind::String)),
    ])
}

const RULES: &[&str] = &[
    "has(self.text)",
    "!has(self.text) || self.text == 'a'",
    "(has(self.text) && size(self.text) > 0) == (has(self.count) && self.count >= 1)",
    "has(self.text) != has(self.count)",
    "self.text in ['a', 'b']",
    "self.text.startsWith('a') && self.text.endsWith('b')",
    "self.text.matches('^[a-z]+$') ? self.count < 3 : self.count == 3",
    "self.text.find('[0-9]+') == '12'",
    "self.text.find('^([^/]+)').endsWith('b')",
    "has(self.inner) && has(self.inner.flag) && self.inner.flag",
    "has(self.inner.text) || self.inner.text != ''",
    "self.flag ? self.inner.flag : !self.inner.flag",
    "self.flag == true || self.count != 1",
    "self.items.all(x, x.name != '' && size(x.tags) <= 2)",
    "self.items.exists(x, x.size > 1 && x.tags.all(t, t != 'no'))",
    "self.items.all(x, self.items.exists(y, y.name == x.name && y.size == 1))",
    "self.items.all(x, int(x.tags[0]) > 0 || x.name == self.text)",
    "size(self.labels) == 1 && 'a' in self.labels",
    "has(self.age) || self.any == 'x' || self.any == 1",
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

fn programs(shape: &Arc<Shape>) -> Vec<Program> {
    let scope = Arc::new(for_stored_expressions(Version::LATEST));
    let env = Env::new(scope).with_variable("self", shape.ty("self"));
    let compile = |rule: &&str| {
        let checked = env.compile(rule).unwrap_or_else(|e| panic!("{rule}: {e}"));
        Program::compile(&env, &checked).unwrap_or_else(|e| panic!("{rule}: {e}"))
    };
    RULES.iter().map(compile).collect()
}

/// What a program says about an object on its own.
fn answer(program: &Program, value: &Value, shape: &Shape) -> String {
    let arena = Arena::new();
    let outcome = program.eval(&arena, &[Input::Json(value, shape)], LIMITS);
    match outcome.result {
        Ok(Val::Bool(answer)) => format!("{answer} for {}", outcome.cost),
        _ => "error".to_owned(),
    }
}

/// What the programs say, each on its own.
fn alone(programs: &[Program], value: &Value, shape: &Shape) -> Vec<String> {
    let answer = |program| answer(program, value, shape);
    programs.iter().map(answer).collect()
}

/// What they say together. Where one of them meets an error, also one that does not count in the end, it is asked alone.
fn together(predicates: &Predicates, programs: &[Program], value: &Value, shape: &Shape) -> Vec<String> {
    let mut view = View::default();
    predicates.look(value, &mut view);
    let programs = programs.iter().enumerate();
    let answers = programs.map(|(index, program)| {
        let arena = Arena::new();
        let setting = Setting {
            arena: &arena,
            inputs: &[Input::Json(value, shape)],
            limits: LIMITS,
        };
        match predicates.test((index, program), &mut view, setting) {
            Some((answer, cost)) => format!("{answer} for {cost}"),
            None => answer(program, value, shape),
        }
    });
    answers.collect()
}

#[test]
fn predicates_say_what_their_programs_say() {
    let shape = shape();
    let programs = programs(&shape);
    let predicates = Predicates::new(&shape, programs.iter().map(Some));
    for object in OBJECTS {
        let value = json::decode(object.as_bytes(), JsonLimits::default()).unwrap();
        assert_eq!(
            together(&predicates, &programs, &value, &shape),
            alone(&programs, &value, &shape),
            "{object}"
        );
    }
}

#[test]
fn there_may_be_more_fields_than_are_kept_in_sight() {
    let names: Vec<String> = (0..50).map(|i| format!("field{i:02}")).collect();
    let field = |name: &String| (name.clone(), Shape::of_kind(Kind::Int));
    let fields: Vec<(String, Arc<Shape>)> = names.iter().map(field).collect();
    let shape = Shape::object(
        fields
            .iter()
            .map(|(name, shape)| (name.as_str(), Arc::clone(shape))),
    );
    let scope = Arc::new(for_stored_expressions(Version::LATEST));
    let env = Env::new(scope).with_variable("self", shape.ty("self"));
    let programs: Vec<Program> = names
        .iter()
        .map(|name| {
            let checked = env
                .compile(&format!("has(self.{name}) && self.{name} == 1"))
                .unwrap();
            Program::compile(&env, &checked).unwrap()
        })
        .collect();
    let predicates = Predicates::new(&shape, programs.iter().map(Some));
    let members: Vec<String> = names
        .iter()
        .step_by(3)
        .map(|name| format!("\"{name}\": 1"))
        .collect();
    let object = format!("{{{}}}", members.join(","));
    let value = json::decode(object.as_bytes(), JsonLimits::default()).unwrap();
    assert_eq!(
        together(&predicates, &programs, &value, &shape),
        alone(&programs, &value, &shape)
    );
}
