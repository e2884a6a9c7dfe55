//! Lists that cannot outgrow their bounds.

use crate::{FieldError, Finding};
use std::fmt;
use std::ops::Deref;

/// The greatest number of entries in a list. The recorded answers of real servers stay below 150.
const MAX_ITEMS: usize = 1000;

/// The most text in a list, over all entries. A `Status` holds each text twice, in its message and in its causes.
const MAX_BYTES: usize = 1 << 20;

/// Field errors, in the order in which they were found.
pub type ErrorList = BoundedList<FieldError>;

/// Findings of strict decoding, in the order in which they were found.
pub type FindingList = BoundedList<Finding>;

/// Texts such as warnings, in order.
pub type TextList = BoundedList<String>;

/// An entry of a [`BoundedList`].
pub trait BoundedItem: fmt::Display + Sized {
    /// The bytes that the entry takes.
    fn bytes(&self) -> usize;

    /// Returns the entry that stands for omitted ones.
    fn omission(count: usize) -> Self;

    /// The number of omitted entries that this one stands for; 0 for an entry of its own.
    fn omitted(&self) -> usize;
}

impl BoundedItem for String {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn omission(count: usize) -> Self {
        format!("{count} more were omitted")
    }

    /// A text does not tell; [`BoundedList::append`] carries the number over.
    fn omitted(&self) -> usize {
        0
    }
}

/// A list that is bounded in number and in bytes.
///
/// A small request can have many errors, and each error can quote a large value. The first entries are kept as they
/// are. The others are counted, and the last entry says how many there were.
// INVARIANT: `items` ends with an omission entry exactly where `omitted` is not 0, and has no other.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedList<T> {
    items: Vec<T>,
    /// The bytes that the entries take.
    bytes: usize,
    max_bytes: usize,
    omitted: usize,
}

impl<T> Default for BoundedList<T> {
    fn default() -> Self {
        BoundedList::new()
    }
}

impl<T> BoundedList<T> {
    /// Returns an empty list.
    pub const fn new() -> Self {
        BoundedList {
            items: Vec::new(),
            bytes: 0,
            max_bytes: MAX_BYTES,
            omitted: 0,
        }
    }

    /// Returns an empty list with room for half of what still fits into this one. An alternative that is tried out, and
    /// whose errors may be taken over, collects them in such a list: nested alternatives together take no more than one
    /// list.
    #[must_use]
    pub fn half(&self) -> Self {
        BoundedList {
            max_bytes: self.max_bytes.saturating_sub(self.bytes) / 2,
            ..BoundedList::new()
        }
    }

    /// Returns whether further entries are only counted.
    pub fn is_full(&self) -> bool {
        self.omitted > 0 || self.items.len() >= MAX_ITEMS || self.bytes >= self.max_bytes
    }

    /// The number of entries, with those that were omitted.
    pub fn total(&self) -> usize {
        self.kept() + self.omitted
    }

    /// The number of entries that are kept, without the one that counts the others.
    fn kept(&self) -> usize {
        self.items.len() - usize::from(self.omitted > 0)
    }

    /// The entries that are kept.
    pub(crate) fn kept_mut(&mut self) -> &mut [T] {
        let kept = self.kept();
        self.items.get_mut(..kept).unwrap_or_default()
    }

    /// Returns the entries.
    pub fn into_vec(self) -> Vec<T> {
        self.items
    }
}

impl<T: BoundedItem> BoundedList<T> {
    /// Adds an entry.
    pub fn push(&mut self, item: T) {
        let omitted = item.omitted();
        let bytes = item.bytes();
        // The omission entry of another list only adds to the number. The subtraction below cannot underflow,
        // because `bytes` never exceeds `max_bytes`.
        if omitted > 0 {
            self.omit(omitted);
        } else if self.is_full() || bytes > self.max_bytes - self.bytes {
            self.omit(1);
        } else {
            self.bytes += bytes;
            self.items.push(item);
        }
    }

    /// Adds an entry, which is made only if there is room for it.
    pub fn push_with(&mut self, item: impl FnOnce() -> T) {
        if self.is_full() {
            self.omit(1);
        } else {
            self.push(item());
        }
    }

    /// Counts entries that are not kept.
    fn omit(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        if self.omitted > 0 {
            self.items.pop();
        }
        self.omitted += count;
        self.items.push(T::omission(self.omitted));
    }

    /// Adds the entries of another list.
    pub fn append(&mut self, mut other: BoundedList<T>) {
        let omitted = std::mem::take(&mut other.omitted);
        if omitted > 0 {
            other.items.pop();
        }
        self.extend(other.items);
        self.omit(omitted);
    }

    /// Adds entries in front.
    pub fn prepend(&mut self, mut items: BoundedList<T>) {
        if !items.is_empty() {
            std::mem::swap(self, &mut items);
            self.append(items);
        }
    }

    /// Sorts the entries by their texts.
    pub fn sort(&mut self) {
        self.kept_mut().sort_by_cached_key(ToString::to_string);
    }

    /// Removes the entries after the first `total`, omitted ones included.
    pub fn truncate(&mut self, total: usize) {
        let kept = self.kept();
        self.items.truncate(kept);
        let omitted = std::mem::take(&mut self.omitted);
        if total >= kept {
            self.omit(omitted.min(total - kept));
            return;
        }
        self.bytes -= self.items.drain(total..).map(|item| item.bytes()).sum::<usize>();
    }

    /// Keeps the entries for which the test holds. The entry that counts omitted ones stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let kept = self.kept();
        let omission = self.items.split_off(kept);
        let bytes = &mut self.bytes;
        self.items.retain(|item| {
            let keeps = keep(item);
            if !keeps {
                *bytes -= item.bytes();
            }
            keeps
        });
        self.items.extend(omission);
    }
}

impl<T> Deref for BoundedList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T: BoundedItem> Extend<T> for BoundedList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T: BoundedItem> FromIterator<T> for BoundedList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut list = BoundedList::new();
        list.extend(items);
        list
    }
}

impl From<FieldError> for ErrorList {
    fn from(error: FieldError) -> Self {
        ErrorList::from_iter([error])
    }
}

impl<T> IntoIterator for BoundedList<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a BoundedList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Map, Path, Value, aggregate};

    fn error(i: usize) -> FieldError {
        FieldError::invalid(&Path::ROOT.field("spec").index(i), "x", "bad")
    }

    fn render(list: &ErrorList) -> String {
        list.last().map(ToString::to_string).unwrap_or_default()
    }

    #[test]
    fn keeps_the_first_errors_and_counts_the_others() {
        let list: ErrorList = (0..120_000).map(error).collect();
        assert_eq!(list.len(), MAX_ITEMS + 1);
        assert_eq!(list.total(), 120_000);
        assert_eq!(list.first(), Some(&error(0)));
        assert_eq!(
            render(&list),
            "<nil>: Invalid value: null: 119000 more errors were omitted"
        );
    }

    #[test]
    fn bounds_the_text() {
        let large = "x".repeat(3 << 20);
        let large_error = |_| FieldError::invalid(&Path::ROOT.field("a"), large.as_str(), "bad");
        let list: ErrorList = (0..100).map(large_error).collect();
        assert_eq!(list.total(), 100);
        let text = aggregate(list.iter());
        assert!(text.len() <= MAX_BYTES, "{} bytes", text.len());
        assert!(text.starts_with("a: Invalid value: \"xxx") || text.starts_with("[a: Invalid value: \"xxx"));
    }

    /// The list stays within its bound, whichever part of an error is large.
    #[test]
    fn bounds_every_part_of_an_error() {
        let large = "\u{ad}".repeat(300_000);
        let list = Value::Array(vec![Value::Int(0); 200_000]);
        let object = Value::Object(
            (0..100_000)
                .map(|i| (format!("key{i}"), Value::Null))
                .collect::<Map>(),
        );
        let names: Vec<String> = (0..60_000).map(|i| format!("value{i}")).collect();
        let a = Path::ROOT.field("a");
        let cases: [(&str, &dyn Fn() -> FieldError); 8] = [
            ("key", &|| FieldError::required(&Path::ROOT.key(&large), "")),
            ("field", &|| FieldError::required(&Path::ROOT.field(&large), "")),
            ("text", &|| FieldError::duplicate(&a, large.as_str())),
            ("list", &|| FieldError::duplicate(&a, list.clone())),
            ("object", &|| FieldError::duplicate(&a, object.clone())),
            ("detail", &|| FieldError::forbidden(&a, large.as_str())),
            ("supported", &|| {
                FieldError::not_supported(&a, "x", names.iter().map(String::as_str))
            }),
            ("raw", &|| {
                FieldError::duplicate(&a, crate::BadValue::Raw(large.clone()))
            }),
        ];
        for (name, make) in cases {
            let list: ErrorList = (0..8).map(|_| make()).collect();
            let bytes: usize = list.iter().map(|e| e.to_string().len()).sum();
            assert!(bytes <= MAX_BYTES, "{name}: {bytes} bytes");
            assert!(list.len() > 1, "{name}: the first error is kept");
            assert_eq!(list.total(), 8, "{name}");
        }
    }

    #[test]
    fn truncation_counts_omitted_errors() {
        let mut list: ErrorList = (0..3000).map(error).collect();
        list.truncate(2500);
        assert_eq!((list.total(), list.len()), (2500, MAX_ITEMS + 1));
        list.truncate(1000);
        assert_eq!((list.total(), list.len(), list.is_full()), (1000, 1000, true));
        list.truncate(10);
        assert_eq!((list.total(), list.len(), list.is_full()), (10, 10, false));
        list.truncate(0);
        assert_eq!(list, ErrorList::new());
    }

    #[test]
    fn joined_lists_have_one_count() {
        let mut list: ErrorList = (0..1500).map(error).collect();
        list.extend((0..1500).map(error).collect::<ErrorList>());
        assert_eq!((list.total(), list.len()), (3000, MAX_ITEMS + 1));
        list.prepend((0..1500).map(error).collect());
        assert_eq!((list.total(), list.len()), (4500, MAX_ITEMS + 1));
        list.retain(|_| false);
        assert_eq!(
            render(&list),
            "<nil>: Invalid value: null: 3500 more errors were omitted"
        );
    }

    #[test]
    fn nested_alternatives_share_a_bound() {
        let text = "x".repeat(100_000);
        let large = || FieldError::invalid(&Path::ROOT.field("a"), text.as_str(), "bad");
        let mut lists = vec![ErrorList::new()];
        for _ in 0..50 {
            let mut nested = lists.last().map_or_else(ErrorList::new, ErrorList::half);
            nested.extend((0..20).map(|_| large()));
            assert_eq!(nested.total(), 20);
            lists.push(nested);
        }
        let bytes: usize = lists
            .iter()
            .flat_map(|list| list.iter())
            .map(BoundedItem::bytes)
            .sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    }

    #[test]
    fn keeps_the_first_texts_and_counts_the_others() {
        let list: TextList = (0..400_000).map(|i| i.to_string()).collect();
        assert_eq!(list.total(), 400_000);
        let texts = list.into_vec();
        assert_eq!(texts.len(), MAX_ITEMS + 1);
        assert_eq!(texts.first().map(String::as_str), Some("0"));
        assert_eq!(texts.last().map(String::as_str), Some("399000 more were omitted"));
    }

    #[test]
    fn bounds_the_bytes() {
        let list: TextList = (0..100).map(|_| "x".repeat(100_000)).collect();
        assert_eq!((list.total(), list.kept()), (100, 10));
        let mut joined = list.clone();
        joined.append(list);
        assert_eq!((joined.total(), joined.kept()), (200, 10));
        joined.truncate(3);
        assert_eq!((joined.total(), joined.bytes), (3, 300_000));
    }
}
