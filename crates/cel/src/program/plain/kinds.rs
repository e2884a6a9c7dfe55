//! Which steps a plain walk may get through.

use crate::program::node::{Access, Choice, Fold, Key, Mode, Node, Operation, Qualifier, Root, Step};
use crate::stack::SHALLOW;
use crate::val::Owned;

/// Whether a program may be tried this way.
pub(in crate::program) fn is_plain(root: &Node, levels: usize) -> bool {
    levels <= SHALLOW && root.is_plain()
}

impl Node {
    /// Whether this can give nothing but a boolean.
    #[inline]
    pub(in crate::program) fn is_test(&self) -> bool {
        match self {
            Node::And(_)
            | Node::Or(_)
            | Node::NotStrictlyFalse(_)
            | Node::Equality(_)
            | Node::Comparison(_)
            | Node::Member(_) => true,
            Node::Access(access) => access.mode == Mode::Presence,
            Node::Unary(call) => call.operation == Operation::Not,
            _ => false,
        }
    }

    /// Whether a plain walk may get through.
    fn is_plain(&self) -> bool {
        let all = |nodes: &[Node]| nodes.iter().all(Node::is_plain);
        match self {
            Node::Const(value) => !matches!(value, Owned::Optional(_)),
            Node::Access(access) => access.is_plain(),
            Node::Choice(choice) => {
                let Choice {
                    condition,
                    yes,
                    no,
                    path,
                    mode: _,
                } = &**choice;
                path.is_empty() && [condition, yes, no].into_iter().all(Node::is_plain)
            }
            Node::And(terms) | Node::Or(terms) => all(&**terms),
            Node::NotStrictlyFalse(term) => term.is_plain(),
            Node::Equality(equality) => equality.left.is_plain() && equality.right.is_plain(),
            Node::Unary(call) => call.arg.is_plain(),
            Node::Binary(call) | Node::Join(call) => call.left.is_plain() && call.right.is_plain(),
            Node::Comparison(comparison) => {
                comparison.call.left.is_plain() && comparison.call.right.is_plain()
            }
            Node::Call(call) => all(&call.args),
            Node::Member(member) => member.value.is_plain(),
            Node::List(elements) => elements.iter().all(|e| e.node.is_plain()),
            Node::Map(entries) => entries
                .iter()
                .all(|(key, value)| key.is_plain() && value.node.is_plain()),
            Node::Fold(fold) => fold.is_plain(),
            Node::Alternative(alternative) => {
                alternative.optional.is_plain() && alternative.otherwise.is_plain()
            }
            Node::Block(block) => all(&block.values) && block.result.is_plain(),
            Node::Message(_) | Node::Unresolved(_) => false,
        }
    }
}

impl Access {
    fn is_plain(&self) -> bool {
        let root = match &self.root {
            Root::Input(_) | Root::Local(_) => true,
            Root::Value(node) => self.mode == Mode::Value && node.is_plain(),
        };
        let plain = |qualifier: &Qualifier| {
            (!qualifier.optional || self.mode == Mode::Value)
                && match &qualifier.key {
                    Key::Name(_) => true,
                    Key::Const(key) => !matches!(key, Owned::Optional(_)),
                    Key::Node(node) => node.is_plain(),
                }
        };
        root && self.path.iter().all(plain)
    }
}

impl Fold {
    fn is_plain(&self) -> bool {
        let step = match &self.step {
            Step::All { predicate } | Step::Exists { predicate } => predicate.is_plain(),
            Step::Replace { condition, step } => {
                self.init.is_plain() && condition.is_plain() && step.is_plain()
            }
            Step::Append { filter, element } => {
                filter.as_ref().is_none_or(Node::is_plain) && element.is_plain()
            }
            Step::Insert { .. } => false,
        };
        step && self.range.is_plain() && self.result.is_plain()
    }
}
