//! Comprehensions.

use super::interpreter::{Interpreter, LocalValue};
use super::op::{FoldOp, FoldStep, Insertion, Op};
use crate::estimate::LIST_COST;
use crate::val::{self, EvalError, List, ListData, Map, Res, Val, go_kind, key_order};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Whether a fold goes on.
#[derive(PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Done,
}

/// What it costs `all` to ask whether to go on: `@not_strictly_false(@result)`.
pub(super) const ALL_CONDITION_COST: u64 = 2;
/// What it costs `exists`: `@not_strictly_false(!@result)`.
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

impl<'a> Interpreter<'a, '_> {
    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'a FoldOp) -> Res<'a> {
        let range = self.eval(&fold.range)?;
        let result = match &fold.step {
            FoldStep::Replace { condition, step } => {
                // A value that nobody asks for is not computed.
                self.set(fold.accumulator, LocalValue::Lazy(&fold.init));
                self.each(fold, range, |interpreter| {
                    interpreter.replace(fold, condition, step)
                })?;
                return self.eval(&fold.result);
            }
            FoldStep::All { predicate } => {
                self.quantify(fold, range, predicate, false, ALL_CONDITION_COST)?
            }
            FoldStep::Exists { predicate } => {
                self.quantify(fold, range, predicate, true, EXISTS_CONDITION_COST)?
            }
            FoldStep::Append { filter, element } => {
                let mut items = Ok(Vec::new());
                self.each(fold, range, |interpreter| {
                    if interpreter.passes(filter.as_ref(), &mut items)? {
                        interpreter.append(element, &mut items)?;
                    }
                    Ok(Flow::On)
                })?;
                items.and_then(|items| self.arena.list(items))
            }
            FoldStep::Insert { filter, entry } => {
                let mut entries = Ok(BTreeMap::new());
                self.each(fold, range, |interpreter| {
                    if interpreter.passes(filter.as_ref(), &mut entries)? {
                        interpreter.insert(entry, &mut entries)?;
                    }
                    Ok(Flow::On)
                })?;
                let entries = entries.map(|m| m.into_iter().map(|(k, v)| (k.0, v)).collect());
                entries.and_then(|entries| self.arena.map(entries))
            }
        };
        self.set_result(fold.accumulator, result);
        self.eval(&fold.result)
    }

    /// Takes a step for each element until it is done. Errors become part of what the steps make; only final ones end
    /// the fold.
    #[inline]
    fn each(
        &mut self,
        fold: &'a FoldOp,
        range: Val<'a>,
        step: impl FnMut(&mut Self) -> Result<Flow, EvalError>,
    ) -> Result<(), EvalError> {
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
        mut step: impl FnMut(&mut Self) -> Result<Flow, EvalError>,
    ) -> Result<(), EvalError> {
        for i in 0..list.len() {
            let item = match list {
                List::Json(items, shape) => match items.get(i) {
                    Some(item) => LocalValue::Json(item, val::element_shape(shape)),
                    None => break,
                },
                List::Data(ListData::Vals { items, .. }) => match items.get(i) {
                    Some(item) => LocalValue::Val(*item),
                    None => break,
                },
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
            if step(self)? == Flow::Done {
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
        mut step: impl FnMut(&mut Self) -> Result<Flow, EvalError>,
    ) -> Result<(), EvalError> {
        for key in map.keys() {
            self.set(fold.first, LocalValue::Val(key));
            if let Some(second) = fold.second {
                let value = map
                    .get(self.arena, key)
                    .unwrap_or_else(|| Err(EvalError::no_such_key(key)));
                self.set_result(second, value);
            }
            if step(self)? == Flow::Done {
                break;
            }
            self.tick()?;
        }
        Ok(())
    }

    /// Goes on while the condition holds, and replaces the accumulator.
    fn replace(&mut self, fold: &'a FoldOp, condition: &'a Op, step: &'a Op) -> Result<Flow, EvalError> {
        match self.eval(condition) {
            Ok(Val::Bool(false)) => return Ok(Flow::Done),
            Err(e) if e.is_final() => return Err(e),
            _ => {}
        }
        match self.eval(step) {
            Err(e) if e.is_final() => Err(e),
            value => {
                self.set_result(fold.accumulator, value);
                Ok(Flow::On)
            }
        }
    }

    /// `@result && predicate` or `@result || predicate`, until there is an answer: one that is decisive, or else the
    /// first error, or else the other. Asking whether to go on has its cost, too.
    #[inline(never)]
    fn quantify(
        &mut self,
        fold: &'a FoldOp,
        range: Val<'a>,
        predicate: &'a Op,
        decisive: bool,
        question: u64,
    ) -> Result<Res<'a>, EvalError> {
        let mut decided = false;
        let mut error = None;
        self.each(fold, range, |interpreter| {
            interpreter.charge(question)?;
            if decided {
                return Ok(Flow::Done);
            }
            interpreter.charge(1)?;
            match interpreter.eval(predicate) {
                Ok(Val::Bool(b)) => decided = b == decisive,
                Err(e) if e.is_final() => return Err(e),
                other if error.is_none() => {
                    error = Some(other.err().unwrap_or(EvalError::NoSuchOverload));
                }
                _ => {}
            }
            Ok(Flow::On)
        })?;
        Ok(match error {
            Some(e) if !decided => Err(e),
            _ => Ok(Val::Bool(decided == decisive)),
        })
    }

    /// Whether an element passes the filter. A filter that result_kind no answer leaves an error in the result.
    fn passes<T>(
        &mut self,
        filter: Option<&'a Op>,
        result: &mut Result<T, EvalError>,
    ) -> Result<bool, EvalError> {
        let Some(filter) = filter else {
            return Ok(true);
        };
        match self.eval(filter) {
            Ok(Val::Bool(b)) => Ok(b),
            Err(e) if e.is_final() => Err(e),
            other => {
                *result = Err(other.err().unwrap_or(EvalError::NoSuchOverload));
                Ok(false)
            }
        }
    }

    /// `@result + [element]`
    fn append(
        &mut self,
        element: &'a Op,
        items: &mut Result<Vec<Val<'a>>, EvalError>,
    ) -> Result<(), EvalError> {
        let value = self.eval(element);
        let list_cost = if matches!(element, Op::Const(_)) {
            0
        } else {
            LIST_COST
        };
        match (self.charge_for(value, 2 + list_cost), items) {
            (Err(e), _) if e.is_final() => Err(e),
            (_, Err(_)) => Ok(()),
            (Ok(value), Ok(items)) => {
                items.push(value);
                Ok(())
            }
            (Err(e), items) => {
                *items = Err(e);
                Ok(())
            }
        }
    }

    /// `cel.@mapInsert(@result, …)`
    fn insert(
        &mut self,
        entry: &'a Insertion,
        entries: &mut Result<BTreeMap<MapKey<'a>, Val<'a>>, EvalError>,
    ) -> Result<(), EvalError> {
        // The accumulator is read first; the call with three arguments stops where that is an error.
        self.charge(1)?;
        match entry {
            Insertion::Entry { key, value } => {
                let Ok(map) = entries else {
                    return Ok(());
                };
                let added = match self.eval(key) {
                    Err(e) => Err(e),
                    Ok(key) => {
                        let value = self.eval(value);
                        let value = self.charge_for(value, 1);
                        value.and_then(|value| add_entry(map, key, value))
                    }
                };
                record_error(added, entries)
            }
            Insertion::Map(op) => {
                let added = self.eval(op);
                let added = self.charge_for(added, 1);
                let Ok(map) = entries else {
                    return record_error(added.map(|_| ()), &mut Ok(BTreeMap::<MapKey<'a>, Val<'a>>::new()));
                };
                let arena = self.arena;
                let added = added.and_then(Val::map).and_then(|added| {
                    added
                        .entries(arena)
                        .try_for_each(|(key, value)| add_entry(map, key, value?))
                });
                record_error(added, entries)
            }
        }
    }
}

/// Leaves an error in the result, unless it is final.
fn record_error<T>(added: Result<(), EvalError>, result: &mut Result<T, EvalError>) -> Result<(), EvalError> {
    match added {
        Err(e) if e.is_final() => Err(e),
        Err(e) => {
            *result = Err(e);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn add_entry<'a>(
    map: &mut BTreeMap<MapKey<'a>, Val<'a>>,
    key: Val<'a>,
    value: Val<'a>,
) -> Result<(), EvalError> {
    match map.insert(MapKey(key), value) {
        None => Ok(()),
        Some(_) => Err(EvalError::message(format!(
            "insert failed: key {key} already exists"
        ))),
    }
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
