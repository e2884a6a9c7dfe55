//! What the recognizer has seen, mistakes and all.

use super::grammar::{Form, Part, Rule};
use crate::syntax::token::{Token, TokenKind};

/// Identifies a node of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) usize);

/// A token in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) token: Token,
    /// Whether it is not in the source but was made up in recovery.
    pub(super) missing: bool,
}

impl Leaf {
    pub(super) fn text(self, source: &str) -> &str {
        if self.missing {
            "<missing undefined>"
        } else {
            self.token.text(source)
        }
    }

    pub(super) fn kind(self) -> TokenKind {
        self.token.kind
    }

    pub(super) fn offset(self) -> u32 {
        self.token.offset
    }
}

/// A part of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Child {
    Leaf(Leaf),
    Node(NodeId),
}

/// A rule that was entered.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) rule: Rule,
    pub(super) form: Form,
    /// Where it begins, in code points.
    pub(super) offset: u32,
    pub(super) parts: Vec<(Part, Child)>,
}

impl Node {
    /// The leaves that are this part of the node.
    pub(super) fn leaves(&self, part: Part) -> impl Iterator<Item = Leaf> {
        self.parts.iter().filter_map(move |(p, child)| match child {
            Child::Leaf(leaf) if *p == part => Some(*leaf),
            _ => None,
        })
    }

    /// The nodes that are this part of the node.
    pub(super) fn nodes(&self, part: Part) -> impl Iterator<Item = NodeId> {
        self.parts.iter().filter_map(move |(p, child)| match child {
            Child::Node(node) if *p == part => Some(*node),
            _ => None,
        })
    }

    pub(super) fn leaf(&self, part: Part) -> Option<Leaf> {
        self.leaves(part).next()
    }

    pub(super) fn node(&self, part: Part) -> Option<NodeId> {
        self.nodes(part).next()
    }
}

/// The nodes; the root is the first.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(super) const ROOT: NodeId = NodeId(0);

    pub(super) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id.0)
    }
}
