//! The body of a request as an object, refused in a server's words where it is none.

use crate::api::ResourceRequest;
use crate::codec::cbor::{self, Fault};
use crate::codec::media::{self, Encoding};
use crate::codec::protobuf;
use crate::rest::write::{cannot_be_handled, cannot_be_handled_by_default};
use crate::status::{ApiError, ApiResult};
use scantling_admit::FieldValidation;
use scantling_apitypes::TypeDef;
use scantling_schema::names::group_version;
use scantling_value::json::{self, RawJson};
use scantling_value::{Decoded, Limits, Map, Str, Value, go, yaml};

/// An object as it was sent.
#[derive(Debug)]
pub(crate) struct DecodedBody {
    pub(crate) object: Value,
    /// What strict decoding of the text found: fields that stand twice, and unknown ones that are gone already.
    pub(crate) found: Vec<String>,
}

/// What a decoder looks at first.
const TYPE_META: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Why a custom resource does not come in protobuf.
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
    // What an object says of itself counts before anything else in it.
    let says = |object: &Value| {
        let (api_version, kind) = read_type_meta(object, text, form).map_err(unrecognized)?;
        Ok((api_version.to_owned(), kind.to_owned()))
    };
    let mut is_odd = false;
    let decoded = match form {
        Encoding::Json => match json::decode_strict(text, Limits::SERVER) {
            Ok(decoded) => decoded,
            Err(e) => {
                // A number beyond all numbers is JSON; only what is made of it has no place for it.
                let object = json::decode_any_range(text, Limits::SERVER).map_err(|e| parse_error(&e))?;
                let (api_version, kind) = says(&object)?;
                // Built-in kinds are read field by field: it is nothing to fields that they do not have.
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
            if let Some(why) = call.kind.strategy.no_protobuf() {
                let e = ApiError::unsupported_media_type(&media::without_protobuf(call.accept.encodings));
                let message = format!("{}: {why}", e.message());
                return Err(e.with_message(message));
            }
            let envelope = protobuf::open(text).map_err(unrecognized)?;
            let described = protobuf::described(&envelope).filter(|_| call.kind.built_in);
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
    if form == Encoding::Json && !decoded.duplicates.is_empty() {
        is_odd = true;
    }
    if form == Encoding::Json && (is_odd || misspells_type(&decoded.value)) {
        written_type_meta(text).map_err(unrecognized)?;
    }
    let mut object = decoded.value;
    let found = match (form, mode) {
        // A refusal of YAML names all its duplicates in one text.
        (Encoding::Yaml, FieldValidation::Strict) if !decoded.duplicates.is_empty() => {
            vec![yaml::strict_error(&decoded.duplicates)]
        }
        _ => decoded.duplicates,
    };
    if form == Encoding::Cbor && !call.kind.built_in {
        // What says what it is in another type than text says nothing.
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
        if object.is_null() {
            object = Map::new().into();
        }
        let mut sent = DecodedBody { object, found };
        typed(call, &mut sent.object, &api_version, &kind)?;
        // Numbers beyond all numbers and fields that stand twice are something only to the types of the fields.
        if is_odd && let Some(read) = call.kind.strategy.read_text(call.version, text) {
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
            // A decoder that is not strict takes the kind for that of the path, until it makes an object of it.
            (FieldValidation::Ignore, Encoding::Yaml) => {
                cannot_be_handled_by_default(call, &api_version, "", &missing(&object.to_json()))
            }
            (FieldValidation::Ignore, _) => {
                cannot_be_handled_by_default(call, &api_version, "", &missing(&sent))
            }
        });
    }
    if object.get("apiVersion").is_some_and(Value::is_null) {
        return Err(cannot_be_handled(call, &object, NO_VERSION));
    }
    Ok(DecodedBody { object, found })
}

/// Why it cannot be told what an object in CBOR is.
fn no_kind(why: &str) -> String {
    format!("unable to determine group/version/kind: {why}")
}

/// Why a version that is null cannot be read.
pub(crate) const NO_VERSION: &str = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";

/// Why something of another JSON type is no object.
fn no_object(found: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}")
}

/// The version and the kind that an object says it is of, empty where it says nothing; or why that cannot be read.
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

/// The fields by which an object says what it is.
const TYPE_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// Whether an object has fields that would say what it is but for their case: those who only ask for that do not mind.
fn misspells_type(object: &Value) -> bool {
    let names = object.as_object().into_iter().flat_map(Map::keys);
    let is_type = |name: &str| TYPE_FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name));
    names
        .map(Str::as_str)
        .any(|name| is_type(name) && !TYPE_FIELDS.contains(&name))
}

/// Checks what an object says it is of wherever it does so: a text may say it twice.
fn written_type_meta(text: &[u8]) -> Result<(), String> {
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

/// As [`type_meta`]; a version of more than a group and a version cannot be read, either.
pub(crate) fn well_formed_type_meta(object: &Value) -> Result<(&str, &str), String> {
    let (api_version, kind) = type_meta(object)?;
    if api_version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {api_version}"));
    }
    Ok((api_version, kind))
}

/// As [`well_formed_type_meta`], of an object that was read from a text; of several faults the first in it is told.
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

/// A document of a built-in kind need not say what it is, but may not say otherwise.
fn typed(call: &ResourceRequest<'_>, object: &mut Value, api_version: &str, kind: &str) -> ApiResult<()> {
    let expected = call.api_version();
    let api_version = if api_version.is_empty() {
        &expected
    } else {
        api_version
    };
    let kind = if kind.is_empty() { &call.kind.kind } else { kind };
    let (group, version) = group_version(api_version);
    let known = group == call.kind.group && call.kind.versions.iter().any(|v| v.name == version);
    if (!known || kind != call.kind.kind) && !call.kind.is_also(api_version, kind) {
        let wanted = &call.kind.kind;
        let why = call.kind.mismatch(api_version, kind);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {} cannot be handled as a {wanted}: {why}",
            go::quote(version)
        )));
    }
    if (group, version) != group_version(&expected) {
        return Err(other_version(api_version, &expected));
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion", expected.into());
        members.insert("kind", kind.into());
    }
    Ok(())
}

/// The version in the body is that of the path. What is found in the body is told nevertheless.
pub(crate) fn check_version_matches_path(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<()> {
    let found = object.get_str("apiVersion");
    let expected = call.api_version();
    if found == expected {
        return Ok(());
    }
    Err(other_version(found, &expected))
}

fn other_version(found: &str, expected: &str) -> ApiError {
    // The core group has no name, and nothing follows it.
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
        Value::Null => Ok(Map::new().into()),
        other => Err(bad(&no_object(go::json_kind(&other)))),
    }
}

/// The beginning of a body: as text if it looks like JSON, else in hexadecimal.
fn summary(text: &[u8]) -> String {
    const LENGTH: usize = 30;
    let head = text.get(..LENGTH).unwrap_or(text);
    let more = if text.len() > LENGTH { " ..." } else { "" };
    match head.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => format!("{}{more}", go::hex(head)),
    }
}
