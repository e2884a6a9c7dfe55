//! The grammar as a graph: an augmented transition network.
//!
//! Every rule is a graph of its own from its start to its stop. An edge takes a token, calls another rule, or takes
//! nothing. From the stop of a rule edges lead to all places behind a call of it, for readers that do not know who
//! called.

use super::grammar::{Form, Item, Part, Rule, items};
use crate::syntax::token::TokenSet;
use std::sync::LazyLock;

/// Identifies a state.
pub(super) type StateId = u16;

/// What a state is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    Basic,
    RuleStart,
    RuleStop,
    /// Ways part here: an optional part, or alternatives.
    BlockStart,
    BlockEnd,
    /// The first of one or more rounds begins.
    PlusBlockStart,
    /// After one or more rounds: another, or on.
    PlusLoopBack,
    /// Before any number of rounds: another, or on.
    LoopEntry {
        /// Whether the rounds are the suffixes of a recursive rule.
        suffixes: bool,
    },
    /// A round begins; with suffixes, ways part here.
    LoopBlockStart,
    /// After a round, before the entry.
    LoopBack,
    LoopEnd,
}

/// Where an edge leads and what it takes to go there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) target: StateId,
    pub(super) label: Label,
}

/// What it takes to follow an edge.
#[derive(Clone, Copy, Debug)]
pub(super) enum Label {
    /// Nothing.
    Epsilon,
    /// Nothing, and the node takes this form.
    Alternative(Form),
    /// Nothing, at the stop of a rule whose caller is not known.
    Return {
        /// The rule, where the call accepts suffixes of any precedence.
        outermost: Option<Rule>,
    },
    /// One token of these.
    Tokens(TokenSet, Part),
    /// The rule at whose start the edge ends; going on at `follow` behind it.
    Call {
        precedence: u8,
        follow: StateId,
        part: Part,
    },
    /// That suffixes of this precedence are allowed.
    Precedence(u8, Form),
}

impl Label {
    fn takes_token(self) -> bool {
        matches!(self, Label::Tokens(..))
    }
}

/// A state.
#[derive(Debug)]
pub(super) struct State {
    pub(super) kind: StateKind,
    pub(super) rule: Rule,
    pub(super) edges: Vec<Edge>,
    /// The tokens that may be next within the rule.
    pub(super) next: TokenSet,
    /// Whether the rule may end here.
    pub(super) may_end: bool,
    /// The tokens with which each way begins, where one token is enough to tell the ways apart.
    pub(super) ways: Option<Vec<TokenSet>>,
}

impl State {
    const fn new(kind: StateKind, rule: Rule) -> State {
        State {
            kind,
            rule,
            edges: Vec::new(),
            next: TokenSet::EMPTY,
            may_end: false,
            ways: None,
        }
    }

    /// Whether every edge, of which there is at least one, goes on without a token.
    pub(super) fn is_passed_through(&self) -> bool {
        !self.edges.is_empty() && self.edges.iter().all(|edge| !edge.label.takes_token())
    }

    pub(super) fn edge(&self, n: usize) -> Option<Edge> {
        self.edges.get(n).copied()
    }

    /// Where the first edge leads.
    pub(super) fn target(&self) -> Option<StateId> {
        self.edge(0).map(|edge| edge.target)
    }
}

/// The graph.
#[derive(Debug)]
pub(super) struct Atn {
    states: Vec<State>,
}

/// The graph of the grammar.
pub(super) static ATN: LazyLock<Atn> = LazyLock::new(Atn::build);

/// A state without ways on; no edge leads to it.
static DEAD: State = State::new(StateKind::Basic, Rule::Start);

impl Atn {
    pub(super) fn state(&self, id: StateId) -> &State {
        self.states.get(usize::from(id)).unwrap_or(&DEAD)
    }

    pub(super) fn start(rule: Rule) -> StateId {
        rule as StateId * 2
    }

    pub(super) fn stop(rule: Rule) -> StateId {
        Self::start(rule) + 1
    }

    /// The state behind the call that this state makes.
    pub(super) fn follow(&self, caller: StateId) -> Option<StateId> {
        match self.state(caller).edge(0)?.label {
            Label::Call { follow, .. } => Some(follow),
            _ => None,
        }
    }

    fn build() -> Atn {
        let mut atn = Atn { states: Vec::new() };
        for rule in Rule::ALL {
            atn.add(StateKind::RuleStart, rule);
            atn.add(StateKind::RuleStop, rule);
        }
        for rule in Rule::ALL {
            let first = atn.sequence(rule, items(rule), Self::stop(rule));
            atn.connect(Self::start(rule), first);
        }
        atn.connect_returns();
        for id in 0..atn.states.len() as StateId {
            let (next, may_end) = atn.look(id, Beyond::Nothing).unwrap_or_default();
            let ways = atn.ways(id);
            if let Some(state) = atn.states.get_mut(usize::from(id)) {
                (state.next, state.may_end, state.ways) = (next, may_end, ways);
            }
        }
        atn
    }

    fn add(&mut self, kind: StateKind, rule: Rule) -> StateId {
        self.states.push(State::new(kind, rule));
        (self.states.len() - 1) as StateId
    }

    fn label(&mut self, from: StateId, target: StateId, label: Label) {
        if let Some(state) = self.states.get_mut(usize::from(from)) {
            state.edges.push(Edge { target, label });
        }
    }

    fn connect(&mut self, from: StateId, target: StateId) {
        self.label(from, target, Label::Epsilon);
    }

    /// Builds the items and returns where they begin; they go on at `next`.
    fn sequence(&mut self, rule: Rule, items: &[Item], next: StateId) -> StateId {
        items
            .iter()
            .rev()
            .fold(next, |next, item| self.item(rule, item, next))
    }

    fn item(&mut self, rule: Rule, item: &Item, next: StateId) -> StateId {
        match item {
            Item::Token(part, kinds) => {
                let state = self.add(StateKind::Basic, rule);
                self.label(state, next, Label::Tokens(TokenSet::of(kinds), *part));
                state
            }
            Item::Call(part, called, precedence) => {
                let state = self.add(StateKind::Basic, rule);
                let call = Label::Call {
                    precedence: *precedence,
                    follow: next,
                    part: *part,
                };
                self.label(state, Self::start(*called), call);
                state
            }
            Item::Optional(items) => {
                let (start, end) = self.block(rule, StateKind::BlockStart, next);
                let way = self.sequence(rule, items, end);
                self.connect(start, way);
                self.connect(start, end);
                start
            }
            Item::Either(alternatives) => {
                let (start, end) = self.block(rule, StateKind::BlockStart, next);
                for (form, items) in *alternatives {
                    let way = self.sequence(rule, items, end);
                    self.label(start, way, Label::Alternative(*form));
                }
                start
            }
            Item::Repeated(items) => {
                let back = self.add(StateKind::PlusLoopBack, rule);
                let (start, end) = self.block(rule, StateKind::PlusBlockStart, back);
                let way = self.sequence(rule, items, end);
                self.connect(start, way);
                let done = self.add(StateKind::LoopEnd, rule);
                self.connect(done, next);
                self.connect(back, start);
                self.connect(back, done);
                start
            }
            Item::Any(items) => {
                let (entry, start, end) = self.star(rule, next, false);
                let way = self.sequence(rule, items, end);
                self.connect(start, way);
                entry
            }
            Item::Suffixes(alternatives) => {
                let (entry, start, end) = self.star(rule, next, true);
                for (precedence, form, items) in *alternatives {
                    let way = self.sequence(rule, items, end);
                    let gate = self.add(StateKind::Basic, rule);
                    self.label(gate, way, Label::Precedence(*precedence, *form));
                    self.connect(start, gate);
                }
                entry
            }
        }
    }

    /// The start and the end of a block.
    fn block(&mut self, rule: Rule, kind: StateKind, next: StateId) -> (StateId, StateId) {
        let start = self.add(kind, rule);
        let end = self.add(StateKind::BlockEnd, rule);
        self.connect(end, next);
        (start, end)
    }

    /// The entry of a loop and the start and end of its block.
    fn star(&mut self, rule: Rule, next: StateId, suffixes: bool) -> (StateId, StateId, StateId) {
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

    /// Leads from the stop of every rule to all places behind a call of it.
    fn connect_returns(&mut self) {
        let calls: Vec<(Rule, u8, StateId)> = self
            .states
            .iter()
            .flat_map(|state| &state.edges)
            .filter_map(|edge| match edge.label {
                Label::Call {
                    precedence, follow, ..
                } => Some((self.state(edge.target).rule, precedence, follow)),
                _ => None,
            })
            .collect();
        for (rule, precedence, follow) in calls {
            let outermost = (rule.is_recursive() && precedence == 0).then_some(rule);
            self.label(Self::stop(rule), follow, Label::Return { outermost });
        }
    }

    /// The tokens with which each way from a state begins, where they differ and no way depends on precedence.
    fn ways(&self, id: StateId) -> Option<Vec<TokenSet>> {
        let edges = &self.state(id).edges;
        if edges.len() < 2 || self.state(id).kind == StateKind::RuleStop {
            return None;
        }
        let mut seen = TokenSet::EMPTY;
        let mut ways = Vec::new();
        for edge in edges {
            let (way, _) = self.look(edge.target, Beyond::AnyCaller)?;
            if !seen.is_disjoint(way) {
                return None;
            }
            seen = seen.union(way);
            ways.push(way);
        }
        Some(ways)
    }

    /// The tokens that may be next from a state on, and whether the rule may end before. `None` where that depends
    /// on precedence, for those who ask beyond the rule.
    fn look(&self, from: StateId, beyond: Beyond) -> Option<(TokenSet, bool)> {
        let mut found = TokenSet::EMPTY;
        let mut may_end = false;
        let mut seen = vec![from];
        let mut pending = vec![from];
        while let Some(id) = pending.pop() {
            let state = self.state(id);
            if state.kind == StateKind::RuleStop && beyond == Beyond::Nothing {
                may_end = true;
                continue;
            }
            for edge in &state.edges {
                match edge.label {
                    Label::Tokens(tokens, _) => found = found.union(tokens),
                    // No rule matches nothing: what follows a call is never next.
                    Label::Call { .. } => found = found.union(self.look(edge.target, Beyond::Nothing)?.0),
                    Label::Precedence(..) if beyond == Beyond::AnyCaller => return None,
                    Label::Epsilon | Label::Alternative(_) | Label::Return { .. } | Label::Precedence(..) => {
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

/// Whether to look beyond the end of the rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beyond {
    Nothing,
    AnyCaller,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::fmt::Write as _;

    /// Which decisions one token settles, and how.
    #[test]
    fn ways_that_one_token_tells_apart() {
        let mut text = String::new();
        for (id, state) in ATN.states.iter().enumerate() {
            if state.edges.len() < 2 || state.kind == StateKind::RuleStop {
                continue;
            }
            let ways = ATN.state(id as StateId).ways.as_ref();
            let shown = ways.map_or("needs prediction".to_owned(), |ways| {
                ways.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" / ")
            });
            writeln!(text, "{:?} {:?}: {shown}", state.rule, state.kind).unwrap();
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
