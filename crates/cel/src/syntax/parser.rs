//! Tokens to a tree, for expressions without mistakes.
//!
//! This reads what is well-formed as fast as it can and knows nothing about what is wrong with the rest: any
//! mistake, in the syntax, a literal, a macro's arguments or the limits, ends it with [`Rejected`], and
//! [`super::diagnose`] reads the source again to say what the mistakes are. Both accept the same language.

use super::ParseOptions;
use super::builder::Builder;
use super::lexer::{Lexeme, Lexer};
use super::literal::{self, Sign};
use super::macros;
use super::token::{Token, TokenKind};
use crate::ast::{Ast, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use std::borrow::Cow;

/// Rules of the grammar may nest this deep, and so may selections, indices, member calls, arithmetic, comparisons
/// and conditionals in the tree.
pub(crate) const MAX_DEPTH: u32 = 250;

/// The source has a mistake.
#[derive(Debug)]
pub(crate) struct Rejected;

type Parsed<T = Node> = Result<T, Rejected>;

/// A node and how deep the bounded kinds of node nest in it.
struct Node {
    expr: Expr,
    height: u32,
}

/// Words that are no variables or functions, for they might become keywords. The keywords proper are tokens of
/// their own.
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

/// How tightly operators bind, from the loosest on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Relation,
    Sum,
    Product,
    /// Tighter than any operator between two operands.
    Operand,
}

impl Level {
    fn of(kind: TokenKind) -> Option<Level> {
        Some(match kind {
            TokenKind::Or => Level::Or,
            TokenKind::And => Level::And,
            TokenKind::Plus | TokenKind::Minus => Level::Sum,
            TokenKind::Star | TokenKind::Slash | TokenKind::Percent => Level::Product,
            TokenKind::Equals
            | TokenKind::NotEquals
            | TokenKind::In
            | TokenKind::Less
            | TokenKind::LessEquals
            | TokenKind::GreaterEquals
            | TokenKind::Greater => Level::Relation,
            _ => return None,
        })
    }
}

/// Reads an expression that has no mistakes.
pub(crate) fn parse(source: &str, options: &ParseOptions) -> Parsed<Ast> {
    let mut parser = Parser {
        source,
        options,
        tokens: tokens(source)?,
        next: 0,
        builder: Builder::new(),
        exprs: 0,
        relations: 0,
        calcs: 0,
    };
    let root = parser.expr()?;
    parser.take(TokenKind::End)?;
    Ok(Ast::new(source, root.expr, parser.builder.into_offsets()))
}

fn tokens(source: &str) -> Parsed<Vec<Token>> {
    let mut lexer = Lexer::new(source);
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
            Lexeme::Unrecognized(_) => return Err(Rejected),
        }
    }
}

struct Parser<'s> {
    source: &'s str,
    options: &'s ParseOptions,
    /// Without whitespace and comments; the last is the end.
    tokens: Vec<Token>,
    next: usize,
    builder: Builder,
    /// How deep the rule for expressions nests here.
    exprs: u32,
    /// The same for relations.
    relations: u32,
    /// The same for arithmetic.
    calcs: u32,
}

impl<'s> Parser<'s> {
    fn kind_at(&self, ahead: usize) -> TokenKind {
        self.tokens
            .get(self.next + ahead)
            .map_or(TokenKind::End, |t| t.kind)
    }

    fn kind(&self) -> TokenKind {
        self.kind_at(0)
    }

    /// The next token, which is passed.
    fn advance(&mut self) -> Parsed<Token> {
        let token = self.tokens.get(self.next).copied().ok_or(Rejected)?;
        self.next += 1;
        Ok(token)
    }

    fn take(&mut self, kind: TokenKind) -> Parsed<Token> {
        if self.kind() == kind {
            self.advance()
        } else {
            Err(Rejected)
        }
    }

    fn take_if(&mut self, kind: TokenKind) -> Option<Token> {
        if self.kind() == kind {
            self.advance().ok()
        } else {
            None
        }
    }

    fn text(&self, token: Token) -> &'s str {
        token.text(self.source)
    }

    /// `?` where optional syntax is on.
    fn optional_mark(&mut self) -> Parsed<bool> {
        match self.take_if(TokenKind::Question) {
            Some(_) if !self.options.optional_syntax => Err(Rejected),
            mark => Ok(mark.is_some()),
        }
    }

    fn expr(&mut self) -> Parsed {
        self.exprs = deeper(self.exprs)?;
        let mut node = self.operators(Level::Or)?;
        if let Some(question) = self.take_if(TokenKind::Question) {
            let id = self.builder.id(question.offset);
            let yes = self.operators(Level::Or)?;
            self.take(TokenKind::Colon)?;
            let no = self.expr()?;
            let height = deeper(node.height.max(yes.height).max(no.height))?;
            let expr = self.builder.call(id, "_?_:_", vec![node.expr, yes.expr, no.expr]);
            node = Node { expr, height };
        }
        self.exprs -= 1;
        Ok(node)
    }

    /// An operand and the operators behind it that bind at least as tightly as `level`, with their operands.
    fn operators(&mut self, level: Level) -> Parsed {
        // The rules of the grammar that are entered for the operand; they end where an operator binds less tightly.
        let mut in_relation = level <= Level::Sum;
        let mut in_calc = true;
        if in_relation {
            self.relations = deeper(self.relations)?;
        }
        self.calcs = deeper(self.calcs)?;
        let mut left = self.unary()?;
        while let Some(binds) = Level::of(self.kind())
            && binds >= level
        {
            if in_calc && binds <= Level::Relation {
                in_calc = false;
                self.calcs -= 1;
            }
            if in_relation && binds <= Level::And {
                in_relation = false;
                self.relations -= 1;
            }
            left = match binds {
                Level::Or => self.chain(left, TokenKind::Or, "_||_", Level::And)?,
                Level::And => self.chain(left, TokenKind::And, "_&&_", Level::Relation)?,
                Level::Relation => self.binary(left, Level::Sum)?,
                Level::Sum => self.binary(left, Level::Product)?,
                Level::Product | Level::Operand => self.binary(left, Level::Operand)?,
            };
        }
        self.calcs -= u32::from(in_calc);
        self.relations -= u32::from(in_relation);
        Ok(left)
    }

    /// The operators of one kind that come next and the operands behind them.
    fn chain(&mut self, first: Node, kind: TokenKind, function: &str, operand: Level) -> Parsed {
        let mut height = first.height;
        let mut rest = Vec::new();
        while let Some(operator) = self.take_if(kind) {
            let node = self.operators(operand)?;
            height = height.max(node.height);
            // The number of the operator comes after those of its right operand.
            rest.push((self.builder.id(operator.offset), node.expr));
        }
        let expr = self.builder.balance(function, first.expr, rest);
        Ok(Node { expr, height })
    }

    /// The operator that is next and its right operand.
    fn binary(&mut self, left: Node, operand: Level) -> Parsed {
        let token = self.advance()?;
        let function = operator(token.kind).ok_or(Rejected)?;
        let id = self.builder.id(token.offset);
        let right = self.operators(operand)?;
        let height = deeper(left.height.max(right.height))?;
        let expr = self.builder.call(id, function, vec![left.expr, right.expr]);
        Ok(Node { expr, height })
    }

    fn unary(&mut self) -> Parsed {
        let (kind, function) = match self.kind() {
            TokenKind::Not => (TokenKind::Not, "!_"),
            // One minus before a number is the number's sign.
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
        if count % 2 == 0 {
            return self.member();
        }
        let id = self.builder.id(first.offset);
        let Node { expr, height } = self.member()?;
        let expr = self.builder.call(id, function, vec![expr]);
        Ok(Node { expr, height })
    }

    fn member(&mut self) -> Parsed {
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
    fn selection(&mut self, operand: Node) -> Parsed {
        let dot = self.advance()?;
        let optional = self.optional_mark()?;
        let name = self.advance()?;
        if name.kind == TokenKind::Identifier && !optional && self.kind() == TokenKind::LeftParen {
            return self.member_call(operand, name);
        }
        let field = self.field_name(name)?;
        let height = deeper(operand.height)?;
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
        Ok(Node { expr, height })
    }

    /// The name that an identifier, perhaps in backticks, stands for.
    fn field_name(&self, token: Token) -> Parsed<&'s str> {
        let text = self.text(token);
        match token.kind {
            TokenKind::Identifier => Ok(text),
            TokenKind::EscapedIdentifier if self.options.escaped_identifiers => Ok(text.trim_matches('`')),
            _ => Err(Rejected),
        }
    }

    fn member_call(&mut self, target: Node, name: Token) -> Parsed {
        let open = self.take(TokenKind::LeftParen)?;
        let id = self.builder.id(open.offset);
        let (args, height) = self.args()?;
        let height = deeper(height.max(target.height))?;
        let expr = self.call_or_macro(id, self.text(name), Some(target.expr), args)?;
        Ok(Node { expr, height })
    }

    fn call_or_macro(
        &mut self,
        id: ExprId,
        name: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Parsed<Expr> {
        macros::call_or_macro(&mut self.builder, self.options.macros, id, name, target, args)
            .map_err(|_| Rejected)
    }

    /// Arguments and the closing parenthesis.
    fn args(&mut self) -> Parsed<(Vec<Expr>, u32)> {
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
                self.take(TokenKind::RightParen)?;
                return Ok((args, height));
            }
        }
    }

    fn index(&mut self, target: Node) -> Parsed {
        let open = self.advance()?;
        let function = if self.optional_mark()? { "_[?_]" } else { "_[_]" };
        let id = self.builder.id(open.offset);
        let index = self.expr()?;
        self.take(TokenKind::RightBracket)?;
        let height = deeper(target.height.max(index.height))?;
        let expr = self.builder.call(id, function, vec![target.expr, index.expr]);
        Ok(Node { expr, height })
    }

    fn primary(&mut self) -> Parsed {
        match self.kind() {
            TokenKind::Identifier => self.name(0),
            TokenKind::Dot => self.name(1),
            TokenKind::LeftParen => {
                self.advance()?;
                let node = self.expr()?;
                self.take(TokenKind::RightParen)?;
                Ok(node)
            }
            TokenKind::LeftBracket => self.list(),
            TokenKind::LeftBrace => self.map(),
            _ => self.literal(),
        }
    }

    /// A variable, a call of a global function or a struct, whose name begins so many tokens ahead.
    fn name(&mut self, leading_dots: usize) -> Parsed {
        self.next += leading_dots;
        if self.kind() != TokenKind::Identifier {
            return Err(Rejected);
        }
        let mut last = 0;
        while self.kind_at(last + 1) == TokenKind::Dot && self.kind_at(last + 2) == TokenKind::Identifier {
            last += 2;
        }
        if self.kind_at(last + 1) == TokenKind::LeftBrace {
            return self.structure(leading_dots, last);
        }
        let token = self.take(TokenKind::Identifier)?;
        if RESERVED.contains(&self.text(token)) {
            return Err(Rejected);
        }
        let name = match leading_dots {
            0 => Cow::Borrowed(self.text(token)),
            _ => Cow::Owned(format!(".{}", self.text(token))),
        };
        if let Some(open) = self.take_if(TokenKind::LeftParen) {
            let id = self.builder.id(open.offset);
            let (args, height) = self.args()?;
            let expr = self.call_or_macro(id, &name, None, args)?;
            return Ok(Node { expr, height });
        }
        let expr = self.builder.ident(token.offset, &name);
        Ok(Node { expr, height: 0 })
    }

    fn list(&mut self) -> Parsed {
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
        Ok(Node { expr, height })
    }

    /// Whether another element comes, of which so many have been read. They have commas between them and perhaps one
    /// at the end; one comma may stand alone. Passes the comma before the element, or the closing bracket.
    fn next_element(&mut self, count: usize, close: TokenKind) -> Parsed<bool> {
        if count == 0 && self.kind() != close && self.kind() != TokenKind::Comma {
            return Ok(true);
        }
        let comma = self.take_if(TokenKind::Comma);
        if count > 0 && comma.is_some() && self.kind() != close {
            return Ok(true);
        }
        self.take(close)?;
        Ok(false)
    }

    fn map(&mut self) -> Parsed {
        let open = self.advance()?;
        let id = self.builder.id(open.offset);
        let mut entries = Vec::new();
        let mut height = 0;
        while self.next_element(entries.len(), TokenKind::RightBrace)? {
            let optional = self.optional_mark()?;
            // The entry is numbered before its key, but stands at the colon behind it.
            let id = self.builder.id(open.offset);
            let key = self.expr()?;
            let colon = self.take(TokenKind::Colon)?;
            self.builder.place(id, colon.offset);
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
        Ok(Node { expr, height })
    }

    /// `a.b.C{field: value}`, whose name's last part is so many tokens ahead.
    fn structure(&mut self, leading_dots: usize, last: usize) -> Parsed {
        let mut name = if leading_dots == 0 {
            String::new()
        } else {
            ".".to_owned()
        };
        for _ in 0..=last {
            let part = self.advance()?;
            name.push_str(self.text(part));
        }
        let open = self.take(TokenKind::LeftBrace)?;
        let id = self.builder.id(open.offset);
        let mut fields = Vec::new();
        let mut height = 0;
        while self.next_element(fields.len(), TokenKind::RightBrace)? {
            let optional = self.optional_mark()?;
            let name = self.advance()?;
            let name = self.field_name(name)?;
            let colon = self.take(TokenKind::Colon)?;
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
        Ok(Node { expr, height })
    }

    fn literal(&mut self) -> Parsed {
        let first = self.advance()?;
        let (sign, token) = match first.kind {
            TokenKind::Minus => (Sign::Minus, self.advance()?),
            _ => (Sign::None, first),
        };
        let text = self.text(token);
        let value = match (token.kind, sign) {
            (TokenKind::Int, _) => literal::int(sign, text),
            (TokenKind::Float, _) => literal::double(sign, text),
            (TokenKind::Uint, Sign::None) => literal::uint(text),
            (TokenKind::String, Sign::None) => literal::string(text),
            (TokenKind::Bytes, Sign::None) => literal::bytes(text),
            (TokenKind::True, Sign::None) => Ok(Literal::Bool(true)),
            (TokenKind::False, Sign::None) => Ok(Literal::Bool(false)),
            (TokenKind::Null, Sign::None) => Ok(Literal::Null),
            _ => return Err(Rejected),
        };
        let expr = self.builder.literal(first.offset, value.map_err(|_| Rejected)?);
        Ok(Node { expr, height: 0 })
    }
}

fn deeper(depth: u32) -> Parsed<u32> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err(Rejected)
    }
}
