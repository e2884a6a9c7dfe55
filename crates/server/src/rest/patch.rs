//! JSON patch, merge patch, strategic merge patch and server-side apply.

use crate::api::ResourceRequest;
use crate::codec::cbor;
use crate::codec::media::{self, Encoding, Encodings};
use crate::codec::order;
use crate::http::reply::Reply;
use crate::kinds::kind::{Kind, STRATEGIC_PATCH};
use crate::request::parse_uint;
use crate::rest::conversion::{Memo, with_conversions};
use crate::rest::managed_fields;
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::scale;
use crate::rest::write::{
    Change, Edit, ObjectSource, Ownership, Part, Patched, WriteRequest, check_name_matches_path,
    check_namespace_matches_path, metadata_str,
};
use crate::status::{ApiError, ApiResult};
use bytes::Bytes;
use jiff::Timestamp;
use scantling_admit::FieldValidation;
use scantling_merge::apply::{ApplyError, Force};
use scantling_merge::patch::{Patch, PatchDecoding, PatchError, PatchType};
use scantling_value::{Finding, FindingList, Limits, Map, Value};

/// The media type of an apply in CBOR.
const APPLY_IN_CBOR: &str = "application/apply-patch+cbor";

/// The media types of the patches that a kind accepts, given the encodings of the server.
pub(crate) fn accepted_types(kind: &Kind, encodings: Encodings) -> Vec<&'static str> {
    let mut types = kind.patch_types.to_vec();
    if encodings.contains(&Encoding::Cbor) {
        types.push(APPLY_IN_CBOR);
    }
    types
}

impl WriteRequest<'_> {
    /// PATCH
    pub(crate) async fn patch(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        let ty = self.patch_type()?;
        call.wanted()?;
        let kind = if ty == PatchType::Apply {
            WriteKind::Apply
        } else {
            WriteKind::Patch
        };
        let options = WriteOptions::parse(call.query, kind)?;
        let text = self.patch_text()?;
        // A text that is not a patch is refused first; an invalid patch only once the object has been read.
        let patch = match Patch::decode(ty, &text, reading(options.field_validation), Limits::SERVER) {
            Err(PatchError::Syntax(why)) => return Err(ApiError::bad_request(why)),
            read => read.map_err(patch_error),
        };
        let part = Part::from_path(call.path.subresource.as_deref());
        let (status, object) = match (ty, part) {
            (PatchType::Apply, _) => self.apply(name, part, &options, &patch).await?,
            (_, Part::Scale) => (200, self.patch_scale(name, &options, &patch).await?),
            // A patch other than an apply never creates, so its status is always 200.
            _ => (200, self.patch_object(name, part, &options, &patch).await?),
        };
        if part == Part::Scale {
            return scale::reply(call.view_renderer()?, object);
        }
        self.reply(status, object)
    }

    /// The type of the patch, if the kind accepts such patches.
    pub(crate) fn patch_type(&self) -> ApiResult<PatchType> {
        let kind = self.call.kind;
        let asked = match self.is_apply_in_cbor() {
            true => Some(PatchType::Apply),
            false => PatchType::from_media_type(media::essence(self.head.content_type.as_deref())),
        };
        asked
            .filter(|ty| *ty != PatchType::Strategic || kind.patch_types.contains(&STRATEGIC_PATCH))
            .ok_or_else(|| ApiError::unsupported_media_type(&accepted_types(kind, self.head.encodings)))
    }

    fn is_apply_in_cbor(&self) -> bool {
        let encodings = self.head.encodings.contains(&Encoding::Cbor);
        encodings && media::essence(self.head.content_type.as_deref()) == APPLY_IN_CBOR
    }

    /// The body as the text of a patch.
    fn patch_text(&self) -> ApiResult<Bytes> {
        if !self.is_apply_in_cbor() {
            return Ok(self.body.clone());
        }
        let patch = cbor::decode(&self.body);
        let patch = patch.map_err(|why| ApiError::bad_request(format!("error decoding patch: {why}")))?;
        Ok(patch.to_json().into())
    }

    async fn patch_object(
        &mut self,
        name: &str,
        part: Part,
        options: &WriteOptions,
        patch: &ApiResult<Patch<'_>>,
    ) -> ApiResult<Value> {
        let schema = self.call.kind.codec.strategic_schema(self.call.version);
        let change = |old: &Value, _: &Memo| {
            let patch = patch.as_ref().map_err(ApiError::clone)?;
            Ok(Change {
                object: patch.apply(old, schema).map_err(patch_error)?,
                found: patch.result_findings(|| order::to_json(old)),
                ownership: Ownership::Update,
                is_normalized: false,
            })
        };
        let source = match patch {
            Ok(patch) => ObjectSource::Patch(patch),
            // `change` returns the error of the patch before the source is used.
            Err(_) => ObjectSource::Body,
        };
        let edit = Edit {
            name,
            uid: "",
            part,
            options,
            source,
            change: &change,
        };
        self.change(&edit).await
    }

    async fn patch_scale(
        &mut self,
        name: &str,
        options: &WriteOptions,
        patch: &ApiResult<Patch<'_>>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let key = call.key(name)?;
        let entry = call.live(&key, name).await?;
        let object = crate::rest::read::object_in_version(call, &entry).await?;
        scale::scale_to_patch(call, &object)?;
        // An error about the patch comes after one about a missing scale.
        let patch = patch.as_ref().map_err(ApiError::clone)?;
        let live = managed_fields::managed_scale(call, &object)?;
        let made = patch
            .apply(&live, Some(scale::strategic_schema()))
            .map_err(patch_error)?;
        let refused =
            |why: &str| crate::rest::write::patch_refusal(patch.describe_result(&order::to_json(&live)), why);
        let (mut sent, unknown) = scale::check(made).map_err(|why| refused(&why))?;
        let in_result = patch.result_findings(|| order::to_json(&live));
        let mut found: FindingList = patch.findings().iter().cloned().collect();
        found.append(FindingList::join(&in_result, unknown));
        match options.field_validation {
            FieldValidation::Strict if !found.is_empty() => {
                return Err(refused(&format!(
                    "strict decoding error: {}",
                    found.strict_error()
                )));
            }
            FieldValidation::Warn => self.warnings.extend(found.iter().map(ToString::to_string)),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        // Resource version and uid come from the patched object: they are not preconditions of the client.
        if let Some(m) = crate::rest::write::metadata_mut(&mut sent) {
            // Otherwise an object that was recreated meanwhile would fail with an error about a uid that no one sent.
            m.remove("uid");
            if !patch.sets(["metadata", "resourceVersion"]) {
                m.remove("resourceVersion");
            }
        }
        check_namespace_matches_path(call, &mut sent)?;
        check_name_matches_path(&sent, name)?;
        scale::check_replicas(call, &sent)?;
        scale::replace(self, name, options, &sent).await
    }

    /// Applies a configuration to the object, which is created if it does not exist.
    async fn apply(
        &mut self,
        name: &str,
        part: Part,
        options: &WriteOptions,
        patch: &ApiResult<Patch<'_>>,
    ) -> ApiResult<(u16, Value)> {
        let call = self.call;
        let there = self.is_there(name).await?;
        if !there && part != Part::Whole {
            return Err(ApiError::not_found(call.group_resource(), name));
        }
        let patch = patch.as_ref().map_err(ApiError::clone)?;
        let applying = Applying {
            config: patch.config().unwrap_or(&Value::Null),
            manager: &options.field_manager,
            force: if options.force { Force::Yes } else { Force::No },
            refusal: patch
                .strict_refusal()
                .filter(|_| options.field_validation == FieldValidation::Strict),
            findings: patch.findings().to_vec(),
        };
        if part == Part::Scale {
            let scale = self.apply_scale(name, options, &applying).await?;
            return Ok((200, scale));
        }
        let now = Timestamp::now();
        // The time is fixed outside: a run with more conversions must give the same object.
        let applied = |old: Option<&Value>, memo: &Memo| {
            let apply = managed_fields::Apply {
                config: applying.config,
                manager: applying.manager,
                force: applying.force,
                now,
            };
            let object = managed_fields::apply(call, part, old, &apply, memo).map_err(apply_error)?;
            // kube-apiserver reports conflicts and schema errors before the error of strict validation.
            applying.check_strictly()?;
            Ok(object)
        };
        if !there {
            let mut object = with_conversions(call, |memo| applied(None, memo)).await?;
            // Ownership and conflicts are computed before uid, namespace and name are compared, as in kube-apiserver.
            if let Err(e) = fit_new(call, name, &mut object) {
                // The response has the warnings nevertheless.
                self.warnings
                    .extend(applying.findings.iter().map(ToString::to_string));
                return Err(e);
            }
            let asked = metadata_str(&object, "resourceVersion");
            if !asked.is_empty() {
                // It is ignored, but must be valid.
                parse_uint(asked).map_err(ApiError::internal)?;
            }
            if let Some(m) = crate::rest::write::metadata_mut(&mut object) {
                m.remove("resourceVersion");
            }
            let created = self
                .create_object(
                    object,
                    &applying.findings,
                    options,
                    Ownership::Merged,
                    ObjectSource::Apply(applying.config),
                )
                .await?;
            return Ok((201, created));
        }
        let change = |old: &Value, memo: &Memo| {
            let object = applied(Some(old), memo)?;
            // An object that the apply does not change is normalized already.
            let is_normalized = managed_fields::same_but_managers(old, &object);
            Ok(Change {
                is_normalized,
                ..applying.change(object)
            })
        };
        let edit = Edit {
            name,
            uid: "",
            part,
            options,
            source: ObjectSource::Apply(applying.config),
            change: &change,
        };
        let updated = self.change(&edit).await?;
        Ok((200, updated))
    }

    /// Returns whether an object exists. Validation refuses invalid names.
    async fn is_there(&self, name: &str) -> ApiResult<bool> {
        let call = self.call;
        // Such a name has no key. An apply goes on as a create, whose validation has the proper error.
        if !call.names_fit(name) {
            return Ok(false);
        }
        Ok(call.api.newest(&call.key(name)?).await?.is_some())
    }

    /// Applies a configuration to `/scale`. The object records who owns the replicas, and only they change.
    async fn apply_scale(
        &mut self,
        name: &str,
        options: &WriteOptions,
        applying: &Applying<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let change = |old: &Value, _: &Memo| {
            let (config, manager, force) = (applying.config, applying.manager, applying.force);
            let (scale, entries) =
                managed_fields::apply_scale(call, old, config, manager, force).map_err(apply_error)?;
            applying.check_strictly()?;
            check_name_matches_path(&scale, name)?;
            let replicas = scale
                .at(["spec", "replicas"])
                .and_then(Value::as_int)
                .unwrap_or(0);
            let mut object = scale::with_replicas(call, old, replicas)?;
            managed_fields::set_entries(&mut object, entries);
            Ok(applying.change(object))
        };
        let edit = Edit {
            name,
            uid: "",
            part: Part::Scale,
            options,
            source: ObjectSource::Body,
            change: &change,
        };
        let updated = self.change(&edit).await?;
        scale::scale_after_write(call, &updated)
    }
}

impl Patched for Patch<'_> {
    fn quoted(&self, old: &Value) -> String {
        let consumed = self.describe_consumed(old);
        consumed.unwrap_or_else(|| Patch::describe_result(self, &order::to_json(old)))
    }

    fn is_converted(&self) -> bool {
        self.ty() == PatchType::Strategic
    }

    fn findings(&self) -> &[Finding] {
        Patch::findings(self)
    }
}

/// Checks that an apply creates the object of the path.
fn fit_new(call: &ResourceRequest<'_>, name: &str, object: &mut Value) -> ApiResult<()> {
    let uid = metadata_str(object, "uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(call.group_resource(), name, &why));
    }
    check_namespace_matches_path(call, object)?;
    check_name_matches_path(object, name)
}

/// The parameters of an apply.
struct Applying<'a> {
    config: &'a Value,
    manager: &'a str,
    force: Force,
    /// The error of strict field validation, which is reported after conflicts.
    refusal: Option<String>,
    /// The findings of strict decoding.
    findings: Vec<Finding>,
}

impl Applying<'_> {
    fn check_strictly(&self) -> ApiResult<()> {
        match &self.refusal {
            Some(why) => Err(ApiError::bad_request(why.as_str())),
            None => Ok(()),
        }
    }

    fn change(&self, object: Value) -> Change {
        Change {
            object,
            found: self.findings.clone(),
            ownership: Ownership::Merged,
            is_normalized: false,
        }
    }
}

fn reading(mode: FieldValidation) -> PatchDecoding {
    match mode {
        FieldValidation::Ignore => PatchDecoding::Lenient,
        FieldValidation::Warn | FieldValidation::Strict => PatchDecoding::Strict,
    }
}

fn patch_error(e: PatchError) -> ApiError {
    match e {
        PatchError::Syntax(why) | PatchError::BadRequest(why) => ApiError::bad_request(why),
        PatchError::TooLarge(why) => ApiError::too_large(format!("Request entity too large: {why}")),
        // kube-apiserver hides the reason from clients, too; here it goes to the log.
        PatchError::Unprocessable(why) => ApiError::unprocessable().private(why),
        PatchError::Internal(why) => ApiError::internal(why),
    }
}

fn apply_error(e: ApplyError) -> ApiError {
    match e {
        ApplyError::BadRequest(why) => ApiError::bad_request(why),
        ApplyError::Internal(why) => ApiError::internal(why),
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.listed().into_iter().map(|(c, path)| {
                let entries = [
                    ("reason", Value::from("FieldManagerConflict")),
                    ("message", c.message().into()),
                    ("field", path.into()),
                ];
                Value::Object(entries.into_iter().collect())
            });
            let details = Map::from_iter([("causes", Value::Array(causes.collect()))]);
            ApiError::new(409, "Conflict", conflicts.to_string()).details(details)
        }
    }
}
