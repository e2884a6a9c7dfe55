//! The parser for well-formed expressions.
//!
//! A recursive-descent parser that produces no error messages. Any error in the syntax, a literal, the arguments of a
//! macro or the limits ends it with [`NotWellFormed`], and [`super::diagnose`] parses the source again to report the
//! errors. Both accept the same language.

use super::ParseOptions;
use super::builder::Builder;
use super::lexer::{Lexeme, Lexer};
use super::literal::{self, Sign};
use super::macros;
use super::token::{Token, TokenKind};
use crate::ast::{Ast, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use std::borrow::Cow;

/// The maximum nesting of grammar rules, and of selections, indexes, member calls, arithmetic, comparisons and
/// conditionals in the tree.
pub(crate) const MAX_DEPTH: u32 = 250;

/// The source is not well-formed.
#[derive(Debug)]
pub(crate) struct NotWellFormed;

type ParseResult<T = MeasuredExpr> = Result<T, NotWellFormed>;

/// A node and the depth of the bounded kinds of node in it.
struct MeasuredExpr {
    expr: Expr,
    height: u32,
}

/// Reserved words, which are neither variables nor functions. Keywords are tokens of their own.
pub(crate) const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The function that a relational or arithmetic operator calls.
pub(crate) fn operator(kind: TokenKind) -> Option<&'static str> {
    Some(match kind {
        TokenKind::Equals => "_==_",
        TokenKind::NotEquals => "_!=_",
        TokenKind::In => "@in",
        TokenKind::Less => "_<_",
        TokenKind::LessEquals => "_<=_",
        TokenKind::GreaterEquals => "_>=_",
        TokenKind::Greater => "_>_",
        TokenKind::Plus => "_+_",
        TokenKind::Minus => "_-_",
        TokenKind::Star => "_*_",
        TokenKind::Slash => "_/_",
        TokenKind::Percent => "_%_",
        _ => return None,
    })
}

/// The precedence of operators, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Or,
    And,
    Relation,
    Sum,
    Product,
    /// Higher than any binary operator.
    Operand,
}

impl Precedence {
    fn from_token(kind: TokenKind) -> Option<Precedence> {
        Some(match kind {
            TokenKind::Or => Precedence::Or,
            TokenKind::And => Precedence::And,
            TokenKind::Plus | TokenKind::Minus => Precedence::Sum,
            TokenKind::Star | TokenKind::Slash | TokenKind::Percent => Precedence::Product,
            TokenKind::Equals
            | TokenKind::NotEquals
            | TokenKind::In
            | TokenKind::Less
            | TokenKind::LessEquals
            | TokenKind::GreaterEquals
            | TokenKind::Greater => Precedence::Relation,
            _ => return None,
        })
    }
}

/// Parses a well-formed expression.
pub(crate) fn parse(source: &str, options: &ParseOptions) -> ParseResult<Ast> {
    let mut parser = ExprParser {
        source,
        options,
        // All tokens at once: any lexer error makes the source not well-formed, wherever it is.
        tokens: tokens(source)?,
        next: 0,
        builder: Builder::new(),
        exprs: 0,
        relations: 0,
        calcs: 0,
    };
    let root = parser.expr()?;
    parser.expect(TokenKind::End)?;
    Ok(Ast::new(source, root.expr, parser.builder.into_offsets()))
}

fn tokens(source: &str) -> ParseResult<Vec<Token>> {
    let mut lexer = Lexer::new(source);
    // A guess, so that most sources need no second allocation.
    let mut tokens = Vec::with_capacity(source.len() / 3 + 2);
    loop {
        match lexer.next() {
            Lexeme::Token(token) if token.kind.is_hidden() => {}
            Lexeme::Token(token) => {
                tokens.push(token);
                if token.kind == TokenKind::End {
                    return Ok(tokens);
                }
            }
            Lexeme::Unrecognized(_) => return Err(NotWellFormed),
        }
    }
}

struct ExprParser<'s> {
    source: &'s str,
    options: &'s ParseOptions,
    /// The tokens without whitespace and comments; the last is the end.
    tokens: Vec<Token>,
    next: usize,
    builder: Builder,
    /// The nesting of the rule for expressions.
    exprs: u32,
    /// The nesting of relations.
    relations: u32,
    /// The nesting of arithmetic.
    calcs: u32,
}

impl<'s> ExprParser<'s> {
    fn kind_at(&self, ahead: usize) -> TokenKind {
        self.tokens
            .get(self.next + ahead)
            .map_or(TokenKind::End, |t| t.kind)
    }

    fn kind(&self) -> TokenKind {
        self.kind_at(0)
    }

    /// Consumes the next token.
    fn advance(&mut self) -> ParseResult<Token> {
        let token = self.tokens.get(self.next).copied().ok_or(NotWellFormed)?;
        self.next += 1;
        Ok(token)
    }

    fn expect(&mut self, kind: TokenKind) -> ParseResult<Token> {
        if self.kind() == kind {
            self.advance()
        } else {
            Err(NotWellFormed)
        }
    }

    fn take_if(&mut self, kind: TokenKind) -> Option<Token> {
        if self.kind() == kind {
            self.advance().ok()
        } else {
            None
        }
    }

    fn token_text(&self, token: Token) -> &'s str {
        token.text(self.source)
    }

    /// `?`, if optional syntax is enabled.
    fn optional_mark(&mut self) -> ParseResult<bool> {
        match self.take_if(TokenKind::Question) {
            Some(_) if !self.options.optional_syntax => Err(NotWellFormed),
            mark => Ok(mark.is_some()),
        }
    }

    fn expr(&mut self) -> ParseResult {
        // Not decremented on errors, because the first error ends this parser.
        self.exprs = check_depth(self.exprs)?;
        let mut node = self.operators(Precedence::Or)?;
        if let Some(question) = self.take_if(TokenKind::Question) {
            let id = self.builder.id(question.offset);
            // The grammar allows a conditional in the last branch only; in the middle one it needs parentheses.
            let yes = self.operators(Precedence::Or)?;
            self.expect(TokenKind::Colon)?;
            let no = self.expr()?;
            let height = check_depth(node.height.max(yes.height).max(no.height))?;
            let expr = self.builder.call(id, "_?_:_", vec![node.expr, yes.expr, no.expr]);
            node = MeasuredExpr { expr, height };
        }
        self.exprs -= 1;
        Ok(node)
    }

    /// Parses operators of at least the given precedence (precedence climbing).
    fn operators(&mut self, level: Precedence) -> ParseResult {
        // Tracks the grammar rules that the operand enters; they end at an operator of lower precedence.
        let mut in_relation = level <= Precedence::Sum;
        let mut in_calc = true;
        if in_relation {
            self.relations = check_depth(self.relations)?;
        }
        self.calcs = check_depth(self.calcs)?;
        let mut left = self.unary()?;
        while let Some(binds) = Precedence::from_token(self.kind())
            && binds >= level
        {
            if in_calc && binds <= Precedence::Relation {
                in_calc = false;
                self.calcs -= 1;
            }
            if in_relation && binds <= Precedence::And {
                in_relation = false;
                self.relations -= 1;
            }
            left = match binds {
                // Chains take all operators of their level at once, because cel-go balances them afterwards.
                Precedence::Or => self.chain(left, TokenKind::Or, "_||_", Precedence::And)?,
                Precedence::And => self.chain(left, TokenKind::And, "_&&_", Precedence::Relation)?,
                Precedence::Relation => self.binary(left, Precedence::Sum)?,
                Precedence::Sum => self.binary(left, Precedence::Product)?,
                Precedence::Product | Precedence::Operand => self.binary(left, Precedence::Operand)?,
            };
        }
        self.calcs -= u32::from(in_calc);
        self.relations -= u32::from(in_relation);
        Ok(left)
    }

    /// Parses a chain of one operator.
    fn chain(
        &mut self,
        first: MeasuredExpr,
        kind: TokenKind,
        function: &str,
        operand: Precedence,
    ) -> ParseResult {
        let mut height = first.height;
        let mut rest = Vec::new();
        while let Some(operator) = self.take_if(kind) {
            let node = self.operators(operand)?;
            height = height.max(node.height);
            // UPSTREAM: the operator is numbered after its right operand.
            rest.push((self.builder.id(operator.offset), node.expr));
        }
        let expr = self.builder.balance(function, first.expr, rest);
        Ok(MeasuredExpr { expr, height })
    }

    /// Parses an operator and its right operand.
    fn binary(&mut self, left: MeasuredExpr, operand: Precedence) -> ParseResult {
        let token = self.advance()?;
        let function = operator(token.kind).ok_or(NotWellFormed)?;
        let id = self.builder.id(token.offset);
        let right = self.operators(operand)?;
        let height = check_depth(left.height.max(right.height))?;
        let expr = self.builder.call(id, function, vec![left.expr, right.expr]);
        Ok(MeasuredExpr { expr, height })
    }

    fn unary(&mut self) -> ParseResult {
        let (kind, function) = match self.kind() {
            TokenKind::Not => (TokenKind::Not, "!_"),
            // A single minus before a number is its sign.
            TokenKind::Minus if matches!(self.kind_at(1), TokenKind::Int | TokenKind::Float) => {
                return self.member();
            }
            TokenKind::Minus => (TokenKind::Minus, "-_"),
            _ => return self.member(),
        };
        let first = self.advance()?;
        let mut count = 1;
        while self.take_if(kind).is_some() {
            count += 1;
        }
        // An even number of them cancels out, as in cel-go, which leaves no trace of the operators in the tree.
        if count % 2 == 0 {
            return self.member();
        }
        let id = self.builder.id(first.offset);
        let MeasuredExpr { expr, height } = self.member()?;
        let expr = self.builder.call(id, function, vec![expr]);
        Ok(MeasuredExpr { expr, height })
    }

    fn member(&mut self) -> ParseResult {
        let mut node = self.primary()?;
        loop {
            node = match self.kind() {
                TokenKind::Dot => self.selection(node)?,
                TokenKind::LeftBracket => self.index(node)?,
                _ => return Ok(node),
            };
        }
    }

    /// `.field`, `.?field` or `.function(…)`
    fn selection(&mut self, operand: MeasuredExpr) -> ParseResult {
        let dot = self.advance()?;
        let optional = self.optional_mark()?;
        let name = self.advance()?;
        // The grammar has no optional calls (`a.?f()`), and backticks are for fields only.
        if name.kind == TokenKind::Identifier && !optional && self.kind() == TokenKind::LeftParen {
            return self.member_call(operand, name);
        }
        let field = self.field_name(name)?;
        let height = check_depth(operand.height)?;
        let expr = if optional {
            let field = self.builder.literal(name.offset, Literal::String(field.into()));
            let id = self.builder.id(dot.offset);
            self.builder.call(id, "_?._", vec![operand.expr, field])
        } else {
            Expr {
                id: self.builder.id(dot.offset),
                kind: ExprKind::Select {
                    operand: Box::new(operand.expr),
                    field: self.builder.name(field),
                    test: false,
                },
            }
        };
        Ok(MeasuredExpr { expr, height })
    }

    /// The name of an identifier, without backticks.
    fn field_name(&self, token: Token) -> ParseResult<&'s str> {
        let text = self.token_text(token);
        match token.kind {
            TokenKind::Identifier => Ok(text),
            TokenKind::EscapedIdentifier if self.options.escaped_identifiers => Ok(text.trim_matches('`')),
            _ => Err(NotWellFormed),
        }
    }

    fn member_call(&mut self, target: MeasuredExpr, name: Token) -> ParseResult {
        let open = self.expect(TokenKind::LeftParen)?;
        let id = self.builder.id(open.offset);
        let (args, height) = self.args()?;
        // Global calls do not count towards the depth, but member calls do, as in cel-go.
        let height = check_depth(height.max(target.height))?;
        let expr = self.call_or_macro(id, self.token_text(name), Some(target.expr), args)?;
        Ok(MeasuredExpr { expr, height })
    }

    fn call_or_macro(
        &mut self,
        id: ExprId,
        name: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> ParseResult<Expr> {
        macros::call_or_macro(&mut self.builder, self.options.macros, id, name, target, args)
            .map_err(|_| NotWellFormed)
    }

    /// Arguments and the closing parenthesis.
    fn args(&mut self) -> ParseResult<(Vec<Expr>, u32)> {
        let mut args = Vec::new();
        let mut height = 0;
        if self.take_if(TokenKind::RightParen).is_some() {
            return Ok((args, height));
        }
        loop {
            let node = self.expr()?;
            height = height.max(node.height);
            args.push(node.expr);
            if self.take_if(TokenKind::Comma).is_none() {
                self.expect(TokenKind::RightParen)?;
                return Ok((args, height));
            }
        }
    }

    fn index(&mut self, target: MeasuredExpr) -> ParseResult {
        let open = self.advance()?;
        let function = if self.optional_mark()? { "_[?_]" } else { "_[_]" };
        let id = self.builder.id(open.offset);
        let index = self.expr()?;
        self.expect(TokenKind::RightBracket)?;
        let height = check_depth(target.height.max(index.height))?;
        let expr = self.builder.call(id, function, vec![target.expr, index.expr]);
        Ok(MeasuredExpr { expr, height })
    }

    fn primary(&mut self) -> ParseResult {
        match self.kind() {
            TokenKind::Identifier => self.name(0),
            TokenKind::Dot => self.name(1),
            TokenKind::LeftParen => {
                self.advance()?;
                let node = self.expr()?;
                self.expect(TokenKind::RightParen)?;
                Ok(node)
            }
            TokenKind::LeftBracket => self.list(),
            TokenKind::LeftBrace => self.map(),
            _ => self.literal(),
        }
    }

    /// Parses a variable, a global call or a struct literal.
    fn name(&mut self, leading_dots: usize) -> ParseResult {
        self.next += leading_dots;
        if self.kind() != TokenKind::Identifier {
            return Err(NotWellFormed);
        }
        let mut last = 0;
        while self.kind_at(last + 1) == TokenKind::Dot && self.kind_at(last + 2) == TokenKind::Identifier {
            last += 2;
        }
        // Only a brace makes this a message literal, so the whole name must be looked over first. Otherwise the dots
        // are selections, which `member` handles.
        if self.kind_at(last + 1) == TokenKind::LeftBrace {
            return self.structure(leading_dots, last);
        }
        // Reserved words are refused as variables and functions only: they may name fields and message types.
        let token = self.expect(TokenKind::Identifier)?;
        if RESERVED.contains(&self.token_text(token)) {
            return Err(NotWellFormed);
        }
        let name = match leading_dots {
            0 => Cow::Borrowed(self.token_text(token)),
            _ => Cow::Owned(format!(".{}", self.token_text(token))),
        };
        if let Some(open) = self.take_if(TokenKind::LeftParen) {
            let id = self.builder.id(open.offset);
            let (args, height) = self.args()?;
            let expr = self.call_or_macro(id, &name, None, args)?;
            return Ok(MeasuredExpr { expr, height });
        }
        let expr = self.builder.ident(token.offset, &name);
        Ok(MeasuredExpr { expr, height: 0 })
    }

    fn list(&mut self) -> ParseResult {
        let open = self.advance()?;
        let id = self.builder.id(open.offset);
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        let mut height = 0;
        while self.next_element(elements.len(), TokenKind::RightBracket)? {
            if self.optional_mark()? {
                optional.push(elements.len() as u32);
            }
            let node = self.expr()?;
            height = height.max(node.height);
            elements.push(node.expr);
        }
        let kind = ExprKind::List { elements, optional };
        let expr = Expr { id, kind };
        Ok(MeasuredExpr { expr, height })
    }

    /// Returns whether another element follows after `n` elements. Consumes the comma before it, or the closing bracket. A
    /// trailing comma is allowed, also without elements.
    fn next_element(&mut self, count: usize, close: TokenKind) -> ParseResult<bool> {
        if count == 0 && self.kind() != close && self.kind() != TokenKind::Comma {
            return Ok(true);
        }
        let comma = self.take_if(TokenKind::Comma);
        if count > 0 && comma.is_some() && self.kind() != close {
            return Ok(true);
        }
        self.expect(close)?;
        Ok(false)
    }

    fn map(&mut self) -> ParseResult {
        let open = self.advance()?;
        let id = self.builder.id(open.offset);
        let mut entries = Vec::new();
        let mut height = 0;
        while self.next_element(entries.len(), TokenKind::RightBrace)? {
            let optional = self.optional_mark()?;
            // The entry is numbered before its key, but its position is that of the colon.
            let id = self.builder.id(open.offset);
            let key = self.expr()?;
            let colon = self.expect(TokenKind::Colon)?;
            self.builder.set_offset(id, colon.offset);
            let value = self.expr()?;
            height = height.max(key.height).max(value.height);
            entries.push(MapEntry {
                id,
                key: key.expr,
                value: value.expr,
                optional,
            });
        }
        let kind = ExprKind::Map(entries);
        let expr = Expr { id, kind };
        Ok(MeasuredExpr { expr, height })
    }

    /// Parses `a.b.C{field: value}`; the last part of the name is `last` tokens ahead.
    fn structure(&mut self, leading_dots: usize, last: usize) -> ParseResult {
        let mut name = if leading_dots == 0 {
            String::new()
        } else {
            ".".to_owned()
        };
        for _ in 0..=last {
            let part = self.advance()?;
            name.push_str(self.token_text(part));
        }
        let open = self.expect(TokenKind::LeftBrace)?;
        let id = self.builder.id(open.offset);
        let mut fields = Vec::new();
        let mut height = 0;
        while self.next_element(fields.len(), TokenKind::RightBrace)? {
            let optional = self.optional_mark()?;
            let name = self.advance()?;
            let name = self.field_name(name)?;
            let colon = self.expect(TokenKind::Colon)?;
            let id = self.builder.id(colon.offset);
            let value = self.expr()?;
            height = height.max(value.height);
            fields.push(StructField {
                id,
                name: self.builder.name(name),
                value: value.expr,
                optional,
            });
        }
        let kind = ExprKind::Struct {
            name: name.into(),
            fields,
        };
        let expr = Expr { id, kind };
        Ok(MeasuredExpr { expr, height })
    }

    fn literal(&mut self) -> ParseResult {
        let first = self.advance()?;
        let (sign, token) = match first.kind {
            TokenKind::Minus => (Sign::Minus, self.advance()?),
            _ => (Sign::None, first),
        };
        let text = self.token_text(token);
        let value = match (token.kind, sign) {
            (TokenKind::Int, _) => literal::int(sign, text),
            (TokenKind::Float, _) => literal::double(sign, text),
            (TokenKind::Uint, Sign::None) => literal::uint(text),
            (TokenKind::String, Sign::None) => literal::string(text),
            (TokenKind::Bytes, Sign::None) => literal::bytes(text),
            (TokenKind::True, Sign::None) => Ok(Literal::Bool(true)),
            (TokenKind::False, Sign::None) => Ok(Literal::Bool(false)),
            (TokenKind::Null, Sign::None) => Ok(Literal::Null),
            _ => return Err(NotWellFormed),
        };
        let expr = self
            .builder
            .literal(first.offset, value.map_err(|_| NotWellFormed)?);
        Ok(MeasuredExpr { expr, height: 0 })
    }
}

fn check_depth(depth: u32) -> ParseResult<u32> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err(NotWellFormed)
    }
}
