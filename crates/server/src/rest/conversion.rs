//! Conversion between the versions of a kind by a webhook.
//!
//! Objects are stored in one version and shown in any. Where a definition says that a webhook converts them, it is asked
//! in four places: for what is read ([`ResourceRequest::read`]), for what is stored ([`ResourceRequest::store`]), for what lists and watches
//! are about to look at ([`Converted`]), and for what field ownership compares ([`memo`]). Kinds without a webhook pass
//! through all of them without waiting.

mod client;
mod memo;
mod recent;
mod review;
mod trust;

pub(crate) use memo::{Memo, with_conversions};
pub(crate) use review::group_version_kind;

use crate::api::ResourceRequest;
use crate::codec::text::is_in_form;
use crate::discovery::api_version;
use crate::kinds::custom::ByWebhook;
use crate::metrics::{Conversion, Conversions};
use crate::rest::read::{self, undecodable};
use crate::rest::write::metadata_mut;
use crate::status::{ApiError, ApiResult};
use base64::Engine as _;
use client::Client;
use futures_util::future::join_all;
use recent::Recent;
use review::{ConversionRequest, Fault, ReviewVersion};
use scantling_schema::definition::{Definition, WebhookClient};
use scantling_schema::names::group_version;
use scantling_store::Entry;
use scantling_value::{Str, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A webhook that converts the objects of a kind, as the definition describes it now.
#[derive(Debug)]
pub(crate) struct Webhook {
    settings: WebhookClient,
    review: Option<ReviewVersion>,
    /// The name of the definition.
    definition: String,
    metrics: Conversions,
    /// Made for the first call.
    client: OnceLock<Result<Client, String>>,
    recent: Recent,
}

impl Webhook {
    /// The webhook of a definition, if it has one.
    pub(crate) fn new(definition: &Definition, metrics: &Conversions) -> Option<Webhook> {
        let conversion = definition.spec.conversion.as_ref();
        let conversion = conversion.filter(|c| c.strategy == "Webhook")?;
        let versions = conversion.review_versions.iter().flatten();
        Some(Webhook {
            settings: conversion.client.clone().unwrap_or_default(),
            review: ReviewVersion::choose(versions.map(Str::as_str)),
            definition: definition.name().to_owned(),
            metrics: metrics.clone(),
            client: OnceLock::new(),
            recent: Recent::default(),
        })
    }

    /// An object as another version has it.
    async fn convert(&self, object: &Value, wanted: &str) -> Result<Value, String> {
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
        let answer = self.ask(&request).await;
        self.count(&request, answer.as_ref().err(), started);
        answer.map_err(|fault| match fault {
            Fault::ResourceRequest(why) | Fault::Malformed(why) => request.failed(&format!("failed: {why}")),
            Fault::Count(count) => request.failed(&format!("returned {count} objects, expected 1")),
            Fault::Object(why) => why,
        })
    }

    fn count(&self, request: &ConversionRequest<'_>, fault: Option<&Fault>, started: Instant) {
        let version = |api_version: &str| group_version(api_version).1.to_owned();
        let conversion = Conversion {
            crd_name: self.definition.clone(),
            from_version: version(request.object.get_str("apiVersion")),
            to_version: version(request.wanted),
            succeeded: fault.is_none().to_string(),
        };
        self.metrics
            .called(&conversion, fault.map(Fault::kind), started.elapsed());
    }

    async fn ask(&self, request: &ConversionRequest<'_>) -> Result<Value, Fault> {
        let client = self.client().map_err(Fault::ResourceRequest)?;
        let answer = client.post(request.to_json().into()).await;
        request.read(&answer.map_err(Fault::ResourceRequest)?)
    }

    fn client(&self) -> Result<&Client, String> {
        let made = self.client.get_or_init(|| {
            // Without its bundle, a webhook would be trusted that the system trusts.
            let bundle = base64::engine::general_purpose::STANDARD
                .decode(self.settings.ca_bundle.as_bytes())
                .map_err(|e| format!("unable to load root certificates: {e}"))?;
            Client::new(&self.settings, &bundle)
        });
        made.as_ref().map_err(String::clone)
    }
}

impl ResourceRequest<'_> {
    /// A stored object as the request's version shows it.
    pub(crate) async fn read(&self, stored: Value) -> ApiResult<Value> {
        match self.kind.strategy.by_webhook() {
            // What few kinds do is kept out of the way of all others, where it would take room.
            Some(by) => Box::pin(self.read_converted(by, stored)).await,
            None => self.kind.strategy.read(self.kind, self.version, stored),
        }
    }

    async fn read_converted(&self, by: ByWebhook<'_>, stored: Value) -> ApiResult<Value> {
        let loaded = by.custom.load(self.kind, stored)?;
        let converted = self.convert(by, loaded, &self.version.name).await;
        converted.map_err(ApiError::unreadable)
    }

    /// An object of the request's version as it is stored.
    pub(crate) async fn store(&self, object: Value) -> ApiResult<Value> {
        match (self.kind.strategy.by_webhook(), self.kind.storage_version()) {
            (Some(by), Some(storage)) => {
                let converted = Box::pin(self.convert(by, object, &storage.name)).await;
                converted.map_err(ApiError::internal)
            }
            _ => self.kind.strategy.store(self.kind, self.version, object),
        }
    }

    /// An object in the form of a version, if it is not of that version already. It goes to the webhook without its
    /// resource version, which is the store's.
    async fn convert(&self, by: ByWebhook<'_>, mut object: Value, version: &str) -> Result<Value, String> {
        let wanted = api_version(&self.kind.group, version);
        if object.get("apiVersion").and_then(Value::as_str) == Some(&wanted) {
            return Ok(object);
        }
        let revision = metadata_mut(&mut object).and_then(|metadata| metadata.remove("resourceVersion"));
        let converted = by.webhook.convert(&object, &wanted).await?;
        let converted = by.custom.convert(self.kind, version, converted);
        let mut converted = converted.map_err(|e| e.message().to_owned())?;
        if let (Some(revision), Some(metadata)) = (revision, metadata_mut(&mut converted)) {
            metadata.insert("resourceVersion", revision);
        }
        Ok(converted)
    }
}

/// How many objects are converted at a time.
const AT_ONCE: usize = 16;

/// What a webhook made of stored objects that are about to be looked at; nothing for kinds without one.
#[derive(Debug, Default)]
pub(crate) struct Converted {
    by_revision: BTreeMap<u64, ApiResult<Arc<Value>>>,
}

impl Converted {
    /// Converts what of these entries is not in the request's version. What was made of an entry lately counts.
    pub(crate) async fn for_entries<'e>(
        call: &ResourceRequest<'_>,
        entries: impl IntoIterator<Item = &'e Arc<Entry>>,
    ) -> Converted {
        let Some(ByWebhook { webhook, .. }) = call.kind.strategy.by_webhook() else {
            return Converted::default();
        };
        // What is shown as it is stored needs no webhook.
        let entries = entries.into_iter().filter(|entry| !is_in_form(call, entry));
        let entries: Vec<&Arc<Entry>> = entries.collect();
        Box::pin(Converted::by(webhook, call, &entries)).await
    }

    async fn by(webhook: &Webhook, call: &ResourceRequest<'_>, entries: &[&Arc<Entry>]) -> Converted {
        let mut by_revision = BTreeMap::new();
        for some in entries.chunks(AT_ONCE) {
            let converting = some.iter().map(|entry| webhook.recently(call, entry));
            let converted = join_all(converting).await;
            by_revision.extend(some.iter().map(|entry| entry.mod_revision).zip(converted));
        }
        Converted { by_revision }
    }

    /// A stored object as the requested version shows it.
    pub(crate) fn object(&self, call: &ResourceRequest<'_>, entry: &Entry) -> ApiResult<Value> {
        if let Some(converted) = self.by_revision.get(&entry.mod_revision) {
            return match converted {
                Ok(object) => Ok(Value::clone(object)),
                Err(e) => Err(e.clone()),
            };
        }
        let object = read::stored(entry)?;
        if is_in_form(call, entry) {
            return Ok(object);
        }
        let read = call.kind.strategy.read(call.kind, call.version, object);
        read.map_err(|e| undecodable(entry.mod_revision, e))
    }
}

impl Webhook {
    /// What the request's version shows of an entry, as it was found out last.
    async fn recently(&self, call: &ResourceRequest<'_>, entry: &Entry) -> ApiResult<Arc<Value>> {
        let slot = self.recent.slot(entry, &call.version.name);
        let shown = || async { read::object_in_version(call, entry).await.map(Arc::new) };
        slot.get_or_try_init(shown).await.map(Arc::clone)
    }
}
