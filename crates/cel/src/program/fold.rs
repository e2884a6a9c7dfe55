//! Comprehensions.

use super::interpreter::{Computed, Interpreter, LocalValue};
use super::op::{FoldOp, FoldStep, Insertion, Op};
use crate::estimate::LIST_COST;
use crate::val::{EvalError, List, ListData, Map, Val, element_shape, go_kind, is_same_key, key_order};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::ControlFlow::{self, Break, Continue};

/// The cost of the loop condition of `all`: `@not_strictly_false(@result)`.
pub(super) const ALL_CONDITION_COST: u64 = 2;
/// The cost of the loop condition of `exists`: `@not_strictly_false(!@result)`.
pub(super) const EXISTS_CONDITION_COST: u64 = 3;

/// A key in the order of [`key_order`].
struct MapKey<'a>(Val<'a>);

impl PartialEq for MapKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for MapKey<'_> {}
impl PartialOrd for MapKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for MapKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        key_order(self.0, other.0)
    }
}

type Items<'a> = SmallVec<[Val<'a>; 8]>;
type Entries<'a> = BTreeMap<MapKey<'a>, Val<'a>>;

impl<'a> Interpreter<'a, '_> {
    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'a FoldOp) -> Computed<Val<'a>> {
        // An error in the range is the result: neither the loop nor the result expression runs, as in cel-go.
        let range = self.eval(&fold.range)?;
        let result = match &fold.step {
            FoldStep::All { predicate } => {
                self.quantify(fold, range, predicate, false, ALL_CONDITION_COST)?
            }
            FoldStep::Exists { predicate } => {
                self.quantify(fold, range, predicate, true, EXISTS_CONDITION_COST)?
            }
            FoldStep::Replace { condition, step } => {
                // Lazy: an accumulator that is never read costs nothing.
                self.set(fold.accumulator, LocalValue::Lazy(&fold.init));
                self.each(fold, range, |interpreter| {
                    interpreter.replace(fold, condition, step)
                })?;
                return self.eval(&fold.result);
            }
            FoldStep::Append { filter, element } => {
                // Collected outside the accumulator variable. This is sound because `lower` has made sure that neither
                // the filter nor the element mentions the accumulator.
                let mut items = Ok(Items::with_capacity(expected_len(filter.as_ref(), range)));
                self.each(fold, range, |interpreter| {
                    if interpreter.passes(filter.as_ref(), &mut items)? {
                        interpreter.append(element, &mut items)?;
                    }
                    Ok(Continue(()))
                })?;
                items.and_then(|items| self.arena.list(items))
            }
            FoldStep::Insert { filter, entry } => {
                // Sorted, so that a repeated key is found without comparing all entries.
                let mut entries = Ok(Entries::new());
                self.each(fold, range, |interpreter| {
                    if interpreter.passes(filter.as_ref(), &mut entries)? {
                        interpreter.insert(entry, &mut entries)?;
                    }
                    Ok(Continue(()))
                })?;
                entries.and_then(|entries| {
                    let entries = entries.into_iter().map(|(key, value)| (key.0, value));
                    self.arena.map(entries.collect())
                })
            }
        };
        // The result expression reads the accumulator like any variable. It may be any expression, not just the name.
        self.set_result(fold.accumulator, result);
        self.eval(&fold.result)
    }

    /// Runs a step for each element until it breaks. Steps record errors in their result; only final ones end the
    /// loop.
    #[inline]
    fn each(
        &mut self,
        fold: &'a FoldOp,
        range: Val<'a>,
        step: impl FnMut(&mut Self) -> Computed<ControlFlow<()>>,
    ) -> Computed<()> {
        if let Some(list) = range.as_list() {
            self.each_item(fold, list, step)
        } else if let Some(map) = range.as_map() {
            self.each_entry(fold, map, step)
        } else {
            Err(not_iterable(fold, range))
        }
    }

    #[inline]
    fn each_item(
        &mut self,
        fold: &'a FoldOp,
        list: List<'a>,
        mut step: impl FnMut(&mut Self) -> Computed<ControlFlow<()>>,
    ) -> Computed<()> {
        for i in 0..list.len() {
            let item = match list {
                List::Json(items, shape) => match items.get(i) {
                    Some(item) => LocalValue::Json(item, element_shape(shape)),
                    None => break,
                },
                List::Data(ListData::Vals { items, .. }) => match items.get(i) {
                    Some(item) => LocalValue::Val(*item),
                    None => break,
                },
                // An element that does not fit its schema is an error only where it is read, so that it cannot fail a
                // loop that ignores it.
                list => match list.get(self.arena, i) {
                    Some(Ok(item)) => LocalValue::Val(item),
                    Some(Err(e)) => LocalValue::Error(e),
                    None => break,
                },
            };
            match fold.second {
                None => self.set(fold.first, item),
                Some(second) => {
                    let index = i64::try_from(i).unwrap_or(i64::MAX);
                    self.set(fold.first, LocalValue::Val(Val::Int(index)));
                    self.set(second, item);
                }
            }
            if step(self)?.is_break() {
                break;
            }
            self.tick()?;
        }
        Ok(())
    }

    #[inline]
    fn each_entry(
        &mut self,
        fold: &'a FoldOp,
        map: Map<'a>,
        mut step: impl FnMut(&mut Self) -> Computed<ControlFlow<()>>,
    ) -> Computed<()> {
        // In key order, whereas Go's order is random: a repeated evaluation must give the same cost and error.
        for key in map.keys() {
            self.set(fold.first, LocalValue::Val(key));
            if let Some(second) = fold.second {
                let value = match map.get(self.arena, key) {
                    Some(value) => value,
                    None => Err(EvalError::no_such_key(key)),
                };
                self.set_result(second, value);
            }
            if step(self)?.is_break() {
                break;
            }
            self.tick()?;
        }
        Ok(())
    }

    /// Replaces the accumulator unless the condition is `false`.
    fn replace(&mut self, fold: &'a FoldOp, condition: &'a Op, step: &'a Op) -> Computed<ControlFlow<()>> {
        match self.test(condition) {
            Ok(false) => return Ok(Break(())),
            Err(e) if e.is_final() => return Err(e),
            // Any other error lets the loop go on: cel-go stops only at a condition that is a boolean and not `true`.
            _ => {}
        }
        match self.eval(step) {
            Err(e) if e.is_final() => Err(e),
            value => {
                self.set_result(fold.accumulator, value);
                Ok(Continue(()))
            }
        }
    }

    /// `all` and `exists`: a decisive element wins, then the first error. The outer error is final.
    fn quantify(
        &mut self,
        fold: &'a FoldOp,
        range: Val<'a>,
        predicate: &'a Op,
        decisive: bool,
        condition_cost: u64,
    ) -> Computed<Computed<Val<'a>>> {
        let mut decided = false;
        let mut error = None;
        self.each(fold, range, |interpreter| {
            // The condition also runs, and costs, before the element behind the decisive one.
            interpreter.charge(condition_cost)?;
            if decided {
                return Ok(Break(()));
            }
            // The read of the accumulator in `@result && predicate`.
            interpreter.charge(1)?;
            match interpreter.test(predicate) {
                Ok(holds) => decided = holds == decisive,
                Err(e) if e.is_final() => return Err(e),
                // The first error stays in the accumulator, and later elements may still decide the result.
                Err(e) => error = error.take().or(Some(e)),
            }
            Ok(Continue(()))
        })?;
        Ok(match error {
            // A decisive element absorbs the errors of the others, wherever they are.
            Some(e) if !decided => Err(e),
            _ => Ok(Val::Bool(decided == decisive)),
        })
    }

    /// Returns whether an element passes the filter. The error of a filter becomes the result.
    fn passes<T>(&mut self, filter: Option<&'a Op>, result: &mut Computed<T>) -> Computed<bool> {
        let Some(filter) = filter else {
            return Ok(true);
        };
        match self.test(filter) {
            Err(e) if !e.is_final() => {
                // The conditional `filter ? … : @result` has the error of its condition, which replaces the
                // accumulator.
                *result = Err(e);
                Ok(false)
            }
            passes => passes,
        }
    }

    /// `@result + [element]`. The list literal around a constant is itself a constant, which costs nothing.
    fn append(&mut self, element: &'a Op, items: &mut Computed<Items<'a>>) -> Computed<()> {
        let value = self.eval(element);
        let list_cost = if matches!(element, Op::Const(_)) {
            0
        } else {
            LIST_COST
        };
        // The accumulator and the addition cost 1 each.
        match (self.charge_for(value, 2 + list_cost), items) {
            (Err(e), _) if e.is_final() => return Err(e),
            (_, Err(_)) => {}
            (Ok(value), Ok(items)) => items.push(value),
            (Err(e), items) => *items = Err(e),
        }
        Ok(())
    }

    /// `cel.@mapInsert(@result, …)`
    fn insert(&mut self, entry: &'a Insertion, entries: &mut Computed<Entries<'a>>) -> Computed<()> {
        // The accumulator is read first. The call with three arguments stops if it is an error.
        self.charge(1)?;
        let added = match entry {
            Insertion::Entry { key, value } => {
                let Ok(map) = entries else {
                    return Ok(());
                };
                match self.eval(key) {
                    Err(e) => Err(e),
                    Ok(key) => {
                        let value = self.eval(value);
                        let value = self.charge_for(value, 1);
                        value.and_then(|value| add_entry(map, key, value))
                    }
                }
            }
            Insertion::Map(op) => {
                let added = self.eval(op);
                let added = self.charge_for(added, 1);
                match (added, &mut *entries) {
                    (Err(e), _) => Err(e),
                    (Ok(_), Err(_)) => Ok(()),
                    (Ok(added), Ok(map)) => added.map().and_then(|added| {
                        let mut added = added.entries(self.arena);
                        added.try_for_each(|(key, value)| add_entry(map, key, value?))
                    }),
                }
            }
        };
        match added {
            Err(e) if !e.is_final() => {
                // An earlier error takes precedence.
                if entries.is_ok() {
                    *entries = Err(e);
                }
                Ok(())
            }
            added => added,
        }
    }
}

/// The capacity to reserve for a list. The length is unknown with a filter, and bounded for very long ranges.
fn expected_len(filter: Option<&Op>, range: Val<'_>) -> usize {
    // Reserving more would let an expensive loop take memory before its cost has been counted.
    const MAX_RESERVED: usize = 1024;
    match (filter, range.as_list()) {
        (None, Some(list)) => list.len().min(MAX_RESERVED),
        _ => 0,
    }
}

fn add_entry<'a>(map: &mut Entries<'a>, key: Val<'a>, value: Val<'a>) -> Result<(), EvalError> {
    // cel-go also finds an integer of the other type, and any integer in place of a double, but not the reverse.
    let twin = match key {
        Val::Int(i) => u64::try_from(i).ok().map(Val::Uint),
        Val::Uint(u) => i64::try_from(u).ok().map(Val::Int),
        // Of equal numbers, integers come first.
        Val::Double(_) => map.range(..MapKey(key)).next_back().map(|(k, _)| k.0),
        _ => None,
    };
    let has_twin = twin.is_some_and(|twin| is_same_key(twin, key) && map.contains_key(&MapKey(twin)));
    if has_twin || map.insert(MapKey(key), value).is_some() {
        return Err(EvalError::message(format!(
            "insert failed: key {key} already exists"
        )));
    }
    Ok(())
}

#[cold]
fn not_iterable(fold: &FoldOp, range: Val<'_>) -> EvalError {
    let name = go_kind(range);
    EvalError::message(if fold.second.is_some() {
        format!("unsupported comprehension range type: {name}")
    } else {
        format!("got '{name}', expected iterable type")
    })
}
