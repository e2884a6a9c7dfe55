//! The attributes at the end of a line.
//!
//! Most are needed rarely: when a document is published or a kind's rules are compiled. They stay text until
//! then.

use super::Release;

/// The attributes of a type, field or resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes(&'static str);

impl Attributes {
    pub(super) fn new(text: &'static str) -> Attributes {
        Attributes(text)
    }

    /// Iterates over the attributes. Spaces within quotes do not end an attribute.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let mut end = rest.find(' ').unwrap_or(rest.len());
            let is_open = |end: usize| {
                rest.get(..end)
                    .is_some_and(|w| w.matches(['"', '`']).count() % 2 == 1)
            };
            while is_open(end) && end < rest.len() {
                let next = rest.get(end + 1..).and_then(|after| after.find(' '));
                end = next.map_or(rest.len(), |next| end + 1 + next);
            }
            let (word, after) = rest.split_at_checked(end)?;
            rest = after.trim_start();
            (!word.is_empty()).then_some(word)
        })
    }

    /// Returns whether an attribute without a value is present.
    pub fn has(self, name: &str) -> bool {
        self.words().any(|word| word == name)
    }

    /// The value of an attribute.
    pub fn value(self, name: &str) -> Option<&'static str> {
        self.words()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// The values of a list attribute.
    pub fn values(self, name: &str) -> Vec<&'static str> {
        self.value(name).map_or_else(Vec::new, split)
    }

    /// The server-side apply strategy of a list, and the keys of its elements.
    pub fn list(self) -> Option<(&'static str, Vec<&'static str>)> {
        self.value("list").map(with_arguments)
    }

    /// The strategy of strategic merge patches, and the merge key.
    pub fn patch(self) -> Option<(&'static str, Option<&'static str>)> {
        let (strategy, keys) = with_arguments(self.value("patch")?);
        Some((strategy, keys.first().copied()))
    }

    /// The default value as JSON.
    pub fn default(self) -> Option<&'static str> {
        self.value("default")
    }

    /// The values of an enumeration, in order.
    pub fn enumeration(self) -> Option<Vec<&'static str>> {
        let values = self.value("enum")?;
        Some(split(values).into_iter().map(|v| v.trim_matches('"')).collect())
    }

    /// The tags of declarative validation, without their `+`.
    pub fn tags(self) -> impl Iterator<Item = &'static str> {
        self.words().filter_map(|word| word.strip_prefix('+'))
    }

    /// The first release that has it, unless all releases in the table do.
    pub fn since(self) -> Option<Release> {
        self.value("since").and_then(Release::parse)
    }

    /// The last release that has it, unless the newest does.
    pub fn until(self) -> Option<Release> {
        self.value("until").and_then(Release::parse)
    }

    /// Returns whether a release has it.
    pub(super) fn is_in(self, release: Release) -> bool {
        // Fast path: nearly everything is in all releases.
        if !self.0.contains("since=1.") && !self.0.contains("until=1.") {
            return true;
        }
        self.since().is_none_or(|since| since <= release) && self.until().is_none_or(|until| release <= until)
    }
}

fn split(values: &'static str) -> Vec<&'static str> {
    values.split(',').filter(|v| !v.is_empty()).collect()
}

/// `name(a,b)`: the name and the arguments.
fn with_arguments(text: &'static str) -> (&'static str, Vec<&'static str>) {
    match text.split_once('(') {
        Some((name, arguments)) => (name, split(arguments.trim_end_matches(')'))),
        None => (text, Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_unquoted_spaces() {
        let attributes = Attributes::new(
            r#"#3 list=map(a,b) patch=merge(a) default="x y" +item(t:"A B")=+forbidden since=1.35"#,
        );
        assert_eq!(attributes.list(), Some(("map", vec!["a", "b"])));
        assert_eq!(attributes.patch(), Some(("merge", Some("a"))));
        assert_eq!(attributes.default(), Some("\"x y\""));
        assert_eq!(
            attributes.tags().collect::<Vec<_>>(),
            ["item(t:\"A B\")=+forbidden"]
        );
        assert!(!attributes.is_in(Release(34)) && attributes.is_in(Release(35)));
    }
}
