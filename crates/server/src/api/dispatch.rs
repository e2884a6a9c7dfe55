//! Routing of requests that address objects: from a path and a method to the handler.

use super::body::read_body;
use super::routes::{check_route, check_verb};
use super::{Api, RequestMeta, ResourceRequest, refusal};
use crate::http::reply::Reply;
use crate::metrics::Label;
use crate::request::ObjectPath;
use crate::rest::options::ListOptions;
use crate::rest::{connect, read, scale, watch, write};
use crate::status::{ApiError, ApiResult};
use hyper::Method;
use hyper::body::Incoming;
use std::sync::Arc;

impl Api {
    /// Serves a request that addresses objects.
    pub(super) async fn object(
        self: &Arc<Self>,
        head: &RequestMeta,
        path: &ObjectPath,
        body: Incoming,
        label: &Label,
    ) -> ApiResult<Reply> {
        // One state of the kinds for the whole request, whatever the controller publishes meanwhile.
        let kinds = self.kinds.load_full();
        let built_in = kinds.has_builtin_group(&path.gv.group);
        let found = kinds.get(&path.gv.group, &path.resource).and_then(|kind| {
            let version = kind.served_version(&path.gv.version)?;
            // Namespaced objects are named within a namespace, others without one; lists may cross namespaces.
            let across = path.namespace.is_none()
                && (path.name.is_none() || (path.watch && !built_in))
                && (built_in || path.watch || matches!(head.method, Method::GET | Method::HEAD));
            let fits = kind.namespaced == path.namespace.is_some() || (kind.namespaced && across);
            fits.then_some((kind, version))
        });
        let Some((kind, version)) = found else {
            return match built_in {
                // Built-in groups answer with a `Status`, groups of CRDs with the plain text of Go's multiplexer.
                true => Err(ApiError::no_resource()),
                false => Ok(Reply::page_not_found()),
            };
        };
        if built_in {
            check_route(head, path, kind, version)?;
        }
        if !kind.servable {
            let why = format!("the schemas of {} cannot be served", kind.kind);
            return Err(ApiError::internal_error("error resolving resource").private(why));
        }
        let call = ResourceRequest {
            api: self,
            kind,
            version,
            path,
            query: &head.query,
            accept: head.accept(),
            label,
        };
        let mut warnings: Vec<String> = version.deprecation.iter().cloned().collect();
        if !warnings.is_empty() {
            self.metrics.deprecated(kind, &version.name);
        }
        // Warnings collect beside the result, because errors have them, too.
        let mut answer = self.dispatch(&call, head, body, &mut warnings).await;
        if !warnings.is_empty() {
            let mut reply = answer.unwrap_or_else(|e| refusal(&e, head.accept()));
            reply.warn(&warnings);
            answer = Ok(reply);
        }
        answer
    }

    /// Serves a read, or hands over to [`Api::change`].
    async fn dispatch(
        self: &Arc<Self>,
        call: &ResourceRequest<'_>,
        head: &RequestMeta,
        body: Incoming,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Reply> {
        let name = call.path.name.as_deref();
        let sub = call.path.subresource.as_deref();
        if sub.is_some_and(|name| call.version.subresource(name).is_none()) {
            return Err(ApiError::not_found(
                call.group_resource(),
                name.unwrap_or_default(),
            ));
        }
        if call.path.watch && sub.is_some() {
            return Err(ApiError::method_not_allowed(call.group_resource(), "watch"));
        }
        check_verb(call, &head.method)?;
        // Accept is checked first, except that the type of a patch is checked before.
        if head.method != Method::PATCH {
            call.wanted()?;
        }
        if call.path.watch || head.method == Method::GET || head.method == Method::HEAD {
            return match (name, sub) {
                (Some(name), Some("scale")) => scale::get(call, name).await,
                (Some(name), Some("log")) => connect::log(call, name).await,
                (Some(_), Some(sub @ ("exec" | "attach" | "portforward" | "proxy"))) => {
                    Err(connect::refuse(call, sub).await)
                }
                (Some(name), _) if !call.path.watch => read::get(call, name).await,
                _ => {
                    let options = ListOptions::parse(call.query, call.path.watch)?;
                    if options.watch {
                        Box::pin(watch::watch(call, &options)).await
                    } else {
                        Box::pin(read::list(call, &options)).await
                    }
                }
            };
        }
        // Every connection holds the future of its request: rare and large ones are boxed.
        Box::pin(self.change(call, head, body, warnings)).await
    }

    /// Serves a request that changes objects.
    async fn change(
        self: &Arc<Self>,
        call: &ResourceRequest<'_>,
        head: &RequestMeta,
        body: Incoming,
        warnings: &mut Vec<String>,
    ) -> ApiResult<Reply> {
        let (name, sub) = (call.path.name.as_deref(), call.path.subresource.as_deref());
        let (body, _memory) = read_body(body, &self.memory.requests).await?;
        // Decoding starts next: a large body must not be decoded on an async worker.
        call.offload(body.len()).await;
        let mut write = write::WriteRequest {
            call,
            head,
            body,
            warnings,
            text: None,
        };
        match (&head.method, name, sub) {
            (&Method::POST, name, Some("binding")) => write.bind(name).await,
            (&Method::POST, Some(name), Some("token")) => write.create_token(name).await,
            (&Method::POST, Some(name), Some("eviction")) => write.evict(name).await,
            (_, _, Some(sub @ ("exec" | "attach" | "portforward" | "proxy"))) => {
                Err(connect::refuse(call, sub).await)
            }
            (&Method::POST, None, None) if is_binding(call) => write.bind(None).await,
            (&Method::POST, ..) => write.create().await,
            (method @ (&Method::PUT | &Method::PATCH), None, _) => {
                // An error about the type of a patch comes first.
                if method == Method::PATCH {
                    write.patch_type()?;
                }
                Err(ApiError::bad_request("name must be provided"))
            }
            (&Method::PUT, Some(name), Some("scale")) => scale::update(&mut write, name).await,
            (&Method::PUT, Some(name), _) => write.update(name).await,
            (&Method::PATCH, Some(name), _) => write.patch(name).await,
            // `check_verb` has refused all methods but these, so what remains is DELETE.
            (_, Some(name), _) => write.delete(name).await,
            (_, None, _) => write.delete_collection().await,
        }
    }
}

/// Returns whether a request is about `bindings`, whose objects are actions on Pods.
fn is_binding(call: &ResourceRequest<'_>) -> bool {
    call.kind.group.is_empty() && call.kind.kind == "Binding"
}
