//! Comprehensions.

use super::{FastPath, LocalValue};
use crate::estimate::LIST_COST;
use crate::program::fold::{ALL_CONDITION_COST, EXISTS_CONDITION_COST, Flow};
use crate::program::op::{FoldOp, FoldStep, Op};
use crate::val::{List, ListData, Map, Val, element_shape};
use smallvec::SmallVec;

impl<'a> FastPath<'a, '_> {
    #[inline]
    pub(in crate::program) fn set(&mut self, local: usize, value: LocalValue<'a>) {
        if local >= self.locals.len() {
            self.locals.resize(local + 1, LocalValue::Absent);
        }
        if let Some(place) = self.locals.get_mut(local) {
            *place = value;
        }
    }

    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'a FoldOp) -> Option<Val<'a>> {
        let range = self.val(&fold.range)?;
        let result = match &fold.step {
            FoldStep::All { predicate } => {
                self.quantify(fold, range, predicate, false, ALL_CONDITION_COST)?
            }
            FoldStep::Exists { predicate } => {
                self.quantify(fold, range, predicate, true, EXISTS_CONDITION_COST)?
            }
            FoldStep::Replace { condition, step } => {
                // A value that nobody asks for is not computed.
                self.set(fold.accumulator, LocalValue::Lazy(&fold.init));
                self.each(fold, range, |fast_path| {
                    if !fast_path.test(condition)? {
                        return Some(Flow::Done);
                    }
                    let value = fast_path.val(step)?;
                    fast_path.set(fold.accumulator, LocalValue::Val(value));
                    Some(Flow::On)
                })?;
                return self.val(&fold.result);
            }
            FoldStep::Append { filter, element } => {
                let list_cost = if matches!(element, Op::Const(_)) {
                    0
                } else {
                    LIST_COST
                };
                let mut items: SmallVec<[Val<'a>; 8]> =
                    SmallVec::with_capacity(expected(filter.as_ref(), range));
                self.each(fold, range, |fast_path| {
                    let passes = match filter {
                        Some(filter) => fast_path.test(filter)?,
                        None => true,
                    };
                    if passes {
                        items.push(fast_path.val(element)?);
                        fast_path.charge(2 + list_cost);
                    }
                    Some(Flow::On)
                })?;
                self.arena.list(items).ok()?
            }
            FoldStep::Insert { .. } => return None,
        };
        self.set(fold.accumulator, LocalValue::Val(result));
        self.val(&fold.result)
    }

    /// Takes a step for each element until it is done.
    #[inline]
    fn each(
        &mut self,
        fold: &'a FoldOp,
        range: Val<'a>,
        mut step: impl FnMut(&mut Self) -> Option<Flow>,
    ) -> Option<()> {
        let mut turn = |fast_path: &mut Self| {
            let flow = step(fast_path)?;
            fast_path.tick()?;
            Some(flow)
        };
        if let Some(list) = range.as_list() {
            for i in 0..list.len() {
                let item = self.item(list, i)?;
                match fold.second {
                    None => self.set(fold.first, item),
                    Some(second) => {
                        self.set(fold.first, LocalValue::Val(Val::Int(i64::try_from(i).ok()?)));
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
            self.set(fold.first, LocalValue::Val(key));
            if let Some(second) = fold.second {
                let value = map.get(self.arena, key)?.ok()?;
                self.set(second, LocalValue::Val(value));
            }
            if let Flow::Done = turn(self)? {
                break;
            }
        }
        Some(())
    }

    #[inline]
    fn item(&self, list: List<'a>, index: usize) -> Option<LocalValue<'a>> {
        match list {
            List::Json(items, shape) => Some(LocalValue::Json(items.get(index)?, element_shape(shape))),
            List::Data(ListData::Vals { items, .. }) => items.get(index).copied().map(LocalValue::Val),
            list => list.get(self.arena, index)?.ok().map(LocalValue::Val),
        }
    }

    /// `all` and `exists`, until one element decides. Asking whether to go on has its cost, too.
    fn quantify(
        &mut self,
        fold: &'a FoldOp,
        range: Val<'a>,
        predicate: &'a Op,
        decisive: bool,
        question: u64,
    ) -> Option<Val<'a>> {
        let mut decided = false;
        self.each(fold, range, |fast_path| {
            fast_path.charge(question);
            if decided {
                return Some(Flow::Done);
            }
            fast_path.charge(1);
            decided = fast_path.test(predicate)? == decisive;
            Some(Flow::On)
        })?;
        Some(Val::Bool(decided == decisive))
    }
}

/// How many elements a list is likely to get: with a filter, who knows.
fn expected(filter: Option<&Op>, range: Val<'_>) -> usize {
    /// Longer lists grow as they need to.
    const MOST: usize = 1024;
    match (filter, range.as_list()) {
        (None, Some(list)) => list.len().min(MOST),
        _ => 0,
    }
}
