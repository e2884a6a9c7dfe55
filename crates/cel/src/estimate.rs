//! Static cost estimation: bounds on the cost of an expression, from its AST and the size limits of schemas.

mod estimator;
pub mod formula;
mod path;

use crate::ast::Literal;
use crate::check::CheckedExpr;
use crate::shape::Shape;
use crate::stack::with_room;
use crate::types::CelType;

/// Estimates the cost of an expression. `root` is the shape of the variables; without it, only literals have known
/// sizes.
///
/// All variables have the same shape, as `self` and `oldSelf` do.
pub fn estimate(checked: &CheckedExpr, root: Option<&Shape>) -> Bounds {
    estimate_with(checked, root, MapMembers::Unsized)
}

/// Estimates the cost of an expression about a device, whose attributes have known sizes: `device.attributes["a"].b`.
pub fn estimate_selector(checked: &CheckedExpr, device: &Shape) -> Bounds {
    estimate_with(checked, Some(device), MapMembers::Attributes)
}

fn estimate_with(checked: &CheckedExpr, root: Option<&Shape>, members: MapMembers) -> Bounds {
    with_room(checked.ast.depth, || {
        // The estimator recurses over the expression, so a deep one needs a stack of its own.
        estimator::CostEstimator::new(checked, root, members).cost(&checked.ast.root)
    })
}

/// The sizes of values that an expression selects from a map by name (`m.a`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MapMembers {
    /// Unknown, as in rules of CRDs.
    Unsized,
    /// Those of the map's values, if these have no type.
    Attributes,
}

/// The cost per character of a string.
pub const TEXT_FACTOR: f64 = 0.1;
/// The cost per character of a regular expression and unit of string cost.
pub const REGEX_FACTOR: f64 = 0.25;
/// The cost of a list literal.
pub const LIST_COST: u64 = 10;
/// The cost of a map literal.
pub const MAP_COST: u64 = 30;
/// The cost of a message literal.
pub const STRUCT_COST: u64 = 40;

/// Lower and upper bounds of a size (characters, bytes, elements, entries) or a cost. All arithmetic saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub min: u64,
    /// The upper bound.
    pub max: u64,
}

impl Bounds {
    /// No bounds.
    pub const UNKNOWN: Bounds = Bounds {
        min: 0,
        max: u64::MAX,
    };

    /// Between two bounds.
    pub const fn new(min: u64, max: u64) -> Bounds {
        Bounds { min, max }
    }

    /// Exactly `n`.
    pub const fn exactly(n: u64) -> Bounds {
        Bounds::new(n, n)
    }

    /// At most `n`.
    pub const fn up_to(n: u64) -> Bounds {
        Bounds::new(0, n)
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Bounds) -> Bounds {
        Bounds::new(
            self.min.saturating_add(other.min),
            self.max.saturating_add(other.max),
        )
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: Bounds) -> Bounds {
        Bounds::new(
            self.min.saturating_mul(other.min),
            self.max.saturating_mul(other.max),
        )
    }

    /// Multiplied by a factor, rounded up.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Bounds {
        Bounds::new(scaled(self.min, factor), scaled(self.max, factor))
    }

    /// The union.
    #[must_use]
    pub fn or(self, other: Bounds) -> Bounds {
        Bounds::new(self.min.min(other.min), self.max.max(other.max))
    }
}

/// `n` times `factor`, rounded up; the float-to-integer conversion saturates.
pub fn scaled(n: u64, factor: f64) -> u64 {
    let product = n as f64 * factor;
    // `as` saturates, which stands for "no bound", like the overflow checks of cel-go.
    let below = product as u64;
    below.saturating_add(u64::from((below as f64) < product))
}

/// The cost of a pass over `n` characters: `n` times [`TEXT_FACTOR`], rounded up.
#[inline]
pub fn text_cost(n: u64) -> u64 {
    // Up to here, the rounded float product equals division by ten, rounded up; no text is longer.
    const EXACT: u64 = 1 << 50;
    if n < EXACT {
        n.div_ceil(10)
    } else {
        scaled(n, TEXT_FACTOR)
    }
}

/// The estimate of a call without its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallEstimate {
    /// The cost.
    pub cost: Bounds,
    /// The size of the result, if the formula knows it.
    pub result: Option<Bounds>,
}

impl CallEstimate {
    /// An estimate without a result size.
    pub const fn cost(cost: Bounds) -> CallEstimate {
        CallEstimate { cost, result: None }
    }

    /// An estimate with a result size.
    pub const fn sized(cost: Bounds, result: Bounds) -> CallEstimate {
        let result = Some(result);
        CallEstimate { cost, result }
    }
}

/// An operand as formulas see it.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Its type.
    pub ty: &'a CelType,
    /// Its size, if the expression or schema bounds it.
    pub size: Option<Bounds>,
    /// The size of its elements, if the schema bounds it.
    pub element_size: Option<Bounds>,
    /// Its value, if it is a constant.
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
            // A negative constant counts as 0, as in cel-go's `nodeAsUintValue`; the call itself fails at run time.
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
        fn text_cost_is_scaled(n in any::<u64>(), bits in 0_u32..64) {
            for n in [n >> bits, (n >> bits) / 10 * 10, (1_u64 << bits).wrapping_sub(n % 3)] {
                prop_assert_eq!(text_cost(n), scaled(n, TEXT_FACTOR));
            }
        }
    }
}
