//! Line and column of a path in its source text. It is computed only for errors that are shown, so decoding does
//! not pay for it.

use crate::{DecodeError, Limits, PathBuf, Segment, json, yaml};
use std::collections::BTreeMap;

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte offset.
    pub fn of_offset(text: &[u8], offset: usize) -> Position {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default());
        Position {
            line,
            column: column.chars().count() + 1,
        }
    }

    /// Returns the position of a decoding error, if known.
    pub fn of_error(text: &[u8], error: &DecodeError) -> Option<Position> {
        error.offset().map(|offset| Position::of_offset(text, offset))
    }

    /// Returns the position of a path in a JSON text: of the key for a field, of the value for an element. If
    /// the path leaves the document (a missing field), returns the position of the last segment that exists.
    pub fn in_json(text: &[u8], path: &PathBuf) -> Option<Position> {
        let found = Position::all_in_json(text, &[path]);
        found.into_iter().next().flatten()
    }

    /// The positions of several paths in a JSON text, which is read once.
    pub fn all_in_json(text: &[u8], paths: &[&PathBuf]) -> Vec<Option<Position>> {
        let offsets = json::locate_all(text, paths);
        let mut order: Vec<usize> = offsets.iter().flatten().copied().collect();
        order.sort_unstable();
        order.dedup();
        // One pass over the text, from offset to offset.
        let (mut at, mut position) = (0, Position { line: 1, column: 1 });
        let mut positions = BTreeMap::new();
        for offset in order {
            let part = text.get(at..offset).unwrap_or_default();
            let part_end = Position::of_offset(part, part.len());
            position = match part_end.line {
                1 => Position {
                    column: position.column + part_end.column - 1,
                    ..position
                },
                lines => Position {
                    line: position.line + lines - 1,
                    column: part_end.column,
                },
            };
            positions.insert(offset, position);
            at = offset;
        }
        let position = |offset: Option<usize>| positions.get(&offset?).copied();
        offsets.into_iter().map(position).collect()
    }

    /// Returns the position of a path in the first document of a YAML text; see [`Position::in_json`].
    pub fn in_yaml(text: &[u8], path: &PathBuf, limits: Limits) -> Option<Position> {
        let found = Position::all_in_yaml(text, &[path], limits);
        found.into_iter().next().flatten()
    }

    /// The positions of several paths in the first document of a YAML text, which is read once.
    pub fn all_in_yaml(text: &[u8], paths: &[&PathBuf], limits: Limits) -> Vec<Option<Position>> {
        let position = |(line, column)| Position {
            line: line + 1,
            column: column + 1,
        };
        match yaml::locate(text, paths, limits) {
            Some(found) => found.into_iter().map(|at| at.map(position)).collect(),
            None => vec![None; paths.len()],
        }
    }
}

/// A step of a path in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TreeStep<'p> {
    Name(&'p str),
    Index(usize),
}

impl<'p> From<Segment<'p>> for TreeStep<'p> {
    fn from(segment: Segment<'p>) -> Self {
        match segment {
            Segment::Field(name) | Segment::Key(name) => TreeStep::Name(name),
            Segment::Index(index) => TreeStep::Index(index),
        }
    }
}

/// Paths as a tree, which a walk over a document goes down at the same time to note their places.
pub(crate) struct PathTree<'p, P> {
    nodes: Vec<TreeNode<'p, P>>,
    /// The node of each path.
    ends: Vec<usize>,
}

struct TreeNode<'p, P> {
    parent: usize,
    children: BTreeMap<TreeStep<'p>, usize>,
    place: Option<P>,
}

impl<'p, P: Copy> PathTree<'p, P> {
    /// The node of the document itself.
    pub(crate) const ROOT: usize = 0;

    pub(crate) fn new(paths: &[&'p PathBuf]) -> Self {
        let node = |parent| TreeNode {
            parent,
            children: BTreeMap::new(),
            place: None,
        };
        let mut tree = PathTree {
            nodes: vec![node(Self::ROOT)],
            ends: Vec::with_capacity(paths.len()),
        };
        for path in paths {
            let mut here = Self::ROOT;
            for segment in path.segments() {
                let new = tree.nodes.len();
                let Some(parent) = tree.nodes.get_mut(here) else {
                    break;
                };
                let child = *parent.children.entry(segment.into()).or_insert(new);
                if child == new {
                    tree.nodes.push(node(here));
                }
                here = child;
            }
            tree.ends.push(here);
        }
        tree
    }

    /// Notes the place of the document.
    pub(crate) fn visit_root(&mut self, place: P) {
        if let Some(root) = self.nodes.get_mut(Self::ROOT) {
            root.place = Some(place);
        }
    }

    /// Goes down a step of the document and notes its place; `None` if no path has the step.
    pub(crate) fn visit(&mut self, from: usize, step: TreeStep<'_>, place: P) -> Option<usize> {
        let child = *self.nodes.get(from)?.children.get(&step)?;
        // Of repeated keys the last one counts.
        if self.nodes.get(child)?.place.is_some() {
            // What was found below the earlier occurrence is not part of the document.
            self.forget(child);
        }
        self.nodes.get_mut(child)?.place = Some(place);
        Some(child)
    }

    /// Returns whether paths lead further down than a node.
    pub(crate) fn has_children(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| !node.children.is_empty())
    }

    fn forget(&mut self, node: usize) {
        let Some(node) = self.nodes.get_mut(node) else {
            return;
        };
        node.place = None;
        let children: Vec<usize> = node.children.values().copied().collect();
        children.into_iter().for_each(|child| self.forget(child));
    }

    /// The place of each path: of its last step that is in the document.
    pub(crate) fn into_places(self) -> Vec<Option<P>> {
        let place = |end: &usize| {
            let mut here = *end;
            loop {
                let node = self.nodes.get(here)?;
                if node.place.is_some() || here == Self::ROOT {
                    return node.place;
                }
                here = node.parent;
            }
        };
        self.ends.iter().map(place).collect()
    }
}
