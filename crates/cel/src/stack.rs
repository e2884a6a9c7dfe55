//! Room on the stack for walks that go as deep as an expression.
//!
//! Whatever walks the tree of an expression is recursive, and expressions may nest deep while a thread's stack may be
//! small. So the tree's depth is known before anything walks it, and a walk that might not fit gets a stack of its own.

/// More than any of the walks takes per level, even where the compiler optimizes nothing.
const PER_LEVEL: usize = 24 << 10;

/// What functions and values need at the end of a walk.
const LEAF: usize = 96 << 10;

/// A walk that goes no deeper fits any stack, and is not held up by asking.
pub(crate) const SHALLOW: usize = 24;

/// Runs a walk that goes so many levels deep.
pub(crate) fn with_room<T>(levels: usize, walk: impl FnOnce() -> T) -> T {
    let room = LEAF + levels * PER_LEVEL;
    stacker::maybe_grow(room, room, walk)
}
