//! Patching: JSON patch, merge patch, strategic merge patch, and apply.

use crate::api::Call;
use crate::body::kind_of;
use crate::managed;
use crate::media;
use crate::options::{FieldValidation, WriteKind, WriteOptions};
use crate::read::store_error;
use crate::reply::Reply;
use crate::scale;
use crate::status::{ApiError, ApiResult};
use crate::write::{Change, Ownership, Part, Source, Write, fit_name, fit_namespace, text};
use scantling_merge::apply::{ApplyError, Force};
use scantling_merge::json_patch::{self, JsonPatch, JsonPatchError};
use scantling_merge::merge_patch;
use scantling_merge::strategic::{self, StrategicError};
use scantling_store::ReadAt;
use scantling_value::{Limits, Map, Value, json, yaml};

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Write<'_> {
    /// PATCH
    pub(crate) async fn patch(&mut self, name: &str) -> ApiResult<Reply> {
        let call = self.call;
        let shape = call.shape()?;
        let ty = self.patch_type()?;
        let kind = if ty == PatchType::Apply {
            WriteKind::Apply
        } else {
            WriteKind::Patch
        };
        let options = WriteOptions::parse(call.query, kind)?;
        self.check_syntax(ty)?;
        let part = match call.path.subresource.as_deref() {
            Some("status") => Part::Status,
            Some(_) => Part::Scale,
            None => Part::Whole,
        };
        let (status, object) = match (ty, part) {
            (PatchType::Apply, _) => self.apply(name, part, &options).await?,
            (_, Part::Scale) => (200, self.patch_scale(name, ty, &options).await?),
            _ => (200, self.patch_object(name, ty, part, &options).await?),
        };
        if part == Part::Scale {
            return scale::shown(shape, object);
        }
        shape.object(status, object)
    }

    fn patch_type(&self) -> ApiResult<PatchType> {
        let strategic = self.call.kind.strategy.strategic_schema().is_some();
        match media::essence(self.head.content_type.as_deref()) {
            "application/json-patch+json" => Ok(PatchType::Json),
            "application/merge-patch+json" => Ok(PatchType::Merge),
            "application/strategic-merge-patch+json" if strategic => Ok(PatchType::Strategic),
            "application/apply-patch+yaml" => Ok(PatchType::Apply),
            _ => Err(ApiError::unsupported_media_type(
                self.call.kind.strategy.patch_types(),
            )),
        }
    }

    /// A body that is no JSON, or with apply no YAML, is refused before anything else is looked at.
    fn check_syntax(&self, ty: PatchType) -> ApiResult<()> {
        if ty == PatchType::Apply {
            let checked = yaml::decode(&self.body, Limits::SERVER);
            return checked
                .map(drop)
                .map_err(|e| ApiError::bad_request(format!("error encoding patch: {e}")));
        }
        let checked = json::decode(&self.body, Limits::SERVER);
        checked
            .map(drop)
            .map_err(|_| ApiError::bad_request("invalid JSON patch"))
    }

    async fn patch_object(
        &mut self,
        name: &str,
        ty: PatchType,
        part: Part,
        options: &WriteOptions,
    ) -> ApiResult<Value> {
        let call = self.call;
        let body = self.body.clone();
        let mode = options.field_validation;
        // The refusal of a patch shows what the patch made, or the patch itself.
        let shown = std::sync::Mutex::new(String::new());
        let change = |old: &Value| {
            let (mut object, found) = patched(call, ty, old, &body, mode)?;
            let text = match ty {
                PatchType::Strategic => go_map(&body),
                PatchType::Json if mode == FieldValidation::Strict => {
                    json_patch::patched_text(old, &String::from_utf8_lossy(&body))
                }
                _ => object.to_json(),
            };
            if let Ok(mut s) = shown.lock() {
                *s = text;
            }
            if !matches!(object, Value::Object(_)) {
                return Err(ApiError::bad_request("the patched object is no object"));
            }
            fit_namespace(call, &mut object)?;
            fit_name(&object, name)?;
            Ok(Change {
                object,
                found,
                ownership: Ownership::Update,
                received: false,
            })
        };
        self.change(name, options, part, None, &change, Source::Patch(&shown))
            .await
    }

    async fn patch_scale(&mut self, name: &str, ty: PatchType, options: &WriteOptions) -> ApiResult<Value> {
        let call = self.call;
        let key = call.key(name)?;
        let entry = call.live(&key, name).await?;
        let object = crate::read::shown(call, &entry)?;
        let live = scale::scale_of(call, &object)?;
        let (mut sent, found) = patched(call, ty, &live, &self.body, options.field_validation)?;
        let managed = managed::managed_scale(call, &object).unwrap_or(live);
        let (shown, _) = patched(call, ty, &managed, &self.body, options.field_validation)?;
        self.scale_findings(&shown, found, options.field_validation)?;
        // The version is that of what was patched, not a precondition of the client's.
        let asked = json::decode(&self.body, Limits::SERVER).ok();
        let given = asked
            .as_ref()
            .is_some_and(|p| p.at(["metadata", "resourceVersion"]).is_some());
        if !given && let Some(m) = crate::write::metadata_mut(&mut sent) {
            m.remove("resourceVersion");
        }
        fit_name(&sent, name)?;
        scale::replace(self, name, options, &sent).await
    }

    /// Unknown and duplicate fields of a patch to a scale: a refusal, warnings, or nothing.
    fn scale_findings(&mut self, made: &Value, found: Vec<String>, mode: FieldValidation) -> ApiResult<()> {
        let unknown = scale::unknown(made).map(|field| format!("unknown field \"{field}\""));
        let found: Vec<String> = found.into_iter().chain(unknown).collect();
        match mode {
            FieldValidation::Strict if !found.is_empty() => {
                // Parts that the patch does not touch are shown in the order that their type has.
                let patch = json::decode(&self.body, Limits::SERVER).unwrap_or_default();
                let shown = crate::order::patched_scale(made, &patch);
                let why = format!("strict decoding error: {}", found.join(", "));
                Err(crate::write::patch_refusal(&std::sync::Mutex::new(shown), &why))
            }
            FieldValidation::Warn => {
                self.warnings.extend(found);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An apply: to the object that is there, or else it makes one.
    async fn apply(&mut self, name: &str, part: Part, options: &WriteOptions) -> ApiResult<(u16, Value)> {
        let call = self.call;
        let decoded = yaml::decode_strict(&self.body, Limits::SERVER)
            .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
        let config = match decoded.value {
            v @ Value::Object(_) => v,
            Value::Null => Value::Object(Map::new()),
            other => {
                return Err(ApiError::bad_request(format!(
                    "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into \
                     Go value of type map[string]interface {{}}",
                    kind_of(&other)
                )));
            }
        };
        let duplicates = (!decoded.duplicates.is_empty()).then(|| {
            format!(
                "error converting YAML to JSON: {}",
                yaml::strict_error(&decoded.duplicates)
            )
        });
        let strict = |warnings: &mut Vec<String>| match (&duplicates, options.field_validation) {
            (None, _) | (_, FieldValidation::Ignore) => Ok(()),
            (Some(why), FieldValidation::Strict) => Err(ApiError::bad_request(format!(
                "error strict decoding patch: {why}"
            ))),
            (Some(_), FieldValidation::Warn) => {
                warnings.extend(decoded.duplicates.iter().cloned());
                Ok(())
            }
        };
        let force = if options.force { Force::Yes } else { Force::No };
        let manager = options.field_manager.clone();
        let lenient = WriteOptions {
            field_validation: FieldValidation::Ignore,
            ..options.clone()
        };
        let key = call.key(name)?;
        let there = call
            .api
            .store
            .get(&key, ReadAt::Latest)
            .await
            .map_err(store_error)?
            .is_some();
        if part == Part::Scale {
            if !there {
                return Err(ApiError::not_found(call.about(), name));
            }
            let scale = self.apply_scale(name, &config, &lenient, force).await?;
            return Ok((200, scale));
        }
        if !there {
            if part == Part::Status {
                return Err(ApiError::not_found(call.about(), name));
            }
            let mut object =
                managed::apply(call, part, None, &config, &manager, force).map_err(apply_error)?;
            strict(self.warnings)?;
            if !text(&object, "uid").is_empty() {
                let why = format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    text(&object, "uid")
                );
                return Err(ApiError::conflict(call.about(), name, &why));
            }
            if let Some(m) = crate::write::metadata_mut(&mut object) {
                m.remove("resourceVersion");
            }
            fit_namespace(call, &mut object)?;
            fit_name(&object, name)?;
            let created = self
                .create_object(object, &[], &lenient, Ownership::Settled, Source::Body)
                .await?;
            return Ok((201, created));
        }
        strict(&mut Vec::new())?;
        let change = |old: &Value| {
            let mut object =
                managed::apply(call, part, Some(old), &config, &manager, force).map_err(apply_error)?;
            fit_namespace(call, &mut object)?;
            fit_name(&object, name)?;
            Ok(Change {
                object,
                found: Vec::new(),
                ownership: Ownership::Settled,
                received: false,
            })
        };
        let updated = self
            .change(name, &lenient, part, None, &change, Source::Body)
            .await?;
        strict(self.warnings)?;
        Ok((200, updated))
    }

    async fn apply_scale(
        &mut self,
        name: &str,
        config: &Value,
        options: &WriteOptions,
        force: Force,
    ) -> ApiResult<Value> {
        let call = self.call;
        let manager = options.field_manager.clone();
        let change = |old: &Value| {
            let (scale, entries) =
                managed::apply_scale(call, old, config, &manager, force).map_err(apply_error)?;
            fit_name(&scale, name)?;
            let replicas = scale
                .at(["spec", "replicas"])
                .and_then(Value::as_int)
                .unwrap_or(0);
            let mut object = scale::with_replicas(call, old, replicas)?;
            managed::set_entries(&mut object, entries);
            Ok(Change {
                object,
                found: Vec::new(),
                ownership: Ownership::Settled,
                received: false,
            })
        };
        let updated = self
            .change(name, options, Part::Scale, None, &change, Source::Body)
            .await?;
        scale::scale_of(call, &updated)
    }
}

/// What a patch makes of an object, and what strict decoding of the patch found.
fn patched(
    call: &Call<'_>,
    ty: PatchType,
    old: &Value,
    body: &[u8],
    mode: FieldValidation,
) -> ApiResult<(Value, Vec<String>)> {
    let decoded =
        json::decode_strict(body, Limits::SERVER).map_err(|e| ApiError::bad_request(e.to_string()))?;
    let lenient = mode == FieldValidation::Ignore;
    match ty {
        PatchType::Json => {
            if !lenient && !matches!(decoded.value, Value::Array(_) | Value::Null) {
                return Err(ApiError::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
                    kind_of(&decoded.value)
                )));
            }
            let made = || json_patch::patched_text(old, &String::from_utf8_lossy(body));
            let found = json_patch_findings(&decoded.value, &decoded.duplicates, made);
            let patch = JsonPatch::from_value(decoded.value).map_err(json_patch_error)?;
            Ok((patch.apply(old.clone()).map_err(json_patch_error)?, found))
        }
        PatchType::Merge => {
            if !lenient && !matches!(decoded.value, Value::Object(_) | Value::Null) {
                return Err(ApiError::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    kind_of(&decoded.value)
                )));
            }
            let patch = decoded.value;
            let made =
                merge_patch::apply(old.clone(), patch).map_err(|e| ApiError::bad_request(e.to_string()))?;
            Ok((made, decoded.duplicates))
        }
        PatchType::Strategic | PatchType::Apply => {
            let schema = call.kind.strategy.strategic_schema();
            let schema =
                schema.ok_or_else(|| ApiError::internal("this kind has no strategic merge patch"))?;
            let made = strategic::apply(old.clone(), decoded.value, schema).map_err(strategic_error)?;
            Ok((made, decoded.duplicates))
        }
    }
}

/// What strict reading of a JSON patch finds: members that stand twice, members that operations do not have, and,
/// once more, members that stand twice in what the patch makes.
fn json_patch_findings(patch: &Value, duplicates: &[String], made: impl Fn() -> String) -> Vec<String> {
    let mut found: Vec<String> = duplicates.iter().map(|d| format!("json patch {d}")).collect();
    let operations = patch.as_array().unwrap_or_default();
    for (i, operation) in operations.iter().enumerate() {
        for (name, _) in operation.as_object().into_iter().flat_map(Map::iter) {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                found.push(format!("json patch unknown field \"[{i}].{name}\""));
            }
        }
    }
    if !duplicates.is_empty()
        && let Ok(made) = json::decode_strict(made().as_bytes(), Limits::SERVER)
    {
        found.extend(made.duplicates);
    }
    found
}

fn json_patch_error(e: JsonPatchError) -> ApiError {
    match e {
        JsonPatchError::Malformed(why) => ApiError::bad_request(why),
        JsonPatchError::TooLarge(why) => ApiError::too_large(format!("Request entity too large: {why}")),
        JsonPatchError::Failed(why) => ApiError::unprocessable().private(why),
    }
}

fn strategic_error(e: StrategicError) -> ApiError {
    match e {
        StrategicError::BadRequest(why) => ApiError::bad_request(why),
        StrategicError::Unprocessable(why) => ApiError::unprocessable().private(why),
        StrategicError::Internal(why) => ApiError::internal(why),
    }
}

fn apply_error(e: ApplyError) -> ApiError {
    match e {
        ApplyError::BadRequest(why) => ApiError::bad_request(why),
        ApplyError::Internal(why) => ApiError::internal(why),
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.0.iter().map(|c| {
                let entries = [
                    ("reason", Value::from("FieldManagerConflict")),
                    ("message", c.message().into()),
                    ("field", c.path.to_string().into()),
                ];
                Value::Object(entries.into_iter().collect())
            });
            let details = Map::from_iter([("causes", Value::Array(causes.collect()))]);
            ApiError::new(409, "Conflict", conflicts.to_string()).details(details)
        }
    }
}

/// A patch as Go prints a map.
fn go_map(body: &[u8]) -> String {
    json::decode(body, Limits::SERVER)
        .map(|v| scantling_admit::go_text(&v))
        .unwrap_or_default()
}
