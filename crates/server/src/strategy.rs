//! What is particular about the objects of a kind; everything else is one pipeline for all kinds.

use crate::kind::{Kind, Version};
use crate::status::ApiResult;
use scantling_admit::{FieldValidation, Operation, Outcome};
use scantling_schema::structural::Structural;
use scantling_value::Value;
use std::fmt::Debug;
use std::sync::Arc;

/// The particulars of a kind.
pub(crate) trait Strategy: Debug + Send + Sync {
    /// A stored object as a version shows it.
    fn read(&self, kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value>;

    /// An object of a version as it is stored.
    fn store(&self, kind: &Kind, version: &Version, object: Value) -> Value;

    /// Decides about a write. What strict decoding of the request's text found comes along.
    fn admit(
        &self,
        kind: &Kind,
        version: &Version,
        operation: Operation<'_>,
        object: Value,
        found: &[String],
        mode: FieldValidation,
    ) -> Outcome;

    /// The schema by which fields are owned and merged.
    fn schema(&self, kind: &Kind, version: &Version) -> Option<Arc<Structural>>;

    /// The schema that documents publish.
    fn published(&self, kind: &Kind, version: &Version) -> Value;

    /// Whether field selectors may use this field; if not, what a request with it is told.
    fn selectable(&self, kind: &Kind, version: &Version, field: &str) -> Result<(), String>;

    /// Whether an update may come without a resource version.
    fn unconditional_update(&self) -> bool {
        false
    }

    /// Whether strategic merge patches are understood.
    fn strategic_patch(&self) -> bool {
        false
    }

    /// A field of an object as field selectors compare it.
    fn field(&self, object: &Value, field: &str) -> String {
        match object.at(field.split('.')) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(s)) => s.to_string(),
            Some(other) => other.to_json(),
        }
    }
}
