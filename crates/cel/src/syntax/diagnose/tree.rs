//! The parse tree, including errors.

use super::grammar::{AltLabel, ChildRole, GrammarRule};
use crate::syntax::token::{Token, TokenKind};

/// Identifies a node of a [`ParseTree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParseNodeId(pub(super) usize);

/// A token in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) token: Token,
    /// True if recovery inserted it and it is not in the source.
    pub(super) missing: bool,
}

impl Leaf {
    pub(super) fn text(self, source: &str) -> &str {
        if self.missing {
            // ANTLR's text of an inserted token without a literal name. Only names are read from inserted tokens.
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

/// A child of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Child {
    Leaf(Leaf),
    ParseNode(ParseNodeId),
}

/// An application of a rule.
#[derive(Debug)]
pub(super) struct ParseNode {
    pub(super) rule: GrammarRule,
    pub(super) label: AltLabel,
    /// The start in code points.
    pub(super) offset: u32,
    pub(super) parts: Vec<(ChildRole, Child)>,
}

impl ParseNode {
    /// The leaves with this role.
    pub(super) fn leaves(&self, role: ChildRole) -> impl Iterator<Item = Leaf> {
        self.parts.iter().filter_map(move |(p, child)| match child {
            Child::Leaf(leaf) if *p == role => Some(*leaf),
            _ => None,
        })
    }

    /// The child nodes with this role.
    pub(super) fn nodes(&self, role: ChildRole) -> impl Iterator<Item = ParseNodeId> {
        self.parts.iter().filter_map(move |(p, child)| match child {
            Child::ParseNode(node) if *p == role => Some(*node),
            _ => None,
        })
    }

    pub(super) fn leaf(&self, role: ChildRole) -> Option<Leaf> {
        self.leaves(role).next()
    }

    pub(super) fn node(&self, role: ChildRole) -> Option<ParseNodeId> {
        self.nodes(role).next()
    }
}

/// The nodes; the root is the first.
#[derive(Debug, Default)]
pub(super) struct ParseTree {
    nodes: Vec<ParseNode>,
}

impl ParseTree {
    pub(super) const ROOT: ParseNodeId = ParseNodeId(0);

    pub(super) fn add(&mut self, node: ParseNode) -> ParseNodeId {
        self.nodes.push(node);
        ParseNodeId(self.nodes.len() - 1)
    }

    pub(super) fn get(&self, id: ParseNodeId) -> Option<&ParseNode> {
        self.nodes.get(id.0)
    }

    pub(super) fn get_mut(&mut self, id: ParseNodeId) -> Option<&mut ParseNode> {
        self.nodes.get_mut(id.0)
    }
}
