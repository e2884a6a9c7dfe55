//! The recognizer: walks the ATN along the tokens and builds the parse tree.

use super::Reporter;
use super::atn::{ATN, Atn, Edge, EdgeLabel, StateId, StateKind};
use super::grammar::{AltLabel, ChildRole, GrammarRule};
use super::predict::{Alt, Decision, NoViableAlt, Predictor};
use super::stream::TokenStream;
use super::tree::{Child, Leaf, ParseNode, ParseNodeId, ParseTree};
use crate::syntax::parser::MAX_DEPTH;
use crate::syntax::token::{TokenKind, TokenSet};

/// Parses the source with error recovery.
pub(super) fn recognize(source: &str, reporter: &mut Reporter) -> ParseTree {
    let mut recognizer = Recognizer {
        atn: &ATN,
        stream: TokenStream::new(source),
        reporter,
        tree: ParseTree::default(),
        frames: Vec::new(),
        state: Atn::start(GrammarRule::Start),
        predictor: Predictor::new(&ATN),
        depth: [0; GrammarRule::ALL.len()],
        recovery: Recovery::default(),
    };
    recognizer.enter(GrammarRule::Start, 0, None);
    recognizer.run();
    recognizer.tree
}

/// The reason why a rule cannot continue.
pub(super) enum RecognitionError {
    /// The current token is not one of those expected.
    Mismatch,
    /// No viable alternative.
    NoViableAlt(NoViableAlt),
}

/// An active rule.
pub(super) struct Frame {
    pub(super) rule: GrammarRule,
    pub(super) node: ParseNodeId,
    /// The state that called it.
    pub(super) caller: Option<StateId>,
    /// The precedence that its suffixes must have.
    precedence: u8,
    /// The next state in the rule.
    next: StateId,
}

/// The state of error recovery.
#[derive(Default)]
pub(super) struct Recovery {
    /// True if no token has matched since the last error.
    pub(super) active: bool,
    /// The token of the last recovery.
    pub(super) last_token: Option<usize>,
    /// The states from which recovery began at that token.
    pub(super) last_states: Vec<StateId>,
    /// The number of recovery attempts.
    pub(super) attempts: usize,
}

pub(super) struct Recognizer<'s, 'r> {
    pub(super) atn: &'static Atn,
    pub(super) stream: TokenStream<'s>,
    pub(super) reporter: &'r mut Reporter,
    tree: ParseTree,
    pub(super) frames: Vec<Frame>,
    /// The state that errors are reported from.
    pub(super) state: StateId,
    predictor: Predictor,
    /// The nesting depth of each rule.
    depth: [u32; GrammarRule::ALL.len()],
    pub(super) recovery: Recovery,
}

impl Recognizer<'_, '_> {
    fn run(&mut self) {
        while !self.reporter.stopped
            && let Some(frame) = self.frames.last()
        {
            let id = frame.next;
            if self.atn.state(id).kind == StateKind::RuleStop {
                self.leave();
            // A rule with an error ends: its caller goes on behind it, as in the methods that ANTLR generates.
            } else if let Err(error) = self.step(id) {
                self.report(&error);
                self.recover();
                if let Some(frame) = self.frames.last_mut() {
                    frame.next = Atn::stop(frame.rule);
                }
            }
        }
    }

    fn goto(&mut self, state: StateId) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = state;
        }
    }

    fn node(&mut self) -> Option<&mut ParseNode> {
        let id = self.frames.last()?.node;
        self.tree.get_mut(id)
    }

    /// Takes one step from a state of the current rule.
    fn step(&mut self, id: StateId) -> Result<(), RecognitionError> {
        let state = self.atn.state(id);
        let n = match state.kind {
            StateKind::BlockStart => {
                self.sync_at(id)?;
                self.choose(id)?
            }
            StateKind::PlusBlockStart => {
                self.sync_at(id)?;
                1
            }
            StateKind::PlusLoopBack => {
                self.sync_at(id)?;
                let alt = self.choose(id)?;
                if alt == 1 {
                    // Later rounds do not predict again at the start of the block.
                    let round = state.target().and_then(|start| self.atn.state(start).target());
                    round.into_iter().for_each(|round| self.goto(round));
                    return Ok(());
                }
                alt
            }
            StateKind::LoopEntry { .. } => {
                self.sync_at(id)?;
                return self.enter_loop(id);
            }
            StateKind::LoopBack => {
                self.sync_at(id)?;
                return state.target().map_or(Ok(()), |entry| self.enter_loop(entry));
            }
            StateKind::LoopBlockStart if state.edges.len() > 1 => {
                self.sync_at(id)?;
                self.choose(id)?
            }
            StateKind::Basic
            | StateKind::RuleStart
            | StateKind::RuleStop
            | StateKind::BlockEnd
            | StateKind::LoopBlockStart
            | StateKind::LoopEnd => 1,
        };
        match state.edge(usize::from(n) - 1) {
            Some(edge) => self.follow_state(id, edge),
            None => Ok(()),
        }
    }

    /// Enters another iteration of a loop, or leaves it.
    fn enter_loop(&mut self, entry: StateId) -> Result<(), RecognitionError> {
        let alt = self.choose(entry)?;
        let state = self.atn.state(entry);
        if alt == 1 && state.kind == (StateKind::LoopEntry { suffixes: true }) {
            // The node so far becomes the left operand of what follows.
            self.exit_depth(state.rule);
        }
        state
            .edge(usize::from(alt) - 1)
            .into_iter()
            .for_each(|edge| self.goto(edge.target));
        Ok(())
    }

    fn follow_state(&mut self, from: StateId, edge: Edge) -> Result<(), RecognitionError> {
        match edge.label {
            EdgeLabel::Epsilon | EdgeLabel::Return { .. } => {}
            EdgeLabel::Alternative(label) => {
                if let Some(node) = self.node() {
                    node.label = label;
                }
            }
            EdgeLabel::Tokens(tokens, role) => {
                self.state = from;
                let leaf = self.take(tokens)?;
                if let Some(node) = self.node()
                    && role != ChildRole::Mark
                {
                    node.parts.push((role, Child::Leaf(leaf)));
                }
            }
            EdgeLabel::Call {
                precedence,
                follow_state,
                ..
            } => {
                self.state = from;
                self.goto(follow_state);
                self.enter(self.atn.state(edge.target).rule, precedence, Some(from));
                return Ok(());
            }
            EdgeLabel::Precedence(_, label) => self.extend(label),
        }
        self.goto(edge.target);
        Ok(())
    }

    /// Takes the current token if it is one of these, otherwise recovers.
    fn take(&mut self, tokens: TokenSet) -> Result<Leaf, RecognitionError> {
        let token = self.current();
        if tokens.contains(token.kind) {
            self.recovered();
            self.stream.consume(self.reporter);
            return Ok(Leaf {
                token,
                missing: false,
            });
        }
        self.recover_inline()
    }

    pub(super) fn current(&mut self) -> crate::syntax::token::Token {
        self.stream.ahead(0, self.reporter)
    }

    pub(super) fn kind_ahead(&mut self, ahead: usize) -> TokenKind {
        self.stream.ahead(ahead, self.reporter).kind
    }

    fn sync_at(&mut self, id: StateId) -> Result<(), RecognitionError> {
        self.state = id;
        self.sync()
    }

    /// Predicts the alternative at a decision.
    fn choose(&mut self, id: StateId) -> Result<Alt, RecognitionError> {
        let state = self.atn.state(id);
        if let Some(alts) = &state.alts {
            let kind = self.kind_ahead(0);
            let alt = alts.iter().position(|alt| alt.contains(kind));
            // An optional part or loop may be skipped if nothing fits, but one of several alternatives must be chosen.
            let is_alternatives = state
                .edges
                .iter()
                .all(|e| matches!(e.label, EdgeLabel::Alternative(_)));
            return match alt {
                Some(n) => Ok((n + 1) as Alt),
                None if is_alternatives => {
                    let start = self.stream.index(0, self.reporter);
                    Err(RecognitionError::NoViableAlt(NoViableAlt {
                        start,
                        offending: start,
                    }))
                }
                // The last alternative skips the optional part.
                None => Ok(alts.len() as Alt),
            };
        }
        let decision = Decision {
            decision: id,
            precedence: self.frames.last().map_or(0, |frame| frame.precedence),
            frames: &self.frames,
        };
        self.predictor
            .predict(&decision, &mut self.stream, self.reporter)
            .map_err(RecognitionError::NoViableAlt)
    }

    fn enter(&mut self, rule: GrammarRule, precedence: u8, caller: Option<StateId>) {
        self.state = Atn::start(rule);
        let label = match rule {
            GrammarRule::Unary | GrammarRule::Primary | GrammarRule::FieldName | GrammarRule::Literal => {
                AltLabel::Undecided
            }
            _ => AltLabel::Plain,
        };
        // Reads the first token of the rule, as ANTLR's `EnterRule` does: lexer errors in front of it are reported now.
        let offset = self.current().offset;
        let node = self.tree.add(ParseNode {
            rule,
            label,
            offset,
            parts: Vec::new(),
        });
        self.frames.push(Frame {
            rule,
            node,
            caller,
            precedence,
            next: Atn::start(rule),
        });
        self.enter_depth(rule);
    }

    /// Makes the current node the left operand of a new node, for left recursion.
    fn extend(&mut self, label: AltLabel) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let left = frame.node;
        let rule = frame.rule;
        let offset = self.tree.get(left).map_or(0, |node| node.offset);
        let node = self.tree.add(ParseNode {
            rule,
            label,
            offset,
            parts: vec![(ChildRole::First, Child::ParseNode(left))],
        });
        frame.node = node;
        self.enter_depth(rule);
    }

    fn leave(&mut self) {
        let Some(left) = self.frames.pop() else {
            return;
        };
        self.exit_depth(left.rule);
        let (Some(caller), Some(frame)) = (left.caller, self.frames.last()) else {
            return;
        };
        self.state = caller;
        // Errors between this rule and the next token are reported from the caller.
        let role = match self.atn.state(caller).edge(0).map(|edge| edge.label) {
            Some(EdgeLabel::Call { role, .. }) => role,
            _ => ChildRole::Mark,
        };
        if let Some(node) = self.tree.get_mut(frame.node) {
            node.parts.push((role, Child::ParseNode(left.node)));
        }
    }

    fn enter_depth(&mut self, rule: GrammarRule) {
        if let Some(depth) = self.depth.get_mut(rule as usize) {
            *depth += 1;
            // Counted per rule, like cel-go's `recursionListener`.
            if *depth > MAX_DEPTH {
                self.reporter
                    .fatal(&format!("expression recursion limit exceeded: {MAX_DEPTH}"));
            }
        }
    }

    fn exit_depth(&mut self, rule: GrammarRule) {
        if let Some(depth) = self.depth.get_mut(rule as usize) {
            *depth = depth.saturating_sub(1);
        }
    }
}
