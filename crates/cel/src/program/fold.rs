//! Comprehensions.

use super::eval::{Machine, Slot};
use super::node::{Fold, Insertion, Node, Step};
use crate::estimate::LIST_COST;
use crate::val::{self, EvalError, List, ListData, Map, Res, Val, key_order};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What the accumulator of a fold has become.
enum Accumulator<'a> {
    /// In its slot.
    Slot,
    /// The answer of a quantifier so far.
    Answer(Result<bool, EvalError>),
    /// A list that is being made; an error once there was one.
    List(Result<Vec<Val<'a>>, EvalError>),
    /// A map that is being made; an error once there was one.
    Map(Result<BTreeMap<MapKey<'a>, Val<'a>>, EvalError>),
}

/// Whether a fold goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Done,
}

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

impl<'a> Machine<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Res<'a> {
        let range = self.eval(&fold.range)?;
        let mut accumulator = match &fold.step {
            Step::Replace { .. } => {
                // A value that nobody asks for is not computed.
                self.set(fold.accumulator, Slot::Lazy(&fold.init));
                Accumulator::Slot
            }
            Step::All { .. } => Accumulator::Answer(Ok(true)),
            Step::Exists { .. } => Accumulator::Answer(Ok(false)),
            Step::Append { .. } => Accumulator::List(Ok(Vec::new())),
            Step::Insert { .. } => Accumulator::Map(Ok(BTreeMap::new())),
        };
        if let Some(list) = range.as_list() {
            self.fold_list(fold, list, &mut accumulator)?;
        } else if let Some(map) = range.as_map() {
            self.fold_map(fold, map, &mut accumulator)?;
        } else {
            return Err(not_iterable(fold, range));
        }
        let arena = self.arena;
        match accumulator {
            Accumulator::Slot => {}
            Accumulator::Answer(answer) => self.set_result(fold.accumulator, answer.map(Val::Bool)),
            Accumulator::List(items) => {
                let list = items.and_then(|items| arena.list(items));
                self.set_result(fold.accumulator, list);
            }
            Accumulator::Map(entries) => {
                let entries = entries.map(|m| m.into_iter().map(|(k, v)| (k.0, v)).collect());
                self.set_result(fold.accumulator, entries.and_then(|entries| arena.map(entries)));
            }
        }
        self.eval(&fold.result)
    }

    fn fold_list(
        &mut self,
        fold: &'a Fold,
        list: List<'a>,
        accumulator: &mut Accumulator<'a>,
    ) -> Result<(), EvalError> {
        for i in 0..list.len() {
            let item = match list {
                List::Json(items, shape) => match items.get(i) {
                    Some(item) => Slot::Json(item, val::element_shape(shape)),
                    None => break,
                },
                List::Data(ListData::Vals { items, .. }) => match items.get(i) {
                    Some(item) => Slot::Val(*item),
                    None => break,
                },
                list => match list.get(self.arena, i) {
                    Some(Ok(item)) => Slot::Val(item),
                    Some(Err(e)) => Slot::Error(e),
                    None => break,
                },
            };
            match fold.second {
                None => self.set(fold.first, item),
                Some(second) => {
                    self.set(
                        fold.first,
                        Slot::Val(Val::Int(i64::try_from(i).unwrap_or(i64::MAX))),
                    );
                    self.set(second, item);
                }
            }
            if self.step(fold, accumulator)? == Flow::Done {
                break;
            }
        }
        Ok(())
    }

    fn fold_map(
        &mut self,
        fold: &'a Fold,
        map: Map<'a>,
        accumulator: &mut Accumulator<'a>,
    ) -> Result<(), EvalError> {
        for key in map.keys() {
            self.set(fold.first, Slot::Val(key));
            if let Some(second) = fold.second {
                let value = map
                    .get(self.arena, key)
                    .unwrap_or_else(|| Err(EvalError::no_such_key(key)));
                self.set_result(second, value);
            }
            if self.step(fold, accumulator)? == Flow::Done {
                break;
            }
        }
        Ok(())
    }

    /// One element. Errors become part of the accumulator; only final ones end the fold.
    fn step(&mut self, fold: &'a Fold, accumulator: &mut Accumulator<'a>) -> Result<Flow, EvalError> {
        match (&fold.step, accumulator) {
            (Step::All { predicate }, Accumulator::Answer(answer)) => {
                // `@not_strictly_false(@result)`
                self.charge(2)?;
                if *answer == Ok(false) {
                    return Ok(Flow::Done);
                }
                self.quantify(predicate, answer, false)?;
            }
            (Step::Exists { predicate }, Accumulator::Answer(answer)) => {
                // `@not_strictly_false(!@result)`
                self.charge(3)?;
                if *answer == Ok(true) {
                    return Ok(Flow::Done);
                }
                self.quantify(predicate, answer, true)?;
            }
            (Step::Replace { condition, step }, _) => {
                match self.eval(condition) {
                    Ok(Val::Bool(false)) => return Ok(Flow::Done),
                    Err(e) if e.is_final() => return Err(e),
                    _ => {}
                }
                let value = self.eval(step);
                if let Err(e) = &value
                    && e.is_final()
                {
                    return Err(e.clone());
                }
                self.set_result(fold.accumulator, value);
            }
            (Step::Append { filter, element }, Accumulator::List(items)) => {
                let passes = self.passes(filter.as_ref(), items)?;
                if passes {
                    self.append(element, items)?;
                }
            }
            (Step::Insert { filter, entry }, Accumulator::Map(entries)) => {
                let passes = self.passes(filter.as_ref(), entries)?;
                if passes {
                    self.insert(entry, entries)?;
                }
            }
            _ => {}
        }
        self.tick()?;
        Ok(Flow::On)
    }

    /// `@result && predicate` and `@result || predicate`: the answer is decided, or an error stands, or it is open.
    fn quantify(
        &mut self,
        predicate: &'a Node,
        answer: &mut Result<bool, EvalError>,
        decisive: bool,
    ) -> Result<(), EvalError> {
        self.charge(1)?;
        match self.eval(predicate) {
            Ok(Val::Bool(b)) => {
                if b == decisive {
                    *answer = Ok(decisive);
                }
            }
            Err(e) if e.is_final() => return Err(e),
            other => {
                if answer.is_ok() {
                    *answer = Err(other.err().unwrap_or(EvalError::NoSuchOverload));
                }
            }
        }
        Ok(())
    }

    /// Whether an element passes the filter. A filter that gives no answer leaves an error in the result.
    fn passes<T>(
        &mut self,
        filter: Option<&'a Node>,
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
        element: &'a Node,
        items: &mut Result<Vec<Val<'a>>, EvalError>,
    ) -> Result<(), EvalError> {
        let value = self.eval(element);
        let list_cost = if matches!(element, Node::Const(_)) {
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
                settle(added, entries)
            }
            Insertion::Map(node) => {
                let added = self.eval(node);
                let added = self.charge_for(added, 1);
                let Ok(map) = entries else {
                    return settle(added.map(|_| ()), &mut Ok(BTreeMap::<MapKey<'a>, Val<'a>>::new()));
                };
                let arena = self.arena;
                let added = added.and_then(Val::map).and_then(|added| {
                    added
                        .entries(arena)
                        .try_for_each(|(key, value)| add_entry(map, key, value?))
                });
                settle(added, entries)
            }
        }
    }
}

/// Leaves an error in the result, unless it is final.
fn settle<T>(added: Result<(), EvalError>, result: &mut Result<T, EvalError>) -> Result<(), EvalError> {
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
        Some(_) => Err(EvalError::text(format!(
            "insert failed: key {key} already exists"
        ))),
    }
}

#[cold]
fn not_iterable(fold: &Fold, range: Val<'_>) -> EvalError {
    let name = match range {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::Str(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::Optional(_) => "*types.Optional",
        Val::Type(_) => "*types.Type",
        other => other.type_name(),
    };
    EvalError::text(if fold.second.is_some() {
        format!("unsupported comprehension range type: {name}")
    } else {
        format!("got '{name}', expected iterable type")
    })
}
