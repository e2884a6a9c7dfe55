//! The composer: turns tokens into a tree of nodes and resolves anchors.

use super::Problem;
use super::scan::{Mark, Scanner, Style, TokenKind, YamlToken};
use crate::Limits;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The index of a node in its document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) usize);

#[derive(Debug)]
pub(super) struct YamlNode<'a> {
    pub(super) kind: NodeKind<'a>,
    pub(super) mark: Mark,
}

#[derive(Debug)]
pub(super) enum NodeKind<'a> {
    ResolvedScalar {
        value: Cow<'a, str>,
        /// The tag in its long form, if any.
        tag: Option<String>,
        /// True if the text alone decides the type of the scalar.
        implicit: bool,
    },
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    Alias {
        name: &'a str,
        to: NodeId,
    },
}

/// A document as a tree.
#[derive(Debug)]
pub(super) struct YamlDocument<'a> {
    nodes: Vec<YamlNode<'a>>,
    pub(super) root: NodeId,
}

impl<'a> YamlDocument<'a> {
    pub(super) fn node(&self, id: NodeId) -> Option<&YamlNode<'a>> {
        self.nodes.get(id.0)
    }
}

/// Composes the first document of a text and does not read further. An empty text has no document.
pub(super) fn compose(text: &str, limits: Limits) -> Result<Option<YamlDocument<'_>>, Problem> {
    let mut composer = Composer {
        scanner: Scanner::new(text, limits),
        nodes: Vec::new(),
        anchors: BTreeMap::new(),
        tags: Vec::new(),
        depth: limits.depth,
    };
    let root = composer.document()?;
    Ok(root.map(|root| YamlDocument {
        nodes: composer.nodes,
        root,
    }))
}

/// The context of a node. Decides which kinds of collections it can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeContext {
    Block,
    /// The value of a block mapping: a sequence may have the indentation of the key.
    BlockValue,
    Flow,
}

struct Composer<'a> {
    scanner: Scanner<'a>,
    nodes: Vec<YamlNode<'a>>,
    anchors: BTreeMap<&'a str, NodeId>,
    /// Handles and prefixes from `%TAG`, then the default ones.
    tags: Vec<(&'a str, String)>,
    /// The number of levels that may still be opened.
    depth: usize,
}

/// The anchor and tag before a node's content.
#[derive(Default)]
struct Properties<'a> {
    anchor: Option<&'a str>,
    tag: Option<String>,
}

impl<'a> Composer<'a> {
    fn kind(&mut self) -> Result<&TokenKind<'a>, Problem> {
        Ok(&self.scanner.peek()?.kind)
    }

    /// Takes the token that was peeked at.
    fn take(&mut self) -> Result<YamlToken<'a>, Problem> {
        let mark = self.scanner.mark;
        self.scanner.peek()?;
        let token = self.scanner.take();
        token.ok_or_else(|| Problem::parser("did not find expected token", mark, mark))
    }

    fn add(&mut self, kind: NodeKind<'a>, mark: Mark) -> NodeId {
        self.nodes.push(YamlNode { kind, mark });
        NodeId(self.nodes.len() - 1)
    }

    fn empty(&mut self, mark: Mark) -> NodeId {
        let kind = NodeKind::ResolvedScalar {
            value: Cow::Borrowed(""),
            tag: None,
            implicit: true,
        };
        self.add(kind, mark)
    }

    fn document(&mut self) -> Result<Option<NodeId>, Problem> {
        let root = match self.kind()? {
            TokenKind::StreamEnd => return Ok(None),
            TokenKind::Version { .. } | TokenKind::TagDirective { .. } | TokenKind::DocumentStart => {
                self.directives()?;
                let token = self.take()?;
                if !matches!(token.kind, TokenKind::DocumentStart) {
                    let text = "did not find expected <document start>";
                    return Err(Problem::parser(text, token.start, Mark::default()));
                }
                let token = self.scanner.peek()?;
                let start = token.start;
                match token.kind {
                    TokenKind::Version { .. }
                    | TokenKind::TagDirective { .. }
                    | TokenKind::DocumentStart
                    | TokenKind::DocumentEnd
                    | TokenKind::StreamEnd => self.empty(start),
                    _ => self.node(NodeContext::Block)?,
                }
            }
            _ => {
                self.directives()?;
                self.node(NodeContext::Block)?
            }
        };
        // Errors in the following token belong to this document.
        self.scanner.peek()?;
        Ok(Some(root))
    }

    fn directives(&mut self) -> Result<(), Problem> {
        let mut version_seen = false;
        loop {
            let token = self.scanner.peek()?;
            let start = token.start;
            match &token.kind {
                TokenKind::Version { major, minor } => {
                    if version_seen {
                        let text = "found duplicate %YAML directive";
                        return Err(Problem::parser(text, start, Mark::default()));
                    }
                    // go-yaml reads only YAML 1.1.
                    if (*major, *minor) != (1, 1) {
                        let text = "found incompatible YAML document";
                        return Err(Problem::parser(text, start, Mark::default()));
                    }
                    version_seen = true;
                }
                TokenKind::TagDirective { handle, prefix } => {
                    let (handle, prefix) = (*handle, prefix.clone());
                    if self.tags.iter().any(|(h, _)| *h == handle) {
                        let text = "found duplicate %TAG directive";
                        return Err(Problem::parser(text, start, Mark::default()));
                    }
                    self.tags.push((handle, prefix));
                }
                _ => break,
            }
            self.take()?;
        }
        // Lookups take the first match, so a directive of the document overrides these.
        self.tags.push(("!", "!".into()));
        self.tags.push(("!!", super::resolve::TAG_PREFIX.into()));
        Ok(())
    }

    fn node(&mut self, place: NodeContext) -> Result<NodeId, Problem> {
        let token = self.scanner.peek()?;
        let start = token.start;
        if let TokenKind::Alias(name) = token.kind {
            // An anchor may be defined again; an alias refers to the last definition before it.
            let Some(&to) = self.anchors.get(name) else {
                return Err(Problem::plain(format!("unknown anchor '{name}' referenced")));
            };
            self.take()?;
            return Ok(self.add(NodeKind::Alias { name, to }, start));
        }
        let Properties { anchor, tag } = self.properties(start)?;

        let token = self.scanner.peek()?;
        let token_start = token.start;
        let node = match token.kind {
            // A sequence may begin at the column of its key; the scanner then opens no block for it.
            TokenKind::BlockEntry if place == NodeContext::BlockValue => {
                self.collection(anchor, start, Self::indentless_sequence)?
            }
            TokenKind::FlowSequence => self.collection(anchor, start, Self::flow_sequence)?,
            TokenKind::FlowMapping => self.collection(anchor, start, Self::flow_mapping)?,
            TokenKind::BlockSequence if place != NodeContext::Flow => {
                self.collection(anchor, start, Self::block_sequence)?
            }
            TokenKind::BlockMapping if place != NodeContext::Flow => {
                self.collection(anchor, start, Self::block_mapping)?
            }
            TokenKind::ResolvedScalar { style, .. } => {
                let TokenKind::ResolvedScalar { value, .. } = self.take()?.kind else {
                    return Err(Problem::parser(
                        "did not find expected scalar",
                        token_start,
                        start,
                    ));
                };
                let implicit = match &tag {
                    None => style == Style::Plain,
                    // As in libyaml, a scalar with the tag `!` counts as implicit, whatever its style.
                    Some(tag) => tag == "!",
                };
                self.scalar(anchor, value, tag, implicit, start)
            }
            _ if anchor.is_some() || tag.is_some() => {
                let implicit = tag.is_none();
                self.scalar(anchor, Cow::Borrowed(""), tag, implicit, start)
            }
            _ => {
                return Err(Problem::parser(
                    "did not find expected node content",
                    token_start,
                    start,
                ));
            }
        };
        Ok(node)
    }

    fn scalar(
        &mut self,
        anchor: Option<&'a str>,
        value: Cow<'a, str>,
        tag: Option<String>,
        implicit: bool,
        mark: Mark,
    ) -> NodeId {
        let id = self.add(NodeKind::ResolvedScalar { value, tag, implicit }, mark);
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        id
    }

    /// Parses the anchor and the tag, in either order.
    fn properties(&mut self, start: Mark) -> Result<Properties<'a>, Problem> {
        let mut found = Properties::default();
        let mut tag = None;
        loop {
            match self.kind()? {
                TokenKind::Anchor(name) if found.anchor.is_none() => found.anchor = Some(*name),
                TokenKind::Tag { .. } if tag.is_none() => {
                    let token = self.take()?;
                    if let TokenKind::Tag { handle, suffix } = token.kind {
                        tag = Some((handle, suffix, token.start));
                    }
                    continue;
                }
                _ => break,
            }
            self.take()?;
        }
        found.tag = match tag {
            None => None,
            Some(("", suffix, _)) => Some(suffix),
            Some((handle, suffix, at)) => match self.tags.iter().find(|(h, _)| *h == handle) {
                Some((_, prefix)) if !(prefix.is_empty() && suffix.is_empty()) => {
                    Some(format!("{prefix}{suffix}"))
                }
                _ => return Err(Problem::parser("found undefined tag handle", at, start)),
            },
        };
        found.tag = found.tag.filter(|t| !t.is_empty());
        Ok(found)
    }

    /// Parses a list or mapping. Its anchor is defined inside it, too.
    fn collection(
        &mut self,
        anchor: Option<&'a str>,
        start: Mark,
        content: fn(&mut Self) -> Result<NodeKind<'a>, Problem>,
    ) -> Result<NodeId, Problem> {
        if self.depth == 0 {
            return Err(Problem::scanner("exceeded max depth", start, start));
        }
        // Added before its content, so that an alias inside of it resolves; the constructor reports the cycle.
        let id = self.add(NodeKind::Sequence(Vec::new()), start);
        if let Some(name) = anchor {
            self.anchors.insert(name, id);
        }
        self.depth -= 1;
        let kind = content(self)?;
        self.depth += 1;
        if let Some(node) = self.nodes.get_mut(id.0) {
            node.kind = kind;
        }
        Ok(id)
    }

    fn block_sequence(&mut self) -> Result<NodeKind<'a>, Problem> {
        let context = self.take()?.start;
        let mut items = Vec::new();
        loop {
            let token = self.take()?;
            match token.kind {
                TokenKind::BlockEntry => items.push(match self.kind()? {
                    TokenKind::BlockEntry | TokenKind::BlockEnd => self.empty(token.end),
                    _ => self.node(NodeContext::Block)?,
                }),
                TokenKind::BlockEnd => return Ok(NodeKind::Sequence(items)),
                _ => {
                    let text = "did not find expected '-' indicator";
                    return Err(Problem::parser(text, token.start, context));
                }
            }
        }
    }

    fn indentless_sequence(&mut self) -> Result<NodeKind<'a>, Problem> {
        let mut items = Vec::new();
        while let TokenKind::BlockEntry = self.kind()? {
            let end = self.take()?.end;
            items.push(match self.kind()? {
                TokenKind::BlockEntry | TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => {
                    self.empty(end)
                }
                _ => self.node(NodeContext::Block)?,
            });
        }
        Ok(NodeKind::Sequence(items))
    }

    fn block_mapping(&mut self) -> Result<NodeKind<'a>, Problem> {
        let context = self.take()?.start;
        let mut members = Vec::new();
        loop {
            let token = self.scanner.peek()?;
            let start = token.start;
            match token.kind {
                TokenKind::Key => {
                    let end = self.take()?.end;
                    let key = self.block_part(end)?;
                    let value = if let TokenKind::Value = self.kind()? {
                        let end = self.take()?.end;
                        self.block_part(end)?
                    } else {
                        let at = self.scanner.peek()?.start;
                        self.empty(at)
                    };
                    members.push((key, value));
                }
                TokenKind::BlockEnd => {
                    self.take()?;
                    return Ok(NodeKind::Mapping(members));
                }
                _ => return Err(Problem::parser("did not find expected key", start, context)),
            }
        }
    }

    /// Parses a key or a value of a block mapping, which may be missing.
    fn block_part(&mut self, end: Mark) -> Result<NodeId, Problem> {
        match self.kind()? {
            TokenKind::Key | TokenKind::Value | TokenKind::BlockEnd => Ok(self.empty(end)),
            _ => self.node(NodeContext::BlockValue),
        }
    }

    fn flow_sequence(&mut self) -> Result<NodeKind<'a>, Problem> {
        let context = self.take()?.start;
        let mut items = Vec::new();
        loop {
            let first = items.is_empty();
            if self.flow_end(first, context, "did not find expected ',' or ']'", |t| {
                matches!(t, TokenKind::FlowSequenceEnd)
            })? {
                return Ok(NodeKind::Sequence(items));
            }
            let token = self.scanner.peek()?;
            let start = token.start;
            let item = match token.kind {
                TokenKind::Key => {
                    self.take()?;
                    self.collection(None, start, Self::single_pair)?
                }
                _ => self.node(NodeContext::Flow)?,
            };
            items.push(item);
        }
    }

    /// Takes the comma between entries. Returns whether the collection ends here.
    fn flow_end(
        &mut self,
        first: bool,
        context: Mark,
        problem: &'static str,
        is_end: fn(&TokenKind<'_>) -> bool,
    ) -> Result<bool, Problem> {
        let token = self.scanner.peek()?;
        let start = token.start;
        if !is_end(&token.kind) && !first {
            match token.kind {
                TokenKind::FlowEntry => self.take()?,
                _ => return Err(Problem::parser(problem, start, context)),
            };
        }
        let ends = is_end(self.kind()?);
        if ends {
            self.take()?;
        }
        Ok(ends)
    }

    /// Parses `key: value` inside `[]`.
    fn single_pair(&mut self) -> Result<NodeKind<'a>, Problem> {
        let key = match self.kind()? {
            TokenKind::Value | TokenKind::FlowEntry | TokenKind::FlowSequenceEnd => {
                let end = self.take()?.end;
                self.empty(end)
            }
            _ => self.node(NodeContext::Flow)?,
        };
        let value = self.flow_value(|t| matches!(t, TokenKind::FlowEntry | TokenKind::FlowSequenceEnd))?;
        Ok(NodeKind::Mapping(vec![(key, value)]))
    }

    /// Parses the value after a key inside brackets, which may be missing.
    fn flow_value(&mut self, is_next: fn(&TokenKind<'_>) -> bool) -> Result<NodeId, Problem> {
        let mut at = self.scanner.peek()?.start;
        if let TokenKind::Value = self.kind()? {
            self.take()?;
            if !is_next(self.kind()?) {
                return self.node(NodeContext::Flow);
            }
            at = self.scanner.peek()?.start;
        }
        Ok(self.empty(at))
    }

    fn flow_mapping(&mut self) -> Result<NodeKind<'a>, Problem> {
        let context = self.take()?.start;
        let mut members = Vec::new();
        let is_next: fn(&TokenKind<'_>) -> bool =
            |t| matches!(t, TokenKind::FlowEntry | TokenKind::FlowMappingEnd);
        loop {
            let first = members.is_empty();
            if self.flow_end(first, context, "did not find expected ',' or '}'", |t| {
                matches!(t, TokenKind::FlowMappingEnd)
            })? {
                return Ok(NodeKind::Mapping(members));
            }
            if let TokenKind::Key = self.kind()? {
                self.take()?;
                let token = self.scanner.peek()?;
                let start = token.start;
                let missing = is_next(&token.kind) || matches!(token.kind, TokenKind::Value);
                let key = if missing {
                    self.empty(start)
                } else {
                    self.node(NodeContext::Flow)?
                };
                let value = self.flow_value(is_next)?;
                members.push((key, value));
            } else {
                let key = self.node(NodeContext::Flow)?;
                let at = self.scanner.peek()?.start;
                let value = self.empty(at);
                members.push((key, value));
            }
        }
    }
}
