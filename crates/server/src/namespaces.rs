//! Namespaces on their way out: first what is in them goes, then they do.

use crate::api::Api;
use crate::controller::delete_all;
use crate::media;
use crate::options::{WriteKind, WriteOptions};
use crate::read::{self, store_error};
use crate::reply::Reply;
use crate::status::{ApiError, ApiResult};
use crate::write::{Write, fit_name, metadata_mut, modified, set_version, text};
use crate::{body, delete};
use scantling_store::{Change, Entry, ListRequest, ReadAt, StoreError};
use scantling_value::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// What holds a namespace until it is empty.
const HOLDER: &str = "kubernetes";

/// How long to wait for what others hold, and before a failing store is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// What holds a namespace: the finalizers of its specification.
pub(crate) fn finalizers(namespace: &Value) -> Vec<String> {
    let list = namespace.at(["spec", "finalizers"]).and_then(Value::as_array);
    let list = list.unwrap_or_default().iter();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
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
fn write_of(mut namespace: Value, expected: u64) -> scantling_store::Write {
    if let Some(m) = metadata_mut(&mut namespace) {
        m.remove("resourceVersion");
    }
    let leaving = !text(&namespace, "deletionTimestamp").is_empty();
    if leaving && finalizers(&namespace).is_empty() && delete::finalizers(&namespace).is_empty() {
        return scantling_store::Write::Delete { expected };
    }
    let value = namespace.to_json().into();
    scantling_store::Write::Update { value, expected }
}

/// PUT of `finalize`: replaces what holds a namespace, and nothing else.
pub(crate) async fn finalize(write: &Write<'_>, name: &str) -> ApiResult<Reply> {
    let call = write.call;
    let shape = call.shape()?;
    let form = media::body_form(write.head.content_type.as_deref())?;
    let options = WriteOptions::parse(call.query, WriteKind::Update)?;
    let sent = body::decode(call, &write.body, form, options.field_validation)?.object;
    fit_name(&sent, name)?;
    let key = call.key(name)?;
    loop {
        let entry = call
            .api
            .store
            .get(&key, ReadAt::Latest)
            .await
            .map_err(store_error)?;
        let entry = entry.ok_or_else(|| ApiError::not_found(call.about(), name))?;
        let asked = text(&sent, "resourceVersion");
        if !asked.is_empty() && asked != entry.mod_revision.to_string() {
            return Err(modified(call.about(), name));
        }
        let mut namespace = read::stored(&entry)?;
        set_finalizers(&mut namespace, &finalizers(&sent));
        set_version(&mut namespace, entry.mod_revision);
        if options.dry_run {
            return shape.object(200, namespace);
        }
        match call
            .api
            .store
            .write(&key, write_of(namespace.clone(), entry.mod_revision))
            .await
        {
            Ok(event) => {
                set_version(&mut namespace, event.revision);
                return shape.object(200, namespace);
            }
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {}
            Err(e) => return Err(store_error(e)),
        }
    }
}

/// Empties namespaces that are being deleted, until the server stops.
pub(crate) async fn run(api: Arc<Api>) {
    let mut stop = api.stop.clone();
    loop {
        tokio::select! {
            followed = follow(&api) => {
                if let Err(e) = followed {
                    tracing::warn!(error = %e, "cannot follow namespaces");
                }
            }
            _ = stop.wait_for(|s| *s) => return,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(api: &Arc<Api>) -> Result<(), StoreError> {
    let prefix = api.keys.collection("", "namespaces")?;
    let request = ListRequest {
        prefix: prefix.clone(),
        at: ReadAt::Latest,
        ..ListRequest::default()
    };
    let page = api.store.list(request).await?;
    for entry in &page.entries {
        look_at(api, entry);
    }
    let mut watch = api.store.watch(&prefix, page.revision).await?;
    loop {
        if let Change::Create { new } | Change::Update { new, .. } = &watch.next().await?.change {
            look_at(api, new);
        }
    }
}

/// Begins to empty a namespace, if it is being deleted and waits for that.
fn look_at(api: &Arc<Api>, entry: &Entry) {
    let Ok(namespace) = read::stored(entry) else {
        return;
    };
    let holders = finalizers(&namespace);
    let waits = holders.is_empty() || holders.iter().any(|f| f == HOLDER);
    if waits && !text(&namespace, "deletionTimestamp").is_empty() {
        let (api, name) = (Arc::clone(api), text(&namespace, "name").to_owned());
        tokio::spawn(async move { empty(&api, &name).await });
    }
}

async fn empty(api: &Arc<Api>, name: &str) {
    loop {
        match delete_content(api, name).await {
            Ok(0) => match let_go(api, name).await {
                Ok(()) => return,
                Err(e) => tracing::warn!(namespace = name, error = %e, "cannot let go of a namespace"),
            },
            // Finalizers of others hold some: they are waited for.
            Ok(_) => {}
            Err(e) => tracing::warn!(namespace = name, error = %e, "cannot empty a namespace"),
        }
        tokio::time::sleep(PAUSE).await;
        if *api.stop.borrow() {
            return;
        }
    }
}

/// Deletes what is in a namespace; returns how much is still there.
async fn delete_content(api: &Arc<Api>, name: &str) -> Result<usize, StoreError> {
    let kinds = api.kinds.load_full();
    let mut held = 0;
    for kind in kinds.all().filter(|k| k.namespaced) {
        let prefix = api.keys.namespace(&kind.group, &kind.plural, name)?;
        held += delete_all(api, &prefix).await?;
    }
    Ok(held)
}

/// Removes this server's hold on a namespace.
async fn let_go(api: &Arc<Api>, name: &str) -> Result<(), StoreError> {
    let key = api.keys.object("", "namespaces", None, name)?;
    loop {
        let Some(entry) = api.store.get(&key, ReadAt::Latest).await? else {
            return Ok(());
        };
        let Ok(mut namespace) = read::stored(&entry) else {
            return Ok(());
        };
        let mut others = finalizers(&namespace);
        let held = others.iter().any(|f| f == HOLDER);
        others.retain(|f| f != HOLDER);
        set_finalizers(&mut namespace, &others);
        let write = write_of(namespace, entry.mod_revision);
        if !held && matches!(write, scantling_store::Write::Update { .. }) {
            // Others hold it still; their letting go is an event of its own.
            return Ok(());
        }
        match api.store.write(&key, write).await {
            Ok(_) | Err(StoreError::NotFound { .. }) => return Ok(()),
            Err(StoreError::Conflict { .. }) => {}
            Err(e) => return Err(e),
        }
    }
}
