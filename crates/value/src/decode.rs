//! What decoding JSON and decoding YAML have in common: limits, errors, strict findings.

use crate::Value;
use std::fmt;

/// How deep a document may nest.
///
/// Values are dropped, cloned, compared, written and walked recursively, so the depth of a document decides
/// how much stack its handling needs. The default is safe on a thread of 2 MB, also in unoptimised builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest number of lists and objects inside of each other.
    pub depth: usize,
}

impl Limits {
    /// What any thread can bear. Real objects nest a dozen levels, real definitions up to fifty.
    pub const SAFE: Limits = Limits { depth: 200 };
    /// What a Kubernetes API server accepts. Threads that handle such documents need a stack of
    /// [`Limits::SERVER_STACK`] bytes.
    pub const SERVER: Limits = Limits { depth: 10_000 };
    /// The stack that a thread needs for documents of [`Limits::SERVER`] depth. It is address space, not
    /// memory: a system gives pages to a stack only as it grows.
    pub const SERVER_STACK: usize = 256 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Limits::SAFE
    }
}

/// Why a text is no document, in the words of a server's decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    message: String,
    offset: Option<usize>,
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(message: impl Into<String>, offset: Option<usize>) -> Self {
        DecodeError {
            message: message.into(),
            offset,
        }
    }

    /// The text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where decoding failed, in bytes from the start, if known.
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DecodeError {}

/// A document, and what strict decoding finds wrong with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document. Of fields that stand twice the last one counts.
    pub value: Value,
    /// Fields that stand twice, in document order: for JSON `duplicate field "spec.a[0].b"`, at most 100; for
    /// YAML `line 6: key "size" already set in map`.
    pub duplicates: Vec<String>,
}
