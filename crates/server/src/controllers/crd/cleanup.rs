//! Deletes a CRD: deletes its objects, and then removes the finalizer that held it.

use super::{PAUSE, write};
use crate::api::Api;
use crate::codec::text::Stored;
use crate::http::compute;
use crate::kinds::definitions::{self, GROUP, PLURAL};
use crate::rest::read;
use crate::rest::write::timestamp;
use scantling_schema::definition::{Condition, Definition};
use scantling_store::{Entry, ListRequest, ReadAt, StoreError, Write};
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The finalizer that holds a CRD until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Returns whether a CRD is being deleted and its objects have not been deleted yet. Other finalizers may
/// hold it longer.
pub(super) fn is_due(definition: &Definition) -> bool {
    let finalizers = definition.metadata.get("finalizers").and_then(Value::as_array);
    definition.metadata.get("deletionTimestamp").is_some()
        && finalizers.is_some_and(|f| f.iter().any(|f| f.as_str() == Some(CLEANUP)))
}

/// Returns whether other finalizers hold a CRD after its objects are gone.
fn is_held_by_others(definition: &Definition) -> bool {
    let finalizers = definition.metadata.get("finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|f| f.iter().any(|f| f.as_str() != Some(CLEANUP)))
}

/// Deletes the objects of a CRD, waits for those that finalizers hold, and removes the CRD's finalizer.
pub(super) async fn run(api: Arc<Api>, name: String) {
    while !*api.stop.borrow() {
        let began = Instant::now();
        match step(&api, &name).await {
            Ok(CleanupProgress::Done) | Err(StoreError::NotFound { .. }) => return,
            // The CRD changed meanwhile: read it again.
            Err(StoreError::Conflict { .. }) => continue,
            Ok(CleanupProgress::Waiting) => {}
            Err(e) => {
                tracing::warn!(definition = name, error = %e, "cannot delete the objects of a definition");
            }
        }
        tokio::time::sleep(pause_after(began.elapsed())).await;
    }
}

/// The pause after a round that took that long. Rounds that find many objects that finalizers hold are rare.
pub(crate) fn pause_after(round: Duration) -> Duration {
    // At most a tenth of the time goes into rounds.
    PAUSE.max(round.saturating_mul(9))
}

enum CleanupProgress {
    Done,
    /// Finalizers hold some objects.
    Waiting,
}

async fn step(api: &Arc<Api>, name: &str) -> Result<CleanupProgress, StoreError> {
    let key = api.keys.object(GROUP, PLURAL, None, name)?;
    let Some(entry) = api.store.get(&key, ReadAt::Latest).await? else {
        return Ok(CleanupProgress::Done);
    };
    let mut definition = match definitions::decode(&entry, api.compiler.gates) {
        Ok(definition) => definition,
        Err(error) => {
            // It stays with its objects, until another write makes it readable.
            tracing::error!(
                definition = name,
                error,
                "a definition that is being deleted cannot be decoded"
            );
            return Ok(CleanupProgress::Done);
        }
    };
    if !is_due(&definition) {
        return Ok(CleanupProgress::Done);
    }
    let mut expected = entry.mod_revision;
    let begun = terminating(
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    );
    if definition.condition(&begun.ty).map(|c| &c.reason) != Some(&begun.reason) {
        let before = definition.status.clone();
        definition.set_condition(begun, &timestamp());
        expected = write(api, &definition, before, expected).await?.revision;
        if is_held_by_others(&definition) {
            // No client waits for the end of the deletion, but some watch for its begin.
            tokio::time::sleep(PAUSE).await;
        }
    }
    let end = if definition.has_condition("Established") {
        let spec = &definition.spec;
        let prefix = api.keys.collection(&spec.group, &spec.names.plural)?;
        // In a built-in group, the objects belong to the built-in kind, not to the CRD.
        if !api.kinds.load().has_builtin_group(&spec.group) && delete_all(api, &prefix).await?.objects > 0 {
            return Ok(CleanupProgress::Waiting);
        }
        terminating("False", "InstanceDeletionCompleted", "removed all instances")
    } else {
        // Its kind was never served, so it has no objects of its own.
        terminating("False", "NeverEstablished", "resource was never established")
    };
    let before = definition.status.clone();
    definition.set_condition(end, &timestamp());
    let finalizers = definition
        .metadata
        .get_mut("finalizers")
        .and_then(Value::as_array_mut);
    let remaining = finalizers.is_some_and(|f| {
        f.retain(|f| f.as_str() != Some(CLEANUP));
        !f.is_empty()
    });
    if remaining {
        write(api, &definition, before, expected).await?;
    } else {
        api.store.write(&key, Write::Delete { expected }).await?;
    }
    Ok(CleanupProgress::Done)
}

/// The `Terminating` condition of a CRD.
pub(crate) fn terminating(status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        ty: "Terminating".into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        ..Condition::default()
    }
}

/// The objects that could not be deleted at once.
#[derive(Debug, Default)]
pub(crate) struct RemainingObjects {
    /// The number of objects.
    pub(crate) objects: usize,
    /// The number of objects that each finalizer holds.
    pub(crate) finalizers: BTreeMap<String, usize>,
}

/// Deletes or marks every object below a prefix; returns the remaining ones.
pub(crate) async fn delete_all(api: &Arc<Api>, prefix: &str) -> Result<RemainingObjects, StoreError> {
    let request = ListRequest {
        prefix: prefix.to_owned(),
        at: ReadAt::Latest,
        ..ListRequest::default()
    };
    let page = api.store.list(request).await?;
    let mut remaining = RemainingObjects::default();
    for entry in &page.entries {
        // Objects that finalizers hold already are only decoded, which may take long without waiting for anything.
        tokio::task::consume_budget().await;
        if let Some(finalizers) = delete_one(api, entry).await? {
            remaining.objects += 1;
            for finalizer in finalizers {
                *remaining.finalizers.entry(finalizer).or_default() += 1;
            }
        }
    }
    Ok(remaining)
}

/// Deletes an object, or marks it if finalizers hold it; returns the finalizers.
async fn delete_one(api: &Arc<Api>, entry: &Arc<Entry>) -> Result<Option<Vec<String>>, StoreError> {
    let Ok(mut object) = compute::in_place(entry.value.len(), || read::stored(entry)) else {
        tracing::warn!(key = %entry.key, "an object that cannot be read is deleted with its collection");
        api.store
            .write(
                &entry.key,
                Write::Delete {
                    expected: entry.mod_revision,
                },
            )
            .await?;
        return Ok(None);
    };
    let finalizers = crate::rest::delete::finalizers(&object);
    let write = if finalizers.is_empty() {
        Write::Delete {
            expected: entry.mod_revision,
        }
    } else {
        // Marked before: writing it again would only wake its watchers.
        if !crate::rest::delete::mark(&mut object, &finalizers) {
            return Ok(Some(finalizers));
        }
        Write::Update {
            value: Stored::whole(&object).value,
            expected: entry.mod_revision,
        }
    };
    match api.store.write(&entry.key, write).await {
        Ok(_) => Ok(Some(finalizers).filter(|f| !f.is_empty())),
        // The object counts as remaining, so another round looks at its new state.
        Err(StoreError::Conflict { .. }) => Ok(Some(finalizers)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}
