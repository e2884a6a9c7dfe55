//! Bodies of subresources whose kind is not that of the resource: bindings, evictions, scales, token requests.

use crate::api::ResourceRequest;
use crate::kinds::builtin;
use crate::kinds::kind::Kind;
use crate::rest::admission::Admission;
use crate::rest::body::{self, DecodedBody};
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::write::{ObjectSource, Ownership, Part, WriteRequest};
use crate::status::{ApiError, ApiResult};
use scantling_builtin::admission::Action;
use scantling_value::Value;
use std::sync::Arc;

/// The kind of a subresource, if it is not that of the resource.
pub(crate) fn action_kind(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
) -> ApiResult<Arc<Kind>> {
    let missing = || ApiError::internal_error(format!("the table of API types has no {group} {kind}"));
    Ok(Arc::new(
        builtin::subresource_kind(group, version, kind).ok_or_else(missing)?,
    ))
}

impl<'a> ResourceRequest<'a> {
    /// The same request, as one of another kind.
    pub(crate) fn of_kind<'k>(&self, kind: &'k Arc<Kind>) -> ApiResult<ResourceRequest<'k>>
    where
        'a: 'k,
    {
        let none = || ApiError::internal_error(format!("{} has no version", kind.kind));
        Ok(ResourceRequest {
            kind,
            version: kind.versions.first().ok_or_else(none)?,
            ..*self
        })
    }
}

impl WriteRequest<'_> {
    /// Decodes the body of a POST as an object of another kind than that of the resource.
    pub(crate) fn decode_action(
        &mut self,
        group: &'static str,
        version: &'static str,
        kind: &'static str,
    ) -> ApiResult<(Value, WriteOptions)> {
        let options = WriteOptions::parse(self.call.query, WriteKind::Create)?;
        let object = self.decode_other(group, version, kind, &options)?;
        Ok((object, options))
    }

    /// Runs the mutating admission plugins on the body of a POST to a subresource.
    pub(crate) async fn admit_action(&self, name: &str, object: &mut Value) -> ApiResult<()> {
        let admission = Admission {
            action: Action::Create,
            part: Part::Whole,
            name,
            old: None,
        };
        self.admit(&admission, object).await
    }

    /// Decodes the body as an object of another kind than that of the resource.
    pub(crate) fn decode_other(
        &mut self,
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        options: &WriteOptions,
    ) -> ApiResult<Value> {
        let kind = action_kind(group, version, kind)?;
        let call = self.call.of_kind(&kind)?;
        let mut write = WriteRequest {
            call: &call,
            head: self.head,
            body: self.body.clone(),
            warnings: self.warnings,
            // The action itself is not stored, so there cannot be a stored text to answer with.
            text: None,
        };
        let form = write.head.body_encoding()?;
        let mode = options.field_validation;
        let DecodedBody { mut object, found } = body::decode(&call, &write.body, form, mode)?;
        write.normalize(
            &mut object,
            &found,
            mode,
            Ownership::Update,
            ObjectSource::Body,
            None,
        )?;
        Ok(object)
    }
}
