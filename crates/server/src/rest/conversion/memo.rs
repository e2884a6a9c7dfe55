//! Conversions for what is computed at one go.
//!
//! Who owns which field is a pure function that compares objects in all versions in which managers wrote, and makes some
//! of these objects on the way. It cannot wait for a webhook. So it is told that an object cannot be converted, the
//! conversion is made, and it runs again: with the same input it comes to the same place, and further.

use super::Webhook;
use crate::api::ResourceRequest;
use scantling_value::Value;
use std::sync::{Mutex, PoisonError};

/// The conversions that a computation has asked for.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    made: Vec<Made>,
    key: Mutex<Option<ConversionKey>>,
}

/// An object that is key in another version, which an `apiVersion` names.
#[derive(Clone, Debug, PartialEq)]
struct ConversionKey {
    object: Value,
    api_version: String,
}

#[derive(Debug)]
struct Made {
    key: ConversionKey,
    result: Result<Value, String>,
}

impl Memo {
    /// An object in another version, if that is known. If not, the computation fails, and runs again.
    pub(crate) fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let is_it = |made: &&Made| made.key.api_version == api_version && made.key.object == *object;
        if let Some(made) = self.made.iter().find(is_it) {
            return made.result.clone();
        }
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        key.get_or_insert_with(|| ConversionKey {
            object: object.clone(),
            api_version: api_version.to_owned(),
        });
        Err("the conversion is still to be made".to_owned())
    }

    fn take_key(&self) -> Option<ConversionKey> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn make(&mut self, webhook: &Webhook, key: ConversionKey) {
        let result = webhook.convert(&key.object, &key.api_version).await;
        self.made.push(Made { key, result });
    }
}

/// What a computation comes to with all conversions that it asks for. It has to be a function of these alone.
pub(crate) async fn with_conversions<T>(call: &ResourceRequest<'_>, compute: impl Fn(&Memo) -> T) -> T {
    let mut memo = Memo::default();
    loop {
        let (webhook, key) = {
            let computed = compute(&memo);
            match (call.kind.strategy.by_webhook(), memo.take_key()) {
                (Some(by), Some(key)) => (by.webhook, key),
                _ => return computed,
            }
        };
        Box::pin(memo.make(webhook, key)).await;
    }
}
