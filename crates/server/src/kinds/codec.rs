//! How objects of a kind are decoded, converted between versions, stored and merged.

use crate::kinds::custom::ByWebhook;
use crate::kinds::kind::{Kind, Version};
use crate::rest::body::DecodedBody;
use crate::status::ApiResult;
use scantling_merge::typed::ObjectType;
use scantling_schema::publish::OpenApiVersion;
use scantling_schema::structural::Structural;
use scantling_value::{FindingList, Value};
use std::fmt::Debug;

/// The error about the conversion of a custom resource to a version that it does not have.
pub(crate) const INVALID_VERSION: &str = "request to convert CR to an invalid group/version: ";

/// The codec of a kind. The default methods fit a kind without Go types: its objects are decoded as they are.
pub(crate) trait KindCodec: Debug + Send + Sync {
    /// The webhook that converts objects between versions, if the kind has one.
    fn webhook(&self) -> Option<ByWebhook<'_>> {
        None
    }

    /// Returns a stored object in a version. An object that a webhook converts must be in that version already.
    fn read(&self, kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value>;

    /// Returns an object of a version as it is stored, for kinds without a webhook.
    fn store(&self, kind: &Kind, version: &Version, object: Value) -> ApiResult<Value>;

    /// Decodes a text that is valid JSON by the Go types of the kind. Fields may occur twice, and of several errors the
    /// first in the text is returned. `None` for kinds without Go types.
    fn decode_text(&self, _version: &Version, _text: &[u8]) -> Option<Result<DecodedBody, String>> {
        None
    }

    /// Converts the values of an object that a patch or an apply made to their Go types. Removes unknown fields and
    /// returns them.
    fn convert(&self, _version: &Version, _object: &mut Value) -> Result<FindingList, String> {
        Ok(FindingList::new())
    }

    /// Returns an object, or a part of one, in another version. Fields that the version does not have stay. Fails for a
    /// version that the kind does not have, except for versions of built-in kinds that were served once.
    fn in_version(&self, kind: &Kind, mut object: Value, api_version: &str) -> Result<Value, String> {
        if !kind.has_version(api_version) {
            return Err(format!("{INVALID_VERSION}{api_version}"));
        }
        if let Some(members) = object.as_object_mut() {
            members.insert("apiVersion", api_version.into());
        }
        Ok(object)
    }

    /// Returns whether objects of an `apiVersion` that the kind does not serve are of this kind, too.
    fn is_alias(&self, _api_version: &str) -> bool {
        false
    }

    /// Decodes an object of such an `apiVersion` and converts it to a version.
    fn decode_alias(
        &self,
        _version: &Version,
        api_version: &str,
        _object: Value,
    ) -> Result<DecodedBody, String> {
        Err(format!("{api_version} is no other version of the kind"))
    }

    /// Returns the object whose fields managers own, if it is not the object itself.
    fn managed_form(&self, _version: &Version, _object: &Value) -> Option<Value> {
        None
    }

    /// The object without any fields but those that every object of the kind has.
    fn empty_object(&self, _version: &Version) -> Option<Value> {
        None
    }

    /// The object of a bookmark event.
    fn bookmark_object(&self, version: &Version) -> Option<Value> {
        self.empty_object(version)
    }

    /// The type by which the fields of a version are owned and merged; `None` if the kind does not have the version.
    fn object_type(&self, version: &str) -> Option<&ObjectType>;

    /// The schema of strategic merge patches; `None` if the kind does not accept them.
    fn strategic_schema(&self, _version: &Version) -> Option<&Structural> {
        None
    }

    /// The OpenAPI schemas of versions of a custom resource, one per version.
    fn published(
        &self,
        kind: &Kind,
        _versions: &[&Version],
        _format: OpenApiVersion,
    ) -> Result<Vec<Value>, String> {
        Err(format!("{} is built in", kind.kind))
    }
}
