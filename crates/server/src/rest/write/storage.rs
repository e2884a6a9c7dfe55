//! The store's part of a write: conditional writes, and the object as clients see it afterwards.

use super::{Ownership, WriteRequest, set_version};
use crate::api::{Api, ResourceRequest};
use crate::codec::protobuf;
use crate::codec::text::{Stored, Text, WriteFacts, read_back, read_written};
use crate::kinds::kind::Kind;
use crate::rest::managed_fields;
use crate::rest::read::{self, store_error};
use crate::status::ApiResult;
use scantling_store::{Entry, Event, MaybeCompressed, StoreError};
use scantling_value::Value;

impl WriteRequest<'_> {
    /// Removes an entry from the store; false if another write came first.
    pub(crate) async fn remove(&self, key: &str, entry: &Entry) -> ApiResult<bool> {
        let expected = entry.mod_revision;
        let delete = scantling_store::Write::Delete { expected };
        Ok(self.call.api.write_if_current(key, delete).await?.is_some())
    }

    /// Replaces an entry unless nothing changed, and returns the object as clients see it; `None` if another write came
    /// first.
    pub(super) async fn replace(
        &mut self,
        key: &str,
        entry: &Entry,
        old: &Value,
        mut new: Value,
        ownership: Ownership,
        written: WriteFacts,
    ) -> ApiResult<Option<Value>> {
        let call = self.call;
        let stored = Stored::encode(call, &new).await?;
        // A write that changes nothing keeps its resource version, and watchers see no event.
        if entry.value == stored.value || is_only_written_differently(entry, old, &new, &stored) {
            let read = read_back(call, new, stored).await;
            return read
                .map(Some)
                .map_err(|e| read::undecodable(entry.mod_revision, e));
        }
        let expected = entry.mod_revision;
        let update = |value| scantling_store::Write::Update { value, expected };
        match self.store(key, stored, &mut new, ownership, update).await {
            Ok((event, stored)) => {
                // The client may use the changed kind as soon as it has the response.
                call.api.has_settled(call.kind, event.revision).await;
                let mut shown = read_written(call, &event, new, stored, written).await?;
                self.text = event.after().and_then(|entry| Text::noted(call, entry));
                set_version(&mut shown, event.revision);
                Ok(Some(shown))
            }
            // A deleted object counts as another write: the caller reads again and reports that it is not found.
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(store_error(e)),
        }
    }

    /// Stores an object. One that is too large is stored without its managed fields, unless an apply has set them.
    pub(super) async fn store(
        &self,
        key: &str,
        mut stored: Stored,
        object: &mut Value,
        ownership: Ownership,
        write: impl Fn(MaybeCompressed) -> scantling_store::Write,
    ) -> Result<(Event, Stored), StoreError> {
        loop {
            match self.call.api.store.write(key, write(stored.value.clone())).await {
                Ok(event) => return Ok((event, stored)),
                Err(StoreError::TooLarge { .. })
                    // As in kube-apiserver, managed fields are the first to go if an object is too large for the store.
                    if ownership == Ownership::Update && managed_fields::forget(object) =>
                {
                    stored = stored.without_managers(self.call, object);
                }
                Err(e) => return Err(e),
            }
        }
    }
}

/// Returns whether an object is stored already in the order of members or the encoding of another server.
fn is_only_written_differently(entry: &Entry, old: &Value, new: &Value, stored: &Stored) -> bool {
    if old != new {
        return false;
    }
    // Protobuf has no fields that reading would remove.
    if protobuf::is_enveloped(&entry.value.bytes()) {
        return true;
    }
    read::stored(entry).is_ok_and(|held| held == *stored.object(new))
}

/// Returns an object as clients would see it if it were stored.
pub(super) async fn shown_as_stored(call: &ResourceRequest<'_>, object: Value) -> ApiResult<Value> {
    let stored = Stored::encode(call, &object).await?;
    read_back(call, object, stored).await
}

impl Api {
    /// Waits until the controller has applied a write to a CRD, so that responses reflect it.
    pub(crate) async fn has_settled(&self, kind: &Kind, revision: u64) {
        if kind.group == crate::kinds::definitions::GROUP {
            self.crds.wait_for(revision).await;
        }
    }
}
