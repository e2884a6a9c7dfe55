//! Patches of all types: decoding, application, and the findings of strict decoding.
//!
//! Unknown fields are found after a patch has been applied, in the resulting object (an apply finds them by
//! the schema). Duplicate fields can only be found here, in the text.

use crate::json_patch::{self, JsonPatch, JsonPatchError};
use crate::merge_patch;
use crate::strategic::{self, StrategicError};
use scantling_schema::structural::Structural;
use scantling_value::json::RawJson;
use scantling_value::{Finding, FindingList, Limits, Map, Path, Value, go, json, yaml};
use std::borrow::Cow;
use std::fmt;

/// The type of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    Strategic,
    /// `application/apply-patch+yaml`
    Apply,
}

impl PatchType {
    /// All types.
    pub const ALL: [PatchType; 4] = [
        PatchType::Json,
        PatchType::Merge,
        PatchType::Strategic,
        PatchType::Apply,
    ];

    /// The media type of requests with this type of patch.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }

    /// Finds the type of a media type.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        PatchType::ALL.into_iter().find(|t| t.media_type() == media_type)
    }
}

/// The treatment of duplicate fields in a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchDecoding {
    /// `fieldValidation` is `Ignore`: duplicate fields are not reported.
    Lenient,
    /// It is `Warn` or `Strict`.
    Strict,
}

/// The error of decoding or applying a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// The text is not JSON or YAML (HTTP 400, before any other check).
    Syntax(String),
    /// The document is not a patch of its type (HTTP 400).
    BadRequest(String),
    /// The patch has too many operations (HTTP 413).
    TooLarge(String),
    /// It does not apply (HTTP 422).
    Unprocessable(String),
    /// It does not fit the object (HTTP 500).
    Internal(String),
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatchError::Syntax(text)
            | PatchError::BadRequest(text)
            | PatchError::TooLarge(text)
            | PatchError::Unprocessable(text)
            | PatchError::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for PatchError {}

impl From<JsonPatchError> for PatchError {
    fn from(e: JsonPatchError) -> Self {
        match e {
            JsonPatchError::Malformed(text) => PatchError::BadRequest(text),
            JsonPatchError::TooLarge(text) => PatchError::TooLarge(text),
            JsonPatchError::Failed(text) => PatchError::Unprocessable(text),
        }
    }
}

impl From<StrategicError> for PatchError {
    fn from(e: StrategicError) -> Self {
        match e {
            StrategicError::BadRequest(text) => PatchError::BadRequest(text.to_owned()),
            StrategicError::Unprocessable(text) => PatchError::Unprocessable(text.to_owned()),
            StrategicError::Internal(text) => PatchError::Internal(text),
        }
    }
}

/// A decoded patch.
#[derive(Clone, Debug)]
pub struct Patch<'t> {
    content: PatchContent,
    text: Cow<'t, str>,
    findings: Vec<Finding>,
}

#[derive(Clone, Debug)]
enum PatchContent {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl<'t> Patch<'t> {
    /// Decodes a patch.
    pub fn decode(
        ty: PatchType,
        text: &'t [u8],
        reading: PatchDecoding,
        limits: Limits,
    ) -> Result<Self, PatchError> {
        if ty == PatchType::Apply {
            return decode_apply(text, reading, limits);
        }
        // A number that Go cannot represent is valid JSON, so decoding into the type of the patch reports it.
        let number = |why: &str| why.starts_with("json: cannot unmarshal number");
        let decoded = json::decode_strict(text, limits).map_err(|e| match (ty, reading) {
            _ if !number(e.message()) => PatchError::Syntax("invalid JSON patch".into()),
            (PatchType::Json, PatchDecoding::Strict) => check_operations(text, limits)
                .err()
                .unwrap_or_else(|| decoding(&e)),
            (PatchType::Merge, PatchDecoding::Strict) => decoding(&e),
            _ => PatchError::BadRequest(e.to_string()),
        })?;
        let mut findings = match reading {
            PatchDecoding::Strict => decoded.duplicates,
            PatchDecoding::Lenient => Vec::new(),
        };
        let content = match ty {
            PatchType::Json => {
                // Strict decoding checks all operations before any of them is executed.
                if reading == PatchDecoding::Strict {
                    check_operations(text, limits)?;
                    findings = json_patch_findings(&decoded.value, text, &findings);
                }
                PatchContent::Json(JsonPatch::from_value(decoded.value, text)?)
            }
            PatchType::Merge => PatchContent::Merge(match (decoded.value, reading) {
                // Strict decoding of a merge patch needs a map, so only lenient decoding accepts a list.
                (patch @ Value::Object(_), _) | (patch @ Value::Array(_), PatchDecoding::Lenient) => patch,
                (Value::Null, _) | (_, PatchDecoding::Lenient) => {
                    return Err(PatchError::BadRequest(merge_patch::NotAnObject.to_string()));
                }
                (other, PatchDecoding::Strict) => return Err(decoding(&not_a_map(&other))),
            }),
            PatchType::Strategic | PatchType::Apply => PatchContent::Strategic(match decoded.value {
                // Go decodes null as an empty map, so such a patch changes nothing.
                Value::Null => Value::Object(Map::new()),
                patch @ Value::Object(_) => patch,
                other => return Err(PatchError::BadRequest(not_a_map(&other))),
            }),
        };
        Ok(Patch {
            content,
            text: String::from_utf8_lossy(text),
            findings,
        })
    }

    /// The type.
    pub fn ty(&self) -> PatchType {
        match &self.content {
            PatchContent::Json(_) => PatchType::Json,
            PatchContent::Merge(_) => PatchType::Merge,
            PatchContent::Strategic(_) => PatchType::Strategic,
            PatchContent::Apply(_) => PatchType::Apply,
        }
    }

    /// Returns the configuration of an apply; `None` for other patches.
    pub fn config(&self) -> Option<&Value> {
        match &self.content {
            PatchContent::Apply(config) => Some(config),
            PatchContent::Json(_) | PatchContent::Merge(_) | PatchContent::Strategic(_) => None,
        }
    }

    /// Returns whether the patch sets the value at a path of fields. Always false for a JSON patch.
    pub fn sets<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> bool {
        match &self.content {
            PatchContent::Json(_) => false,
            PatchContent::Merge(patch) | PatchContent::Strategic(patch) | PatchContent::Apply(patch) => {
                patch.at(path).is_some()
            }
        }
    }

    /// Applies the patch to a document. Strategic merge patches require `schema`. Fails for an apply: that needs
    /// field ownership ([`crate::apply`]).
    pub fn apply(&self, document: &Value, schema: Option<&Structural>) -> Result<Value, PatchError> {
        match (&self.content, schema) {
            (PatchContent::Json(patch), _) => Ok(patch.apply(document.clone())?),
            (PatchContent::Merge(patch), _) => merge_patch::apply(document.clone(), patch.clone())
                .map_err(|e| PatchError::BadRequest(e.to_string())),
            (PatchContent::Strategic(patch), Some(schema)) => {
                let mut patch = patch.clone();
                make_whole(&mut patch);
                Ok(strategic::apply(document.clone(), patch, schema)?)
            }
            (PatchContent::Strategic(_) | PatchContent::Apply(_), _) => {
                let ty = self.ty().media_type();
                let text = format!("a patch of type {ty} needs more than the document");
                Err(PatchError::Internal(text))
            }
        }
    }

    /// Returns the findings of strict decoding in the text of the patch.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the findings of strict decoding in the patched text, where it contains parts of the patch
    /// verbatim.
    pub fn result_findings(&self, document: impl FnOnce() -> String) -> Vec<Finding> {
        if self.findings.is_empty() || !matches!(self.content, PatchContent::Json(_) | PatchContent::Merge(_))
        {
            return Vec::new();
        }
        let made = json::decode_strict(self.describe_result(&document()).as_bytes(), Limits::SERVER);
        made.map(|made| made.duplicates).unwrap_or_default()
    }

    /// Returns a strategic merge patch as an error message shows it.
    pub fn describe_consumed(&self, document: &Value) -> Option<String> {
        match &self.content {
            PatchContent::Strategic(patch) => Some(go::value_v(&strategic::patch_after_apply(
                document,
                patch.clone(),
            ))),
            PatchContent::Json(_) | PatchContent::Merge(_) | PatchContent::Apply(_) => None,
        }
    }

    /// Returns the text that an error message shows: the patched document, or the patch itself.
    pub fn describe_result(&self, document: &str) -> String {
        match &self.content {
            PatchContent::Json(_) => json_patch::patched_text(document, &self.text),
            PatchContent::Merge(_) => merge_patch::patched_text(document, &self.text),
            PatchContent::Strategic(patch) | PatchContent::Apply(patch) => go::value_v(patch),
        }
    }

    /// Returns the error of a strict apply whose patch has findings.
    pub fn strict_refusal(&self) -> Option<String> {
        let found: FindingList = self.findings.iter().cloned().collect();
        let refused = self.ty() == PatchType::Apply && !found.is_empty();
        let error = || {
            format!(
                "error strict decoding patch: error converting YAML to JSON: {}",
                found.strict_error()
            )
        };
        refused.then(error)
    }
}

/// Converts whole floats to integers: kube-apiserver converts the result of a strategic patch instead of
/// decoding it, and the conversion ignores the notation.
fn make_whole(value: &mut Value) {
    match value {
        Value::Float(f) => {
            #[expect(
                clippy::cast_precision_loss,
                reason = "what is compared with has no fraction, either"
            )]
            let fits = f.fract() == 0.0 && f.abs() < i64::MAX as f64;
            #[expect(clippy::cast_possible_truncation, reason = "it fits")]
            if fits {
                *value = Value::Int(*f as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(members) => members.iter_mut().for_each(|(_, v)| make_whole(v)),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::String(_) => {}
    }
}

fn decoding(why: &dyn fmt::Display) -> PatchError {
    PatchError::BadRequest(format!("error decoding patch: {why}"))
}

fn not_a_map(value: &Value) -> String {
    let kind = go::json_kind(value);
    format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
}

/// The members of an operation of a JSON patch.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

/// Checks the members of operations in document order, including repeated ones, as strict decoding does.
fn check_operations(text: &[u8], limits: Limits) -> Result<(), PatchError> {
    let misfit = |found: &str, place: &str| {
        Err(decoding(&format!(
            "json: cannot unmarshal {found} into Go {place}"
        )))
    };
    let kind = |written: RawJson| go::json_kind(&written.into());
    let operations = match json::decode_raw(text, limits).map_err(|e| decoding(&e))? {
        RawJson::Array(operations) => operations,
        RawJson::Null => return Ok(()),
        other => return misfit(kind(other), "value of type []handlers.jsonPatchOp"),
    };
    for operation in operations {
        let members = match operation {
            RawJson::Object(members) => members,
            RawJson::Null => continue,
            other => return misfit(kind(other), "value of type handlers.jsonPatchOp"),
        };
        for (name, value) in members {
            let place = |ty: &str| format!("struct field jsonPatchOp.{name} of type {ty}");
            match (name.as_str(), value) {
                ("op" | "path" | "from", RawJson::Null | RawJson::Text(_)) => {}
                ("op" | "path" | "from", other) => return misfit(kind(other), &place("string")),
                ("value", value) => {
                    if let Some(number) = value.out_of_range() {
                        return misfit(&format!("number {number}"), &place("float64"));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Strict decoding knows the members of operations. Others are reported, and nothing inside of them is.
fn json_patch_findings(patch: &Value, text: &[u8], duplicates: &[Finding]) -> Vec<Finding> {
    let operations = patch.as_array().unwrap_or_default().iter().enumerate();
    let unknown = operations.flat_map(|(i, operation)| {
        let names = operation.as_object().into_iter().flat_map(Map::keys);
        let others = names.filter(|name| !OPERATION.contains(&name.as_str()));
        others.map(move |name| Finding::UnknownField((&Path::ROOT.index(i).field(name)).into()))
    });
    let mut findings = FindingList::join(duplicates, unknown);
    json::sort_findings(text, &mut findings);
    let in_patch = |finding| Finding::JsonPatch(Box::new(finding));
    findings.into_iter().map(in_patch).collect()
}

fn decode_apply(text: &[u8], reading: PatchDecoding, limits: Limits) -> Result<Patch<'_>, PatchError> {
    // A body that begins like JSON is decoded as JSON.
    let json = text.trim_ascii_start().starts_with(b"{");
    let decoded = yaml::decode_strict(text, limits).map_err(|e| match json {
        true => decoding(&format!("error converting YAML to JSON: {e}")),
        false => PatchError::Syntax(format!("error encoding patch: {e}")),
    })?;
    let config = match decoded.value {
        config @ Value::Object(_) => config,
        Value::Null => Value::Object(Map::new()),
        other => {
            let why = not_a_map(&other);
            return Err(decoding(&format!(
                "error unmarshaling JSON: while decoding JSON: {why}"
            )));
        }
    };
    let findings = match reading {
        PatchDecoding::Strict => decoded.duplicates,
        PatchDecoding::Lenient => Vec::new(),
    };
    Ok(Patch {
        content: PatchContent::Apply(config),
        text: String::from_utf8_lossy(text),
        findings,
    })
}
