//! Finding a path in a YAML text.

use super::compose::{NodeId, NodeKind, YamlDocument, compose};
use super::readable;
use super::resolve::{ResolvedScalar, resolve};
use crate::position::member_name;
use crate::{Limits, PathBuf, Segment};

/// For each path, the line and column, from zero, of its last step that is in the first document of the text.
pub(crate) fn locate(text: &[u8], paths: &[PathBuf], limits: Limits) -> Option<Vec<Option<(usize, usize)>>> {
    let text = readable(text).ok()?;
    let document = compose(&text, limits).ok()??;
    let find = |path: &PathBuf| {
        let (mut node, mut shown) = (document.root, document.root);
        for segment in path.segments() {
            let Some((at, next)) = step(&document, node, segment) else {
                break;
            };
            (shown, node) = (at, next);
        }
        let mark = document.node(shown)?.mark;
        Some((mark.line, mark.column))
    };
    Some(paths.iter().map(find).collect())
}

/// The node to show for a step, and the node that it leads to.
fn step(document: &YamlDocument<'_>, from: NodeId, segment: Segment<'_>) -> Option<(NodeId, NodeId)> {
    match (&document.node(from)?.kind, segment) {
        (NodeKind::Alias { to, .. }, _) if *to != from => {
            // An alias to an alias cannot be written, so this goes one level down only.
            match &document.node(*to)?.kind {
                NodeKind::Alias { .. } => None,
                _ => step(document, *to, segment),
            }
        }
        (NodeKind::Sequence(items), Segment::Index(index)) => items.get(index).map(|item| (*item, *item)),
        (NodeKind::Mapping(members), _) => {
            let name = member_name(segment)?;
            members
                .iter()
                .rev()
                .copied()
                .find(|(key, _)| key_is(document, *key, name))
        }
        _ => None,
    }
}

fn key_is(document: &YamlDocument<'_>, key: NodeId, name: &str) -> bool {
    match document.node(key).map(|n| &n.kind) {
        Some(NodeKind::ResolvedScalar { value, tag, implicit }) => {
            value == name
                || match resolve(value, tag.as_deref(), *implicit) {
                    Ok(ResolvedScalar::Bool(b)) => name == if b { "true" } else { "false" },
                    Ok(ResolvedScalar::Int(i)) => i.to_string() == name,
                    _ => false,
                }
        }
        _ => false,
    }
}
