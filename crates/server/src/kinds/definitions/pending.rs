//! New definitions on their way to the controller.
//!
//! What the controller has to know of a definition that this server has just checked need not be read from its text,
//! nearly all of which are schemas.

use crate::codec::text::{self, Stored};
use crate::kinds::kind::Kind;
use scantling_merge::apply::TypeCheck;
use scantling_schema::definition::Definition;
use scantling_store::{Entry, MaybeCompressed};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// So many may be on their way. Those whose writes fail are never asked for.
const MOST: usize = 8;

/// The definitions that this server wrote last.
#[derive(Debug, Default)]
pub(crate) struct PendingDefinitions(Mutex<VecDeque<PendingDefinition>>);

#[derive(Debug)]
struct PendingDefinition {
    text: MaybeCompressed,
    /// Where in the text the resource version belongs.
    place: Option<usize>,
    /// The definition without its schemas.
    sketch: Definition,
}

impl PendingDefinitions {
    /// Notes a definition that is about to be stored, in the form in which it is shown.
    pub(crate) fn add(&self, stored: &Stored, sketch: Definition) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.pop_front();
        }
        all.push_back(PendingDefinition {
            text: stored.value.clone(),
            place: stored.place,
            sketch,
        });
    }

    /// What was noted of the definition of an entry. Its text holds an identity that no other has.
    pub(crate) fn take(&self, kind: &Kind, entry: &Entry) -> Option<Definition> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let position = all.iter().position(|written| written.text == entry.value)?;
        let PendingDefinition { place, sketch, .. } = all.remove(position)?;
        text::cache_normalized(kind, entry, place, TypeCheck::Unknown);
        Some(sketch)
    }
}
