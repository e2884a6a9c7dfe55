//! Creating and updating.

mod identity;
mod refusals;

use crate::api::{Api, Call, Head};
use crate::body::{self, Sent};
use crate::kind::Kind;
use crate::managed;
use crate::media;
use crate::options::{WriteKind, WriteOptions};
use crate::protobuf;
use crate::read::{self, store_error};
use crate::reply::Reply;
use crate::request::parse_uint;
use crate::status::{About, ApiError, ApiResult};
use crate::text::{Brought, Stored, Text, in_stored_version, read_back, read_written};
use crate::view::Shape;
use bytes::Bytes;
use scantling_admit::{Operation, Outcome, Refusal};
use scantling_schema::names::group_version;
use scantling_store::{Entry, Event, Packed, ReadAt, StoreError};
use scantling_value::{Map, Value, json};

use identity::agent_name;
pub(crate) use identity::{identity, timestamp};
pub(crate) use refusals::{
    cannot_be_handled, cannot_be_handled_by_default, fit_name, fit_namespace, modified, patch_refusal,
};
use refusals::{check_version, immutable, other_uid, taken, unnamed};

/// A write on its way.
pub(crate) struct Write<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) head: &'a Head,
    pub(crate) body: Bytes,
    pub(crate) warnings: &'a mut Vec<String>,
    /// The text of what was stored, where clients are shown just that.
    pub(crate) text: Option<Text>,
}

/// How often a write that others overtake is tried again.
const TRIES: usize = 8;

/// What of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Whole,
    Status,
    /// What holds it, and all else but its status.
    Finalizers,
    Scale,
}

/// A new state for a stored object.
pub(crate) struct Change {
    pub(crate) object: Value,
    /// What strict decoding of the request's text found.
    pub(crate) found: Vec<String>,
    /// How the managers of fields come out of this.
    pub(crate) ownership: Ownership,
    /// Whether the object is in the form of its kind already.
    pub(crate) received: bool,
}

/// How a write changes who manages which field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ownership {
    /// The writer becomes manager of what it changed.
    Update,
    /// An apply has settled it already.
    Settled,
}

/// Where a refusal of admission arises; its words differ.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The object itself was sent.
    Body,
    /// A patch made it.
    Patch(&'a dyn Patched),
}

/// What refusals say of an object that a patch made.
pub(crate) trait Patched: Sync {
    /// What the patch made of an object, or the patch.
    fn shown(&self, old: &Value) -> String;

    /// Why what the patch made cannot be decoded, in the words for this type of patch.
    fn why(&self, why: String) -> String;

    /// Whether what the patch made is what it was made from, whatever it says that it is.
    fn keeps_kind(&self) -> bool;
}

impl Write<'_> {
    /// POST
    pub(crate) async fn create(&mut self) -> ApiResult<Reply> {
        let call = self.call;
        if let Some(question) = call.kind.question {
            return self.answer(question);
        }
        let shape = call.shape()?;
        let form = media::body_form(self.head.content_type.as_deref())?;
        let options = WriteOptions::parse(call.query, WriteKind::Create)?;
        let Sent { mut object, found } = body::decode(call, &self.body, form, options.field_validation)?;
        let fits = body::fit_version(call, &object).and_then(|()| fit_namespace(call, &mut object));
        if let Err(e) = fits {
            // Nothing comes of it, but what is found in the object is told.
            let mode = options.field_validation;
            self.receive(&mut object, &found, mode, Ownership::Update, Source::Body, None)?;
            return Err(e);
        }
        let created = self
            .create_object(object, &found, &options, Ownership::Update, Source::Body)
            .await?;
        self.reply(&shape, 201, created)
    }

    /// The answer that shows an object as it was stored.
    pub(crate) fn reply(&self, shape: &Shape<'_>, status: u16, object: Value) -> ApiResult<Reply> {
        match &self.text {
            Some(text) if shape.is_plain() => Ok(shape.text(status, text)),
            _ => shape.object(status, object),
        }
    }

    /// Creates an object and returns it as it was stored.
    pub(crate) async fn create_object(
        &mut self,
        object: Value,
        found: &[String],
        options: &WriteOptions,
        ownership: Ownership,
        source: Source<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        if call.kind.terminating {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(call.about(), text(&object, "name"), why));
        }
        let mode = options.field_validation;
        let mut object = object;
        self.receive(&mut object, found, mode, ownership, source, None)?;
        self.create_received(object, options, ownership, source).await
    }

    /// Creates an object that is in the form of its kind.
    async fn create_received(
        &mut self,
        mut object: Value,
        options: &WriteOptions,
        ownership: Ownership,
        source: Source<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let generated = text(&object, "name").is_empty() && !text(&object, "generateName").is_empty();
        let asked_version = text(&object, "resourceVersion").to_owned();
        if let Some(m) = metadata_mut(&mut object) {
            // What no client can set counts for nobody as set by it.
            for field in [
                "creationTimestamp",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
                "uid",
                "selfLink",
            ] {
                m.remove(field);
            }
        }
        self.unite_owners(&mut object, ownership);
        crate::namespaces::is_open(call, &object).await?;
        if let Ownership::Update = ownership {
            object = managed::after_update(call, Part::Whole, None, object, &self.manager(options));
        }
        let mut tries = 0;
        loop {
            let identity = identity();
            // Only a name that is made up may be taken and be tried again.
            let next = if generated {
                object.clone()
            } else {
                std::mem::take(&mut object)
            };
            let outcome = call
                .kind
                .strategy
                .decide(call.version, Operation::Create(&identity), next);
            let mut admitted = self.outcome(outcome, source, None)?;
            if !options.dry_run && parse_uint(&asked_version).is_ok_and(|v| v != 0) {
                return Err(ApiError::internal(
                    "resourceVersion should not be set on objects to be created",
                ));
            }
            let name = text(&admitted, "name").to_owned();
            let key = call.key(&name)?;
            if options.dry_run {
                let there = call.api.store.get(&key, ReadAt::Latest).await;
                if let Some(current) = there.map_err(store_error)? {
                    return Err(taken(call, &name, &admitted, &current));
                }
                remove_version(&mut admitted);
                return read_back(call, admitted);
            }
            let stored = Stored::of(call, &admitted);
            let defines = call.kind.group == crate::definitions::GROUP;
            if defines {
                // One definition may be on its way while the next is checked; no more, so that none waits for long.
                call.api.progress.catch_up().await;
            }
            let create = |value| scantling_store::Write::Create { value };
            match self.store(&key, stored, &mut admitted, ownership, create).await {
                Ok((event, place)) => {
                    if defines {
                        call.api.progress.note(event.revision);
                    }
                    let mut shown = read_written(call, &event, admitted, place, Brought::Anything)?;
                    self.text = event.after().and_then(|entry| Text::noted(call, entry));
                    set_version(&mut shown, event.revision);
                    return Ok(shown);
                }
                Err(StoreError::AlreadyExists { .. }) if generated && tries < TRIES => tries += 1,
                Err(StoreError::AlreadyExists { current }) => {
                    return Err(taken(call, &name, &admitted, &current));
                }
                Err(e) => return Err(store_error(e)),
            }
        }
    }

    /// PUT
    pub(crate) async fn update(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        let shape = call.shape()?;
        let form = media::body_form(self.head.content_type.as_deref())?;
        let options = WriteOptions::parse(call.query, WriteKind::Update)?;
        let Sent { mut object, found } = body::decode(call, &self.body, form, options.field_validation)?;
        let mode = options.field_validation;
        self.receive(&mut object, &found, mode, Ownership::Update, Source::Body, None)?;
        body::fit_version(call, &object)?;
        fit_name(&object, name)?;
        fit_namespace(call, &mut object)?;
        let part = match call.path.subresource.as_deref() {
            None => Part::Whole,
            Some("finalize") => Part::Finalizers,
            Some(_) => Part::Status,
        };
        let uid = text(&object, "uid").to_owned();
        if call.kind.strategy.creates_on_update() && part == Part::Whole {
            let key = call.key(name)?;
            let there = call.api.store.get(&key, ReadAt::Latest).await;
            if there.map_err(store_error)?.is_none() {
                if !uid.is_empty() {
                    return Err(other_uid(call, name, &key, &uid, ""));
                }
                remove_version(&mut object);
                let created = self
                    .create_received(object, &options, Ownership::Update, Source::Body)
                    .await?;
                return self.reply(&shape, 201, created);
            }
        }
        self.unite_owners(&mut object, Ownership::Update);
        let change = |_: &Value| {
            let ownership = Ownership::Update;
            Ok(Change {
                object: object.clone(),
                found: Vec::new(),
                ownership,
                received: true,
            })
        };
        let updated = self
            .change(name, &options, part, Some(&uid), &change, Source::Body)
            .await?;
        self.reply(&shape, 200, updated)
    }

    /// Changes a stored object, again if another write comes in between, and returns it as it was stored.
    pub(crate) async fn change(
        &mut self,
        name: &str,
        options: &WriteOptions,
        part: Part,
        uid: Option<&str>,
        change: &(dyn Fn(&Value) -> ApiResult<Change> + Sync),
        source: Source<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let key = call.key(name)?;
        let mut tries = 0;
        loop {
            let entry = call.live(&key, name).await?;
            let warnings = self.warnings.len();
            match self
                .change_once(name, &key, &entry, options, part, uid, change, source)
                .await?
            {
                Some(updated) => return Ok(updated),
                None if tries < TRIES => tries += 1,
                None => return Err(modified(call.about(), name)),
            }
            self.warnings.truncate(warnings);
        }
    }

    /// One try; nothing if another write came in between.
    #[expect(clippy::too_many_arguments, reason = "the parts of one decision")]
    async fn change_once(
        &mut self,
        name: &str,
        key: &str,
        entry: &Entry,
        options: &WriteOptions,
        part: Part,
        uid: Option<&str>,
        change: &(dyn Fn(&Value) -> ApiResult<Change> + Sync),
        source: Source<'_>,
    ) -> ApiResult<Option<Value>> {
        let call = self.call;
        let old = read::shown(call, entry)?;
        let existing_uid = text(&old, "uid");
        if let Some(asked) = uid.filter(|u| !u.is_empty() && *u != existing_uid) {
            return Err(other_uid(call, name, key, asked, existing_uid));
        }
        let Change {
            mut object,
            found,
            ownership,
            received,
        } = change(&old)?;
        let mode = options.field_validation;
        if received {
            self.warnings.extend(found);
        } else {
            self.receive(&mut object, &found, mode, ownership, source, Some(&old))?;
            fit_namespace(call, &mut object)?;
            fit_name(&object, name)?;
            self.unite_owners(&mut object, Ownership::Settled);
        }
        if let Some(m) = metadata_mut(&mut object) {
            m.remove("selfLink");
        }
        check_version(call, name, &object, entry.mod_revision)?;
        set_version(&mut object, entry.mod_revision);
        match ownership {
            Ownership::Settled => {}
            Ownership::Update => {
                object = managed::after_update(call, part, Some(&old), object, &self.manager(options));
            }
        }
        let (strategy, version) = (&call.kind.strategy, call.version);
        let outcome = match part {
            Part::Status => strategy.decide(version, Operation::UpdateStatus(&old), object),
            Part::Finalizers => strategy.finalize(&old, object),
            Part::Whole | Part::Scale => strategy.decide(version, Operation::Update(&old), object),
        };
        let mut admitted = self.outcome(outcome, source, Some(&old))?;
        set_version(&mut admitted, entry.mod_revision);
        managed::keep_times(&old, &mut admitted);
        let gone = is_released(&admitted) && !call.kind.strategy.is_held(&admitted);
        if options.dry_run {
            return read_back(call, admitted).map(Some);
        }
        if gone {
            let delete = scantling_store::Write::Delete {
                expected: entry.mod_revision,
            };
            return match call.api.store.write(key, delete).await {
                Ok(_) => Ok(Some(admitted)),
                Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(None),
                Err(e) => Err(store_error(e)),
            };
        }
        let stored = Stored::of(call, &admitted);
        if entry.value == stored.value || is_only_written_differently(call, entry, &old, &admitted) {
            return read_back(call, admitted).map(Some);
        }
        let expected = entry.mod_revision;
        let update = |value| scantling_store::Write::Update { value, expected };
        match self.store(key, stored, &mut admitted, ownership, update).await {
            Ok((event, place)) => {
                call.api.has_settled(call.kind, event.revision).await;
                let brought = match (ownership, part) {
                    (Ownership::Update, Part::Whole | Part::Status) => Brought::InForm,
                    _ => Brought::Anything,
                };
                let mut shown = read_written(call, &event, admitted, place, brought)?;
                self.text = event.after().and_then(|entry| Text::noted(call, entry));
                set_version(&mut shown, event.revision);
                Ok(Some(shown))
            }
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(store_error(e)),
        }
    }

    /// Stores an object; answers with the place of its version, too. One that is too large with its managers is
    /// stored without them, unless an apply has settled who they are.
    async fn store(
        &self,
        key: &str,
        mut stored: Stored,
        object: &mut Value,
        ownership: Ownership,
        write: impl Fn(Packed) -> scantling_store::Write,
    ) -> Result<(Event, Option<usize>), StoreError> {
        let call = self.call;
        loop {
            match call.api.store.write(key, write(stored.value)).await {
                Ok(event) => return Ok((event, stored.place)),
                Err(StoreError::TooLarge { .. })
                    if ownership == Ownership::Update && managed::forget(object) =>
                {
                    stored = Stored::of(call, object);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Brings an object into the form of its kind.
    pub(crate) fn receive(
        &mut self,
        object: &mut Value,
        found: &[String],
        mode: scantling_admit::FieldValidation,
        ownership: Ownership,
        source: Source<'_>,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        let (strategy, version) = (&self.call.kind.strategy, self.call.version);
        if let (Source::Patch(patched), Some(old)) = (source, old) {
            self.check_type(object, patched, old, mode)?;
        }
        let received = match ownership {
            Ownership::Update => strategy.receive(version, object, found, mode),
            // The apply has decided about what was found.
            Ownership::Settled => strategy.receive_applied(version, object).map(|()| found.to_vec()),
        };
        match received {
            Ok(mut warnings) => {
                self.in_order(&mut warnings, source);
                self.warnings.extend(warnings);
                Ok(())
            }
            Err(Refusal::Strict(mut found)) => {
                self.in_order(&mut found, source);
                Err(self.refused(Refusal::Strict(found), object, source, old))
            }
            Err(refusal) => Err(self.refused(refusal, object, source, old)),
        }
    }

    /// Checks that what a patch made says what it is. Built-in kinds know that by themselves: what the patch made of
    /// it is nothing to them unless it names another kind.
    fn check_type(
        &mut self,
        object: &mut Value,
        patched: &dyn Patched,
        old: &Value,
        mode: scantling_admit::FieldValidation,
    ) -> ApiResult<()> {
        let call = self.call;
        let undecodable = |why: String| Err(patch_refusal(patched.shown(old), &patched.why(why)));
        let (api_version, kind) = match body::type_meta(object) {
            Ok((api_version, kind)) => (api_version.to_owned(), kind.to_owned()),
            Err(why) => return undecodable(why),
        };
        if call.kind.built_in {
            let expected = call.api_version();
            if api_version.is_empty() && !patched.keeps_kind() {
                // What says no version is of no version, and has no fields in it, not even a name.
                let fields = object.as_object().into_iter().flat_map(Map::keys);
                let unknown = fields.filter(|f| !matches!(f.as_str(), "apiVersion" | "kind"));
                let unknown = unknown.map(|f| format!("unknown field \"{f}\"")).collect();
                let settled = crate::builtin::settle_findings(&[], unknown, mode);
                let found = settled
                    .map_err(|refusal| self.refused(refusal, object, Source::Patch(patched), Some(old)))?;
                self.warnings.extend(found);
                return Err(unnamed(call.path.name.as_deref().unwrap_or_default()));
            }
            let known = |found: &str, expected: &str| found.is_empty() || found == expected;
            let fits = known(&api_version, &expected) && known(&kind, &call.kind.kind);
            if !fits && !patched.keeps_kind() {
                let kind = if kind.is_empty() { &call.kind.kind } else { &kind };
                let api_version = if api_version.is_empty() {
                    &expected
                } else {
                    &api_version
                };
                return undecodable(call.kind.mismatch(api_version, kind));
            }
            if let Some(members) = object.as_object_mut() {
                members.insert("apiVersion", expected.into());
                members.insert("kind", call.kind.kind.as_str().into());
            }
            return Ok(());
        }
        if kind.is_empty() {
            return undecodable(format!("Object 'Kind' is missing in '{}'", patched.shown(old)));
        }
        if api_version.is_empty() {
            let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
            return Err(ApiError::internal_error(why));
        }
        Ok(())
    }

    /// Built-in kinds are read field by field, so that what is found in a JSON text is told in its order.
    fn in_order(&self, found: &mut [String], source: Source<'_>) {
        if self.call.kind.built_in
            && matches!(source, Source::Body)
            && self.body.trim_ascii_start().starts_with(b"{")
        {
            json::sort_findings(&self.body, found);
        }
    }

    /// Removes owner references that stand twice, with a warning that says whether they were sent or made.
    fn unite_owners(&mut self, object: &mut Value, ownership: Ownership) {
        let Some(Value::Array(owners)) = metadata_mut(object).and_then(|m| m.get_mut("ownerReferences"))
        else {
            return;
        };
        let mut seen: Vec<Value> = Vec::new();
        let mut twice = Vec::new();
        for owner in std::mem::take(owners) {
            if seen.contains(&owner) {
                let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
                twice.push(uid.to_owned());
            } else {
                seen.push(owner);
            }
        }
        *owners = seen;
        if twice.is_empty() {
            return;
        }
        let uids = twice.join(", ");
        self.warnings.push(match ownership {
            Ownership::Update => format!(
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
                 may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
            ),
            Ownership::Settled => format!(
                ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server \
                 dedups owner references in 1.20+, and may reject such requests as early as 1.24; duplicate UID(s) \
                 observed: {uids}"
            ),
        });
    }

    /// The admitted object, or the refusal in the words that its source has.
    fn outcome(&mut self, outcome: Outcome, source: Source<'_>, old: Option<&Value>) -> ApiResult<Value> {
        let call = self.call;
        self.warnings.extend(outcome.warnings);
        call.api.metrics.admitted(&outcome.stats);
        match outcome.refusal {
            None => Ok(outcome.object),
            Some(refusal) => Err(self.refused(refusal, &outcome.object, source, old)),
        }
    }

    /// A refusal in the words that its source has.
    fn refused(&self, refusal: Refusal, object: &Value, source: Source<'_>, old: Option<&Value>) -> ApiError {
        let call = self.call;
        let kind = object_kind(object, &call.kind.kind);
        let about = About {
            group: object_group(object, &call.kind.group),
            kind,
        };
        let name = text(object, "name");
        let shown = |patched: &dyn Patched| old.map(|old| patched.shown(old)).unwrap_or_default();
        match (refusal, source) {
            (Refusal::Undecodable(why), Source::Body) => cannot_be_handled(call, object, &why),
            (Refusal::Strict(found), Source::Body) => {
                let why = format!("strict decoding error: {}", found.join(", "));
                cannot_be_handled(call, object, &why)
            }
            (Refusal::Undecodable(why), Source::Patch(patched)) => {
                patch_refusal(shown(patched), &patched.why(why))
            }
            (Refusal::Strict(found), Source::Patch(patched)) => {
                let why = format!("strict decoding error: {}", found.join(", "));
                patch_refusal(shown(patched), &why)
            }
            (Refusal::Immutable(errors), _) => immutable(about, name, &errors),
            (Refusal::Invalid(errors), _) => ApiError::invalid(about, name, &errors),
        }
    }

    /// The name of who writes.
    pub(crate) fn manager(&self, options: &WriteOptions) -> String {
        if options.field_manager.is_empty() {
            agent_name(&self.head.user_agent)
        } else {
            options.field_manager.clone()
        }
    }
}

/// A text of an object's metadata; empty where there is none.
pub(crate) fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object
        .at(["metadata", field])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// An object's metadata, made if they are not there; nothing where they are no object.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map> {
    let map = object.as_object_mut()?;
    if map.get("metadata").is_none_or(Value::is_null) {
        map.insert("metadata", Map::new().into());
    }
    map.get_mut("metadata")?.as_object_mut()
}

fn object_group<'a>(object: &'a Value, otherwise: &'a str) -> &'a str {
    let api_version = object.get("apiVersion").and_then(Value::as_str);
    api_version.map_or(otherwise, |v| group_version(v).0)
}

fn object_kind<'a>(object: &'a Value, otherwise: &'a str) -> &'a str {
    object.get("kind").and_then(Value::as_str).unwrap_or(otherwise)
}

pub(crate) fn set_version(object: &mut Value, revision: u64) {
    if let Some(m) = metadata_mut(object) {
        m.insert("resourceVersion", revision.to_string().into());
    }
}

fn remove_version(object: &mut Value) {
    if let Some(m) = metadata_mut(object) {
        m.remove("resourceVersion");
    }
}

/// Whether an object is what is stored already: where another server wrote it, its members may have another order, or
/// another encoding.
fn is_only_written_differently(call: &Call<'_>, entry: &Entry, old: &Value, new: &Value) -> bool {
    if old != new {
        return false;
    }
    // Of what has a protobuf form, all that is stored is shown.
    if protobuf::is_enveloped(&entry.value.bytes()) {
        return true;
    }
    read::stored(entry).is_ok_and(|held| held == *in_stored_version(call, new))
}

/// Whether an object that is being deleted has nothing left that holds it.
fn is_released(object: &Value) -> bool {
    let Some(m) = object.get("metadata") else {
        return false;
    };
    let held = m
        .get("finalizers")
        .and_then(Value::as_array)
        .is_some_and(|f| !f.is_empty());
    !held
        && m.get("deletionTimestamp").is_some()
        && m.get("deletionGracePeriodSeconds")
            .is_none_or(|s| s.as_int() == Some(0))
}

impl Api {
    /// Waits until the controller has carried out a write to the definitions, so that answers follow from it.
    pub(crate) async fn has_settled(&self, kind: &Kind, revision: u64) {
        if kind.group == crate::definitions::GROUP {
            self.progress.reach(revision).await;
        }
    }

    /// Whether a namespace is there.
    pub(crate) async fn has_namespace(&self, name: &str) -> bool {
        let Ok(key) = self.keys.object("", "namespaces", None, name) else {
            return false;
        };
        matches!(self.store.get(&key, ReadAt::AtLeast(0)).await, Ok(Some(_)))
    }
}
