//! Graph-structured call stacks for predictions.
//!
//! A context represents a set of call stacks: each entry is a return state and the context below it. Contexts
//! are interned, so equality is equality of identifiers.

use super::atn::StateId;
use std::collections::HashMap;

/// Identifies a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ContextId(u32);

/// The return address of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Return {
    To(StateId),
    /// The bottom of the stack. It represents any caller if the caller is unknown.
    Nowhere,
}

/// An entry of a context.
pub(super) type StackEntry = (Return, ContextId);

/// The meaning of an empty stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EmptyStack {
    /// Any caller: merging it with other stacks yields an empty stack.
    AnyCaller,
    /// No caller.
    NoCaller,
}

/// The interned contexts.
#[derive(Debug)]
pub(super) struct Contexts {
    entries: Vec<Box<[StackEntry]>>,
    states: HashMap<Box<[StackEntry]>, ContextId>,
    merged: HashMap<(ContextId, ContextId, EmptyStack), ContextId>,
}

impl Contexts {
    /// The empty stack.
    pub(super) const EMPTY: ContextId = ContextId(0);

    pub(super) fn new() -> Self {
        let mut contexts = Contexts {
            entries: Vec::new(),
            states: HashMap::new(),
            merged: HashMap::new(),
        };
        // The first context gets the identifier 0, which `EMPTY` relies on.
        contexts.intern(vec![(Return::Nowhere, Self::EMPTY)]);
        contexts
    }

    fn intern(&mut self, entries: Vec<StackEntry>) -> ContextId {
        let entries = entries.into_boxed_slice();
        if let Some(states) = self.states.get(&entries) {
            return *states;
        }
        let id = ContextId(self.entries.len() as u32);
        self.entries.push(entries.clone());
        self.states.insert(entries, id);
        id
    }

    pub(super) fn entries(&self, id: ContextId) -> &[StackEntry] {
        self.entries.get(id.0 as usize).map_or(&[], |entries| entries)
    }

    /// Returns whether one of the stacks is empty.
    pub(super) fn may_be_empty(&self, id: ContextId) -> bool {
        self.entries(id).iter().any(|(to, _)| *to == Return::Nowhere)
    }

    /// Pushes a call onto all stacks.
    pub(super) fn push(&mut self, id: ContextId, to: StateId) -> ContextId {
        self.intern(vec![(Return::To(to), id)])
    }

    /// The union of two sets of stacks.
    pub(super) fn merge(&mut self, a: ContextId, b: ContextId, empty_stack: EmptyStack) -> ContextId {
        if a == b {
            return a;
        }
        if empty_stack == EmptyStack::AnyCaller && (a == Self::EMPTY || b == Self::EMPTY) {
            return Self::EMPTY;
        }
        // Merging is commutative, so both orders share an entry.
        let key = (a.min(b), a.max(b), empty_stack);
        if let Some(states) = self.merged.get(&key) {
            return *states;
        }
        let mut entries = self.entries(a).to_vec();
        for (to, parent) in self.entries(b).to_vec() {
            // Entries are kept sorted by return state, so that equal sets are equal slices and intern to one
            // identifier.
            match entries.binary_search_by_key(&to, |(to, _)| *to) {
                Ok(at) => {
                    let Some(entry) = entries.get(at).copied() else {
                        continue;
                    };
                    let both = self.merge(entry.1, parent, empty_stack);
                    if let Some(entry) = entries.get_mut(at) {
                        entry.1 = both;
                    }
                }
                Err(at) => entries.insert(at, (to, parent)),
            }
        }
        let id = self.intern(entries);
        self.merged.insert(key, id);
        id
    }
}
