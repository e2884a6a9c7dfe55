//! Conversions for pure functions.
//!
//! Field ownership is a pure function that compares objects in all versions of their managers. It cannot wait for a
//! webhook. If it needs a conversion, it fails; the conversion is made, and it runs again with the same input.

use super::Webhook;
use crate::api::ResourceRequest;
use crate::http::memory::Budget;
use scantling_value::Value;
use std::sync::{Mutex, PoisonError};

/// The conversions that a computation has asked for.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    done: Vec<DoneConversion>,
    key: Mutex<Option<ConversionKey>>,
}

/// An object and the `apiVersion` to which it is converted.
#[derive(Clone, Debug, PartialEq)]
struct ConversionKey {
    object: Value,
    api_version: String,
}

#[derive(Debug)]
struct DoneConversion {
    key: ConversionKey,
    result: Result<Value, String>,
}

impl Memo {
    /// Returns an object in another version. If it has not been converted yet, the computation fails and runs again.
    pub(crate) fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let is_it =
            |done: &&DoneConversion| done.key.api_version == api_version && done.key.object == *object;
        if let Some(done) = self.done.iter().find(is_it) {
            return done.result.clone();
        }
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        // Later requests may depend on the placeholder error, so only the first one counts.
        key.get_or_insert_with(|| ConversionKey {
            object: object.clone(),
            api_version: api_version.to_owned(),
        });
        Err("the conversion is still to be made".to_owned())
    }

    fn take_key(&self) -> Option<ConversionKey> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn convert_now(&mut self, webhook: &Webhook, key: ConversionKey, memory: &Budget) {
        let result = webhook.convert(&key.object, &key.api_version, memory).await;
        self.done.push(DoneConversion { key, result });
    }
}

/// Runs a computation until all conversions that it needs are made. Its result must depend only on these.
pub(crate) async fn with_conversions<T>(call: &ResourceRequest<'_>, compute: impl Fn(&Memo) -> T) -> T {
    let mut memo = Memo::default();
    loop {
        // The result of a run that lacked a conversion is dropped here: it may rest on the placeholder error.
        let (webhook, key) = {
            let computed = compute(&memo);
            match (call.kind.codec.webhook(), memo.take_key()) {
                (Some(by), Some(key)) => (by.webhook, key),
                _ => return computed,
            }
        };
        Box::pin(memo.convert_now(webhook, key, &call.api.memory.conversions)).await;
    }
}
