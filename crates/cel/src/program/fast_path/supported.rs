//! Which steps a fast_path walk may get through.

use crate::program::op::{
    Attribute, AttributeMode, AttributeRoot, Conditional, FoldOp, FoldStep, Op, Qualifier, QualifierKey,
    UnaryKind,
};
use crate::stack::SHALLOW;
use crate::val::Owned;

/// Whether a program may be tried this way.
pub(in crate::program) fn is_supported(root: &Op, levels: usize) -> bool {
    levels <= SHALLOW && root.is_supported()
}

impl Op {
    /// Whether this can give nothing but a boolean.
    #[inline]
    pub(in crate::program) fn is_test(&self) -> bool {
        match self {
            Op::And(_)
            | Op::Or(_)
            | Op::NotStrictlyFalse(_)
            | Op::Equality(_)
            | Op::Comparison(_)
            | Op::InSet(_) => true,
            Op::Attribute(attribute) => attribute.mode == AttributeMode::Presence,
            Op::Unary(call) => call.operation == UnaryKind::Not,
            _ => false,
        }
    }

    /// Whether a fast_path walk may get through.
    fn is_supported(&self) -> bool {
        let all = |ops: &[Op]| ops.iter().all(Op::is_supported);
        match self {
            Op::Const(value) => !matches!(value, Owned::Optional(_)),
            Op::Attribute(attribute) => attribute.is_supported(),
            Op::Conditional(conditional) => {
                let Conditional {
                    condition,
                    yes,
                    no,
                    path,
                    mode: _,
                } = &**conditional;
                path.is_empty() && [condition, yes, no].into_iter().all(Op::is_supported)
            }
            Op::And(terms) | Op::Or(terms) => all(&**terms),
            Op::NotStrictlyFalse(term) => term.is_supported(),
            Op::Equality(equality) => equality.left.is_supported() && equality.right.is_supported(),
            Op::Unary(call) => call.arg.is_supported(),
            Op::Binary(call) | Op::Concat(call) => call.left.is_supported() && call.right.is_supported(),
            Op::Comparison(comparison) => {
                comparison.call.left.is_supported() && comparison.call.right.is_supported()
            }
            Op::Call(call) => all(&call.args),
            Op::InSet(member) => member.value.is_supported(),
            Op::List(elements) => elements.iter().all(|e| e.op.is_supported()),
            Op::Map(entries) => entries
                .iter()
                .all(|(key, value)| key.is_supported() && value.op.is_supported()),
            Op::Fold(fold) => fold.is_supported(),
            Op::OptionalOr(optional_or) => {
                optional_or.optional.is_supported() && optional_or.otherwise.is_supported()
            }
            Op::Block(block) => all(&block.values) && block.result.is_supported(),
            Op::Message(_) | Op::Unresolved(_) => false,
        }
    }
}

impl Attribute {
    fn is_supported(&self) -> bool {
        let root = match &self.root {
            AttributeRoot::Input(_) | AttributeRoot::Local(_) => true,
            AttributeRoot::Value(op) => self.mode == AttributeMode::Value && op.is_supported(),
        };
        let fast_path = |qualifier: &Qualifier| {
            (!qualifier.optional || self.mode == AttributeMode::Value)
                && match &qualifier.key {
                    QualifierKey::Name(_) => true,
                    QualifierKey::Const(key) => !matches!(key, Owned::Optional(_)),
                    QualifierKey::Computed(op) => op.is_supported(),
                }
        };
        root && self.path.iter().all(fast_path)
    }
}

impl FoldOp {
    fn is_supported(&self) -> bool {
        let step = match &self.step {
            FoldStep::All { predicate } | FoldStep::Exists { predicate } => predicate.is_supported(),
            FoldStep::Replace { condition, step } => {
                self.init.is_supported() && condition.is_supported() && step.is_supported()
            }
            FoldStep::Append { filter, element } => {
                filter.as_ref().is_none_or(Op::is_supported) && element.is_supported()
            }
            FoldStep::Insert { .. } => false,
        };
        step && self.range.is_supported() && self.result.is_supported()
    }
}
