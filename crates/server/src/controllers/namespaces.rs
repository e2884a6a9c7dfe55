//! Namespaces: what may be created in them, and their way out: first what is in them goes, then they do.

mod conditions;

use crate::api::Api;
use crate::codec::text::Stored;
use crate::controllers::crd::delete_all;
use crate::rest::delete;
use crate::rest::read;
use crate::rest::write::{metadata_str, timestamp};
use conditions::Left;
use scantling_store::{Entry, EntryChange, ListRequest, ReadAt, StoreError};
use scantling_value::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What holds a namespace until it is empty.
const HOLDER: &str = "kubernetes";

/// How long to wait for what others hold, and before a failing store is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// What holds a namespace: the finalizers of its specification.
pub(crate) fn finalizers(spec: Option<&Value>) -> Vec<String> {
    delete::finalizers_in(spec.and_then(Value::as_object))
}

fn set_finalizers(namespace: &mut Value, finalizers: &[String]) {
    let Some(members) = namespace.as_object_mut() else {
        return;
    };
    let spec = members.get_or_insert_with("spec", || Map::new().into());
    if let Some(spec) = spec.as_object_mut() {
        if finalizers.is_empty() {
            spec.remove("finalizers");
        } else {
            let list = finalizers.iter().map(|f| f.as_str().into());
            spec.insert("finalizers", Value::Array(list.collect()));
        }
    }
}

/// The write that brings a stored namespace to a new state: it goes once it is being deleted and nothing holds it.
fn write_of(namespace: &Value, expected: u64) -> scantling_store::Write {
    let leaving = !metadata_str(namespace, "deletionTimestamp").is_empty();
    if leaving && finalizers(namespace.get("spec")).is_empty() && delete::finalizers(namespace).is_empty() {
        return scantling_store::Write::Delete { expected };
    }
    let value = Stored::whole(namespace).value;
    scantling_store::Write::Update { value, expected }
}

/// The namespaces that are being emptied.
type Emptying = Arc<Mutex<BTreeSet<String>>>;

/// Empties namespaces that are being deleted, until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    let mut stop = api.stop.clone();
    let emptying = Emptying::default();
    loop {
        tokio::select! {
            followed = follow(&api, &emptying) => {
                if let Err(e) = followed {
                    tracing::warn!(error = %e, "cannot follow namespaces");
                }
            }
            _ = stop.wait_for(|s| *s) => return,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(api: &Arc<Api>, emptying: &Emptying) -> Result<(), StoreError> {
    let prefix = api.keys.collection("", "namespaces")?;
    let request = ListRequest {
        prefix: prefix.clone(),
        at: ReadAt::Latest,
        ..ListRequest::default()
    };
    let page = api.store.list(request).await?;
    for entry in &page.entries {
        look_at(api, entry, emptying);
    }
    let mut watch = api.store.watch(&prefix, page.revision).await?;
    loop {
        if let EntryChange::Create { new } | EntryChange::Update { new, .. } = &watch.next().await?.change {
            look_at(api, new, emptying);
        }
    }
}

/// Begins to empty a namespace, if it is being deleted, waits for that, and nobody is at it.
fn look_at(api: &Arc<Api>, entry: &Entry, emptying: &Emptying) {
    let namespace = match read::stored(entry) {
        Ok(namespace) => namespace,
        Err(e) => {
            tracing::error!(key = %entry.key, error = e.message(), "a namespace cannot be read");
            return;
        }
    };
    let holders = finalizers(namespace.get("spec"));
    let waits = holders.is_empty() || holders.iter().any(|f| f == HOLDER);
    if !waits || metadata_str(&namespace, "deletionTimestamp").is_empty() {
        return;
    }
    let name = metadata_str(&namespace, "name").to_owned();
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

/// Deletes what is in a namespace again and again, until nothing is left, and lets go of it.
async fn empty(api: &Arc<Api>, name: &str) {
    loop {
        let left = delete_content(api, name).await;
        let failed = match update_conditions(api, name, &left).await {
            Ok(Termination::Gone) => {
                // What came in while it went.
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
        // Finalizers hold it, or what is in it: they are waited for.
        tokio::time::sleep(PAUSE).await;
        if *api.stop.borrow() {
            return;
        }
    }
}

/// Deletes what is in a namespace; returns what is still there.
async fn delete_content(api: &Arc<Api>, name: &str) -> Left {
    let kinds = api.kinds.load_full();
    let mut left = Left::default();
    for kind in kinds.all().filter(|k| k.namespaced) {
        let deleted = match api.keys.namespace(kind.key_group(), &kind.plural, name) {
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

/// What became of a namespace.
enum Termination {
    Gone,
    Unreadable,
    There,
}

/// Writes what became of a namespace's content into its conditions; with nothing left, removes this server's hold.
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
            // Another one of that name: it stays.
            return Ok(Termination::Gone);
        }
        let mut changed = conditions::update(&mut namespace, left, &timestamp());
        if left.is_nothing() {
            let mut holders = finalizers(namespace.get("spec"));
            let before = holders.len();
            holders.retain(|f| f != HOLDER);
            changed |= holders.len() != before;
            set_finalizers(&mut namespace, &holders);
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
            Err(StoreError::Conflict { .. }) => {}
            Err(e) => return Err(e),
        }
    }
}
