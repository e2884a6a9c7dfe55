//! A set of strings.

use crate::same_text;

/// A set of strings that never changes, such as an enumeration. It may have tens of thousands of members.
#[derive(Clone, Debug, Default)]
pub struct TextSet<T>(Box<[T]>);

impl<T: AsRef<str>> TextSet<T> {
    /// Returns whether a string is in the set.
    #[inline]
    pub fn contains(&self, text: &str) -> bool {
        const FEW: usize = 16;
        if self.0.len() <= FEW {
            // Most comparisons end at the length.
            return self.0.iter().any(|member| same_text(member.as_ref(), text));
        }
        self.0
            .binary_search_by(|member| (member.as_ref().len(), member.as_ref()).cmp(&(text.len(), text)))
            .is_ok()
    }

    /// Returns whether the set has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: AsRef<str>> FromIterator<T> for TextSet<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        let mut members: Box<[T]> = members.into_iter().collect();
        // By length first: comparisons then rarely touch the text.
        members.sort_by(|a, b| (a.as_ref().len(), a.as_ref()).cmp(&(b.as_ref().len(), b.as_ref())));
        TextSet(members)
    }
}
