//! The stages of [`scantling_admit`] in a request, and their errors as responses.

use super::refusals::{
    cannot_be_handled, cannot_be_read_strictly, immutable, not_converted, patch_refusal, unnamed,
};
use super::{Ownership, Part, WriteRequest, metadata_str, timestamp};
use crate::api::MAX_BODY;
use crate::codec::media::Encoding;
use crate::rest::body;
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_admit::{
    AdmissionError, AdmitOptions, AnyResource, FieldValidation, NormalizeMode, Normalized, Prepared,
    RequestContext, WriteOperation, report_findings,
};
use scantling_schema::names::group_version;
use scantling_value::{Finding, FindingList, Map, Path, Value, json};
use std::borrow::Cow;
use std::time::Instant;

/// The error about a custom resource without an `apiVersion`.
const UNVERSIONED: &str = "Object 'apiVersion' is missing in 'object has no apiVersion field'";

/// The origin of an object. The texts of errors depend on it.
#[derive(Clone, Copy)]
pub(crate) enum ObjectSource<'a> {
    /// The body of the request.
    Body,
    /// A patch.
    Patch(&'a dyn Patched),
    /// An apply of this configuration.
    Apply(&'a Value),
}

/// A patch as errors about its result show it.
pub(crate) trait Patched: Sync {
    /// The result of the patch, or the patch.
    fn quoted(&self, old: &Value) -> String;

    /// Whether the result is converted, not decoded. Then its `apiVersion` and `kind` are ignored.
    fn is_converted(&self) -> bool;

    /// The findings of strict decoding in the text of the patch.
    fn findings(&self) -> &[Finding];
}

impl WriteRequest<'_> {
    /// Normalizes an object of a request, or the result of a patch or an apply to the object `old`.
    pub(crate) fn normalize(
        &mut self,
        object: &mut Value,
        found: &[Finding],
        mode: FieldValidation,
        ownership: Ownership,
        source: ObjectSource<'_>,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        let (kind, version) = (self.call.kind, self.call.version);
        let mut found = Cow::Borrowed(found);
        if let (ObjectSource::Patch(patched), Some(old)) = (source, old) {
            // A strategic merge patch works on Go's typed object: its result is converted, never decoded from text.
            if patched.is_converted() {
                let converted = kind.codec.convert(version, object);
                let unknown = converted.map_err(|why| patch_refusal(patched.quoted(old), &why))?;
                found = FindingList::join(&found, unknown).into_vec().into();
            }
            self.check_type(object, patched, old, mode)?;
        }
        // kube-apiserver converts the unstructured result of an apply to the Go type, which has errors of its own.
        if let ObjectSource::Apply(config) = source {
            let converted = kind.codec.convert(version, object);
            converted.map_err(|why| not_converted(self.call, config, &why))?;
        }
        let resource = match ownership {
            Ownership::Update => kind.rules.normalization(version, object),
            Ownership::Merged => kind
                .rules
                .resource(version)
                .map(|resource| (resource, NormalizeMode::Applied)),
        };
        let (resource, normalize_mode) =
            resource.map_err(|why| self.refused(AdmissionError::Internal(why), object, source, old))?;
        let now = timestamp();
        let options = AdmitOptions {
            gates: self.call.api.compiler.gates,
            field_validation: mode,
            // Some defaults are times.
            request: RequestContext {
                now: &now,
                ..RequestContext::default()
            },
            ..AdmitOptions::default()
        };
        let normalized = Normalized::new(resource, std::mem::take(object), &found, normalize_mode, &options);
        let received = match normalized {
            Ok(normalized) => {
                let (normal, findings) = normalized.into_parts();
                *object = normal;
                Ok(match ownership {
                    Ownership::Update => findings,
                    // The apply has reported findings already, as far as they are errors.
                    Ownership::Merged => found.into_owned().into_iter().collect(),
                })
            }
            Err(rejected) => {
                *object = rejected.object;
                Err(rejected.error)
            }
        };
        let received = match source {
            ObjectSource::Patch(patched) => with_findings_of(patched, received, mode),
            ObjectSource::Body | ObjectSource::Apply(_) => received,
        };
        match received {
            // The result of a patch is decoded before its missing version is noticed.
            Ok(_) if matches!(source, ObjectSource::Patch(_)) && self.is_unversioned(object) => {
                Err(ApiError::internal_error(UNVERSIONED))
            }
            Ok(mut found) => {
                self.in_order(&mut found, source);
                self.warnings.extend(found.iter().map(ToString::to_string));
                Ok(())
            }
            Err(AdmissionError::Strict(mut found)) => {
                self.in_order(&mut found, source);
                Err(self.refused(AdmissionError::Strict(found), object, source, old))
            }
            Err(refusal) => Err(self.refused(refusal, object, source, old)),
        }
    }

    /// Checks the `apiVersion` and `kind` of the result of a patch. Built-in kinds fill them in where they are absent.
    fn check_type(
        &mut self,
        object: &mut Value,
        patched: &dyn Patched,
        old: &Value,
        mode: FieldValidation,
    ) -> ApiResult<()> {
        let call = self.call;
        let undecodable = |why: String| Err(patch_refusal(patched.quoted(old), &why));
        let read = match patched.is_converted() {
            true => body::type_meta(object),
            false => body::well_formed_type_meta(object),
        };
        let (api_version, kind) = match read {
            Ok((api_version, kind)) => (api_version.to_owned(), kind.to_owned()),
            Err(why) => return undecodable(why),
        };
        if call.kind.built_in {
            let expected = call.api_version();
            if api_version.is_empty() && !patched.is_converted() {
                // kube-apiserver decodes it as an object of no version, which has no fields, not even a name.
                let fields = object.as_object().into_iter().flat_map(Map::keys);
                let unknown = fields.filter(|f| !matches!(f.as_str(), "apiVersion" | "kind"));
                let unknown = unknown.map(|f| Finding::UnknownField((&Path::ROOT.field(f)).into()));
                let unknown = unknown.collect();
                self.report_unknown(unknown, object, patched, old, mode)?;
                return Err(unnamed(call.path.name.as_deref().unwrap_or_default()));
            }
            let is_version =
                api_version.is_empty() || group_version(&api_version) == group_version(&expected);
            let fits = is_version && (kind.is_empty() || kind == call.kind.kind);
            if !fits && !patched.is_converted() {
                let kind = if kind.is_empty() { &call.kind.kind } else { &kind };
                let api_version = if api_version.is_empty() {
                    &expected
                } else {
                    &api_version
                };
                if !call.kind.is_alias(api_version, kind) {
                    return undecodable(call.kind.mismatch(api_version, kind));
                }
                let codec = &call.kind.codec;
                let read = codec.decode_alias(call.version, api_version, std::mem::take(object));
                let sent = match read {
                    Ok(sent) => sent,
                    Err(why) => return undecodable(why),
                };
                *object = sent.object;
                self.report_unknown(sent.found, object, patched, old, mode)?;
            }
            if let Some(members) = object.as_object_mut() {
                members.insert("apiVersion", expected.into());
                members.insert("kind", call.kind.kind.as_str().into());
            }
            return Ok(());
        }
        if kind.is_empty() {
            return undecodable(format!("Object 'Kind' is missing in '{}'", patched.quoted(old)));
        }
        if object.get("apiVersion").is_some_and(Value::is_null) {
            return undecodable(body::NO_VERSION.to_owned());
        }
        Ok(())
    }

    /// Reports unknown fields in the result of a patch.
    fn report_unknown(
        &mut self,
        unknown: Vec<Finding>,
        object: &Value,
        patched: &dyn Patched,
        old: &Value,
        mode: FieldValidation,
    ) -> ApiResult<()> {
        let reported = report_findings(unknown.into_iter().collect(), mode);
        let found = reported
            .map_err(|refusal| self.refused(refusal, object, ObjectSource::Patch(patched), Some(old)))?;
        self.warnings.extend(found.iter().map(ToString::to_string));
        Ok(())
    }

    /// Whether an object is a custom resource without a version. That of a built-in kind is filled in.
    fn is_unversioned(&self, object: &Value) -> bool {
        !self.call.kind.built_in && object.get_str("apiVersion").is_empty()
    }

    /// Sorts findings by their order in the body, as decoding into Go types reports them.
    fn in_order(&self, found: &mut FindingList, source: ObjectSource<'_>) {
        if self.call.kind.built_in
            && matches!(source, ObjectSource::Body | ObjectSource::Apply(_))
            // Only JSON bodies have positions to sort by.
            && self.body.trim_ascii_start().starts_with(b"{")
        {
            json::sort_findings(&self.body, found);
        }
    }

    /// Prepares and validates a normalized object, and returns the object to store.
    pub(super) fn prepare_and_validate(
        &mut self,
        operation: WriteOperation<'_>,
        object: Value,
        part: Part,
        now: &str,
        source: ObjectSource<'_>,
    ) -> ApiResult<Value> {
        let call = self.call;
        let old = match operation {
            WriteOperation::Create(_) => None,
            WriteOperation::Update(old) | WriteOperation::UpdateStatus(old) => Some(old),
        };
        // The pipeline reads no clock: it measures ratcheting with this one.
        let started = Instant::now();
        let clock = || started.elapsed();
        let options = AdmitOptions {
            gates: call.api.compiler.gates,
            clock: Some(&clock),
            request: RequestContext {
                now,
                user: self.requester(),
                subresource: part.subresource(),
                ..RequestContext::default()
            },
            ..AdmitOptions::default()
        };
        let resource = match call.kind.rules.resource(call.version) {
            Ok(resource) => resource,
            Err(why) => return Err(self.refused(AdmissionError::Internal(why), &object, source, old)),
        };
        let admitted = Normalized::resume(resource, object)
            .prepare(operation, &options)
            .and_then(Prepared::validate);
        match admitted {
            Ok(admitted) => {
                self.warnings
                    .extend(admitted.warnings.iter().map(ToString::to_string));
                call.api.metrics.admitted(&admitted.stats);
                Ok(admitted.object)
            }
            Err(rejected) => {
                self.warnings
                    .extend(rejected.warnings.iter().map(ToString::to_string));
                call.api.metrics.admitted(&rejected.stats);
                Err(self.refused(rejected.error, &rejected.object, source, old))
            }
        }
    }

    /// Returns whether a new object is normalized after it was admitted, so that reading it back changes
    /// nothing.
    pub(super) fn creates_normalized(&self) -> bool {
        match self.call.kind.rules.resource(self.call.version) {
            Ok(AnyResource::Custom(resource)) => resource.creates_normalized(),
            // Built-in kinds do not need the answer: see `read_written`.
            _ => false,
        }
    }

    /// The first error in the text of a JSON body, for kinds with Go types.
    fn first_fault(&self) -> Option<String> {
        let form = self.head.body_encoding().ok()?;
        let text = Some(&self.body).filter(|_| form == Encoding::Json)?;
        let read = self.call.kind.codec.decode_text(self.call.version, text)?;
        read.err()
    }

    /// The response to a rejected write.
    fn refused(
        &self,
        refusal: AdmissionError,
        object: &Value,
        source: ObjectSource<'_>,
        old: Option<&Value>,
    ) -> ApiError {
        let call = self.call;
        let kind = object_kind(object, &call.kind.kind);
        let about = GroupResource {
            group: match call.kind.built_in {
                true => &call.kind.object_group,
                false => object_group(object, &call.kind.group),
            },
            kind,
        };
        let name = metadata_str(object, "name");
        let shown = |patched: &dyn Patched| old.map(|old| patched.quoted(old)).unwrap_or_default();
        match (refusal, source) {
            (AdmissionError::Undecodable(why), ObjectSource::Apply(config)) if call.kind.built_in => {
                not_converted(call, config, &why)
            }
            (AdmissionError::Undecodable(why), ObjectSource::Body | ObjectSource::Apply(_)) => {
                cannot_be_handled(call, object, &self.first_fault().unwrap_or(why))
            }
            (AdmissionError::Strict(_), ObjectSource::Body) if self.is_unversioned(object) => {
                ApiError::bad_request(UNVERSIONED)
            }
            (AdmissionError::Strict(found), ObjectSource::Body | ObjectSource::Apply(_)) => {
                let why = format!("strict decoding error: {}", found.strict_error());
                cannot_be_read_strictly(call, object, &why)
            }
            (AdmissionError::Undecodable(why), ObjectSource::Patch(patched)) => {
                let shown = shown(patched);
                let first = call.kind.codec.decode_text(call.version, shown.as_bytes());
                // Go reports the first error of the text; the types report the first in their own order.
                let first = first.and_then(Result::err).filter(|_| !patched.is_converted());
                patch_refusal(shown, &first.unwrap_or(why))
            }
            (AdmissionError::Strict(found), ObjectSource::Patch(patched)) => {
                let why = format!("strict decoding error: {}", found.strict_error());
                patch_refusal(shown(patched), &why)
            }
            (AdmissionError::Immutable(errors), _) => immutable(about, name, &errors),
            (AdmissionError::Invalid(errors), _) => ApiError::invalid(about, name, &errors),
            (AdmissionError::TooLarge(why), _) => {
                ApiError::too_large(format!("Request entity too large: limit is {MAX_BODY}: {why}"))
            }
            (AdmissionError::Internal(why), _) => ApiError::internal_error(why),
        }
    }
}

/// Adds the findings in the text of a patch to those of decoding its result. A patch is decoded without a type: it has
/// duplicates of unknown fields, too.
fn with_findings_of(
    patched: &dyn Patched,
    received: Result<FindingList, AdmissionError>,
    mode: FieldValidation,
) -> Result<FindingList, AdmissionError> {
    let all = |decoded: FindingList| {
        let mut all: FindingList = patched.findings().iter().cloned().collect();
        all.append(decoded);
        all
    };
    match received {
        Ok(decoded) => report_findings(all(decoded), mode),
        Err(AdmissionError::Strict(decoded)) => Err(AdmissionError::Strict(all(decoded))),
        refused => refused,
    }
}

fn object_group<'a>(object: &'a Value, otherwise: &'a str) -> &'a str {
    let api_version = object.get("apiVersion").and_then(Value::as_str);
    api_version.map_or(otherwise, |v| group_version(v).0)
}

/// The kind that an object names.
pub(super) fn object_kind<'a>(object: &'a Value, otherwise: &'a str) -> &'a str {
    object.get("kind").and_then(Value::as_str).unwrap_or(otherwise)
}
