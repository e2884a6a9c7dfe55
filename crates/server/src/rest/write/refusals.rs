//! Checks of a write against its request, and the errors of rejected writes.

use super::pipeline::object_kind;
use super::{metadata_mut, metadata_str};
use crate::api::ResourceRequest;
use crate::request::parse_uint;
use crate::rest::conversion::group_version_kind;
use crate::rest::options::WriteOptions;
use crate::rest::read;
use crate::status::{ApiError, ApiResult, GroupResource};
use scantling_schema::names::group_version;
use scantling_store::Entry;
use scantling_value::{FieldError, Path, Value, go};

/// The error about a body that cannot be decoded.
pub(crate) fn cannot_be_handled(call: &ResourceRequest<'_>, object: &Value, why: &str) -> ApiError {
    let kind = object_kind(object, &call.kind.kind);
    cannot_be_handled_as(&call.kind.kind, kind, said_version(call, object), why)
}

/// The error about a body with unknown or duplicate fields.
pub(super) fn cannot_be_read_strictly(call: &ResourceRequest<'_>, object: &Value, why: &str) -> ApiError {
    let kind = object_kind(object, &call.kind.kind);
    // The strict decoder of custom resources knows only the kind of the body, not that of the path.
    let wanted = if call.kind.built_in { &call.kind.kind } else { kind };
    cannot_be_handled_as(wanted, kind, said_version(call, object), why)
}

/// The version that a body names.
fn said_version<'a>(call: &'a ResourceRequest<'_>, object: &'a Value) -> &'a str {
    match object.get("apiVersion") {
        // That of a built-in kind is filled in.
        None if call.kind.built_in => &call.version.name,
        _ => group_version(object.get_str("apiVersion")).1,
    }
}

/// The error about a body whose kind and version default to those of the path.
pub(crate) fn cannot_be_handled_by_default(
    call: &ResourceRequest<'_>,
    api_version: &str,
    kind: &str,
    why: &str,
) -> ApiError {
    let kind = if kind.is_empty() { &call.kind.kind } else { kind };
    let version = if api_version.is_empty() {
        &call.version.name
    } else {
        group_version(api_version).1
    };
    cannot_be_handled_as(&call.kind.kind, kind, version, why)
}

fn cannot_be_handled_as(wanted: &str, kind: &str, version: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version {} cannot be handled as a {wanted}: {why}",
        go::quote(version),
    ))
}

/// The error about the result of a patch.
pub(crate) fn patch_refusal(shown: String, why: &str) -> ApiError {
    let root = Path::ROOT;
    let error = FieldError::invalid(&root.field("patch"), shown, why);
    ApiError::invalid(GroupResource { group: "", kind: "" }, "", &[error])
}

/// The error about the result of an apply that does not fit the Go types. It names the configuration.
pub(super) fn not_converted(call: &ResourceRequest<'_>, config: &Value, why: &str) -> ApiError {
    let (namespace, name) = (metadata_str(config, "namespace"), metadata_str(config, "name"));
    let of = group_version_kind(&call.api_version(), &call.kind.kind);
    ApiError::internal(format!(
        "failed to convert new object ({namespace}/{name}; {of}) to proper version: unable to convert unstructured \
         object to {of}: {why}"
    ))
}

/// The error about changes of immutable fields: 400 with causes.
pub(super) fn immutable(about: GroupResource<'_>, name: &str, errors: &[FieldError]) -> ApiError {
    ApiError::invalid(about, name, errors).with_code(400, "BadRequest")
}

/// The error about an object with another uid than the request names.
pub(super) fn other_uid(
    call: &ResourceRequest<'_>,
    name: &str,
    key: &str,
    options: &WriteOptions,
    (asked, found): (&str, &str),
) -> ApiError {
    // The dry-run storage of kube-apiserver is above the layer that adds the prefix.
    let key = if options.dry_run {
        read::key_within(call, key)
    } else {
        key
    };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {asked}, UID in object meta: {found}"
    );
    ApiError::conflict(call.group_resource(), name, &why)
}

/// The error about a write of an outdated version.
pub(crate) fn modified(about: GroupResource<'_>, name: &str) -> ApiError {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    ApiError::conflict(about, name, why)
}

/// The error about a create of an existing object.
pub(super) fn taken(call: &ResourceRequest<'_>, name: &str, wanted: &Value, current: &Entry) -> ApiError {
    let mut e = ApiError::already_exists(call.group_resource(), name);
    // As in kube-apiserver, the hint depends on `generateName` alone, even if the name was given.
    if !metadata_str(wanted, "generateName").is_empty() {
        let why = format!(
            "{}, the server was not able to generate a unique name for the object",
            e.message()
        );
        e = e.with_message(why).retry_after(1);
    }
    let leaving = read::stored(current).is_ok_and(|o| !metadata_str(&o, "deletionTimestamp").is_empty());
    if leaving {
        let why = format!("object is being deleted: {}", e.message());
        return e.with_message(why);
    }
    e
}

/// Checks the resource version of an update: required, a number, and the stored one.
pub(super) fn check_version(
    call: &ResourceRequest<'_>,
    name: &str,
    object: &Value,
    current: u64,
) -> ApiResult<()> {
    let asked = match metadata_str(object, "resourceVersion") {
        // Go's parser of resource versions takes an empty one for zero.
        "" => 0,
        asked => parse_uint(asked).map_err(ApiError::internal)?,
    };
    if asked == current || (asked == 0 && call.kind.behavior.facts.unconditional_update) {
        return Ok(());
    }
    if asked == 0 {
        let root = Path::ROOT;
        let at = root.field("metadata");
        let why = "must be specified for an update";
        let error = FieldError::invalid(&at.field("resourceVersion"), Value::Int(0), why);
        return Err(ApiError::invalid(call.group_resource(), name, &[error]));
    }
    Err(modified(call.group_resource(), name))
}

/// The error about an object without a name.
pub(super) fn unnamed(name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}

/// Checks that the name of an object is that of the path.
pub(crate) fn check_name_matches_path(object: &Value, name: &str) -> ApiResult<()> {
    match metadata_str(object, "name") {
        "" => Err(unnamed(name)),
        other if other != name => Err(ApiError::bad_request(format!(
            "the name of the object ({other}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
    }
}

/// Checks that the namespace of an object is that of the path, or sets it.
pub(crate) fn check_namespace_matches_path(call: &ResourceRequest<'_>, object: &mut Value) -> ApiResult<()> {
    let found = match object.at(["metadata", "namespace"]) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(found)) => found.to_string(),
        // The decoder refuses a value that is not a string.
        Some(_) => return Ok(()),
    };
    match &call.path.namespace {
        // A cluster-scoped object drops the namespace of the body silently, as recorded.
        None => {
            if let Some(m) = metadata_mut(object) {
                m.remove("namespace");
            }
        }
        Some(ns) if found.is_empty() => {
            if let Some(m) = metadata_mut(object) {
                m.insert("namespace", ns.as_str().into());
            }
        }
        Some(ns) if *ns != found => {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Some(_) => {}
    }
    Ok(())
}
