//! The shape of JSON values that come in from outside: what a schema says about a place, as far as expressions
//! can see it.
//!
//! A shape is both the checker's source of types (see [`Shape::ty`]) and the program's guide for reading a
//! borrowed JSON value at run time: which conversion a format asks for, how lists compare, under which JSON name a
//! field stands. It travels beside the value as a reference; values are never wrapped or copied.
//! Shapes are immutable and shared: equal sub-schemas of all definitions may be one shape.

use crate::types::{CelType, ObjectType};
use std::sync::Arc;

/// What a schema says about a place.
#[derive(Debug, PartialEq)]
pub struct Shape {
    /// The kind of value.
    pub kind: ShapeKind,
    /// Whether `null` is a value here (and not an error).
    pub nullable: bool,
    /// The fewest bytes that a value here takes in a request.
    pub min_serialized_size: u64,
    /// The largest size (characters, bytes, elements) that cost estimation assumes; 0 where a size has no meaning.
    pub max_elements: u64,
}

/// The kind of value at a place.
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
    /// Any JSON value.
    Dyn,
    /// A list.
    List {
        /// What its elements are.
        element: Arc<Shape>,
        /// How it compares and adds.
        list_type: ListType,
    },
    /// A map from strings.
    Map {
        /// What its values are.
        value: Arc<Shape>,
    },
    /// An object with declared fields.
    Object {
        /// The fields, sorted by their name in expressions.
        fields: Box<[ShapeField]>,
        /// Whether undeclared fields may stand beside them: they take part in equality alone.
        preserve_unknown: bool,
    },
}

/// How a list compares and adds (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// In order, as a whole.
    Atomic,
    /// Without order; every element once.
    Set,
    /// By keys; the JSON names of the key fields.
    Map(Box<[Box<str>]>),
}

/// A declared field.
#[derive(Debug, PartialEq)]
pub struct ShapeField {
    /// Its name in expressions (escaped where the JSON name is no identifier).
    pub name: Box<str>,
    /// Its name in JSON.
    pub json: Box<str>,
    /// What it holds.
    pub shape: Arc<Shape>,
}

/// Whether a word cannot be an identifier; a field of such a name is escaped (`__namespace__`).
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null" | "in") || crate::syntax::RESERVED.contains(&word)
}

impl Shape {
    /// A place of which nothing is known but what stands there: never `null`, and of any size.
    pub fn of_kind(kind: ShapeKind) -> Arc<Shape> {
        Arc::new(Shape {
            kind,
            nullable: false,
            min_serialized_size: 1,
            max_elements: u64::MAX,
        })
    }

    /// A place for an object with these fields, which have one name in JSON and in expressions.
    pub fn object<'n>(fields: impl IntoIterator<Item = (&'n str, Arc<Shape>)>) -> Arc<Shape> {
        let mut fields: Vec<ShapeField> = fields
            .into_iter()
            .map(|(name, shape)| ShapeField {
                name: name.into(),
                json: name.into(),
                shape,
            })
            .collect();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Shape::of_kind(ShapeKind::Object {
            fields: fields.into(),
            preserve_unknown: false,
        })
    }

    /// A declared field by its name in expressions.
    pub fn field(&self, name: &str) -> Option<&ShapeField> {
        let ShapeKind::Object { fields, .. } = &self.kind else {
            return None;
        };
        fields
            .binary_search_by(|f| f.name.as_ref().cmp(name))
            .ok()
            .and_then(|i| fields.get(i))
    }

    /// Whether a JSON object is a value of this shape.
    pub fn is_keyed(&self) -> bool {
        matches!(
            self.kind,
            ShapeKind::Object { .. } | ShapeKind::Map { .. } | ShapeKind::Dyn
        )
    }

    /// A declared field by the name that an expression selects: its own, or a reserved word in its raw form
    /// (`namespace` for the field `__namespace__`).
    pub fn select(&self, name: &str) -> Option<&ShapeField> {
        self.field(name).or_else(|| {
            is_reserved(name)
                .then(|| self.field(&format!("__{name}__")))
                .flatten()
        })
    }

    /// The type of a value of this shape that stands at the place `name` (`selfType.spec`): object types are named
    /// after their place, `.@idx` for the elements of a list and `.@elem` for the values of a map.
    pub fn ty(self: &Arc<Self>, name: &str) -> CelType {
        match &self.kind {
            ShapeKind::Bool => CelType::Bool,
            ShapeKind::Int => CelType::Int,
            ShapeKind::Double => CelType::Double,
            ShapeKind::String => CelType::String,
            ShapeKind::Bytes => CelType::Bytes,
            ShapeKind::Date | ShapeKind::DateTime => CelType::Timestamp,
            ShapeKind::Duration => CelType::Duration,
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
