//! Expressions after parsing and macro expansion.

use crate::stack::{SHALLOW, with_room};
use std::sync::Arc;

/// Identifies a node within its [`Ast`]; dense, from 1. The checker keeps its results in vectors indexed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprId(pub u32);

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The source text.
    pub source: Arc<str>,
    /// The root node.
    pub root: Expr,
    /// The offset of each node in code points, indexed by `ExprId`; `u32::MAX` for nodes without a position. Index 0 is
    /// unused.
    pub offsets: Vec<u32>,
    /// The depth of the tree.
    pub(crate) depth: usize,
}

impl Ast {
    pub(crate) fn new(source: &str, root: Expr, offsets: Vec<u32>) -> Self {
        let mut depth = 0;
        // Measured with an explicit stack: until the depth is known, recursion might overflow the thread's stack.
        let mut pending = vec![(&root, 1)];
        while let Some((e, level)) = pending.pop() {
            depth = level.max(depth);
            e.for_each_child(|child| pending.push((child, level + 1)));
        }
        Ast {
            source: source.into(),
            root,
            offsets,
            depth,
        }
    }

    /// The offset of a node in code points.
    pub fn offset(&self, id: ExprId) -> Option<u32> {
        self.offsets
            .get(id.0 as usize)
            .copied()
            .filter(|o| *o != u32::MAX)
    }

    /// One more than the largest node number: the length of a vector indexed by [`ExprId`].
    pub fn id_limit(&self) -> usize {
        self.offsets.len()
    }
}

/// Dropping a deep tree recurses, so it needs stack as well.
impl Drop for Ast {
    fn drop(&mut self) {
        if self.depth > SHALLOW {
            let nothing = Expr {
                id: ExprId(0),
                kind: ExprKind::Literal(Literal::Null),
            };
            // Moved out, because fields are dropped only after this function, on the thread's own stack.
            let root = std::mem::replace(&mut self.root, nothing);
            with_room(self.depth, || drop(root));
        }
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The identifier.
    pub id: ExprId,
    /// The kind.
    pub kind: ExprKind,
}

impl Expr {
    /// Calls `f` with every child, in the order of the source.
    pub fn for_each_child<'e>(&'e self, mut f: impl FnMut(&'e Expr)) {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select { operand, .. } => f(operand),
            ExprKind::Call { target, args, .. } => {
                target.iter().for_each(|t| f(t));
                args.iter().for_each(f);
            }
            ExprKind::List { elements, .. } => elements.iter().for_each(f),
            ExprKind::Map(entries) => {
                for entry in entries {
                    f(&entry.key);
                    f(&entry.value);
                }
            }
            ExprKind::Struct { fields, .. } => fields.iter().for_each(|field| f(&field.value)),
            ExprKind::Comprehension(fold) => {
                for part in [
                    &fold.range,
                    &fold.accu_init,
                    &fold.condition,
                    &fold.step,
                    &fold.result,
                ] {
                    f(part);
                }
            }
        }
    }

    /// Returns the number of nodes without entries and fields, or `None` if it exceeds `limit`.
    pub fn nodes_within(&self, limit: usize) -> Option<usize> {
        // Stops at the limit, so that the check of a huge tree costs no more than that of one at the limit.
        let mut room = limit.checked_sub(1);
        self.for_each_child(|child| {
            room = room.and_then(|room| room.checked_sub(child.nodes_within(room)?));
        });
        Some(limit - room?)
    }
}

/// The kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A name; absolute names begin with a dot.
    Ident(Arc<str>),
    /// `operand.field`, or with `test` the presence test `has(operand.field)`.
    Select {
        /// The operand.
        operand: Box<Expr>,
        /// The field's name.
        field: Arc<str>,
        /// True if this is a presence test.
        test: bool,
    },
    /// A function or operator call; operators have cel-spec's names (`_+_`, `_?_:_`, `_[_]`, `_?._`, `_[?_]`, `@in`, …).
    Call {
        /// The function's name.
        function: Arc<str>,
        /// The receiver of a member call.
        target: Option<Box<Expr>>,
        /// The arguments.
        args: Vec<Expr>,
    },
    /// `[a, ?b]`
    List {
        /// The elements.
        elements: Vec<Expr>,
        /// The indices of those marked with `?`, ascending.
        optional: Vec<u32>,
    },
    /// `{k: v, ?k: v}`
    Map(Vec<MapEntry>),
    /// `Type{f: v, ?f: v}`
    Struct {
        /// The type's name as written.
        name: Arc<str>,
        /// The fields.
        fields: Vec<StructField>,
    },
    /// A comprehension, to which macros such as `all` expand.
    Comprehension(Box<Comprehension>),
}

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The identifier.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// True if it is marked with `?`.
    pub optional: bool,
}

/// A field of a struct literal.
#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    /// The identifier.
    pub id: ExprId,
    /// The field's name.
    pub name: Arc<str>,
    /// The value.
    pub value: Expr,
    /// True if it is marked with `?`.
    pub optional: bool,
}

/// A comprehension over a list or map.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map.
    pub range: Expr,
    /// The element of a list or key of a map; with two variables the index or key.
    pub iter_var: Arc<str>,
    /// With two variables, the element or value.
    pub iter_var2: Option<Arc<str>>,
    /// The accumulator's name (`@result` in macros).
    pub accu_var: Arc<str>,
    /// The initial value of the accumulator.
    pub accu_init: Expr,
    /// The loop condition, evaluated before each iteration.
    pub condition: Expr,
    /// The next value of the accumulator.
    pub step: Expr,
    /// The result.
    pub result: Expr,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`
    Double(f64),
    /// `'text'`
    String(Arc<str>),
    /// `b'bytes'`
    Bytes(Arc<[u8]>),
}
