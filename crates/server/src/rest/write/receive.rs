//! Bringing objects into form, and what is said of those that are refused on the way.

use super::refusals::{
    cannot_be_handled, cannot_be_read_strictly, immutable, not_converted, patch_refusal, unnamed,
};
use super::{Ownership, Write, metadata_str};
use crate::api::MAX_BODY;
use crate::codec::media::Encoding;
use crate::kinds::builtin::{joined, report_joined_findings};
use crate::rest::body;
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_admit::{AdmissionError, AdmitOutcome, FieldValidation};
use scantling_schema::names::group_version;
use scantling_value::{Map, Value, json};
use std::borrow::Cow;

/// What is said of a custom resource that says no version.
const UNVERSIONED: &str = "Object 'apiVersion' is missing in 'object has no apiVersion field'";

/// Where a refusal of admission arises; its words differ.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The object itself was sent.
    Body,
    /// A patch made it.
    Patch(&'a dyn Patched),
    /// An apply of this made it.
    Apply(&'a Value),
}

/// What refusals say of an object that a patch made.
pub(crate) trait Patched: Sync {
    /// What the patch made of an object, or the patch.
    fn quoted(&self, old: &Value) -> String;

    /// Whether what the patch made is converted, not decoded: then it is of the kind that it was made from, whatever it
    /// says that it is.
    fn is_converted(&self) -> bool;
}

impl Write<'_> {
    /// Brings an object into the form of its kind.
    pub(crate) fn receive(
        &mut self,
        object: &mut Value,
        found: &[String],
        mode: FieldValidation,
        ownership: Ownership,
        source: Source<'_>,
        old: Option<&Value>,
    ) -> ApiResult<()> {
        let (strategy, version) = (&self.call.kind.strategy, self.call.version);
        let mut found = Cow::Borrowed(found);
        if let (Source::Patch(patched), Some(old)) = (source, old) {
            if patched.is_converted() {
                let converted = strategy.convert(version, object);
                let unknown = converted.map_err(|why| patch_refusal(patched.quoted(old), &why))?;
                found = joined(&found, unknown).into();
            }
            self.check_type(object, patched, old, mode)?;
        }
        if let Source::Apply(config) = source {
            let converted = strategy.convert(version, object);
            converted.map_err(|why| not_converted(self.call, config, &why))?;
        }
        let received = match ownership {
            Ownership::Update => strategy.receive(version, object, &found, mode),
            // The apply has decided about what was found.
            Ownership::Merged => strategy
                .receive_applied(version, object)
                .map(|()| found.into_owned()),
        };
        match received {
            // What a patch made is read before it is missed that it says no version.
            Ok(_) if matches!(source, Source::Patch(_)) && self.is_unversioned(object) => {
                Err(ApiError::internal_error(UNVERSIONED))
            }
            Ok(mut warnings) => {
                self.in_order(&mut warnings, source);
                self.warnings.extend(warnings);
                Ok(())
            }
            Err(AdmissionError::Strict(mut found)) => {
                self.in_order(&mut found, source);
                Err(self.refused(AdmissionError::Strict(found), object, source, old))
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
                // What says no version is of no version, and has no fields in it, not even a name.
                let fields = object.as_object().into_iter().flat_map(Map::keys);
                let unknown = fields.filter(|f| !matches!(f.as_str(), "apiVersion" | "kind"));
                let unknown = unknown.map(|f| format!("unknown field \"{f}\"")).collect();
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
                if !call.kind.is_also(api_version, kind) {
                    return undecodable(call.kind.mismatch(api_version, kind));
                }
                let read = call
                    .kind
                    .strategy
                    .of_other(call.version, api_version, std::mem::take(object));
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

    /// Refuses what a patch made for its unknown fields, or warns of them.
    fn report_unknown(
        &mut self,
        unknown: Vec<String>,
        object: &Value,
        patched: &dyn Patched,
        old: &Value,
        mode: FieldValidation,
    ) -> ApiResult<()> {
        let settled = report_joined_findings(&[], unknown, mode);
        let found =
            settled.map_err(|refusal| self.refused(refusal, object, Source::Patch(patched), Some(old)))?;
        self.warnings.extend(found);
        Ok(())
    }

    /// Whether an object is a custom resource that says no version: built-in kinds know theirs by themselves.
    fn is_unversioned(&self, object: &Value) -> bool {
        !self.call.kind.built_in && object.get_str("apiVersion").is_empty()
    }

    /// Built-in kinds are read field by field, so that what is found in a JSON text is told in its order.
    fn in_order(&self, found: &mut [String], source: Source<'_>) {
        if self.call.kind.built_in
            && matches!(source, Source::Body | Source::Apply(_))
            && self.body.trim_ascii_start().starts_with(b"{")
        {
            json::sort_findings(&self.body, found);
        }
    }

    /// The admitted object, or the refusal in the words that its source has.
    pub(super) fn outcome(
        &mut self,
        outcome: AdmitOutcome,
        source: Source<'_>,
        old: Option<&Value>,
    ) -> ApiResult<Value> {
        let call = self.call;
        self.warnings.extend(outcome.warnings);
        call.api.metrics.admitted(&outcome.stats);
        match outcome.error {
            None => Ok(outcome.object),
            Some(refusal) => Err(self.refused(refusal, &outcome.object, source, old)),
        }
    }

    /// What is wrong first with a body that cannot be decoded, if it is one whose letters tell.
    fn first_fault(&self) -> Option<String> {
        let form = self.head.body_encoding().ok()?;
        let text = Some(&self.body).filter(|_| form == Encoding::Json)?;
        let read = self.call.kind.strategy.read_text(self.call.version, text)?;
        read.err()
    }

    /// A refusal in the words that its source has.
    fn refused(
        &self,
        refusal: AdmissionError,
        object: &Value,
        source: Source<'_>,
        old: Option<&Value>,
    ) -> ApiError {
        let call = self.call;
        let kind = object_kind(object, &call.kind.kind);
        let about = GroupResource {
            group: match call.kind.built_in {
                true => call.kind.own_group(),
                false => object_group(object, &call.kind.group),
            },
            kind,
        };
        let name = metadata_str(object, "name");
        let shown = |patched: &dyn Patched| old.map(|old| patched.quoted(old)).unwrap_or_default();
        match (refusal, source) {
            (AdmissionError::Undecodable(why), Source::Apply(config)) if call.kind.built_in => {
                not_converted(call, config, &why)
            }
            (AdmissionError::Undecodable(why), Source::Body | Source::Apply(_)) => {
                cannot_be_handled(call, object, &self.first_fault().unwrap_or(why))
            }
            // By now a custom resource is what it says it is, if it says so.
            (AdmissionError::Strict(_), Source::Body) if self.is_unversioned(object) => {
                ApiError::bad_request(UNVERSIONED)
            }
            (AdmissionError::Strict(found), Source::Body | Source::Apply(_)) => {
                let why = format!("strict decoding error: {}", found.join(", "));
                cannot_be_read_strictly(call, object, &why)
            }
            (AdmissionError::Undecodable(why), Source::Patch(patched)) => {
                let shown = shown(patched);
                let first = call.kind.strategy.read_text(call.version, shown.as_bytes());
                let first = first.and_then(Result::err).filter(|_| !patched.is_converted());
                patch_refusal(shown, &first.unwrap_or(why))
            }
            (AdmissionError::Strict(found), Source::Patch(patched)) => {
                let why = format!("strict decoding error: {}", found.join(", "));
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

fn object_group<'a>(object: &'a Value, otherwise: &'a str) -> &'a str {
    let api_version = object.get("apiVersion").and_then(Value::as_str);
    api_version.map_or(otherwise, |v| group_version(v).0)
}

/// The kind that an object says it is of.
pub(super) fn object_kind<'a>(object: &'a Value, otherwise: &'a str) -> &'a str {
    object.get("kind").and_then(Value::as_str).unwrap_or(otherwise)
}
