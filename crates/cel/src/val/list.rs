//! Lists of all representations.

use super::order::exact_order;
use super::{Arena, EvalError, Owned, Res, Val, equal, read};
use crate::shape::{ListType, Shape, ShapeKind};
use scantling_value::Value;
use std::cmp::Ordering;

/// A list.
#[derive(Clone, Copy, Debug)]
pub enum List<'a> {
    /// A list of the input, with the shape of the whole list.
    Json(&'a Vec<Value>, &'a Shape),
    /// A list built during evaluation.
    Data(&'a ListData<'a>),
    /// A constant of the program.
    Owned(&'a [Owned]),
}

/// A list built during evaluation.
#[derive(Clone, Copy, Debug)]
pub enum ListData<'a> {
    /// A slice of elements.
    Vals {
        /// The elements.
        items: &'a [Val<'a>],
        /// The list type, which determines equality and concatenation.
        list_type: &'a ListType,
    },
    /// A slice of elements that may be errors.
    Partial {
        /// The elements or their errors.
        items: &'a [Result<Val<'a>, &'a EvalError>],
    },
    /// The concatenation of two lists.
    Concat {
        /// The first elements.
        left: List<'a>,
        /// The last elements.
        right: List<'a>,
        /// The total number of elements.
        len: usize,
    },
}

impl ListData<'_> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            ListData::Vals { items, .. } => items.len(),
            ListData::Partial { items } => items.len(),
            ListData::Concat { len, .. } => *len,
        }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> List<'a> {
    /// The number of elements.
    pub fn len(self) -> usize {
        match self {
            List::Json(items, _) => items.len(),
            List::Data(data) => data.len(),
            List::Owned(items) => items.len(),
        }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The element at an index; an error if it does not fit its shape.
    pub fn get(self, arena: &'a Arena, index: usize) -> Option<Res<'a>> {
        let mut list = self;
        let mut index = index;
        loop {
            match list {
                List::Json(items, shape) => {
                    return Some(read(arena, items.get(index)?, element_shape(shape)));
                }
                List::Data(ListData::Vals { items, .. }) => return items.get(index).copied().map(Ok),
                List::Data(ListData::Partial { items }) => {
                    return items.get(index).map(|item| item.map_err(Clone::clone));
                }
                List::Owned(items) => return items.get(index).map(|o| o.val(arena)),
                // Iterates instead of recursing: a loop that appends builds a chain as deep as it has iterations.
                List::Data(ListData::Concat { left, right, .. }) => match index.checked_sub(left.len()) {
                    Some(rest) => (list, index) = (*right, rest),
                    None => list = *left,
                },
            }
        }
    }

    /// The elements; each is a value or an error.
    pub fn iter(self, arena: &'a Arena) -> impl Iterator<Item = Res<'a>> {
        // Elements are read one by one, so a caller that stops early pays only for what it has read.
        (0..self.len()).map_while(move |i| self.get(arena, i))
    }

    /// Collects the elements; fails at the first error.
    pub fn to_vec(self, arena: &'a Arena) -> Result<Vec<Val<'a>>, EvalError> {
        self.iter(arena).collect()
    }

    /// The list type, which determines equality and concatenation.
    pub fn list_type(self) -> &'a ListType {
        match self {
            List::Json(
                _,
                Shape {
                    kind: ShapeKind::List { list_type, .. },
                    ..
                },
            ) => list_type,
            List::Data(ListData::Vals { list_type, .. }) => list_type,
            _ => &ListType::Atomic,
        }
    }
}

/// The shape of the elements of a list of this shape.
pub(crate) fn element_shape(shape: &Shape) -> &Shape {
    match &shape.kind {
        ShapeKind::List { element, .. } => element,
        _ => &super::DYN,
    }
}

/// `value in list`. An incomparable element is an error, unless another element is equal.
pub fn contains<'a>(arena: &'a Arena, list: List<'a>, value: Val<'a>) -> Result<bool, EvalError> {
    let mut error = None;
    for item in list.iter(arena) {
        match item.and_then(|item| equal::equal_to(arena, item, &Ok(value))) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(e) if e.is_final() => return Err(e),
            // The first error is kept, because a later element may still be equal.
            Err(e) => error = error.or(Some(e)),
        }
    }
    error.map_or(Ok(false), Err)
}

/// `left + right`: depending on the type of the left list, a concatenation, a union, or a merge by key.
pub fn add<'a>(arena: &'a Arena, left: List<'a>, right: List<'a>) -> Res<'a> {
    match left.list_type() {
        ListType::Atomic => match left {
            // kube-apiserver makes a new list here, even if one side is empty: the result loses the schema of the left
            // list.
            List::Json(..) => arena.concat_lists(left, right),
            // cel-go returns the other list as it is, including its list type.
            _ if left.is_empty() => Ok(right.into()),
            _ if right.is_empty() => Ok(left.into()),
            _ => arena.concat_lists(left, right),
        },
        list_type @ ListType::Set => {
            let mut items = left.to_vec(arena)?;
            // Repeated elements on the left stay: only the elements of the right list are checked.
            let mut seen = items
                .iter()
                .map(|v| set_key(*v))
                .collect::<Result<Vec<_>, EvalError>>()?;
            // Sorted for a binary search; comparing all pairs would be quadratic, although the addition costs only 1.
            seen.sort_by(|a, b| exact_order(*a, *b));
            // Apart from `seen`, so that an insertion moves only the elements added so far.
            let mut added: Vec<Val<'a>> = Vec::new();
            for item in right.iter(arena) {
                let item = set_key(item?)?;
                let find = |list: &[Val<'a>]| list.binary_search_by(|v| exact_order(*v, item));
                if find(&seen).is_err()
                    && let Err(at) = find(&added)
                {
                    added.insert(at, item);
                    items.push(item);
                }
            }
            arena.typed_list(items, list_type)
        }
        list_type @ ListType::Map(keys) => {
            let mut items = left.to_vec(arena)?;
            let mut index = items
                .iter()
                .enumerate()
                .map(|(i, v)| Ok((merge_key(arena, Ok(*v), keys)?, i)))
                .collect::<Result<Vec<_>, EvalError>>()?;
            // Of equal keys on the left, the last one is overwritten.
            index.sort_by(|(a, i), (b, j)| merge_key_order(a, b).then(j.cmp(i)));
            for item in right.iter(arena) {
                let item = item?;
                let key = merge_key(arena, Ok(item), keys)?;
                // Only the keys of the left list: repeated keys on the right are appended each time, as on
                // kube-apiserver.
                let at = index.partition_point(|(k, _)| merge_key_order(k, &key).is_lt());
                match index.get(at) {
                    Some((k, i)) if merge_key_order(k, &key).is_eq() => {
                        if let Some(place) = items.get_mut(*i) {
                            *place = item;
                        }
                    }
                    _ => items.push(item),
                }
            }
            arena.typed_list(items, list_type)
        }
    }
}

/// The key of an element of a set: only scalars have one.
pub(super) fn set_key(item: Val<'_>) -> Result<Val<'_>, EvalError> {
    if item.as_list().is_some() || item.as_map().is_some() {
        Err(EvalError::message(
            "listSet operations are only supported on lists of scalar values",
        ))
    } else {
        Ok(item)
    }
}

/// The values of the key fields of an element; null for absent fields.
pub(super) fn merge_key<'a>(
    arena: &'a Arena,
    item: Res<'a>,
    keys: &'a [Box<str>],
) -> Result<Vec<Val<'a>>, EvalError> {
    let map = match item {
        Err(e) if e.is_final() => return Err(e),
        item => item.ok().and_then(Val::as_map),
    };
    let value = |key: &'a str| match map.and_then(|map| map.get(arena, Val::Str(key))) {
        Some(Err(e)) if e.is_final() => Err(e),
        Some(Ok(v)) => Ok(v),
        _ => Ok(Val::Null),
    };
    keys.iter().map(|key| value(key)).collect()
}

pub(super) fn merge_key_order(a: &[Val<'_>], b: &[Val<'_>]) -> Ordering {
    let pairs = a.iter().zip(b);
    pairs
        .map(|(x, y)| exact_order(*x, *y))
        .find(|o| o.is_ne())
        .unwrap_or(Ordering::Equal)
}
