//! A list of field errors that cannot outgrow its bounds.

use super::FieldError;
use std::ops::Deref;

/// The greatest number of errors in a list. The recorded answers of real servers stay below 150.
const MAX_ERRORS: usize = 1000;

/// The most text in a list, over all errors. A `Status` holds each text twice, in its message and in its causes.
const MAX_BYTES: usize = 1 << 20;

/// The bytes that an error takes beside its texts.
const OVERHEAD: usize = 64;

/// Field errors, in the order in which they were found.
///
/// A small request can have many errors, and each error can quote a large value, so a list is bounded both in number
/// and in bytes. The first errors are kept as they are. The others are counted, and the last entry of the list says how
/// many there were ([`FieldError::omitted`]).
// INVARIANT: `errors` ends with an omission entry exactly where `omitted` is not 0, and has no other.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorList {
    errors: Vec<FieldError>,
    /// The bytes that the errors take.
    bytes: usize,
    max_bytes: usize,
    omitted: usize,
}

impl Default for ErrorList {
    fn default() -> Self {
        ErrorList::new()
    }
}

impl ErrorList {
    /// No errors.
    pub const fn new() -> Self {
        ErrorList {
            errors: Vec::new(),
            bytes: 0,
            max_bytes: MAX_BYTES,
            omitted: 0,
        }
    }

    /// No errors, and room for half of what still fits into this list. An alternative that is tried out, and whose errors
    /// may be taken over, collects them in such a list: nested alternatives together take no more than one list.
    #[must_use]
    pub fn half(&self) -> Self {
        ErrorList {
            max_bytes: self.max_bytes.saturating_sub(self.bytes) / 2,
            ..ErrorList::new()
        }
    }

    /// Returns whether further errors are only counted.
    pub fn is_full(&self) -> bool {
        self.omitted > 0 || self.errors.len() >= MAX_ERRORS || self.bytes >= self.max_bytes
    }

    /// The number of errors found, with those that were omitted.
    pub fn total(&self) -> usize {
        self.kept() + self.omitted
    }

    /// The number of errors that are kept, without the entry that counts the others.
    fn kept(&self) -> usize {
        self.errors.len() - usize::from(self.omitted > 0)
    }

    /// Adds an error.
    pub fn push(&mut self, error: FieldError) {
        let omitted = error.omitted();
        let bytes = OVERHEAD + error.bytes();
        if omitted > 0 {
            self.omit(omitted);
        } else if self.is_full() || bytes > self.max_bytes - self.bytes {
            self.omit(1);
        } else {
            self.bytes += bytes;
            self.errors.push(error);
        }
    }

    /// Adds an error, which is made only if there is room for it.
    pub fn push_with(&mut self, error: impl FnOnce() -> FieldError) {
        if self.is_full() {
            self.omit(1);
        } else {
            self.push(error());
        }
    }

    /// Counts errors that are not kept.
    fn omit(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        if self.omitted == 0 {
            self.errors.push(FieldError::omission());
        }
        self.omitted += count;
        if let Some(entry) = self.errors.last_mut() {
            entry.set_omitted(self.omitted);
        }
    }

    /// Adds errors in front.
    pub fn prepend(&mut self, mut errors: ErrorList) {
        if !errors.is_empty() {
            std::mem::swap(self, &mut errors);
            self.extend(errors);
        }
    }

    /// Sorts the errors by their texts.
    pub fn sort(&mut self) {
        let kept = self.kept();
        if let Some(errors) = self.errors.get_mut(..kept) {
            errors.sort_by_cached_key(ToString::to_string);
        }
    }

    /// Forgets the errors after the first so many, those that were omitted included.
    pub fn truncate(&mut self, total: usize) {
        let kept = self.kept();
        if total >= kept {
            let omitted = self.omitted.min(total - kept);
            self.errors.truncate(kept);
            self.omitted = 0;
            self.omit(omitted);
            return;
        }
        for error in self.errors.drain(total..) {
            if error.omitted() == 0 {
                self.bytes -= OVERHEAD + error.bytes();
            }
        }
        self.omitted = 0;
    }

    /// Keeps the errors for which the test holds. The entry that counts omitted errors stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&FieldError) -> bool) {
        let bytes = &mut self.bytes;
        self.errors.retain(|error| {
            let keeps = error.omitted() > 0 || keep(error);
            if !keeps {
                *bytes -= OVERHEAD + error.bytes();
            }
            keeps
        });
    }
}

impl Deref for ErrorList {
    type Target = [FieldError];

    fn deref(&self) -> &[FieldError] {
        &self.errors
    }
}

impl Extend<FieldError> for ErrorList {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

impl FromIterator<FieldError> for ErrorList {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut list = ErrorList::new();
        list.extend(errors);
        list
    }
}

impl From<FieldError> for ErrorList {
    fn from(error: FieldError) -> Self {
        ErrorList::from_iter([error])
    }
}

impl IntoIterator for ErrorList {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a ErrorList {
    type Item = &'a FieldError;
    type IntoIter = std::slice::Iter<'a, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.iter()
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
        assert_eq!(list.len(), MAX_ERRORS + 1);
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

    /// Whatever part of an error is large, the list stays within its bound.
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
        assert_eq!((list.total(), list.len()), (2500, MAX_ERRORS + 1));
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
        assert_eq!((list.total(), list.len()), (3000, MAX_ERRORS + 1));
        list.prepend((0..1500).map(error).collect());
        assert_eq!((list.total(), list.len()), (4500, MAX_ERRORS + 1));
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
            .map(FieldError::bytes)
            .sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    }
}
