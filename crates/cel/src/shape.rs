//! Shapes: the part of a schema that expressions can see.
//!
//! A shape gives the checker its types ([`Shape::ty`]) and tells the interpreter how to convert a borrowed JSON value:
//! the conversion of a format, the equality of lists, the JSON names of fields. It accompanies the value as a
//! reference, so that values are never wrapped or copied. Shapes are immutable and shared between equal schemas.

use crate::types::{CelType, ObjectType};
use std::sync::Arc;

/// The part of a schema node that expressions can see.
#[derive(Debug, PartialEq)]
pub struct Shape {
    /// The kind of value.
    pub kind: ShapeKind,
    /// True if `null` is a valid value.
    pub nullable: bool,
    /// The minimum size of a value in a request, in bytes.
    pub min_serialized_size: u64,
    /// The maximum size (characters, bytes, elements) for cost estimation; 0 for values without a size.
    pub max_elements: u64,
}

/// The kind of value.
#[derive(Debug, PartialEq)]
pub enum ShapeKind {
    /// A boolean.
    Bool,
    /// An integer.
    Int,
    /// A number: a JSON integer reads as a double, too.
    Double,
    /// A string.
    String,
    /// A base64 string, read as bytes.
    Bytes,
    /// A `date` string, read as a timestamp.
    Date,
    /// A `date-time` string, read as a timestamp.
    DateTime,
    /// A `duration` string.
    Duration,
    /// An integer or a string, known only at run time.
    IntOrString,
    /// A quantity. Only the checker knows this shape.
    Quantity,
    /// Any JSON value.
    Dyn,
    /// A list.
    List {
        /// The shape of the elements.
        element: Arc<Shape>,
        /// The list type, which determines equality and concatenation.
        list_type: ListType,
    },
    /// A map from strings.
    Map {
        /// The shape of the values.
        value: Arc<Shape>,
    },
    /// An object with declared fields.
    Object {
        /// The fields, sorted by their name in expressions.
        fields: Box<[ShapeField]>,
        /// True if undeclared fields are preserved. They only take part in equality.
        preserve_unknown: bool,
    },
}

/// The list type (`x-kubernetes-list-type`), which determines equality and concatenation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Ordered.
    Atomic,
    /// Unordered, with unique elements.
    Set,
    /// Keyed by these fields, by their names in expressions.
    Map(Box<[Box<str>]>),
}

/// A declared field.
#[derive(Debug, PartialEq)]
pub struct ShapeField {
    /// The name in expressions, escaped if the JSON name is not an identifier.
    pub name: Box<str>,
    /// The name in JSON.
    pub json: Box<str>,
    /// The shape of the value.
    pub shape: Arc<Shape>,
}

/// Returns whether a word is reserved. A field with such a name is escaped (`__namespace__`).
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || crate::syntax::RESERVED.contains(&word)
}

impl Shape {
    /// A shape without `null` and without size limits.
    pub fn of_kind(kind: ShapeKind) -> Arc<Shape> {
        Arc::new(Shape {
            kind,
            nullable: false,
            min_serialized_size: 1,
            max_elements: u64::MAX,
        })
    }

    /// An object shape whose fields have the same name in JSON and in expressions.
    pub fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Arc<Shape>)>) -> Arc<Shape> {
        let mut fields: Vec<ShapeField> = fields
            .into_iter()
            .map(|(name, shape)| ShapeField {
                name: name.into(),
                json: name.into(),
                shape,
            })
            .collect();
        // `field` searches by bisection.
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Shape::of_kind(ShapeKind::Object {
            fields: fields.into(),
            preserve_unknown: false,
        })
    }

    /// Looks up a field by its name in expressions.
    pub fn field(&self, name: &str) -> Option<&ShapeField> {
        let ShapeKind::Object { fields, .. } = &self.kind else {
            return None;
        };
        fields
            .binary_search_by(|f| f.name.as_ref().cmp(name))
            .ok()
            .and_then(|i| fields.get(i))
    }

    /// Returns whether a JSON object is a value of this shape.
    pub fn is_keyed(&self) -> bool {
        matches!(
            self.kind,
            ShapeKind::Object { .. } | ShapeKind::Map { .. } | ShapeKind::Dyn
        )
    }

    /// Looks up a field by the name in a selection, which may be an unescaped reserved word (`namespace` for the field
    /// `__namespace__`).
    pub fn select(&self, name: &str) -> Option<&ShapeField> {
        // The name as written wins, because shapes that are not from a schema have unescaped names.
        self.field(name).or_else(|| {
            is_reserved(name)
                .then(|| self.field(&format!("__{name}__")))
                .flatten()
        })
    }

    /// The type of a value of this shape. Object types are named after their path (`selfType.spec`), with `.@idx` for the
    /// elements of a list and `.@elem` for the values of a map.
    pub fn ty(self: &Arc<Self>, name: &str) -> CelType {
        match &self.kind {
            ShapeKind::Bool => CelType::Bool,
            ShapeKind::Int => CelType::Int,
            ShapeKind::Double => CelType::Double,
            ShapeKind::String => CelType::String,
            ShapeKind::Bytes => CelType::Bytes,
            ShapeKind::Date | ShapeKind::DateTime => CelType::Timestamp,
            ShapeKind::Duration => CelType::Duration,
            ShapeKind::Quantity => CelType::Message(crate::library::quantity::TYPE.into()),
            // CEL has no union types, so the checker leaves an int-or-string open.
            ShapeKind::IntOrString | ShapeKind::Dyn => CelType::Dyn,
            ShapeKind::List { element, .. } => CelType::List(Arc::new(element.ty(&format!("{name}.@idx")))),
            ShapeKind::Map { value } => {
                CelType::Map(Arc::new((CelType::String, value.ty(&format!("{name}.@elem")))))
            }
            ShapeKind::Object { .. } => CelType::Object(ObjectType {
                name: name.into(),
                shape: Arc::clone(self),
            }),
        }
    }
}
