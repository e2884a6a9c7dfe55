//! Splits a stream into documents.

use crate::DecodeError;

/// One document of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDocument<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// Its byte offset in the stream.
    pub offset: usize,
    /// The number of lines before it.
    pub line: usize,
}

/// Splits a stream at lines that begin with `---`, as Kubernetes' tools do. Includes documents without
/// content, which decode as null.
pub fn documents(text: &[u8]) -> impl Iterator<Item = Result<StreamDocument<'_>, DecodeError>> {
    Documents {
        text,
        at: 0,
        line: 0,
        failed: false,
    }
}

struct Documents<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
    failed: bool,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<StreamDocument<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let (offset, first_line) = (self.at, self.line);
        let document = |end| StreamDocument {
            text: self.text.get(offset..end).unwrap_or_default(),
            offset,
            line: first_line,
        };
        let (mut at, mut line) = (self.at, self.line);
        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            if rest.is_empty() {
                self.at = at;
                return (at > offset).then(|| Ok(document(at)));
            }
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |n| n + 1);
            if let Some(after) = rest.get(..length).and_then(|l| l.strip_prefix(b"---")) {
                let after = after.trim_ascii();
                // Kubernetes' splitter allows only a comment after a separator, although YAML allows content.
                if !after.is_empty() && !after.starts_with(b"#") {
                    self.failed = true;
                    let display = String::from_utf8_lossy(after);
                    let message = format!("invalid Yaml document separator: {display}");
                    return Some(Err(DecodeError::new(message, Some(at))));
                }
                // A separator at the very beginning belongs to the document after it.
                if at > offset {
                    let ended = document(at);
                    self.at = at + length;
                    self.line = line + 1;
                    return Some(Ok(ended));
                }
            }
            at += length;
            line += 1;
        }
    }
}
