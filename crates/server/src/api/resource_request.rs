//! A request about objects: which kind, which names, and what the answer is to be.

use super::{Api, now};
use crate::codec::media::{self, Accept};
use crate::discovery;
use crate::http::compute;
use crate::kinds::kind::{Kind, Version};
use crate::metrics::Label;
use crate::request::{ObjectPath, Query, no_segment};
use crate::rest::view::Shape;
use crate::status::{ApiError, ApiResult, GroupResource};
use std::sync::Arc;

/// The most bytes of a name.
const MAX_NAME: usize = 253;

/// A request that names objects of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceRequest<'a> {
    pub(crate) api: &'a Arc<Api>,
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) version: &'a Version,
    pub(crate) path: &'a ObjectPath,
    pub(crate) query: &'a Query,
    pub(crate) accept: Accept<'a>,
    /// What the request is counted under.
    pub(crate) label: &'a Label,
}

impl<'a> ResourceRequest<'a> {
    /// How errors name the resource.
    pub(crate) fn group_resource(&self) -> GroupResource<'a> {
        GroupResource {
            group: &self.kind.group,
            kind: &self.kind.plural,
        }
    }

    /// How errors about an object's content name it.
    pub(crate) fn about_kind(&self) -> GroupResource<'a> {
        GroupResource {
            group: self.kind.own_group(),
            kind: &self.kind.kind,
        }
    }

    /// The `apiVersion` of the request.
    pub(crate) fn api_version(&self) -> String {
        discovery::api_version(&self.kind.group, &self.version.name)
    }

    /// Goes on where nobody waits for it, if an object of that many bytes is much work.
    pub(crate) async fn offload(&self, bytes: usize) {
        if compute::is_heavy(bytes, self.kind.strategy.checks(self.version)) {
            compute::offload(bytes).await;
        }
    }

    /// The key of an object.
    pub(crate) fn key(&self, name: &str) -> ApiResult<String> {
        if let Some(why) = no_segment(name) {
            let shown = scantling_value::go::quote(name);
            return Err(ApiError::bad_request(format!(
                "Name parameter invalid: {shown}: {why}"
            )));
        }
        if !self.names_fit(name) {
            return Err(ApiError::not_found(self.group_resource(), name));
        }
        let key = self.api.keys.object(
            self.kind.key_group(),
            &self.kind.plural,
            self.path.namespace.as_deref(),
            name,
        );
        key.map_err(|_| ApiError::not_found(self.group_resource(), name))
    }

    /// Whether there can be objects of such names at all.
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
            Some(ns) => keys.namespace(self.kind.key_group(), &self.kind.plural, ns),
            None => keys.collection(self.kind.key_group(), &self.kind.plural),
        };
        prefix.map_err(|_| ApiError::no_resource())
    }

    /// What the client would have the answer be.
    pub(crate) fn wanted(&self) -> ApiResult<media::Negotiated> {
        let no_protobuf = self.kind.strategy.no_protobuf();
        let has_form = self.kind.built_in
            && no_protobuf.is_none()
            && crate::codec::protobuf::has_form(&self.api_version(), &self.kind.kind);
        let has_columns = match self.path.subresource.as_deref() {
            Some("status" | "approval" | "ephemeralcontainers" | "resize") => {
                self.kind.strategy.status_has_columns()
            }
            Some("scale") | None => true,
            Some(_) => !self.kind.built_in,
        };
        let offer = match (has_form, has_columns) {
            (false, true) => media::Supported::Custom,
            (false, false) => media::Supported::CustomWithoutColumns,
            (true, false) => media::Supported::WithoutColumns,
            (true, true) => media::Supported::BuiltIn,
        };
        media::wanted(self.accept, offer).map_err(|e| match no_protobuf {
            Some(why) => {
                let offered = media::without_protobuf(self.accept.encodings).join(", ");
                ApiError::not_acceptable(format!(
                    "only the following media types are accepted: {offered}: {why}"
                ))
            }
            None => e,
        })
    }

    /// The form of the answer.
    pub(crate) fn shape(&self) -> ApiResult<Shape<'a>> {
        Shape::new(self.wanted()?, self.query, self.kind, self.version, now())
    }
}
