//! Fused rules: all rules of a schema node as one decision graph.
//!
//! The rules of a schema node read the same value and mostly consist of the same few tests: whether a field is present,
//! how a string or number compares with a constant, whether all elements of a list satisfy a predicate. Nearly always,
//! all rules pass. [`FusedRules::all_hold`] decides whether they do:
//!
//! 1. One pass over the value stores the fields that any rule reads in slots (`fields`).
//! 2. A decision graph (`test`) runs from test to test through all rules. Short-circuit operators are edges of the graph,
//!    and each edge carries the cost of the operators that it crosses. `branch` compiles programs to the graph.
//! 3. Expressions without a test of their own are left to the interpreter in fast mode.
//!
//! If a rule fails, or a value does not fit the schema, the answer is `None` and the caller evaluates the programs one by
//! one. Debug builds compare the cost with that of the interpreter.

mod branch;
mod fields;
mod test;

use super::interpreter::{Interpreter, LocalValue};
use super::mode::Fast;
use super::{Input, Limits, Program};
use crate::estimate::text_cost;
use crate::shape::Shape;
use crate::val::{Arena, Val, text_size};
use fields::{Layout, ROOT, SUBJECT};
use scantling_value::{Value, same_text};
use std::sync::Arc;
use test::{
    Affix, BranchTable, Edge, Fallback, FusedTest, NumberSource, Quantifier, RegexSearch, TextSource,
};

/// The number of slots for fields and list elements.
const MAX_SLOTS: usize = 32;

/// The number of regular-expression searches whose result is cached within one evaluation.
const MAX_CACHED_SEARCHES: usize = 4;

/// The index of a slot.
type SlotIndex = u8;

/// The rules of one schema node, compiled to a decision graph.
#[derive(Debug)]
pub struct FusedRules {
    shape: Arc<Shape>,
    /// The programs of the rules; `None` for a rule that is not part of the graph.
    programs: Box<[Option<Arc<Program>>]>,
    layout: Layout,
    branches: BranchTable,
    entry: Edge,
}

/// The fields and elements of the value under evaluation.
struct Slots<'v> {
    slots: [Option<&'v Value>; MAX_SLOTS],
}

impl<'v> Slots<'v> {
    #[inline]
    fn get(&self, slot: SlotIndex) -> Option<&'v Value> {
        self.slots.get(usize::from(slot)).copied().flatten()
    }

    #[inline]
    fn set(&mut self, slot: SlotIndex, value: Option<&'v Value>) {
        if let Some(place) = self.slots.get_mut(usize::from(slot)) {
            *place = value;
        }
    }
}

impl FusedRules {
    /// Compiles programs that read only their first input, which has the given shape. `None` stands for rules that
    /// must be evaluated on their own.
    pub fn new(shape: &Arc<Shape>, programs: impl IntoIterator<Item = Option<Arc<Program>>>) -> Self {
        let fast_path = |program: Option<Arc<Program>>| program.filter(|program| program.has_fast_path);
        let programs: Box<[Option<Arc<Program>>]> = programs.into_iter().map(fast_path).collect();
        let mut builder = branch::FusedBuilder::new(shape);
        let entry = builder.all(&programs);
        let (layout, branches) = builder.finish();
        FusedRules {
            shape: Arc::clone(shape),
            programs,
            layout,
            branches,
            entry,
        }
    }

    /// Returns whether the program with that index is part of the graph.
    #[inline]
    pub fn include(&self, index: usize) -> bool {
        self.programs.get(index).is_some_and(Option::is_some)
    }

    /// Returns the total cost if all rules of the graph pass within the limit. `None` means that only their programs can
    /// tell which rule fails, or why.
    #[inline]
    pub fn all_hold(&self, value: &Value, arena: &Arena, limit: u64) -> Option<u64> {
        let limits = Limits {
            cost: limit,
            interrupt: None,
        };
        // All programs have the same inputs and semantics, so any one serves the interpreter.
        let Some(first) = self.programs.iter().flatten().next() else {
            return Some(0);
        };
        let inputs = [Input::Json(value, &self.shape)];
        let mut fused_run = FusedRun {
            fused: self,
            view: Slots {
                slots: [None; MAX_SLOTS],
            },
            found: [None; MAX_CACHED_SEARCHES],
            last: LastText::NONE,
            interpreter: Interpreter::new(first, arena, &inputs, limits),
        };
        fused_run.view.set(SUBJECT, Some(value));
        self.layout.find(ROOT, value, &mut fused_run.view);
        let holds = fused_run.follow(self.entry)?;
        let cost = fused_run.interpreter.cost_within_limit().filter(|_| holds)?;
        if cfg!(debug_assertions) {
            self.assert_cost(cost, arena, &inputs);
        }
        Some(cost)
    }

    /// Checks the result against the interpreter.
    fn assert_cost<'a>(&'a self, cost: u64, arena: &'a Arena, inputs: &[Input<'a>]) {
        let mut sum = 0;
        for program in self.programs.iter().flatten() {
            let outcome = program.eval_thoroughly(arena, inputs, Limits::NONE);
            assert!(
                matches!(outcome.result, Ok(Val::Bool(true))),
                "{}: {}",
                program,
                outcome.summary()
            );
            sum += outcome.cost;
        }
        assert_eq!(cost, sum);
    }
}

/// One evaluation.
struct FusedRun<'a, 'c> {
    fused: &'a FusedRules,
    view: Slots<'a>,
    /// Results of searches in fields of the subject, which do not change during the evaluation.
    found: [Option<&'a str>; MAX_CACHED_SEARCHES],
    last: LastText<'a>,
    interpreter: Interpreter<'a, 'c, Fast>,
}

/// The string of the last test. Its size is cached, because consecutive tests mostly read the same field.
struct LastText<'a> {
    slot: SlotIndex,
    text: &'a str,
    /// The size in characters, once computed.
    size: Option<u64>,
}

impl LastText<'_> {
    const NONE: LastText<'static> = LastText {
        slot: SlotIndex::MAX,
        text: "",
        size: None,
    };
}

impl<'a> FusedRun<'a, '_> {
    #[inline]
    fn charge(&mut self, cost: u64) {
        // Fast mode checks the limit at the end.
        let _ = self.interpreter.charge(cost);
    }

    /// Follows the graph to a result.
    fn follow(&mut self, entry: Edge) -> Option<bool> {
        let mut edge = entry;
        loop {
            self.charge(u64::from(edge.cost));
            let Some(step) = self.fused.branches.step(edge) else {
                return Some(edge.is_yes());
            };
            edge = if self.holds(&step.test)? {
                step.yes
            } else {
                step.no
            };
        }
    }

    #[inline]
    fn holds(&mut self, test: &'a FusedTest) -> Option<bool> {
        match test {
            FusedTest::Present { within, field, types } => match self.view.get(*field) {
                Some(value) => types.contain(value).then_some(true),
                // An absent field of something that is not an object is an error, which only the program can
                // report.
                None => self.view.get(*within)?.as_object().map(|_| false),
            },
            FusedTest::Same { text, constant } => {
                let text = self.text(text)?;
                let pass = match constant.pass {
                    // A short constant costs at most 1, so only an empty text matters and its characters need
                    // not be counted.
                    few @ 0..=1 => few.min(text.len() as u64),
                    pass => pass.min(text_cost(self.size(text))),
                };
                self.charge(pass);
                Some(same_text(text, &constant.text))
            }
            FusedTest::EqualsAny(slot, equals_any) => {
                let text = self.field(*slot)?;
                let (answer, cost) = equals_any.contains(text, text_cost(self.size(text)));
                self.charge(cost);
                Some(answer)
            }
            FusedTest::Numbers {
                left,
                right,
                relation,
            } => Some(relation.holds(self.number(*left)?, self.number(*right)?)),
            FusedTest::OneOf { text, set } => Some(set.contains_text(self.text(text)?)),
            FusedTest::Has {
                text,
                affix,
                constant,
            } => {
                let text = self.text(text)?;
                let part = match affix {
                    Affix::Prefix => text.get(..constant.len()),
                    Affix::Suffix => text
                        .len()
                        .checked_sub(constant.len())
                        .and_then(|at| text.get(at..)),
                };
                Some(part.is_some_and(|part| same_text(part, constant)))
            }
            FusedTest::Matches(search) => {
                let text = self.searched(search)?;
                Some(search.pattern.is_match(text))
            }
            FusedTest::Truth(slot) => self.view.get(*slot)?.as_bool(),
            FusedTest::Each(quantifier) => self.quantify(quantifier),
            FusedTest::Fallback(fallback) => self.fallback(fallback),
        }
    }

    #[inline(always)]
    fn text(&mut self, text: &TextSource) -> Option<&'a str> {
        match text {
            TextSource::Field(slot) => self.field(*slot),
            TextSource::Found(search) => self.found(search),
        }
    }

    #[inline(never)]
    fn found(&mut self, search: &RegexSearch) -> Option<&'a str> {
        let text = self.searched(search)?;
        let cache_slot = search
            .cache_slot
            .and_then(|cache_slot| self.found.get_mut(usize::from(cache_slot)));
        let find = || search.pattern.find(text).unwrap_or("");
        Some(match cache_slot {
            Some(cache_slot) => *cache_slot.get_or_insert_with(find),
            None => find(),
        })
    }

    #[inline(never)]
    fn fallback(&mut self, fallback: &'a Fallback) -> Option<bool> {
        for (local, slot, shape) in &fallback.locals {
            self.interpreter
                .set(*local, LocalValue::Json(self.view.get(*slot)?, shape));
        }
        let program = self.fused.programs.get(fallback.program)?.as_ref()?;
        self.interpreter.test(fallback.path.from(&program.root)?).ok()
    }

    /// The string in a slot.
    #[inline]
    fn field(&mut self, slot: SlotIndex) -> Option<&'a str> {
        if self.last.slot != slot {
            self.last = LastText {
                slot,
                text: self.view.get(slot)?.as_str()?,
                size: None,
            };
        }
        Some(self.last.text)
    }

    /// The size of a string in characters.
    #[inline]
    fn size(&mut self, text: &'a str) -> u64 {
        // By address: the text is the field itself, or a match inside it.
        if std::ptr::eq(text, self.last.text) {
            *self.last.size.get_or_insert_with(|| text_size(text))
        } else {
            text_size(text)
        }
    }

    /// The string that a search reads; charges for the search.
    fn searched(&mut self, search: &RegexSearch) -> Option<&'a str> {
        let text = self.field(search.slot)?;
        let size = self.size(text);
        self.charge(search.searched.cost(size));
        Some(text)
    }

    #[inline]
    fn number(&mut self, number: NumberSource) -> Option<i64> {
        let size = match number {
            NumberSource::Constant(i) => return Some(i),
            NumberSource::Integer(slot) => return self.view.get(slot)?.as_int(),
            NumberSource::SizeOfText(slot) => {
                let text = self.field(slot)?;
                self.size(text)
            }
            NumberSource::SizeOfList(slot) => self.view.get(slot)?.as_array()?.len() as u64,
            NumberSource::SizeOfObject(slot) => self.view.get(slot)?.as_object()?.len() as u64,
        };
        i64::try_from(size).ok()
    }

    /// `all` and `exists`, see `quantify` of the interpreter.
    #[inline(never)]
    fn quantify(&mut self, quantifier: &'a Quantifier) -> Option<bool> {
        let items = self.view.get(quantifier.list)?.as_array()?;
        let mut decided = false;
        for item in items {
            self.charge(quantifier.condition_cost);
            if decided {
                break;
            }
            self.view.set(quantifier.element, Some(item));
            // The slots of the element now hold another element's fields.
            self.last = LastText::NONE;
            self.fused.layout.find(quantifier.object, item, &mut self.view);
            self.charge(quantifier.fused);
            decided = self.follow(quantifier.entry)? == quantifier.decisive;
            self.interpreter.tick().ok()?;
        }
        Some(decided == quantifier.decisive)
    }
}
