//! A request that addresses objects of a kind.

use super::{Api, now};
use crate::codec::media::{self, Accept};
use crate::discovery;
use crate::http::compute;
use crate::kinds::kind::{Kind, Protobuf, Version};
use crate::metrics::Label;
use crate::request::{ObjectPath, Query, segment_fault};
use crate::rest::view::ViewRenderer;
use crate::status::{ApiError, ApiResult, GroupResource};
use std::sync::Arc;

/// The maximum length of a name. Some kinds allow any path segment; a key, which contains two names, has at most 4096
/// bytes.
const MAX_NAME: usize = 1024;

/// A request that addresses objects of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceRequest<'a> {
    pub(crate) api: &'a Arc<Api>,
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) version: &'a Version,
    pub(crate) path: &'a ObjectPath,
    pub(crate) query: &'a Query,
    pub(crate) accept: Accept<'a>,
    /// The labels of the request's metrics.
    pub(crate) label: &'a Label,
}

impl<'a> ResourceRequest<'a> {
    /// The resource, as errors name it.
    pub(crate) fn group_resource(&self) -> GroupResource<'a> {
        GroupResource {
            group: &self.kind.group,
            kind: &self.kind.plural,
        }
    }

    /// The kind, as errors about the content of an object name it.
    pub(crate) fn about_kind(&self) -> GroupResource<'a> {
        GroupResource {
            group: &self.kind.object_group,
            kind: &self.kind.kind,
        }
    }

    /// The `apiVersion` of the request.
    pub(crate) fn api_version(&self) -> String {
        discovery::api_version(&self.kind.group, &self.version.name)
    }

    /// Moves the request off the async workers if an object of that many bytes takes long.
    pub(crate) async fn offload(&self, bytes: usize) {
        if compute::is_heavy(bytes, self.kind.rules.weight(self.version)) {
            compute::offload(bytes).await;
        }
    }

    /// The key of an object.
    pub(crate) fn key(&self, name: &str) -> ApiResult<String> {
        check_segment(name)?;
        if !self.names_fit(name) {
            return Err(ApiError::not_found(self.group_resource(), name));
        }
        let key = self.api.keys.object(
            &self.kind.key_group,
            &self.kind.plural,
            self.path.namespace.as_deref(),
            name,
        );
        // No object can exist under a name that makes no key.
        key.map_err(|_| ApiError::not_found(self.group_resource(), name))
    }

    /// Returns whether the name and the namespace have a valid length.
    pub(crate) fn names_fit(&self, name: &str) -> bool {
        let namespace = self.path.namespace.as_deref().unwrap_or_default();
        name.len() <= MAX_NAME && namespace.len() <= MAX_NAME
    }

    /// The prefix of the keys of the collection.
    pub(crate) fn prefix(&self) -> ApiResult<String> {
        if !self.names_fit("") {
            return Err(ApiError::no_resource());
        }
        let keys = &self.api.keys;
        let prefix = match &self.path.namespace {
            Some(ns) => keys.namespace(&self.kind.key_group, &self.kind.plural, ns),
            None => keys.collection(&self.kind.key_group, &self.kind.plural),
        };
        prefix.map_err(|_| ApiError::no_resource())
    }

    /// The encoding and view of the response.
    pub(crate) fn wanted(&self) -> ApiResult<media::Negotiated> {
        let protobuf = self.kind.protobuf;
        let has_form = protobuf == Protobuf::Supported
            && crate::codec::protobuf::has_form(&self.api_version(), &self.kind.kind);
        let has_columns = match self.path.subresource.as_deref() {
            Some("status") => self.kind.status_has_columns,
            Some("scale") | None => true,
            Some(_) => false,
        };
        let offer = match (has_form, has_columns) {
            (false, true) => media::Supported::Custom,
            (false, false) => media::Supported::CustomWithoutColumns,
            (true, false) => media::Supported::WithoutColumns,
            (true, true) => media::Supported::BuiltIn,
        };
        media::negotiate(self.accept, offer).map_err(|e| match protobuf {
            // The standard text would promise protobuf, and hide why this server refuses it.
            Protobuf::Lossy(why) => {
                let offered = media::without_protobuf(self.accept.encodings).join(", ");
                ApiError::not_acceptable(format!(
                    "only the following media types are accepted: {offered}: {why}"
                ))
            }
            Protobuf::Supported | Protobuf::Unsupported => e,
        })
    }

    /// The renderer of the response.
    pub(crate) fn view_renderer(&self) -> ApiResult<ViewRenderer<'a>> {
        ViewRenderer::new(self.wanted()?, self.query, self.kind, self.version, now())
    }
}

/// Checks that a name can be a part of a key.
pub(crate) fn check_segment(name: &str) -> ApiResult<()> {
    if name.is_empty() {
        return Err(ApiError::bad_request("Name parameter required."));
    }
    match segment_fault(name) {
        Some(why) => {
            let shown = scantling_value::go::quote(name);
            Err(ApiError::bad_request(format!(
                "Name parameter invalid: {shown}: {why}"
            )))
        }
        None => Ok(()),
    }
}
