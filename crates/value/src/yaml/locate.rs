//! Finding a path in a YAML text.

use super::compose::{Document, NodeId, NodeKind, compose};
use super::readable;
use super::resolve::{Scalar, resolve};
use crate::position::member_name;
use crate::{Limits, Segment};

/// The line and column, from zero, of the last step of the path that is in the first document of the text.
pub(crate) fn locate<'p>(
    text: &[u8],
    path: impl Iterator<Item = Segment<'p>>,
    limits: Limits,
) -> Option<(usize, usize)> {
    let text = readable(text).ok()?;
    let document = compose(&text, limits).ok()??;
    let mut node = document.root;
    let mut shown = document.root;
    for segment in path {
        let Some((at, next)) = step(&document, node, segment) else {
            break;
        };
        (shown, node) = (at, next);
    }
    let mark = document.node(shown)?.mark;
    Some((mark.line, mark.column))
}

/// The node to show for a step, and the node that it leads to.
fn step(document: &Document<'_>, from: NodeId, segment: Segment<'_>) -> Option<(NodeId, NodeId)> {
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

fn key_is(document: &Document<'_>, key: NodeId, name: &str) -> bool {
    match document.node(key).map(|n| &n.kind) {
        Some(NodeKind::Scalar { value, tag, implicit }) => {
            value == name
                || match resolve(value, tag.as_deref(), *implicit) {
                    Ok(Scalar::Bool(b)) => name == if b { "true" } else { "false" },
                    Ok(Scalar::Int(i)) => i.to_string() == name,
                    _ => false,
                }
        }
        _ => false,
    }
}
