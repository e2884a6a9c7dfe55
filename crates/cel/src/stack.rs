//! Stack space for recursion over expressions.
//!
//! Expressions may nest deeply while the stack of a thread may be small. The depth of a tree is known before anything
//! recurses over it, and a recursion that might not fit runs on a stack of its own.

/// An upper bound of the stack per level, also in debug builds.
const PER_LEVEL: usize = 24 << 10;

/// The stack for functions and values at the leaves.
const LEAF: usize = 96 << 10;

/// Up to this depth, recursion fits any stack without a check.
pub(crate) const SHALLOW: usize = 24;

/// Runs a recursion of the given depth with enough stack.
pub(crate) fn with_room<T>(levels: usize, walk: impl FnOnce() -> T) -> T {
    let room = LEAF + levels * PER_LEVEL;
    stacker::maybe_grow(room, room, walk)
}
