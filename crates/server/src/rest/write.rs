//! Creates and updates: the path of a write.
//!
//! `pipeline` normalizes, prepares and validates; [`managed_fields`] records field ownership;
//! [`admission`](super::admission) runs admission plugins; `storage` writes to the store; `refusals` has the errors.

mod identity;
mod metadata;
mod owners;
mod pipeline;
mod refusals;
mod storage;

use crate::api::{RequestMeta, ResourceRequest};
use crate::codec::media::Encoding;
use crate::codec::text::{Stored, Text, WriteFacts, read_written};
use crate::http::reply::Reply;
use crate::request::parse_uint;
use crate::rest::admission::Admission;
use crate::rest::body::{self, DecodedBody};
use crate::rest::conversion::{Memo, with_conversions};
use crate::rest::entry_cache::{EntryFacts, known_type};
use crate::rest::managed_fields;
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::read::{self, store_error};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use scantling_admit::{FieldValidation, WriteOperation};
use scantling_builtin::Subresource;
use scantling_builtin::admission::Action;
use scantling_merge::apply::TypeCheck;
use scantling_store::{Entry, StoreError};
use scantling_value::{Finding, Value};

use identity::agent_name;
pub(crate) use identity::{identity, timestamp};
use metadata::is_released;
pub(crate) use metadata::{metadata_mut, metadata_str, remove_system_fields, remove_version, set_version};
pub(crate) use pipeline::{ObjectSource, Patched};
pub(crate) use refusals::{
    cannot_be_handled, cannot_be_handled_by_default, check_name_matches_path, check_namespace_matches_path,
    modified, patch_refusal,
};
use refusals::{check_version, other_uid, taken};
use storage::shown_as_stored;

/// A request that writes an object.
pub(crate) struct WriteRequest<'a> {
    pub(crate) call: &'a ResourceRequest<'a>,
    pub(crate) head: &'a RequestMeta,
    pub(crate) body: Bytes,
    pub(crate) warnings: &'a mut Vec<String>,
    /// The stored text, if clients see the object as it is stored.
    pub(crate) text: Option<Text>,
}

/// The number of names that are generated for an object until one is free.
const GENERATED_NAMES: usize = 8;

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    Whole,
    Status,
    Scale,
    /// The token of a service account, which is not stored.
    Token,
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
            // Other subresources are not updated, so what remains is `status`.
            Some(_) => Part::Status,
        }
    }

    /// The subresource as the rules of built-in kinds see it.
    pub(crate) fn subresource(self) -> Subresource {
        match self {
            Part::Whole | Part::Scale | Part::Token => Subresource::None,
            Part::Status => Subresource::Status,
            Part::Other(subresource) => subresource,
        }
    }

    /// The subresource that managers of fields record; the scale is managed apart.
    pub(crate) fn subresource_name(self) -> Option<&'static str> {
        match self {
            Part::Whole | Part::Scale | Part::Other(Subresource::None) => None,
            Part::Status | Part::Other(Subresource::Status) => Some("status"),
            Part::Token => Some("token"),
            Part::Other(Subresource::Finalize) => Some("finalize"),
            Part::Other(Subresource::Approval) => Some("approval"),
            Part::Other(Subresource::EphemeralContainers) => Some("ephemeralcontainers"),
            Part::Other(Subresource::Resize) => Some("resize"),
        }
    }
}

/// A change of a stored object.
pub(crate) struct Edit<'a> {
    pub(crate) name: &'a str,
    /// The uid that the object must have; empty for any.
    pub(crate) uid: &'a str,
    pub(crate) part: Part,
    pub(crate) options: &'a WriteOptions,
    pub(crate) source: ObjectSource<'a>,
    /// Computes the new state from the current one.
    pub(crate) change: &'a (dyn Fn(&Value, &Memo) -> ApiResult<Change> + Sync),
}

/// A new state for a stored object.
pub(crate) struct Change {
    pub(crate) object: Value,
    /// The findings of decoding the request.
    pub(crate) found: Vec<Finding>,
    pub(crate) ownership: Ownership,
    /// True if the object is normalized already.
    pub(crate) is_normalized: bool,
}

/// The effect of a write on field ownership.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ownership {
    /// The writer becomes manager of what it changed.
    Update,
    /// An apply has changed it already.
    Merged,
}

impl WriteRequest<'_> {
    /// POST
    pub(crate) async fn create(&mut self) -> ApiResult<Reply> {
        let call = self.call;
        if let Some(question) = call.kind.review {
            return self.answer(question).await;
        }
        let form = self.head.body_encoding()?;
        let options = self.options_for(form, WriteOptions::parse(call.query, WriteKind::Create)?);
        let DecodedBody { mut object, found } =
            body::decode(call, &self.body, form, options.field_validation)?;
        let fits = body::check_version_matches_path(call, &object)
            .and_then(|()| check_namespace_matches_path(call, &mut object));
        if let Err(e) = fits {
            // The response has the warnings about the object nevertheless.
            let mode = options.field_validation;
            self.normalize(
                &mut object,
                &found,
                mode,
                Ownership::Update,
                ObjectSource::Body,
                None,
            )?;
            return Err(e);
        }
        let created = self
            .create_object(object, &found, &options, Ownership::Update, ObjectSource::Body)
            .await?;
        self.reply(201, created)
    }

    /// The response with an object as it was stored. An error about its table arises only now.
    pub(crate) fn reply(&self, status: u16, object: Value) -> ApiResult<Reply> {
        let shape = self.call.view_renderer()?;
        match &self.text {
            Some(text) if shape.is_plain() => Ok(shape.text_reply(status, text)),
            _ => shape.object(status, object),
        }
    }

    /// Creates an object and returns it as it was stored.
    pub(crate) async fn create_object(
        &mut self,
        object: Value,
        found: &[Finding],
        options: &WriteOptions,
        ownership: Ownership,
        source: ObjectSource<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let mode = options.field_validation;
        let mut object = object;
        self.normalize(&mut object, found, mode, ownership, source, None)?;
        if call.kind.leaving {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(ApiError::forbidden(
                call.group_resource(),
                metadata_str(&object, "name"),
                why,
            ));
        }
        self.create_normalized(object, options, ownership, source).await
    }

    /// Creates an object that is normalized.
    async fn create_normalized(
        &mut self,
        mut object: Value,
        options: &WriteOptions,
        ownership: Ownership,
        source: ObjectSource<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let generated =
            metadata_str(&object, "name").is_empty() && !metadata_str(&object, "generateName").is_empty();
        let asked_version = metadata_str(&object, "resourceVersion").to_owned();
        remove_system_fields(&mut object);
        // After the metadata was reset and before ownership is recorded, so that no manager owns a duplicate.
        self.unite_owners(&mut object, ownership);
        let mut typed = TypeCheck::Unknown;
        if let Ownership::Update = ownership {
            let by = self.manager(options);
            let updated = managed_fields::after_update(call, Part::Whole, None, object, &by).await?;
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
        let mut tries = 1;
        loop {
            let identity = identity();
            // Only a create with a generated name is repeated if the name is taken.
            let mut next = match generated {
                true => object.clone(),
                false => std::mem::take(&mut object),
            };
            // Held until the object is stored, so that no other Service gets the same address.
            let _allocated = call.allocate(&mut next, None, options.dry_run).await?;
            let operation = WriteOperation::Create(&identity);
            let mut admitted =
                self.prepare_and_validate(operation, next, Part::Whole, &identity.created, source)?;
            self.check_admission(&admission, &admitted, options.dry_run)
                .await?;
            // kube-apiserver's storage refuses it, which a dry run does not reach. An invalid version passes.
            if !options.dry_run && parse_uint(&asked_version).is_ok_and(|v| v != 0) {
                return Err(ApiError::internal(
                    "resourceVersion should not be set on objects to be created",
                ));
            }
            // Preparation generated the name, if the client asked for that.
            let name = metadata_str(&admitted, "name").to_owned();
            let key = call.key(&name)?;
            if options.dry_run {
                if let Some(current) = call.api.newest(&key).await? {
                    return Err(taken(call, &name, &admitted, &current));
                }
                remove_version(&mut admitted);
                return shown_as_stored(call, admitted).await;
            }
            let stored = Stored::encode(call, &admitted).await?;
            let defines = call.kind.group == crate::kinds::definitions::GROUP;
            if defines {
                // At most one CRD is on its way to the controller, so that no write waits for long.
                call.api.crds.wait_all().await;
                call.api.expect_definition(call.version, &admitted, &stored);
            }
            let create = |value| scantling_store::Write::Create { value };
            match self.store(&key, stored, &mut admitted, ownership, create).await {
                Ok((event, stored)) => {
                    if defines {
                        call.api.crds.written(event.revision);
                        if let Some(entry) = event.after().filter(|_| call.version.storage) {
                            EntryFacts::set(call.kind, entry, stored.place, TypeCheck::Unknown);
                        }
                    }
                    let written = WriteFacts {
                        is_normalized: ownership == Ownership::Update && self.creates_normalized(),
                        typed,
                    };
                    let mut shown = read_written(call, &event, admitted, stored, written).await?;
                    self.text = event.after().and_then(|entry| Text::noted(call, entry));
                    set_version(&mut shown, event.revision);
                    return Ok(shown);
                }
                Err(StoreError::AlreadyExists { .. }) if generated && tries < GENERATED_NAMES => tries += 1,
                Err(StoreError::AlreadyExists { current }) => {
                    return Err(taken(call, &name, &admitted, &current));
                }
                Err(e) => return Err(store_error(e)),
            }
        }
    }

    /// The options of a request whose body is in an encoding. kube-apiserver does not report unknown fields of custom
    /// resources in CBOR.
    fn options_for(&self, form: Encoding, options: WriteOptions) -> WriteOptions {
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
        // In contrast to a create, the query is checked before the media type of the body.
        let options = WriteOptions::parse(call.query, WriteKind::Update)?;
        let form = self.head.body_encoding()?;
        let options = self.options_for(form, options);
        let DecodedBody { mut object, found } =
            body::decode(call, &self.body, form, options.field_validation)?;
        let mode = options.field_validation;
        self.normalize(
            &mut object,
            &found,
            mode,
            Ownership::Update,
            ObjectSource::Body,
            None,
        )?;
        body::check_version_matches_path(call, &object)?;
        check_namespace_matches_path(call, &mut object)?;
        check_name_matches_path(&object, name)?;
        let part = Part::from_path(call.path.subresource.as_deref());
        let uid = metadata_str(&object, "uid").to_owned();
        if call.kind.behavior.facts.creates_on_update && part == Part::Whole {
            let key = call.key(name)?;
            if call.api.newest(&key).await?.is_none() {
                // A uid is a precondition, and an object that does not exist has none.
                if !uid.is_empty() {
                    return Err(other_uid(call, name, &key, &options, (&uid, "")));
                }
                remove_version(&mut object);
                let created = self
                    .create_normalized(object, &options, Ownership::Update, ObjectSource::Body)
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
                is_normalized: true,
            })
        };
        let edit = Edit {
            name,
            uid: &uid,
            part,
            options: &options,
            source: ObjectSource::Body,
            change: &change,
        };
        let updated = self.change(&edit).await?;
        self.reply(200, updated)
    }

    /// Changes a stored object and returns it as it was stored. Starts again if another write came first.
    pub(crate) async fn change(&mut self, edit: &Edit<'_>) -> ApiResult<Value> {
        let call = self.call;
        let key = call.key(edit.name)?;
        // Each round that is lost is one in which another write succeeded. The timeout of the request ends the rounds.
        loop {
            let entry = call.live(&key, edit.name).await?;
            let warnings = self.warnings.len();
            if let Some(updated) = self.change_once(edit, &key, &entry).await? {
                return Ok(updated);
            }
            // The next round reports its own warnings.
            self.warnings.truncate(warnings);
        }
    }

    /// Tries once; `None` if another write came first.
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
            // A dry run fails as a read does.
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
            is_normalized,
        } = with_conversions(call, |memo| change(&old, memo)).await?;
        let mode = options.field_validation;
        if is_normalized {
            self.warnings.extend(found.iter().map(ToString::to_string));
        } else {
            self.normalize(&mut object, &found, mode, ownership, source, Some(&old))?;
            check_namespace_matches_path(call, &mut object)?;
            check_name_matches_path(&object, name)?;
            // The result of a patch has another text, because kube-apiserver finds its duplicates only after admission.
            self.unite_owners(&mut object, Ownership::Merged);
        }
        if let Some(m) = metadata_mut(&mut object) {
            m.remove("selfLink");
        }
        // A conflict with the version of the client is final, in contrast to a lost race with another write.
        check_version(call, name, &object, entry.mod_revision)?;
        set_version(&mut object, entry.mod_revision);
        let mut typed = TypeCheck::Unknown;
        if let Ownership::Update = ownership {
            let live = managed_fields::Live {
                object: &old,
                typed: known_type(call, entry),
            };
            let by = self.manager(options);
            let updated = managed_fields::after_update(call, part, Some(live), object, &by).await?;
            (object, typed) = (updated.object, updated.typed);
        }
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
            Part::Whole | Part::Scale | Part::Token | Part::Other(_) => WriteOperation::Update(&old),
        };
        let mut admitted = self.prepare_and_validate(operation, object, part, &timestamp(), source)?;
        self.check_admission(&admission, &admitted, options.dry_run)
            .await?;
        set_version(&mut admitted, entry.mod_revision);
        // Otherwise the new time would turn a write that changes nothing into one that moves the resource version.
        managed_fields::keep_times(&old, &mut admitted);
        if options.dry_run {
            return shown_as_stored(call, admitted).await.map(Some);
        }
        // The update removed the last finalizer of an object that is being deleted: it deletes instead of updating.
        if is_released(&admitted) && !call.kind.rules.is_held(&admitted) {
            return Ok(self.remove(key, entry).await?.then_some(admitted));
        }
        let is_normalized = ownership == Ownership::Update && matches!(part, Part::Whole | Part::Status);
        let written = WriteFacts { is_normalized, typed };
        self.replace(key, entry, &old, admitted, ownership, written).await
    }

    /// The field manager of the request.
    pub(crate) fn manager(&self, options: &WriteOptions) -> String {
        if options.field_manager.is_empty() {
            agent_name(&self.head.user_agent)
        } else {
            options.field_manager.clone()
        }
    }
}
