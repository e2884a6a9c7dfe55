//! `pattern`: a regular expression, compiled on first use.

use scantling_notation::regex;
use scantling_value::Str;
use std::sync::OnceLock;

/// A regular expression with Go's semantics. Most patterns of a CRD are never used, and a compiled expression
/// takes more memory than the rest of its schema, so only the text is kept until then.
#[derive(Debug)]
pub(crate) struct Pattern {
    text: Str,
    compiled: OnceLock<Result<regex::Pattern, String>>,
}

impl Pattern {
    pub(crate) fn new(text: Str) -> Self {
        Pattern {
            text,
            compiled: OnceLock::new(),
        }
    }

    fn compiled(&self) -> &Result<regex::Pattern, String> {
        if let Some(compiled) = self.compiled.get() {
            return compiled;
        }
        // Not inside `get_or_init`: compiling observes the deadline and may wait for its turn, and other
        // threads must not wait for that.
        let compiled = regex::Pattern::new(&self.text).map_err(|e| e.to_string());
        self.compiled.get_or_init(|| compiled)
    }

    /// Returns whether the text matches. Nothing matches an expression that does not compile.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.compiled()
            .as_ref()
            .is_ok_and(|pattern| pattern.is_match(text))
    }

    /// The pattern as errors show it.
    pub(crate) fn as_shown(&self) -> String {
        match self.compiled() {
            Ok(_) => self.text.to_string(),
            Err(why) => format!("{}, but pattern is invalid: {why}", self.text),
        }
    }
}
