//! What expressions see, on the way down a schema.

use super::escape::escape;
use super::shape::Shapes;
use crate::structural::Structural;
use scantling_cel::shape::{Kind, Shape};
use std::sync::Arc;

/// What expressions see of the values at a node of a schema: a shape, or nothing at all.
///
/// The view of a child is part of its parent's: within `metadata`, only names are seen.
#[derive(Clone, Debug)]
pub struct View(Option<Arc<Shape>>);

impl View {
    /// The view of whole objects.
    pub fn of_resource(schema: &Structural, shapes: &mut Shapes) -> Self {
        View(shapes.of_resource(schema))
    }

    /// The view of values below the root, seen on their own.
    pub fn of(schema: &Arc<Structural>, shapes: &mut Shapes) -> Self {
        View(shapes.of(schema))
    }

    /// The shape; `None` where expressions see nothing.
    pub fn shape(&self) -> Option<&Arc<Shape>> {
        self.0.as_ref()
    }

    /// The view of a field. A field whose name is no identifier has one of its own, which its parent does not show.
    #[must_use]
    pub fn property(&self, name: &str, schema: &Arc<Structural>, shapes: &mut Shapes) -> Self {
        View(match (&self.0, escape(name)) {
            (None, _) => None,
            (Some(_), None) => shapes.of(schema),
            (Some(shape), Some(name)) => shape.field(&name).map(|field| Arc::clone(&field.shape)),
        })
    }

    /// The view of the elements of a list, or of the values of a map.
    #[must_use]
    pub fn entry(&self) -> Self {
        View(match self.0.as_ref().map(|shape| &shape.kind) {
            Some(Kind::List { element: entry, .. } | Kind::Map { value: entry }) => Some(Arc::clone(entry)),
            _ => None,
        })
    }
}
