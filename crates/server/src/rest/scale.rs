//! The `/scale` subresource: a `Scale` that is read from and written to the object.

use crate::api::ResourceRequest;
use crate::codec::cbor;
use crate::codec::media::{Encoding, View};
use crate::codec::protobuf;
use crate::http::reply::Reply;
use crate::kinds::builtin::Model;
use crate::rest::body;
use crate::rest::conversion::Memo;
use crate::rest::managed_fields::SCALE_VERSION;
use crate::rest::options::{WriteKind, WriteOptions};
use crate::rest::read;
use crate::rest::view::ViewRenderer;
use crate::rest::write::{
    Change, Edit, ObjectSource, Ownership, Part, WriteRequest, check_name_matches_path,
    check_namespace_matches_path, metadata_mut, metadata_str,
};
use crate::status::{ApiError, ApiResult, GroupResource};
use crate::tables::{Column, Columns};
use scantling_admit::{FieldValidation, ScalePaths, ScaleValues, decode_typed};
use scantling_apitypes::decode::decode_raw;
use scantling_apitypes::{TypeDef, TypeTable};
use scantling_schema::structural::Structural;
use scantling_value::{FieldError, Finding, Limits, Map, Path, Value, go, json, yaml};
use std::sync::LazyLock;

/// The replicas of an object without any, while a patch is applied.
// kube-apiserver's own mark: a patch that leaves it was not given a number.
const UNSET: i64 = i32::MIN as i64;

/// The scale of an object that has replicas.
pub(crate) fn scale_of(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<Value> {
    let found = scale_to_patch(call, object)?;
    if has_replicas(&found) {
        return Ok(found);
    }
    Err(ApiError::internal_error(format!(
        "the spec replicas field {:?} does not exist",
        scale_paths(call, object)?.spec_replicas
    )))
}

/// Returns whether a scale has replicas.
pub(crate) fn has_replicas(scale: &Value) -> bool {
    scale.at(["spec", "replicas"]).and_then(Value::as_int) != Some(UNSET)
}

/// The scale of an object that was written. The schema may have no replicas, so that they were pruned.
pub(crate) fn scale_after_write(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<Value> {
    let mut found = scale_to_patch(call, object)?;
    if let Some(Value::Object(spec)) = found.as_object_mut().and_then(|f| f.get_mut("spec"))
        && spec.get("replicas").and_then(Value::as_int) == Some(UNSET)
    {
        spec.remove("replicas");
    }
    Ok(found)
}

/// Refuses a scale that a patch left without a number of replicas.
pub(crate) fn check_replicas(call: &ResourceRequest<'_>, scale: &Value) -> ApiResult<()> {
    match (
        scale.at(["spec", "replicas"]).and_then(Value::as_int),
        &call.version.scale,
    ) {
        (Some(UNSET), Some(scale)) => Err(ApiError::bad_request(format!(
            "the spec replicas field {:?} cannot be empty",
            scale.spec_replicas
        ))),
        _ => Ok(()),
    }
}

/// The scale of an object, to be patched.
pub(crate) fn scale_to_patch(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<Value> {
    let scale = scale_paths(call, object)?;
    let ScaleValues {
        wanted,
        actual,
        selector,
    } = scale.read(object).map_err(ApiError::internal)?;
    let built_in = call
        .kind
        .built_in
        // Custom resources store the selector as text at a path of the CRD; built-in kinds have an object.
        .then(|| selector_text(object.at(["spec", "selector"])));
    let selector = built_in.as_deref().unwrap_or(selector);
    let wanted = wanted.unwrap_or(UNSET);
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(v) = object.at(["metadata", field]) {
            metadata.insert(field, v.clone());
        }
    }
    let mut spec = Map::new();
    // Go omits zero replicas from the spec (`omitempty`), but not from the status.
    if wanted != 0 {
        spec.insert("replicas", Value::Int(wanted));
    }
    let mut status = Map::from_iter([("replicas", Value::Int(actual))]);
    if !selector.is_empty() {
        status.insert("selector", selector.into());
    }
    let entries = [
        ("kind", Value::from("Scale")),
        ("apiVersion", SCALE_VERSION.into()),
        ("metadata", metadata.into()),
        ("spec", spec.into()),
        ("status", status.into()),
    ];
    Ok(Value::Object(entries.into_iter().collect()))
}

/// GET
pub(crate) async fn get(call: &ResourceRequest<'_>, name: &str) -> ApiResult<Reply> {
    let at = read::asked_state(call)?;
    let key = call.key(name)?;
    let entry = call.entry(&key, name, at).await?;
    let object = read::object_in_version(call, &entry)
        .await
        .map_err(|e| read::by_key(call, &entry, e))?;
    reply(call.view_renderer()?, scale_of(call, &object)?)
}

/// PUT
pub(crate) async fn update(write: &mut WriteRequest<'_>, name: &str) -> ApiResult<Reply> {
    let call = write.call;
    let options = WriteOptions::parse(call.query, WriteKind::Update)?;
    let mut sent = if call.kind.built_in {
        write.decode_other("autoscaling", "v1", "Scale", &options)?
    } else {
        let form = write.head.body_encoding()?;
        let (sent, found) = decode(&write.body, form, options.field_validation)
            .ok_or_else(|| ApiError::bad_request(NOT_DECODED))?;
        write.warnings.extend(found);
        sent
    };
    check_namespace_matches_path(call, &mut sent)?;
    check_name_matches_path(&sent, name)?;
    let scale = replace(write, name, &options, &sent).await?;
    reply(call.view_renderer()?, scale)
}

/// A label selector in the form of the `labelSelector` parameter.
fn selector_text(selector: Option<&Value>) -> String {
    // The selector of a ReplicationController is a map of labels.
    let is_plain = |s: &&Value| {
        s.as_object()
            .is_some_and(|s| s.values().all(|v| v.as_str().is_some()))
    };
    let plain = selector.filter(is_plain).cloned();
    let plain = plain.map(|labels| Value::Object(Map::from_iter([("matchLabels", labels)])));
    scantling_builtin::columns::selector(plain.as_ref().or(selector)).unwrap_or_default()
}

/// The error about a scale that cannot be decoded.
const NOT_DECODED: &str = "no kind is registered for the type v1.Scale in scheme \
                           \"k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go:781\"";
/// The Go scheme in which kube-apiserver looks up a patched scale.
const SCHEME: &str = "k8s.io/client-go/scale/util.go:146";

/// The type of scales.
fn definition() -> &'static TypeDef {
    TypeTable::latest().known("autoscaling/v1", "Scale")
}

/// The schema by which strategic merge patches of scales merge.
pub(crate) fn strategic_schema() -> &'static Structural {
    static MODEL: LazyLock<Model> = LazyLock::new(|| Model::new(definition()));
    MODEL.strategic()
}

/// Decodes a scale; returns findings, too.
fn decode(text: &[u8], form: Encoding, mode: FieldValidation) -> Option<(Value, Vec<String>)> {
    let (sent, found) = match form {
        Encoding::Json => {
            check_type(&json::decode_any_range(text, Limits::SERVER).ok()?).ok()?;
            let read = decode_typed(TypeTable::latest(), definition(), decode_raw(text).ok()?).ok()?;
            (read.object, read.findings)
        }
        Encoding::Yaml => {
            let read = yaml::decode_strict(text, Limits::SERVER).ok()?;
            let (sent, unknown) = check(read.value).ok()?;
            (sent, [read.duplicates, unknown].concat())
        }
        Encoding::Cbor => check(cbor::decode(text).ok()?).ok()?,
        Encoding::Protobuf => {
            let envelope = protobuf::open(text).ok()?;
            check(protobuf::read(&envelope, definition()).ok()?).ok()?
        }
    };
    match mode {
        // Whatever is wrong with the body, kube-apiserver has the same text for it, so the reason is dropped.
        FieldValidation::Strict if !found.is_empty() => None,
        FieldValidation::Ignore => Some((sent, Vec::new())),
        FieldValidation::Strict | FieldValidation::Warn => {
            Some((sent, found.iter().map(ToString::to_string).collect()))
        }
    }
}

/// Decodes a document as a scale; returns unknown fields, too.
pub(crate) fn check(document: Value) -> Result<(Value, Vec<Finding>), String> {
    check_type(&document)?;
    let decoded = decode_typed(TypeTable::latest(), definition(), document).map_err(|e| e.to_string())?;
    Ok((decoded.object, decoded.findings))
}

/// Checks that `apiVersion` and `kind` are absent or those of a scale.
fn check_type(document: &Value) -> Result<(), String> {
    let (api_version, kind) = body::type_meta(document)?;
    let fits = |found: &str, wanted: &str| found.is_empty() || found == wanted;
    if !fits(api_version, SCALE_VERSION) || !fits(kind, "Scale") {
        return Err(format!(
            "no kind {} is registered for version {} in scheme \"{SCHEME}\"",
            go::quote(if kind.is_empty() { "Scale" } else { kind }),
            go::quote(if api_version.is_empty() {
                SCALE_VERSION
            } else {
                api_version
            }),
        ));
    }
    Ok(())
}

/// The response with a scale, whose tables have their own columns.
pub(crate) fn reply(shape: ViewRenderer<'_>, scale: Value) -> ApiResult<Reply> {
    static COLUMNS: LazyLock<Columns> = LazyLock::new(|| {
        let number = |name: &str, description: &str, path: &str| Column {
            name: name.to_owned(),
            kind: "integer".to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority: 0,
            path: path.to_owned(),
        };
        let desired = "Number of desired replicas";
        let actual = "Number of actual replicas";
        Columns::new(&[
            number("Desired", desired, ".spec.replicas"),
            number("Available", actual, ".status.replicas"),
            Column::age(),
        ])
    });
    static BUILTIN_COLUMNS: LazyLock<Columns> =
        LazyLock::new(|| Columns::builtin("autoscaling", "v1", "Scale"));
    if matches!(shape.wanted.view, View::MetadataList(_)) {
        let why =
            "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Scale)";
        return Err(ApiError::not_acceptable(why));
    }
    let shape = ViewRenderer {
        columns: match shape.kind.built_in {
            true => &BUILTIN_COLUMNS,
            false => &COLUMNS,
        },
        ..shape
    };
    shape.object(200, scale)
}

/// Writes the replicas of a scale to the object; returns the new scale.
pub(crate) async fn replace(
    write: &mut WriteRequest<'_>,
    name: &str,
    options: &WriteOptions,
    sent: &Value,
) -> ApiResult<Value> {
    let call = write.call;
    let replicas = sent.at(["spec", "replicas"]).and_then(Value::as_int).unwrap_or(0);
    if call.kind.built_in && replicas < 0 {
        let scale = GroupResource {
            group: "autoscaling",
            kind: "Scale",
        };
        let spec = Path::ROOT.field("spec");
        let why = "must be greater than or equal to 0";
        let error = FieldError::invalid(&spec.field("replicas"), Value::Int(replicas), why);
        return Err(ApiError::invalid(scale, name, &[error]));
    }
    let version = metadata_str(sent, "resourceVersion").to_owned();
    let uid = metadata_str(sent, "uid").to_owned();
    let change = |old: &Value, _: &Memo| {
        let mut object = with_replicas(call, old, replicas)?;
        // Without a resource version, the update is unconditional.
        if let Some(m) = metadata_mut(&mut object).filter(|_| !version.is_empty()) {
            m.insert("resourceVersion", version.as_str().into());
        }
        Ok(Change {
            object,
            found: Vec::new(),
            ownership: Ownership::Update,
            is_normalized: true,
        })
    };
    let edit = Edit {
        name,
        uid: &uid,
        part: Part::Scale,
        options,
        source: ObjectSource::Body,
        change: &change,
    };
    let updated = write.change(&edit).await?;
    scale_after_write(call, &updated)
}

/// Returns an object with another number of replicas.
pub(crate) fn with_replicas(call: &ResourceRequest<'_>, old: &Value, replicas: i64) -> ApiResult<Value> {
    let scale = scale_paths(call, old)?;
    scale.with_replicas(old, replicas).map_err(ApiError::internal)
}

/// The paths of the fields behind the scale.
fn scale_paths<'c>(call: &ResourceRequest<'c>, object: &Value) -> ApiResult<&'c ScalePaths> {
    let scale = call.version.scale.as_ref();
    scale.ok_or_else(|| ApiError::not_found(call.group_resource(), metadata_str(object, "name")))
}
