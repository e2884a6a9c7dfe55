//! Deletions: at once, or by marking objects that finalizers hold.

use crate::api::ResourceRequest;
use crate::codec::media::Encoding;
use crate::codec::scheme::Scheme;
use crate::codec::text::Stored;
use crate::http::reply::Reply;
use crate::rest::admission::Admission;
use crate::rest::body;
use crate::rest::conversion::Converted;
use crate::rest::options::{DeleteOptions, ListOptions, Propagation, VersionMatch};
use crate::rest::read::{self, Selection, store_error};
use crate::rest::render::Rows;
use crate::rest::write::{Part, WriteRequest, metadata_mut, metadata_str, set_version, timestamp};
use crate::status::{self, ApiError, ApiResult, GroupResource};
use scantling_admit::decode_typed;
use scantling_apitypes::TypeTable;
use scantling_apitypes::decode::decode_raw;
use scantling_builtin::GarbageCollection;
use scantling_builtin::admission::Action;
use scantling_store::{Entry, StoreError};
use scantling_value::{Map, Value};
use std::sync::Arc;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The result of a deletion.
pub(crate) enum Deleted {
    /// The object is removed.
    Gone(Value),
    /// The object is removed, and could not be decoded.
    Unread,
    /// The object is marked; finalizers hold it.
    Held(Value),
}

impl WriteRequest<'_> {
    /// DELETE of an object.
    pub(crate) async fn delete(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        let options = self.delete_options()?;
        self.warn_about_orphans(&options);
        // As in kube-apiserver, the deletion of a collection removes protected objects.
        if let Some(why) = (call.kind.behavior.protection)(name) {
            return Err(ApiError::forbidden(call.group_resource(), name, why));
        }
        // Kinds differ in what a finished deletion returns, because their Go strategies do: the object or a `Status`.
        match self.delete_object(name, &options).await? {
            Deleted::Gone(object) if call.kind.behavior.facts.delete_returns_object => {
                call.view_renderer()?.object(200, object)
            }
            Deleted::Gone(object) => {
                let done = status::success(call.group_resource(), name, metadata_str(&object, "uid"));
                Ok(Reply::object(200, &done, call.view_renderer()?.wanted.encoding))
            }
            Deleted::Unread => {
                let kind = GroupResource {
                    group: "",
                    ..call.about_kind()
                };
                let mut done = status::success(kind, name, "");
                if let Some(done) = done.as_object_mut() {
                    done.insert("code", Value::Int(200));
                }
                Ok(Reply::object(200, &done, call.view_renderer()?.wanted.encoding))
            }
            Deleted::Held(object) => {
                // Only the deprecated option asks for 202, as in kube-apiserver; `propagationPolicy` does not.
                let code = if options.orphan_dependents == Some(false) {
                    202
                } else {
                    200
                };
                call.view_renderer()?.object(code, object)
            }
        }
    }

    /// DELETE of a collection. Responds with the objects as they were before.
    pub(crate) async fn delete_collection(&mut self) -> ApiResult<Reply> {
        let call = self.call;
        let mut options = ListOptions::parse(call.query, false)?;
        options.watch = false;
        // Reads from the store treat a resource version as exact.
        if options.version_match.is_none() && !matches!(options.resource_version.as_str(), "" | "0") {
            options.version_match = Some(VersionMatch::Exact);
        }
        let selection = Selection::new(call, &options)?;
        let delete = self.delete_options()?;
        delete.check_collection()?;
        self.warn_about_orphans(&delete);
        let shape = call.view_renderer()?;
        let mut rows = Rows::new(call, &shape)?;
        let take =
            |c: &ResourceRequest<'_>, s: &Selection, e: &Arc<Entry>, v: &Converted| rows.take(c, s, e, v);
        let found = read::find(call, &options, &selection, take).await?;
        for row in &found.items {
            match self.delete_object(row.name(), &delete).await {
                Ok(_) => {}
                // Another request deleted it since the list: it is gone, as wanted.
                Err(e) if e.code() == 404 => {}
                Err(e) => return Err(e),
            }
        }
        rows.reply(call, &shape, found)
    }

    /// Warns about a deletion that orphans dependents by default.
    fn warn_about_orphans(&mut self, options: &DeleteOptions) {
        if options.propagation.is_none() && options.orphan_dependents.is_none() {
            let warning = self.call.kind.behavior.facts.orphan_warning;
            self.warnings.extend(warning.map(str::to_owned));
        }
    }

    fn delete_options(&self) -> ApiResult<DeleteOptions> {
        if self.body.is_empty() {
            let options = DeleteOptions::parse(self.call.query, None)?;
            return options.check().map(|()| options);
        }
        let form = self.head.body_encoding()?;
        let table = TypeTable::latest();
        let options = table.known("meta/v1", "DeleteOptions");
        let body = body::decode_small(&self.body, form, options)?;
        let read = body::read_type_meta(&body, &self.body, form);
        let (api_version, kind) = read.map_err(ApiError::bad_request)?;
        let refused = (!matches!(kind, "" | "DeleteOptions")).then(|| {
            let api_version = if api_version.is_empty() {
                "meta.k8s.io/v1"
            } else {
                api_version
            };
            Scheme::Meta.mismatch(api_version, kind, "v1.DeleteOptions")
        });
        if let Some(why) = refused {
            return Err(ApiError::bad_request(why));
        }
        let body = match form {
            // Decoded from the raw text, which still has the duplicate fields that Go's decoder merges.
            Encoding::Json => decode_raw(&self.body).and_then(|text| decode_typed(table, options, text)),
            Encoding::Yaml | Encoding::Protobuf | Encoding::Cbor => decode_typed(table, options, body),
        };
        let body = body.map_err(|e| ApiError::bad_request(e.to_string()))?.object;
        let options = DeleteOptions::parse(self.call.query, Some(&body))?;
        options.check().map(|()| options)
    }

    /// Deletes one object of the call's collection.
    pub(crate) async fn delete_object(&self, name: &str, options: &DeleteOptions) -> ApiResult<Deleted> {
        let call = self.call;
        let key = call.key(name)?;
        loop {
            let entry = call.live(&key, name).await?;
            let mut object = match read::object_in_version(call, &entry).await {
                Err(e) if e.is_unreadable() && options.unreadable => {
                    if options.dry_run || self.remove(&key, &entry).await? {
                        return Ok(Deleted::Unread);
                    }
                    continue;
                }
                read => read.map_err(|e| read::by_key(call, &entry, e))?,
            };
            let uid = metadata_str(&object, "uid").to_owned();
            if options.unreadable {
                let why = format!(
                    "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: unsafe \
                     deletion is not allowed because the object is decodable from storage"
                );
                return Err(ApiError::conflict(call.group_resource(), name, &why));
            }
            // Checked in every round: after a conflict, the object may be another one of the same name.
            self.preconditions(name, &uid, entry.mod_revision, options)?;
            // Admission sees a deletion before it is decided whether finalizers hold the object.
            self.check_deletion(name, &object, options).await?;
            if metadata_str(&object, "deletionTimestamp").is_empty()
                && let Some(marked) = call
                    .kind
                    .rules
                    .mark_deleted(read::stored(&entry)?, &timestamp())
                    .map_err(ApiError::unreadable)?
            {
                // As in kube-apiserver, a CRD does not get the finalizer that says what becomes of dependents.
                let is_namespace = call.kind.group.is_empty() && call.kind.kind == "Namespace";
                let marked = match is_namespace {
                    true => with_propagation_of_namespace(marked, options),
                    false => marked,
                };
                match self.hold(&key, &entry, marked, options).await? {
                    Some(held) => return Ok(held),
                    None => continue,
                }
            }
            // A namespace that is being deleted waits for its own finalizers: another deletion changes nothing.
            if call.kind.rules.is_held(&object) {
                return Ok(Deleted::Held(object));
            }
            let grace = match self.grace(&object, options) {
                Grace::Pending => return Ok(Deleted::Held(object)),
                Grace::None => None,
                Grace::Period { seconds, deadline } => {
                    mark_gracefully(&mut object, seconds, &deadline);
                    Some(seconds)
                }
            };
            let before: Vec<String> = finalizers(&object);
            let after = match call.kind.behavior.facts.garbage_collection {
                // No garbage collector would ever remove these finalizers from such a kind.
                GarbageCollection::Unsupported => without_propagation(&before),
                default => with_propagation(&before, options, default),
            };
            if !after.is_empty() || grace.is_some() {
                let marked = match after.is_empty() {
                    true => grace.is_some(),
                    false => mark(&mut object, &after) || grace.is_some(),
                };
                // With zero seconds left, the mark is only for watchers: the object is removed right after it.
                let is_held = !after.is_empty() || grace.is_some_and(|seconds| seconds > 0);
                // A repeated deletion of a marked object writes nothing, so its resource version stays.
                if options.dry_run || !(marked || after != before) {
                    return Ok(match is_held {
                        true => Deleted::Held(object),
                        false => Deleted::Gone(object),
                    });
                }
                let Stored { value, .. } = Stored::encode(call, &object).await?;
                let write = scantling_store::Write::Update {
                    value,
                    expected: entry.mod_revision,
                };
                let Some(event) = call.api.write_if_current(&key, write).await? else {
                    continue;
                };
                set_version(&mut object, event.revision);
                if is_held {
                    return Ok(Deleted::Held(object));
                }
                // Watchers see the object being deleted before it is removed.
                let expected = event.revision;
                let delete = scantling_store::Write::Delete { expected };
                match call.api.store.write(&key, delete).await {
                    // Not found: a finalizer or another client removed it first, with the same result.
                    Ok(_) | Err(StoreError::NotFound { .. }) => return Ok(Deleted::Gone(object)),
                    Err(StoreError::Conflict { .. }) => continue,
                    Err(e) => return Err(store_error(e)),
                }
            }
            if options.dry_run || self.remove(&key, &entry).await? {
                return Ok(Deleted::Gone(object));
            }
        }
    }

    /// Runs the validating phase of admission for a deletion.
    async fn check_deletion(&self, name: &str, object: &Value, options: &DeleteOptions) -> ApiResult<()> {
        let admission = Admission {
            action: Action::Delete,
            part: Part::Whole,
            name,
            old: Some(object),
        };
        let mut warnings = Vec::new();
        let mut write = WriteRequest {
            call: self.call,
            head: self.head,
            body: self.body.clone(),
            warnings: &mut warnings,
            text: None,
        };
        write.check_admission(&admission, object, options.dry_run).await
    }

    /// The grace period of a deletion.
    fn grace(&self, object: &Value, options: &DeleteOptions) -> Grace {
        // A negative period means the shortest one.
        let requested = options.grace_period.map(|s| if s < 0 { 1 } else { s });
        let Some(seconds) = (self.call.kind.behavior.grace_period)(object, requested) else {
            return Grace::None;
        };
        let now = jiff::Timestamp::now();
        let after = |from: jiff::Timestamp, seconds: i64| {
            from.checked_add(jiff::SignedDuration::from_secs(seconds))
                .unwrap_or(from)
        };
        let deadline = metadata_str(object, "deletionTimestamp");
        if deadline.is_empty() {
            let deadline = format_time(after(now, seconds));
            return Grace::Period { seconds, deadline };
        }
        let current = object
            .at(["metadata", "deletionGracePeriodSeconds"])
            .and_then(Value::as_int);
        match (current, requested) {
            // A server that stopped between mark and removal leaves zero seconds: the next deletion removes the object.
            (None | Some(0), _) => Grace::None,
            // A pending deletion can only be sped up.
            (Some(current), Some(requested)) if requested < current => {
                let begun = deadline.parse().map_or(now, |deadline| after(deadline, -current));
                let deadline = after(begun, requested);
                let (deadline, seconds) = match deadline < now {
                    // The time is over already, but whatever ends the object gracefully still gets one second.
                    true => (now, requested.min(1)),
                    false => (deadline, requested),
                };
                let deadline = format_time(deadline);
                Grace::Period { seconds, deadline }
            }
            (Some(_), _) => Grace::Pending,
        }
    }

    /// Stores a marked object; `None` if another write came first.
    async fn hold(
        &self,
        key: &str,
        entry: &Entry,
        marked: Value,
        options: &DeleteOptions,
    ) -> ApiResult<Option<Deleted>> {
        let call = self.call;
        let mut object = call.read(marked).await?;
        if options.dry_run {
            return Ok(Some(Deleted::Held(object)));
        }
        let Stored { value, .. } = Stored::encode(call, &object).await?;
        let write = scantling_store::Write::Update {
            value,
            expected: entry.mod_revision,
        };
        let Some(event) = call.api.write_if_current(key, write).await? else {
            return Ok(None);
        };
        set_version(&mut object, event.revision);
        call.api.has_settled(call.kind, event.revision).await;
        Ok(Some(Deleted::Held(object)))
    }

    /// Checks the preconditions of a deletion.
    pub(super) fn preconditions(
        &self,
        name: &str,
        uid: &str,
        revision: u64,
        options: &DeleteOptions,
    ) -> ApiResult<()> {
        let call = self.call;
        // Kinds with a storage of their own have their own words, and name the resource instead of the kind.
        let own_words = call.kind.precondition_failed;
        let conflict = |what: &str, asked: &str, found: &str, perhaps: &str| match own_words {
            Some(words) => {
                let why = format!("{words}: {what} in precondition: {asked}, {what} in object meta: {found}");
                ApiError::conflict(call.group_resource(), name, &why)
            }
            None => {
                let why = format!(
                    "the {what} in the precondition ({asked}) does not match the {what} in record ({found}). The object \
                     might have been {perhaps}"
                );
                ApiError::conflict(call.about_kind(), name, &why)
            }
        };
        if let Some(asked) = options.uid.as_deref().filter(|a| *a != uid) {
            return Err(conflict("UID", asked, uid, "deleted and then recreated"));
        }
        // Texts are compared, not numbers: `007` matches no revision.
        let found = revision.to_string();
        if let Some(asked) = options.resource_version.as_deref().filter(|a| *a != found) {
            return Err(conflict("ResourceVersion", asked, &found, "modified"));
        }
        Ok(())
    }
}

/// The grace period of a deletion.
enum Grace {
    /// The object is deleted at once.
    None,
    /// The object is deleted at a deadline; now, if no seconds are left.
    Period { seconds: i64, deadline: String },
    /// A deletion with a grace period is under way already.
    Pending,
}

fn format_time(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Marks an object as being deleted with a grace period.
fn mark_gracefully(object: &mut Value, seconds: i64, deadline: &str) {
    if let Some(m) = metadata_mut(object) {
        let generation = m.get("generation").and_then(Value::as_int).unwrap_or(0);
        // A deletion changes what controllers must do, so it counts as a change of the desired state.
        if generation > 0 && m.get("deletionTimestamp").is_none() {
            m.insert("generation", Value::Int(generation.saturating_add(1)));
        }
        m.insert("deletionTimestamp", deadline.into());
        m.insert("deletionGracePeriodSeconds", Value::Int(seconds));
    }
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    finalizers_in(object.get("metadata").and_then(Value::as_object))
}

/// The finalizers of an object.
pub(crate) fn finalizers_in(part: Option<&Map>) -> Vec<String> {
    let list = part.and_then(|part| part.get("finalizers")?.as_array());
    let list = list.unwrap_or_default().iter();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The finalizers after a deletion, with the one that controls the deletion of dependents.
fn with_propagation(before: &[String], options: &DeleteOptions, default: GarbageCollection) -> Vec<String> {
    let has = |f: &str| before.iter().any(|b| b == f);
    let (orphan, foreground) = match (options.propagation, options.orphan_dependents) {
        (Some(p), _) => (p == Propagation::Orphan, p == Propagation::Foreground),
        (None, Some(orphan)) => (orphan, false),
        (None, None) if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND)),
        (None, None) => (default == GarbageCollection::Orphan, false),
    };
    let mut after = without_propagation(before);
    if orphan {
        after.push(ORPHAN.to_owned());
    }
    if foreground {
        after.push(FOREGROUND.to_owned());
    }
    // Another order is not a change.
    let (mut a, mut b) = (after.clone(), before.to_vec());
    a.sort();
    b.sort();
    if a == b { before.to_vec() } else { after }
}

/// A namespace with the finalizer that says what becomes of dependents, if the options ask for one.
fn with_propagation_of_namespace(mut namespace: Value, options: &DeleteOptions) -> Value {
    let before = finalizers(&namespace);
    let after = match options.orphan_dependents {
        Some(false) => [without_propagation(&before), vec![FOREGROUND.to_owned()]].concat(),
        _ => with_propagation(&before, options, GarbageCollection::Delete),
    };
    set_finalizers(&mut namespace, &after);
    namespace
}

/// Removes the finalizers that say what becomes of dependents; returns whether there were any.
pub(crate) fn remove_propagation(object: &mut Value) -> bool {
    let before = finalizers(object);
    let after = without_propagation(&before);
    let is_changed = after.len() < before.len();
    if is_changed {
        set_finalizers(object, &after);
    }
    is_changed
}

fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    if let Some(metadata) = metadata_mut(object) {
        set_finalizers_in(metadata, finalizers);
    }
}

/// Sets the finalizers in the metadata of an object or in the spec of a namespace.
pub(crate) fn set_finalizers_in(part: &mut Map, finalizers: &[String]) {
    match finalizers {
        [] => part.remove("finalizers"),
        all => part.insert("finalizers", all.to_vec().into()),
    };
}

/// The finalizers without those that control the deletion of dependents.
fn without_propagation(before: &[String]) -> Vec<String> {
    let others = before.iter().filter(|f| *f != ORPHAN && *f != FOREGROUND);
    others.cloned().collect()
}

/// Marks an object as being deleted; returns whether it was not before.
pub(crate) fn mark(object: &mut Value, finalizers: &[String]) -> bool {
    let Some(m) = metadata_mut(object) else {
        return false;
    };
    m.insert("finalizers", finalizers.to_vec().into());
    if m.get("deletionTimestamp").is_some() {
        return false;
    }
    let generation = m.get("generation").and_then(Value::as_int).unwrap_or(0);
    // A graceful deletion has incremented it already.
    if generation > 0 && m.get("deletionGracePeriodSeconds").is_none() {
        m.insert("generation", Value::Int(generation.saturating_add(1)));
    }
    m.insert("deletionTimestamp", timestamp().into());
    m.insert("deletionGracePeriodSeconds", Value::Int(0));
    true
}
