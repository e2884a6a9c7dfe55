//! Derives the shapes that expressions see from schemas.

use super::escape::escape;
use crate::structural::{self, Additional, Structural, ValueValidation};
use foldhash::HashMap;
use scantling_cel::shape::{ListType, Shape, ShapeField, ShapeKind};
use scantling_value::Value;
use std::sync::{Arc, Weak};

/// The maximum size of a request.
pub(super) const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;
/// The maximum length of a string in a request: the largest request without its quotes.
const MAX_TEXT: i64 = MAX_REQUEST_BYTES - 2;
/// The maximum length of an object's name.
const MAX_NAME: i64 = 253;

/// Derives shapes from schemas, and caches them by schema.
#[derive(Debug, Default)]
pub struct Shapes {
    /// By the address of the schema, which is valid while it is weakly held.
    known: HashMap<usize, (Weak<Structural>, Option<Arc<Shape>>)>,
}

impl Shapes {
    /// Creates an empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops the shapes of dropped schemas.
    pub fn sweep(&mut self) {
        self.known.retain(|_, (schema, _)| schema.strong_count() > 0);
    }

    /// The shape of whole objects.
    pub fn of_resource(&mut self, schema: &Structural) -> Option<Arc<Shape>> {
        self.derive(schema, ShapeScope::Resource).map(Arc::new)
    }

    /// The shape of a schema below the root; `None` if expressions cannot see such values.
    pub fn of_schema(&mut self, schema: &Arc<Structural>) -> Option<Arc<Shape>> {
        let address = Arc::as_ptr(schema).addr();
        // The address of a dropped schema may belong to another one.
        if let Some((known, shape)) = self.known.get(&address)
            && known.strong_count() > 0
        {
            return shape.clone();
        }
        let scope = if schema.is_embedded_resource() {
            ShapeScope::Resource
        } else {
            ShapeScope::Value
        };
        let shape = self.derive(schema, scope).map(Arc::new);
        self.known
            .insert(address, (Arc::downgrade(schema), shape.clone()));
        shape
    }

    fn derive(&mut self, schema: &Structural, scope: ShapeScope) -> Option<Shape> {
        if schema.is_int_or_string() {
            let max = max_length(schema).map_or(MAX_TEXT, in_bytes);
            return Some(shape(schema, ShapeKind::IntOrString, 1, max));
        }
        match schema.ty? {
            structural::Type::Array => self.list(schema),
            structural::Type::Object => match &schema.additional {
                Some(Additional::Schema(values)) => self.map(schema, values),
                _ => Some(self.object(schema, scope)),
            },
            structural::Type::String => Some(string_shape(schema)),
            structural::Type::Boolean => Some(shape(schema, ShapeKind::Bool, 4, 0)),
            structural::Type::Number => Some(shape(schema, ShapeKind::Double, 1, 0)),
            structural::Type::Integer => Some(shape(schema, ShapeKind::Int, 1, 0)),
        }
    }

    fn list(&mut self, schema: &Structural) -> Option<Shape> {
        let element = self.of_schema(schema.items.as_ref()?)?;
        let max = limits(schema).and_then(|v| v.max_items);
        let max = max.unwrap_or_else(|| fitting(element.min_serialized_size, 1));
        let list_type = match schema.list_type() {
            Some(structural::ListType::Set) => ListType::Set,
            Some(structural::ListType::Map) => ListType::Map(
                schema
                    .list_map_keys()
                    .iter()
                    // As on kube-apiserver, a name that cannot be escaped stays as it is.
                    .map(|key| escape(key).unwrap_or_else(|| key.to_string()).into())
                    .collect(),
            ),
            Some(structural::ListType::Atomic) | None => ListType::Atomic,
        };
        Some(shape(schema, ShapeKind::List { element, list_type }, 2, max))
    }

    fn map(&mut self, schema: &Structural, values: &Arc<Structural>) -> Option<Shape> {
        let value = self.of_schema(values)?;
        let max = limits(schema).and_then(|v| v.max_properties);
        // A key, its quotes, a colon and a comma.
        let max = max.unwrap_or_else(|| fitting(value.min_serialized_size, 6));
        Some(shape(schema, ShapeKind::Map { value }, 2, max))
    }

    fn object(&mut self, schema: &Structural, scope: ShapeScope) -> Shape {
        let declared = schema
            .properties
            .iter()
            .map(|(name, property)| (name.as_str(), property, self.of_schema(property)));
        let mut members: Vec<ShapeMember> = declared
            .filter_map(|(name, property, shape)| {
                Some(ShapeMember {
                    name,
                    shape: shape?,
                    has_default: has_default(property),
                })
            })
            .collect();
        if scope == ShapeScope::Resource && !declares_metadata(schema) {
            // Expressions see these fields in this form, whatever the schema declares.
            members.retain(|m| !matches!(m.name, "kind" | "apiVersion" | "metadata"));
            let plain = Arc::new(string_shape(&Structural::default()));
            for (name, shape) in [
                ("kind", Arc::clone(&plain)),
                ("apiVersion", plain),
                ("metadata", Arc::new(metadata(schema))),
            ] {
                members.push(ShapeMember {
                    name,
                    shape,
                    has_default: false,
                });
            }
        }
        let required = limits(schema).map_or(&[][..], |v| &v.required);
        let is_sent = |m: &&ShapeMember| !m.has_default && required.iter().any(|r| r.as_str() == m.name);
        // A name, its quotes, a colon, a comma and the value.
        let min = members.iter().filter(is_sent).fold(2, |sum, m| {
            sum + m.name.len() as i64 + m.shape.min_serialized_size as i64 + 4
        });
        let mut fields: Vec<ShapeField> = members
            .into_iter()
            .filter_map(|m| {
                Some(ShapeField {
                    name: escape(m.name)?.into(),
                    json: m.name.into(),
                    shape: m.shape,
                })
            })
            .collect();
        // Escaping changes the order of names.
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        let preserve_unknown =
            schema.preserves_unknown_fields() || matches!(schema.additional, Some(Additional::Any(true)));
        shape(
            schema,
            ShapeKind::Object {
                fields: fields.into(),
                preserve_unknown,
            },
            min,
            0,
        )
    }
}

struct ShapeMember<'s> {
    name: &'s str,
    shape: Arc<Shape>,
    has_default: bool,
}

/// The scope of a shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShapeScope {
    /// A whole or embedded object: expressions always see its `apiVersion`, `kind`, `metadata.name` and
    /// `metadata.generateName`.
    Resource,
    /// A part of an object.
    Value,
}

fn shape(schema: &Structural, kind: ShapeKind, min: i64, max: i64) -> Shape {
    Shape {
        kind,
        nullable: schema.nullable,
        min_serialized_size: u64::try_from(min).unwrap_or(0),
        max_elements: u64::try_from(max).unwrap_or(0),
    }
}

fn string_shape(schema: &Structural) -> Shape {
    let max = max_length(schema);
    match limits(schema).map_or("", |v| v.format.as_str()) {
        // Unlike text, base64 has one byte per character.
        "byte" => shape(schema, ShapeKind::Bytes, 2, max.unwrap_or(MAX_TEXT)),
        // The sizes of the shortest and the longest text, in kube-apiserver's estimate.
        "duration" => shape(schema, ShapeKind::Duration, 3, 32),
        "date" => shape(schema, ShapeKind::Date, 12, 12),
        "date-time" => shape(schema, ShapeKind::DateTime, 21, 32),
        _ => {
            let max = max
                .map(in_bytes)
                .or_else(|| longest_enum(schema))
                .unwrap_or(MAX_TEXT);
            shape(schema, ShapeKind::String, 2, max)
        }
    }
}

/// The metadata of a resource whose schema does not declare all fields that expressions may see.
fn metadata(resource: &Structural) -> Shape {
    let declared = resource.property("metadata");
    let name = |name: &'static str, longest: i64| {
        let limit = declared.and_then(|m| max_length(m.property(name)?));
        let max = in_bytes(limit.map_or(longest, |limit| limit.min(longest)));
        ShapeField {
            name: name.into(),
            json: name.into(),
            shape: Arc::new(shape(&Structural::default(), ShapeKind::String, 2, max)),
        }
    };
    // A generated name has at least one more character.
    let fields = [name("generateName", MAX_NAME - 1), name("name", MAX_NAME)];
    let kind = ShapeKind::Object {
        fields: fields.into(),
        preserve_unknown: false,
    };
    shape(&Structural::default(), kind, 2, 0)
}

/// Returns whether a schema declares the fields that expressions always see of a resource. Then they see
/// everything it declares.
pub(super) fn declares_metadata(schema: &Structural) -> bool {
    let is = |s: Option<&Arc<Structural>>, ty| s.is_some_and(|s| s.ty == Some(ty));
    let text = structural::Type::String;
    let metadata = schema.property("metadata");
    is(schema.property("kind"), text)
        && is(schema.property("apiVersion"), text)
        && is(metadata, structural::Type::Object)
        && metadata.is_some_and(|m| is(m.property("name"), text) && is(m.property("generateName"), text))
}

fn limits(schema: &Structural) -> Option<&ValueValidation> {
    schema.validation.as_deref()
}

fn max_length(schema: &Structural) -> Option<i64> {
    limits(schema).and_then(|v| v.max_length)
}

/// Converts a limit in characters to bytes; a character may take four.
fn in_bytes(characters: i64) -> i64 {
    characters.max(0).saturating_mul(4)
}

fn longest_enum(schema: &Structural) -> Option<i64> {
    let values = &limits(schema)?.enumeration;
    let lengths = values.iter().map(|v| v.0.as_str().map_or(0, str::len) as i64);
    lengths.max()
}

fn has_default(schema: &Structural) -> bool {
    schema
        .default
        .as_ref()
        .is_some_and(|json| !matches!(*json.0, Value::Null))
}

/// The number of entries that fit into a request, each with at least `size` and `overhead` bytes.
fn fitting(size: u64, overhead: u64) -> i64 {
    MAX_TEXT / i64::try_from(size.saturating_add(overhead)).unwrap_or(i64::MAX)
}
