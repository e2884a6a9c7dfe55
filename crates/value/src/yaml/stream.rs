//! Several documents in one text.

use crate::DecodeError;

/// One document of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamDocument<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// Where it begins in the stream, in bytes.
    pub offset: usize,
    /// The number of lines before it.
    pub line: usize,
}

/// Splits a stream at lines that begin with `---`, as Kubernetes' tools do. Documents without content are among
/// the results: they decode as null.
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
            let length = rest
                .iter()
                .position(|b| *b == b'\n')
                .map_or(rest.len(), |n| n + 1);
            if let Some(after) = rest.get(..length).and_then(|l| l.strip_prefix(b"---")) {
                let after = after.trim_ascii();
                if !after.is_empty() && !after.starts_with(b"#") {
                    self.failed = true;
                    let shown = String::from_utf8_lossy(after);
                    let message = format!("invalid Yaml document separator: {shown}");
                    return Some(Err(DecodeError::new(message, Some(at))));
                }
                // A separator that nothing stands before belongs to the document after it.
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
