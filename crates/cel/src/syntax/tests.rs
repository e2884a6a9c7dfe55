//! Tests of the parser and the diagnostics.

use super::*;
use crate::ast::{Expr, ExprKind, Literal};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::fmt::Write as _;

const EXTENSIONS: Macros = Macros::TWO_VARIABLES
    .and(Macros::SORT_BY)
    .and(Macros::BIND)
    .and(Macros::MATH);
const OPTIONALS: Macros = Macros::OPT_MAP.and(Macros::OPT_FLAT_MAP);

const ALL: ParseOptions = ParseOptions {
    macros: Macros::STANDARD.and(OPTIONALS).and(EXTENSIONS).and(Macros::BLOCK),
    optional_syntax: true,
    escaped_identifiers: true,
};

/// Compares syntax errors with those of the reference implementation. Each line of the file holds an
/// expression, the options, and the rendered issues.
#[test]
fn syntax_errors_match_the_reference() {
    let mut wrong = 0;
    for line in include_str!("tests/recorded.jsonl").lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let source = case["expression"].as_str().unwrap();
        let mut options = ParseOptions {
            macros: Macros::STANDARD,
            ..ParseOptions::default()
        };
        if case["optional"] == true {
            options.optional_syntax = true;
            options.macros = options.macros | OPTIONALS;
        }
        if case["extensions"] == true {
            options.macros = options.macros | EXTENSIONS;
        }
        let rendered = parse(source, &options).map_or_else(|issues| issues.to_string(), |_| String::new());
        if rendered != case["issues"].as_str().unwrap() {
            wrong += 1;
            println!(
                "{source}\nrecorded:\n{}\ntold:\n{rendered}\n",
                case["issues"].as_str().unwrap()
            );
        }
    }
    assert_eq!(wrong, 0);
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
fn check(source: &str, expect: Expect) {
    let text = match parse(source, &ALL) {
        Ok(ast) => {
            let mut text = String::new();
            write_tree(&mut text, &ast, &ast.root, 0);
            text
        }
        Err(issues) => issues.to_string(),
    };
    expect.assert_eq(&text);
}

/// Writes one node per line: its identifier and offset, its kind, and its children indented.
fn write_tree(text: &mut String, ast: &Ast, expr: &Expr, indent: usize) {
    let what = match &expr.kind {
        ExprKind::Literal(Literal::String(s)) => format!("{s:?}"),
        ExprKind::Literal(literal) => format!("{literal:?}"),
        ExprKind::Ident(name) => name.to_string(),
        ExprKind::Select { field, test, .. } => format!(".{field}{}", if *test { " test" } else { "" }),
        ExprKind::Call { function, target, .. } => {
            format!("{}{function}()", if target.is_some() { "." } else { "" })
        }
        ExprKind::List { optional, .. } => format!("list {optional:?}"),
        ExprKind::Map(entries) => {
            format!(
                "map {:?}",
                entries.iter().map(|e| (e.id.0, e.optional)).collect::<Vec<_>>()
            )
        }
        ExprKind::Struct { name, fields } => {
            format!(
                "{name} {:?}",
                fields
                    .iter()
                    .map(|f| (f.id.0, &*f.name, f.optional))
                    .collect::<Vec<_>>()
            )
        }
        ExprKind::Comprehension(fold) => {
            format!("fold {} {:?} {}", fold.iter_var, fold.iter_var2, fold.accu_var)
        }
    };
    let offset = ast.offset(expr.id).map_or(-1, i64::from);
    writeln!(text, "{:indent$}{}@{offset} {what}", "", expr.id.0).unwrap();
    expr.for_each_child(|child| write_tree(text, ast, child, indent + 2));
}

#[test]
fn operator_precedence_and_positions() {
    check(
        "-a.b * 2 + 3 <= c || !d && e || f",
        expect![[r#"
        16@29 _||_()
          14@18 _||_()
            8@13 _<=_()
              6@9 _+_()
                4@5 _*_()
                  1@0 -_()
                    3@2 .b
                      2@1 a
                  5@7 Int(2)
                7@11 Int(3)
              9@16 c
            13@24 _&&_()
              10@21 !_()
                11@22 d
              12@27 e
          15@32 f
    "#]],
    );
}

#[test]
fn literals_structs_and_optional_syntax() {
    check(
        ".a.B{`x-y`: -1, ?z: [?c.?d, e[?0u]]}",
        expect![[r#"
        1@4 .a.B [(2, "x-y", false), (4, "z", true)]
          3@12 Int(-1)
          5@20 list [0]
            8@23 _?._()
              6@22 c
              7@25 "d"
            10@29 _[?_]()
              9@28 e
              11@31 Uint(0)
    "#]],
    );
    check(
        "{?'k': b'\\x00', 1: 1.5}",
        expect![[r#"
        1@0 map [(2, true), (5, false)]
          3@2 "k"
          4@7 Bytes([0])
          6@16 Int(1)
          7@19 Double(1.5)
    "#]],
    );
}

#[test]
fn macros_expand() {
    check(
        "has(a.b)",
        expect![[r#"
        4@3 .b test
          2@4 a
    "#]],
    );
    check(
        "l.all(x, x > 0)",
        expect![[r#"
        13@5 fold x None @result
          1@0 l
          7@5 Bool(true)
          9@5 @not_strictly_false()
            8@5 @result
          11@5 _&&_()
            10@5 @result
            5@11 _>_()
              4@9 x
              6@13 Int(0)
          12@5 @result
    "#]],
    );
    check(
        "l.filter(x, x)",
        expect![[r#"
        13@8 fold x None @result
          1@0 l
          5@8 list []
          6@8 Bool(true)
          11@8 _?_:_()
            4@12 x
            9@8 _+_()
              7@8 @result
              8@8 list []
                3@9 x
            10@8 @result
          12@8 @result
    "#]],
    );
    check(
        "m.transformMap(k, v, p, v)",
        expect![[r#"
        15@14 fold k Some("v") @result
          1@0 m
          12@14 map []
          13@14 Bool(true)
          11@14 _?_:_()
            5@21 p
            9@14 cel.@mapInsert()
              7@14 @result
              8@14 k
              6@24 v
            10@14 @result
          14@14 @result
    "#]],
    );
    check(
        "a.?b.optMap(v, v + 1)",
        expect![[r#"
        20@11 _?_:_()
          9@11 .hasValue()
            3@1 _?._()
              1@0 a
              2@3 "b"
          18@11 optional.of()
            17@11 fold #unused None v
              10@11 list []
              14@11 .value()
                11@1 _?._()
                  12@0 a
                  13@3 "b"
              15@11 Bool(false)
              16@11 v
              7@17 _+_()
                6@15 v
                8@19 Int(1)
          19@11 optional.none()
    "#]],
    );
    check(
        "l.sortBy(e, -e)",
        expect![[r#"
        19@8 fold #unused None @__sortBy_input__
          17@8 list []
          1@0 l
          18@8 Bool(false)
          6@8 @__sortBy_input__
          16@8 .@sortByAssociatedKeys()
            15@8 @__sortBy_input__
            14@8 fold e None @result
              7@8 @__sortBy_input__
              8@8 list []
              9@8 Bool(true)
              12@8 _+_()
                10@8 @result
                11@8 list []
                  4@12 -_()
                    5@13 e
              13@8 @result
    "#]],
    );
    check(
        "cel.bind(x, 1, x)",
        expect![[r#"
        9@8 fold #unused None x
          6@8 list []
          4@12 Int(1)
          7@8 Bool(false)
          8@8 x
          5@15 x
    "#]],
    );
    check(
        "cel.block([1, cel.index(0)], cel.iterVar(0, 1))",
        expect![[r#"
        14@9 cel.@block()
          3@10 list []
            4@11 Int(1)
            8@23 @index0
          13@40 @it:0:1
    "#]],
    );
    check(
        "math.least(1, 2, x)",
        expect![[r#"
        7@10 math.@min()
          6@10 list []
            3@11 Int(1)
            4@14 Int(2)
            5@17 x
    "#]],
    );
}

#[test]
fn macro_names_with_other_arity_are_calls() {
    for source in [
        "all(x, y)",
        "a.has(b)",
        "x.bind(a, b, c)",
        ".has(a.b)",
        "a.map(x)",
        "a.all(x, y, z, w)",
    ] {
        let ast = parse(source, &ALL).unwrap();
        assert!(matches!(ast.root.kind, ExprKind::Call { .. }), "{source}");
    }
    let none = ParseOptions {
        macros: Macros::NONE,
        ..ALL
    };
    assert!(matches!(
        parse("has(a)", &none).unwrap().root.kind,
        ExprKind::Call { .. }
    ));
}

#[test]
fn macros_refuse_bad_arguments() {
    check(
        "has(a) || l.all(1, x) || l.map(x.y, 1) || l.exists(__result__, x)",
        expect![[r#"
            ERROR: <input>:1:5: invalid argument to has() macro
             | has(a) || l.all(1, x) || l.map(x.y, 1) || l.exists(__result__, x)
             | ....^
            ERROR: <input>:1:17: argument must be a simple name
             | has(a) || l.all(1, x) || l.map(x.y, 1) || l.exists(__result__, x)
             | ................^
            ERROR: <input>:1:33: argument is not an identifier
             | has(a) || l.all(1, x) || l.map(x.y, 1) || l.exists(__result__, x)
             | ................................^
            ERROR: <input>:1:52: iteration variable overwrites accumulator variable
             | has(a) || l.all(1, x) || l.map(x.y, 1) || l.exists(__result__, x)
             | ...................................................^"#]],
    );
    check(
        "m.all(k, k, true) || cel.block(1, 2) || cel.index(-1)",
        expect![[r#"
            ERROR: <input>:1:10: duplicate variable name: k
             | m.all(k, k, true) || cel.block(1, 2) || cel.index(-1)
             | .........^
            ERROR: <input>:1:32: cel.block requires the first arg to be a list literal
             | m.all(k, k, true) || cel.block(1, 2) || cel.index(-1)
             | ...............................^
            ERROR: <input>:1:51: cel.index requires a single non-negative int constant arg
             | m.all(k, k, true) || cel.block(1, 2) || cel.index(-1)
             | ..................................................^"#]],
    );
    check(
        "math.least() + math.greatest('a') + math.least(1, 'b') + 'a'.sortBy(x, x)",
        expect![[r#"
            ERROR: <input>:1:1: math.least() requires at least one argument
             | math.least() + math.greatest('a') + math.least(1, 'b') + 'a'.sortBy(x, x)
             | ^
            ERROR: <input>:1:30: math.greatest() invalid single argument value
             | math.least() + math.greatest('a') + math.least(1, 'b') + 'a'.sortBy(x, x)
             | .............................^
            ERROR: <input>:1:51: math.least() simple literal arguments must be numeric
             | math.least() + math.greatest('a') + math.least(1, 'b') + 'a'.sortBy(x, x)
             | ..................................................^
            ERROR: <input>:1:58: sortBy can only be applied to a list, identifier, comprehension, call or select expression
             | math.least() + math.greatest('a') + math.least(1, 'b') + 'a'.sortBy(x, x)
             | .........................................................^"#]],
    );
}

#[test]
fn nesting_is_bounded() {
    let nested = |open: &str, n: usize, close: &str| format!("{}a{}", open.repeat(n), close.repeat(n));
    let too_deep = "ERROR: <input>:-1:0: expression recursion limit exceeded: 250";
    let too_high = "ERROR: <input>:-1:0: max recursion depth exceeded";
    for (open, most, close, error) in [
        ("(", 249, ")", too_deep),
        ("[", 249, "]", too_deep),
        ("{1:", 249, "}", too_deep),
        ("f(", 249, ")", too_deep),
        ("!(", 249, ")", too_deep),
        ("a<(", 124, ")", too_deep),
        ("a+a*(", 83, ")", too_deep),
        ("b?c:", 249, "", too_deep),
        ("l.all(x,", 249, ")", too_deep),
        ("", 250, ".b", too_high),
        ("", 250, "[0]", too_high),
        ("", 250, "+1", too_high),
        ("", 250, "<1", too_high),
    ] {
        let (fits, not) = (nested(open, most, close), nested(open, most + 1, close));
        assert!(parse(&fits, &ALL).is_ok(), "{open}…{close} {most} times");
        assert_eq!(
            parse(&not, &ALL).unwrap_err().to_string(),
            error,
            "{open}…{close}"
        );
    }
    assert!(
        parse(&nested("", 20_000, "&&a"), &ALL).is_ok(),
        "chains are balanced"
    );
}

#[test]
fn size_is_bounded() {
    let size = |n: usize| parse(&format!("'{}'", "ü".repeat(n - 2)), &ALL);
    assert!(size(100_000).is_ok());
    assert_eq!(
        size(100_001).unwrap_err().to_string(),
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    );
    // Every link of the chain doubles the size of the tree.
    let chain = format!("a{}", ".optMap(x, x)".repeat(24));
    let issues = parse(&chain, &ALL).unwrap_err().to_string();
    assert!(
        issues.contains("the expansion of macros makes more than 1048576 nodes"),
        "{issues}"
    );
}

#[test]
fn recovery_is_bounded() {
    let error = |source: &str| parse(source, &ALL).unwrap_err().to_string();
    assert!(error(&"(".repeat(82)).contains("Syntax error: error recovery attempt limit exceeded: 30"));
    assert!(
        error(&"a ".repeat(300))
            .contains("ERROR: <input>:-1:0: error recovery token lookahead limit exceeded: 256")
    );
    assert!(error(&"$".repeat(200)).ends_with("^\n1 more errors were truncated"));
}

/// Generates expressions from fragments of the language, valid and invalid ones.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "a.b",
        "1",
        "-1",
        "2u",
        "1.5",
        "'s'",
        "b'x'",
        "true",
        "null",
        "`e`",
        "has",
        "all",
        "map",
        "if",
        "+",
        "-",
        "*",
        "<",
        "in",
        "&&",
        "||",
        "!",
        "?",
        ":",
        ".",
        ".?",
        ",",
        "(",
        ")",
        "[",
        "[?",
        "]",
        "{",
        "}",
        "has(a.b)",
        "l.all(x, x)",
        "f(",
        ".g(",
        "T{",
        "a: 1",
        " ",
        "\n",
        "//c\n",
        "$",
        "'",
        "é",
        "9223372036854775808",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// The parser accepts exactly the sources without diagnostics, and both produce the same tree.
    #[test]
    fn parser_and_diagnostics_agree(source in pieces()) {
        for options in [ALL, ParseOptions::default()] {
            match (parser::parse(&source, &options), diagnose::diagnose(&source, &options)) {
                (Ok(fast), Ok(slow)) => {
                    prop_assert_eq!(&fast.root, &slow.root);
                    prop_assert_eq!(&fast.offsets, &slow.offsets);
                }
                (Err(_), Err(issues)) => prop_assert!(!issues.is_empty()),
                (fast, slow) => prop_assert!(false, "{source:?}: {fast:?} {slow:?}"),
            }
        }
    }

    /// Every text is parsed or has diagnostics.
    #[test]
    fn arbitrary_text_never_panics(source in "\\PC{0,40}") {
        if let Err(issues) = parse(&source, &ALL) {
            prop_assert!(issues.to_string().starts_with("ERROR: <input>:"));
        }
    }
}
