//! Publishes schemas in OpenAPI, with the extensions expressed in standard keywords for tools that do not
//! know them.
//!
//! The extensions themselves are kept. The added keywords are not part of the API.

mod v2;

use crate::definition::{CrdVersion, Definition, Spec, canonical_schema};
use crate::document::Schema;
use scantling_value::{Map, Path, Str, Value};

/// The OpenAPI version of a published schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenApiVersion {
    /// OpenAPI v3, which has no restrictions.
    V3,
    /// OpenAPI v2, which has neither junctors nor `null`.
    V2,
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
     schemas to the latest internal value, and may reject unrecognized values. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
     endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The name of a kind's OpenAPI model: `com.example.stable.v1.Widget`.
pub fn model_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<&str> = group.split('.').collect();
    parts.reverse();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// The schema of a version's objects.
pub fn object_schema(definition: &Definition, version: &CrdVersion, openapi: OpenApiVersion) -> Value {
    let spec = &definition.spec;
    let schema = spec
        .schema_of(version)
        .map(|s| Schema::new(s))
        .filter(|s| !definition.has_non_structural_condition() && is_publishable(*s));
    let preserves = |s: Schema<'_>| s.flag("x-kubernetes-preserve-unknown-fields");
    let mut out = match schema {
        // A client would take the listed properties for the complete list.
        None => object([("type", "object".into())]),
        Some(s) if openapi == OpenApiVersion::V2 && preserves(s) => object([("type", "object".into())]),
        Some(s) => {
            let mut out = unfold(canonical_schema(s.members().clone()));
            if openapi == OpenApiVersion::V2 {
                v2::weaken(&mut out);
            }
            edit_properties(&mut out, |properties| {
                properties.insert("apiVersion", string_schema(API_VERSION));
                properties.insert("kind", string_schema(KIND));
                properties.insert("metadata", reference(OBJECT_META, METADATA, openapi));
            });
            embed(&mut out, openapi);
            out
        }
    };
    identify(&mut out, definition, version, &spec.names.kind);
    out.into()
}

/// The schema of a version's lists.
pub fn list_schema(definition: &Definition, version: &CrdVersion, openapi: OpenApiVersion) -> Value {
    let spec = &definition.spec;
    let name = model_name(&spec.group, &version.name, &spec.names.kind);
    let doc = format!(
        "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
        spec.names.plural
    );
    let item = object([("$ref", reference_path(&name, openapi).into())]);
    let items = object([
        ("description", doc.into()),
        ("items", item.into()),
        ("type", "array".into()),
    ]);
    let properties = object([
        ("apiVersion", string_schema(API_VERSION)),
        ("items", items.into()),
        ("kind", string_schema(KIND)),
        ("metadata", reference(LIST_META, LIST_METADATA, openapi)),
    ]);
    let mut out = object([
        (
            "description",
            format!("{} is a list of {}", spec.names.list_kind, spec.names.kind).into(),
        ),
        ("properties", properties.into()),
        ("required", vec!["items"].into()),
        ("type", "object".into()),
    ]);
    identify(&mut out, definition, version, &spec.names.list_kind);
    out.into()
}

/// Returns whether objects of a version are merged by its schema. Otherwise objects are merged field by field
/// and lists are atomic: kube-apiserver creates no types from unusable schemas, and none for a CRD that has a
/// list without `items`.
pub fn merges_by_schema(spec: &Spec, version: &CrdVersion) -> bool {
    let is_read = |s: &Schema<'_>| s.unsupported().is_none() && !crate::definition::has_unknown_type(*s);
    let own = spec.schema_of(version).map(|s| Schema::new(s));
    own.is_some_and(|s| is_read(&s)) && !spec.schemas().filter(is_read).any(has_list_without_items)
}

/// Returns whether a list outside junctors has no `items`.
fn has_list_without_items(s: Schema<'_>) -> bool {
    let mut below = s
        .properties()
        .map(|(_, s)| s)
        .chain(s.additional_schema())
        .chain(s.item());
    (s.ty() == "array" && s.item().is_none()) || below.any(has_list_without_items)
}

/// Returns whether a schema is published: only structural ones are.
fn is_publishable(s: Schema<'_>) -> bool {
    s.unsupported().is_none()
        && !crate::definition::has_unknown_type(s)
        && crate::definition::structural_errors(s, &Path::ROOT).is_empty()
}

fn identify(out: &mut Map, definition: &Definition, version: &CrdVersion, kind: &Str) {
    let spec = &definition.spec;
    let gvk = object([
        ("group", spec.group.clone().into()),
        ("kind", kind.clone().into()),
        ("version", version.name.clone().into()),
    ]);
    out.insert("x-kubernetes-group-version-kind", Value::Array(vec![gvk.into()]));
    let fields = spec.selectable_fields_of(version);
    if !fields.is_empty() {
        let fields = fields.iter().map(|path| {
            // Field selectors have no leading dot.
            let path = path.strip_prefix('.').unwrap_or(path);
            object([("fieldPath", path.into())]).into()
        });
        out.insert("x-kubernetes-selectable-fields", Value::Array(fields.collect()));
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Map {
    Map::from_iter(members)
}

fn string_schema(description: &str) -> Value {
    object([("description", description.into()), ("type", "string".into())]).into()
}

fn reference_path(name: &str, openapi: OpenApiVersion) -> String {
    match openapi {
        OpenApiVersion::V3 => format!("#/components/schemas/{name}"),
        OpenApiVersion::V2 => format!("#/definitions/{name}"),
    }
}

/// A reference with a description, which OpenAPI v3 does not allow side by side.
fn reference(name: &str, description: &str, openapi: OpenApiVersion) -> Value {
    let target = Value::from(reference_path(name, openapi));
    match openapi {
        OpenApiVersion::V2 => object([("$ref", target), ("description", description.into())]).into(),
        OpenApiVersion::V3 => {
            let target = object([("$ref", target)]);
            let all_of = Value::Array(vec![target.into()]);
            object([("allOf", all_of), ("description", description.into())]).into()
        }
    }
}

/// Edits the properties of a schema, creating them if absent.
fn edit_properties(schema: &mut Map, edit: impl FnOnce(&mut Map)) {
    let mut properties = schema
        .remove("properties")
        .and_then(Value::into_object)
        .unwrap_or_default();
    edit(&mut properties);
    schema.insert("properties", properties.into());
}

/// Calls `each` with every schema of values directly below a schema.
fn children(schema: &mut Map, mut each: impl FnMut(&mut Map)) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties
            .iter_mut()
            .filter_map(|(_, s)| s.as_object_mut())
            .for_each(&mut each);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(s) = schema.get_mut(key).and_then(Value::as_object_mut) {
            each(s);
        }
    }
}

/// Expresses int-or-string and unions in standard keywords, in a schema and all schemas below it.
fn unfold(mut schema: Map) -> Map {
    // First, before the steps below add junctors of their own.
    junctors(&mut schema, plain_nested);
    unfold_int_or_string(&mut schema);
    unfold_unions(&mut schema);
    children(&mut schema, |s| *s = unfold(std::mem::take(s)));
    schema
}

/// Calls `f` with every schema in the junctors of a schema.
fn junctors(schema: &mut Map, f: fn(&mut Map)) {
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let nested = schema.get_mut(junctor).and_then(Value::as_array_mut);
        nested
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
            .for_each(f);
    }
    if let Some(nested) = schema.get_mut("not").and_then(Value::as_object_mut) {
        f(nested);
    }
}

/// Junctors do not publish `additionalProperties`.
fn plain_nested(schema: &mut Map) {
    schema.remove("additionalProperties");
    junctors(schema, plain_nested);
    children(schema, plain_nested);
}

fn unfold_int_or_string(schema: &mut Map) {
    let view = Value::from(schema.clone());
    let view = Schema::new(&view);
    if !view.flag("x-kubernetes-int-or-string")
        || crate::definition::spells_int_or_string(view)
        || view
            .schemas("allOf")
            .next()
            .is_some_and(crate::definition::spells_int_or_string)
    {
        return;
    }
    let types = ["integer", "string"].map(|t| Value::from(object([("type", t.into())])));
    let types = Value::Array(types.into());
    if schema.contains_key("anyOf") {
        // kube-apiserver puts this condition first; unions are unknown to it and come last.
        require(schema, object([("anyOf", types)]), InsertAt::First);
    } else {
        schema.insert("anyOf", types);
    }
}

/// Expresses unions: exactly one member is set, and the discriminator names it.
fn unfold_unions(schema: &mut Map) {
    // Copied, because the loop edits the schema.
    let unions = schema
        .get("x-kubernetes-unions")
        .and_then(Value::as_array)
        .unwrap_or_default()
        .to_vec();
    for union in &unions {
        let union = Schema::new(union);
        let fields = union
            .get("fields")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        let one_of = fields
            .keys()
            .map(|name| object([("required", vec![name.clone()].into())]).into());
        let one_of = Value::Array(one_of.collect());
        if schema.contains_key("oneOf") {
            require(schema, object([("oneOf", one_of)]), InsertAt::Last);
        } else {
            schema.insert("oneOf", one_of);
        }
        let discriminator = union.string("discriminator");
        if discriminator.is_empty() {
            continue;
        }
        edit_properties(schema, |properties| {
            let property = properties.get_or_insert_with(discriminator, || Map::new().into());
            if let Some(property) = property.as_object_mut() {
                // A type or enumeration that the CRD declares takes precedence.
                property.get_or_insert_with("type", || "string".into());
                property.get_or_insert_with("enum", || Value::Array(fields.values().cloned().collect()));
            }
        });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InsertAt {
    First,
    Last,
}

/// Adds a condition to `allOf`.
fn require(schema: &mut Map, condition: Map, position: InsertAt) {
    let all_of = schema.get_or_insert_with("allOf", || Value::Array(Vec::new()));
    if let Some(all_of) = all_of.as_array_mut() {
        let at = if position == InsertAt::First {
            0
        } else {
            all_of.len()
        };
        all_of.insert(at, condition.into());
    }
}

/// Adds the fields of embedded resources. OpenAPI v2 clients take listed properties for the complete list, so
/// resources with unknown fields get none there.
fn embed(schema: &mut Map, openapi: OpenApiVersion) {
    children(schema, |s| embed(s, openapi));
    let is = |schema: &Map, key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    if !is(schema, "x-kubernetes-embedded-resource")
        || (openapi == OpenApiVersion::V2 && is(schema, "x-kubernetes-preserve-unknown-fields"))
    {
        return;
    }
    edit_properties(schema, |properties| {
        properties.insert("apiVersion", string_schema(EMBEDDED_API_VERSION));
        properties.insert("kind", string_schema(EMBEDDED_KIND));
        properties.insert("metadata", reference(OBJECT_META, METADATA, openapi));
    });
    let required = schema.get_or_insert_with("required", || Value::Array(Vec::new()));
    if let Some(required) = required.as_array_mut() {
        for name in ["kind", "apiVersion"] {
            if !required.contains(&name.into()) {
                required.push(name.into());
            }
        }
    }
}
