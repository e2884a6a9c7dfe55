//! Error reporting and recovery, as ANTLR's default strategy does it.
//!
//! If the next token fits, the current one is deleted. If the current token fits behind a missing one, that one is
//! inserted. Otherwise the rule ends, and tokens are skipped up to one that may follow it or one of its callers. Errors are
//! suppressed until a token matches again.

use super::atn::{StateId, StateKind};
use super::recognize::{RecognitionError, Recognizer};
use super::tree::Leaf;
use crate::syntax::token::{Token, TokenKind, TokenSet};

/// The maximum number of recoveries.
const MAX_ATTEMPTS: usize = 30;

/// The maximum number of tokens that one recovery skips.
const MAX_SKIPPED: usize = 256;

/// The limit on skipped tokens.
enum SkipBudget {
    /// No limit.
    Free,
    /// A recovery that has skipped this number of tokens.
    Counted(usize),
}

impl Recognizer<'_, '_> {
    /// Ends recovery, because a token has matched.
    pub(super) fn recovered(&mut self) {
        self.recovery.active = false;
        self.recovery.last_token = None;
        self.recovery.last_states.clear();
    }

    /// Checks that the current token fits the decision, or deletes it.
    pub(super) fn sync(&mut self) -> Result<(), RecognitionError> {
        if self.recovery.active {
            return Ok(());
        }
        let state = self.atn.state(self.state);
        // A rule that may end here leaves the check to its caller.
        if state.may_end || state.next.contains(self.kind_ahead(0)) {
            return Ok(());
        }
        match state.kind {
            StateKind::BlockStart
            | StateKind::LoopBlockStart
            | StateKind::PlusBlockStart
            | StateKind::LoopEntry { .. } => match self.delete_token(&mut SkipBudget::Free) {
                Some(_) => Ok(()),
                None => Err(RecognitionError::Mismatch),
            },
            StateKind::PlusLoopBack | StateKind::LoopBack => {
                self.report_extraneous();
                // Within a loop, ANTLR consumes until another iteration or something behind the loop fits.
                let stop = self.expected().union(self.recovery_set());
                // cel-go limits the tokens of `Recover` and `RecoverInline` only, not those of `Sync`.
                self.skip_until(stop, &mut SkipBudget::Free);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reports why a rule cannot continue.
    pub(super) fn report(&mut self, error: &RecognitionError) {
        if self.recovery.active {
            return;
        }
        self.recovery.active = true;
        match error {
            RecognitionError::Mismatch => {
                let token = self.current();
                let message = format!(
                    "mismatched input {} expecting {}",
                    self.display(token),
                    self.expected()
                );
                self.reporter.syntax_error(token.offset, &message);
            }
            RecognitionError::NoViableAlt(no_viable_alt) => {
                // The message quotes everything from the decision to the offending token.
                let start = self.stream.get(no_viable_alt.start);
                let input = match start.kind {
                    TokenKind::End => "<EOF>".to_owned(),
                    _ => self.stream.text(no_viable_alt.start, no_viable_alt.offending),
                };
                let offending = self.stream.get(no_viable_alt.offending);
                self.reporter
                    .syntax_error(offending.offset, &no_viable_alternative(&input));
            }
        }
    }

    /// Skips tokens up to one that may follow the rule or one of its callers.
    pub(super) fn recover(&mut self) {
        if !self.attempt() {
            return;
        }
        let mut budget = SkipBudget::Counted(0);
        let current = Some(self.stream.index(0, self.reporter));
        if self.recovery.last_token == current && self.recovery.last_states.contains(&self.state) {
            // The same error at the same token again: skip it to avoid an endless loop.
            self.skip(&mut budget);
        }
        self.recovery.last_token = Some(self.stream.index(0, self.reporter));
        if !self.recovery.last_states.contains(&self.state) {
            self.recovery.last_states.push(self.state);
        }
        let stop = self.recovery_set();
        self.skip_until(stop, &mut budget);
    }

    /// Finds an expected token: deletes one token before it, or inserts it.
    pub(super) fn recover_inline(&mut self) -> Result<Leaf, RecognitionError> {
        if !self.attempt() {
            return Err(RecognitionError::Mismatch);
        }
        let mut budget = SkipBudget::Counted(0);
        if let Some(token) = self.delete_token(&mut budget) {
            self.skip(&mut budget);
            return Ok(Leaf {
                token,
                missing: false,
            });
        }
        // Only tokens that fit right behind the missing one justify inserting it.
        let behind = self.atn.state(self.state).target();
        let kind = self.kind_ahead(0);
        if behind.is_some_and(|behind| self.expected_at(behind).contains(kind)) {
            self.report_missing();
            return Ok(self.conjure_missing());
        }
        Err(RecognitionError::Mismatch)
    }

    /// Counts a recovery; `false` beyond the limit.
    fn attempt(&mut self) -> bool {
        if self.recovery.attempts == MAX_ATTEMPTS {
            let offset = self.current().offset;
            let message = format!("error recovery attempt limit exceeded: {MAX_ATTEMPTS}");
            self.reporter.syntax_error(offset, &message);
            self.reporter.stopped = true;
            // cel-go panics here, which ends parsing at once.
            return false;
        }
        self.recovery.attempts += 1;
        true
    }

    /// Drops the current token if the next one is expected, which is returned.
    fn delete_token(&mut self, budget: &mut SkipBudget) -> Option<Token> {
        let next = self.kind_ahead(1);
        if !self.expected().contains(next) {
            return None;
        }
        self.report_extraneous();
        self.skip(budget);
        let token = self.current();
        self.recovered();
        Some(token)
    }

    fn skip(&mut self, budget: &mut SkipBudget) {
        if let SkipBudget::Counted(count) = budget {
            if *count >= MAX_SKIPPED {
                let message = format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED}");
                // Reported without a position, because cel-go turns this panic into an internal error.
                self.reporter.fatal(&message);
            }
            *count += 1;
        }
        self.stream.consume(self.reporter);
    }

    fn skip_until(&mut self, stop: TokenSet, budget: &mut SkipBudget) {
        while !self.reporter.stopped {
            let kind = self.kind_ahead(0);
            // The end is never skipped, so recovery always terminates.
            if kind == TokenKind::End || stop.contains(kind) {
                return;
            }
            self.skip(budget);
        }
    }

    fn report_extraneous(&mut self) {
        if !self.recovery.active {
            self.recovery.active = true;
            let token = self.current();
            let message = format!(
                "extraneous input {} expecting {}",
                self.display(token),
                self.expected()
            );
            self.reporter.syntax_error(token.offset, &message);
        }
    }

    fn report_missing(&mut self) {
        if !self.recovery.active {
            self.recovery.active = true;
            let token = self.current();
            let message = format!("missing {} at {}", self.expected(), self.display(token));
            self.reporter.syntax_error(token.offset, &message);
        }
    }

    /// Inserts a token of the first expected kind, at the current token or, at the end, at the previous one.
    fn conjure_missing(&mut self) -> Leaf {
        let current = self.current();
        let at = match self.stream.previous() {
            Some(previous) if current.kind == TokenKind::End => previous,
            _ => current,
        };
        // ANTLR takes the first kind of the interval set, so the order of `TokenKind` matters.
        let kind = self.expected().iter().next().unwrap_or(TokenKind::End);
        let token = Token { kind, ..at };
        Leaf { token, missing: true }
    }

    /// The tokens that may be next.
    fn expected(&self) -> TokenSet {
        self.expected_at(self.state)
    }

    /// The tokens that may be next at a state of the current rule.
    fn expected_at(&self, id: StateId) -> TokenSet {
        let mut state = self.atn.state(id);
        let mut expected = state.next;
        let mut callers = self
            .frames
            .iter()
            .rev()
            .map_while(|frame| self.atn.follow_state(frame.caller?));
        // Where a rule may end, what follows its call may come as well, and so on outwards.
        while state.may_end {
            let Some(follow_state) = callers.next() else {
                // Behind the outermost rule only the end is left.
                return expected.union(TokenSet::from_kinds(&[TokenKind::End]));
            };
            state = self.atn.state(follow_state);
            expected = expected.union(state.next);
        }
        expected
    }

    /// The follow set of the current rule and its callers.
    fn recovery_set(&self) -> TokenSet {
        let follows = self
            .frames
            .iter()
            .filter_map(|frame| self.atn.follow_state(frame.caller?));
        follows.fold(TokenSet::EMPTY, |set, follow_state| {
            set.union(self.atn.state(follow_state).next)
        })
    }

    fn display(&self, token: Token) -> String {
        match token.kind {
            TokenKind::End => quoted("<EOF>"),
            _ => quoted(self.stream.text_of(token)),
        }
    }
}

/// Quotes a text and spells out line breaks and tabs.
fn quoted(text: &str) -> String {
    format!(
        "'{}'",
        text.replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r")
    )
}

/// The message of a missing alternative. One character and a literal keyword, such as `.true`, is reported as
/// a keyword in place of a name.
fn no_viable_alternative(input: &str) -> String {
    // cel-go rewrites ANTLR's message with the regular expression `no viable alternative at input
    // '.(true|false|null)'`.
    let input = quoted(input);
    let mut rest = input.chars();
    if rest.next() == Some('\'') && rest.next().is_some_and(|c| c != '\n') {
        for keyword in ["true", "false", "null"] {
            if let Some(behind) = rest
                .as_str()
                .strip_prefix(keyword)
                .and_then(|r| r.strip_prefix('\''))
            {
                return format!("mismatched input '{keyword}' expecting IDENTIFIER{behind}");
            }
        }
    }
    format!("no viable alternative at input {input}")
}
