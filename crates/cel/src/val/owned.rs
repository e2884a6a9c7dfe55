//! Owned values.

use super::map::sort_entries;
use super::{Arena, Duration, EvalError, Opaque, Res, Timestamp, Val};
use std::sync::Arc;

/// An owned value: a constant of a program, a variable that is not JSON, or a result that outlives its
/// evaluation.
#[derive(Clone, Debug)]
pub enum Owned {
    /// `null`
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    Str(Arc<str>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// `google.protobuf.Duration`
    Duration(Duration),
    /// `google.protobuf.Timestamp`
    Timestamp(Timestamp),
    /// `list`
    List(Arc<[Owned]>),
    /// `map`; [`Owned::map`] sorts it.
    Map(OwnedMap),
    /// A type, by its name.
    Type(Arc<str>),
    /// `optional_type`
    Optional(Option<Arc<Owned>>),
    /// A value that only functions can inspect.
    Opaque(Arc<dyn Opaque>),
}

/// The entries of an [`Owned`] map.
// INVARIANT: sorted by key, keys distinct.
#[derive(Clone, Debug)]
pub struct OwnedMap(Arc<[(Owned, Owned)]>);

impl OwnedMap {
    /// The entries in key order.
    pub fn entries(&self) -> &[(Owned, Owned)] {
        &self.0
    }
}

impl Owned {
    /// A map from entries in any order. The last of equal keys wins.
    pub fn map(mut entries: Vec<(Owned, Owned)>) -> Self {
        // The only place that makes an `OwnedMap` from unsorted entries, which is what the invariant relies on.
        sort_entries(&mut entries, |a, b| super::key_order(a.0.key(), b.0.key()));
        Owned::Map(OwnedMap(entries.into()))
    }

    /// Borrows the value for evaluation.
    pub fn val<'a>(&'a self, arena: &'a Arena) -> Res<'a> {
        match self {
            Owned::Optional(Some(value)) => arena.some(value.val(arena)?),
            Owned::Optional(None) => Ok(Val::NONE),
            other => Ok(other.key()),
        }
    }

    /// Borrows the value for evaluation without an arena. Every optional becomes the empty optional.
    pub(crate) fn key(&self) -> Val<'_> {
        match self {
            Owned::Null => Val::Null,
            Owned::Bool(b) => Val::Bool(*b),
            Owned::Int(i) => Val::Int(*i),
            Owned::Uint(u) => Val::Uint(*u),
            Owned::Double(d) => Val::Double(*d),
            Owned::Str(s) => Val::Str(s),
            Owned::Bytes(b) => Val::Bytes(b),
            Owned::Duration(d) => Val::Duration(*d),
            Owned::Timestamp(t) => Val::Timestamp(*t),
            Owned::List(items) => Val::OwnedList(items),
            Owned::Map(map) => Val::OwnedMap(map.entries()),
            Owned::Type(name) => Val::Type(name),
            Owned::Optional(_) => Val::NONE,
            Owned::Opaque(o) => Val::Opaque(o.as_ref()),
        }
    }
}

/// Returns whether a value equals one of several values sorted by [`super::key_order`].
pub(crate) fn find_key<'a>(sorted: &'a [Owned], value: Val<'a>) -> bool {
    super::map::find(sorted, value, Owned::key).is_some()
}

impl<'a> Val<'a> {
    /// Copies the value out of the arena and the input. Input that does not fit its shape is an error.
    pub fn into_owned(self, arena: &'a Arena) -> Result<Owned, EvalError> {
        Ok(match self {
            Val::Null => Owned::Null,
            Val::Bool(b) => Owned::Bool(b),
            Val::Int(i) => Owned::Int(i),
            Val::Uint(u) => Owned::Uint(u),
            Val::Double(d) => Owned::Double(d),
            Val::Str(s) => Owned::Str(s.into()),
            Val::Bytes(b) => Owned::Bytes(b.into()),
            Val::Duration(d) => Owned::Duration(d),
            Val::Timestamp(t) => Owned::Timestamp(t),
            Val::Type(name) => Owned::Type(name.into()),
            Val::Opaque(o) => Owned::Opaque(o.share()),
            Val::Optional(value) => {
                Owned::Optional(value.map(|v| v.into_owned(arena)).transpose()?.map(Arc::new))
            }
            Val::OwnedList(items) => Owned::List(items.into()),
            // Already sorted, because it was borrowed from an `OwnedMap`.
            Val::OwnedMap(entries) => Owned::Map(OwnedMap(entries.into())),
            Val::JsonList(..) | Val::List(_) => {
                let items = self.list()?.iter(arena);
                Owned::List(items.map(|v| v?.into_owned(arena)).collect::<Result<_, _>>()?)
            }
            Val::JsonMap(..) | Val::Map(_) => {
                let entries = self.map()?.entries(arena);
                Owned::map(
                    entries
                        .map(|(k, v)| Ok((k.into_owned(arena)?, v?.into_owned(arena)?)))
                        .collect::<Result<_, EvalError>>()?,
                )
            }
        })
    }
}
