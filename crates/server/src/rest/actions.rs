//! Bodies of subresources whose kind is not that of the resource: bindings, evictions, scales, token requests.

use crate::api::ResourceRequest;
use crate::kinds::builtin;
use crate::rest::body::{self, DecodedBody};
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::write::{ObjectSource, Ownership, WriteRequest};
use crate::status::{ApiError, ApiResult};
use scantling_value::Value;
use std::sync::Arc;

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

    /// Decodes the body as an object of another kind than that of the resource.
    pub(crate) fn decode_other(
        &mut self,
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        options: &WriteOptions,
    ) -> ApiResult<Value> {
        let missing = || ApiError::internal_error(format!("the table of API types has no {group} {kind}"));
        let kind = Arc::new(builtin::subresource_kind(group, version, kind).ok_or_else(missing)?);
        let version = kind.versions.first().ok_or_else(missing)?;
        let call = ResourceRequest {
            kind: &kind,
            version,
            ..*self.call
        };
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
