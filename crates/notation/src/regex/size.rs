//! How large a pattern is once it is compiled, told without compiling it.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};
use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};

/// What a state takes, with the states without a character that may join it to others.
const STATE: usize = 160;
/// What one byte of a character takes: a state, and the step that leads there.
const BYTE: usize = 48;
/// What a range of single bytes takes.
const STEP: usize = 8;

/// What an engine takes for itself, whatever the pattern: to begin anywhere, and to tell that it matches.
const ENGINE: usize = 4096;

/// How many bytes the engine of a pattern takes at most.
pub(super) fn largest(tree: &Hir) -> usize {
    ENGINE.saturating_add(part(tree))
}

/// How many bytes a part takes at most. Every repetition of it is held anew.
fn part(tree: &Hir) -> usize {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => STATE,
        HirKind::Literal(literal) => STATE.saturating_add(BYTE.saturating_mul(literal.0.len())),
        HirKind::Class(Class::Unicode(class)) => STATE.saturating_add(characters(class)),
        HirKind::Class(Class::Bytes(class)) => STATE.saturating_add(STEP * class.ranges().len()),
        HirKind::Capture(capture) => part(&capture.sub).saturating_add(2 * STATE),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min).max(1);
            part(&repetition.sub)
                .saturating_add(STATE)
                .saturating_mul(usize::try_from(times).unwrap_or(usize::MAX))
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let parts = parts.iter().map(|tree| part(tree).saturating_add(STEP));
            parts.fold(STATE, usize::saturating_add)
        }
    }
}

/// What a set of characters takes: a step for each of its bytes, if they are single ones, or a path of states for each
/// sequence of bytes, which begins with what it has in common with the one before.
fn characters(class: &ClassUnicode) -> usize {
    if class.is_ascii() {
        return STEP * class.ranges().len();
    }
    let ranges = class.ranges().iter();
    let sequences = ranges.flat_map(|range| Utf8Sequences::new(range.start(), range.end()));
    let mut size = 0;
    let mut last: Option<Utf8Sequence> = None;
    for sequence in sequences {
        let before = last.as_ref().map_or(&[][..], Utf8Sequence::as_slice);
        let common = sequence.as_slice().iter().zip(before).take_while(|(a, b)| a == b);
        size += BYTE * (sequence.len() - common.count()) + STEP;
        last = Some(sequence);
    }
    size
}
