//! Creating and updating.

mod identity;
mod owners;
mod receive;
mod refusals;

use crate::api::{Api, RequestMeta, ResourceRequest};
use crate::codec::media::Encoding;
use crate::codec::protobuf;
use crate::codec::text::{
    Known, Normalized, Stored, Text, known_type, note_in_form, read_back, read_written,
};
use crate::http::reply::Reply;
use crate::kinds::kind::Kind;
use crate::kinds::strategy::WriteContext;
use crate::request::parse_uint;
use crate::rest::admission::Admission;
use crate::rest::body::{self, DecodedBody};
use crate::rest::conversion::{Memo, with_conversions};
use crate::rest::managed;
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::read::{self, store_error};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use scantling_admit::{FieldValidation, WriteOperation};
use scantling_builtin::Subresource;
use scantling_builtin::admission::Action;
use scantling_merge::apply::TypeCheck;
use scantling_store::{Entry, Event, MaybeCompressed, ReadAt, StoreError};
use scantling_value::{Map, Value};

use identity::agent_name;
pub(crate) use identity::{identity, timestamp};
pub(crate) use receive::{Patched, Source};
pub(crate) use refusals::{
    cannot_be_handled, cannot_be_handled_by_default, check_name_matches_path, check_namespace_matches_path,
    modified, patch_refusal,
};
use refusals::{check_version, other_uid, taken};

/// A write on its way.
pub(crate) struct Write<'a> {
    pub(crate) call: &'a ResourceRequest<'a>,
    pub(crate) head: &'a RequestMeta,
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
    Scale,
    /// Another subresource whose object is the object itself.
    Other(Subresource),
}

impl Part {
    /// The part that a subresource in a path names.
    pub(crate) fn from_path(subresource: Option<&str>) -> Part {
        match subresource {
            None => Part::Whole,
            Some("scale") => Part::Scale,
            Some("finalize") => Part::Other(Subresource::Finalize),
            Some("approval") => Part::Other(Subresource::Approval),
            Some("ephemeralcontainers") => Part::Other(Subresource::EphemeralContainers),
            Some("resize") => Part::Other(Subresource::Resize),
            Some(_) => Part::Status,
        }
    }

    /// The subresource as the rules of built-in kinds see it.
    pub(crate) fn subresource(self) -> Subresource {
        match self {
            Part::Whole | Part::Scale => Subresource::None,
            Part::Status => Subresource::Status,
            Part::Other(subresource) => subresource,
        }
    }

    /// The subresource that managers of fields record; the scale is managed apart.
    pub(crate) fn subresource_name(self) -> Option<&'static str> {
        match self {
            Part::Whole | Part::Scale | Part::Other(Subresource::None) => None,
            Part::Status | Part::Other(Subresource::Status) => Some("status"),
            Part::Other(Subresource::Finalize) => Some("finalize"),
            Part::Other(Subresource::Approval) => Some("approval"),
            Part::Other(Subresource::EphemeralContainers) => Some("ephemeralcontainers"),
            Part::Other(Subresource::Resize) => Some("resize"),
        }
    }
}

/// What is asked of a stored object.
pub(crate) struct Edit<'a> {
    pub(crate) name: &'a str,
    /// Which object of that name it has to be; empty if any will do.
    pub(crate) uid: &'a str,
    pub(crate) part: Part,
    pub(crate) options: &'a WriteOptions,
    pub(crate) source: Source<'a>,
    /// What becomes of the object as it is now.
    pub(crate) change: &'a (dyn Fn(&Value, &Memo) -> ApiResult<Change> + Sync),
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
    Merged,
}

impl Write<'_> {
    /// POST
    pub(crate) async fn create(&mut self) -> ApiResult<Reply> {
        let call = self.call;
        if let Some(question) = call.kind.review {
            return self.answer(question).await;
        }
        let form = self.head.body_encoding()?;
        let options = self.as_read(form, WriteOptions::parse(call.query, WriteKind::Create)?);
        let DecodedBody { mut object, found } =
            body::decode(call, &self.body, form, options.field_validation)?;
        let fits = body::check_version_matches_path(call, &object)
            .and_then(|()| check_namespace_matches_path(call, &mut object));
        if let Err(e) = fits {
            // Nothing comes of it, but what is found in the object is told.
            let mode = options.field_validation;
            self.receive(&mut object, &found, mode, Ownership::Update, Source::Body, None)?;
            return Err(e);
        }
        let created = self
            .create_object(object, &found, &options, Ownership::Update, Source::Body)
            .await?;
        self.reply(201, created)
    }

    /// The answer that shows an object as it was stored. Only now it shows whether there is such a table.
    pub(crate) fn reply(&self, status: u16, object: Value) -> ApiResult<Reply> {
        let shape = self.call.shape()?;
        match &self.text {
            Some(text) if shape.is_plain() => Ok(shape.text_reply(status, text)),
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
        let mode = options.field_validation;
        let mut object = object;
        self.receive(&mut object, found, mode, ownership, source, None)?;
        if call.kind.leaving {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(
                call.group_resource(),
                metadata_str(&object, "name"),
                why,
            ));
        }
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
        let generated =
            metadata_str(&object, "name").is_empty() && !metadata_str(&object, "generateName").is_empty();
        let asked_version = metadata_str(&object, "resourceVersion").to_owned();
        remove_system_fields(&mut object);
        self.unite_owners(&mut object, ownership);
        let mut typed = TypeCheck::Unknown;
        if let Ownership::Update = ownership {
            let by = self.manager(options);
            let updated = managed::after_update(call, Part::Whole, None, object, &by).await?;
            (object, typed) = (updated.object, updated.typed);
        }
        let name = metadata_str(&object, "name").to_owned();
        let admission = Admission {
            action: Action::Create,
            part: Part::Whole,
            name: &name,
            old: None,
        };
        self.admit(&admission, &mut object).await?;
        let mut tries = 0;
        loop {
            let identity = identity();
            // Only a name that is made up may be taken and be tried again.
            let next = if generated {
                object.clone()
            } else {
                std::mem::take(&mut object)
            };
            let mut next = next;
            let _allocated = call.allocate(&mut next, None, options.dry_run).await?;
            let outcome = call.kind.strategy.decide(
                call.version,
                WriteOperation::Create(&identity),
                next,
                &self.context(Part::Whole, &identity.created),
            );
            let mut admitted = self.outcome(outcome, source, None)?;
            self.check_admission(&admission, &admitted, options.dry_run)
                .await?;
            if !options.dry_run && parse_uint(&asked_version).is_ok_and(|v| v != 0) {
                return Err(ApiError::internal(
                    "resourceVersion should not be set on objects to be created",
                ));
            }
            let name = metadata_str(&admitted, "name").to_owned();
            let key = call.key(&name)?;
            if options.dry_run {
                let there = call.api.store.get(&key, ReadAt::Latest).await;
                if let Some(current) = there.map_err(store_error)? {
                    return Err(taken(call, &name, &admitted, &current));
                }
                remove_version(&mut admitted);
                return shown_as_stored(call, admitted).await;
            }
            let stored = Stored::encode(call, &admitted).await?;
            let defines = call.kind.group == crate::kinds::definitions::GROUP;
            if defines {
                // One definition may be on its way while the next is checked; no more, so that none waits for long.
                call.api.crds.wait_all().await;
                call.api.expect_definition(call.version, &admitted, &stored);
            }
            let create = |value| scantling_store::Write::Create { value };
            match self.store(&key, stored, &mut admitted, ownership, create).await {
                Ok((event, stored)) => {
                    if defines {
                        call.api.crds.written(event.revision);
                        note_in_form(call, &event, stored.place);
                    }
                    let brought = Normalized::Anything;
                    let known = Known { brought, typed };
                    let mut shown = read_written(call, &event, admitted, stored, known).await?;
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

    /// The options of a request whose body is in an encoding. What is unknown in custom resources in CBOR is not told:
    /// a server reads them without asking what they are.
    fn as_read(&self, form: Encoding, options: WriteOptions) -> WriteOptions {
        if form != Encoding::Cbor || self.call.kind.built_in {
            return options;
        }
        WriteOptions {
            field_validation: FieldValidation::Ignore,
            ..options
        }
    }

    /// PUT
    pub(crate) async fn update(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        // Unlike in a new object, what is asked is looked at before the form of the body is.
        let options = WriteOptions::parse(call.query, WriteKind::Update)?;
        let form = self.head.body_encoding()?;
        let options = self.as_read(form, options);
        let DecodedBody { mut object, found } =
            body::decode(call, &self.body, form, options.field_validation)?;
        let mode = options.field_validation;
        self.receive(&mut object, &found, mode, Ownership::Update, Source::Body, None)?;
        body::check_version_matches_path(call, &object)?;
        check_namespace_matches_path(call, &mut object)?;
        check_name_matches_path(&object, name)?;
        let part = Part::from_path(call.path.subresource.as_deref());
        let uid = metadata_str(&object, "uid").to_owned();
        if call.kind.strategy.creates_on_update() && part == Part::Whole {
            let key = call.key(name)?;
            let there = call.api.store.get(&key, ReadAt::Latest).await;
            if there.map_err(store_error)?.is_none() {
                if !uid.is_empty() {
                    return Err(other_uid(call, name, &key, &options, (&uid, "")));
                }
                remove_version(&mut object);
                let created = self
                    .create_received(object, &options, Ownership::Update, Source::Body)
                    .await?;
                return self.reply(201, created);
            }
        }
        self.unite_owners(&mut object, Ownership::Update);
        let change = |_: &Value, _: &Memo| {
            let ownership = Ownership::Update;
            Ok(Change {
                object: object.clone(),
                found: Vec::new(),
                ownership,
                received: true,
            })
        };
        let edit = Edit {
            name,
            uid: &uid,
            part,
            options: &options,
            source: Source::Body,
            change: &change,
        };
        let updated = self.change(&edit).await?;
        self.reply(200, updated)
    }

    /// Changes a stored object, again if another write comes in between, and returns it as it was stored.
    pub(crate) async fn change(&mut self, edit: &Edit<'_>) -> ApiResult<Value> {
        let call = self.call;
        let key = call.key(edit.name)?;
        let mut tries = 0;
        loop {
            let entry = call.live(&key, edit.name).await?;
            let warnings = self.warnings.len();
            match self.change_once(edit, &key, &entry).await? {
                Some(updated) => return Ok(updated),
                None if tries < TRIES => tries += 1,
                None => return Err(modified(call.group_resource(), edit.name)),
            }
            self.warnings.truncate(warnings);
        }
    }

    /// One try; nothing if another write came in between.
    async fn change_once(&mut self, edit: &Edit<'_>, key: &str, entry: &Entry) -> ApiResult<Option<Value>> {
        let Edit {
            name,
            uid,
            part,
            options,
            source,
            change,
        } = *edit;
        let call = self.call;
        let old = read::object_in_version(call, entry).await;
        let old = old.map_err(|e| match options.dry_run {
            // What is only tried is read as by a client.
            true => read::by_key(call, entry, e),
            false => e,
        })?;
        let existing_uid = metadata_str(&old, "uid");
        if !uid.is_empty() && uid != existing_uid {
            return Err(other_uid(call, name, key, options, (uid, existing_uid)));
        }
        let Change {
            mut object,
            found,
            ownership,
            received,
        } = with_conversions(call, |memo| change(&old, memo)).await?;
        let mode = options.field_validation;
        if received {
            self.warnings.extend(found);
        } else {
            self.receive(&mut object, &found, mode, ownership, source, Some(&old))?;
            check_namespace_matches_path(call, &mut object)?;
            check_name_matches_path(&object, name)?;
            self.unite_owners(&mut object, Ownership::Merged);
        }
        if let Some(m) = metadata_mut(&mut object) {
            m.remove("selfLink");
        }
        check_version(call, name, &object, entry.mod_revision)?;
        set_version(&mut object, entry.mod_revision);
        let mut typed = TypeCheck::Unknown;
        if let Ownership::Update = ownership {
            let live = managed::Live {
                object: &old,
                typed: known_type(call, entry),
            };
            let by = self.manager(options);
            let updated = managed::after_update(call, part, Some(live), object, &by).await?;
            (object, typed) = (updated.object, updated.typed);
        }
        let (strategy, version) = (&call.kind.strategy, call.version);
        let admission = Admission {
            action: Action::Update,
            part,
            name,
            old: Some(&old),
        };
        self.admit(&admission, &mut object).await?;
        let _allocated = match part {
            Part::Whole => call.allocate(&mut object, Some(&old), options.dry_run).await?,
            _ => None,
        };
        let operation = match part {
            Part::Status => WriteOperation::UpdateStatus(&old),
            Part::Whole | Part::Scale | Part::Other(_) => WriteOperation::Update(&old),
        };
        let now = timestamp();
        let outcome = strategy.decide(version, operation, object, &self.context(part, &now));
        let mut admitted = self.outcome(outcome, source, Some(&old))?;
        self.check_admission(&admission, &admitted, options.dry_run)
            .await?;
        set_version(&mut admitted, entry.mod_revision);
        managed::keep_times(&old, &mut admitted);
        if options.dry_run {
            return shown_as_stored(call, admitted).await.map(Some);
        }
        if is_released(&admitted) && !strategy.is_held(&admitted) {
            return self.remove(key, entry, admitted).await;
        }
        let brought = match (ownership, part) {
            (Ownership::Update, Part::Whole | Part::Status) => Normalized::InForm,
            _ => Normalized::Anything,
        };
        let known = Known { brought, typed };
        self.replace(key, entry, &old, admitted, ownership, known).await
    }

    /// Removes an object whose last change took away what held it; nothing if another write came in between.
    async fn remove(&self, key: &str, entry: &Entry, last: Value) -> ApiResult<Option<Value>> {
        let is_gone = self.take_out(key, entry).await?;
        Ok(is_gone.then_some(last))
    }

    /// Takes an entry out of the store; false if another write came in between.
    pub(crate) async fn take_out(&self, key: &str, entry: &Entry) -> ApiResult<bool> {
        let expected = entry.mod_revision;
        let delete = scantling_store::Write::Delete { expected };
        match self.call.api.store.write(key, delete).await {
            Ok(_) => Ok(true),
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(false),
            Err(e) => Err(store_error(e)),
        }
    }

    /// Stores what becomes of an object, if that is anything new; nothing if another write came in between.
    async fn replace(
        &mut self,
        key: &str,
        entry: &Entry,
        old: &Value,
        mut new: Value,
        ownership: Ownership,
        known: Known,
    ) -> ApiResult<Option<Value>> {
        let call = self.call;
        let stored = Stored::encode(call, &new).await?;
        if entry.value == stored.value || is_only_written_differently(entry, old, &new, &stored) {
            let read = read_back(call, new, stored).await;
            return read
                .map(Some)
                .map_err(|e| read::undecodable(entry.mod_revision, e));
        }
        let expected = entry.mod_revision;
        let update = |value| scantling_store::Write::Update { value, expected };
        match self.store(key, stored, &mut new, ownership, update).await {
            Ok((event, stored)) => {
                call.api.has_settled(call.kind, event.revision).await;
                let mut shown = read_written(call, &event, new, stored, known).await?;
                self.text = event.after().and_then(|entry| Text::noted(call, entry));
                set_version(&mut shown, event.revision);
                Ok(Some(shown))
            }
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => Ok(None),
            Err(e) => Err(store_error(e)),
        }
    }

    /// Stores an object; answers with the form in which it was stored, too. One that is too large with its managers is
    /// stored without them, unless an apply has settled who they are.
    async fn store(
        &self,
        key: &str,
        mut stored: Stored,
        object: &mut Value,
        ownership: Ownership,
        write: impl Fn(MaybeCompressed) -> scantling_store::Write,
    ) -> Result<(Event, Stored), StoreError> {
        loop {
            match self.call.api.store.write(key, write(stored.value.clone())).await {
                Ok(event) => return Ok((event, stored)),
                Err(StoreError::TooLarge { .. })
                    if ownership == Ownership::Update && managed::forget(object) =>
                {
                    stored = stored.without_managers(self.call, object);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// What the rules of the kind may depend on.
    fn context<'c>(&'c self, part: Part, now: &'c str) -> WriteContext<'c> {
        WriteContext {
            subresource: part.subresource(),
            now,
            user: self.requester(),
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
pub(crate) fn metadata_str<'v>(object: &'v Value, field: &str) -> &'v str {
    object.str_at(["metadata", field])
}

/// Removes what no client can set of a new object: it counts for nobody as set by it.
pub(crate) fn remove_system_fields(object: &mut Value) {
    if let Some(m) = metadata_mut(object) {
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
}

/// An object's metadata, made if they are not there; nothing where they are no object.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map> {
    let map = object.as_object_mut()?;
    if map.get("metadata").is_none_or(Value::is_null) {
        map.insert("metadata", Map::new().into());
    }
    map.get_mut("metadata")?.as_object_mut()
}

pub(crate) fn set_version(object: &mut Value, revision: u64) {
    if let Some(m) = metadata_mut(object) {
        m.insert("resourceVersion", revision.to_string().into());
    }
}

pub(crate) fn remove_version(object: &mut Value) {
    if let Some(m) = metadata_mut(object) {
        m.remove("resourceVersion");
    }
}

/// Whether an object is what is stored already: where another server wrote it, its members may have another order, or
/// another encoding.
fn is_only_written_differently(entry: &Entry, old: &Value, new: &Value, stored: &Stored) -> bool {
    if old != new {
        return false;
    }
    // Of what has a protobuf form, all that is stored is shown.
    if protobuf::is_enveloped(&entry.value.bytes()) {
        return true;
    }
    read::stored(entry).is_ok_and(|held| held == *stored.object(new))
}

/// An object as it would be shown if it were stored.
async fn shown_as_stored(call: &ResourceRequest<'_>, object: Value) -> ApiResult<Value> {
    let stored = Stored::encode(call, &object).await?;
    read_back(call, object, stored).await
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
        if kind.group == crate::kinds::definitions::GROUP {
            self.crds.wait_for(revision).await;
        }
    }

    /// Whether a namespace is there.
    pub(crate) async fn has_namespace(&self, name: &str) -> Result<bool, StoreError> {
        let key = self.keys.object("", "namespaces", None, name)?;
        let namespace = self.store.get(&key, ReadAt::AtLeast(0)).await?;
        Ok(namespace.is_some())
    }
}
