//! Decodes the body of a request to an object, with kube-apiserver's errors.

use crate::api::ResourceRequest;
use crate::codec::cbor::{self, Fault};
use crate::codec::media::{self, Encoding};
use crate::codec::protobuf;
use crate::kinds::kind::Protobuf;
use crate::rest::write::{cannot_be_handled, cannot_be_handled_by_default};
use crate::status::{ApiError, ApiResult};
use scantling_admit::FieldValidation;
use scantling_apitypes::TypeDef;
use scantling_schema::names::group_version;
use scantling_value::json::{self, RawJson};
use scantling_value::{Decoded, Finding, Limits, Map, Str, Value, go, yaml};

/// The object of a request.
#[derive(Debug)]
pub(crate) struct DecodedBody {
    pub(crate) object: Value,
    /// The findings of strict decoding: duplicate fields, and unknown fields that were removed.
    pub(crate) found: Vec<Finding>,
}

/// The Go type that kube-apiserver decodes first.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The error about a custom resource in protobuf.
const NO_MESSAGE: &str = "object *unstructured.Unstructured does not implement the protobuf marshalling interface and \
                          cannot be encoded to a protobuf message";

/// Decodes an object of a kind.
pub(crate) fn decode(
    call: &ResourceRequest<'_>,
    text: &[u8],
    form: Encoding,
    mode: FieldValidation,
) -> ApiResult<DecodedBody> {
    let unrecognized = |why: String| {
        let kind = &call.kind.kind;
        let message = format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(text)
        );
        ApiError::bad_request(message)
    };
    let parse_error = |why: &dyn std::fmt::Display| {
        unrecognized(format!("couldn't get version/kind; json parse error: {why}"))
    };
    // `apiVersion` and `kind` are checked before anything else.
    let says = |object: &Value| {
        let (api_version, kind) = read_type_meta(object, text, form).map_err(unrecognized)?;
        Ok((api_version.to_owned(), kind.to_owned()))
    };
    let mut is_odd = false;
    let decoded = match form {
        Encoding::Json => match json::decode_strict(text, Limits::SERVER) {
            Ok(decoded) => decoded,
            // Syntax errors fail again in the lenient decoder, so only errors about the range of numbers remain.
            Err(e) => {
                // A number out of range is valid JSON; only its conversion fails.
                let object = json::decode_any_range(text, Limits::SERVER).map_err(|e| parse_error(&e))?;
                let (api_version, kind) = says(&object)?;
                // Go types ignore the numbers of unknown fields.
                if !call.kind.built_in {
                    return Err(cannot_be_handled_by_default(
                        call,
                        &api_version,
                        &kind,
                        e.message(),
                    ));
                }
                is_odd = true;
                Decoded {
                    value: object,
                    duplicates: Vec::new(),
                }
            }
        },
        Encoding::Yaml => {
            yaml::decode_strict(text, Limits::SERVER).map_err(|e| unrecognized(e.to_string()))?
        }
        Encoding::Protobuf => {
            if let Protobuf::Lossy(why) = call.kind.protobuf {
                let e = ApiError::unsupported_media_type(&media::without_protobuf(call.accept.encodings));
                let message = format!("{}: {why}", e.message());
                return Err(e.with_message(message));
            }
            let envelope = protobuf::open(text).map_err(unrecognized)?;
            let described = protobuf::described(&envelope);
            let described = described.filter(|_| call.kind.protobuf == Protobuf::Supported);
            let read = described.map_or_else(|| Err(NO_MESSAGE.to_owned()), |d| protobuf::read(&envelope, d));
            Decoded {
                value: read.map_err(|why| cannot_be_handled_by_default(call, "", "", &why))?,
                duplicates: Vec::new(),
            }
        }
        Encoding::Cbor => Decoded {
            value: cbor::decode_object(text).map_err(|fault| match fault {
                Fault::Unreadable(why) => unrecognized(no_kind(&why)),
                Fault::Misfit {
                    api_version,
                    kind,
                    why,
                } => cannot_be_handled_by_default(call, &api_version, &kind, &why),
            })?,
            duplicates: Vec::new(),
        },
    };
    // Go decodes every occurrence of a field: an earlier one that does not fit is an error even if the last one fits.
    if form == Encoding::Json && !decoded.duplicates.is_empty() {
        is_odd = true;
    }
    // Only these texts can have an `apiVersion` or `kind` that `says` does not see, so others are not read again.
    if form == Encoding::Json && (is_odd || misspells_type(&decoded.value)) {
        written_type_meta(text).map_err(unrecognized)?;
    }
    let mut object = decoded.value;
    // Unknown fields are added later, when the object is normalized by its schema.
    let found = decoded.duplicates;
    // kube-apiserver decodes CBOR directly into an unstructured object, without the step that reads only the type.
    if form == Encoding::Cbor && !call.kind.built_in {
        // `apiVersion` and `kind` that are not strings count as absent.
        let said = |field| object.get_str(field);
        let (api_version, kind) = (said("apiVersion"), said("kind"));
        let missing = |field: &str| format!("Object '{field}' is missing in '{}'", cbor::notation(text));
        if kind.is_empty() || api_version.matches('/').count() > 1 {
            return Err(unrecognized(missing("Kind")));
        }
        if group_version(api_version).1.is_empty() {
            return Err(cannot_be_handled(call, &object, &missing("apiVersion")));
        }
        return Ok(DecodedBody { object, found });
    }
    let (api_version, kind) = says(&object)?;
    if call.kind.built_in {
        // In Go, a body of `null` leaves the typed object as it is, with all fields empty.
        if object.is_null() {
            object = Map::new().into();
        }
        let mut sent = DecodedBody { object, found };
        typed(call, &mut sent.object, &api_version, &kind)?;
        // Numbers out of range and duplicate fields are decoded by the types of the fields.
        if is_odd && let Some(read) = call.kind.codec.decode_text(call.version, text) {
            let read = read.map_err(|why| cannot_be_handled(call, &sent.object, &why))?;
            sent = read;
            typed(call, &mut sent.object, &api_version, &kind)?;
        }
        return Ok(sent);
    }
    if kind.is_empty() {
        let missing = |shown: &str| format!("Object 'Kind' is missing in '{shown}'");
        let sent = String::from_utf8_lossy(text);
        return Err(match (mode, form) {
            (FieldValidation::Warn | FieldValidation::Strict, _) => unrecognized(missing(&sent)),
            // A lenient decoder uses the kind of the path until it builds the object.
            // kube-apiserver converts YAML to JSON first, so the error shows the converted text.
            (FieldValidation::Ignore, Encoding::Yaml) => {
                cannot_be_handled_by_default(call, &api_version, "", &missing(&object.to_json()))
            }
            (FieldValidation::Ignore, _) => {
                cannot_be_handled_by_default(call, &api_version, "", &missing(&sent))
            }
        });
    }
    // `type_meta` takes null for absent, as Go's strings do; the accessor of unstructured objects does not.
    if object.get("apiVersion").is_some_and(Value::is_null) {
        return Err(cannot_be_handled(call, &object, NO_VERSION));
    }
    Ok(DecodedBody { object, found })
}

/// The error about the type of an object in CBOR.
fn no_kind(why: &str) -> String {
    format!("unable to determine group/version/kind: {why}")
}

/// The error about an `apiVersion` of null.
pub(crate) const NO_VERSION: &str = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";

/// The error about a value that is not an object.
fn no_object(found: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}")
}

/// Returns `apiVersion` and `kind`, empty if they are absent; fails if they are not strings.
pub(crate) fn type_meta(object: &Value) -> Result<(&str, &str), String> {
    let parse_error = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    match object {
        Value::Object(_) | Value::Null => {}
        other => {
            let found = go::json_kind(other);
            return Err(parse_error(no_object(found)));
        }
    }
    let field = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(s)) => Ok(s.as_str()),
        Some(other) => {
            let found = go::json_kind(other);
            Err(parse_error(format!(
                "json: cannot unmarshal {found} into Go struct field .{name} of type string"
            )))
        }
    };
    Ok((field("apiVersion")?, field("kind")?))
}

/// The fields that name the type of an object.
const TYPE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// Returns whether an object has `apiVersion` or `kind` in another case, which Go's decoder accepts.
fn misspells_type(object: &Value) -> bool {
    let names = object.as_object().into_iter().flat_map(Map::keys);
    let is_type = |name: &str| TYPE_FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name));
    names
        .map(Str::as_str)
        .any(|name| is_type(name) && !TYPE_FIELDS.contains(&name))
}

/// Checks every `apiVersion` and `kind` of a text, which may contain them twice.
fn written_type_meta(text: &[u8]) -> Result<(), String> {
    // The text was decoded before, so it is valid. A body of another type is reported by `type_meta`.
    let Ok(RawJson::Object(members)) = json::decode_raw(text, Limits::SERVER) else {
        return Ok(());
    };
    for (name, value) in members {
        if let Some(name) = TYPE_FIELDS.iter().find(|field| field.eq_ignore_ascii_case(&name)) {
            type_meta(&Map::from_iter([(*name, Value::from(value))]).into())?;
        }
    }
    Ok(())
}

/// As [`type_meta`], but also fails on an `apiVersion` with several slashes.
pub(crate) fn well_formed_type_meta(object: &Value) -> Result<(&str, &str), String> {
    let (api_version, kind) = type_meta(object)?;
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    Ok((api_version, kind))
}

/// As [`well_formed_type_meta`], for an object of a text: of several errors, the first in the text is returned.
pub(crate) fn read_type_meta<'v>(
    object: &'v Value,
    text: &[u8],
    form: Encoding,
) -> Result<(&'v str, &'v str), String> {
    let read = well_formed_type_meta(object);
    if read.is_err() && form == Encoding::Json {
        written_type_meta(text)?;
    }
    read
}

/// Fills in `apiVersion` and `kind` of an object of a built-in kind, and fails if they name another type.
fn typed(call: &ResourceRequest<'_>, object: &mut Value, api_version: &str, kind: &str) -> ApiResult<()> {
    let expected = call.api_version();
    let api_version = if api_version.is_empty() {
        &expected
    } else {
        api_version
    };
    let kind = if kind.is_empty() { &call.kind.kind } else { kind };
    let (group, version) = group_version(api_version);
    if (!call.kind.has_version(api_version) || kind != call.kind.kind)
        && !call.kind.is_alias(api_version, kind)
    {
        let wanted = &call.kind.kind;
        let why = call.kind.mismatch(api_version, kind);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a {wanted}: {why}",
            go::quote(version)
        )));
    }
    // The type is right, but the path names another of its versions.
    if (group, version) != group_version(&expected) {
        return Err(other_version(api_version, &expected));
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion", expected.into());
        members.insert("kind", kind.into());
    }
    Ok(())
}

/// Checks that the `apiVersion` of an object is that of the path.
pub(crate) fn check_version_matches_path(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<()> {
    let found = object.get_str("apiVersion");
    let expected = call.api_version();
    if found == expected {
        return Ok(());
    }
    Err(other_version(found, &expected))
}

fn other_version(found: &str, expected: &str) -> ApiError {
    // The core group is not shown.
    let found = match group_version(found) {
        ("", version) => version,
        _ => found,
    };
    ApiError::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    ))
}

/// Decodes a small object of a type that all kinds share.
pub(crate) fn decode_small(text: &[u8], form: Encoding, definition: &TypeDef) -> ApiResult<Value> {
    let bad = |why: &dyn std::fmt::Display| {
        ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    };
    let body = match form {
        Encoding::Json => json::decode_any_range(text, Limits::SERVER).map_err(|e| bad(&e))?,
        Encoding::Yaml => {
            yaml::decode(text, Limits::SERVER).map_err(|e| ApiError::bad_request(e.to_string()))?
        }
        Encoding::Protobuf => protobuf::open(text)
            .and_then(|envelope| protobuf::read(&envelope, definition))
            .map_err(ApiError::bad_request)?,
        Encoding::Cbor => cbor::decode(text).map_err(|why| ApiError::bad_request(no_kind(&why)))?,
    };
    match body {
        Value::Object(_) => Ok(body),
        // Go decodes `null` as an empty struct.
        Value::Null => Ok(Map::new().into()),
        other => Err(bad(&no_object(go::json_kind(&other)))),
    }
}

/// The beginning of a body: as text if it looks like JSON, else in hexadecimal.
fn summary(text: &[u8]) -> String {
    // The length that kube-apiserver's `summarizeData` keeps.
    const LENGTH: usize = 30;
    let head = text.get(..LENGTH).unwrap_or(text);
    let more = if text.len() > LENGTH { " ..." } else { "" };
    match head.first() {
        None => "<empty>".to_owned(),
        // As in kube-apiserver, only the first byte decides: leading white space makes the summary hexadecimal.
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => format!("{}{more}", go::hex(head)),
    }
}
