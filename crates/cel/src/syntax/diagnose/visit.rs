//! The tree to an [`Ast`], and the mistakes that the grammar does not know.

use super::Reporter;
use super::grammar::{Form, Part, Rule};
use super::tree::{Leaf, Node, NodeId, Tree};
use crate::ast::{Ast, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use crate::issue::BEFORE_START;
use crate::syntax::ParseOptions;
use crate::syntax::builder::{Builder, NOWHERE};
use crate::syntax::literal::{self, Invalid, Sign};
use crate::syntax::macros;
use crate::syntax::parser::{MAX_DEPTH, RESERVED, operator};

/// Turns a tree into an [`Ast`], unless it is too deep. Where the reporter has issues, the result means nothing.
pub(super) fn visit(
    source: &str,
    options: &ParseOptions,
    tree: &Tree,
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
    let root = visitor.expr(Some(Tree::ROOT)).ok()?;
    Some(Ast::new(source, root, visitor.builder.into_offsets()))
}

/// The tree is too deep; this has been reported.
struct TooDeep;

type Visited<T = Expr> = Result<T, TooDeep>;

struct Visitor<'t, 'r> {
    source: &'t str,
    options: &'t ParseOptions,
    tree: &'t Tree,
    reporter: &'r mut Reporter,
    builder: Builder,
    depth: u32,
}

impl<'t> Visitor<'t, '_> {
    fn get(&self, id: Option<NodeId>) -> Option<&'t Node> {
        self.tree.get(id?)
    }

    /// Goes down as long as a node only stands for the one below it.
    fn unwrap(&self, id: Option<NodeId>) -> Option<&'t Node> {
        let mut node = self.get(id)?;
        loop {
            let below = match (node.rule, node.form) {
                (Rule::Expr | Rule::Or | Rule::And, _) if node.leaf(Part::Operator).is_some() => {
                    return Some(node);
                }
                (Rule::Relation | Rule::Calc, Form::Binary) => {
                    return node.leaf(Part::Operator).map(|_| node);
                }
                (Rule::Start | Rule::Expr | Rule::Or | Rule::And | Rule::Relation | Rule::Calc, _)
                | (Rule::Unary | Rule::Member, Form::Plain)
                | (Rule::Primary, Form::Nested | Form::Constant) => node.node(Part::First),
                _ => return Some(node),
            };
            node = self.get(below)?;
        }
    }

    fn expr(&mut self, id: Option<NodeId>) -> Visited {
        let Some(node) = self.unwrap(id) else {
            return Ok(self.unknown());
        };
        match (node.rule, node.form) {
            (Rule::Expr, _) => self.deeper(|visitor| visitor.conditional(node)),
            (Rule::Or, _) => self.chain(node, "_||_", "unexpected character, wanted '||'"),
            (Rule::And, _) => self.chain(node, "_&&_", "unexpected character, wanted '&&'"),
            (Rule::Relation | Rule::Calc, _) => self.deeper(|visitor| visitor.binary(node)),
            (Rule::Unary, Form::Not) => self.unary(node, "!_"),
            (Rule::Unary, Form::Negate) => self.unary(node, "-_"),
            (Rule::Unary, _) => Ok(self
                .builder
                .literal(node.offset, Literal::String("<<error>>".into()))),
            (_, Form::Select) => self.deeper(|visitor| visitor.select(node)),
            (_, Form::MemberCall) => self.deeper(|visitor| visitor.member_call(node)),
            (_, Form::Index) => self.deeper(|visitor| visitor.index(node)),
            (_, Form::Ident) => Ok(self.ident(node)),
            (_, Form::GlobalCall) => self.global_call(node),
            (_, Form::List) => self.list(node),
            (_, Form::Map) => self.map(node),
            (_, Form::Struct) => self.structure(node),
            (Rule::Literal, form) => Ok(self.literal(node, form)),
            _ => Ok(self.unknown()),
        }
    }

    fn deeper(&mut self, visit: impl FnOnce(&mut Self) -> Visited) -> Visited {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            self.reporter.fatal("max recursion depth exceeded");
            return Err(TooDeep);
        }
        let visited = visit(self);
        self.depth -= 1;
        visited
    }

    /// Stands for an expression that has a mistake. Of all kinds, no macro takes a double where it should not, or
    /// refuses it where it should.
    fn broken(&mut self, offset: u32) -> Expr {
        self.builder.literal(offset, Literal::Double(0.0))
    }

    /// Stands for what the grammar has no place for, which a mistake has left behind.
    fn unknown(&mut self) -> Expr {
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

    /// The number of a node that stands at a token.
    fn id(&mut self, leaf: Option<Leaf>) -> ExprId {
        self.builder.id(leaf.map_or(NOWHERE, Leaf::offset))
    }

    fn conditional(&mut self, node: &'t Node) -> Visited {
        let condition = self.expr(node.node(Part::First))?;
        let id = self.id(node.leaf(Part::Operator));
        let yes = self.expr(node.node(Part::Second))?;
        let no = self.expr(node.node(Part::Third))?;
        Ok(self.builder.call(id, "_?_:_", vec![condition, yes, no]))
    }

    fn chain(&mut self, node: &'t Node, function: &str, incomplete: &str) -> Visited {
        let first = self.expr(node.node(Part::First))?;
        let mut operands = node.nodes(Part::Second);
        let mut rest = Vec::new();
        for operator in node.leaves(Part::Operator) {
            let Some(operand) = operands.next() else {
                return Ok(self.mistake(node.offset, incomplete));
            };
            let operand = self.expr(Some(operand))?;
            rest.push((self.id(Some(operator)), operand));
        }
        Ok(self.builder.balance(function, first, rest))
    }

    fn binary(&mut self, node: &'t Node) -> Visited {
        let token = node.leaf(Part::Operator);
        let Some(function) = token.and_then(|leaf| operator(leaf.kind())) else {
            return Ok(self.mistake(node.offset, "operator not found"));
        };
        let left = self.expr(node.node(Part::First))?;
        let id = self.id(token);
        let right = self.expr(node.node(Part::Second))?;
        Ok(self.builder.call(id, function, vec![left, right]))
    }

    fn unary(&mut self, node: &'t Node, function: &str) -> Visited {
        let member = node.node(Part::First);
        if node.leaves(Part::Operator).count().is_multiple_of(2) {
            return self.expr(member);
        }
        let id = self.id(node.leaf(Part::Operator));
        let operand = self.expr(member)?;
        Ok(self.builder.call(id, function, vec![operand]))
    }

    fn select(&mut self, node: &'t Node) -> Visited {
        let operand = self.expr(node.node(Part::First))?;
        let (Some(field), Some(dot)) = (self.get(node.node(Part::Name)), node.leaf(Part::Operator)) else {
            return Ok(self.broken(node.offset));
        };
        let name = self.field_name(Some(field)).unwrap_or_else(|message| {
            self.reporter.error(Some(field.offset), message);
            ""
        });
        if node.leaf(Part::Optional).is_none() {
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

    /// The name of a field, or why it is none.
    fn field_name(&self, field: Option<&'t Node>) -> Result<&'t str, &'static str> {
        let text = |node: &'t Node| node.leaf(Part::Name).map_or("", |leaf| leaf.text(self.source));
        match field {
            Some(node) if node.form == Form::Simple => Ok(text(node)),
            Some(node) if node.form == Form::Escaped && self.options.escaped_identifiers => {
                Ok(text(node).trim_matches('`'))
            }
            Some(node) if node.form == Form::Escaped => Err("unsupported syntax: '`'"),
            _ => Err("unsupported ident kind"),
        }
    }

    fn member_call(&mut self, node: &'t Node) -> Visited {
        let target = self.expr(node.node(Part::First))?;
        let Some(name) = node.leaf(Part::Name) else {
            return Ok(self.broken(node.offset));
        };
        let id = self.id(node.leaf(Part::Open));
        let args = self.args(node.node(Part::Items))?;
        Ok(self.call_or_macro(id, name.text(self.source), Some(target), args))
    }

    fn args(&mut self, list: Option<NodeId>) -> Visited<Vec<Expr>> {
        let list = self
            .get(list)
            .into_iter()
            .flat_map(|node| node.nodes(Part::Value));
        list.map(|arg| self.expr(Some(arg))).collect()
    }

    fn call_or_macro(&mut self, id: ExprId, name: &str, target: Option<Expr>, args: Vec<Expr>) -> Expr {
        let macros = self.options.macros;
        macros::call_or_macro(&mut self.builder, macros, id, name, target, args).unwrap_or_else(|error| {
            self.reporter.error(error.offset, &error.message);
            self.broken(error.offset.unwrap_or(BEFORE_START))
        })
    }

    fn index(&mut self, node: &'t Node) -> Visited {
        let target = self.expr(node.node(Part::First))?;
        let Some(open) = node.leaf(Part::Operator) else {
            return Ok(self.broken(node.offset));
        };
        let id = self.id(Some(open));
        let index = self.expr(node.node(Part::Second))?;
        let function = match node.leaf(Part::Optional) {
            None => "_[_]",
            Some(_) if self.options.optional_syntax => "_[?_]",
            Some(_) => return Ok(self.mistake(open.offset(), "unsupported syntax '[?'")),
        };
        Ok(self.builder.call(id, function, vec![target, index]))
    }

    /// The name with its leading dot, or a mistake.
    fn global_name(&mut self, node: &'t Node) -> Result<(Leaf, String), Expr> {
        let Some(name) = node.leaf(Part::Name) else {
            return Err(self.broken(node.offset));
        };
        let text = name.text(self.source);
        if RESERVED.contains(&text) {
            return Err(self.mistake(node.offset, &format!("reserved identifier: {text}")));
        }
        let dot = if node.leaf(Part::LeadingDot).is_some() {
            "."
        } else {
            ""
        };
        Ok((name, format!("{dot}{text}")))
    }

    fn ident(&mut self, node: &'t Node) -> Expr {
        match self.global_name(node) {
            Ok((leaf, name)) => self.builder.ident(leaf.offset(), &name),
            Err(mistake) => mistake,
        }
    }

    fn global_call(&mut self, node: &'t Node) -> Visited {
        let name = match self.global_name(node) {
            Ok((_, name)) => name,
            Err(mistake) => return Ok(mistake),
        };
        let id = self.id(node.leaf(Part::Operator));
        let args = self.args(node.node(Part::Items))?;
        Ok(self.call_or_macro(id, &name, None, args))
    }

    fn list(&mut self, node: &'t Node) -> Visited {
        let id = self.id(node.leaf(Part::Operator));
        let mut elements = Vec::new();
        let mut optional = Vec::new();
        let items = self
            .get(node.node(Part::Items))
            .into_iter()
            .flat_map(|list| list.nodes(Part::Value));
        for item in items.filter_map(|item| self.tree.get(item)) {
            let element = self.expr(item.node(Part::First))?;
            if let Some(mark) = item.leaf(Part::Optional) {
                self.check_optional(mark.offset());
                optional.push(elements.len() as u32);
            }
            elements.push(element);
        }
        let kind = ExprKind::List { elements, optional };
        Ok(Expr { id, kind })
    }

    /// Reports a question mark where optional syntax is off; `false` if it is.
    fn check_optional(&mut self, offset: u32) -> bool {
        if !self.options.optional_syntax {
            self.reporter.error(Some(offset), "unsupported syntax '?'");
        }
        self.options.optional_syntax
    }

    fn map(&mut self, node: &'t Node) -> Visited {
        let id = self.id(node.leaf(Part::Operator));
        let mut entries = Vec::new();
        if let Some(list) = self.get(node.node(Part::Items)) {
            let mut keys = list.nodes(Part::Key);
            let mut values = list.nodes(Part::Value);
            for colon in list.leaves(Part::Operator) {
                let id = self.id(Some(colon));
                let (Some(key), Some(value)) = (self.get(keys.next()), values.next()) else {
                    break;
                };
                let optional = key.leaf(Part::Optional).is_some();
                if optional && !self.check_optional(key.offset) {
                    continue;
                }
                entries.push(MapEntry {
                    id,
                    key: self.expr(key.node(Part::First))?,
                    value: self.expr(Some(value))?,
                    optional,
                });
            }
        }
        let kind = ExprKind::Map(entries);
        Ok(Expr { id, kind })
    }

    fn structure(&mut self, node: &'t Node) -> Visited {
        let mut name = String::new();
        for part in node.leaves(Part::Name) {
            if !name.is_empty() || node.leaf(Part::LeadingDot).is_some() {
                name.push('.');
            }
            name.push_str(part.text(self.source));
        }
        let id = self.id(node.leaf(Part::Operator));
        let mut fields = Vec::new();
        if let Some(list) = self.get(node.node(Part::Items)) {
            let mut colons = list.leaves(Part::Operator);
            let mut values = list.nodes(Part::Value);
            for field in list.nodes(Part::Key).filter_map(|field| self.tree.get(field)) {
                let (Some(colon), Some(value)) = (colons.next(), values.next()) else {
                    break;
                };
                let id = self.id(Some(colon));
                let optional = field.leaf(Part::Optional).is_some();
                if optional && !self.check_optional(field.offset) {
                    continue;
                }
                let name = match self.field_name(self.get(field.node(Part::Name))) {
                    Ok(name) => self.builder.name(name),
                    Err(message) => {
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

    fn literal(&mut self, node: &'t Node, form: Form) -> Expr {
        let text = node.leaf(Part::Literal).map_or("", |leaf| leaf.text(self.source));
        let sign = if node.leaf(Part::Sign).is_some() {
            Sign::Minus
        } else {
            Sign::None
        };
        let value: Result<Literal, Invalid> = match form {
            Form::Int => literal::int(sign, text),
            Form::Uint => literal::uint(text),
            Form::Double => literal::double(sign, text),
            Form::String => literal::string(text),
            Form::Bytes => literal::bytes(text),
            Form::True => Ok(Literal::Bool(true)),
            Form::False => Ok(Literal::Bool(false)),
            Form::Null => Ok(Literal::Null),
            _ => return self.unknown(),
        };
        match value {
            Ok(value) => self.builder.literal(node.offset, value),
            // A string that cannot be unescaped is still a string.
            Err(message) if matches!(form, Form::String | Form::Bytes) => {
                self.reporter.error(Some(node.offset), message);
                self.builder.literal(node.offset, Literal::String("".into()))
            }
            Err(message) => self.mistake(node.offset, message),
        }
    }
}
