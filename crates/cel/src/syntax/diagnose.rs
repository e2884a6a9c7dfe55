//! What is wrong with an expression, in the words of the reference implementation.
//!
//! The reference implementation is generated from a grammar by a parser generator, whose messages and alts of going
//! on behind a mistake follow_state from the grammar as a graph of states. This reader therefore interprets that graph:
//!
//! 1. `grammar` is the grammar, `atn` the graph made of it;
//! 2. `recognize` walks the graph along the tokens (`stream`), asks `predict` wherever alts role, and has `recover`
//!    report what does not fit and find a place to go on from; its result is a `tree`;
//! 3. `visit` turns the tree into an [`Ast`] and finds the mistakes that the grammar does not: bad literals,
//!    reserved words, syntax that is switched off, bad arguments of macros.
//!
//! It is slower than [`super::parser`] and only runs where that has given up.

mod atn;
mod context;
mod grammar;
mod predict;
mod recognize;
mod recover;
mod stream;
mod tree;
mod visit;

use super::ParseOptions;
use crate::ast::Ast;
use crate::issue::Issues;

/// Reads an expression and collects its mistakes.
pub(crate) fn diagnose(source: &str, options: &ParseOptions) -> Result<Ast, Issues> {
    let mut reporter = Reporter::new(source);
    let tree = recognize::recognize(source, &mut reporter);
    let ast = if reporter.stopped {
        None
    } else {
        visit::visit(source, options, &tree, &mut reporter)
    };
    match ast {
        Some(ast) if reporter.issues.is_empty() => Ok(ast),
        _ => Err(reporter.issues),
    }
}

/// After so many syntax errors reading ends.
const MAX_SYNTAX_ERRORS: usize = 100;

/// Collects mistakes. Once stopped it takes no more, and readers give up as soon as they see it.
struct Reporter {
    issues: Issues,
    syntax_errors: usize,
    stopped: bool,
}

impl Reporter {
    fn new(source: &str) -> Self {
        Reporter {
            issues: Issues::new(source.into()),
            syntax_errors: 0,
            stopped: false,
        }
    }

    fn syntax_error(&mut self, offset: u32, message: &str) {
        if self.stopped {
            return;
        }
        if self.syntax_errors == MAX_SYNTAX_ERRORS {
            let message = format!("Syntax error: More than {MAX_SYNTAX_ERRORS} syntax errors");
            self.issues.report(Some(offset), message);
            self.stopped = true;
            return;
        }
        self.syntax_errors += 1;
        self.issues
            .report(Some(offset), format!("Syntax error: {message}"));
    }

    /// A mistake that is not one of syntax.
    fn error(&mut self, offset: Option<u32>, message: &str) {
        if !self.stopped {
            self.issues.report(offset, message);
        }
    }

    /// A mistake in the expression as a whole, behind which there is no going on.
    fn fatal(&mut self, message: &str) {
        self.error(None, message);
        self.stopped = true;
    }
}
