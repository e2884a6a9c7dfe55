//! The arena for intermediate values.

use super::{EvalError, List, ListData, Opaque, Res, Val, map};
use crate::shape::ListType;
use bumpalo::Bump;
use bumpalo::collections::String as BumpString;
use elsa::FrozenVec;
use scantling_value::deadline;
use std::fmt;

/// Owns the intermediate values of an evaluation. It allocates lazily, frees everything at once, and has a size
/// limit.
pub struct Arena {
    bump: Bump,
    // Opaque values and errors may own heap memory, which a bump allocator would not free.
    opaques: FrozenVec<Box<dyn Opaque>>,
    errors: FrozenVec<Box<EvalError>>,
}

/// The size limit of an arena, several times what the cost limit of a rule allows.
const LIMIT: usize = 64 << 20;

impl Default for Arena {
    fn default() -> Self {
        let bump = Bump::new();
        bump.set_allocation_limit(Some(LIMIT));
        Arena {
            bump,
            opaques: FrozenVec::new(),
            errors: FrozenVec::new(),
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("bytes", &self.bump.allocated_bytes())
            .field("opaques", &self.opaques.len())
            .finish()
    }
}

impl Arena {
    /// An empty arena.
    pub fn new() -> Self {
        Arena::default()
    }

    /// Drops all values and keeps the memory for the next evaluation.
    #[inline]
    pub fn reset(&mut self) {
        // Every kept value takes some arena memory, so an arena without memory has nothing to free.
        if self.bump.allocated_bytes() > 0 {
            self.free();
        }
    }

    fn free(&mut self) {
        self.bump.reset();
        if !self.opaques.is_empty() {
            self.opaques = FrozenVec::new();
        }
        if !self.errors.is_empty() {
            self.errors = FrozenVec::new();
        }
    }

    /// Returns an error if `bytes` more would exceed the limit. Call it before large computations.
    pub fn check_room(&self, bytes: usize) -> Result<(), EvalError> {
        // Only a bound for a single value: the allocator checks the sum when the value is stored.
        if bytes < LIMIT {
            Ok(())
        } else {
            Err(EvalError::OutOfMemory)
        }
    }

    /// Stores a string.
    pub fn keep_str(&self, s: &str) -> Result<&str, EvalError> {
        // Copying takes time in proportion to the text, which no other step counts.
        deadline::tick_over(s);
        match self.bump.try_alloc_str(s) {
            Ok(s) => Ok(s),
            Err(_) => Err(EvalError::OutOfMemory),
        }
    }

    /// Concatenates two strings.
    pub fn concat_strings(&self, left: &str, right: &str) -> Result<&str, EvalError> {
        let len = left.len().saturating_add(right.len());
        // If the current chunk has room, writing in place cannot fail. Otherwise allocation may fail, which
        // only the slow path reports.
        if len > self.bump.chunk_capacity() {
            return self.concat_strings_in_pieces(left, right, len);
        }
        let mut joined = BumpString::with_capacity_in(len, &self.bump);
        joined.push_str(left);
        joined.push_str(right);
        Ok(joined.into_bump_str())
    }

    #[cold]
    fn concat_strings_in_pieces(&self, left: &str, right: &str, len: usize) -> Result<&str, EvalError> {
        deadline::tick_over(left);
        deadline::tick_over(right);
        let Ok(joined) = self.bump.try_alloc_slice_fill_copy(len, 0_u8) else {
            return Err(EvalError::OutOfMemory);
        };
        if let Some((head, tail)) = joined.split_at_mut_checked(left.len()) {
            head.copy_from_slice(left.as_bytes());
            tail.copy_from_slice(right.as_bytes());
        }
        // Cannot fail, because both parts are UTF-8; the check avoids unsafe code.
        std::str::from_utf8(joined).map_err(|_| EvalError::message("joined text is not UTF-8"))
    }

    /// Stores a value.
    pub fn keep<T: Copy>(&self, value: T) -> Result<&T, EvalError> {
        match self.bump.try_alloc(value) {
            Ok(value) => Ok(value),
            Err(_) => Err(EvalError::OutOfMemory),
        }
    }

    /// Stores a slice.
    pub fn keep_slice<T: Copy>(&self, values: &[T]) -> Result<&[T], EvalError> {
        match self.bump.try_alloc_slice_copy(values) {
            Ok(values) => Ok(values),
            Err(_) => Err(EvalError::OutOfMemory),
        }
    }

    /// A string.
    pub fn str(&self, s: impl AsRef<str>) -> Res<'_> {
        Ok(Val::Str(self.keep_str(s.as_ref())?))
    }

    /// Bytes.
    pub fn bytes(&self, b: impl AsRef<[u8]>) -> Res<'_> {
        Ok(Val::Bytes(self.keep_slice(b.as_ref())?))
    }

    /// A list.
    pub fn list<'a>(&'a self, items: impl AsRef<[Val<'a>]>) -> Res<'a> {
        self.typed_list(items, &ListType::Atomic)
    }

    /// A list of the given list type.
    pub fn typed_list<'a>(&'a self, items: impl AsRef<[Val<'a>]>, list_type: &'a ListType) -> Res<'a> {
        let items = self.keep_slice(items.as_ref())?;
        Ok(Val::List(self.keep(ListData::Vals { items, list_type })?))
    }

    /// A list of results. Errors stay in place and surface when the element is read.
    pub fn list_of<'a>(&'a self, items: impl Iterator<Item = Res<'a>>) -> Res<'a> {
        let mut whole = true;
        let items = items
            .map(|item| match item {
                Ok(item) => Ok(Ok(item)),
                Err(e) if e.is_final() => Err(e),
                Err(e) => {
                    whole = false;
                    // Each error counts towards the size limit.
                    self.keep(0_u64)?;
                    Ok(Err(self.errors.push_get(Box::new(e))))
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        if whole {
            // The usual case: without errors the elements need no wrapper.
            return self.list(items.into_iter().flatten().collect::<Vec<_>>());
        }
        let items = self.keep_slice(&items)?;
        Ok(Val::List(self.keep(ListData::Partial { items })?))
    }

    /// Concatenates two lists in constant time.
    pub fn concat_lists<'a>(&'a self, left: List<'a>, right: List<'a>) -> Res<'a> {
        let len = left.len().saturating_add(right.len());
        // Copying would make a loop that appends quadratic, although each addition costs only 1.
        Ok(Val::List(self.keep(ListData::Concat { left, right, len })?))
    }

    /// A map from entries in any order. The last of equal keys wins.
    pub fn map<'a>(&'a self, mut entries: Vec<(Val<'a>, Val<'a>)>) -> Res<'a> {
        map::sort_entries(&mut entries, |a, b| map::key_order(a.0, b.0));
        Ok(Val::Map(self.keep_slice(&entries)?))
    }

    /// An optional that holds a value.
    pub fn some<'a>(&'a self, value: Val<'a>) -> Res<'a> {
        Ok(Val::Optional(Some(self.keep(value)?)))
    }

    /// An optional that may hold a value.
    pub fn optional<'a>(&'a self, value: Option<Val<'a>>) -> Res<'a> {
        value.map_or(Ok(Val::NONE), |v| self.some(v))
    }

    /// A value of an opaque type.
    pub fn opaque(&self, value: impl Opaque) -> Res<'_> {
        // Each opaque value counts towards the size limit.
        self.keep(0_u64)?;
        Ok(Val::Opaque(self.opaques.push_get(Box::new(value))))
    }
}
