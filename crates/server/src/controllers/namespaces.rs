//! Deletion of namespaces: their objects are deleted first.

mod conditions;

use crate::api::Api;
use crate::codec::text::Stored;
use crate::controllers::crd::{delete_all, pause_after};
use crate::controllers::follow::{Follower, until_stopped};
use crate::rest::delete;
use crate::rest::read;
use crate::rest::write::{metadata_str, timestamp};
use conditions::Left;
use scantling_store::{ReadAt, StoreError};
use scantling_value::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The finalizer that holds a namespace until it is empty.
const HOLDER: &str = "kubernetes";

/// The finalizers of the spec of a namespace, which hold it.
pub(crate) fn finalizers(spec: Option<&Value>) -> Vec<String> {
    delete::finalizers_in(spec.and_then(Value::as_object))
}

/// The write that brings a stored namespace to a new state: a delete, once it is terminating and has no
/// finalizers.
fn write_of(namespace: &Value, expected: u64) -> scantling_store::Write {
    let leaving = !metadata_str(namespace, "deletionTimestamp").is_empty();
    if leaving && finalizers(namespace.get("spec")).is_empty() && delete::finalizers(namespace).is_empty() {
        return scantling_store::Write::Delete { expected };
    }
    let value = Stored::whole(namespace).value;
    scantling_store::Write::Update { value, expected }
}

/// The namespaces being emptied.
type Emptying = Arc<Mutex<BTreeSet<String>>>;

/// Empties terminating namespaces until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    let emptying = Emptying::default();
    until_stopped(api, "namespaces", |api| follow(api, Arc::clone(&emptying))).await;
}

async fn follow(api: Arc<Api>, emptying: Emptying) -> Result<(), StoreError> {
    let prefix = api.keys.collection("", "namespaces")?;
    let mut changes = Follower::start(&api, &prefix).await?;
    loop {
        if let Some(namespace) = changes.next().await?.new {
            look_at(&api, &namespace, &emptying);
        }
    }
}

/// Starts to empty a namespace that is being deleted, unless a task does so already.
fn look_at(api: &Arc<Api>, namespace: &Value, emptying: &Emptying) {
    let holders = finalizers(namespace.get("spec"));
    // With other finalizers only, their controllers are to act; an empty list still needs the final deletion.
    let waits = holders.is_empty() || holders.iter().any(|f| f == HOLDER);
    if !waits || metadata_str(namespace, "deletionTimestamp").is_empty() {
        return;
    }
    let name = metadata_str(namespace, "name").to_owned();
    // The set is shared by all runs of this controller, because its tasks outlive a run that fails.
    let is_new = emptying.lock().is_ok_and(|mut names| names.insert(name.clone()));
    if is_new {
        let (api, emptying) = (Arc::clone(api), Arc::clone(emptying));
        tokio::spawn(async move {
            empty(&api, &name).await;
            if let Ok(mut names) = emptying.lock() {
                names.remove(&name);
            }
        });
    }
}

/// Deletes the objects of a namespace until none is left, then removes the finalizer.
async fn empty(api: &Arc<Api>, name: &str) {
    loop {
        let began = Instant::now();
        let left = delete_content(api, name).await;
        let failed = match update_conditions(api, name, &left).await {
            Ok(Termination::Gone) => {
                // Objects may have been created meanwhile.
                let _ = delete_content(api, name).await;
                return;
            }
            Ok(Termination::Unreadable) => return,
            Ok(Termination::There) => None,
            Err(e) => Some(e.to_string()),
        };
        for why in left.failures.iter().chain(&failed) {
            tracing::warn!(namespace = name, error = why, "cannot empty a namespace");
        }
        // Finalizers hold it or its contents: wait.
        tokio::time::sleep(pause_after(began.elapsed())).await;
        if *api.stop.borrow() {
            return;
        }
    }
}

/// Deletes the objects of a namespace; returns the ones that remain.
async fn delete_content(api: &Arc<Api>, name: &str) -> Left {
    // In every round, because a CRD may be established while the namespace is emptied.
    let kinds = api.kinds.load_full();
    let mut left = Left::default();
    for kind in kinds.all().filter(|k| k.namespaced) {
        let deleted = match api.keys.namespace(&kind.key_group, &kind.plural, name) {
            Ok(prefix) => delete_all(api, &prefix).await,
            Err(e) => Err(e),
        };
        match deleted {
            Ok(held) if held.objects == 0 => {}
            Ok(held) => {
                left.objects
                    .insert(format!("{}.{}", kind.plural, kind.group), held.objects);
                for (finalizer, n) in held.finalizers {
                    *left.finalizers.entry(finalizer).or_default() += n;
                }
            }
            Err(e) => left.failures.push(e.to_string()),
        }
    }
    left
}

/// The state of a namespace after a round.
enum Termination {
    Gone,
    Unreadable,
    There,
}

/// Writes the conditions of a namespace; if no objects remain, removes the finalizer.
async fn update_conditions(api: &Arc<Api>, name: &str, left: &Left) -> Result<Termination, StoreError> {
    let key = api.keys.object("", "namespaces", None, name)?;
    loop {
        let Some(entry) = api.store.get(&key, ReadAt::Latest).await? else {
            return Ok(Termination::Gone);
        };
        let mut namespace = match read::stored(&entry) {
            Ok(namespace) => namespace,
            Err(e) => {
                // It stays until another write makes it readable, or it is deleted unread.
                tracing::error!(key = %entry.key, error = e.message(), "a namespace cannot be read");
                return Ok(Termination::Unreadable);
            }
        };
        if metadata_str(&namespace, "deletionTimestamp").is_empty() {
            // Another namespace with that name: it stays.
            return Ok(Termination::Gone);
        }
        let mut changed = conditions::update(&mut namespace, left, &timestamp());
        if left.is_nothing() {
            let mut holders = finalizers(namespace.get("spec"));
            let before = holders.len();
            holders.retain(|f| f != HOLDER);
            changed |= holders.len() != before;
            if let Some(spec) = namespace
                .as_object_mut()
                .and_then(|n| n.get_mut("spec")?.as_object_mut())
            {
                delete::set_finalizers_in(spec, &holders);
            }
            changed |= delete::remove_propagation(&mut namespace);
        }
        let write = write_of(&namespace, entry.mod_revision);
        let gone = matches!(write, scantling_store::Write::Delete { .. });
        if !changed && !gone {
            return Ok(Termination::There);
        }
        match api.store.write(&key, write).await {
            Ok(_) if gone => return Ok(Termination::Gone),
            Ok(_) => return Ok(Termination::There),
            Err(StoreError::NotFound { .. }) => return Ok(Termination::Gone),
            // Another write came first: decide again on the new state.
            Err(StoreError::Conflict { .. }) => {}
            Err(e) => return Err(e),
        }
    }
}
