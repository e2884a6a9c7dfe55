//! Adaptive prediction: chooses the alternative at a decision, as ANTLR's `ALL(*)` algorithm does.
//!
//! A prediction simulates all alternatives in parallel, token by token, until one is left. The first attempt ignores the
//! callers of the current rule (SLL). Its result depends on the tokens only, so it is cached as a DFA. If the alternatives
//! conflict, the prediction is repeated with the callers (LL). If several alternatives match to the end, the first wins.

use super::Reporter;
use super::atn::{Atn, Edge, EdgeLabel, StateId, StateKind};
use super::context::{ContextId, Contexts, EmptyStack, Return};
use super::recognize::Frame;
use super::stream::{TokenIndex, TokenStream};
use crate::syntax::token::TokenKind;
use std::collections::{BTreeMap, HashMap, HashSet};

/// An alternative, numbered from 1.
pub(super) type Alt = u8;

/// No alternative is viable.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoViableAlt {
    /// The token at the decision.
    pub(super) start: TokenIndex,
    /// The token that fits no alternative.
    pub(super) offending: TokenIndex,
}

/// The position of the recognizer at a decision.
pub(super) struct Decision<'q> {
    /// The state of the decision.
    pub(super) decision: StateId,
    /// The precedence that suffixes of the current rule must have.
    pub(super) precedence: u8,
    /// The active rules, outermost first.
    pub(super) frames: &'q [Frame],
}

/// A configuration of the ATN simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AtnConfig {
    state: StateId,
    alt: Alt,
    context: ContextId,
    /// The precedence that the alternative depends on.
    precedence: Option<u8>,
    /// True if the rule of the decision has ended.
    left_rule: bool,
    /// True if this was reached through the end of an outermost call of the recursive rule.
    outermost: bool,
}

/// The prediction of a set of configurations.
#[derive(Debug)]
enum Prediction {
    /// Nothing yet.
    Open,
    /// A unique alternative.
    Alt(Alt),
    /// The first alternative whose predicate holds.
    PredicatedAlt(Vec<PredicatedAlt>),
    /// A conflict that needs the callers, unless the predicates leave one alternative.
    NeedsCallers(Vec<PredicatedAlt>),
}

/// An alternative and its alternative precedence predicates; empty means unconditional.
#[derive(Debug)]
struct PredicatedAlt {
    alt: Alt,
    precedences: Vec<u8>,
}

#[derive(Debug)]
struct DfaState {
    configs: Vec<AtnConfig>,
    prediction: Prediction,
    /// The transitions; `None` for an error.
    transition: HashMap<TokenKind, Option<usize>>,
}

/// The predictor, with the DFA states of predictions that ignore callers.
#[derive(Debug)]
pub(super) struct Predictor {
    atn: &'static Atn,
    contexts: Contexts,
    states: Vec<DfaState>,
    /// The start state of a decision and, for suffix loops, a precedence.
    starts: HashMap<(StateId, u8), usize>,
    by_configs: HashMap<(StateId, Vec<AtnConfig>), usize>,
}

impl Predictor {
    pub(super) fn new(atn: &'static Atn) -> Self {
        Predictor {
            atn,
            contexts: Contexts::new(),
            states: Vec::new(),
            starts: HashMap::new(),
            by_configs: HashMap::new(),
        }
    }

    /// Predicts an alternative.
    pub(super) fn predict(
        &mut self,
        decision: &Decision<'_>,
        stream: &mut TokenStream<'_>,
        reporter: &mut Reporter,
    ) -> Result<Alt, NoViableAlt> {
        let start = stream.index(0, reporter);
        let mut current = self.start(decision);
        let mut ahead = 0;
        loop {
            let index = stream.index(ahead, reporter);
            let token = stream.get(index).kind;
            // No configuration accepts the token. An alternative that could already have ended is still a valid choice,
            // as in ANTLR's `getSynValidOrSemInvalidAltThatFinishedDecisionEntryRule`.
            let Some(next) = self.transition(decision, current, token) else {
                let configs = self.states.get(current).map_or(&[][..], |states| &states.configs);
                let offending = index;
                return self
                    .alt_that_finished(decision, configs)
                    .ok_or(NoViableAlt { start, offending });
            };
            match self.states.get(next).map(|states| &states.prediction) {
                None | Some(Prediction::Open) => {}
                Some(Prediction::Alt(alt)) => return Ok(*alt),
                Some(Prediction::PredicatedAlt(alts)) => {
                    // ANTLR reports a failed predicate at the decision itself, not at the token that it has looked
                    // ahead to.
                    let allowed = allowed(alts, decision.precedence).next();
                    return allowed.ok_or(NoViableAlt {
                        start,
                        offending: start,
                    });
                }
                Some(Prediction::NeedsCallers(alts)) => {
                    let allowed: Vec<Alt> = allowed(alts, decision.precedence).collect();
                    return match allowed.as_slice() {
                        [only] => Ok(*only),
                        // Full-context results depend on the callers, so they are never cached.
                        _ => self.predict_with_callers(decision, stream, reporter),
                    };
                }
            }
            current = next;
            if token != TokenKind::End {
                ahead += 1;
            }
        }
    }

    fn predict_with_callers(
        &mut self,
        decision: &Decision<'_>,
        stream: &mut TokenStream<'_>,
        reporter: &mut Reporter,
    ) -> Result<Alt, NoViableAlt> {
        let start = stream.index(0, reporter);
        let follows = decision
            .frames
            .iter()
            .filter_map(|frame| self.atn.follow_state(frame.caller?));
        let context = follows.fold(Contexts::EMPTY, |context, follow_state| {
            self.contexts.push(context, follow_state)
        });
        let mut configs = self.start_configs(decision, context, EmptyStack::NoCaller);
        let mut ahead = 0;
        loop {
            let token = stream.ahead(ahead, reporter).kind;
            let Some(reach) = self.reach(decision, &configs, token, EmptyStack::NoCaller) else {
                // UPSTREAM: ANTLR resets its input before it reports this error, so the error is at the decision.
                let offending = start;
                return self
                    .alt_that_finished(decision, &configs)
                    .ok_or(NoViableAlt { start, offending });
            };
            if let Some(alt) = unique_alt(&reach).or_else(|| common_first_alt(&reach)) {
                return Ok(alt);
            }
            configs = reach;
            if token != TokenKind::End {
                ahead += 1;
            }
        }
    }

    fn start(&mut self, decision: &Decision<'_>) -> usize {
        let suffixes = self.is_suffix_loop(decision);
        // Only the start states of suffix loops depend on precedence; all other decisions share one.
        let precedence = if suffixes { decision.precedence } else { 0 };
        let key = (decision.decision, precedence);
        if let Some(states) = self.starts.get(&key) {
            return *states;
        }
        let mut configs = self.start_configs(decision, Contexts::EMPTY, EmptyStack::AnyCaller);
        if suffixes {
            configs = self.filter_by_precedence(&configs, decision.precedence);
        }
        let start = self.intern_state(decision.decision, configs, Prediction::Open);
        self.starts.insert(key, start);
        start
    }

    fn is_suffix_loop(&self, decision: &Decision<'_>) -> bool {
        self.atn.state(decision.decision).kind == StateKind::LoopEntry { suffixes: true }
    }

    fn intern_state(&mut self, decision: StateId, configs: Vec<AtnConfig>, prediction: Prediction) -> usize {
        let key = (decision, configs);
        if let Some(states) = self.by_configs.get(&key) {
            return *states;
        }
        let id = self.states.len();
        self.states.push(DfaState {
            configs: key.1.clone(),
            prediction,
            transition: HashMap::new(),
        });
        self.by_configs.insert(key, id);
        id
    }

    /// The transition of a DFA state on a token.
    fn transition(&mut self, decision: &Decision<'_>, current: usize, token: TokenKind) -> Option<usize> {
        let states = self.states.get(current)?;
        if let Some(next) = states.transition.get(&token) {
            return *next;
        }
        // Cloned because computing the reach may intern contexts and states.
        let configs = states.configs.clone();
        let reach = self.reach(decision, &configs, token, EmptyStack::AnyCaller);
        let next = reach.map(|reach| {
            let prediction = self.prediction(&reach);
            self.intern_state(decision.decision, reach, prediction)
        });
        if let Some(states) = self.states.get_mut(current) {
            states.transition.insert(token, next);
        }
        next
    }

    fn prediction(&self, reach: &[AtnConfig]) -> Prediction {
        let (alts, conflict) = match unique_alt(reach) {
            Some(alt) => (vec![alt], false),
            // A conflict ends the simulation without callers: more lookahead would only reproduce it.
            None if self.is_conflict(reach) => (alts_of(reach), true),
            None => return Prediction::Open,
        };
        let conditional = |alt: Alt| {
            let mut precedences = Vec::new();
            for config in reach.iter().filter(|c| c.alt == alt) {
                match config.precedence {
                    Some(precedence) => precedences.push(precedence),
                    None => {
                        return PredicatedAlt {
                            alt,
                            precedences: Vec::new(),
                        };
                    }
                }
            }
            PredicatedAlt { alt, precedences }
        };
        let conditional: Vec<PredicatedAlt> = alts.iter().map(|alt| conditional(*alt)).collect();
        match (conflict, alts.as_slice()) {
            (true, _) => Prediction::NeedsCallers(conditional),
            (false, [alt]) if conditional.iter().all(|c| c.precedences.is_empty()) => Prediction::Alt(*alt),
            (false, _) => Prediction::PredicatedAlt(conditional),
        }
    }

    /// Returns whether the configurations conflict, so that further lookahead without callers cannot decide: some state and
    /// context is reached by several alternatives, and no state by only one.
    fn is_conflict(&self, configs: &[AtnConfig]) -> bool {
        if configs
            .iter()
            .all(|c| self.atn.state(c.state).kind == StateKind::RuleStop)
        {
            return true;
        }
        let mut by_state: BTreeMap<StateId, Vec<Alt>> = BTreeMap::new();
        for config in configs {
            // A state that only one alternative reaches may still lead to a decision, so such sets are not a conflict
            // yet.
            insert(by_state.entry(config.state).or_default(), config.alt);
        }
        by_place(configs).values().any(|alts| alts.len() > 1) && by_state.values().all(|alts| alts.len() > 1)
    }

    /// The alternative that has finished the rule or its caller, if the token fits no alternative.
    fn alt_that_finished(&self, decision: &Decision<'_>, configs: &[AtnConfig]) -> Option<Alt> {
        let first = |valid: bool| {
            configs
                .iter()
                .filter(|c| c.precedence.is_none_or(|p| p >= decision.precedence) == valid)
                .filter(|c| {
                    c.left_rule
                        || self.atn.state(c.state).kind == StateKind::RuleStop
                            && self.contexts.may_be_empty(c.context)
                })
                .map(|c| c.alt)
                .min()
        };
        first(true).or_else(|| first(false))
    }

    fn start_configs(
        &mut self,
        decision: &Decision<'_>,
        context: ContextId,
        empty_stack: EmptyStack,
    ) -> Vec<AtnConfig> {
        let mut set = AtnConfigSet::new(empty_stack);
        for (n, edge) in self.atn.state(decision.decision).edges.iter().enumerate() {
            let config = AtnConfig {
                state: edge.target,
                alt: (n + 1) as Alt,
                context,
                precedence: None,
                left_rule: false,
                outermost: false,
            };
            // Predicates count only here: behind the first token, the precedence of the decision no longer applies.
            Closure::new(self, decision, &mut set, false).add(config, true, 0);
        }
        set.configs
    }

    /// Drops configurations that precedence forbids, or that another iteration of suffixes reaches as well.
    fn filter_by_precedence(&mut self, configs: &[AtnConfig], precedence: u8) -> Vec<AtnConfig> {
        let mut set = AtnConfigSet::new(EmptyStack::AnyCaller);
        let mut from_first = HashMap::new();
        for config in configs.iter().filter(|c| c.alt == 1) {
            if config.precedence.is_none_or(|p| p >= precedence) {
                from_first.insert(config.state, config.context);
                let config = AtnConfig {
                    precedence: None,
                    ..*config
                };
                set.add(&mut self.contexts, config);
            }
        }
        for config in configs.iter().filter(|c| c.alt != 1) {
            // Leaving the loop is dropped where another iteration reaches the same place, which resolves the ambiguity
            // between the loop of this rule and that of its caller.
            if config.outermost || from_first.get(&config.state) != Some(&config.context) {
                set.add(&mut self.contexts, *config);
            }
        }
        set.configs
    }

    /// The configurations reached from these by a token.
    fn reach(
        &mut self,
        decision: &Decision<'_>,
        configs: &[AtnConfig],
        token: TokenKind,
        empty_stack: EmptyStack,
    ) -> Option<Vec<AtnConfig>> {
        let at_end = token == TokenKind::End;
        let mut direct = AtnConfigSet::new(empty_stack);
        let mut stopped = Vec::new();
        for config in configs {
            let state = self.atn.state(config.state);
            if state.kind == StateKind::RuleStop {
                // With a known caller a finished alternative is a result of its own. Without one it continues in some
                // caller.
                if empty_stack == EmptyStack::NoCaller || at_end {
                    stopped.push(*config);
                }
                continue;
            }
            for edge in &state.edges {
                if matches!(edge.label, EdgeLabel::Tokens(tokens, _) if tokens.contains(token)) {
                    let config = AtnConfig {
                        state: edge.target,
                        ..*config
                    };
                    direct.add(&mut self.contexts, config);
                }
            }
        }
        // Once one alternative is left, no further lookahead is needed.
        let settled = stopped.is_empty() && !at_end && unique_alt(&direct.configs).is_some();
        let mut reach = if settled {
            direct
        } else {
            let mut reach = AtnConfigSet::new(empty_stack);
            let mut closure = Closure::new(self, decision, &mut reach, at_end);
            for config in direct.configs {
                closure.add(config, false, 0);
            }
            reach
        };
        let is_stop = |config: &AtnConfig| self.atn.state(config.state).kind == StateKind::RuleStop;
        if at_end {
            reach.configs.retain(is_stop);
        }
        // With callers, ANTLR keeps finished configurations only if no longer match finishes as well.
        if empty_stack == EmptyStack::AnyCaller || !reach.configs.iter().any(is_stop) {
            for config in stopped {
                reach.add(&mut self.contexts, config);
            }
        }
        (!reach.configs.is_empty()).then_some(reach.configs)
    }
}

/// The alternatives whose predicate holds.
fn allowed(alts: &[PredicatedAlt], precedence: u8) -> impl Iterator<Item = Alt> {
    alts.iter()
        .filter(move |c| c.precedences.is_empty() || c.precedences.iter().any(|p| *p >= precedence))
        .map(|c| c.alt)
}

fn unique_alt(configs: &[AtnConfig]) -> Option<Alt> {
    let alt = configs.first()?.alt;
    configs.iter().all(|c| c.alt == alt).then_some(alt)
}

fn alts_of(configs: &[AtnConfig]) -> Vec<Alt> {
    let mut alts = Vec::new();
    for config in configs {
        insert(&mut alts, config.alt);
    }
    alts
}

fn insert(alts: &mut Vec<Alt>, alt: Alt) {
    if let Err(at) = alts.binary_search(&alt) {
        alts.insert(at, alt);
    }
}

/// The alternatives that reach each pair of state and context.
fn by_place(configs: &[AtnConfig]) -> BTreeMap<(StateId, ContextId), Vec<Alt>> {
    let mut places: BTreeMap<_, Vec<Alt>> = BTreeMap::new();
    for config in configs {
        insert(
            places.entry((config.state, config.context)).or_default(),
            config.alt,
        );
    }
    places
}

/// The minimal alternative of every pair of state and context, if it is the same for all.
fn common_first_alt(configs: &[AtnConfig]) -> Option<Alt> {
    let places = by_place(configs);
    let mut firsts = places.values().filter_map(|alts| alts.first().copied());
    let first = firsts.next()?;
    firsts.all(|alt| alt == first).then_some(first)
}

/// A set of configurations, in which those that differ only in their context are merged.
struct AtnConfigSet {
    empty_stack: EmptyStack,
    configs: Vec<AtnConfig>,
}

impl AtnConfigSet {
    fn new(empty_stack: EmptyStack) -> Self {
        AtnConfigSet {
            empty_stack,
            configs: Vec::new(),
        }
    }

    fn add(&mut self, contexts: &mut Contexts, config: AtnConfig) {
        let same = |c: &&mut AtnConfig| {
            // The set is small, so a search is cheaper than hashing, and the order of insertion decides between
            // alternatives.
            c.state == config.state && c.alt == config.alt && c.precedence == config.precedence
        };
        match self.configs.iter_mut().find(same) {
            Some(states) => {
                states.context = contexts.merge(states.context, config.context, self.empty_stack);
                states.left_rule |= config.left_rule;
                states.outermost |= config.outermost;
            }
            None => self.configs.push(config),
        }
    }
}

/// Computes the epsilon closure.
struct Closure<'c, 'q> {
    predictor: &'c mut Predictor,
    decision: &'q Decision<'q>,
    set: &'c mut AtnConfigSet,
    seen: HashSet<(StateId, Alt, ContextId, Option<u8>, bool)>,
    /// True if the end of the source, which can be matched repeatedly, counts as an epsilon edge.
    at_end: bool,
    suffixes: bool,
}

impl<'c, 'q> Closure<'c, 'q> {
    fn new(
        predictor: &'c mut Predictor,
        decision: &'q Decision<'q>,
        set: &'c mut AtnConfigSet,
        at_end: bool,
    ) -> Self {
        let suffixes = predictor.is_suffix_loop(decision);
        Closure {
            predictor,
            decision,
            set,
            seen: HashSet::new(),
            at_end,
            suffixes,
        }
    }

    /// Adds the closure of a configuration. `collect` says whether predicates are collected; `depth` is the
    /// call depth, negative once the rule has ended.
    fn add(&mut self, config: AtnConfig, collect: bool, depth: i32) {
        let mut pending = vec![config];
        while let Some(config) = pending.pop() {
            let atn = self.predictor.atn;
            if atn.state(config.state).kind != StateKind::RuleStop {
                self.follow_edges(config, collect, depth);
                continue;
            }
            let entries = self.predictor.contexts.entries(config.context).to_vec();
            for (to, context) in entries {
                match (to, self.set.empty_stack) {
                    (Return::To(state), _) => pending.push(AtnConfig {
                        state,
                        context,
                        outermost: false,
                        ..config
                    }),
                    (Return::Nowhere, EmptyStack::NoCaller) => {
                        let config = AtnConfig {
                            context: Contexts::EMPTY,
                            ..config
                        };
                        self.set.add(&mut self.predictor.contexts, config);
                    }
                    (Return::Nowhere, EmptyStack::AnyCaller) => self.follow_edges(config, collect, depth),
                }
            }
        }
    }

    fn follow_edges(&mut self, config: AtnConfig, collect: bool, depth: i32) {
        let state = self.predictor.atn.state(config.state);
        if !state.is_passed_through() {
            self.set.add(&mut self.predictor.contexts, config);
        }
        for (n, edge) in state.edges.iter().enumerate() {
            // ANTLR's shortcut for nested suffix loops. It changes the configurations and so the errors, not only the
            // speed.
            if n == 0 && self.repeats_in_caller(config) {
                continue;
            }
            let Some(mut next) = self.follow_state(config, edge, collect && depth == 0) else {
                continue;
            };
            let mut depth = depth;
            match edge.label {
                EdgeLabel::Return { outermost } => {
                    let rule = self.predictor.atn.state(self.decision.decision).rule;
                    next.outermost |= self.suffixes && outermost == Some(rule);
                    next.left_rule = true;
                    if !self.is_new(&next) {
                        continue;
                    }
                    depth -= 1;
                }
                EdgeLabel::Tokens(..) if !self.is_new(&next) => continue,
                // Once the rule of the decision has ended, calls no longer count, so that predicates stay out.
                EdgeLabel::Call { .. } if depth >= 0 => depth += 1,
                _ => {}
            }
            self.add(next, collect, depth);
        }
    }

    fn is_new(&mut self, config: &AtnConfig) -> bool {
        self.seen.insert((
            config.state,
            config.alt,
            config.context,
            config.precedence,
            config.outermost,
        ))
    }

    /// The target of an epsilon edge; `None` for other edges.
    fn follow_state(&mut self, config: AtnConfig, edge: &Edge, condition_counts: bool) -> Option<AtnConfig> {
        let mut next = AtnConfig {
            state: edge.target,
            ..config
        };
        match edge.label {
            EdgeLabel::Epsilon | EdgeLabel::Alternative(_) | EdgeLabel::Return { .. } => {}
            EdgeLabel::Call { follow_state, .. } => {
                next.context = self.predictor.contexts.push(config.context, follow_state);
            }
            EdgeLabel::Precedence(precedence, _) if condition_counts => match self.set.empty_stack {
                // With callers, the predicate is evaluated at once. Without, it becomes part of the cached
                // configuration.
                EmptyStack::NoCaller if precedence < self.decision.precedence => return None,
                EmptyStack::NoCaller => {}
                EmptyStack::AnyCaller => next.precedence = Some(precedence),
            },
            EdgeLabel::Precedence(..) => {}
            EdgeLabel::Tokens(tokens, _) if self.at_end && tokens.contains(TokenKind::End) => {}
            EdgeLabel::Tokens(..) => return None,
        }
        Some(next)
    }

    /// Returns whether every caller is a suffix of the same recursive rule, so that the caller's loop will
    /// match whatever this one could.
    fn repeats_in_caller(&self, config: AtnConfig) -> bool {
        let atn = self.predictor.atn;
        let state = atn.state(config.state);
        if state.kind != (StateKind::LoopEntry { suffixes: true }) {
            return false;
        }
        let back = |id: StateId| atn.state(id).target().and_then(|back| atn.state(back).target());
        self.predictor
            .contexts
            .entries(config.context)
            .iter()
            .all(|(to, _)| match to {
                Return::To(follow_state) => {
                    atn.state(*follow_state).kind == StateKind::BlockEnd
                        && back(*follow_state) == Some(config.state)
                }
                Return::Nowhere => false,
            })
    }
}
