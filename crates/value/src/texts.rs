//! A list of texts that cannot outgrow its bounds.

/// The greatest number of texts in a list.
const MAX_TEXTS: usize = 1000;

/// The most bytes in a list, over all texts.
const MAX_BYTES: usize = 1 << 20;

/// What strict decoding or ratcheting found, in order: unknown fields, duplicate fields, warnings.
///
/// As in an [`ErrorList`](crate::ErrorList), the first texts are kept as they are and the others are counted. A server
/// sends at most 4096 characters of warnings, so a bounded list never lacks one that would be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList {
    texts: Vec<String>,
    bytes: usize,
    omitted: usize,
}

impl TextList {
    /// No texts.
    pub const fn new() -> Self {
        TextList {
            texts: Vec::new(),
            bytes: 0,
            omitted: 0,
        }
    }

    /// Adds a text, which is made only if there is room for it.
    pub fn push_with(&mut self, text: impl FnOnce() -> String) {
        if self.omitted > 0 || self.texts.len() >= MAX_TEXTS || self.bytes >= MAX_BYTES {
            self.omitted += 1;
            return;
        }
        let text = text();
        if text.len() > MAX_BYTES - self.bytes {
            self.omitted += 1;
            return;
        }
        self.bytes += text.len();
        self.texts.push(text);
    }

    /// The number of texts, with those that were omitted.
    pub fn total(&self) -> usize {
        self.texts.len() + self.omitted
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Forgets the texts after the first so many, those that were omitted included.
    pub fn truncate(&mut self, total: usize) {
        self.omitted = self.omitted.min(total.saturating_sub(self.texts.len()));
        if let Some(rest) = self.texts.get(total..) {
            self.bytes -= rest.iter().map(String::len).sum::<usize>();
            self.texts.truncate(total);
        }
    }

    /// Sorts the texts that are kept.
    pub fn sort(&mut self) {
        self.texts.sort_unstable();
    }

    /// Adds the texts of another list, each as a function writes it.
    pub fn append(&mut self, other: TextList, write: impl Fn(String) -> String) {
        for text in other.texts {
            self.push_with(|| write(text));
        }
        self.omitted += other.omitted;
    }

    /// The texts, and as the last one how many were omitted.
    pub fn into_texts(self) -> Vec<String> {
        let mut texts = self.texts;
        if self.omitted > 0 {
            texts.push(format!("{} more were omitted", self.omitted));
        }
        texts
    }
}

impl FromIterator<String> for TextList {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Self {
        let mut list = TextList::new();
        texts.into_iter().for_each(|text| list.push_with(|| text));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_first_texts_and_counts_the_others() {
        let list: TextList = (0..400_000).map(|i| i.to_string()).collect();
        assert_eq!(list.total(), 400_000);
        let texts = list.into_texts();
        assert_eq!(texts.len(), MAX_TEXTS + 1);
        assert_eq!(texts.first().map(String::as_str), Some("0"));
        assert_eq!(texts.last().map(String::as_str), Some("399000 more were omitted"));
    }

    #[test]
    fn bounds_the_bytes() {
        let list: TextList = (0..100).map(|_| "x".repeat(100_000)).collect();
        assert_eq!((list.total(), list.texts.len()), (100, 10));
        let mut joined = list.clone();
        joined.append(list, |text| text);
        assert_eq!((joined.total(), joined.texts.len()), (200, 10));
        joined.truncate(3);
        assert_eq!((joined.total(), joined.bytes), (3, 300_000));
    }
}
