//! Every expression that parses is checked deterministically, has a type for every node and consistent cost
//! bounds. If no type is dynamic, its evaluation finds every overload that the checker found.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_cel::ast::Expr;
use scantling_cel::check::{CheckedExpr, Reference, check};
use scantling_cel::env::Env;
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::{KubernetesVersion, for_new_expressions, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::{ListType, Shape, ShapeKind};
use scantling_cel::syntax::parse;
use scantling_cel::val::Arena;
use scantling_cel::validate::validate;
use scantling_value::Value;
use scantling_value::json::decode;
use std::sync::{Arc, LazyLock};

static ROOT: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    let list = |element, list_type| Shape::of_kind(ShapeKind::List { element, list_type });
    let entry = || {
        Shape::object([
            ("k", Shape::of_kind(ShapeKind::String)),
            ("v", Shape::of_kind(ShapeKind::Int)),
        ])
    };
    Shape::object([
        ("b", Shape::of_kind(ShapeKind::Bool)),
        ("d", Shape::of_kind(ShapeKind::Double)),
        ("i", Shape::of_kind(ShapeKind::Int)),
        ("l", list(Shape::of_kind(ShapeKind::Int), ListType::Atomic)),
        ("lm", list(entry(), ListType::Map([Box::from("k")].into()))),
        ("ls", list(Shape::of_kind(ShapeKind::String), ListType::Set)),
        (
            "m",
            Shape::of_kind(ShapeKind::Map {
                value: Shape::of_kind(ShapeKind::String),
            }),
        ),
        ("o", entry()),
        ("s", Shape::of_kind(ShapeKind::String)),
        ("t", Shape::of_kind(ShapeKind::DateTime)),
        ("u", Shape::of_kind(ShapeKind::Duration)),
        ("y", Shape::of_kind(ShapeKind::Bytes)),
    ])
});

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let text = br#"{"b":true,"d":1.5,"i":1,"l":[3,1,2],"lm":[{"k":"a","v":1},{"k":"b","v":2}],"ls":["x","y"],
        "m":{"a":"b"},"o":{"k":"c","v":3},"s":"text","t":"2024-02-29T01:02:03Z","u":"90s","y":"aGVsbG8="}"#;
    decode(text, scantling_value::Limits::default()).expect("the document is JSON")
});

static ENVS: LazyLock<[Env; 2]> = LazyLock::new(|| {
    [
        for_stored_expressions(KubernetesVersion::LATEST),
        for_new_expressions(KubernetesVersion::new(1, 29)),
    ]
    .map(|scope| Env::new(Arc::new(scope)).with_variable("self", ROOT.ty("selfType")))
});

fuzz_target!(|source: &str| {
    // Both scopes, because libraries and types differ between them.
    for env in &*ENVS {
        let options = env.base().options();
        let Ok(ast) = parse(source, &options.parse) else {
            continue;
        };
        let first = check(env, ast.clone());
        let second = check(env, ast);
        match (first, second) {
            (Err(first), Err(second)) => {
                assert_eq!(first.to_string(), second.to_string());
                assert!(first.to_string().starts_with("ERROR: <input>:"));
            }
            (Ok(first), Ok(second)) => {
                assert_eq!(facts(&first), facts(&second));
                run(env, &first);
            }
            _ => panic!("checked once, but not twice"),
        }
    }
});

/// The results of the checker for every node, in tree order.
fn facts(checked: &CheckedExpr) -> Vec<String> {
    fn visit(checked: &CheckedExpr, expr: &Expr, found: &mut Vec<String>) {
        let ty = checked.ty(expr.id).to_string();
        // Type variables must not survive inference.
        assert!(!ty.contains("_var") && !ty.contains("!error!"), "{ty} is left");
        let overloads: Vec<_> = checked.overloads(expr.id).iter().map(|o| o.id).collect();
        found.push(format!("{} {ty} {overloads:?}", expr.id.0));
        expr.for_each_child(|child| visit(checked, child, found));
    }
    let mut found = Vec::new();
    visit(checked, &checked.ast.root, &mut found);
    found
}

/// Overloads that return `no such overload` themselves: for text that is not an address, and for sums of
/// quantities, which equal nothing.
const SELF_DENYING: [&str; 5] = [
    "cidr_contains_ip_string",
    "quantity_add",
    "quantity_add_int",
    "quantity_sub",
    "quantity_sub_int",
];

/// Returns whether all types and overloads are known.
fn is_decided(checked: &CheckedExpr) -> bool {
    fn visit(checked: &CheckedExpr, expr: &Expr, decided: &mut bool) {
        *decided &= !checked.ty(expr.id).to_string().contains("dyn");
        if let Some(Reference::Overloads(overloads)) = checked.reference(expr.id) {
            *decided &= matches!(overloads.as_slice(), [one] if !SELF_DENYING.contains(&one.id));
        }
        expr.for_each_child(|child| visit(checked, child, decided));
    }
    let mut decided = true;
    visit(checked, &checked.ast.root, &mut decided);
    decided
}

fn run(env: &Env, checked: &CheckedExpr) {
    let bounds = estimate(checked, Some(&ROOT));
    assert!(bounds.min <= bounds.max, "{bounds:?}");
    assert_eq!(bounds, estimate(checked, Some(&ROOT)));
    // An expression beyond the limits is refused before it is compiled.
    if validate(checked, env.base().options().validation).is_err() {
        return;
    }
    let Ok(program) = Program::compile(env, checked) else {
        return;
    };
    let arena = Arena::new();
    let limits = Limits {
        cost: 10_000,
        interrupt: None,
    };
    let outcome = program.eval(&arena, &[Input::Json(&DOCUMENT, &ROOT)], limits);
    // With known types, the checker has already chosen the overload.
    if let Err(error) = outcome.result
        && is_decided(checked)
    {
        assert!(!error.to_string().starts_with("no such overload"), "{error}");
    }
}
