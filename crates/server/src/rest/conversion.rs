//! Conversion between the versions of a kind by a webhook.
//!
//! Objects are stored in one version and served in any. The webhook of a CRD is called in four places: for reads
//! ([`ResourceRequest::read`]), for writes ([`ResourceRequest::store`]), for the entries of lists and watches
//! ([`Converted`]), and for field ownership ([`memo`]). Kinds without a webhook never wait there.

mod client;
mod memo;
mod recent_conversions;
mod review;
mod trust;

pub(crate) use memo::{Memo, with_conversions};
pub(crate) use recent_conversions::RecentConversions;
pub(crate) use review::group_version_kind;

use crate::api::ResourceRequest;
use crate::discovery::api_version;
use crate::http::compute;
use crate::http::memory::{self, Budget, Charge};
use crate::kinds::custom::ByWebhook;
use crate::metrics::{Conversion, Conversions};
use crate::rest::entry_cache::is_normalized;
use crate::rest::read::{self, undecodable};
use crate::rest::write::metadata_mut;
use crate::status::{ApiError, ApiResult};
use base64::Engine as _;
use client::WebhookCaller;
use futures_util::future::join_all;
use recent_conversions::RecentOf;
use review::{ConversionRequest, ReviewVersion, WebhookError};
use scantling_schema::definition::{Definition, WebhookClient};
use scantling_schema::names::group_version;
use scantling_store::Entry;
use scantling_value::{Str, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The conversion webhook of a CRD.
#[derive(Debug)]
pub(crate) struct Webhook {
    settings: WebhookClient,
    review: Option<ReviewVersion>,
    /// The name of the CRD.
    definition: String,
    metrics: Conversions,
    /// Created for the first call.
    client: OnceLock<Result<WebhookCaller, String>>,
    recent: RecentOf,
}

impl Webhook {
    /// Returns the webhook of a CRD, if it has one.
    pub(crate) fn new(
        definition: &Definition,
        metrics: &Conversions,
        recent: &Arc<RecentConversions>,
    ) -> Option<Webhook> {
        let conversion = definition.spec.conversion.as_ref();
        let conversion = conversion.filter(|c| c.strategy == "Webhook")?;
        let versions = conversion.review_versions.iter().flatten();
        Some(Webhook {
            settings: conversion.client.clone().unwrap_or_default(),
            review: ReviewVersion::choose(versions.map(Str::as_str)),
            definition: definition.name().to_owned(),
            metrics: metrics.clone(),
            client: OnceLock::new(),
            recent: RecentConversions::of_webhook(recent),
        })
    }

    /// Converts an object to another version.
    async fn convert(&self, object: &Value, wanted: &str, memory: &Budget) -> Result<Value, String> {
        let Some(version) = self.review else {
            return Err("no supported conversion review versions".to_owned());
        };
        let uid = uuid::Uuid::new_v4().to_string();
        let request = ConversionRequest {
            version,
            uid: &uid,
            object,
            wanted,
        };
        let started = Instant::now();
        let answer = self.ask(&request, memory).await;
        self.count(&request, answer.as_ref().err(), started);
        answer.map_err(|fault| match fault {
            WebhookError::Call(why) | WebhookError::Malformed(why) => {
                request.failed(&format!("failed: {why}"))
            }
            WebhookError::Count(count) => request.failed(&format!("returned {count} objects, expected 1")),
            WebhookError::Object(why) => why,
        })
    }

    fn count(&self, request: &ConversionRequest<'_>, fault: Option<&WebhookError>, started: Instant) {
        let version = |api_version: &str| group_version(api_version).1.to_owned();
        let conversion = Conversion {
            crd_name: self.definition.clone(),
            from_version: version(request.object.get_str("apiVersion")),
            to_version: version(request.wanted),
            succeeded: fault.is_none().to_string(),
        };
        self.metrics
            .called(&conversion, fault.map(WebhookError::kind), started.elapsed());
    }

    async fn ask(&self, request: &ConversionRequest<'_>, memory: &Budget) -> Result<Value, WebhookError> {
        let client = self.client().map_err(WebhookError::Call)?;
        let answer = client.post(request.to_json().into(), memory).await;
        let answer = answer.map_err(WebhookError::Call)?;
        // Decoding and comparing a large answer would hold up the other requests of the worker.
        compute::offload(answer.body.len()).await;
        request.read(&answer)
    }

    fn client(&self) -> Result<&WebhookCaller, String> {
        let made = self.client.get_or_init(|| {
            // An invalid bundle must not fall back to the authorities of the system.
            let bundle = base64::engine::general_purpose::STANDARD
                .decode(self.settings.ca_bundle.as_bytes())
                .map_err(|e| format!("unable to load root certificates: {e}"))?;
            WebhookCaller::new(&self.settings, &bundle)
        });
        made.as_ref().map_err(String::clone)
    }
}

impl ResourceRequest<'_> {
    /// Returns a stored object in the version of the request.
    pub(crate) async fn read(&self, stored: Value) -> ApiResult<Value> {
        match self.kind.codec.webhook() {
            // Boxed, because few kinds need this large future.
            Some(by) => Box::pin(self.read_converted(by, stored)).await,
            None => self.kind.codec.read(self.kind, self.version, stored),
        }
    }

    async fn read_converted(&self, by: ByWebhook<'_>, stored: Value) -> ApiResult<Value> {
        let loaded = by.custom.load(self.kind, stored)?;
        let converted = self.convert(by, loaded, &self.version.name).await;
        converted.map_err(ApiError::unreadable)
    }

    /// Returns an object of the request's version as it is stored.
    pub(crate) async fn store(&self, object: Value) -> ApiResult<Value> {
        match (self.kind.codec.webhook(), self.kind.storage_version()) {
            (Some(by), Some(storage)) => {
                let converted = Box::pin(self.convert(by, object, &storage.name)).await;
                converted.map_err(ApiError::internal)
            }
            _ => self.kind.codec.store(self.kind, self.version, object),
        }
    }

    /// Converts an object unless it is in the version already. The webhook does not see the resource version.
    async fn convert(&self, by: ByWebhook<'_>, mut object: Value, version: &str) -> Result<Value, String> {
        let wanted = api_version(&self.kind.group, version);
        // kube-apiserver does not call the webhook either if there is nothing to convert.
        if object.get("apiVersion").and_then(Value::as_str) == Some(&wanted) {
            return Ok(object);
        }
        let revision = metadata_mut(&mut object).and_then(|metadata| metadata.remove("resourceVersion"));
        let converted = by.webhook.convert(&object, &wanted, &self.api.memory.conversions);
        let converted = converted.await?;
        // A webhook may answer with fields that the schema of the version lacks: they are pruned.
        let converted = by.custom.convert(self.kind, version, converted);
        let mut converted = converted.map_err(|e| e.message().to_owned())?;
        if let (Some(revision), Some(metadata)) = (revision, metadata_mut(&mut converted)) {
            metadata.insert("resourceVersion", revision);
        }
        Ok(converted)
    }
}

/// The number of concurrent calls for a list or watch.
pub(crate) const AT_ONCE: usize = 16;

/// The stored bytes of the objects that are converted at once.
pub(crate) const BYTES_AT_ONCE: usize = 1 << 20;

/// The entries of a list or watch that a webhook converted; empty for kinds without one.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    by_revision: BTreeMap<u64, ApiResult<(Arc<Value>, Charge)>>,
}

impl Converted {
    /// Converts the entries that are not in the version of the request. Recent conversions are reused.
    pub(crate) async fn for_entries<'e>(
        call: &ResourceRequest<'_>,
        entries: impl IntoIterator<Item = &'e Arc<Entry>>,
    ) -> Converted {
        let Some(ByWebhook { webhook, .. }) = call.kind.codec.webhook() else {
            return Converted::default();
        };
        // Entries that are shown as they are stored need no webhook.
        let entries = entries.into_iter().filter(|entry| !is_normalized(call, entry));
        let entries: Vec<&Arc<Entry>> = entries.collect();
        Box::pin(Converted::by(webhook, call, &entries)).await
    }

    async fn by(webhook: &Webhook, call: &ResourceRequest<'_>, entries: &[&Arc<Entry>]) -> Converted {
        let mut by_revision = BTreeMap::new();
        // Bounds the concurrent calls: a long list must not open a connection to the webhook for every object.
        for some in entries.chunks(AT_ONCE) {
            let converting = some.iter().map(|entry| webhook.recently(call, entry));
            let converted = join_all(converting).await;
            by_revision.extend(some.iter().map(|entry| entry.mod_revision).zip(converted));
        }
        Converted { by_revision }
    }

    /// Returns a stored object in the version of the request.
    pub(crate) fn object(&self, call: &ResourceRequest<'_>, entry: &Entry) -> ApiResult<Value> {
        if let Some(converted) = self.by_revision.get(&entry.mod_revision) {
            return match converted {
                // The cached conversion is shared, and callers modify the object.
                Ok((object, _)) => Ok(Value::clone(object)),
                Err(e) => Err(e.clone()),
            };
        }
        let object = read::stored(entry)?;
        if is_normalized(call, entry) {
            return Ok(object);
        }
        let read = call.kind.codec.read(call.kind, call.version, object);
        read.map_err(|e| undecodable(entry.mod_revision, e))
    }
}

impl Webhook {
    /// Returns an entry in the version of the request, converted recently or now.
    async fn recently(&self, call: &ResourceRequest<'_>, entry: &Entry) -> ApiResult<(Arc<Value>, Charge)> {
        let slot = self.recent.slot(entry, &call.version.name);
        let shown = || async { read::object_in_version(call, entry).await.map(Arc::new) };
        let object = Arc::clone(slot.get_or_try_init(shown).await?);
        let bytes = memory::size_of_value(&object);
        self.recent.weigh(entry, &call.version.name, bytes);
        // Each list holds its objects even after the cache has evicted them, so each is charged for them.
        let charge = call.api.memory.conversions.charge(bytes);
        Ok((object, charge.ok_or_else(crate::api::too_many_requests)?))
    }
}
