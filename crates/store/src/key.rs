//! The layout of keys: where kube-apiserver puts objects, so that each can read what the other wrote.

use crate::StoreError;

/// The most bytes that a key may have.
pub const MAX_KEY_BYTES: usize = 4096;

/// The part of the keys that belongs to one API: everything below a root such as `/registry`.
///
/// ```
/// # fn main() -> Result<(), scantling_store::StoreError> {
/// let keys = scantling_store::KeySpace::new("registry")?;
/// assert_eq!(keys.collection("example.com", "widgets")?, "/registry/example.com/widgets/");
/// assert_eq!(keys.namespace("example.com", "widgets", "ns")?, "/registry/example.com/widgets/ns/");
/// assert_eq!(keys.object("example.com", "widgets", Some("ns"), "a")?, "/registry/example.com/widgets/ns/a");
/// assert_eq!(keys.object("example.com", "widgets", None, "a")?, "/registry/example.com/widgets/a");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpace {
    /// Begins with a slash and does not end with one.
    root: String,
}

impl Default for KeySpace {
    /// The root that kube-apiserver uses unless told otherwise.
    fn default() -> Self {
        Self {
            root: "/registry".to_owned(),
        }
    }
}

impl KeySpace {
    /// A key space below a root. Slashes around the root do not matter.
    pub fn new(root: &str) -> Result<Self, StoreError> {
        let trimmed = root.trim_matches('/');
        for part in trimmed.split('/') {
            segment(part)?;
        }
        Ok(Self {
            root: format!("/{trimmed}"),
        })
    }

    /// The prefix of all keys in this space.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("{}/", self.root)
    }

    /// The prefix of all objects of a resource. The group may be empty, as that of `namespaces` is.
    pub fn collection(&self, group: &str, plural: &str) -> Result<String, StoreError> {
        self.directory(group, plural, None, "")
    }

    /// The prefix of a resource, or of one namespace of it, with room for what is to follow.
    fn directory(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        room: &str,
    ) -> Result<String, StoreError> {
        let group = Some(group).filter(|group| !group.is_empty());
        let segments = [group, Some(plural), namespace].into_iter().flatten();
        let length = segments.clone().map(|part| part.len() + 1).sum::<usize>();
        let mut prefix = String::with_capacity(self.root.len() + 1 + length + room.len());
        prefix.push_str(&self.root);
        prefix.push('/');
        for part in segments {
            prefix.push_str(segment(part)?);
            prefix.push('/');
        }
        Ok(prefix)
    }

    /// The prefix of all objects of a resource in one namespace.
    pub fn namespace(&self, group: &str, plural: &str, namespace: &str) -> Result<String, StoreError> {
        self.directory(group, plural, Some(namespace), "")
    }

    /// The key of one object; cluster-scoped ones have no namespace.
    pub fn object(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<String, StoreError> {
        let mut key = self.directory(group, plural, namespace, name)?;
        key.push_str(segment(name)?);
        Ok(key)
    }
}

/// One segment of a key: it must not be able to reach out of its place.
fn segment(text: &str) -> Result<&str, StoreError> {
    let reason = match text {
        "" => "a segment must not be empty",
        "." | ".." => "a segment must not be `.` or `..`",
        _ => match text.bytes().find(|b| matches!(b, b'/' | 0)) {
            Some(b'/') => "a segment must not hold a slash",
            Some(_) => "a segment must not hold a NUL",
            None => return Ok(text),
        },
    };
    Err(StoreError::InvalidKey {
        key: text.to_owned(),
        reason,
    })
}

/// Refuses what no engine should ever hold, whatever it could hold.
pub(crate) fn check_key(key: &str) -> Result<(), StoreError> {
    let reason = match key.strip_prefix('/') {
        None => "a key begins with a slash",
        _ if key.len() > MAX_KEY_BYTES => "a key has at most 4096 bytes",
        Some(rest) => match rest.split('/').find_map(|part| segment(part).err()) {
            Some(StoreError::InvalidKey { reason, .. }) => reason,
            _ => return Ok(()),
        },
    };
    Err(StoreError::InvalidKey {
        key: key.chars().take(256).collect(),
        reason,
    })
}

/// The directory that a key belongs to for the purpose of watches: its first three segments, or as many as
/// it has above its own name. A resource below a one-segment root is one such directory.
pub(crate) fn topic(key: &str) -> &str {
    let end = key
        .bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'/')
        .map(|(at, _)| at + 1)
        .take(4)
        .last();
    end.and_then(|end| key.get(..end)).unwrap_or_default()
}

/// The least text that is greater than every text with this prefix, or nothing if there is none. As bytes,
/// because it need not be UTF-8.
pub(crate) fn prefix_end(prefix: &str) -> Option<Vec<u8>> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_segments_are_refused() {
        let keys = KeySpace::default();
        for name in ["", ".", "..", "a/b", "/", "a\0b"] {
            assert!(keys.object("g", "p", Some("ns"), name).is_err(), "{name:?}");
            assert!(keys.object("g", "p", Some(name), "x").is_err(), "{name:?}");
        }
        for name in ["a", "a b", "ü", "%2F", "...", "\u{10ffff}", "a\nb"] {
            assert!(keys.object("g", "p", Some("ns"), name).is_ok(), "{name:?}");
        }
        assert!(KeySpace::new("").is_err());
        assert!(KeySpace::new("//").is_err());
        assert_eq!(KeySpace::new("/a/b/").unwrap().prefix(), "/a/b/");
    }

    #[test]
    fn a_topic_is_the_collection() {
        for (key, want) in [
            ("/registry/g/widgets/ns/a", "/registry/g/widgets/"),
            ("/registry/g/widgets/a", "/registry/g/widgets/"),
            ("/registry/namespaces/a", "/registry/namespaces/"),
            ("/a", "/"),
            ("/registry/g/widgets/", "/registry/g/widgets/"),
            ("/registry/g/wid", "/registry/g/"),
        ] {
            assert_eq!(topic(key), want, "{key}");
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_the_next_text() {
        assert_eq!(prefix_end("/a/"), Some(b"/a0".to_vec()));
        assert_eq!(prefix_end(""), None);
        assert_eq!(prefix_end("ÿ"), Some(vec![0xc3, 0xc0]));
    }
}
