//! An upper bound of the compiled size of a pattern, without compiling it.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind};
use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};

/// The size of a state, with its epsilon states.
const STATE: usize = 160;
/// The size per byte of a character: a state and its transition.
const BYTE: usize = 48;
/// The size of a range of single bytes.
const STEP: usize = 8;

/// The fixed size of an engine: the unanchored prefix and the match state.
const ENGINE: usize = 4096;

/// The maximum size of the engine of a pattern, in bytes.
pub(super) fn largest(tree: &Hir) -> usize {
    ENGINE.saturating_add(part(tree))
}

/// The maximum size of a part, in bytes. Counted repetitions are unrolled.
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

/// The size of a character class: a transition per byte for ASCII, or a chain of states per UTF-8 sequence, which shares
/// the prefix of the sequence before it.
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
