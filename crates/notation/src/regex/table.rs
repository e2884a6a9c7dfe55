//! Patterns that tell by a table, byte for byte, whether they match.
//!
//! Most patterns of definitions are small, begin at the beginning of the text, and are asked for nothing but whether
//! they match. Their automata fit into a few hundred bytes, and a walk through them takes a few instructions per byte;
//! a search by an engine has more to set up than most texts are long. Those of the smallest fit into a word for each class
//! of bytes: then a step is a shift.

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::alphabet::Unit;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::{Hir, Look};
use std::collections::HashMap;

/// The automaton of a pattern.
pub(super) struct DfaTable {
    /// The class of every byte. The end of the text is one more class, the last one.
    classes: [u8; 256],
    /// Where each class leads.
    transitions: Transitions,
}

/// Where the classes of an automaton lead from each of its states.
enum Transitions {
    /// Of few states: a word for each class, in which the place of a state holds where the next one stands. What a byte
    /// does is read without waiting for what the byte before it did.
    Words { words: Box<[u64]>, start: BitOffset },
    /// Of many: a row for each state with a cell for each class, which holds where the next row begins.
    Rows {
        rows: Box<[RowIndex]>,
        start: RowIndex,
        /// The number of classes.
        width: RowIndex,
    },
}

/// The index of the first cell of a row.
type RowIndex = u16;

/// The number of the first bit of a state in a word.
type BitOffset = u32;

/// How many bits of a word a state has: enough to hold the place of any.
const STATE_BITS: BitOffset = 6;

/// The most states whose places fit into a word.
const MAX_WORD_STATES: usize = 10;

/// The state from which no way leads to a match.
const REJECTED: usize = 0;

/// The state in which there has been a match, whatever follows.
const ACCEPTED: usize = 1;

/// The most cells that a table has.
const MAX_CELLS: usize = 4096;
/// The most bytes that the automata may take of which a table is made.
const MAX_WORK: usize = 1 << 16;

impl std::fmt::Debug for DfaTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("DfaTable");
        match &self.transitions {
            Transitions::Words { words, .. } => shown.field("words", &words.len()),
            Transitions::Rows { rows, width, .. } => shown.field("cells", &rows.len()).field("width", width),
        };
        shown.finish_non_exhaustive()
    }
}

impl DfaTable {
    /// The table of a pattern that matches at the beginning of a text alone, if it is small.
    pub(super) fn new(pattern: &Hir) -> Option<Self> {
        let properties = pattern.properties();
        let looks = properties.look_set();
        let known = looks.iter().all(|look| matches!(look, Look::Start | Look::End));
        if !known || !properties.look_set_prefix().contains(Look::Start) {
            return None;
        }
        let config = thompson::Config::new()
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(MAX_WORK));
        let nfa = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(pattern)
            .ok()?;
        let config = dense::Config::new()
            .start_kind(StartKind::Anchored)
            .accelerate(false)
            .dfa_size_limit(Some(MAX_WORK))
            .determinize_size_limit(Some(MAX_WORK));
        let dfa = dense::Builder::new()
            .configure(config)
            .build_from_nfa(&nfa)
            .ok()?;
        let beginning = start::Config::new().anchored(Anchored::Yes);
        let start = dfa.start_state(&beginning).ok()?;
        let byte_classes = nfa.byte_classes();
        let classes = std::array::from_fn(|byte| u8::try_from(byte).map_or(0, |b| byte_classes.get(b)));
        let bytes: Vec<u8> = byte_classes.representatives(..).filter_map(Unit::as_u8).collect();
        let mut determinizer = Determinizer {
            dfa: &dfa,
            bytes: &bytes,
            numbers: HashMap::new(),
            open: Vec::new(),
        };
        let start = determinizer.number(start)?;
        let (states, start) = minimize(determinizer.states()?, start);
        Some(DfaTable {
            classes,
            transitions: Transitions::new(&states, start)?,
        })
    }

    /// Whether a text has a match.
    #[inline]
    pub(super) fn is_match(&self, text: &str) -> bool {
        /// So many bytes are read before it is asked whether the answer is known.
        const AT_ONCE: usize = 16;
        let class =
            |byte: &u8| usize::from(self.classes.get(usize::from(*byte)).copied().unwrap_or_default());
        let chunks = text.as_bytes().chunks(AT_ONCE);
        match &self.transitions {
            Transitions::Words { words, start } => {
                let next = |state: u64, class: usize| {
                    let word = words.get(class).copied().unwrap_or_default();
                    #[expect(clippy::cast_possible_truncation, reason = "the last bits are the place")]
                    word.wrapping_shr(state as BitOffset)
                };
                let place = |state: u64| state & ((1 << STATE_BITS) - 1);
                let mut state = u64::from(*start);
                for bytes in chunks {
                    state = bytes.iter().fold(state, |state, byte| next(state, class(byte)));
                    if place(state) <= u64::from(bit_offset(ACCEPTED)) {
                        return place(state) != 0;
                    }
                }
                place(next(state, words.len() - 1)) != 0
            }
            Transitions::Rows { rows, start, width } => {
                let next =
                    |row: RowIndex, class: usize| rows.get(usize::from(row) + class).copied().unwrap_or(0);
                let mut row = *start;
                for bytes in chunks {
                    row = bytes.iter().fold(row, |row, byte| next(row, class(byte)));
                    if row <= *width {
                        return row != 0;
                    }
                }
                next(row, usize::from(*width) - 1) != 0
            }
        }
    }
}

/// The place of a state.
fn bit_offset(state: usize) -> BitOffset {
    BitOffset::try_from(state).map_or(0, |state| state * STATE_BITS)
}

impl Transitions {
    /// `states` says for each state, by class, which is next. `None` if that is too much.
    fn new(states: &[Vec<usize>], start: usize) -> Option<Transitions> {
        let width = states.first()?.len();
        if states.len() <= MAX_WORD_STATES {
            let word = |class: usize| {
                let next = states
                    .iter()
                    .map(|next| next.get(class).copied().unwrap_or(REJECTED));
                next.enumerate().fold(0, |word, (state, next)| {
                    word | (u64::from(bit_offset(next)) << bit_offset(state))
                })
            };
            return Some(Transitions::Words {
                words: (0..width).map(word).collect(),
                start: bit_offset(start),
            });
        }
        let row = |state: usize| RowIndex::try_from(state * width).ok();
        Some(Transitions::Rows {
            rows: states
                .iter()
                .flatten()
                .map(|next| row(*next))
                .collect::<Option<_>>()?,
            start: row(start)?,
            width: RowIndex::try_from(width).ok()?,
        })
    }
}

/// The states of an automaton as they are found, each by its number.
struct Determinizer<'d> {
    dfa: &'d dense::DFA<Vec<u32>>,
    /// A byte of every class.
    bytes: &'d [u8],
    numbers: HashMap<StateID, usize>,
    /// The states beside those in which the answer is known, in order of their numbers.
    open: Vec<StateID>,
}

impl Determinizer<'_> {
    /// Which state is next, for each state by class; `None` if there are too many.
    fn states(mut self) -> Option<Vec<Vec<usize>>> {
        let width = self.bytes.len() + 1;
        // Once the answer is known, it stays.
        let mut states = vec![vec![REJECTED; width], vec![ACCEPTED; width]];
        let mut made = 0;
        while let Some(state) = self.open.get(made).copied() {
            made += 1;
            let bytes = self.bytes.iter().map(|byte| self.dfa.next_state(state, *byte));
            let next: Vec<StateID> = bytes.chain([self.dfa.next_eoi_state(state)]).collect();
            states.push(
                next.into_iter()
                    .map(|next| self.number(next))
                    .collect::<Option<_>>()?,
            );
            if states.len() * width > MAX_CELLS {
                return None;
            }
        }
        Some(states)
    }

    /// The number of a state. An automaton tells of a match one step late: who gets there has had it.
    fn number(&mut self, state: StateID) -> Option<usize> {
        if self.dfa.is_dead_state(state) {
            return Some(REJECTED);
        }
        if self.dfa.is_match_state(state) {
            return Some(ACCEPTED);
        }
        if self.dfa.is_quit_state(state) {
            return None;
        }
        let next = self.open.len() + ACCEPTED + 1;
        Some(*self.numbers.entry(state).or_insert_with(|| {
            self.open.push(state);
            next
        }))
    }
}

/// Makes one of states that nothing tells apart, if that makes them few enough for words.
fn minimize(states: Vec<Vec<usize>>, start: usize) -> (Vec<Vec<usize>>, usize) {
    /// Of more states, there is little hope.
    const MOST: usize = 4 * MAX_WORD_STATES;
    if !(MAX_WORD_STATES + 1..=MOST).contains(&states.len()) {
        return (states, start);
    }
    // All are taken for the same, save for the answers, until they lead to what is not the same.
    let mut groups: Vec<usize> = (0..states.len()).map(|state| state.min(ACCEPTED + 1)).collect();
    let mut count = ACCEPTED + 2;
    loop {
        let group = |state: &usize| groups.get(*state).copied().unwrap_or(REJECTED);
        let mut kinds: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut finer = Vec::with_capacity(states.len());
        for (next, before) in states.iter().zip(&groups) {
            let kind = (*before, next.iter().map(group).collect());
            let known = kinds.iter().position(|known| *known == kind);
            finer.push(known.unwrap_or(kinds.len()));
            if known.is_none() {
                kinds.push(kind);
            }
        }
        if kinds.len() > MAX_WORD_STATES {
            return (states, start);
        }
        if kinds.len() == count {
            let start = finer.get(start).copied().unwrap_or(REJECTED);
            return (kinds.into_iter().map(|(_, next)| next).collect(), start);
        }
        (groups, count) = (finer, kinds.len());
    }
}
