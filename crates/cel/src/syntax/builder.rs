//! The builder of an AST, which assigns identifiers and positions.

use crate::ast::{Comprehension, Expr, ExprId, ExprKind, Literal, MapEntry, StructField};
use std::sync::Arc;

/// The position of a node without one.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The number of names that are interned per tree. Searching a longer list costs more than it saves.
const MAX_SHARED_NAMES: usize = 32;

/// Builds nodes.
#[derive(Debug)]
pub(crate) struct Builder {
    offsets: Vec<u32>,
    names: Vec<Arc<str>>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            // Node numbers begin at 1.
            offsets: vec![NOWHERE],
            names: Vec::new(),
        }
    }

    /// The offset of each node, indexed by identifier.
    pub(crate) fn into_offsets(self) -> Vec<u32> {
        self.offsets
    }

    /// Assigns the next identifier to a node at this offset.
    pub(crate) fn id(&mut self, offset: u32) -> ExprId {
        let id = ExprId(self.offsets.len() as u32);
        self.offsets.push(offset);
        id
    }

    /// Sets the offset of an existing node.
    pub(crate) fn set_offset(&mut self, id: ExprId, at: u32) {
        if let Some(offset) = self.offsets.get_mut(id.0 as usize) {
            *offset = at;
        }
    }

    /// Releases the identifier of a call that a macro has replaced.
    pub(crate) fn release(&mut self, id: ExprId) {
        let index = id.0 as usize;
        // The next node then gets the number again, as in cel-go: the numbers of all later nodes depend on it.
        if index + 1 == self.offsets.len() {
            self.offsets.pop();
        } else if let Some(offset) = self.offsets.get_mut(index) {
            *offset = NOWHERE;
        }
    }

    /// The offset of a node.
    pub(crate) fn offset(&self, id: ExprId) -> u32 {
        self.offsets.get(id.0 as usize).copied().unwrap_or(NOWHERE)
    }

    /// Interns a name.
    pub(crate) fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.iter().find(|n| n.as_ref() == name) {
            return Arc::clone(known);
        }
        // Operators and field names repeat within a rule, so most names are shared.
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

    /// Builds a balanced tree from a chain of one commutative operator. Every operand but the first comes with the
    /// identifier of the operator before it.
    pub(crate) fn balance(&mut self, function: &str, first: Expr, mut rest: Vec<(ExprId, Expr)>) -> Expr {
        // The split follows cel-go's `balancedTree`, because the lower bound of the estimated cost depends on the shape
        // of the tree.
        let after = rest.split_off((rest.len() / 2 + 1).min(rest.len()));
        let Some((id, middle)) = rest.pop() else {
            return first;
        };
        let left = self.balance(function, first, rest);
        let right = self.balance(function, middle, after);
        self.call(id, function, vec![left, right])
    }

    /// Returns whether the tree has more than `limit` nodes.
    pub(crate) fn copy_exceeds(&self, expr: &Expr, limit: usize) -> bool {
        limit
            .checked_sub(self.offsets.len())
            .and_then(|room| expr.nodes_within(room))
            .is_none()
    }

    /// Copies a tree with new identifiers and the original offsets. Map entries and struct fields get the offset
    /// `entries` instead.
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
                // UPSTREAM: the arguments are copied before the receiver, which determines their numbers.
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
