//! Predicates about one value, asked one after the other.
//!
//! The rules of one place of a schema all read the same value, and most ask the same few things: whether a field is
//! there, how a text or a number compares with a constant, whether all elements of a list are such. [`Predicates`] finds
//! the fields that any of them reads in one pass over the value, and asks by going from question to question
//! (`question`): each says where the next one is and what has been paid on the way. Other questions are left to the
//! plain walk. Whatever is not as the schema says is left to `Program::eval`.

mod branch;
mod fields;
mod question;

use super::plain::{Local, Plain};
use super::{Input, Limits, Outcome, Program};
use crate::library::standard::shorter_text_cost;
use crate::shape::Shape;
use crate::val::{Arena, Val, text_size};
use fields::{Layout, ROOT, SUBJECT};
use question::{Affix, Branches, Edge, Number, Quantifier, Question, Search, Text};
use scantling_value::{Value, same_text};
use std::sync::Arc;

/// The most fields, elements and values that predicates of one place have in sight.
const MOST_SLOTS: usize = 32;

/// Where something that predicates read stands while they are asked.
type Slot = u8;

/// Predicates about values of one shape.
#[derive(Debug)]
pub struct Predicates {
    layout: Layout,
    branches: Branches,
    /// Where each begins; `None` where only its program can tell.
    entries: Box<[Option<Edge>]>,
}

/// What predicates see of a value.
#[derive(Debug)]
pub struct View<'v> {
    slots: [Option<&'v Value>; MOST_SLOTS],
}

impl Default for View<'_> {
    #[inline]
    fn default() -> Self {
        View {
            slots: [None; MOST_SLOTS],
        }
    }
}

impl<'v> View<'v> {
    #[inline]
    fn get(&self, slot: Slot) -> Option<&'v Value> {
        self.slots.get(usize::from(slot)).copied().flatten()
    }

    #[inline]
    fn set(&mut self, slot: Slot, value: Option<&'v Value>) {
        if let Some(place) = self.slots.get_mut(usize::from(slot)) {
            *place = value;
        }
    }
}

/// What a question is asked with.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a, 'c> {
    /// Where values made on the way live.
    pub arena: &'a Arena,
    /// The inputs. The first is the value that the predicates are about.
    pub inputs: &'c [Input<'a>],
    /// What it may take.
    pub limits: Limits<'c>,
}

impl Predicates {
    /// Makes programs ready whose first input is of that shape; `None` stands for what is no program.
    pub fn new<'p>(shape: &Arc<Shape>, programs: impl IntoIterator<Item = Option<&'p Program>>) -> Self {
        let mut builder = branch::Builder::new(shape);
        let entries = programs
            .into_iter()
            .map(|program| builder.program(program.filter(|program| program.plain)?));
        let entries = entries.collect();
        let (layout, branches) = builder.finish();
        Predicates {
            layout,
            branches,
            entries,
        }
    }

    /// Finds what the predicates read of a value.
    #[inline]
    pub fn look<'v>(&self, value: &'v Value, view: &mut View<'v>) {
        view.set(SUBJECT, Some(value));
        self.layout.find(ROOT, value, view);
    }

    /// The answer of a predicate and its cost, as [`Program::test`] gives them. `program` is the one that stood at
    /// that index, and the view is of the first input.
    #[inline]
    pub fn test<'a, 'v: 'a>(
        &'a self,
        (index, program): (usize, &'a Program),
        view: &mut View<'v>,
        setting: Setting<'a, '_>,
    ) -> Option<(bool, u64)> {
        let Setting {
            arena,
            inputs,
            limits,
        } = setting;
        let answer = match self.entries.get(index) {
            Some(Some(entry)) if limits.interrupt.is_none() => self.ask(*entry, program, view, setting),
            _ => None,
        };
        match answer {
            Some((answer, cost)) => {
                let result = Ok(Val::Bool(answer));
                program.assert_outcome(&Outcome { result, cost }, arena, inputs, limits);
                Some((answer, cost))
            }
            None => program.test(arena, inputs, limits),
        }
    }

    #[inline]
    fn ask<'a, 'v: 'a>(
        &'a self,
        entry: Edge,
        program: &'a Program,
        view: &mut View<'v>,
        setting: Setting<'a, '_>,
    ) -> Option<(bool, u64)> {
        let mut asking = Asking {
            predicates: self,
            program,
            view,
            plain: Plain::new(setting.arena, setting.inputs, setting.limits),
        };
        let answer = asking.follow(entry)?;
        asking.plain.cost().map(|cost| (answer, cost))
    }
}

/// One predicate that is being asked.
struct Asking<'a, 'c, 'w, 'v> {
    predicates: &'a Predicates,
    program: &'a Program,
    view: &'w mut View<'v>,
    plain: Plain<'a, 'c>,
}

impl<'a, 'v: 'a> Asking<'a, '_, '_, 'v> {
    /// Goes from question to question until there is an answer.
    fn follow(&mut self, entry: Edge) -> Option<bool> {
        let mut edge = entry;
        loop {
            self.plain.charge(u64::from(edge.cost));
            let Some(step) = self.predicates.branches.step(edge) else {
                return Some(edge.is_yes());
            };
            edge = if self.holds(&step.question)? {
                step.yes
            } else {
                step.no
            };
        }
    }

    #[inline]
    fn holds(&mut self, question: &'a Question) -> Option<bool> {
        match question {
            Question::Present { within, field, types } => match self.view.get(*field) {
                Some(value) => types.contain(value).then_some(true),
                None => self.view.get(*within).is_some().then_some(false),
            },
            Question::Same { text, constant } => {
                let text = self.text(text)?;
                self.plain.charge(shorter_text_cost(text, constant));
                Some(same_text(text, constant))
            }
            Question::Numbers {
                left,
                right,
                relation,
            } => Some(relation.holds(self.number(*left)?, self.number(*right)?)),
            Question::OneOf { text, set } => Some(set.contains_text(self.text(text)?)),
            Question::Has {
                text,
                affix,
                constant,
            } => {
                let text = self.text(text)?;
                Some(match affix {
                    Affix::Prefix => text.starts_with(&**constant),
                    Affix::Suffix => text.ends_with(&**constant),
                })
            }
            Question::Matches(search) => {
                let text = self.searched(search)?;
                Some(search.pattern.is_match(text))
            }
            Question::Truth(slot) => self.view.get(*slot)?.as_bool(),
            Question::Each(quantifier) => self.quantify(quantifier),
            Question::Other(way) => self.plain.test(way.from(&self.program.root)?),
        }
    }

    #[inline(always)]
    fn text(&mut self, text: &Text) -> Option<&'v str> {
        match text {
            Text::Field(slot) => self.field(*slot),
            Text::Found(search) => self.found(search),
        }
    }

    #[inline(never)]
    fn found(&mut self, search: &Search) -> Option<&'v str> {
        let text = self.searched(search)?;
        Some(search.pattern.find(text).unwrap_or_default())
    }

    #[inline]
    fn field(&self, slot: Slot) -> Option<&'v str> {
        self.view.get(slot)?.as_str()
    }

    /// The text of a search, which is paid for.
    fn searched(&mut self, search: &Search) -> Option<&'v str> {
        let text = self.field(search.slot)?;
        self.plain.charge(search.searched.cost(text_size(text)));
        Some(text)
    }

    #[inline]
    fn number(&self, number: Number) -> Option<i64> {
        let size = match number {
            Number::Constant(i) => return Some(i),
            Number::Integer(slot) => return self.view.get(slot)?.as_int(),
            Number::SizeOfText(slot) => text_size(self.field(slot)?),
            Number::SizeOfList(slot) => self.view.get(slot)?.as_array()?.len() as u64,
            Number::SizeOfObject(slot) => self.view.get(slot)?.as_object()?.len() as u64,
        };
        i64::try_from(size).ok()
    }

    /// `all` and `exists`, as the plain walk has them: until one element decides.
    #[inline(never)]
    fn quantify(&mut self, quantifier: &'a Quantifier) -> Option<bool> {
        let items = self.view.get(quantifier.list)?.as_array()?;
        let mut decided = false;
        for item in items {
            self.plain.charge(quantifier.asking);
            if decided {
                break;
            }
            self.view.set(quantifier.element, Some(item));
            if let Some(layout) = quantifier.layout {
                self.predicates.layout.find(layout, item, self.view);
            }
            if let Some(local) = quantifier.local {
                self.plain.set(local, Local::Json(item, &quantifier.shape));
            }
            self.plain.charge(1);
            decided = self.follow(quantifier.entry)? == quantifier.decisive;
            self.plain.tick()?;
        }
        Some(decided == quantifier.decisive)
    }
}
