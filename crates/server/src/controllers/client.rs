//! Writes that the server makes by itself, through the same path as those of its clients.

use crate::api::{Api, RequestMeta, ResourceRequest};
use crate::auth::authentication::{MASTERS, User};
use crate::kinds::kind::Kind;
use crate::metrics::Label;
use crate::request::{ObjectPath, Query, Target};
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::read::store_error;
use crate::rest::write::{ObjectSource, Ownership, WriteRequest, metadata_str};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use hyper::{Method, Uri};
use scantling_schema::names::group_version;
use scantling_value::Value;
use std::sync::Arc;

/// A client inside the server.
pub(crate) struct Client<'a> {
    api: &'a Arc<Api>,
    /// The field manager of its writes.
    manager: &'static str,
}

impl<'a> Client<'a> {
    /// A client whose writes are owned by a field manager.
    pub(crate) fn new(api: &'a Arc<Api>, manager: &'static str) -> Client<'a> {
        Client { api, manager }
    }

    fn kind(&self, object: &Value) -> Option<Arc<Kind>> {
        let (group, _) = group_version(object.get_str("apiVersion"));
        self.api.kind_named(group, object.get_str("kind"))
    }

    /// Returns whether the server serves the kind of an object.
    pub(crate) fn serves(&self, object: &Value) -> bool {
        self.kind(object).is_some()
    }

    /// Creates an object, unless one of its name exists.
    pub(crate) async fn create_if_absent(&self, object: Value) -> ApiResult<()> {
        let api = self.api;
        let kind = self.kind(&object).ok_or_else(ApiError::no_resource)?;
        let (group, version) = group_version(object.get_str("apiVersion"));
        let version = kind.served_version(version).ok_or_else(ApiError::no_resource)?;
        let namespace = Some(metadata_str(&object, "namespace")).filter(|ns| !ns.is_empty());
        let name = metadata_str(&object, "name");
        let key = api.keys.object(&kind.key_group, &kind.plural, namespace, name);
        let key = key.map_err(store_error)?;
        if api.newest(&key).await?.is_some() {
            return Ok(());
        }
        let path = ObjectPath {
            gv: crate::request::GroupVersion {
                group: group.to_owned(),
                version: version.name.clone(),
            },
            namespace: namespace.map(str::to_owned),
            resource: kind.plural.clone(),
            name: None,
            subresource: None,
            ends: true,
            watch: false,
        };
        let head = RequestMeta {
            method: Method::POST,
            query: Query::parse(""),
            accept: None,
            content_type: None,
            if_none_match: None,
            user_agent: self.manager.to_owned(),
            user: Some(Arc::new(User::authenticated(
                // The identity of kube-apiserver's loopback client.
                "system:apiserver".to_owned(),
                String::new(),
                vec![MASTERS.to_owned()],
            ))),
            uri: Uri::default(),
            encodings: api.encodings,
        };
        let target = Target::Object(path.clone());
        let label = Label::new(&head.method, &target, None, &api.kinds.load(), false);
        let call = ResourceRequest {
            api,
            kind: &kind,
            version,
            path: &path,
            query: &head.query,
            accept: head.accept(),
            label: &label,
        };
        let options = WriteOptions::parse(&head.query, WriteKind::Create)?;
        let mut write = WriteRequest {
            call: &call,
            head: &head,
            body: Bytes::new(),
            warnings: &mut Vec::new(),
            text: None,
        };
        let created = write.create_object(object, &[], &options, Ownership::Update, ObjectSource::Body);
        match Box::pin(created).await {
            // Conflict: another server created it between the lookup and the write.
            Err(e) if e.code() != 409 => Err(e),
            _ => Ok(()),
        }
    }
}
