//! Following the objects of a resource.

use crate::api::Api;
use crate::rest::read;
use scantling_store::{Entry, EntryChange, ListRequest, ReadAt, StoreError, Watch};
use scantling_value::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The pause before a failing store is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// A change of an object: before and after. Objects that exist when following begins have no state before.
pub(crate) struct ObjectChange {
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
}

/// The changes of all objects of a resource.
pub(crate) struct Follower {
    existing: VecDeque<Arc<Entry>>,
    watch: Watch,
}

impl Follower {
    /// Begins with the objects that exist.
    pub(crate) async fn start(api: &Api, prefix: &str) -> Result<Follower, StoreError> {
        let request = ListRequest {
            prefix: prefix.to_owned(),
            at: ReadAt::Latest,
            ..ListRequest::default()
        };
        let page = api.store.list(request).await?;
        // From the revision of the list, so that no change in between is missed or seen twice.
        let watch = api.store.watch(prefix, page.revision).await?;
        Ok(Follower {
            existing: page.entries.into(),
            watch,
        })
    }

    /// The next change.
    pub(crate) async fn next(&mut self) -> Result<ObjectChange, StoreError> {
        if let Some(entry) = self.existing.pop_front() {
            return Ok(ObjectChange {
                old: None,
                new: object(&entry),
            });
        }
        Ok(match &self.watch.next().await?.change {
            EntryChange::Create { new } => ObjectChange {
                old: None,
                new: object(new),
            },
            EntryChange::Update { old, new } => ObjectChange {
                old: object(old),
                new: object(new),
            },
            EntryChange::Delete { old } => ObjectChange {
                old: object(old),
                new: None,
            },
        })
    }
}

/// The object of an entry; one that cannot be read is logged and left alone.
fn object(entry: &Entry) -> Option<Value> {
    let object = read::stored(entry);
    object
        .inspect_err(|e| tracing::error!(key = %entry.key, error = e.message(), "an object cannot be read"))
        .ok()
}

/// Runs a controller until the server stops; one that fails is started again.
pub(crate) async fn until_stopped<F>(api: Arc<Api>, name: &str, controller: impl Fn(Arc<Api>) -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    let mut stop = api.stop.clone();
    loop {
        tokio::select! {
            ended = controller(Arc::clone(&api)) => {
                if let Err(e) = ended {
                    tracing::warn!(controller = name, error = %e, "a controller cannot follow the store");
                }
            }
            _ = stop.wait_for(|s| *s) => return,
        }
        tokio::time::sleep(PAUSE).await;
    }
}
