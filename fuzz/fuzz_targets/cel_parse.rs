//! Any text parses or has rendered errors; the nodes of a tree have unique identifiers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_cel::ast::{Ast, Expr};
use scantling_cel::syntax::{Macros, ParseOptions, parse};

const ALL: ParseOptions = ParseOptions {
    macros: Macros::STANDARD
        .and(Macros::EXISTS_ONE)
        .and(Macros::TWO_VARIABLES)
        .and(Macros::OPT_MAP)
        .and(Macros::OPT_FLAT_MAP)
        .and(Macros::SORT_BY)
        .and(Macros::BIND)
        .and(Macros::BLOCK)
        .and(Macros::MATH),
    optional_syntax: true,
    escaped_identifiers: true,
};

fuzz_target!(|source: &str| {
    // Everything that any scope enables, and the defaults.
    for options in [ALL, ParseOptions::default()] {
        match parse(source, &options) {
            Ok(ast) => check_numbers(&ast, &ast.root, &mut vec![false; ast.id_limit()]),
            Err(issues) => assert!(issues.to_string().starts_with("ERROR: <input>:")),
        }
    }
});

/// Every node has a unique identifier below the limit, and a position in the source.
fn check_numbers(ast: &Ast, expr: &Expr, seen: &mut [bool]) {
    let seen_before = std::mem::replace(&mut seen[expr.id.0 as usize], true);
    assert!(!seen_before, "two nodes have the number {}", expr.id.0);
    let offset = ast.offset(expr.id).expect("a node has a place");
    // Offsets count characters, as positions in messages do.
    assert!(offset as usize <= ast.source.chars().count());
    expr.for_each_child(|child| check_numbers(ast, child, seen));
}
