//! Numbers and places nodes while a tree is built.

use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use std::sync::Arc;

/// The place of a node that has none.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// So many names are shared within one tree; longer lists cost more to search than they save.
const MAX_SHARED_NAMES: usize = 32;

/// Makes nodes.
#[derive(Debug)]
pub(crate) struct Builder {
    offsets: Vec<u32>,
    names: Vec<Arc<str>>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            // Node numbers begin with 1.
            offsets: vec![NOWHERE],
            names: Vec::new(),
        }
    }

    /// Where each node stands, indexed by its number.
    pub(crate) fn into_offsets(self) -> Vec<u32> {
        self.offsets
    }

    /// The next number, at this offset.
    pub(crate) fn id(&mut self, offset: u32) -> ExprId {
        let id = ExprId(self.offsets.len() as u32);
        self.offsets.push(offset);
        id
    }

    /// Places a node that was numbered before its place was known.
    pub(crate) fn place(&mut self, id: ExprId, at: u32) {
        if let Some(offset) = self.offsets.get_mut(id.0 as usize) {
            *offset = at;
        }
    }

    /// Gives up the number of a call that a macro has replaced.
    pub(crate) fn release(&mut self, id: ExprId) {
        let index = id.0 as usize;
        if index + 1 == self.offsets.len() {
            self.offsets.pop();
        } else if let Some(offset) = self.offsets.get_mut(index) {
            *offset = NOWHERE;
        }
    }

    /// Where a node stands.
    pub(crate) fn offset(&self, id: ExprId) -> u32 {
        self.offsets.get(id.0 as usize).copied().unwrap_or(NOWHERE)
    }

    /// A name; the same name is the same allocation, as far as the first few are concerned.
    pub(crate) fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.iter().find(|n| n.as_ref() == name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = name.into();
        if self.names.len() < MAX_SHARED_NAMES {
            self.names.push(Arc::clone(&new));
        }
        new
    }

    /// A constant.
    pub(crate) fn literal(&mut self, offset: u32, literal: Literal) -> Expr {
        Expr {
            id: self.id(offset),
            kind: ExprKind::Literal(literal),
        }
    }

    /// A name.
    pub(crate) fn ident(&mut self, offset: u32, name: &str) -> Expr {
        Expr {
            id: self.id(offset),
            kind: ExprKind::Ident(self.name(name)),
        }
    }

    /// A call of a global function or operator.
    pub(crate) fn call(&mut self, id: ExprId, function: &str, args: Vec<Expr>) -> Expr {
        let kind = ExprKind::Call {
            function: self.name(function),
            target: None,
            args,
        };
        Expr { id, kind }
    }

    /// A call of a member function.
    pub(crate) fn member_call(&mut self, id: ExprId, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let kind = ExprKind::Call {
            function: self.name(function),
            target: Some(Box::new(target)),
            args,
        };
        Expr { id, kind }
    }

    /// Joins the operands of a chain of one commutative operator into a balanced tree. Before every operand but the
    /// first stands an operator, whose number comes with it.
    pub(crate) fn balance(&mut self, function: &str, first: Expr, mut rest: Vec<(ExprId, Expr)>) -> Expr {
        let after = rest.split_off((rest.len() / 2 + 1).min(rest.len()));
        let Some((id, middle)) = rest.pop() else {
            return first;
        };
        let left = self.balance(function, first, rest);
        let right = self.balance(function, middle, after);
        self.call(id, function, vec![left, right])
    }

    /// Whether a copy of this tree would make more than `limit` nodes.
    pub(crate) fn copy_exceeds(&self, expr: &Expr, limit: usize) -> bool {
        limit
            .checked_sub(self.offsets.len())
            .and_then(|room| expr.nodes_within(room))
            .is_none()
    }

    /// A copy of a tree in which every node has a number of its own, at the place of the original. The entries of
    /// maps and the fields of structs stand at `entries` instead.
    pub(crate) fn copy(&mut self, expr: &Expr, entries: u32) -> Expr {
        let id = self.id(self.offset(expr.id));
        let kind = match &expr.kind {
            ExprKind::Literal(literal) => ExprKind::Literal(literal.clone()),
            ExprKind::Ident(name) => ExprKind::Ident(Arc::clone(name)),
            ExprKind::Select { operand, field, test } => ExprKind::Select {
                operand: Box::new(self.copy(operand, entries)),
                field: Arc::clone(field),
                test: *test,
            },
            ExprKind::Call {
                function,
                target,
                args,
            } => {
                // The arguments come before the receiver: numbers show it.
                let args = args.iter().map(|a| self.copy(a, entries)).collect();
                ExprKind::Call {
                    function: Arc::clone(function),
                    target: target.as_ref().map(|t| Box::new(self.copy(t, entries))),
                    args,
                }
            }
            ExprKind::List { elements, optional } => ExprKind::List {
                elements: elements.iter().map(|e| self.copy(e, entries)).collect(),
                optional: optional.clone(),
            },
            ExprKind::Map(map) => {
                let copy = |e: &MapEntry| MapEntry {
                    id: self.id(entries),
                    key: self.copy(&e.key, entries),
                    value: self.copy(&e.value, entries),
                    optional: e.optional,
                };
                ExprKind::Map(map.iter().map(copy).collect())
            }
            ExprKind::Struct { name, fields } => {
                let copy = |f: &StructField| StructField {
                    id: self.id(entries),
                    name: Arc::clone(&f.name),
                    value: self.copy(&f.value, entries),
                    optional: f.optional,
                };
                ExprKind::Struct {
                    name: Arc::clone(name),
                    fields: fields.iter().map(copy).collect(),
                }
            }
            ExprKind::Comprehension(c) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&c.range, entries),
                iter_var: Arc::clone(&c.iter_var),
                iter_var2: c.iter_var2.clone(),
                accu_var: Arc::clone(&c.accu_var),
                accu_init: self.copy(&c.accu_init, entries),
                condition: self.copy(&c.condition, entries),
                step: self.copy(&c.step, entries),
                result: self.copy(&c.result, entries),
            })),
        };
        Expr { id, kind }
    }
}
