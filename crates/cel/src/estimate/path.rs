//! Paths from a variable to a value within it.

use super::MapMembers;
use crate::shape::{Shape, ShapeKind};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A path: a variable, then fields, `@items`, `@values`, `@keys` and `@indices`. Empty if a value has no path.
///
/// Paths share storage like Go slices: extending a path writes into spare capacity and so overwrites the last segment of
/// another extension of the same path. kube-apiserver has this bug: in `l.all(x, x.a.all(y, y in x.b))`, it estimates as
/// many iterations of the inner loop as `x.b` has elements. Since CRDs are accepted by these numbers, the sharing is
/// reproduced.
#[derive(Clone, Debug, Default)]
pub(super) struct SizePath {
    storage: Option<Rc<RefCell<SegmentBuffer>>>,
    len: usize,
}

#[derive(Debug)]
struct SegmentBuffer {
    segments: Vec<Arc<str>>,
    /// The capacity. A longer path needs its own buffer.
    room: usize,
}

impl SizePath {
    /// The path of a variable.
    pub(super) fn variable(name: &str) -> Self {
        SizePath::default().join(name)
    }

    /// Appends a segment.
    pub(super) fn join(&self, segment: &str) -> Self {
        let len = self.len + 1;
        if let Some(storage) = &self.storage {
            let mut shared = storage.borrow_mut();
            if len <= shared.room {
                // Other paths that share this buffer lose their segments from here on.
                match shared.segments.get_mut(self.len) {
                    Some(old) => *old = segment.into(),
                    None => shared.segments.push(segment.into()),
                }
                drop(shared);
                return SizePath {
                    storage: Some(Rc::clone(storage)),
                    len,
                };
            }
        }
        let mut segments = self.segments();
        // A full buffer is copied, as Go's `append` does: from here on, this path shares nothing with the shorter one.
        segments.push(segment.into());
        let storage = SegmentBuffer {
            segments,
            // Go's `append` doubles small slices, so a path of three segments has room for a fourth.
            room: len.next_power_of_two(),
        };
        SizePath {
            storage: Some(Rc::new(RefCell::new(storage))),
            len,
        }
    }

    /// The path of the elements of a list, in its own buffer. `None` for the empty path.
    pub(super) fn elements(&self) -> Option<Self> {
        let mut segments = self.segments();
        if segments.is_empty() {
            return None;
        }
        segments.push("@items".into());
        let len = segments.len();
        let storage = Some(Rc::new(RefCell::new(SegmentBuffer { segments, room: len })));
        Some(SizePath { storage, len })
    }

    /// The maximum size of the value, if the schema bounds it.
    pub(super) fn size_in(&self, root: &Shape, members: MapMembers) -> Option<u64> {
        let segments = self.segments();
        // The first segment is the variable, `self` or `oldSelf`; both have the root shape.
        let (_, below) = segments.split_first()?;
        let mut place = SchemaCursor::Value(root);
        for segment in below {
            place = place.step(segment, members)?;
        }
        Some(match place {
            SchemaCursor::Value(shape) => shape.max_elements,
            // The length of a key is unbounded, and 0 means no size.
            SchemaCursor::Key => 0,
        })
    }

    fn segments(&self) -> Vec<Arc<str>> {
        self.storage.as_ref().map_or_else(Vec::new, |storage| {
            storage.borrow().segments.iter().take(self.len).cloned().collect()
        })
    }
}

enum SchemaCursor<'s> {
    Value(&'s Shape),
    Key,
}

impl<'s> SchemaCursor<'s> {
    fn step(&self, segment: &str, members: MapMembers) -> Option<SchemaCursor<'s>> {
        let SchemaCursor::Value(shape) = self else {
            return None;
        };
        match (segment, &shape.kind) {
            ("@items" | "@values", ShapeKind::List { element, .. }) => Some(SchemaCursor::Value(element)),
            // kube-apiserver does not compare the segment with the kind: both are "the element of the container".
            ("@items" | "@values", ShapeKind::Map { value }) => Some(SchemaCursor::Value(value)),
            ("@keys", ShapeKind::Map { .. }) => Some(SchemaCursor::Key),
            (_, ShapeKind::Map { value })
                if members == MapMembers::Attributes && matches!(value.kind, ShapeKind::Dyn) =>
            {
                Some(SchemaCursor::Value(value))
            }
            // A name that is not a declared field, such as `@indices`, ends the path: the size is unknown.
            _ => shape
                .field(segment)
                .map(|field| SchemaCursor::Value(&field.shape)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dotted(path: &SizePath) -> String {
        path.segments().join(".")
    }

    #[test]
    fn extended_paths_share_spare_capacity() {
        let element = SizePath::variable("self").join("l").join("@items");
        let a = element.join("a");
        assert_eq!(dotted(&a), "self.l.@items.a");
        let inner = a.join("@items");
        let b = element.join("b");
        assert_eq!(dotted(&b), "self.l.@items.b");
        // The buffer had capacity for a fourth segment, which `b` has overwritten; `inner` had moved to its
        // own buffer.
        assert_eq!(dotted(&a), "self.l.@items.b");
        assert_eq!(dotted(&inner), "self.l.@items.a.@items");
        assert_eq!(dotted(&element), "self.l.@items");
    }

    #[test]
    fn full_paths_are_copied() {
        let list = SizePath::variable("self").join("l");
        let (a, b) = (list.join("a"), list.join("b"));
        assert_eq!((dotted(&a), dotted(&b)), ("self.l.a".into(), "self.l.b".into()));
    }
}
