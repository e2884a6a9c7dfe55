//! Built-in admission plugins: fetches the objects that they need and applies their verdicts.

use crate::api::{Api, ResourceRequest};
use crate::http::compute;
use crate::kinds::kind::Kind;
use crate::rest::managed_fields;
use crate::rest::read::{self, store_error};
use crate::rest::write::{Part, WriteRequest, modified, timestamp};
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_builtin::admission::{
    Action, Denial, Effects, Found, Lookup, Phase, Request, RequestSubresource,
};
use scantling_builtin::{Context, User};
use scantling_schema::gates::is_on_by_default;
use scantling_store::{Entry, ListRequest, ReadAt};
use scantling_value::{Map, Value};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// The maximum number of tries to store the usage of quotas, which a client may change at the same time.
const MAX_TRIES: usize = 5;

/// Locks for writes that count against the quotas of a namespace, so that none of them is counted twice or not at all.
#[derive(Debug, Default)]
pub(crate) struct UsageLocks([tokio::sync::Mutex<()>; 32]);

impl UsageLocks {
    /// Waits until no other write of a namespace is counted.
    async fn lock(&self, namespace: &str) -> tokio::sync::MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(namespace);
        let [first, others @ ..] = &self.0;
        let place = usize::try_from(hash % self.0.len() as u64).unwrap_or(usize::MAX);
        others.get(place).unwrap_or(first).lock().await
    }
}

/// A write as admission sees it.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub(crate) action: Action,
    pub(crate) part: Part,
    /// The name; empty if the server generates it.
    pub(crate) name: &'a str,
    /// The stored object, on updates and deletions.
    pub(crate) old: Option<&'a Value>,
}

impl Admission<'_> {
    fn request<'r>(
        &'r self,
        phase: Phase,
        call: &'r ResourceRequest<'_>,
        now: &'r str,
        user: User<'r>,
    ) -> Request<'r> {
        let subresource = match (self.part, call.path.subresource.as_deref()) {
            (Part::Scale, _) => RequestSubresource::Other("scale"),
            (Part::Whole, Some(other)) => RequestSubresource::Other(other),
            (part, _) => RequestSubresource::Of(part.subresource()),
        };
        Request {
            phase,
            action: self.action,
            group: &call.kind.group,
            resource: &call.kind.plural,
            subresource,
            namespace: call.path.namespace.as_deref().unwrap_or_default(),
            name: self.name,
            old: self.old,
            context: Context {
                enabled: is_on_by_default,
                now,
                user,
            },
        }
    }
}

impl WriteRequest<'_> {
    /// The user who sent the request, as rules of kinds and plugins see it.
    pub(crate) fn requester(&self) -> User<'_> {
        let user = self.head.user.as_deref();
        user.map_or_else(User::default, |user| User {
            name: &user.name,
            uid: &user.uid,
            groups: &user.groups,
            extra: Some(&user.extra),
        })
    }

    /// Runs the mutating phase.
    pub(crate) async fn admit(&self, admission: &Admission<'_>, object: &mut Value) -> ApiResult<()> {
        let call = self.call;
        let now = timestamp();
        let request = admission.request(Phase::Mutating, call, &now, self.requester());
        // In order: a plugin looks up and changes the object as the plugins before it left it.
        for plugin in call.api.plugins.iter().filter(|plugin| plugin.handles(&request)) {
            let found = call.api.find_all(&plugin.lookups(object, &request)).await?;
            if let Some(members) = object.as_object_mut() {
                plugin
                    .mutate(members, &request, &Found::new(&found))
                    .map_err(|denial| denied(*denial))?;
            }
        }
        Ok(())
    }

    /// Runs the validating phase. It stores the usage of quotas, except in a dry run.
    pub(crate) async fn check_admission(
        &mut self,
        admission: &Admission<'_>,
        object: &Value,
        dry_run: bool,
    ) -> ApiResult<()> {
        let call = self.call;
        let now = timestamp();
        for plugin in &call.api.plugins {
            let mut tries = 0;
            // Most writes change no quota, so the lock is taken only after a first decision without it.
            let mut alone = None;
            loop {
                let request = admission.request(Phase::Validating, call, &now, self.requester());
                if !plugin.handles(&request) {
                    break;
                }
                let found = call.api.find_all(&plugin.lookups(object, &request)).await?;
                let mut effects = Effects::default();
                plugin
                    .check_with_effects(object, &request, &Found::new(&found), &mut effects)
                    .map_err(|denial| denied(*denial))?;
                if dry_run || effects.updates.is_empty() {
                    self.warnings.extend(effects.warnings);
                    break;
                }
                if alone.is_none() {
                    // The usage may have changed meanwhile: decide again.
                    alone = Some(call.api.usage.lock(request.namespace).await);
                    continue;
                }
                // The lock holds off only this server: another server over the same store, or a client,
                // can still write first.
                tries += 1;
                match call.api.store_updates(&effects.updates).await? {
                    None => {
                        self.warnings.extend(effects.warnings);
                        break;
                    }
                    Some(conflict) if tries >= MAX_TRIES => return Err(conflict),
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

impl Api {
    /// The kind of a group by its name.
    pub(crate) fn kind_named(&self, group: &str, kind: &str) -> Option<Arc<Kind>> {
        let kinds = self.kinds.load();
        let mut in_group = kinds.in_group(group);
        in_group.find(|k| k.kind == kind).cloned()
    }

    /// The objects that lookups name, per lookup. A kind that is not served has no objects.
    async fn find_all(&self, lookups: &[Lookup]) -> ApiResult<Vec<Vec<Arc<Value>>>> {
        let mut all = Vec::with_capacity(lookups.len());
        for lookup in lookups {
            all.push(self.find(lookup).await?);
        }
        Ok(all)
    }

    async fn find(&self, lookup: &Lookup) -> ApiResult<Vec<Arc<Value>>> {
        let kind = self.kinds.load().get(lookup.group, lookup.resource).cloned();
        let Some(kind) = kind else {
            return Ok(Vec::new());
        };
        let namespace = Some(lookup.namespace.as_str()).filter(|ns| !ns.is_empty());
        let Some(name) = &lookup.name else {
            return self.list_stored(&kind, namespace).await;
        };
        // No object can be stored under a name that is not part of a key.
        let Ok(key) = self.keys.object(&kind.key_group, &kind.plural, namespace, name) else {
            return Ok(Vec::new());
        };
        let mut entry = self
            .store
            .get(&key, ReadAt::AtLeast(0))
            .await
            .map_err(store_error)?;
        if entry.is_none() {
            // It may be newer than the cache of this server.
            entry = self.newest(&key).await?;
        }
        self.decode_all(entry.as_slice()).await
    }

    /// All stored objects of a kind, or those of a namespace.
    pub(crate) async fn list_stored(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> ApiResult<Vec<Arc<Value>>> {
        let prefix = match namespace {
            Some(ns) => self.keys.namespace(&kind.key_group, &kind.plural, ns),
            None => self.keys.collection(&kind.key_group, &kind.plural),
        };
        let request = ListRequest {
            prefix: prefix.map_err(store_error)?,
            at: ReadAt::Latest,
            ..ListRequest::default()
        };
        let page = self.store.list(request).await.map_err(store_error)?;
        self.decode_all(&page.entries).await
    }

    /// Decodes entries, unless they are cached. If there is much to decode, the request becomes heavy.
    async fn decode_all(&self, entries: &[Arc<Entry>]) -> ApiResult<Vec<Arc<Value>>> {
        let cached = self.related_objects.get(entries);
        let missing = entries.iter().zip(&cached).filter(|(_, object)| object.is_none());
        let bytes = missing.map(|(entry, _)| entry.value.len()).sum();
        if compute::is_heavy(bytes, 1) {
            compute::offload(bytes).await;
        }
        let object = |(entry, cached): (&Arc<Entry>, Option<Arc<Value>>)| match cached {
            Some(object) => Ok(object),
            None => self.decode_new(entry),
        };
        entries.iter().zip(cached).map(object).collect()
    }

    fn decode_new(&self, entry: &Arc<Entry>) -> ApiResult<Arc<Value>> {
        let object = Arc::new(read::stored(entry)?);
        self.related_objects.insert(entry, &object);
        Ok(object)
    }

    /// Decodes an entry outside of a request, unless it is cached.
    pub(crate) fn decode(&self, entry: &Arc<Entry>) -> ApiResult<Arc<Value>> {
        match self
            .related_objects
            .get(std::slice::from_ref(entry))
            .pop()
            .flatten()
        {
            Some(object) => Ok(object),
            None => compute::in_place(entry.value.len(), || self.decode_new(entry)),
        }
    }

    /// Stores objects that admission changed; returns the conflict if another write came first.
    pub(crate) async fn store_updates(&self, updates: &[Value]) -> ApiResult<Option<ApiError>> {
        for object in updates {
            let text = |field: &str| object.str_at(["metadata", field]);
            let (group, _) = scantling_schema::names::group_version(object.get_str("apiVersion"));
            let Some(kind) = self.kind_named(group, object.get_str("kind")) else {
                return Err(ApiError::internal_error(
                    "admission changed an object of an unknown kind",
                ));
            };
            let conflict = || {
                let about = GroupResource {
                    group,
                    kind: &kind.plural,
                };
                modified(about, text("name"))
            };
            let namespace = Some(text("namespace")).filter(|ns| !ns.is_empty());
            let key = self
                .keys
                .object(&kind.key_group, &kind.plural, namespace, text("name"))
                .map_err(store_error)?;
            let expected = crate::request::parse_uint(text("resourceVersion")).map_err(ApiError::internal)?;
            // The stored object serves only to compute managed fields: the write below is conditional on its revision.
            let live = self.newest(&key).await?;
            let Some(live) = live.filter(|live| live.mod_revision == expected) else {
                return Ok(Some(conflict()));
            };
            let live = read::stored(&live)?;
            // As on kube-apiserver, the server is the field manager of what it writes itself.
            let owned = match kind.storage_version() {
                Some(version) => managed_fields::after_own_status(&kind, version, &live, object.clone()),
                None => object.clone(),
            };
            let value = crate::codec::text::Stored::whole(&owned).value;
            let update = scantling_store::Write::Update { value, expected };
            if self.write_if_current(&key, update).await?.is_none() {
                return Ok(Some(conflict()));
            }
        }
        Ok(None)
    }
}

/// The error about a denial.
fn denied(denial: Denial) -> ApiError {
    let mut details = Map::new();
    for (key, value) in [
        ("group", &denial.group),
        ("kind", &denial.kind),
        ("name", &denial.name),
    ] {
        if !value.is_empty() {
            details.insert(key, value.as_str().into());
        }
    }
    if !denial.causes.is_empty() {
        let causes = denial.causes.iter().map(|cause| {
            let entries = [
                ("reason", cause.reason),
                ("message", &cause.message),
                ("field", &cause.field),
            ];
            let set = entries.into_iter().filter(|(_, text)| !text.is_empty());
            Value::Object(set.map(|(name, text)| (name, text.into())).collect())
        });
        details.insert("causes", Value::Array(causes.collect()));
    }
    let error = ApiError::new(denial.code, denial.reason, denial.message);
    match details.is_empty() {
        true => error,
        false => error.details(details),
    }
}
