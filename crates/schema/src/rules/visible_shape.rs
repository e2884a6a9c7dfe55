//! The shapes that expressions see, on the way down a schema.

use super::escape::escape;
use super::shape::Shapes;
use crate::structural::Structural;
use scantling_cel::shape::{Shape, ShapeKind};
use std::sync::Arc;

/// What expressions see of the values at a schema node: a shape, or nothing.
///
/// The view of a child is part of its parent's view, if the parent shows it: within `metadata`, only names
/// are visible.
#[derive(Clone, Debug)]
pub struct VisibleShape(Result<Arc<Shape>, Unseen>);

/// The reason why expressions do not see a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unseen {
    /// Its schema, or one above it, has no shape.
    NoShape,
    /// It is an entry of a value whose shape has no entries.
    NoEntries,
}

impl VisibleShape {
    /// The view of whole objects.
    pub fn of_resource(schema: &Structural, shapes: &mut Shapes) -> Self {
        VisibleShape(shapes.of_resource(schema).ok_or(Unseen::NoShape))
    }

    /// The view of values below the root on their own.
    pub fn of_schema(schema: &Arc<Structural>, shapes: &mut Shapes) -> Self {
        VisibleShape(shapes.of_schema(schema).ok_or(Unseen::NoShape))
    }

    /// The shape; `None` if expressions see nothing.
    pub fn shape(&self) -> Option<&Arc<Shape>> {
        self.0.as_ref().ok()
    }

    /// The shape, or kube-apiserver's error.
    pub(super) fn shape_or_problem(&self) -> Result<&Arc<Shape>, &'static str> {
        self.0.as_ref().map_err(|unseen| match unseen {
            Unseen::NoShape => {
                "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                 convert structural schema to CEL declarations"
            }
            Unseen::NoEntries => "failed to convert to declType for CEL validation rules",
        })
    }

    /// The view of a field. A field that its parent does not show is viewed on its own.
    #[must_use]
    pub fn property(&self, name: &str, schema: &Arc<Structural>, shapes: &mut Shapes) -> Self {
        let Ok(shape) = &self.0 else {
            return self.clone();
        };
        // A name that cannot be escaped is invisible from above, but its own rules are evaluated.
        let shown = escape(name).and_then(|name| shape.field(&name).map(|field| Arc::clone(&field.shape)));
        match shown {
            Some(shape) => VisibleShape(Ok(shape)),
            None => VisibleShape::of_schema(schema, shapes),
        }
    }

    /// The view of the elements of a list, or of the values of a map.
    #[must_use]
    pub fn entry(&self) -> Self {
        VisibleShape(match &self.0 {
            Err(problem) => Err(*problem),
            Ok(shape) => match &shape.kind {
                ShapeKind::List { element: entry, .. } | ShapeKind::Map { value: entry } => {
                    Ok(Arc::clone(entry))
                }
                _ => Err(Unseen::NoEntries),
            },
        })
    }
}
