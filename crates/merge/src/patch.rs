//! Patches of all types: reading their texts, applying them, and what strict reading finds in them.
//!
//! What is unknown is found only after a patch has been applied, in the object that results (an apply finds it by the
//! schema, always). What stands twice can be found only here, in the text.

use crate::json_patch::{self, JsonPatch, JsonPatchError};
use crate::merge_patch;
use crate::strategic::{self, StrategicError};
use scantling_schema::structural::Structural;
use scantling_value::json::RawJson;
use scantling_value::{Limits, Map, TextList, Value, go, json, yaml};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// The types of patches.
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

    /// The media type of a request with such a patch.
    pub fn media_type(self) -> &'static str {
        match self {
            PatchType::Json => "application/json-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }

    /// The type for a media type.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        PatchType::ALL.into_iter().find(|t| t.media_type() == media_type)
    }
}

/// Whether duplicate fields are reported.
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
    /// It has too many operations (HTTP 413).
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

/// A patch that has been read.
#[derive(Clone, Debug)]
pub struct Patch<'t> {
    content: PatchContent,
    text: Cow<'t, str>,
    findings: Vec<String>,
}

#[derive(Clone, Debug)]
enum PatchContent {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl<'t> Patch<'t> {
    /// Reads the text of a patch.
    pub fn decode(
        ty: PatchType,
        text: &'t [u8],
        reading: PatchDecoding,
        limits: Limits,
    ) -> Result<Self, PatchError> {
        if ty == PatchType::Apply {
            return decode_apply(text, reading, limits);
        }
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
                if reading == PatchDecoding::Strict {
                    check_operations(text, limits)?;
                    findings = json_patch_findings(&decoded.value, text, findings);
                }
                PatchContent::Json(JsonPatch::from_value(decoded.value, text)?)
            }
            PatchType::Merge => PatchContent::Merge(match (decoded.value, reading) {
                (patch @ Value::Object(_), _) | (patch @ Value::Array(_), PatchDecoding::Lenient) => patch,
                (Value::Null, _) | (_, PatchDecoding::Lenient) => {
                    return Err(PatchError::BadRequest(merge_patch::NotAnObject.to_string()));
                }
                (other, PatchDecoding::Strict) => return Err(decoding(&not_a_map(&other))),
            }),
            PatchType::Strategic | PatchType::Apply => PatchContent::Strategic(match decoded.value {
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

    /// Whether the patch says what is to stand at a path of fields. A JSON patch is not looked into.
    pub fn sets<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> bool {
        match &self.content {
            PatchContent::Json(_) => false,
            PatchContent::Merge(patch) | PatchContent::Strategic(patch) | PatchContent::Apply(patch) => {
                patch.at(path).is_some()
            }
        }
    }

    /// What the patch makes of a document. The schema is that of kinds that understand strategic merge patches. An
    /// apply is none that could be done here: it needs to know who owns what ([`crate::apply`]).
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

    /// What strict reading finds: in the text and, once more, in what the patch makes of the text of a document, as far
    /// as that is taken over as it is.
    pub fn findings(&self, document: impl FnOnce() -> String) -> Vec<String> {
        let mut found = self.findings.clone();
        if !found.is_empty()
            && matches!(self.content, PatchContent::Json(_) | PatchContent::Merge(_))
            && let Ok(made) =
                json::decode_strict(self.describe_result(&document()).as_bytes(), Limits::SERVER)
        {
            found.extend(made.duplicates);
        }
        found
    }

    /// Returns a strategic merge patch as an error message shows it.
    pub fn describe_consumed(&self, document: &Value) -> Option<String> {
        match &self.content {
            PatchContent::Strategic(patch) => Some(go::value_v(&strategic::spent(document, patch.clone()))),
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
        let found = self.findings.join(", ");
        let refused = self.ty() == PatchType::Apply && !found.is_empty();
        refused.then(|| format!("error strict decoding patch: {found}"))
    }

    /// Returns the findings as warnings.
    pub fn warnings(&self) -> Vec<String> {
        warnings(&self.findings)
    }
}

/// Findings of strict reading as warnings: those of YAML line by line.
pub fn warnings(findings: &[String]) -> Vec<String> {
    let lines = |finding: &String| {
        let text = finding
            .strip_prefix("error converting YAML to JSON: ")
            .unwrap_or(finding);
        match text.strip_prefix("yaml: unmarshal errors:\n") {
            Some(lines) => lines.split('\n').map(|line| line.trim().to_owned()).collect(),
            None => vec![finding.clone()],
        }
    };
    findings.iter().flat_map(lines).collect()
}

/// Makes integers of numbers without a fraction, however they are written: what a strategic patch makes is converted,
/// not decoded, and a conversion looks at the value.
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

/// Checks the members of operations as strict reading does: one after the other, as often as they stand.
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

/// Strict reading knows the members of operations: others are reported, and what is in them is not looked at.
fn json_patch_findings(patch: &Value, text: &[u8], duplicates: Vec<String>) -> Vec<String> {
    let mut unknown = Vec::new();
    for (i, operation) in patch.as_array().unwrap_or_default().iter().enumerate() {
        let names = operation.as_object().into_iter().flat_map(Map::keys);
        let others = names.filter(|name| !OPERATION.contains(&name.as_str()));
        unknown.extend(others.map(|name| format!("[{i}].{name}")));
    }
    let starts: BTreeSet<String> = unknown
        .iter()
        .map(|place| go::quote(place).trim_end_matches('"').to_owned())
        .collect();
    let of_unknown = |finding: &String| {
        let place = finding.strip_prefix("duplicate field ").unwrap_or_default();
        let ends = place.match_indices(['"', '.', '[']).map(|(end, _)| end);
        ends.filter_map(|end| place.get(..end))
            .any(|start| starts.contains(start))
    };
    let mut findings: TextList = duplicates
        .into_iter()
        .filter(|finding| !of_unknown(finding))
        .collect();
    for place in &unknown {
        findings.push_with(|| format!("unknown field {}", go::quote(place)));
    }
    let mut findings = findings.into_texts();
    if !unknown.is_empty() {
        json::sort_findings(text, &mut findings);
    }
    findings.into_iter().map(|f| format!("json patch {f}")).collect()
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
        PatchDecoding::Strict if !decoded.duplicates.is_empty() => {
            let found = yaml::strict_error(&decoded.duplicates);
            vec![format!("error converting YAML to JSON: {found}")]
        }
        _ => Vec::new(),
    };
    Ok(Patch {
        content: PatchContent::Apply(config),
        text: String::from_utf8_lossy(text),
        findings,
    })
}
