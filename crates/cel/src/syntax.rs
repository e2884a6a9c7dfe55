//! Text to an [`Ast`].
//!
//! [`parse`] reads an expression, expands its macros and numbers and places its nodes. Expressions without mistakes
//! take a short way (`parser`); for the others a second reader (`diagnose`) finds the mistakes, goes on behind each
//! of them, and says what they are in the words of the reference implementation.

mod builder;
mod diagnose;
mod lexer;
mod literal;
mod macros;
mod parser;

pub(crate) use parser::RESERVED;
mod token;

pub use macros::Macros;

use crate::ast::Ast;
use crate::issue::Issues;

/// An expression may have so many code points.
const MAX_CODE_POINTS: usize = 100_000;

/// What a parser understands beyond the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseOptions {
    /// The macros that are expanded.
    pub macros: Macros,
    /// Whether `a.?b`, `a[?b]`, `[?a]` and `{?a: b}` are understood.
    pub optional_syntax: bool,
    /// Whether fields may be written in backticks.
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

/// Reads an expression.
///
/// # Errors
/// The mistakes in the expression.
pub fn parse(source: &str, options: &ParseOptions) -> Result<Ast, Issues> {
    if source.len() > MAX_CODE_POINTS {
        let size = source.chars().count();
        if size > MAX_CODE_POINTS {
            let message =
                format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
            return Err(Issues::of_whole(source.into(), message));
        }
    }
    parser::parse(source, options).or_else(|_| diagnose::diagnose(source, options))
}

#[cfg(test)]
mod tests;
