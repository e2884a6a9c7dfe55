//! Parsing: from text to an [`Ast`].
//!
//! [`parse`] parses an expression, expands macros, and assigns identifiers and positions. Well-formed expressions only
//! pass through a fast recursive-descent parser (`parser`). For all others, `diagnose` parses again with error recovery
//! and reports the errors of the reference implementation.

mod branches;
mod builder;
mod diagnose;
mod lexer;
mod literal;
mod macros;
mod parser;

pub(crate) use parser::RESERVED;
mod token;

pub use branches::{Branch, BranchKind, branches};
pub use macros::Macros;

use crate::ast::Ast;
use crate::issue::Issues;
use crate::stack::with_room;

/// The maximum number of code points in an expression.
const MAX_CODE_POINTS: usize = 100_000;

/// Options of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseOptions {
    /// The macros to expand.
    pub macros: Macros,
    /// True if `a.?b`, `a[?b]`, `[?a]` and `{?a: b}` are allowed.
    pub optional_syntax: bool,
    /// True if fields may be written in backticks.
    pub escaped_identifiers: bool,
}

impl Default for ParseOptions {
    /// The standard macros and `existsOne`, no optional syntax, fields in backticks.
    fn default() -> Self {
        ParseOptions {
            macros: Macros::STANDARD.and(Macros::EXISTS_ONE),
            optional_syntax: false,
            escaped_identifiers: true,
        }
    }
}

/// Parses an expression.
///
/// # Errors
/// Returns the syntax errors.
pub fn parse(source: &str, options: &ParseOptions) -> Result<Ast, Issues> {
    // A source has at most as many code points as bytes, so short ones need not be counted.
    if source.len() > MAX_CODE_POINTS {
        let size = source.chars().count();
        if size > MAX_CODE_POINTS {
            let message =
                format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
            return Err(Issues::of_whole(source.into(), message));
        }
    }
    // The depth of the tree is bounded as well: by the nesting limits of the grammar rules, by the expansion
    // of a macro per level, and, for nested chains of `&&` and `||`, by the size of the source.
    match with_room(nesting(source), || parser::parse(source, options)) {
        Ok(ast) => Ok(ast),
        // The error of the fast parser says nothing about the cause. `diagnose` finds it, and decides.
        Err(_) => with_room(parser::MAX_DEPTH as usize, || diagnose::diagnose(source, options)),
    }
}

/// An upper bound of the nesting of the expression rule, into which brackets and the last branch of a
/// conditional recurse.
fn nesting(source: &str) -> usize {
    let (mut open, mut deepest, mut conditionals) = (0_usize, 0, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                open += 1;
                deepest = open.max(deepest);
            }
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            // Every `?` may begin a conditional, whose last branch nests in it without any bracket.
            b'?' => conditionals += 1,
            _ => {}
        }
    }
    (deepest + conditionals).min(parser::MAX_DEPTH as usize)
}

#[cfg(test)]
mod tests;
