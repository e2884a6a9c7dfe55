//! The augmented transition network (ATN) of the grammar.
//!
//! Every rule is a subgraph from its start to its stop state. An edge consumes a token, calls another rule, or is an
//! epsilon edge. The stop state of a rule has edges to the follow states of all its calls, for predictions without a
//! known caller.

use super::grammar::{AltLabel, ChildRole, GrammarItem, GrammarRule, items};
use crate::syntax::token::TokenSet;
use std::sync::LazyLock;

/// Identifies a state.
pub(super) type StateId = u16;

/// The kind of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    Basic,
    RuleStart,
    RuleStop,
    /// A decision: an optional part, or alternatives.
    BlockStart,
    BlockEnd,
    /// The start of the first of one or more iterations.
    PlusBlockStart,
    /// The decision after an iteration of `(…)+`.
    PlusLoopBack,
    /// The decision before an iteration of `(…)*`.
    LoopEntry {
        /// True if the loop is over the suffixes of a left-recursive rule.
        suffixes: bool,
    },
    /// The start of an iteration; with suffixes, a decision.
    LoopBlockStart,
    /// The end of an iteration.
    LoopBack,
    LoopEnd,
}

/// An edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) target: StateId,
    pub(super) label: EdgeLabel,
}

/// The label of an edge.
#[derive(Clone, Copy, Debug)]
pub(super) enum EdgeLabel {
    /// Nothing.
    Epsilon,
    /// Epsilon; sets the alternative of the node.
    Alternative(AltLabel),
    /// Epsilon from the stop of a rule whose caller is unknown.
    Return {
        /// The rule, if the call accepts suffixes of any precedence.
        outermost: Option<GrammarRule>,
    },
    /// One token of these.
    Tokens(TokenSet, ChildRole),
    /// Calls the rule that starts at the target, then continues at `follow_state`.
    Call {
        precedence: u8,
        follow_state: StateId,
        role: ChildRole,
    },
    /// Epsilon, if suffixes of this precedence are allowed.
    Precedence(u8, AltLabel),
}

impl EdgeLabel {
    fn takes_token(self) -> bool {
        matches!(self, EdgeLabel::Tokens(..))
    }
}

/// A state.
#[derive(Debug)]
pub(super) struct AtnState {
    pub(super) kind: StateKind,
    pub(super) rule: GrammarRule,
    pub(super) edges: Vec<Edge>,
    /// The tokens that may be next within the rule.
    pub(super) next: TokenSet,
    /// True if the rule may end here.
    pub(super) may_end: bool,
    /// The first tokens of each alternative, if one token of lookahead decides.
    pub(super) alts: Option<Vec<TokenSet>>,
}

impl AtnState {
    const fn new(kind: StateKind, rule: GrammarRule) -> AtnState {
        AtnState {
            kind,
            rule,
            edges: Vec::new(),
            next: TokenSet::EMPTY,
            may_end: false,
            alts: None,
        }
    }

    /// Returns whether the state has edges and all of them are epsilon edges.
    pub(super) fn is_passed_through(&self) -> bool {
        !self.edges.is_empty() && self.edges.iter().all(|edge| !edge.label.takes_token())
    }

    pub(super) fn edge(&self, n: usize) -> Option<Edge> {
        self.edges.get(n).copied()
    }

    /// The target of the first edge.
    pub(super) fn target(&self) -> Option<StateId> {
        self.edge(0).map(|edge| edge.target)
    }
}

/// The graph.
#[derive(Debug)]
pub(super) struct Atn {
    states: Vec<AtnState>,
}

/// The graph of the grammar.
pub(super) static ATN: LazyLock<Atn> = LazyLock::new(Atn::build);

/// A state without edges, for invalid identifiers.
static DEAD: AtnState = AtnState::new(StateKind::Basic, GrammarRule::Start);

impl Atn {
    pub(super) fn state(&self, id: StateId) -> &AtnState {
        self.states.get(usize::from(id)).unwrap_or(&DEAD)
    }

    pub(super) fn start(rule: GrammarRule) -> StateId {
        rule as StateId * 2
    }

    pub(super) fn stop(rule: GrammarRule) -> StateId {
        Self::start(rule) + 1
    }

    /// The follow state of the call that this state makes.
    pub(super) fn follow_state(&self, caller: StateId) -> Option<StateId> {
        match self.state(caller).edge(0)?.label {
            EdgeLabel::Call { follow_state, .. } => Some(follow_state),
            _ => None,
        }
    }

    fn build() -> Atn {
        let mut atn = Atn { states: Vec::new() };
        for rule in GrammarRule::ALL {
            // Two states per rule come first, in the order of the rules: `start` and `stop` compute their identifiers.
            atn.add(StateKind::RuleStart, rule);
            atn.add(StateKind::RuleStop, rule);
        }
        for rule in GrammarRule::ALL {
            let first = atn.sequence(rule, items(rule), Self::stop(rule));
            atn.connect(Self::start(rule), first);
        }
        // Only after all rules are built: a call may be to a rule that comes later.
        atn.connect_returns();
        for id in 0..atn.states.len() as StateId {
            // Within a rule the search always succeeds; only beyond it precedence can make it fail.
            let (next, may_end) = atn.first_tokens(id, LookScope::Nothing).unwrap_or_default();
            let alts = atn.alts(id);
            if let Some(state) = atn.states.get_mut(usize::from(id)) {
                (state.next, state.may_end, state.alts) = (next, may_end, alts);
            }
        }
        atn
    }

    fn add(&mut self, kind: StateKind, rule: GrammarRule) -> StateId {
        self.states.push(AtnState::new(kind, rule));
        (self.states.len() - 1) as StateId
    }

    fn label(&mut self, from: StateId, target: StateId, label: EdgeLabel) {
        if let Some(state) = self.states.get_mut(usize::from(from)) {
            state.edges.push(Edge { target, label });
        }
    }

    fn connect(&mut self, from: StateId, target: StateId) {
        self.label(from, target, EdgeLabel::Epsilon);
    }

    /// Builds the items in front of `next` and returns their start.
    fn sequence(&mut self, rule: GrammarRule, items: &[GrammarItem], next: StateId) -> StateId {
        items
            .iter()
            .rev()
            // Backwards, because each item needs the state that follows it.
            .fold(next, |next, item| self.item(rule, item, next))
    }

    fn item(&mut self, rule: GrammarRule, item: &GrammarItem, next: StateId) -> StateId {
        match item {
            GrammarItem::Token(role, kinds) => {
                let state = self.add(StateKind::Basic, rule);
                self.label(state, next, EdgeLabel::Tokens(TokenSet::from_kinds(kinds), *role));
                state
            }
            GrammarItem::Call(role, called, precedence) => {
                let state = self.add(StateKind::Basic, rule);
                let call = EdgeLabel::Call {
                    precedence: *precedence,
                    follow_state: next,
                    role: *role,
                };
                self.label(state, Self::start(*called), call);
                state
            }
            GrammarItem::Optional(items) => {
                let (start, end) = self.block(rule, StateKind::BlockStart, next);
                let alt = self.sequence(rule, items, end);
                self.connect(start, alt);
                // The order of the edges is the order of the alternatives: entering the optional part is 1, skipping it
                // is 2.
                self.connect(start, end);
                start
            }
            GrammarItem::Either(alternatives) => {
                let (start, end) = self.block(rule, StateKind::BlockStart, next);
                for (label, items) in *alternatives {
                    let alt = self.sequence(rule, items, end);
                    self.label(start, alt, EdgeLabel::Alternative(*label));
                }
                start
            }
            GrammarItem::Repeated(items) => {
                let back = self.add(StateKind::PlusLoopBack, rule);
                let (start, end) = self.block(rule, StateKind::PlusBlockStart, back);
                let alt = self.sequence(rule, items, end);
                self.connect(start, alt);
                let done = self.add(StateKind::LoopEnd, rule);
                self.connect(done, next);
                self.connect(back, start);
                self.connect(back, done);
                start
            }
            GrammarItem::Any(items) => {
                let (entry, start, end) = self.star(rule, next, false);
                let alt = self.sequence(rule, items, end);
                self.connect(start, alt);
                entry
            }
            GrammarItem::Suffixes(alternatives) => {
                let (entry, start, end) = self.star(rule, next, true);
                for (precedence, label, items) in *alternatives {
                    let alt = self.sequence(rule, items, end);
                    let gate = self.add(StateKind::Basic, rule);
                    self.label(gate, alt, EdgeLabel::Precedence(*precedence, *label));
                    self.connect(start, gate);
                }
                entry
            }
        }
    }

    /// The start and the end of a block.
    fn block(&mut self, rule: GrammarRule, kind: StateKind, next: StateId) -> (StateId, StateId) {
        let start = self.add(kind, rule);
        let end = self.add(StateKind::BlockEnd, rule);
        self.connect(end, next);
        (start, end)
    }

    /// The entry of a loop and the start and end of its block.
    fn star(&mut self, rule: GrammarRule, next: StateId, suffixes: bool) -> (StateId, StateId, StateId) {
        let entry = self.add(StateKind::LoopEntry { suffixes }, rule);
        let back = self.add(StateKind::LoopBack, rule);
        let done = self.add(StateKind::LoopEnd, rule);
        let (start, end) = self.block(rule, StateKind::LoopBlockStart, back);
        self.connect(entry, start);
        self.connect(entry, done);
        self.connect(back, entry);
        self.connect(done, next);
        (entry, start, end)
    }

    /// Connects the stop state of every rule with the follow states of its calls.
    fn connect_returns(&mut self) {
        let calls: Vec<(GrammarRule, u8, StateId)> = self
            .states
            .iter()
            .flat_map(|state| &state.edges)
            .filter_map(|edge| match edge.label {
                EdgeLabel::Call {
                    precedence,
                    follow_state,
                    ..
                } => Some((self.state(edge.target).rule, precedence, follow_state)),
                _ => None,
            })
            .collect();
        for (rule, precedence, follow_state) in calls {
            // A call with precedence 0 accepts every suffix; ANTLR marks these as the outermost returns of the rule.
            let outermost = (rule.is_recursive() && precedence == 0).then_some(rule);
            self.label(Self::stop(rule), follow_state, EdgeLabel::Return { outermost });
        }
    }

    /// The first tokens of each alternative, if they are disjoint and do not depend on precedence.
    fn alts(&self, id: StateId) -> Option<Vec<TokenSet>> {
        let edges = &self.state(id).edges;
        // The edges of a stop state lead to callers and are no alternatives.
        if edges.len() < 2 || self.state(id).kind == StateKind::RuleStop {
            return None;
        }
        let mut seen = TokenSet::EMPTY;
        let mut alts = Vec::new();
        for edge in edges {
            let (alt, _) = self.first_tokens(edge.target, LookScope::AnyCaller)?;
            if !seen.is_disjoint(alt) {
                return None;
            }
            // Overlapping alternatives need more than one token, which is the predictor's work.
            seen = seen.union(alt);
            alts.push(alt);
        }
        Some(alts)
    }

    /// The first tokens from a state, and whether the rule may end before. `None` if that depends on precedence and the
    /// search extends beyond the rule.
    fn first_tokens(&self, from: StateId, scope: LookScope) -> Option<(TokenSet, bool)> {
        let mut found = TokenSet::EMPTY;
        let mut may_end = false;
        let mut seen = vec![from];
        let mut pending = vec![from];
        while let Some(id) = pending.pop() {
            let state = self.state(id);
            if state.kind == StateKind::RuleStop && scope == LookScope::Nothing {
                may_end = true;
                continue;
            }
            for edge in &state.edges {
                match edge.label {
                    EdgeLabel::Tokens(tokens, _) => found = found.union(tokens),
                    // No rule matches the empty input, so what follows a call is never next.
                    EdgeLabel::Call { .. } => {
                        found = found.union(self.first_tokens(edge.target, LookScope::Nothing)?.0);
                    }
                    EdgeLabel::Precedence(..) if scope == LookScope::AnyCaller => return None,
                    EdgeLabel::Epsilon
                    | EdgeLabel::Alternative(_)
                    | EdgeLabel::Return { .. }
                    | EdgeLabel::Precedence(..) => {
                        if !seen.contains(&edge.target) {
                            seen.push(edge.target);
                            pending.push(edge.target);
                        }
                    }
                }
            }
        }
        Some((found, may_end))
    }
}

/// The extent of the search for first tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookScope {
    Nothing,
    AnyCaller,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write as _;

    /// Lists the decisions that one token of lookahead resolves.
    #[test]
    fn alternatives_decided_by_one_token() {
        let mut text = String::new();
        for (id, state) in ATN.states.iter().enumerate() {
            if state.edges.len() < 2 || state.kind == StateKind::RuleStop {
                continue;
            }
            let alts = ATN.state(id as StateId).alts.as_ref();
            let display = alts.map_or("needs prediction".to_owned(), |alts| {
                alts.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" / ")
            });
            writeln!(text, "{:?} {:?}: {display}", state.rule, state.kind).unwrap();
        }
        expect![[r#"
            Expr BlockStart: '?' / {<EOF>, ']', '}', ')', ',', ':'}
            Or LoopEntry { suffixes: false }: '||' / {<EOF>, ']', '}', ')', ',', '?', ':'}
            And LoopEntry { suffixes: false }: '&&' / {<EOF>, '||', ']', '}', ')', ',', '?', ':'}
            Relation LoopEntry { suffixes: true }: needs prediction
            Calc LoopEntry { suffixes: true }: needs prediction
            Calc LoopBlockStart: needs prediction
            Unary BlockStart: needs prediction
            Unary PlusLoopBack: '!' / {'[', '{', '(', '.', '-', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
            Unary PlusLoopBack: needs prediction
            Member LoopEntry { suffixes: true }: needs prediction
            Member LoopBlockStart: needs prediction
            Member BlockStart: '?' / {IDENTIFIER, ESC_IDENTIFIER}
            Member BlockStart: {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} / ')'
            Member BlockStart: '?' / {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
            Primary BlockStart: needs prediction
            Primary BlockStart: '.' / IDENTIFIER
            Primary BlockStart: {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} / ')'
            Primary BlockStart: '.' / IDENTIFIER
            Primary BlockStart: ',' / ']'
            Primary BlockStart: {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} / {']', ','}
            Primary BlockStart: ',' / '}'
            Primary BlockStart: {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} / {'}', ','}
            Primary BlockStart: ',' / '}'
            Primary BlockStart: {'?', IDENTIFIER, ESC_IDENTIFIER} / {'}', ','}
            Primary LoopEntry { suffixes: false }: '.' / '{'
            Primary BlockStart: '.' / IDENTIFIER
            ExprList LoopEntry { suffixes: false }: ',' / ')'
            ListInit LoopEntry { suffixes: false }: needs prediction
            FieldList LoopEntry { suffixes: false }: needs prediction
            OptField BlockStart: '?' / {IDENTIFIER, ESC_IDENTIFIER}
            MapList LoopEntry { suffixes: false }: needs prediction
            FieldName BlockStart: IDENTIFIER / ESC_IDENTIFIER
            OptExpr BlockStart: '?' / {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}
            Literal BlockStart: needs prediction
            Literal BlockStart: '-' / NUM_INT
            Literal BlockStart: '-' / NUM_FLOAT
        "#]].assert_eq(&text);
    }
}
