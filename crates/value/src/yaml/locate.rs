//! Finds paths in a YAML text.

use super::compose::{NodeId, NodeKind, YamlDocument, compose};
use super::fast_path::{self, Builder, Place};
use super::readable;
use super::resolve::{ResolvedScalar, resolve};
use super::scan::Style;
use crate::position::{PathTree, TreeStep};
use crate::{Limits, PathBuf};
use std::borrow::Cow;

/// For each path, the zero-based line and column of its last segment that exists in the first document of the
/// text.
pub(crate) fn locate(text: &[u8], paths: &[&PathBuf], limits: Limits) -> Option<Vec<Option<Place>>> {
    let text = readable(text).ok()?;
    let mut finder = PlaceFinder {
        tree: PathTree::new(paths),
        here: Some(PathTree::<Place>::ROOT),
    };
    if fast_path::read(&text, limits, &mut finder).is_some() {
        return Some(finder.tree.into_places());
    }
    locate_scanned(&text, paths, limits)
}

/// The same with the scanner, which reads all of YAML.
pub(super) fn locate_scanned(text: &str, paths: &[&PathBuf], limits: Limits) -> Option<Vec<Option<Place>>> {
    let document = compose(text, limits).ok()??;
    let find = |path: &&PathBuf| {
        let (mut node, mut shown) = (document.root, document.root);
        for segment in path.segments() {
            let Some((at, next)) = step(&document, node, segment.into()) else {
                break;
            };
            (shown, node) = (at, next);
        }
        let mark = document.node(shown)?.mark;
        Some((mark.line, mark.column))
    };
    Some(paths.iter().map(find).collect())
}

/// Finds the places of paths on the fast path.
struct PlaceFinder<'p> {
    tree: PathTree<'p, Place>,
    /// The node of the tree for the current value; `None` if no path leads there.
    here: Option<usize>,
}

impl PlaceFinder<'_> {
    fn go(&mut self, from: Option<usize>, step: TreeStep<'_>, at: Place) {
        self.here = from.and_then(|from| self.tree.visit(from, step, at));
    }
}

impl Builder for PlaceFinder<'_> {
    type Node = ();
    /// The node to return to.
    type Key = Option<usize>;
    /// The node to return to, and the index of the next element.
    type Frame = (Option<usize>, usize);
    const PLACES: bool = true;

    fn root(&mut self, at: Place) {
        self.tree.visit_root(at);
    }

    fn open(&mut self) -> Self::Frame {
        (self.here, 0)
    }

    fn begin_member(&mut self, key: Cow<'_, str>, at: Place) -> Self::Key {
        let parent = self.here;
        self.go(parent, TreeStep::Name(&key), at);
        parent
    }

    fn member(&mut self, parent: Self::Key, (): ()) {
        self.here = parent;
    }

    fn mapping(&mut self, _: Self::Frame) -> Option<()> {
        Some(())
    }

    fn begin_element(&mut self, (parent, next): &mut Self::Frame, at: Place) {
        self.go(*parent, TreeStep::Index(*next), at);
        *next += 1;
    }

    fn element(&mut self, (): ()) {}

    fn sequence(&mut self, (parent, _): Self::Frame) {
        self.here = parent;
    }

    fn scalar(&mut self, _: Cow<'_, str>, _: Style) -> Option<()> {
        Some(())
    }
}

/// Returns the node to point at for a segment, and the node that the segment leads to.
fn step(document: &YamlDocument<'_>, from: NodeId, segment: TreeStep<'_>) -> Option<(NodeId, NodeId)> {
    match (&document.node(from)?.kind, segment) {
        (NodeKind::Alias { to, .. }, _) if *to != from => {
            // YAML has no alias to an alias, so one level suffices.
            match &document.node(*to)?.kind {
                NodeKind::Alias { .. } => None,
                _ => step(document, *to, segment),
            }
        }
        (NodeKind::Sequence(items), TreeStep::Index(index)) => items.get(index).map(|item| (*item, *item)),
        (NodeKind::Mapping(members), TreeStep::Name(name)) => members
            .iter()
            // Of repeated keys the last one counts.
            .rev()
            .copied()
            .find(|(key, _)| key_is(document, *key, name)),
        _ => None,
    }
}

fn key_is(document: &YamlDocument<'_>, key: NodeId, name: &str) -> bool {
    match document.node(key).map(|n| &n.kind) {
        Some(NodeKind::ResolvedScalar { value, tag, implicit }) => {
            value == name
                // Paths name keys as the decoded document has them: `yes` is `true` there.
                || match resolve(value, tag.as_deref(), *implicit) {
                    Ok(ResolvedScalar::Bool(b)) => name == if b { "true" } else { "false" },
                    Ok(ResolvedScalar::Int(i)) => i.to_string() == name,
                    _ => false,
                }
        }
        _ => false,
    }
}
