use super::{Input, Limits, Program};
use crate::env::{Env, Options, Scope};
use crate::library::standard::{CROSS_TYPE_ORDER, STANDARD};
use crate::shape::{Field, Kind, ListType, Shape};
use crate::syntax::{Macros, ParseOptions};
use crate::val::{Arena, Val};
use expect_test::{Expect, expect};
use scantling_value::{Map, Value};
use std::fmt::Write;
use std::sync::Arc;

fn shape(kind: Kind) -> Arc<Shape> {
    Arc::new(Shape {
        kind,
        nullable: false,
        min_serialized_size: 1,
        max_elements: 10,
    })
}

fn object(fields: Vec<(&str, Arc<Shape>)>) -> Arc<Shape> {
    let mut fields: Vec<Field> = fields
        .into_iter()
        .map(|(name, shape)| Field {
            name: name.into(),
            json: name.into(),
            shape,
        })
        .collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    shape(Kind::Object {
        fields: fields.into(),
        preserve_unknown: false,
    })
}

/// `self` in these tests: what a schema with fields of many kinds gives.
fn self_shape() -> Arc<Shape> {
    let list = |element, list_type| shape(Kind::List { element, list_type });
    object(vec![
        ("i", shape(Kind::Int)),
        ("j", shape(Kind::Int)),
        ("d", shape(Kind::Double)),
        ("s", shape(Kind::String)),
        ("b", shape(Kind::Bool)),
        ("absent", shape(Kind::String)),
        ("null", shape(Kind::String)),
        ("ios", shape(Kind::IntOrString)),
        ("time", shape(Kind::DateTime)),
        ("span", shape(Kind::Duration)),
        ("bytes", shape(Kind::Bytes)),
        ("bad", shape(Kind::Int)),
        ("list", list(shape(Kind::Int), ListType::Atomic)),
        ("set", list(shape(Kind::String), ListType::Set)),
        (
            "keyed",
            list(
                object(vec![("k", shape(Kind::String)), ("v", shape(Kind::Int))]),
                ListType::Map(Box::new(["k".into()])),
            ),
        ),
        (
            "map",
            shape(Kind::Map {
                value: shape(Kind::Int),
            }),
        ),
        (
            "o",
            object(vec![("x", shape(Kind::Int)), ("y", shape(Kind::String))]),
        ),
    ])
}

fn self_value() -> Value {
    let entry =
        |k: &str, v: i64| Value::Object(Map::from_iter([("k", Value::from(k)), ("v", Value::from(v))]));
    Value::Object(Map::from_iter([
        ("i", Value::from(1)),
        ("j", Value::from(2)),
        ("d", Value::from(1.5)),
        ("s", Value::from("hello world")),
        ("b", Value::from(true)),
        ("null", Value::Null),
        ("ios", Value::from("50%")),
        ("time", Value::from("2024-02-29T01:02:03Z")),
        ("span", Value::from("90s")),
        ("bytes", Value::from("aGVsbG8=")),
        ("bad", Value::from("text")),
        ("list", Value::from(vec![1_i64, 2, 3])),
        ("set", Value::from(vec!["a", "b"])),
        ("keyed", Value::Array(vec![entry("one", 1), entry("two", 2)])),
        (
            "map",
            Value::Object(Map::from_iter([("a", Value::from(1)), ("b", Value::from(2))])),
        ),
        (
            "o",
            Value::Object(Map::from_iter([("x", Value::from(7)), ("y", Value::from("z"))])),
        ),
    ]))
}

/// Evaluates each line, and shows the value or error and the cost.
fn run(expressions: &str) -> String {
    let shape = self_shape();
    let options = Options {
        parse: ParseOptions {
            macros: Macros::STANDARD | Macros::TWO_VARIABLES,
            ..ParseOptions::default()
        },
        ..Options::default()
    };
    let mut scope = Scope::new(options);
    for library in STANDARD {
        scope = scope.with(library);
    }
    scope = scope.with(&CROSS_TYPE_ORDER);
    let env = Env::new(Arc::new(scope)).with_variable("self", shape.ty("self"));
    let value = self_value();
    let mut out = String::new();
    for source in expressions.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let checked = match env.compile(source) {
            Ok(checked) => checked,
            Err(issues) => {
                writeln!(out, "{source} -> {issues}").unwrap();
                continue;
            }
        };
        let program = match Program::compile(&env, &checked) {
            Ok(program) => program,
            Err(e) => {
                writeln!(out, "{source} -> no program: {e}").unwrap();
                continue;
            }
        };
        let arena = Arena::new();
        let outcome = program.eval(&arena, &[Input::Json(&value, &shape)], Limits::NONE);
        let shown = match outcome.result {
            Ok(v) => show(&arena, v),
            Err(e) => format!("error: {e}"),
        };
        writeln!(out, "{source} -> {shown} [{}]", outcome.cost).unwrap();
    }
    out
}

fn show<'a>(arena: &'a Arena, v: Val<'a>) -> String {
    if let Some(list) = v.as_list() {
        let items: Vec<_> = list.iter(arena).map(|v| show(arena, v.unwrap())).collect();
        return format!("[{}]", items.join(", "));
    }
    if let Some(map) = v.as_map() {
        let entries: Vec<_> = map
            .entries(arena)
            .map(|(k, v)| format!("{}: {}", show(arena, k), show(arena, v.unwrap())))
            .collect();
        return format!("{{{}}}", entries.join(", "));
    }
    match v {
        Val::Str(s) => format!("{s:?}"),
        v => v.to_string(),
    }
}

fn check(expressions: &str, expect: Expect) {
    expect.assert_eq(&run(expressions));
}

#[test]
fn access() {
    check(
        "
        self.i <= self.j
        self.d
        self.s.startsWith('hello')
        has(self.s) && self.s.startsWith('a')
        has(self.absent)
        has(self.null)
        self.absent == 'x'
        self.o.x
        self.map.a
        self.map['c']
        self.list[0]
        self.list[5]
        self.list[self.i]
        self.bad
        self.bad == 1 || true
        [1, 2][0]
        {'a': 1}.a
        (self.b ? self.o : self.o).x
        self.b ? self.i : self.j
        ",
        expect![[r#"
            self.i <= self.j -> true [5]
            self.d -> 1.5 [2]
            self.s.startsWith('hello') -> true [3]
            has(self.s) && self.s.startsWith('a') -> false [4]
            has(self.absent) -> false [1]
            has(self.null) -> ERROR: <input>:-1:0: Syntax error
            self.absent == 'x' -> error: no such key: absent [3]
            self.o.x -> 7 [3]
            self.map.a -> 1 [3]
            self.map['c'] -> error: no such key: c [3]
            self.list[0] -> 1 [3]
            self.list[5] -> error: index out of bounds: 5 [3]
            self.list[self.i] -> 2 [4]
            self.bad -> error: invalid data, expected int, got string [2]
            self.bad == 1 || true -> true [3]
            [1, 2][0] -> 1 [2]
            {'a': 1}.a -> 1 [2]
            (self.b ? self.o : self.o).x -> 7 [4]
            self.b ? self.i : self.j -> 1 [3]
        "#]],
    );
}
