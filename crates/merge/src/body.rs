//! The texts of patches: reading them, and what strict reading finds in them.
//!
//! What is unknown is found only after a patch has been applied, in the object that results (an apply finds it by the
//! schema, always). What stands twice can be found only here, in the text.

use crate::json_patch::kind;
use scantling_value::{DecodeError, FieldError, Limits, Map, Path, Value, go, json, yaml};
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
        [
            PatchType::Json,
            PatchType::Merge,
            PatchType::Strategic,
            PatchType::Apply,
        ]
        .into_iter()
        .find(|t| t.media_type() == media_type)
    }
}

/// How closely a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// `fieldValidation` is `Ignore`: what stands twice goes unnoticed.
    Lenient,
    /// It is `Warn` or `Strict`.
    Strict,
}

/// A patch that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The document.
    pub value: Value,
    /// What strict reading found, in document order.
    pub findings: Vec<String>,
}

/// Why a text is no patch; a server answers with HTTP 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError(String);

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BodyError {}

/// Reads the text of a patch.
pub fn decode(ty: PatchType, text: &[u8], reading: Reading, limits: Limits) -> Result<Body, BodyError> {
    match ty {
        PatchType::Json => json_patch(text, reading, limits),
        PatchType::Merge => {
            let error = |e: String| match reading {
                Reading::Strict => BodyError(format!("error decoding patch: {e}")),
                Reading::Lenient => BodyError("Invalid JSON Patch".into()),
            };
            let body = read_json(text, reading, limits).map_err(|e| error(e.to_string()))?;
            match (&body.value, reading) {
                (Value::Object(_), _) | (Value::Array(_), Reading::Lenient) => Ok(body),
                (Value::Null, _) => Err(BodyError("Invalid JSON Patch".into())),
                (other, _) => Err(error(not_a_map(other))),
            }
        }
        PatchType::Strategic => {
            let body = read_json(text, reading, limits).map_err(|e| BodyError(e.to_string()))?;
            match &body.value {
                Value::Object(_) => Ok(body),
                Value::Null => Ok(Body {
                    value: Value::Object(Map::new()),
                    ..body
                }),
                other => Err(BodyError(not_a_map(other))),
            }
        }
        PatchType::Apply => apply(text, reading, limits),
    }
}

fn read_json(text: &[u8], reading: Reading, limits: Limits) -> Result<Body, DecodeError> {
    let decoded = json::decode_strict(text, limits)?;
    Ok(Body {
        value: decoded.value,
        findings: match reading {
            Reading::Strict => decoded.duplicates,
            Reading::Lenient => Vec::new(),
        },
    })
}

fn not_a_map(value: &Value) -> String {
    let kind = kind(value);
    format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
}

/// The members of an operation of a JSON patch.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

/// Strict reading knows the members of operations: others are reported, and what is in them is not looked at.
fn json_patch(text: &[u8], reading: Reading, limits: Limits) -> Result<Body, BodyError> {
    let error = |e: String| match reading {
        Reading::Strict => BodyError(format!("error decoding patch: {e}")),
        Reading::Lenient => BodyError(e),
    };
    let mut body = read_json(text, reading, limits).map_err(|e| error(e.to_string()))?;
    if reading == Reading::Lenient {
        return Ok(body);
    }
    let operations = match &body.value {
        Value::Array(operations) => operations,
        Value::Null => return Ok(body),
        other => {
            let kind = kind(other);
            let text = format!("json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp");
            return Err(error(text));
        }
    };
    let mut findings = Vec::new();
    for (i, operation) in operations.iter().enumerate() {
        let members = match operation {
            Value::Object(members) => members,
            Value::Null => continue,
            other => {
                let kind = kind(other);
                let text =
                    format!("json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp");
                return Err(error(text));
            }
        };
        for name in ["op", "path", "from"] {
            if let Some(other) = members.get(name)
                && !matches!(other, Value::String(_) | Value::Null)
            {
                let kind = kind(other);
                let text = format!(
                    "json: cannot unmarshal {kind} into Go struct field jsonPatchOp.{name} of type string"
                );
                return Err(error(text));
            }
        }
        let known = |finding: &&String| {
            OPERATION.iter().any(|name| {
                let place = format!("duplicate field \"[{i}].{name}");
                let rest = finding.strip_prefix(&place);
                rest.is_some_and(|rest| rest.starts_with(['"', '.', '[']))
            })
        };
        findings.extend(
            body.findings
                .iter()
                .filter(known)
                .map(|f| format!("json patch {f}")),
        );
        let unknown = members.keys().filter(|name| !OPERATION.contains(&name.as_str()));
        findings.extend(unknown.map(|name| {
            let place = go::quote(&format!("[{i}].{name}"));
            format!("json patch unknown field {place}")
        }));
    }
    body.findings = findings;
    Ok(body)
}

fn apply(text: &[u8], reading: Reading, limits: Limits) -> Result<Body, BodyError> {
    let decoded = yaml::decode_strict(text, limits).map_err(|e| {
        BodyError(format!(
            "error decoding patch: error converting YAML to JSON: {e}"
        ))
    })?;
    match &decoded.value {
        Value::Object(_) | Value::Null => {}
        other => {
            return Err(BodyError(format!(
                "error decoding patch: error unmarshaling JSON: while decoding JSON: {}",
                not_a_map(other)
            )));
        }
    }
    let findings = match reading {
        Reading::Strict if !decoded.duplicates.is_empty() => {
            let found = yaml::strict_error(&decoded.duplicates);
            vec![format!("error converting YAML to JSON: {found}")]
        }
        _ => Vec::new(),
    };
    Ok(Body {
        value: decoded.value,
        findings,
    })
}

/// Findings as warnings: those of YAML line by line.
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

/// How a server refuses a patch for what strict reading found.
#[derive(Clone, Debug, PartialEq)]
pub enum StrictRefusal {
    /// With HTTP 400 and this message.
    BadRequest(String),
    /// With HTTP 422, this error, and no group, kind or name.
    Invalid(FieldError),
}

/// The refusal of a patch under `Strict`: for what was found in its text and, except for an apply, in the object that
/// it leads to.
pub fn refusal(ty: PatchType, patch: &Value, patched: &Value, findings: &[String]) -> StrictRefusal {
    let detail = format!("strict decoding error: {}", findings.join(", "));
    let at = Path::ROOT;
    let at = at.field("patch");
    match ty {
        PatchType::Apply => {
            StrictRefusal::BadRequest(format!("error strict decoding patch: {}", findings.join(", ")))
        }
        PatchType::Strategic => StrictRefusal::Invalid(FieldError::invalid(&at, go::value_v(patch), detail)),
        PatchType::Json | PatchType::Merge => {
            StrictRefusal::Invalid(FieldError::invalid(&at, patched.to_json(), detail))
        }
    }
}
