//! Which way to go where ways part.
//!
//! A prediction pursues all ways at once, token by token, until one is left. It first does so without regard to the
//! callers of the current rule, which is cheap because the result depends on the tokens alone and is remembered; if
//! ways then cannot be told apart, once more with the callers. Where several ways lead on in the same manner to the
//! end, the first is taken.

use super::Reporter;
use super::atn::{Atn, Edge, Label, StateId, StateKind};
use super::context::{Bottom, ContextId, Contexts, Return};
use super::recognize::Frame;
use super::stream::{Index, Stream};
use crate::syntax::token::TokenKind;
use std::collections::{BTreeMap, HashMap, HashSet};

/// A way, by its number from 1.
pub(super) type Way = u8;

/// No way leads on.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoWay {
    /// The token at which the ways part.
    pub(super) start: Index,
    /// The token that fits none.
    pub(super) offending: Index,
}

/// Where the recognizer stands when it asks.
pub(super) struct Question<'q> {
    /// The state at which ways part.
    pub(super) decision: StateId,
    /// The precedence that suffixes of the current rule must have.
    pub(super) precedence: u8,
    /// The rules that have been entered, from the outermost on.
    pub(super) frames: &'q [Frame],
}

/// One of the places that a prediction has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Config {
    state: StateId,
    way: Way,
    context: ContextId,
    /// The precedence that this way depends on.
    precedence: Option<u8>,
    /// Whether the rule in which the ways part has ended.
    left_rule: bool,
    /// Whether this came about by the end of an outermost call of the recursive rule.
    outermost: bool,
}

/// What a set of configurations says about the question.
#[derive(Debug)]
enum Verdict {
    /// Nothing yet.
    Open,
    /// This way.
    Way(Way),
    /// The first way whose condition holds.
    Conditional(Vec<Conditional>),
    /// It takes the callers to tell, unless the conditions leave one way only.
    NeedsCallers(Vec<Conditional>),
}

/// A way and the precedences of which one must be allowed; none stands for no condition.
#[derive(Debug)]
struct Conditional {
    way: Way,
    precedences: Vec<u8>,
}

#[derive(Debug)]
struct Known {
    configs: Vec<Config>,
    verdict: Verdict,
    /// What follows on a token; `None` where nothing does.
    after: HashMap<TokenKind, Option<usize>>,
}

/// Predicts, and remembers what does not depend on callers.
#[derive(Debug)]
pub(super) struct Predictor {
    atn: &'static Atn,
    contexts: Contexts,
    known: Vec<Known>,
    /// The first set for a decision and, where it matters, a precedence.
    starts: HashMap<(StateId, u8), usize>,
    by_configs: HashMap<(StateId, Vec<Config>), usize>,
}

impl Predictor {
    pub(super) fn new(atn: &'static Atn) -> Self {
        Predictor {
            atn,
            contexts: Contexts::new(),
            known: Vec::new(),
            starts: HashMap::new(),
            by_configs: HashMap::new(),
        }
    }

    /// Which way to go.
    pub(super) fn predict(
        &mut self,
        question: &Question<'_>,
        stream: &mut Stream<'_>,
        reporter: &mut Reporter,
    ) -> Result<Way, NoWay> {
        let start = stream.index(0, reporter);
        let mut current = self.start(question);
        let mut ahead = 0;
        loop {
            let index = stream.index(ahead, reporter);
            let token = stream.get(index).kind;
            let Some(next) = self.after(question, current, token) else {
                let configs = self.known.get(current).map_or(&[][..], |known| &known.configs);
                let offending = index;
                return self.finished(question, configs).ok_or(NoWay { start, offending });
            };
            match self.known.get(next).map(|known| &known.verdict) {
                None | Some(Verdict::Open) => {}
                Some(Verdict::Way(way)) => return Ok(*way),
                Some(Verdict::Conditional(ways)) => {
                    let allowed = allowed(ways, question.precedence).next();
                    return allowed.ok_or(NoWay {
                        start,
                        offending: start,
                    });
                }
                Some(Verdict::NeedsCallers(ways)) => {
                    let allowed: Vec<Way> = allowed(ways, question.precedence).collect();
                    return match allowed.as_slice() {
                        [only] => Ok(*only),
                        _ => self.predict_with_callers(question, stream, reporter),
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
        question: &Question<'_>,
        stream: &mut Stream<'_>,
        reporter: &mut Reporter,
    ) -> Result<Way, NoWay> {
        let start = stream.index(0, reporter);
        let follows = question
            .frames
            .iter()
            .filter_map(|frame| self.atn.follow(frame.caller?));
        let context = follows.fold(Contexts::EMPTY, |context, follow| {
            self.contexts.push(context, follow)
        });
        let mut configs = self.start_configs(question, context, Bottom::NoCaller);
        let mut ahead = 0;
        loop {
            let token = stream.ahead(ahead, reporter).kind;
            let Some(reach) = self.reach(question, &configs, token, Bottom::NoCaller) else {
                let offending = start;
                return self
                    .finished(question, &configs)
                    .ok_or(NoWay { start, offending });
            };
            if let Some(way) = only_way(&reach).or_else(|| common_first_way(&reach)) {
                return Ok(way);
            }
            configs = reach;
            if token != TokenKind::End {
                ahead += 1;
            }
        }
    }

    fn start(&mut self, question: &Question<'_>) -> usize {
        let suffixes = self.asks_for_suffixes(question);
        let precedence = if suffixes { question.precedence } else { 0 };
        let key = (question.decision, precedence);
        if let Some(known) = self.starts.get(&key) {
            return *known;
        }
        let mut configs = self.start_configs(question, Contexts::EMPTY, Bottom::AnyCaller);
        if suffixes {
            configs = self.filter_by_precedence(&configs, question.precedence);
        }
        let start = self.remember(question.decision, configs, Verdict::Open);
        self.starts.insert(key, start);
        start
    }

    fn asks_for_suffixes(&self, question: &Question<'_>) -> bool {
        self.atn.state(question.decision).kind == StateKind::LoopEntry { suffixes: true }
    }

    fn remember(&mut self, decision: StateId, configs: Vec<Config>, verdict: Verdict) -> usize {
        let key = (decision, configs);
        if let Some(known) = self.by_configs.get(&key) {
            return *known;
        }
        let id = self.known.len();
        self.known.push(Known {
            configs: key.1.clone(),
            verdict,
            after: HashMap::new(),
        });
        self.by_configs.insert(key, id);
        id
    }

    /// What follows a known set on a token, regardless of callers.
    fn after(&mut self, question: &Question<'_>, current: usize, token: TokenKind) -> Option<usize> {
        let known = self.known.get(current)?;
        if let Some(next) = known.after.get(&token) {
            return *next;
        }
        let configs = known.configs.clone();
        let reach = self.reach(question, &configs, token, Bottom::AnyCaller);
        let next = reach.map(|reach| {
            let verdict = self.verdict(&reach);
            self.remember(question.decision, reach, verdict)
        });
        if let Some(known) = self.known.get_mut(current) {
            known.after.insert(token, next);
        }
        next
    }

    fn verdict(&self, reach: &[Config]) -> Verdict {
        let (ways, conflict) = match only_way(reach) {
            Some(way) => (vec![way], false),
            None if self.is_conflict(reach) => (ways_of(reach), true),
            None => return Verdict::Open,
        };
        let conditional = |way: Way| {
            let mut precedences = Vec::new();
            for config in reach.iter().filter(|c| c.way == way) {
                match config.precedence {
                    Some(precedence) => precedences.push(precedence),
                    None => {
                        return Conditional {
                            way,
                            precedences: Vec::new(),
                        };
                    }
                }
            }
            Conditional { way, precedences }
        };
        let conditional: Vec<Conditional> = ways.iter().map(|way| conditional(*way)).collect();
        match (conflict, ways.as_slice()) {
            (true, _) => Verdict::NeedsCallers(conditional),
            (false, [way]) if conditional.iter().all(|c| c.precedences.is_empty()) => Verdict::Way(*way),
            (false, _) => Verdict::Conditional(conditional),
        }
    }

    /// Whether going on without callers will not tell the ways apart: some state in some context is reached on
    /// several ways, and none is reached on one way only.
    fn is_conflict(&self, configs: &[Config]) -> bool {
        if configs
            .iter()
            .all(|c| self.atn.state(c.state).kind == StateKind::RuleStop)
        {
            return true;
        }
        let mut by_state: BTreeMap<StateId, Vec<Way>> = BTreeMap::new();
        for config in configs {
            insert(by_state.entry(config.state).or_default(), config.way);
        }
        by_place(configs).values().any(|ways| ways.len() > 1) && by_state.values().all(|ways| ways.len() > 1)
    }

    /// The way on which the rule, or what called it, has been finished, where a token fits no way.
    fn finished(&self, question: &Question<'_>, configs: &[Config]) -> Option<Way> {
        let first = |valid: bool| {
            configs
                .iter()
                .filter(|c| c.precedence.is_none_or(|p| p >= question.precedence) == valid)
                .filter(|c| {
                    c.left_rule
                        || self.atn.state(c.state).kind == StateKind::RuleStop
                            && self.contexts.may_be_empty(c.context)
                })
                .map(|c| c.way)
                .min()
        };
        first(true).or_else(|| first(false))
    }

    fn start_configs(&mut self, question: &Question<'_>, context: ContextId, bottom: Bottom) -> Vec<Config> {
        let mut set = ConfigSet::new(bottom);
        for (n, edge) in self.atn.state(question.decision).edges.iter().enumerate() {
            let config = Config {
                state: edge.target,
                way: (n + 1) as Way,
                context,
                precedence: None,
                left_rule: false,
                outermost: false,
            };
            Closure::new(self, question, &mut set, false).add(config, true, 0);
        }
        set.configs
    }

    /// Drops what precedence does not allow, and what another round of suffixes would reach as well.
    fn filter_by_precedence(&mut self, configs: &[Config], precedence: u8) -> Vec<Config> {
        let mut set = ConfigSet::new(Bottom::AnyCaller);
        let mut from_first = HashMap::new();
        for config in configs.iter().filter(|c| c.way == 1) {
            if config.precedence.is_none_or(|p| p >= precedence) {
                from_first.insert(config.state, config.context);
                let config = Config {
                    precedence: None,
                    ..*config
                };
                set.add(&mut self.contexts, config);
            }
        }
        for config in configs.iter().filter(|c| c.way != 1) {
            if config.outermost || from_first.get(&config.state) != Some(&config.context) {
                set.add(&mut self.contexts, *config);
            }
        }
        set.configs
    }

    /// What is reached from these on a token.
    fn reach(
        &mut self,
        question: &Question<'_>,
        configs: &[Config],
        token: TokenKind,
        bottom: Bottom,
    ) -> Option<Vec<Config>> {
        let at_end = token == TokenKind::End;
        let mut direct = ConfigSet::new(bottom);
        let mut stopped = Vec::new();
        for config in configs {
            let state = self.atn.state(config.state);
            if state.kind == StateKind::RuleStop {
                if bottom == Bottom::NoCaller || at_end {
                    stopped.push(*config);
                }
                continue;
            }
            for edge in &state.edges {
                if matches!(edge.label, Label::Tokens(tokens, _) if tokens.contains(token)) {
                    let config = Config {
                        state: edge.target,
                        ..*config
                    };
                    direct.add(&mut self.contexts, config);
                }
            }
        }
        // Where one way is left there is no need to look further.
        let settled = stopped.is_empty() && !at_end && only_way(&direct.configs).is_some();
        let mut reach = if settled {
            direct
        } else {
            let mut reach = ConfigSet::new(bottom);
            let mut closure = Closure::new(self, question, &mut reach, at_end);
            for config in direct.configs {
                closure.add(config, false, 0);
            }
            reach
        };
        let is_stop = |config: &Config| self.atn.state(config.state).kind == StateKind::RuleStop;
        if at_end {
            reach.configs.retain(is_stop);
        }
        if bottom == Bottom::AnyCaller || !reach.configs.iter().any(is_stop) {
            for config in stopped {
                reach.add(&mut self.contexts, config);
            }
        }
        (!reach.configs.is_empty()).then_some(reach.configs)
    }
}

/// The ways whose condition holds.
fn allowed(ways: &[Conditional], precedence: u8) -> impl Iterator<Item = Way> {
    ways.iter()
        .filter(move |c| c.precedences.is_empty() || c.precedences.iter().any(|p| *p >= precedence))
        .map(|c| c.way)
}

fn only_way(configs: &[Config]) -> Option<Way> {
    let way = configs.first()?.way;
    configs.iter().all(|c| c.way == way).then_some(way)
}

fn ways_of(configs: &[Config]) -> Vec<Way> {
    let mut ways = Vec::new();
    for config in configs {
        insert(&mut ways, config.way);
    }
    ways
}

fn insert(ways: &mut Vec<Way>, way: Way) {
    if let Err(at) = ways.binary_search(&way) {
        ways.insert(at, way);
    }
}

/// The ways on which each state is reached in each context.
fn by_place(configs: &[Config]) -> BTreeMap<(StateId, ContextId), Vec<Way>> {
    let mut places: BTreeMap<_, Vec<Way>> = BTreeMap::new();
    for config in configs {
        insert(
            places.entry((config.state, config.context)).or_default(),
            config.way,
        );
    }
    places
}

/// The way that is the first of those on which each place is reached, where it is the same for all.
fn common_first_way(configs: &[Config]) -> Option<Way> {
    let places = by_place(configs);
    let mut firsts = places.values().filter_map(|ways| ways.first().copied());
    let first = firsts.next()?;
    firsts.all(|way| way == first).then_some(first)
}

/// Configurations, of which those that differ in their context alone are one.
struct ConfigSet {
    bottom: Bottom,
    configs: Vec<Config>,
}

impl ConfigSet {
    fn new(bottom: Bottom) -> Self {
        ConfigSet {
            bottom,
            configs: Vec::new(),
        }
    }

    fn add(&mut self, contexts: &mut Contexts, config: Config) {
        let same = |c: &&mut Config| {
            c.state == config.state && c.way == config.way && c.precedence == config.precedence
        };
        match self.configs.iter_mut().find(same) {
            Some(known) => {
                known.context = contexts.merge(known.context, config.context, self.bottom);
                known.left_rule |= config.left_rule;
                known.outermost |= config.outermost;
            }
            None => self.configs.push(config),
        }
    }
}

/// Follows edges that take no token.
struct Closure<'c, 'q> {
    predictor: &'c mut Predictor,
    question: &'q Question<'q>,
    set: &'c mut ConfigSet,
    seen: HashSet<(StateId, Way, ContextId, Option<u8>, bool)>,
    /// Whether the end of the source, which can be taken again and again, counts as nothing.
    at_end: bool,
    suffixes: bool,
}

impl<'c, 'q> Closure<'c, 'q> {
    fn new(
        predictor: &'c mut Predictor,
        question: &'q Question<'q>,
        set: &'c mut ConfigSet,
        at_end: bool,
    ) -> Self {
        let suffixes = predictor.asks_for_suffixes(question);
        Closure {
            predictor,
            question,
            set,
            seen: HashSet::new(),
            at_end,
            suffixes,
        }
    }

    /// Adds what is reached from a configuration. `collect` says whether conditions count; `depth` is how deep the
    /// calls go, negative once the rule has ended.
    fn add(&mut self, config: Config, collect: bool, depth: i32) {
        let mut pending = vec![config];
        while let Some(config) = pending.pop() {
            let atn = self.predictor.atn;
            if atn.state(config.state).kind != StateKind::RuleStop {
                self.follow_edges(config, collect, depth);
                continue;
            }
            let entries = self.predictor.contexts.entries(config.context).to_vec();
            for (to, context) in entries {
                match (to, self.set.bottom) {
                    (Return::To(state), _) => pending.push(Config {
                        state,
                        context,
                        outermost: false,
                        ..config
                    }),
                    (Return::Nowhere, Bottom::NoCaller) => {
                        let config = Config {
                            context: Contexts::EMPTY,
                            ..config
                        };
                        self.set.add(&mut self.predictor.contexts, config);
                    }
                    (Return::Nowhere, Bottom::AnyCaller) => self.follow_edges(config, collect, depth),
                }
            }
        }
    }

    fn follow_edges(&mut self, config: Config, collect: bool, depth: i32) {
        let state = self.predictor.atn.state(config.state);
        if !state.is_passed_through() {
            self.set.add(&mut self.predictor.contexts, config);
        }
        for (n, edge) in state.edges.iter().enumerate() {
            if n == 0 && self.repeats_in_caller(config) {
                continue;
            }
            let Some(mut next) = self.follow(config, edge, collect && depth == 0) else {
                continue;
            };
            let mut depth = depth;
            match edge.label {
                Label::Return { outermost } => {
                    let rule = self.predictor.atn.state(self.question.decision).rule;
                    next.outermost |= self.suffixes && outermost == Some(rule);
                    next.left_rule = true;
                    if !self.is_new(&next) {
                        continue;
                    }
                    depth -= 1;
                }
                Label::Tokens(..) if !self.is_new(&next) => continue,
                Label::Call { .. } if depth >= 0 => depth += 1,
                _ => {}
            }
            self.add(next, collect, depth);
        }
    }

    fn is_new(&mut self, config: &Config) -> bool {
        self.seen.insert((
            config.state,
            config.way,
            config.context,
            config.precedence,
            config.outermost,
        ))
    }

    /// What an edge leads to, if it takes no token.
    fn follow(&mut self, config: Config, edge: &Edge, condition_counts: bool) -> Option<Config> {
        let mut next = Config {
            state: edge.target,
            ..config
        };
        match edge.label {
            Label::Epsilon | Label::Alternative(_) | Label::Return { .. } => {}
            Label::Call { follow, .. } => next.context = self.predictor.contexts.push(config.context, follow),
            Label::Precedence(precedence, _) if condition_counts => match self.set.bottom {
                Bottom::NoCaller if precedence < self.question.precedence => return None,
                Bottom::NoCaller => {}
                Bottom::AnyCaller => next.precedence = Some(precedence),
            },
            Label::Precedence(..) => {}
            Label::Tokens(tokens, _) if self.at_end && tokens.contains(TokenKind::End) => {}
            Label::Tokens(..) => return None,
        }
        Some(next)
    }

    /// Whether every caller is a suffix of the same recursive rule, so that its own loop will take up what this one
    /// could.
    fn repeats_in_caller(&self, config: Config) -> bool {
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
                Return::To(follow) => {
                    atn.state(*follow).kind == StateKind::BlockEnd && back(*follow) == Some(config.state)
                }
                Return::Nowhere => false,
            })
    }
}
