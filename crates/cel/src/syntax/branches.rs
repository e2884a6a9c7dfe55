//! The parts of an expression that decide its value: the operands of `||` and the branches of `?:`.

use super::lexer::{Lexeme, Lexer};
use super::token::{Token, TokenKind};
use std::ops::Range;

/// A part of an expression that other parts may make irrelevant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The kind of branch.
    pub kind: BranchKind,
    /// The byte range of its text.
    pub range: Range<usize>,
}

/// The operator that a branch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BranchKind {
    /// An operand of `||`.
    OrOperand,
    /// A value of `?:`.
    Conditional,
}

/// Returns the branches of an expression that parses, inner ones first.
pub fn branches(source: &str) -> Vec<Branch> {
    let mut lexer = Lexer::new(source);
    let mut tokens = Vec::new();
    loop {
        match lexer.next() {
            Lexeme::Token(token) if token.kind == TokenKind::End => break,
            Lexeme::Token(token) if matches!(token.kind, TokenKind::Whitespace | TokenKind::Comment) => {}
            Lexeme::Token(token) => tokens.push(token),
            // The caller passes expressions that parse, so this only guards against misuse.
            Lexeme::Unrecognized(_) => return Vec::new(),
        }
    }
    let mut finder = BranchFinder {
        tokens,
        at: 0,
        depth: 0,
        found: Vec::new(),
    };
    finder.expression();
    finder.found
}

struct BranchFinder {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    found: Vec<Branch>,
}

/// Expressions that parse do not nest deeper.
const MAX_DEPTH: usize = 250;

impl BranchFinder {
    fn kind(&self) -> TokenKind {
        self.tokens
            .get(self.at)
            .map_or(TokenKind::End, |token| token.kind)
    }

    /// The text from a token to the one before the current one.
    fn range(&self, first: usize) -> Range<usize> {
        let start = self.tokens.get(first).map_or(0, |token| token.start as usize);
        let last = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        start..last.map_or(start, |token| token.end as usize)
    }

    fn add(&mut self, kind: BranchKind, range: Range<usize>) {
        self.found.push(Branch { kind, range });
    }

    /// Reads an expression up to the token after it.
    fn expression(&mut self) {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            // Ends the search instead of the thread's stack, for sources that do not parse.
            self.at = self.tokens.len();
        }
        self.operands();
        self.depth -= 1;
    }

    fn operands(&mut self) {
        let (mut operands, mut first) = (Vec::new(), self.at);
        loop {
            match self.kind() {
                TokenKind::Or => {
                    operands.push(self.range(first));
                    self.at += 1;
                    first = self.at;
                }
                TokenKind::Question if self.is_conditional(first) => {
                    self.end_operands(operands, first);
                    self.at += 1;
                    let then = self.at;
                    self.expression();
                    self.add(BranchKind::Conditional, self.range(then));
                    self.at += 1;
                    let otherwise = self.at;
                    self.expression();
                    self.add(BranchKind::Conditional, self.range(otherwise));
                    return;
                }
                TokenKind::LeftParen | TokenKind::LeftBracket | TokenKind::LeftBrace => {
                    self.at += 1;
                    self.expression();
                    while matches!(self.kind(), TokenKind::Comma | TokenKind::Colon) {
                        self.at += 1;
                        self.expression();
                    }
                    self.at += 1;
                }
                TokenKind::RightParen
                | TokenKind::RightBracket
                | TokenKind::RightBrace
                | TokenKind::Comma
                | TokenKind::Colon
                | TokenKind::End => return self.end_operands(operands, first),
                _ => self.at += 1,
            }
        }
    }

    /// Returns whether a `?` ends a condition; others mark optional fields and elements.
    fn is_conditional(&self, first: usize) -> bool {
        let before = self.at.checked_sub(1).and_then(|n| self.tokens.get(n));
        self.at > first && before.is_some_and(|token| token.kind != TokenKind::Dot)
    }

    fn end_operands(&mut self, operands: Vec<Range<usize>>, last: usize) {
        // A single operand is not an alternative to anything.
        if operands.is_empty() {
            return;
        }
        let last = self.range(last);
        for range in operands.into_iter().chain([last]) {
            self.add(BranchKind::OrOperand, range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::branches;

    #[test]
    fn branches_are_found_at_every_depth() {
        let cases: [(&str, &[&str]); 10] = [
            ("self.a == 1", &[]),
            ("a || b && c || d", &["a", "b && c", "d"]),
            ("a ? b : c", &["b", "c"]),
            ("a || b ? c : d || e", &["a", "b", "c", "d", "e", "d || e"]),
            ("a ? b ? 1 : 2 : 3", &["1", "2", "b ? 1 : 2", "3"]),
            ("a ? 1 : b ? 2 : 3", &["1", "2", "3", "b ? 2 : 3"]),
            ("self.all(x, x == '||' || x > 1)", &["x == '||'", "x > 1"]),
            ("{'a': b || c, 'd': e ? f : g}", &["b", "c", "f", "g"]),
            ("!(a || b) // c || d", &["a", "b"]),
            (
                "self.?a[?0].orValue(b ? 1 : 2) == 1 || [?self.?c].size() > 0",
                &[
                    "1",
                    "2",
                    "self.?a[?0].orValue(b ? 1 : 2) == 1",
                    "[?self.?c].size() > 0",
                ],
            ),
        ];
        for (source, expected) in cases {
            let found: Vec<&str> = branches(source)
                .into_iter()
                .map(|b| source.get(b.range).unwrap_or_default())
                .collect();
            assert_eq!(found, expected, "{source}");
        }
    }
}
