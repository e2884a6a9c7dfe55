//! A table-driven DFA for small anchored patterns.
//!
//! Most patterns of CRDs are small, anchored, and only tested for a match. Their DFA fits into a few hundred bytes and
//! takes a few instructions per byte, while the set-up of an engine's search takes longer than most texts. The smallest
//! DFAs fit into one 64-bit word per byte class; then a transition is a shift.

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::alphabet::Unit;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::{Hir, Look};
use std::collections::HashMap;

/// The DFA of a pattern.
pub(super) struct DfaTable {
    /// The class of every byte. The end of the text is the last class.
    classes: [u8; 256],
    /// The transitions.
    transitions: Transitions,
}

/// The transition function.
enum Transitions {
    /// For few states: a word per class, which holds the offset of the next state at the offset of each state. The word
    /// for a byte can be loaded before the previous transition has finished.
    Words { words: Box<[u64]>, start: BitOffset },
    /// For many states: a row per state with a cell per class, which holds the start of the next row.
    Rows {
        rows: Box<[RowIndex]>,
        start: RowIndex,
        /// The number of classes.
        width: RowIndex,
    },
}

/// The index of the first cell of a row.
type RowIndex = u16;

/// The bit offset of a state in a word.
type BitOffset = u32;

/// The bits per state, enough for any bit offset.
const STATE_BITS: BitOffset = 6;

/// The number of states that fit into a word.
const MAX_WORD_STATES: usize = 10;

/// The dead state.
const REJECTED: usize = 0;

/// The accepting state, which no input leaves.
const ACCEPTED: usize = 1;

/// The maximum number of cells.
const MAX_CELLS: usize = 4096;
/// The size limit of the intermediate automata, in bytes.
const MAX_WORK: usize = 1 << 16;

impl std::fmt::Debug for DfaTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut display = f.debug_struct("DfaTable");
        match &self.transitions {
            Transitions::Words { words, .. } => display.field("words", &words.len()),
            Transitions::Rows { rows, width, .. } => {
                display.field("cells", &rows.len()).field("width", width)
            }
        };
        display.finish_non_exhaustive()
    }
}

impl DfaTable {
    /// Compiles an anchored pattern; `None` if it is not anchored or too large.
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
            // The intermediate DFA is never searched.
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

    /// Returns whether the pattern matches a text.
    #[inline]
    pub(super) fn is_match(&self, text: &str) -> bool {
        /// The number of bytes between checks for a final state.
        const AT_ONCE: usize = 16;
        let class =
            |byte: &u8| usize::from(self.classes.get(usize::from(*byte)).copied().unwrap_or_default());
        let chunks = text.as_bytes().chunks(AT_ONCE);
        match &self.transitions {
            Transitions::Words { words, start } => {
                let next = |state: u64, class: usize| {
                    let word = words.get(class).copied().unwrap_or_default();
                    #[expect(clippy::cast_possible_truncation, reason = "the last bits are the place")]
                    // Only the low six bits of the state count; the bits above belong to other states and
                    // need no mask.
                    word.wrapping_shr(state as BitOffset)
                };
                let place = |state: u64| state & ((1 << STATE_BITS) - 1);
                let mut state = u64::from(*start);
                for bytes in chunks {
                    state = bytes.iter().fold(state, |state, byte| next(state, class(byte)));
                    // Final states lead to themselves, so one check per chunk suffices; a branch per byte
                    // would cost more.
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
                    // The rows of the two final states come first.
                    if row <= *width {
                        return row != 0;
                    }
                }
                next(row, usize::from(*width) - 1) != 0
            }
        }
    }
}

/// The bit offset of a state.
fn bit_offset(state: usize) -> BitOffset {
    BitOffset::try_from(state).map_or(0, |state| state * STATE_BITS)
}

impl Transitions {
    /// Encodes the transitions `states[state][class]`; `None` if they do not fit.
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

/// Numbers the states of a DFA in the order of discovery.
struct Determinizer<'d> {
    dfa: &'d dense::DFA<Vec<u32>>,
    /// A byte of every class.
    bytes: &'d [u8],
    numbers: HashMap<StateID, usize>,
    /// The states that are not final, by number.
    open: Vec<StateID>,
}

impl Determinizer<'_> {
    /// The transitions `states[state][class]`; `None` if there are too many.
    fn states(mut self) -> Option<Vec<Vec<usize>>> {
        let width = self.bytes.len() + 1;
        // Accepting and rejecting states lead to themselves.
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

    /// The number of a state. `regex-automata` delays matches by one byte, so a match state is already accepting.
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

/// Minimizes the DFA by partition refinement, if it may then fit into words.
fn minimize(states: Vec<Vec<usize>>, start: usize) -> (Vec<Vec<usize>>, usize) {
    /// Larger automata rarely shrink enough.
    const MOST: usize = 4 * MAX_WORD_STATES;
    if !(MAX_WORD_STATES + 1..=MOST).contains(&states.len()) {
        return (states, start);
    }
    // Initially all states with the same verdict are one group; groups are split until all members have the
    // same successors.
    let mut groups: Vec<usize> = (0..states.len()).map(|state| state.min(ACCEPTED + 1)).collect();
    let mut count = ACCEPTED + 2;
    loop {
        let group = |state: &usize| groups.get(*state).copied().unwrap_or(REJECTED);
        let mut kinds: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut finer = Vec::with_capacity(states.len());
        // The final states come first, so they keep their numbers.
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
