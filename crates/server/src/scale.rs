//! The scale subresource: a small object of its own, read from and written into the larger one.

use crate::api::Call;
use crate::body;
use crate::media::View;
use crate::options::{WriteKind, WriteOptions};
use crate::protobuf;
use crate::read;
use crate::reply::Reply;
use crate::status::{ApiError, ApiResult};
use crate::table::{Column, Columns};
use crate::view::Shape;
use crate::write::{Change, Ownership, Part, Source, Write, fit_name, text};
use scantling_value::{Map, Value};
use std::sync::LazyLock;

/// The scale of an object.
pub(crate) fn scale_of(call: &Call<'_>, object: &Value) -> ApiResult<Value> {
    let Some(scale) = &call.version.scale else {
        return Err(ApiError::not_found(call.about(), text(object, "name")));
    };
    let at = |path: &[String]| object.at(path.iter().map(String::as_str));
    let Some(wanted) = at(&scale.spec_replicas).filter(|v| !v.is_null()) else {
        let path = &scale.spec_path;
        return Err(ApiError::internal_error(format!(
            "the spec replicas field {path:?} does not exist"
        )));
    };
    let wanted = wanted.as_int().unwrap_or(0);
    let actual = at(&scale.status_replicas).and_then(Value::as_int).unwrap_or(0);
    let selector = scale
        .label_selector
        .as_deref()
        .and_then(at)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(v) = object.at(["metadata", field]) {
            metadata.insert(field, v.clone());
        }
    }
    let mut spec = Map::new();
    if wanted != 0 {
        spec.insert("replicas", Value::Int(wanted));
    }
    let mut status = Map::from_iter([("replicas", Value::Int(actual))]);
    if !selector.is_empty() {
        status.insert("selector", selector.into());
    }
    let entries = [
        ("kind", Value::from("Scale")),
        ("apiVersion", "autoscaling/v1".into()),
        ("metadata", metadata.into()),
        ("spec", spec.into()),
        ("status", status.into()),
    ];
    Ok(Value::Object(entries.into_iter().collect()))
}

/// GET
pub(crate) async fn get(call: &Call<'_>, name: &str) -> ApiResult<Reply> {
    let key = call.key(name)?;
    let entry = call.live(&key, name).await?;
    let object = read::shown(call, &entry)?;
    shown(call.shape()?, scale_of(call, &object)?)
}

/// PUT
pub(crate) async fn update(write: &mut Write<'_>, name: &str) -> ApiResult<Reply> {
    let call = write.call;
    let shape = call.shape()?;
    let options = WriteOptions::parse(call.query, WriteKind::Update)?;
    let content_type = write.head.content_type.as_deref();
    let sent = body::decode_small(&write.body, content_type, "v1.Scale", &protobuf::SCALE)?;
    fit_name(&sent, name)?;
    let scale = replace(write, name, &options, &sent).await?;
    shown(shape, scale)
}

/// A scale as an answer: tables have columns of its own.
pub(crate) fn shown(shape: Shape<'_>, mut scale: Value) -> ApiResult<Reply> {
    static COLUMNS: LazyLock<Columns> = LazyLock::new(|| {
        let number = |name: &str, description: &str, path: &str| Column {
            name: name.to_owned(),
            kind: "integer".to_owned(),
            format: String::new(),
            description: description.to_owned(),
            priority: 0,
            path: path.to_owned(),
        };
        let desired = "replicas is the desired number of instances for the scaled object.";
        let actual = "replicas is the actual number of observed instances of the scaled object.";
        Columns::new(&[
            number("Desired", desired, ".spec.replicas"),
            number("Available", actual, ".status.replicas"),
            Column::age(),
        ])
    });
    let is_table = matches!(shape.wanted.view, View::Table(_));
    if is_table && let Some(Value::Object(spec)) = scale.as_object_mut().and_then(|m| m.get_mut("spec")) {
        // Zero goes without saying, but not in a cell.
        spec.get_or_insert_with("replicas", || Value::Int(0));
    }
    let shape = Shape {
        columns: &COLUMNS,
        ..shape
    };
    shape.object(200, scale)
}

/// Writes the wanted replicas of a scale into the object; returns the object's scale.
pub(crate) async fn replace(
    write: &mut Write<'_>,
    name: &str,
    options: &WriteOptions,
    sent: &Value,
) -> ApiResult<Value> {
    let call = write.call;
    let replicas = sent.at(["spec", "replicas"]).and_then(Value::as_int).unwrap_or(0);
    let version = text(sent, "resourceVersion").to_owned();
    let uid = text(sent, "uid").to_owned();
    let about = call.about();
    let change = |old: &Value| {
        if !version.is_empty() && version != text(old, "resourceVersion") {
            return Err(crate::write::modified(about, name));
        }
        let object = with_replicas(call, old, replicas)?;
        Ok(Change {
            object,
            found: Vec::new(),
            ownership: Ownership::Update,
            received: false,
        })
    };
    let updated = write
        .change(name, options, Part::Scale, Some(&uid), &change, Source::Body)
        .await?;
    scale_of(call, &updated)
}

/// The fields of an object that a scale does not have. Its metadata are those of any object.
pub(crate) fn unknown(scale: &Value) -> impl Iterator<Item = String> {
    let known = |at: &str, field: &str| match at {
        "" => matches!(field, "kind" | "apiVersion" | "metadata" | "spec" | "status"),
        "spec" => field == "replicas",
        _ => matches!(field, "replicas" | "selector"),
    };
    let below = move |at: &'static str| {
        let members = if at.is_empty() { Some(scale) } else { scale.get(at) };
        let fields = members.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        let unknown = fields.filter(move |f| !known(at, f));
        unknown.map(move |f| {
            if at.is_empty() {
                f.to_string()
            } else {
                format!("{at}.{f}")
            }
        })
    };
    ["", "spec", "status"].into_iter().flat_map(below)
}

/// An object with another wanted number of replicas.
pub(crate) fn with_replicas(call: &Call<'_>, old: &Value, replicas: i64) -> ApiResult<Value> {
    let scale = call.version.scale.as_ref();
    scale
        .and_then(|s| scantling_admit::with_replicas(&s.spec_path, old, replicas))
        .ok_or_else(|| {
            ApiError::internal_error("the replicas cannot be written: a part of their path is no object")
        })
}
