//! Lowers the parse tree to an [`Ast`] and reports errors that the grammar cannot express.

use super::Reporter;
use super::grammar::{AltLabel, ChildRole, GrammarRule};
use super::tree::{Leaf, ParseNode, ParseNodeId, ParseTree};
use crate::ast::{Ast, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use crate::issue::BEFORE_START;
use crate::syntax::ParseOptions;
use crate::syntax::builder::{Builder, NOWHERE};
use crate::syntax::literal::{self, LiteralError, Sign};
use crate::syntax::macros;
use crate::syntax::parser::{MAX_DEPTH, RESERVED, operator};

/// Lowers a parse tree to an [`Ast`], unless it is too deep. If the reporter has issues, the result is
/// meaningless.
pub(super) fn visit(
    source: &str,
    options: &ParseOptions,
    tree: &ParseTree,
    reporter: &mut Reporter,
) -> Option<Ast> {
    let mut visitor = Visitor {
        source,
        options,
        tree,
        reporter,
        builder: Builder::new(),
        depth: 0,
    };
    let root = visitor.expr(Some(ParseTree::ROOT)).ok()?;
    Some(Ast::new(source, root, visitor.builder.into_offsets()))
}

/// The tree is too deep, which has been reported.
struct TooDeep;

type VisitResult<T = Expr> = Result<T, TooDeep>;

struct Visitor<'t, 'r> {
    source: &'t str,
    options: &'t ParseOptions,
    tree: &'t ParseTree,
    reporter: &'r mut Reporter,
    builder: Builder,
    depth: u32,
}

impl<'t> Visitor<'t, '_> {
    fn get(&self, id: Option<ParseNodeId>) -> Option<&'t ParseNode> {
        self.tree.get(id?)
    }

    /// Descends through nodes with a single child.
    fn unwrap(&self, id: Option<ParseNodeId>) -> Option<&'t ParseNode> {
        let mut node = self.get(id)?;
        loop {
            let below = match (node.rule, node.label) {
                (GrammarRule::Expr | GrammarRule::Or | GrammarRule::And, _)
                    if node.leaf(ChildRole::Operator).is_some() =>
                {
                    return Some(node);
                }
                (GrammarRule::Relation | GrammarRule::Calc, AltLabel::Binary) => {
                    // A binary node without its operator comes from error recovery and is reported as unknown.
                    return node.leaf(ChildRole::Operator).map(|_| node);
                }
                (
                    GrammarRule::Start
                    | GrammarRule::Expr
                    | GrammarRule::Or
                    | GrammarRule::And
                    | GrammarRule::Relation
                    | GrammarRule::Calc,
                    _,
                )
                | (GrammarRule::Unary | GrammarRule::Member, AltLabel::Plain)
                | (GrammarRule::Primary, AltLabel::Nested | AltLabel::Constant) => {
                    node.node(ChildRole::First)
                }
                _ => return Some(node),
            };
            node = self.get(below)?;
        }
    }

    fn expr(&mut self, id: Option<ParseNodeId>) -> VisitResult {
        let Some(node) = self.unwrap(id) else {
            return Ok(self.unknown());
        };
        match (node.rule, node.label) {
            // cel-go counts the depth for exactly these kinds; chains, unary operators, literals and lists do not
            // count.
            (GrammarRule::Expr, _) => self.with_depth(|visitor| visitor.conditional(node)),
            (GrammarRule::Or, _) => self.chain(node, "_||_", "unexpected character, wanted '||'"),
            (GrammarRule::And, _) => self.chain(node, "_&&_", "unexpected character, wanted '&&'"),
            (GrammarRule::Relation | GrammarRule::Calc, _) => self.with_depth(|visitor| visitor.binary(node)),
            (GrammarRule::Unary, AltLabel::Not) => self.unary(node, "!_"),
            (GrammarRule::Unary, AltLabel::Negate) => self.unary(node, "-_"),
            (GrammarRule::Unary, _) => Ok(self
                .builder
                // cel-go's placeholder for a unary rule without an alternative, which only a syntax error leaves
                // behind.
                .literal(node.offset, Literal::String("<<error>>".into()))),
            (_, AltLabel::Select) => self.with_depth(|visitor| visitor.select(node)),
            (_, AltLabel::MemberCall) => self.with_depth(|visitor| visitor.member_call(node)),
            (_, AltLabel::TokenIndex) => self.with_depth(|visitor| visitor.index(node)),
            (_, AltLabel::Ident) => Ok(self.ident(node)),
            (_, AltLabel::GlobalCall) => self.global_call(node),
            (_, AltLabel::List) => self.list(node),
            (_, AltLabel::Map) => self.map(node),
            (_, AltLabel::Struct) => self.structure(node),
            (GrammarRule::Literal, label) => Ok(self.literal(node, label)),
            _ => Ok(self.unknown()),
        }
    }

    fn with_depth(&mut self, visit: impl FnOnce(&mut Self) -> VisitResult) -> VisitResult {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.reporter.fatal("max recursion depth exceeded");
            return Err(TooDeep);
        }
        let visited = visit(self);
        self.depth -= 1;
        visited
    }

    /// A placeholder for an expression with an error. A double, because no macro accepts or rejects a double
    /// by mistake.
    fn broken(&mut self, offset: u32) -> Expr {
        self.builder.literal(offset, Literal::Double(0.0))
    }

    /// A placeholder for a node that error recovery has left incomplete.
    fn unknown(&mut self) -> Expr {
        // Reported only if nothing else is: usually the syntax error that caused it is already known.
        if self.reporter.issues.is_empty() {
            self.reporter
                .error(None, "unknown parse element encountered: <<nil>>");
        }
        self.broken(BEFORE_START)
    }

    fn mistake(&mut self, offset: u32, message: &str) -> Expr {
        self.reporter.error(Some(offset), message);
        self.broken(offset)
    }

    /// Assigns an identifier to a node at a token.
    fn id(&mut self, leaf: Option<Leaf>) -> ExprId {
        self.builder.id(leaf.map_or(NOWHERE, Leaf::offset))
    }

    fn conditional(&mut self, node: &'t ParseNode) -> VisitResult {
        // The order of visits is cel-go's, here and below, because it assigns the numbers of nodes.
        let condition = self.expr(node.node(ChildRole::First))?;
        let id = self.id(node.leaf(ChildRole::Operator));
        let yes = self.expr(node.node(ChildRole::Second))?;
        let no = self.expr(node.node(ChildRole::Third))?;
        Ok(self.builder.call(id, "_?_:_", vec![condition, yes, no]))
    }

    fn chain(&mut self, node: &'t ParseNode, function: &str, incomplete: &str) -> VisitResult {
        let first = self.expr(node.node(ChildRole::First))?;
        let mut operands = node.nodes(ChildRole::Second);
        let mut rest = Vec::new();
        for operator in node.leaves(ChildRole::Operator) {
            let Some(operand) = operands.next() else {
                return Ok(self.mistake(node.offset, incomplete));
            };
            let operand = self.expr(Some(operand))?;
            rest.push((self.id(Some(operator)), operand));
        }
        Ok(self.builder.balance(function, first, rest))
    }

    fn binary(&mut self, node: &'t ParseNode) -> VisitResult {
        let token = node.leaf(ChildRole::Operator);
        let Some(function) = token.and_then(|leaf| operator(leaf.kind())) else {
            return Ok(self.mistake(node.offset, "operator not found"));
        };
        let left = self.expr(node.node(ChildRole::First))?;
        let id = self.id(token);
        let right = self.expr(node.node(ChildRole::Second))?;
        Ok(self.builder.call(id, function, vec![left, right]))
    }

    fn unary(&mut self, node: &'t ParseNode, function: &str) -> VisitResult {
        let member = node.node(ChildRole::First);
        // The grammar collects repeated operators in one node, and an even number of them cancels out.
        if node.leaves(ChildRole::Operator).count().is_multiple_of(2) {
            return self.expr(member);
        }
        let id = self.id(node.leaf(ChildRole::Operator));
        let operand = self.expr(member)?;
        Ok(self.builder.call(id, function, vec![operand]))
    }

    fn select(&mut self, node: &'t ParseNode) -> VisitResult {
        let operand = self.expr(node.node(ChildRole::First))?;
        let (Some(field), Some(dot)) = (
            self.get(node.node(ChildRole::Name)),
            node.leaf(ChildRole::Operator),
        ) else {
            return Ok(self.broken(node.offset));
        };
        // cel-go goes on with an empty name, so that its operand is still expanded.
        let name = self.field_name(Some(field)).unwrap_or_else(|message| {
            self.reporter.error(Some(field.offset), message);
            ""
        });
        if node.leaf(ChildRole::Optional).is_none() {
            return Ok(Expr {
                id: self.id(Some(dot)),
                kind: ExprKind::Select {
                    operand: Box::new(operand),
                    field: self.builder.name(name),
                    test: false,
                },
            });
        }
        if !self.options.optional_syntax {
            return Ok(self.mistake(dot.offset(), "unsupported syntax '.?'"));
        }
        let field = self.builder.literal(field.offset, Literal::String(name.into()));
        let id = self.id(Some(dot));
        Ok(self.builder.call(id, "_?._", vec![operand, field]))
    }

    /// The name of a field, or the error.
    fn field_name(&self, field: Option<&'t ParseNode>) -> Result<&'t str, &'static str> {
        let text = |node: &'t ParseNode| {
            node.leaf(ChildRole::Name)
                .map_or("", |leaf| leaf.text(self.source))
        };
        match field {
            Some(node) if node.label == AltLabel::Simple => Ok(text(node)),
            Some(node) if node.label == AltLabel::Escaped && self.options.escaped_identifiers => {
                Ok(text(node).trim_matches('`'))
            }
            Some(node) if node.label == AltLabel::Escaped => Err("unsupported syntax: '`'"),
            _ => Err("unsupported ident kind"),
        }
    }

    fn member_call(&mut self, node: &'t ParseNode) -> VisitResult {
        let target = self.expr(node.node(ChildRole::First))?;
        let Some(name) = node.leaf(ChildRole::Name) else {
            return Ok(self.broken(node.offset));
        };
        let id = self.id(node.leaf(ChildRole::Open));
        let args = self.args(node.node(ChildRole::Items))?;
        Ok(self.call_or_macro(id, name.text(self.source), Some(target), args))
    }

    fn args(&mut self, list: Option<ParseNodeId>) -> VisitResult<Vec<Expr>> {
        let list = self
            .get(list)
            .into_iter()
            .flat_map(|node| node.nodes(ChildRole::Value));
        list.map(|arg| self.expr(Some(arg))).collect()
    }

    fn call_or_macro(&mut self, id: ExprId, name: &str, target: Option<Expr>, args: Vec<Expr>) -> Expr {
        let macros = self.options.macros;
        macros::call_or_macro(&mut self.builder, macros, id, name, target, args).unwrap_or_else(|error| {
            self.reporter.error(error.offset, &error.message);
            self.broken(error.offset.unwrap_or(BEFORE_START))
        })
    }

    fn index(&mut self, node: &'t ParseNode) -> VisitResult {
        let target = self.expr(node.node(ChildRole::First))?;
        let Some(open) = node.leaf(ChildRole::Operator) else {
            return Ok(self.broken(node.offset));
        };
        let id = self.id(Some(open));
        let index = self.expr(node.node(ChildRole::Second))?;
        let function = match node.leaf(ChildRole::Optional) {
            None => "_[_]",
            Some(_) if self.options.optional_syntax => "_[?_]",
            Some(_) => return Ok(self.mistake(open.offset(), "unsupported syntax '[?'")),
        };
        Ok(self.builder.call(id, function, vec![target, index]))
    }

    /// The name with its leading dot, or a placeholder after an error.
    fn global_name(&mut self, node: &'t ParseNode) -> Result<(Leaf, String), Expr> {
        let Some(name) = node.leaf(ChildRole::Name) else {
            return Err(self.broken(node.offset));
        };
        let text = name.text(self.source);
        if RESERVED.contains(&text) {
            return Err(self.mistake(node.offset, &format!("reserved identifier: {text}")));
        }
        let dot = if node.leaf(ChildRole::LeadingDot).is_some() {
            "."
        } else {
            ""
        };
        Ok((name, format!("{dot}{text}")))
    }

    fn ident(&mut self, node: &'t ParseNode) -> Expr {
        match self.global_name(node) {
            Ok((leaf, name)) => self.builder.ident(leaf.offset(), &name),
            Err(mistake) => mistake,
        }
    }

    fn global_call(&mut self, node: &'t ParseNode) -> VisitResult {
        let name = match self.global_name(node) {
            Ok((_, name)) => name,
            Err(mistake) => return Ok(mistake),
        };
        let id = self.id(node.leaf(ChildRole::Operator));
        let args = self.args(node.node(ChildRole::Items))?;
        Ok(self.call_or_macro(id, &name, None, args))
    }

    fn list(&mut self, node: &'t ParseNode) -> VisitResult {
        let id = self.id(node.leaf(ChildRole::Operator));
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        let items = self
            .get(node.node(ChildRole::Items))
            .into_iter()
            .flat_map(|list| list.nodes(ChildRole::Value));
        for item in items.filter_map(|item| self.tree.get(item)) {
            let element = self.expr(item.node(ChildRole::First))?;
            if let Some(mark) = item.leaf(ChildRole::Optional) {
                self.check_optional(mark.offset());
                optional.push(elements.len() as u32);
            }
            elements.push(element);
        }
        let kind = ExprKind::List { elements, optional };
        Ok(Expr { id, kind })
    }

    /// Reports a question mark if optional syntax is disabled; `false` if it did.
    fn check_optional(&mut self, offset: u32) -> bool {
        if !self.options.optional_syntax {
            self.reporter.error(Some(offset), "unsupported syntax '?'");
        }
        self.options.optional_syntax
    }

    fn map(&mut self, node: &'t ParseNode) -> VisitResult {
        let id = self.id(node.leaf(ChildRole::Operator));
        let mut entries = Vec::new();
        if let Some(list) = self.get(node.node(ChildRole::Items)) {
            let mut keys = list.nodes(ChildRole::Key);
            let mut values = list.nodes(ChildRole::Value);
            for colon in list.leaves(ChildRole::Operator) {
                let id = self.id(Some(colon));
                let (Some(key), Some(value)) = (self.get(keys.next()), values.next()) else {
                    break;
                };
                let optional = key.leaf(ChildRole::Optional).is_some();
                if optional && !self.check_optional(key.offset) {
                    continue;
                }
                entries.push(MapEntry {
                    id,
                    key: self.expr(key.node(ChildRole::First))?,
                    value: self.expr(Some(value))?,
                    optional,
                });
            }
        }
        let kind = ExprKind::Map(entries);
        Ok(Expr { id, kind })
    }

    fn structure(&mut self, node: &'t ParseNode) -> VisitResult {
        let mut name = String::new();
        for role in node.leaves(ChildRole::Name) {
            if !name.is_empty() || node.leaf(ChildRole::LeadingDot).is_some() {
                name.push('.');
            }
            name.push_str(role.text(self.source));
        }
        let id = self.id(node.leaf(ChildRole::Operator));
        let mut fields = Vec::new();
        if let Some(list) = self.get(node.node(ChildRole::Items)) {
            let mut colons = list.leaves(ChildRole::Operator);
            let mut values = list.nodes(ChildRole::Value);
            for field in list
                .nodes(ChildRole::Key)
                .filter_map(|field| self.tree.get(field))
            {
                let (Some(colon), Some(value)) = (colons.next(), values.next()) else {
                    break;
                };
                let id = self.id(Some(colon));
                let optional = field.leaf(ChildRole::Optional).is_some();
                if optional && !self.check_optional(field.offset) {
                    continue;
                }
                let name = match self.field_name(self.get(field.node(ChildRole::Name))) {
                    Ok(name) => self.builder.name(name),
                    Err(message) => {
                        // UPSTREAM: at the start of the whole list, not at the field.
                        self.reporter.error(Some(list.offset), message);
                        continue;
                    }
                };
                fields.push(StructField {
                    id,
                    name,
                    value: self.expr(Some(value))?,
                    optional,
                });
            }
        }
        let kind = ExprKind::Struct {
            name: name.into(),
            fields,
        };
        Ok(Expr { id, kind })
    }

    fn literal(&mut self, node: &'t ParseNode, label: AltLabel) -> Expr {
        let text = node
            .leaf(ChildRole::Literal)
            .map_or("", |leaf| leaf.text(self.source));
        let sign = if node.leaf(ChildRole::Sign).is_some() {
            Sign::Minus
        } else {
            Sign::None
        };
        let value: Result<Literal, LiteralError> = match label {
            AltLabel::Int => literal::int(sign, text),
            AltLabel::Uint => literal::uint(text),
            AltLabel::Double => literal::double(sign, text),
            AltLabel::String => literal::string(text),
            AltLabel::Bytes => literal::bytes(text),
            AltLabel::True => Ok(Literal::Bool(true)),
            AltLabel::False => Ok(Literal::Bool(false)),
            AltLabel::Null => Ok(Literal::Null),
            _ => return self.unknown(),
        };
        match value {
            Ok(value) => self.builder.literal(node.offset, value),
            // A string with invalid escapes is still a string for the rest of the expression.
            Err(message) if matches!(label, AltLabel::String | AltLabel::Bytes) => {
                self.reporter.error(Some(node.offset), message);
                self.builder.literal(node.offset, Literal::String("".into()))
            }
            Err(message) => self.mistake(node.offset, message),
        }
    }
}
