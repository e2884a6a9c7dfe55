//! New CRDs on their way to the controller, which need not decode those that this server has just validated.

use super::api_version;
use crate::api::Api;
use crate::codec::text::Stored;
use crate::kinds::kind::{Kind, Version};
use crate::rest::entry_cache::EntryFacts;
use scantling_merge::apply::TypeCheck;
use scantling_schema::definition::Definition;
use scantling_store::{Entry, MaybeCompressed};
use scantling_value::Value;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The maximum number of CRDs. Those whose writes fail are never taken.
const MAX_PENDING: usize = 8;

/// The CRDs that this server wrote last.
#[derive(Debug, Default)]
pub(crate) struct PendingDefinitions(Mutex<VecDeque<PendingDefinition>>);

#[derive(Debug)]
struct PendingDefinition {
    text: MaybeCompressed,
    /// The offset at which the resource version is inserted.
    place: Option<usize>,
    /// The CRD without its schemas.
    definition: Definition,
}

impl PendingDefinitions {
    /// Adds a CRD that is about to be stored, without its schemas.
    fn add(&self, stored: &Stored, definition: Definition) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_PENDING {
            all.pop_front();
        }
        all.push_back(PendingDefinition {
            text: stored.value.clone(),
            place: stored.place,
            definition,
        });
    }

    /// Takes the CRD of an entry. Its text contains a unique uid.
    pub(crate) fn take(&self, kind: &Kind, entry: &Entry) -> Option<Definition> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Comparing the whole text also tells whether another server has written the CRD in between.
        let position = all.iter().position(|written| written.text == entry.value)?;
        let PendingDefinition {
            place, definition, ..
        } = all.remove(position)?;
        // The document was admitted here, so it is served as it is stored.
        EntryFacts::set(kind, entry, place, TypeCheck::Unknown);
        Some(definition)
    }
}

impl Api {
    /// Announces a CRD that is about to be stored to the controller.
    pub(crate) fn expect_definition(&self, version: &Version, accepted: &Value, stored: &Stored) {
        let (api, gates) = (api_version(&version.name), self.compiler.gates);
        debug_assert!(
            Definition::decode(accepted.clone(), api, gates)
                .is_ok_and(|read| read.definition.into_document(api) == *accepted),
            "an accepted definition is not normalized"
        );
        if version.storage
            && let Some(definition) = Definition::without_schemas(accepted, gates)
        {
            self.pending.add(stored, definition);
        }
    }
}
