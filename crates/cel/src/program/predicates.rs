//! Predicates about one value, asked together.
//!
//! The rules of one place of a schema all read the same value, and most ask the same few things: whether a field is
//! there, how a text or a number compares with a constant, whether all elements of a list are such. Nearly always, all of
//! them hold. [`Predicates`] finds out whether that is so: it finds the fields that any of them reads in one pass over the
//! value, and goes from question to question (`question`), through all predicates, until one does not hold. Each question
//! says where the next one is and what has been paid on the way. Questions that are not of these kinds are left to the
//! plain walk; whatever is not as the schema says, and which predicate it is that does not hold, is left to the programs.

mod branch;
mod fields;
mod question;

use super::plain::{Local, Plain};
use super::{Input, Limits, Program};
use crate::estimate::text_cost;
use crate::shape::Shape;
use crate::val::{Arena, Val, text_size};
use fields::{Layout, ROOT, SUBJECT};
use question::{Affix, Branches, Edge, Number, Other, Quantifier, Question, Search, Text};
use scantling_value::{Value, same_text};
use std::sync::Arc;

/// The most fields, elements and values that predicates of one place have in sight.
const MOST_SLOTS: usize = 32;

/// The most searches of one place whose result is kept for those who ask for the same.
const MOST_NOTES: usize = 4;

/// Where something that predicates read stands while they are asked.
type Slot = u8;

/// Predicates about values of one shape.
#[derive(Debug)]
pub struct Predicates {
    shape: Arc<Shape>,
    /// The programs that are asked together; `None` where one has to be asked alone.
    programs: Box<[Option<Arc<Program>>]>,
    layout: Layout,
    branches: Branches,
    entry: Edge,
}

/// What predicates see of a value.
struct View<'v> {
    slots: [Option<&'v Value>; MOST_SLOTS],
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

impl Predicates {
    /// Makes programs ready that read nothing but their first input, which is of that shape; `None` stands for those that
    /// are not to be asked together with the others.
    pub fn new(shape: &Arc<Shape>, programs: impl IntoIterator<Item = Option<Arc<Program>>>) -> Self {
        let plain = |program: Option<Arc<Program>>| program.filter(|program| program.plain);
        let programs: Box<[Option<Arc<Program>>]> = programs.into_iter().map(plain).collect();
        let mut builder = branch::Builder::new(shape);
        let entry = builder.all(&programs);
        let (layout, branches) = builder.finish();
        Predicates {
            shape: Arc::clone(shape),
            programs,
            layout,
            branches,
            entry,
        }
    }

    /// Whether the program at that index is among those that are asked together.
    #[inline]
    pub fn include(&self, index: usize) -> bool {
        self.programs.get(index).is_some_and(Option::is_some)
    }

    /// What it costs to ask all predicates that are asked together, if all of them hold of a value and that is no more
    /// than the limit; `None` means that only their programs can tell.
    #[inline]
    pub fn all_hold(&self, value: &Value, arena: &Arena, limit: u64) -> Option<u64> {
        let limits = Limits {
            cost: limit,
            interrupt: None,
        };
        let inputs = [Input::Json(value, &self.shape)];
        let mut asking = Asking {
            predicates: self,
            view: View {
                slots: [None; MOST_SLOTS],
            },
            notes: [None; MOST_NOTES],
            last: Last::NONE,
            plain: Plain::new(arena, &inputs, limits),
        };
        asking.view.set(SUBJECT, Some(value));
        self.layout.find(ROOT, value, &mut asking.view);
        let holds = asking.follow(self.entry)?;
        let cost = asking.plain.cost().filter(|_| holds)?;
        if cfg!(debug_assertions) {
            self.assert_cost(cost, arena, &inputs);
        }
        Some(cost)
    }

    /// Holds what was found against what the machine finds.
    fn assert_cost<'a>(&'a self, cost: u64, arena: &'a Arena, inputs: &[Input<'a>]) {
        let mut sum = 0;
        for program in self.programs.iter().flatten() {
            let outcome = program.run(arena, inputs, Limits::NONE);
            assert!(
                matches!(outcome.result, Ok(Val::Bool(true))),
                "{}: {}",
                program,
                outcome.shown()
            );
            sum += outcome.cost;
        }
        assert_eq!(cost, sum);
    }
}

/// Predicates that are being asked.
struct Asking<'a, 'c> {
    predicates: &'a Predicates,
    view: View<'a>,
    /// What searches have found whose text stays the same.
    notes: [Option<&'a str>; MOST_NOTES],
    last: Last<'a>,
    plain: Plain<'a, 'c>,
}

/// The text that was asked about last.
struct Last<'a> {
    slot: Slot,
    text: &'a str,
    /// Its size, once it is known.
    size: Option<u64>,
}

impl Last<'_> {
    const NONE: Last<'static> = Last {
        slot: Slot::MAX,
        text: "",
        size: None,
    };
}

impl<'a> Asking<'a, '_> {
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
                None => self.view.get(*within)?.as_object().map(|_| false),
            },
            Question::Same { text, constant } => {
                let text = self.text(text)?;
                let pass = match constant.pass {
                    few @ 0..=1 => few.min(text.len() as u64),
                    pass => pass.min(text_cost(self.size(text))),
                };
                self.plain.charge(pass);
                Some(same_text(text, &constant.text))
            }
            Question::Listed(slot, listed) => {
                let text = self.field(*slot)?;
                let (answer, cost) = listed.contains(text, text_cost(self.size(text)));
                self.plain.charge(cost);
                Some(answer)
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
                let part = match affix {
                    Affix::Prefix => text.get(..constant.len()),
                    Affix::Suffix => text
                        .len()
                        .checked_sub(constant.len())
                        .and_then(|at| text.get(at..)),
                };
                Some(part.is_some_and(|part| same_text(part, constant)))
            }
            Question::Matches(search) => {
                let text = self.searched(search)?;
                Some(search.pattern.is_match(text))
            }
            Question::Truth(slot) => self.view.get(*slot)?.as_bool(),
            Question::Each(quantifier) => self.quantify(quantifier),
            Question::Other(other) => self.other(other),
        }
    }

    #[inline(always)]
    fn text(&mut self, text: &Text) -> Option<&'a str> {
        match text {
            Text::Field(slot) => self.field(*slot),
            Text::Found(search) => self.found(search),
        }
    }

    #[inline(never)]
    fn found(&mut self, search: &Search) -> Option<&'a str> {
        let text = self.searched(search)?;
        let note = search.note.and_then(|note| self.notes.get_mut(usize::from(note)));
        let find = || search.pattern.find(text).unwrap_or("");
        Some(match note {
            Some(note) => *note.get_or_insert_with(find),
            None => find(),
        })
    }

    #[inline(never)]
    fn other(&mut self, other: &'a Other) -> Option<bool> {
        for (local, slot, shape) in &other.locals {
            self.plain.set(*local, Local::Json(self.view.get(*slot)?, shape));
        }
        let program = self.predicates.programs.get(other.program)?.as_ref()?;
        self.plain.test(other.way.from(&program.root)?)
    }

    /// The text of a field. Most questions are about the text that the one before was about.
    #[inline]
    fn field(&mut self, slot: Slot) -> Option<&'a str> {
        if self.last.slot != slot {
            self.last = Last {
                slot,
                text: self.view.get(slot)?.as_str()?,
                size: None,
            };
        }
        Some(self.last.text)
    }

    /// The size of a text.
    #[inline]
    fn size(&mut self, text: &'a str) -> u64 {
        if std::ptr::eq(text, self.last.text) {
            *self.last.size.get_or_insert_with(|| text_size(text))
        } else {
            text_size(text)
        }
    }

    /// The text of a search, which is paid for.
    fn searched(&mut self, search: &Search) -> Option<&'a str> {
        let text = self.field(search.slot)?;
        let size = self.size(text);
        self.plain.charge(search.searched.cost(size));
        Some(text)
    }

    #[inline]
    fn number(&mut self, number: Number) -> Option<i64> {
        let size = match number {
            Number::Constant(i) => return Some(i),
            Number::Integer(slot) => return self.view.get(slot)?.as_int(),
            Number::SizeOfText(slot) => {
                let text = self.field(slot)?;
                self.size(text)
            }
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
            self.last = Last::NONE;
            self.predicates
                .layout
                .find(quantifier.object, item, &mut self.view);
            self.plain.charge(quantifier.predicates);
            decided = self.follow(quantifier.entry)? == quantifier.decisive;
            self.plain.tick()?;
        }
        Some(decided == quantifier.decisive)
    }
}
