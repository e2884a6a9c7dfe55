//! Comprehensions.

use super::{Local, Plain};
use crate::estimate::LIST_COST;
use crate::program::fold::{ALL_ASKS, EXISTS_ASKS, Flow};
use crate::program::node::{Fold, Node, Step};
use crate::val::{List, ListData, Map, Val, element_shape};
use smallvec::SmallVec;

impl<'a> Plain<'a, '_> {
    #[inline]
    pub(in crate::program) fn set(&mut self, local: usize, value: Local<'a>) {
        if local >= self.locals.len() {
            self.locals.resize(local + 1, Local::Absent);
        }
        if let Some(place) = self.locals.get_mut(local) {
            *place = value;
        }
    }

    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Option<Val<'a>> {
        let range = self.val(&fold.range)?;
        let result = match &fold.step {
            Step::All { predicate } => self.quantify(fold, range, predicate, false, ALL_ASKS)?,
            Step::Exists { predicate } => self.quantify(fold, range, predicate, true, EXISTS_ASKS)?,
            Step::Replace { condition, step } => {
                // A value that nobody asks for is not computed.
                self.set(fold.accumulator, Local::Lazy(&fold.init));
                self.each(fold, range, |plain| {
                    if !plain.test(condition)? {
                        return Some(Flow::Done);
                    }
                    let value = plain.val(step)?;
                    plain.set(fold.accumulator, Local::Val(value));
                    Some(Flow::On)
                })?;
                return self.val(&fold.result);
            }
            Step::Append { filter, element } => {
                let list_cost = if matches!(element, Node::Const(_)) {
                    0
                } else {
                    LIST_COST
                };
                let mut items: SmallVec<[Val<'a>; 8]> =
                    SmallVec::with_capacity(expected(filter.as_ref(), range));
                self.each(fold, range, |plain| {
                    let passes = match filter {
                        Some(filter) => plain.test(filter)?,
                        None => true,
                    };
                    if passes {
                        items.push(plain.val(element)?);
                        plain.charge(2 + list_cost);
                    }
                    Some(Flow::On)
                })?;
                self.arena.list(items).ok()?
            }
            Step::Insert { .. } => return None,
        };
        self.set(fold.accumulator, Local::Val(result));
        self.val(&fold.result)
    }

    /// Takes a step for each element until it is done.
    #[inline]
    fn each(
        &mut self,
        fold: &'a Fold,
        range: Val<'a>,
        mut step: impl FnMut(&mut Self) -> Option<Flow>,
    ) -> Option<()> {
        let mut turn = |plain: &mut Self| {
            let flow = step(plain)?;
            plain.tick()?;
            Some(flow)
        };
        if let Some(list) = range.as_list() {
            for i in 0..list.len() {
                let item = self.item(list, i)?;
                match fold.second {
                    None => self.set(fold.first, item),
                    Some(second) => {
                        self.set(fold.first, Local::Val(Val::Int(i64::try_from(i).ok()?)));
                        self.set(second, item);
                    }
                }
                if let Flow::Done = turn(self)? {
                    break;
                }
            }
            return Some(());
        }
        let map: Map<'a> = range.as_map()?;
        for key in map.keys() {
            self.set(fold.first, Local::Val(key));
            if let Some(second) = fold.second {
                let value = map.get(self.arena, key)?.ok()?;
                self.set(second, Local::Val(value));
            }
            if let Flow::Done = turn(self)? {
                break;
            }
        }
        Some(())
    }

    #[inline]
    fn item(&self, list: List<'a>, index: usize) -> Option<Local<'a>> {
        match list {
            List::Json(items, shape) => Some(Local::Json(items.get(index)?, element_shape(shape))),
            List::Data(ListData::Vals { items, .. }) => items.get(index).copied().map(Local::Val),
            list => list.get(self.arena, index)?.ok().map(Local::Val),
        }
    }

    /// `all` and `exists`, until one element decides. Asking whether to go on has its cost, too.
    fn quantify(
        &mut self,
        fold: &'a Fold,
        range: Val<'a>,
        predicate: &'a Node,
        decisive: bool,
        question: u64,
    ) -> Option<Val<'a>> {
        let mut decided = false;
        self.each(fold, range, |plain| {
            plain.charge(question);
            if decided {
                return Some(Flow::Done);
            }
            plain.charge(1);
            decided = plain.test(predicate)? == decisive;
            Some(Flow::On)
        })?;
        Some(Val::Bool(decided == decisive))
    }
}

/// How many elements a list is likely to get: with a filter, who knows.
fn expected(filter: Option<&Node>, range: Val<'_>) -> usize {
    /// Longer lists grow as they need to.
    const MOST: usize = 1024;
    match (filter, range.as_list()) {
        (None, Some(list)) => list.len().min(MOST),
        _ => 0,
    }
}
