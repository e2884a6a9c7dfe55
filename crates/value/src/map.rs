//! The members of an object, as a sorted vector.

use crate::{Str, Value};
use std::cmp::Ordering;

/// The members of an object, sorted by key in byte order.
///
/// A sorted vector fits better than a hash map: objects are small, so a lookup takes a few comparisons;
/// comparing and merging take one pass; and encoding needs no sorting, because kube-apiserver writes keys in
/// this order.
// INVARIANT: `entries` is strictly ascending by key.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: Vec<(Str, Value)>,
}

impl Map {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Map { entries: Vec::new() }
    }

    /// The number of members.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the map is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Finds a key by binary search: its index, or the index at which it would be inserted.
    pub fn find(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(k, _)| compare_text(k, key))
    }

    /// Finds the index of a key. Most objects are so small that a linear scan beats binary search.
    #[inline]
    pub fn position(&self, key: &str) -> Option<usize> {
        const FEW: usize = 12;
        if self.entries.len() > FEW {
            return self.find(key).ok();
        }
        self.entries.iter().position(|(k, _)| same_text(k, key))
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        let i = self.position(key)?;
        self.entries.get(i).map(|(_, v)| v)
    }

    /// Looks up a key, trying the position at which another object of the same kind had it. Updates the
    /// position if the key is elsewhere. Objects of one kind tend to have the same members.
    #[inline]
    pub fn get_near(&self, key: &str, position: &mut usize) -> Option<&Value> {
        if let Some((k, value)) = self.entries.get(*position)
            && same_text(k, key)
        {
            return Some(value);
        }
        *position = self.position(key)?;
        self.entries.get(*position).map(|(_, value)| value)
    }

    /// The string value of a key; empty if the key is absent or its value is not a string.
    #[inline]
    pub fn get_str(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// The value of a key, mutable.
    #[inline]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let i = self.position(key)?;
        self.entries.get_mut(i).map(|(_, v)| v)
    }

    /// Returns whether the key is present.
    #[inline]
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// Reserves capacity for additional members.
    pub fn reserve(&mut self, additional: usize) {
        self.entries.reserve(additional);
    }

    /// Sets a member and returns the previous value.
    pub fn insert(&mut self, key: impl Into<Str>, value: Value) -> Option<Value> {
        let key = key.into();
        match self.find(&key) {
            Ok(i) => self.entries.get_mut(i).map(|(_, v)| std::mem::replace(v, value)),
            Err(i) => {
                self.entries.insert(i, (key, value));
                None
            }
        }
    }

    /// Sets members; of several with the same key, the last wins. Costs one pass, however many there are, where
    /// [`Map::insert`] costs one each.
    pub fn insert_all(&mut self, members: Vec<(Str, Value)>) {
        const FEW: usize = 8;
        if members.len() <= FEW {
            for (key, value) in members {
                self.insert(key, value);
            }
            return;
        }
        let mut entries = std::mem::take(&mut self.entries);
        entries.extend(members);
        // Merges two sorted runs instead of sorting again: the stable sort detects runs.
        *self = Map::from_unsorted(entries);
    }

    /// The value of a key, inserting the default first if the key is absent.
    pub fn get_or_insert_with(&mut self, key: &str, make: impl FnOnce() -> Value) -> &mut Value {
        let i = match self.find(key) {
            Ok(i) => i,
            Err(i) => {
                self.entries.insert(i, (key.into(), make()));
                i
            }
        };
        #[expect(clippy::indexing_slicing, reason = "i was found or filled just now")]
        &mut self.entries[i].1
    }

    /// Removes a member and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.position(key).map(|i| self.entries.remove(i).1)
    }

    /// Keeps the members that match the predicate.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.entries.retain_mut(|(k, v)| keep(k, v));
    }

    /// The members in key order as a slice, for merging with another sorted sequence.
    #[inline]
    pub fn entries(&self) -> &[(Str, Value)] {
        &self.entries
    }

    /// The members in key order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Str, &Value)> + DoubleEndedIterator {
        self.entries.iter().map(|(k, v)| (k, v))
    }

    /// The members in key order, with mutable values.
    #[inline]
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = (&Str, &mut Value)> {
        self.entries.iter_mut().map(|(k, v)| (&*k, v))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Str> {
        self.entries.iter().map(|(k, _)| k)
    }

    /// The values in key order.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.entries.iter().map(|(_, v)| v)
    }

    /// Builds a map from members in any order. The last occurrence of a repeated key wins, as in
    /// kube-apiserver's decoder.
    pub fn from_unsorted(mut entries: Vec<(Str, Value)>) -> Self {
        // Documents are often sorted already, as kube-apiserver writes them; then no sort is needed.
        let is_ascending = |(a, _): &(Str, Value), (b, _): &(Str, Value)| compare_text(a, b).is_lt();
        let strictly_ascending = entries
            .windows(2)
            .all(|w| matches!(w, [a, b] if is_ascending(a, b)));
        if !strictly_ascending {
            // The sort is stable, so the last of several equal keys in document order is the last of its run.
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(&mut later.1, &mut earlier.1);
                }
                same
            });
        }
        Map { entries }
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .all(|((a, x), (b, y))| same_text(a, b) && x == y)
    }
}

/// Compares two strings. Names and most values are only a few bytes long: comparing their first and last
/// eight bytes as words beats a call to `memcmp`.
#[inline]
pub fn same_text(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.len() == b.len()
        && match a.len() {
            8..=16 => a.first_chunk::<8>() == b.first_chunk() && a.last_chunk::<8>() == b.last_chunk(),
            4..8 => a.first_chunk::<4>() == b.first_chunk() && a.last_chunk::<4>() == b.last_chunk(),
            2..4 => a.first_chunk::<2>() == b.first_chunk() && a.last() == b.last(),
            0..2 => a.first() == b.first(),
            17..=32 => a.first_chunk::<16>() == b.first_chunk() && a.last_chunk::<16>() == b.last_chunk(),
            _ => a == b,
        }
}

/// Compares two strings by bytes. Most names differ in their first eight bytes, so one comparison of words decides.
#[inline]
fn compare_text(a: &str, b: &str) -> Ordering {
    beginning(a).cmp(&beginning(b)).then_with(|| a.cmp(b))
}

/// The first eight bytes of a string, as a number with the same order as strings. Short strings take as few instructions
/// as long ones, because this dominates most walks.
#[inline(always)]
pub fn beginning(text: &str) -> u64 {
    let bytes = text.as_bytes();
    if let Some(word) = bytes.first_chunk() {
        u64::from_be_bytes(*word)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
        // The last four bytes, without those already in the first four.
        let rest = (u64::from(last) << (8 * (8 - bytes.len()))) & u64::from(u32::MAX);
        (u64::from(first) << 32) | rest
    } else {
        let byte = |i: usize| u64::from(bytes.get(i).copied().unwrap_or(0));
        (byte(0) << 56) | (byte(1) << 48) | (byte(2) << 40)
    }
}

impl<K: Into<Str>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(iter: I) -> Self {
        Map::from_unsorted(iter.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }
}

impl IntoIterator for Map {
    type Item = (Str, Value);
    type IntoIter = std::vec::IntoIter<(Str, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::compare_text;

    #[test]
    fn words_have_the_order_of_strings() {
        let texts = [
            "",
            "\0",
            "a",
            "a\0",
            "ab",
            "abc",
            "abd",
            "abcd",
            "abcde",
            "abcdefg",
            "abcdefgh",
            "abcdefgh\0",
            "abcdefghi",
            "b",
            "é",
            "zz",
            "日本語",
            "日本誰",
            "spec",
            "status",
        ];
        for a in texts {
            for b in texts {
                assert_eq!(compare_text(a, b), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }
}
