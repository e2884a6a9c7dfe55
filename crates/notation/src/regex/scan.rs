//! A matcher for anchored patterns without alternatives, such as `^[^/]+` and `^[a-z]+:[0-9]{1,5}$`.
//!
//! Many patterns of CRDs are of this kind. The scan saves the memory and compile time of an engine and the set-up of a
//! search.

use regex_syntax::hir::{Class, ClassUnicode, Hir, HirKind, Look};

/// An anchored pattern as a sequence of runs. Each character belongs to exactly one run, so no backtracking
/// is needed.
#[derive(Debug)]
pub(super) struct PrefixScan {
    runs: Box<[Run]>,
    end: MatchEnd,
}

/// The possible ends of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchEnd {
    Anywhere,
    EndOfText,
}

/// A greedy run of characters of a set, within bounds.
#[derive(Clone, Copy, Debug)]
struct Run {
    set: ByteSet,
    min: usize,
    max: usize,
    /// The byte that ends the run, if there is exactly one. It is found with `memchr`.
    end: Option<u8>,
}

/// A set of characters: any of ASCII, and all or none of the others.
#[derive(Clone, Copy, Debug, Default)]
struct ByteSet {
    /// A bit for every byte of the UTF-8 encodings of its members.
    bytes: [u64; 4],
}

/// Longer patterns are left to the engine.
const MAX_RUNS: usize = 64;

impl PrefixScan {
    /// Compiles a pattern; `None` if it is not of this kind.
    pub(super) fn new(pattern: &Hir) -> Option<Self> {
        let mut parts = Vec::new();
        flatten(pattern, &mut parts);
        let (first, mut parts) = parts.split_first()?;
        if !matches!(first.kind(), HirKind::Look(Look::Start)) {
            return None;
        }
        let mut end = MatchEnd::Anywhere;
        if let Some((last, rest)) = parts.split_last()
            && matches!(last.kind(), HirKind::Look(Look::End))
        {
            (end, parts) = (MatchEnd::EndOfText, rest);
        }
        let mut runs = Vec::new();
        for part in parts {
            add_runs(part, &mut runs)?;
        }
        let fits = runs.len() <= MAX_RUNS && leaves_no_choice(&runs);
        fits.then(|| PrefixScan {
            runs: runs.into(),
            end,
        })
    }

    /// Returns the match. There is at most one, because the pattern is anchored.
    pub(super) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.get(..self.length(text)?)
    }

    /// The length of the match.
    pub(super) fn length(&self, text: &str) -> Option<usize> {
        let mut rest = text.as_bytes();
        for run in &self.runs {
            let length = run.length(rest);
            if length < run.min {
                return None;
            }
            rest = rest.get(length..)?;
        }
        (self.end == MatchEnd::Anywhere || rest.is_empty()).then(|| text.len() - rest.len())
    }
}

/// Flattens concatenations and groups. Captures are not needed.
fn flatten<'h>(tree: &'h Hir, parts: &mut Vec<&'h Hir>) {
    match tree.kind() {
        HirKind::Concat(each) => each.iter().for_each(|part| flatten(part, parts)),
        HirKind::Capture(group) => flatten(&group.sub, parts),
        HirKind::Empty => {}
        _ => parts.push(tree),
    }
}

fn add_runs(part: &Hir, runs: &mut Vec<Run>) -> Option<()> {
    match part.kind() {
        HirKind::Literal(literal) => {
            for byte in &literal.0 {
                runs.push(Run::new(ByteSet::byte(*byte)?, 1, Some(1))?);
            }
        }
        HirKind::Class(class) => runs.push(Run::new(ByteSet::from_class(class)?, 1, Some(1))?),
        HirKind::Repetition(repetition) => {
            let mut of = &*repetition.sub;
            while let HirKind::Capture(group) = of.kind() {
                of = &group.sub;
            }
            let set = match of.kind() {
                HirKind::Class(class) => ByteSet::from_class(class)?,
                HirKind::Literal(literal) => match *literal.0 {
                    [byte] => ByteSet::byte(byte)?,
                    _ => return None,
                },
                _ => return None,
            };
            // A lazy run would stop at its minimum.
            if !repetition.greedy && repetition.max != Some(repetition.min) {
                return None;
            }
            runs.push(Run::new(set, repetition.min, repetition.max)?);
        }
        _ => return None,
    }
    Some(())
}

/// Returns whether no greedy run can consume a character that a later run needs.
fn leaves_no_choice(runs: &[Run]) -> bool {
    runs.iter().enumerate().all(|(i, run)| {
        let mut later = runs.iter().skip(i + 1);
        let required = later.clone().position(|other| other.min > 0);
        // Optional runs may be empty, so a run can meet all runs up to the first required one.
        let reachable = required.map_or(usize::MAX, |at| at + 1);
        run.min == run.max
            || later
                .by_ref()
                .take(reachable)
                .all(|other| !run.set.meets(&other.set))
    })
}

impl Run {
    /// Creates a run. It counts bytes, so bounds other than none and one-or-more need ASCII.
    fn new(set: ByteSet, min: u32, max: Option<u32>) -> Option<Self> {
        if set.is_beyond_ascii() && (min > 1 || max.is_some()) {
            return None;
        }
        let end = if max.is_none() { set.only_missing() } else { None };
        Some(Run {
            set,
            min: usize::try_from(min).ok()?,
            max: match max {
                Some(max) => usize::try_from(max).ok()?,
                None => usize::MAX,
            },
            end,
        })
    }

    /// The number of bytes that the run consumes.
    #[inline]
    fn length(&self, bytes: &[u8]) -> usize {
        match self.end {
            Some(end) => memchr::memchr(end, bytes).unwrap_or(bytes.len()),
            None => {
                let bytes = bytes.iter().take(self.max);
                bytes.take_while(|byte| self.set.has(**byte)).count()
            }
        }
    }
}

impl ByteSet {
    fn byte(byte: u8) -> Option<Self> {
        byte.is_ascii().then(|| {
            let mut set = ByteSet::default();
            set.add(byte);
            set
        })
    }

    fn from_class(class: &Class) -> Option<Self> {
        match class {
            Class::Unicode(class) => Self::of_characters(class),
            Class::Bytes(_) => None,
        }
    }

    fn of_characters(class: &ClassUnicode) -> Option<Self> {
        let mut set = ByteSet::default();
        for range in class.ranges() {
            if !range.end().is_ascii() {
                if range.start() > '\u{80}' || range.end() != char::MAX {
                    return None;
                }
                (0x80..=u8::MAX).for_each(|byte| set.add(byte));
            }
            for byte in 0..0x80u8 {
                if (range.start()..=range.end()).contains(&char::from(byte)) {
                    set.add(byte);
                }
            }
        }
        Some(set)
    }

    fn add(&mut self, byte: u8) {
        if let Some(word) = self.bytes.get_mut(usize::from(byte >> 6)) {
            *word |= 1 << (byte & 63);
        }
    }

    #[inline]
    fn has(&self, byte: u8) -> bool {
        let word = self.bytes.get(usize::from(byte >> 6));
        word.is_some_and(|word| (word >> (byte & 63)) & 1 == 1)
    }

    /// The only byte outside the set, if there is exactly one.
    fn only_missing(&self) -> Option<u8> {
        let mut missing = (0..=u8::MAX).filter(|byte| !self.has(*byte));
        missing.next().filter(|_| missing.next().is_none())
    }

    fn is_beyond_ascii(&self) -> bool {
        self.has(u8::MAX)
    }

    fn meets(&self, other: &ByteSet) -> bool {
        self.bytes.iter().zip(other.bytes).any(|(a, b)| a & b != 0)
    }
}
