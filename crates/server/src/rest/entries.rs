//! Single entries of the store: the newest one of a key, and conditional writes.

use crate::api::Api;
use crate::rest::read::store_error;
use crate::status::ApiResult;
use scantling_store::{Entry, Event, ReadAt, StoreError, Write};
use std::sync::Arc;

impl Api {
    /// The newest entry of a key.
    pub(crate) async fn newest(&self, key: &str) -> ApiResult<Option<Arc<Entry>>> {
        self.store.get(key, ReadAt::Latest).await.map_err(store_error)
    }

    /// Updates or deletes an entry; `None` if another write came first. A deletion counts as one: a caller that reads
    /// again finds nothing.
    pub(crate) async fn write_if_current(&self, key: &str, write: Write) -> ApiResult<Option<Event>> {
        match self.store.write(key, write).await {
            Ok(event) => Ok(Some(event)),
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(store_error(e)),
        }
    }
}
