//! Syntax-error diagnostics that match ANTLR's, message for message.
//!
//! kube-apiserver reports CEL syntax errors with the text that cel-go's generated parser produces. That parser comes
//! from ANTLR 4, so the set of errors, their order, their positions and their wording all follow from ANTLR's
//! `ALL(*)` prediction and its default error-recovery strategy. This module interprets the grammar the way ANTLR's
//! runtime does, and nothing else in the crate depends on how it works. Its only entry point is [`diagnose`].
//!
//! The stages, in the order in which a source passes through them:
//!
//! 1. `grammar` holds the CEL grammar as data, and `atn` compiles it to an augmented transition network (ATN).
//! 2. `stream` lexes on demand, because ANTLR reports lexer errors only up to the last token that the parser reads.
//! 3. `recognize` walks the ATN along the tokens and builds a parse `tree`. At decision points it asks `predict`,
//!    which simulates all alternatives in parallel over graph-structured stacks (`context`) and caches DFA states.
//! 4. `recover` reports mismatches and resynchronizes: single-token deletion, single-token insertion, or skipping to
//!    a token of the follow set.
//! 5. `visit` lowers the parse tree to an [`Ast`] and reports the errors that the grammar cannot express: invalid
//!    literals, reserved words, disabled syntax, bad macro arguments.
//!
//! It is an order of magnitude slower than [`super::parser`], so it runs only on sources that the parser rejects.
//! Both accept the same language; a test compares them.

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

/// Parses an expression with error recovery and collects its errors.
pub(crate) fn diagnose(source: &str, options: &ParseOptions) -> Result<Ast, Issues> {
    let mut reporter = Reporter::new(source);
    let tree = recognize::recognize(source, &mut reporter);
    // cel-go leaves its visitor out once the parser has given up, so no further errors are found.
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

/// Parsing stops after this many syntax errors.
const MAX_SYNTAX_ERRORS: usize = 100;

/// Collects errors. Once stopped, it ignores further errors, and the stages give up when they notice.
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
        // The error that exceeds the limit is replaced by the message about the limit.
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

    /// Reports an error that is not a syntax error.
    fn error(&mut self, offset: Option<u32>, message: &str) {
        if !self.stopped {
            self.issues.report(offset, message);
        }
    }

    /// Reports an error about the whole expression and stops.
    fn fatal(&mut self, message: &str) {
        self.error(None, message);
        self.stopped = true;
    }
}
