//! Walks the graph of the grammar along the tokens.

use super::Reporter;
use super::atn::{ATN, Atn, Edge, Label, StateId, StateKind};
use super::grammar::{Form, Part, Rule};
use super::predict::{NoWay, Predictor, Question, Way};
use super::stream::Stream;
use super::tree::{Child, Leaf, Node, NodeId, Tree};
use crate::syntax::parser::MAX_DEPTH;
use crate::syntax::token::{TokenKind, TokenSet};

/// Reads the source as far as it can be read.
pub(super) fn recognize(source: &str, reporter: &mut Reporter) -> Tree {
    let mut recognizer = Recognizer {
        atn: &ATN,
        stream: Stream::new(source),
        reporter,
        tree: Tree::default(),
        frames: Vec::new(),
        state: Atn::start(Rule::Start),
        predictor: Predictor::new(&ATN),
        depth: [0; Rule::ALL.len()],
        recovery: Recovery::default(),
    };
    recognizer.enter(Rule::Start, 0, None);
    recognizer.run();
    recognizer.tree
}

/// Why a rule cannot go on.
pub(super) enum Fault {
    /// The current token is not one of those expected.
    Mismatch,
    /// No way leads on.
    NoWay(NoWay),
}

/// A rule that has been entered and not yet left.
pub(super) struct Frame {
    pub(super) rule: Rule,
    pub(super) node: NodeId,
    /// The state that called it.
    pub(super) caller: Option<StateId>,
    /// The precedence that its suffixes must have.
    precedence: u8,
    /// Where in the rule it goes on.
    next: StateId,
}

/// What recovery remembers.
#[derive(Default)]
pub(super) struct Recovery {
    /// Whether no token has matched since the last mistake.
    pub(super) active: bool,
    /// The token of the last recovery.
    pub(super) last_token: Option<usize>,
    /// The states from which recovery has begun at it.
    pub(super) last_states: Vec<StateId>,
    /// How often recovery has been tried.
    pub(super) attempts: usize,
}

pub(super) struct Recognizer<'s, 'r> {
    pub(super) atn: &'static Atn,
    pub(super) stream: Stream<'s>,
    pub(super) reporter: &'r mut Reporter,
    tree: Tree,
    pub(super) frames: Vec<Frame>,
    /// The state that mistakes are reported from.
    pub(super) state: StateId,
    predictor: Predictor,
    /// How deep each rule nests.
    depth: [u32; Rule::ALL.len()],
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
            } else if let Err(fault) = self.step(id) {
                self.report(&fault);
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

    fn node(&mut self) -> Option<&mut Node> {
        let id = self.frames.last()?.node;
        self.tree.get_mut(id)
    }

    /// One step from a state of the current rule.
    fn step(&mut self, id: StateId) -> Result<(), Fault> {
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
                let way = self.choose(id)?;
                if way == 1 {
                    // Later rounds begin without another look at the start of the block.
                    let round = state.target().and_then(|start| self.atn.state(start).target());
                    round.into_iter().for_each(|round| self.goto(round));
                    return Ok(());
                }
                way
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
            Some(edge) => self.follow(id, edge),
            None => Ok(()),
        }
    }

    /// Another round of a loop, or on.
    fn enter_loop(&mut self, entry: StateId) -> Result<(), Fault> {
        let way = self.choose(entry)?;
        let state = self.atn.state(entry);
        if way == 1 && state.kind == (StateKind::LoopEntry { suffixes: true }) {
            // What has been read becomes the left side of what follows.
            self.exit_depth(state.rule);
        }
        state
            .edge(usize::from(way) - 1)
            .into_iter()
            .for_each(|edge| self.goto(edge.target));
        Ok(())
    }

    fn follow(&mut self, from: StateId, edge: Edge) -> Result<(), Fault> {
        match edge.label {
            Label::Epsilon | Label::Return { .. } => {}
            Label::Alternative(form) => {
                if let Some(node) = self.node() {
                    node.form = form;
                }
            }
            Label::Tokens(tokens, part) => {
                self.state = from;
                let leaf = self.take(tokens)?;
                if let Some(node) = self.node()
                    && part != Part::Mark
                {
                    node.parts.push((part, Child::Leaf(leaf)));
                }
            }
            Label::Call {
                precedence, follow, ..
            } => {
                self.state = from;
                self.goto(follow);
                self.enter(self.atn.state(edge.target).rule, precedence, Some(from));
                return Ok(());
            }
            Label::Precedence(_, form) => self.extend(form),
        }
        self.goto(edge.target);
        Ok(())
    }

    /// Takes the current token if it is one of these, otherwise recovers.
    fn take(&mut self, tokens: TokenSet) -> Result<Leaf, Fault> {
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

    fn sync_at(&mut self, id: StateId) -> Result<(), Fault> {
        self.state = id;
        self.sync()
    }

    /// Which way to go from a state.
    fn choose(&mut self, id: StateId) -> Result<Way, Fault> {
        let state = self.atn.state(id);
        if let Some(ways) = &state.ways {
            let kind = self.kind_ahead(0);
            let way = ways.iter().position(|way| way.contains(kind));
            let is_alternatives = state
                .edges
                .iter()
                .all(|e| matches!(e.label, Label::Alternative(_)));
            return match way {
                Some(n) => Ok((n + 1) as Way),
                None if is_alternatives => {
                    let start = self.stream.index(0, self.reporter);
                    Err(Fault::NoWay(NoWay {
                        start,
                        offending: start,
                    }))
                }
                // The last way leads on behind what is optional.
                None => Ok(ways.len() as Way),
            };
        }
        let question = Question {
            decision: id,
            precedence: self.frames.last().map_or(0, |frame| frame.precedence),
            frames: &self.frames,
        };
        self.predictor
            .predict(&question, &mut self.stream, self.reporter)
            .map_err(Fault::NoWay)
    }

    fn enter(&mut self, rule: Rule, precedence: u8, caller: Option<StateId>) {
        self.state = Atn::start(rule);
        let form = match rule {
            Rule::Unary | Rule::Primary | Rule::FieldName | Rule::Literal => Form::Undecided,
            _ => Form::Plain,
        };
        let offset = self.current().offset;
        let node = self.tree.add(Node {
            rule,
            form,
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

    /// Makes what a recursive rule has read the left side of a new node.
    fn extend(&mut self, form: Form) {
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        let left = frame.node;
        let rule = frame.rule;
        let offset = self.tree.get(left).map_or(0, |node| node.offset);
        let node = self.tree.add(Node {
            rule,
            form,
            offset,
            parts: vec![(Part::First, Child::Node(left))],
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
        let part = match self.atn.state(caller).edge(0).map(|edge| edge.label) {
            Some(Label::Call { part, .. }) => part,
            _ => Part::Mark,
        };
        if let Some(node) = self.tree.get_mut(frame.node) {
            node.parts.push((part, Child::Node(left.node)));
        }
    }

    fn enter_depth(&mut self, rule: Rule) {
        if let Some(depth) = self.depth.get_mut(rule as usize) {
            *depth += 1;
            if *depth > MAX_DEPTH {
                self.reporter
                    .fatal(&format!("expression recursion limit exceeded: {MAX_DEPTH}"));
            }
        }
    }

    fn exit_depth(&mut self, rule: Rule) {
        if let Some(depth) = self.depth.get_mut(rule as usize) {
            *depth = depth.saturating_sub(1);
        }
    }
}
