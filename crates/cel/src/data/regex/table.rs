//! Patterns that tell by a table, byte for byte, whether they match.
//!
//! Most patterns of definitions are small, begin at the beginning of the text, and are asked for nothing but whether
//! they match. Their automata fit into a few hundred bytes, and a walk through them takes a few instructions per byte;
//! a search by an engine has more to set up than most texts are long.

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::alphabet::Unit;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::{Hir, Look};
use std::collections::HashMap;

/// The automaton of a pattern: a row for each state, a column for each class of bytes, and one for the end of the text.
pub(super) struct Table {
    /// The column of every byte.
    columns: [u8; 256],
    /// Where each leads: to the beginning of a row.
    next: Box<[Row]>,
    start: Row,
    /// The number of columns.
    width: Row,
}

/// The index of the first cell of a row.
type Row = u16;

/// The row from which no way leads to a match.
const REJECTED: Row = 0;

/// The most cells that a table has.
const MAX_CELLS: usize = 4096;
/// The most bytes that the automata may take of which a table is made.
const MAX_WORK: usize = 1 << 16;

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("cells", &self.next.len())
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// The table of a pattern that matches at the beginning of a text alone, if it is small.
    pub(super) fn of(pattern: &Hir) -> Option<Self> {
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
        let classes = nfa.byte_classes();
        let columns = std::array::from_fn(|byte| u8::try_from(byte).map_or(0, |byte| classes.get(byte)));
        let bytes: Vec<u8> = classes.representatives(..).filter_map(Unit::as_u8).collect();
        Draft {
            dfa: &dfa,
            bytes: &bytes,
            rows: HashMap::new(),
            open: Vec::new(),
        }
        .table(columns, start)
    }

    /// Whether a text has a match.
    #[inline]
    pub(super) fn is_match(&self, text: &str) -> bool {
        /// So many bytes are read before it is asked whether the answer is known.
        const AT_ONCE: usize = 16;
        let mut row = self.start;
        for bytes in text.as_bytes().chunks(AT_ONCE) {
            for byte in bytes {
                let column = self.columns.get(usize::from(*byte)).copied().unwrap_or_default();
                row = self.next(row, Row::from(column));
            }
            if row <= self.width {
                return row != REJECTED;
            }
        }
        self.next(row, self.width - 1) != REJECTED
    }

    #[inline]
    fn next(&self, row: Row, column: Row) -> Row {
        let cell = usize::from(row) + usize::from(column);
        self.next.get(cell).copied().unwrap_or(REJECTED)
    }
}

/// A table that is being made.
struct Draft<'d> {
    dfa: &'d dense::DFA<Vec<u32>>,
    /// A byte of every class.
    bytes: &'d [u8],
    rows: HashMap<StateID, Row>,
    /// The states whose rows are not made yet.
    open: Vec<StateID>,
}

impl Draft<'_> {
    fn width(&self) -> usize {
        self.bytes.len() + 1
    }

    fn table(mut self, columns: [u8; 256], start: StateID) -> Option<Table> {
        let width = Row::try_from(self.width()).ok()?;
        // The first two rows are the ends: whatever follows, the answer stays.
        let mut next = vec![REJECTED; self.width()];
        next.extend(std::iter::repeat_n(width, self.width()));
        let start = self.row(start)?;
        let mut made = 0;
        while let Some(state) = self.open.get(made).copied() {
            made += 1;
            for byte in self.bytes {
                let state = self.dfa.next_state(state, *byte);
                next.push(self.row(state)?);
            }
            let end = self.dfa.next_eoi_state(state);
            next.push(self.row(end)?);
        }
        Some(Table {
            columns,
            next: next.into(),
            start,
            width,
        })
    }

    /// The row of a state. An automaton tells of a match one step late: who gets there has had it.
    fn row(&mut self, state: StateID) -> Option<Row> {
        if self.dfa.is_dead_state(state) {
            return Some(REJECTED);
        }
        if self.dfa.is_match_state(state) {
            return Row::try_from(self.width()).ok();
        }
        if self.dfa.is_quit_state(state) {
            return None;
        }
        if let Some(row) = self.rows.get(&state) {
            return Some(*row);
        }
        let cell = (self.open.len() + 2) * self.width();
        let row = Row::try_from(cell)
            .ok()
            .filter(|_| cell + self.width() <= MAX_CELLS)?;
        self.rows.insert(state, row);
        self.open.push(state);
        Some(row)
    }
}
