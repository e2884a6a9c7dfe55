//! Static cost: bounds on what an expression costs, from its text and from what schemas say about sizes.

mod estimator;
pub mod formula;
mod path;

use crate::ast::Literal;
use crate::check::CheckedExpr;
use crate::shape::Shape;
use crate::stack::with_room;
use crate::types::CelType;

/// Bounds on the cost of an expression. `root` says what the variables hold; without it, sizes are known only where
/// the expression itself shows them.
///
/// All variables are taken to be of that one shape, as `self` and `oldSelf` are.
pub fn estimate(checked: &CheckedExpr, root: Option<&Shape>) -> Bounds {
    with_room(checked.ast.depth, || {
        estimator::CostEstimator::new(checked, root).cost(&checked.ast.root)
    })
}

/// The cost of passing over one character of text.
pub const TEXT_FACTOR: f64 = 0.1;
/// The cost of one character of a regular expression, per unit of text cost.
pub const REGEX_FACTOR: f64 = 0.25;
/// The cost of making a list.
pub const LIST_COST: u64 = 10;
/// The cost of making a map.
pub const MAP_COST: u64 = 30;
/// The cost of making a message.
pub const STRUCT_COST: u64 = 40;

/// A least and a most: of a size (characters, bytes, elements, entries) or of a cost. All arithmetic saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl Bounds {
    /// Nothing known.
    pub const UNKNOWN: Bounds = Bounds {
        min: 0,
        max: u64::MAX,
    };

    /// Exactly `n`.
    pub const fn exactly(n: u64) -> Bounds {
        Bounds { min: n, max: n }
    }

    /// At most `n`.
    pub const fn up_to(n: u64) -> Bounds {
        Bounds { min: 0, max: n }
    }

    /// Both.
    #[must_use]
    pub fn plus(self, other: Bounds) -> Bounds {
        Bounds {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    /// So many times the other.
    #[must_use]
    pub fn times(self, other: Bounds) -> Bounds {
        Bounds {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Multiplied by a factor, rounded up.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Bounds {
        Bounds {
            min: scaled(self.min, factor),
            max: scaled(self.max, factor),
        }
    }

    /// Either.
    #[must_use]
    pub fn or(self, other: Bounds) -> Bounds {
        Bounds {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// `n` times `factor`, rounded up; the float-to-integer conversion saturates.
pub fn scaled(n: u64, factor: f64) -> u64 {
    let product = n as f64 * factor;
    let below = product as u64;
    below.saturating_add(u64::from((below as f64) < product))
}

/// What a pass over so many characters costs: `n` times [`TEXT_FACTOR`], rounded up.
#[inline]
pub fn text_cost(n: u64) -> u64 {
    // Up to here the product of floats, rounded up, is a tenth, rounded up; no text is longer.
    const EXACT: u64 = 1 << 50;
    if n < EXACT {
        n.div_ceil(10)
    } else {
        scaled(n, TEXT_FACTOR)
    }
}

/// What a call costs, its operands left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost.
    pub cost: Bounds,
    /// The size of the result, where it is known beyond what its type tells.
    pub result: Option<Bounds>,
}

impl CallEstimate {
    /// A cost alone.
    pub const fn cost(cost: Bounds) -> CallEstimate {
        CallEstimate { cost, result: None }
    }
}

/// An operand of a call, as far as a formula sees it.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Its type.
    pub ty: &'a CelType,
    /// Its size, where the expression or the schema tells.
    pub size: Option<Bounds>,
    /// The size of its elements, where the schema tells.
    pub element_size: Option<Bounds>,
    /// Its value, where it is a constant.
    pub literal: Option<&'a Literal>,
}

impl Operand<'_> {
    /// Its size.
    pub fn size(&self) -> Bounds {
        self.size.unwrap_or(Bounds::UNKNOWN)
    }

    /// The size of its elements.
    pub fn element_size(&self) -> Bounds {
        self.element_size.unwrap_or(Bounds::UNKNOWN)
    }

    /// The value of a constant integer: at least 0. `None` for everything else.
    pub fn constant_index(&self) -> Option<u64> {
        match self.literal {
            Some(Literal::Int(n)) => Some(u64::try_from(*n).unwrap_or(0)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cost_of_text_is_scaled(n in any::<u64>(), bits in 0_u32..64) {
            for n in [n >> bits, (n >> bits) / 10 * 10, (1_u64 << bits).wrapping_sub(n % 3)] {
                prop_assert_eq!(text_cost(n), scaled(n, TEXT_FACTOR));
            }
        }
    }
}
