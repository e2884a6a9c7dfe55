//! The behaviour of a kind; everything else is one pipeline for all kinds.

use crate::kinds::custom::ByWebhook;
use crate::kinds::kind::{Kind, Version};
use crate::openapi::models;
use crate::rest::body::DecodedBody;
use crate::status::ApiResult;
use scantling_admit::{AdmissionError, AdmitOutcome, FieldValidation, WriteOperation};
use scantling_builtin::{GarbageCollection, Subresource};
use scantling_merge::typed::ObjectType;
use scantling_schema::publish::OpenApiVersion;
use scantling_schema::structural::Structural;
use scantling_value::Value;
use std::fmt::Debug;

/// What the rules of a kind may depend on besides the object and the operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteContext<'a> {
    /// The subresource that is written.
    pub(crate) subresource: Subresource,
    /// The time of the request.
    pub(crate) now: &'a str,
    /// The user who sent the request.
    pub(crate) user: scantling_builtin::User<'a>,
}

/// The behaviour of a kind.
pub(crate) trait Strategy: Debug + Send + Sync {
    /// The kind with the webhook that converts its objects, if one does.
    fn by_webhook(&self) -> Option<ByWebhook<'_>> {
        None
    }

    /// A stored object as a version shows it. What a webhook converts has to be of that version already.
    fn read(&self, kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value>;

    /// An object of a version as it is stored, for kinds that no webhook converts.
    fn store(&self, kind: &Kind, version: &Version, object: Value) -> ApiResult<Value>;

    /// Brings an object of a request into the form of its kind; returns warnings. What strict decoding of the
    /// request's text found comes along.
    fn receive(
        &self,
        version: &Version,
        object: &mut Value,
        found: &[String],
        mode: FieldValidation,
    ) -> Result<Vec<String>, AdmissionError>;

    /// Brings the values of an object that was made, not sent, into the types of the kind, or tells which does not fit.
    /// Returns what there is to say of unknown fields, which go. Kinds without types of their own take it as it is.
    fn convert(&self, _version: &Version, _object: &mut Value) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }

    /// Returns an object, or a part of one, under the name of another version. Without a conversion of its own, versions
    /// of a kind differ in name alone; fields that one of them does not know stay.
    fn in_version(&self, mut object: Value, api_version: &str) -> Result<Value, String> {
        if let Some(members) = object.as_object_mut() {
            members.insert("apiVersion", api_version.into());
        }
        Ok(object)
    }

    /// What a text is as an object of the kind, to the letter: what its types make of fields that stand twice, or what is
    /// wrong with it first. None for kinds without types of their own: the value of the text is all there is to them.
    fn read_text(&self, _version: &Version, _text: &[u8]) -> Option<Result<DecodedBody, String>> {
        None
    }

    /// Brings what an apply made into the form of its kind. It was typed on the way; only defaults are missing.
    fn receive_applied(&self, version: &Version, object: &mut Value) -> Result<(), AdmissionError> {
        self.receive(version, object, &[], FieldValidation::Ignore)
            .map(drop)
    }

    /// How many checks are made of each value of a version's objects, at most; all there are where that is not known yet.
    fn checks(&self, _version: &Version) -> u32 {
        1
    }

    /// Prepares and validates a write of an object that is normalized.
    fn decide(
        &self,
        version: &Version,
        operation: WriteOperation<'_>,
        object: Value,
        context: &WriteContext<'_>,
    ) -> AdmitOutcome;

    /// Whether the status shows as a table, as the object does.
    fn status_has_columns(&self) -> bool {
        true
    }

    /// The reason why objects of a built-in kind have no protobuf form, if they have none.
    fn no_protobuf(&self) -> Option<&'static str> {
        None
    }

    /// Why the object of this name cannot be deleted, if it cannot.
    fn protection(&self, _name: &str) -> Option<&'static str> {
        None
    }

    /// The fields that a write to the object itself leaves as they are, for kinds with a status.
    fn kept(&self) -> &'static [&'static [&'static str]] {
        &[&["status"]]
    }

    /// The fields that a write to the status leaves as they are.
    fn kept_by_status(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    /// The type by which fields of a version are owned and merged; none if the kind does not have that version.
    fn object_type(&self, version: &str) -> Option<&ObjectType>;

    /// Whether objects of another version are of this kind under another name.
    fn is_also(&self, _api_version: &str) -> bool {
        false
    }

    /// An object of such a version as this kind has it, with what is unknown there.
    fn of_other(&self, _version: &Version, api_version: &str, _object: Value) -> Result<DecodedBody, String> {
        Err(format!("{api_version} is no other version of the kind"))
    }

    /// An object in form as it is written, whose fields are those that managers own; none if it is written as it is.
    fn written(&self, _version: &Version, _object: &Value) -> Option<Value> {
        None
    }

    /// An object with nothing in it but what objects of the kind always have.
    fn empty_object(&self, _version: &Version) -> Option<Value> {
        None
    }

    /// An object of which nothing is known, as bookmarks are.
    fn bookmark_object(&self, version: &Version) -> Option<Value> {
        self.empty_object(version)
    }

    /// The schemas that documents publish, one for each of some versions of the kind: a definition is read once for all.
    fn published(
        &self,
        kind: &Kind,
        versions: &[&Version],
        _format: OpenApiVersion,
    ) -> Result<Vec<Value>, String> {
        let model = |version: &&Version| models::published(&kind.group, &version.name, &kind.kind);
        versions.iter().map(model).collect()
    }

    /// Whether field selectors may use this field; if not, what a request with it is told.
    fn selectable(&self, kind: &Kind, version: &Version, field: &str) -> Result<(), String>;

    /// Whether a server keeps the objects in memory, and reads them there.
    fn is_kept_in_memory(&self) -> bool {
        true
    }

    /// Whether an update may come without a resource version.
    fn unconditional_update(&self) -> bool {
        false
    }

    /// Whether an update makes an object that is not there.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// The schema by which strategic merge patches merge, for kinds that understand them.
    fn strategic_schema(&self, _version: &Version) -> Option<&Structural> {
        None
    }

    /// Whether the kind takes strategic merge patches: built-in kinds do.
    fn takes_strategic_patches(&self) -> bool {
        true
    }

    /// The media types of patches that the kind understands.
    fn patch_types(&self) -> &'static [&'static str] {
        match self.takes_strategic_patches() {
            false => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ],
            true => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ],
        }
    }

    /// The words of a conflict with a precondition, for kinds that have their own.
    fn precondition_failed(&self) -> Option<&'static str> {
        None
    }

    /// Whether something other than finalizers in its metadata holds an object that is being deleted.
    fn is_held(&self, _object: &Value) -> bool {
        false
    }

    /// What a deletion does to dependents if its options do not say so.
    fn garbage_collection(&self) -> GarbageCollection {
        GarbageCollection::Delete
    }

    /// The warning about a deletion that orphans dependents by default.
    fn orphan_warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether a DELETE returns the deleted object; otherwise it returns a `Status`.
    fn returns_deleted(&self) -> bool {
        false
    }

    /// The grace period of a deletion in seconds, given the one that was requested; `None` if the object is deleted at
    /// once.
    fn grace_period(&self, _object: &Value, _requested: Option<i64>) -> Option<i64> {
        None
    }

    /// The stored object as its first deletion leaves it, for kinds whose objects are never deleted at once; or why it
    /// cannot be read.
    fn mark(&self, _stored: Value, _now: &str) -> Result<Option<Value>, String> {
        Ok(None)
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
