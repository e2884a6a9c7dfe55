//! The layout of keys. It is that of kube-apiserver, so that each can read the other's data in etcd.

use crate::StoreError;

/// The maximum length of a key in bytes.
pub const MAX_KEY_BYTES: usize = 4096;

/// The keys of one API: everything under a root such as `/registry`.
///
/// ```
/// # fn main() -> Result<(), scantling_store::StoreError> {
/// let keys = scantling_store::KeySpace::new("registry")?;
/// assert_eq!(keys.collection("example.com", "widgets")?, "/registry/example.com/widgets/");
/// assert_eq!(keys.namespace("example.com", "widgets", "ns")?, "/registry/example.com/widgets/ns/");
/// assert_eq!(keys.object("example.com", "widgets", Some("ns"), "a")?, "/registry/example.com/widgets/ns/a");
/// assert_eq!(keys.object("example.com", "widgets", None, "a")?, "/registry/example.com/widgets/a");
/// assert_eq!(keys.object("", "services", Some("ns"), "a")?, "/registry/services/specs/ns/a");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySpace {
    /// Begins with a slash and does not end with one.
    root: String,
}

impl Default for KeySpace {
    /// kube-apiserver's default root.
    fn default() -> Self {
        Self {
            root: "/registry".to_owned(),
        }
    }
}

impl KeySpace {
    /// Creates a key space under a root. Leading and trailing slashes of the root are ignored.
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

    /// The prefix of all objects of a resource. The group may be empty, as for `namespaces`.
    pub fn collection(&self, group: &str, plural: &str) -> Result<String, StoreError> {
        self.directory(group, plural, None, "")
    }

    /// The prefix of a resource or of one namespace of it, with capacity for a name.
    fn directory(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        room: &str,
    ) -> Result<String, StoreError> {
        let own = [plural];
        let directory: &[&str] = match (group, plural) {
            // The names of their first releases.
            ("", "endpoints") => &["services", "endpoints"],
            ("", "ingresses") => &["ingress"],
            ("", "nodes") => &["minions"],
            ("", "replicationcontrollers") => &["controllers"],
            ("", "services") => &["services", "specs"],
            _ => &own,
        };
        let group = Some(group).filter(|group| !group.is_empty());
        let segments = group
            .into_iter()
            .chain(directory.iter().copied())
            .chain(namespace);
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

    /// The key of an object; cluster-scoped objects have no namespace.
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

/// Checks one segment of a key: it must not change the directory.
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

/// Rejects keys that no engine should store.
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
        // The error quotes the key, so an oversized one is cut.
        key: key.chars().take(256).collect(),
        reason,
    })
}

/// The topic of a key for watches: its first three segments, or all above its name if it has fewer. A
/// resource under a one-segment root is one topic.
pub(crate) fn topic(key: &str) -> &str {
    // Four slashes enclose three segments, as in `/registry/example.com/widgets/`.
    let end = key
        .bytes()
        .enumerate()
        .filter(|(_, byte)| *byte == b'/')
        .map(|(at, _)| at + 1)
        .take(4)
        .last();
    end.and_then(|end| key.get(..end)).unwrap_or_default()
}

/// The smallest byte string greater than every text with this prefix; `None` if there is none. It need not be
/// UTF-8.
pub(crate) fn prefix_end(prefix: &str) -> Option<Vec<u8>> {
    let mut end = prefix.as_bytes().to_vec();
    // Only an empty prefix has no end: UTF-8 has no byte 0xFF.
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
    fn invalid_key_segments_are_refused() {
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
    fn prefix_end_is_the_next_text() {
        assert_eq!(prefix_end("/a/"), Some(b"/a0".to_vec()));
        assert_eq!(prefix_end(""), None);
        assert_eq!(prefix_end("ÿ"), Some(vec![0xc3, 0xc0]));
    }
}
