//! The token stream, which lexes on demand.
//!
//! The stream must not read ahead: if parsing ends early, lexer errors behind that position are not reported.

use super::Reporter;
use crate::syntax::lexer::{Lexeme, Lexer};
use crate::syntax::token::{Token, TokenKind};

/// The index of a visible token.
pub(super) type TokenIndex = usize;

pub(super) struct TokenStream<'s> {
    source: &'s str,
    lexer: Lexer<'s>,
    /// All tokens read so far, including whitespace and comments.
    tokens: Vec<Token>,
    /// The indices of the visible tokens. The last is the end, once it has been reached.
    visible: Vec<usize>,
    /// The current token.
    pub(super) position: TokenIndex,
}

impl<'s> TokenStream<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        TokenStream {
            source,
            lexer: Lexer::new(source),
            tokens: Vec::new(),
            visible: Vec::new(),
            position: 0,
        }
    }

    /// Lexes until the visible token with this index, or the end, is read.
    fn fill(&mut self, index: TokenIndex, reporter: &mut Reporter) {
        while self.visible.len() <= index {
            let last = self.tokens.last().map(|t| t.kind);
            // The lexer repeats the end token; it must appear only once.
            if last == Some(TokenKind::End) {
                return;
            }
            match self.lexer.next() {
                Lexeme::Token(token) => {
                    if !token.kind.is_hidden() {
                        self.visible.push(self.tokens.len());
                    }
                    self.tokens.push(token);
                }
                Lexeme::Unrecognized(error) => {
                    let text = self
                        .source
                        .get(error.start as usize..error.end as usize)
                        .unwrap_or_default();
                    reporter.syntax_error(error.offset, &format!("token recognition error at: '{text}'"));
                }
            }
        }
    }

    /// The index of the token `ahead` positions ahead, at most that of the end.
    pub(super) fn index(&mut self, ahead: usize, reporter: &mut Reporter) -> TokenIndex {
        let index = self.position + ahead;
        self.fill(index, reporter);
        index.min(self.visible.len().saturating_sub(1))
    }

    /// The token `ahead` positions ahead.
    pub(super) fn ahead(&mut self, ahead: usize, reporter: &mut Reporter) -> Token {
        let index = self.index(ahead, reporter);
        self.get(index)
    }

    /// A token that has been read.
    pub(super) fn get(&self, index: TokenIndex) -> Token {
        let end = Token {
            kind: TokenKind::End,
            offset: 0,
            start: 0,
            end: 0,
        };
        self.visible
            .get(index)
            .and_then(|i| self.tokens.get(*i))
            .copied()
            .unwrap_or(end)
    }

    /// The token before the current one.
    pub(super) fn previous(&self) -> Option<Token> {
        self.position.checked_sub(1).map(|index| self.get(index))
    }

    /// Advances to the next token, except at the end.
    pub(super) fn consume(&mut self, reporter: &mut Reporter) {
        if self.ahead(0, reporter).kind != TokenKind::End {
            self.position = self.index(1, reporter);
        }
    }

    /// The text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'s str {
        token.text(self.source)
    }

    /// The text from one token to another, without unrecognized text.
    pub(super) fn text(&self, from: TokenIndex, to: TokenIndex) -> String {
        let range = match (self.visible.get(from), self.visible.get(to)) {
            (Some(from), Some(to)) => self.tokens.get(*from..=*to),
            _ => None,
        };
        range
            .unwrap_or_default()
            .iter()
            .map(|token| token.text(self.source))
            .collect()
    }
}
