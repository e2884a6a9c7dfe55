//! Limits, errors and strict findings, shared by the JSON and YAML decoders.

use crate::{Finding, Value};
use std::fmt;

/// The maximum nesting depth of a document.
///
/// Values are dropped, cloned, compared, written and walked recursively, so the depth of a document decides
/// how much stack its handling needs. The default is safe on a thread of 2 MB, even in unoptimised builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of nested lists and objects.
    pub depth: usize,
}

impl Limits {
    /// A depth that is safe on any thread. Real objects nest a dozen levels, real CRDs up to fifty.
    pub const SAFE: Limits = Limits { depth: 200 };
    /// The depth that kube-apiserver accepts. Threads that handle such documents need a stack of
    /// [`Limits::SERVER_STACK`] bytes.
    pub const SERVER: Limits = Limits { depth: 10_000 };
    /// The stack that a thread needs for documents of [`Limits::SERVER`] depth. It reserves address space,
    /// not memory: the operating system backs stack pages only when they are touched.
    pub const SERVER_STACK: usize = 256 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Limits::SAFE
    }
}

/// A decoding error with kube-apiserver's message.
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

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The byte offset of the error, if known.
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

/// A decoded document and the findings of strict decoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The document. The last occurrence of a repeated field wins.
    pub value: Value,
    /// The duplicate fields of a JSON text, at most 100, or the duplicate keys of a YAML text, in document order.
    pub duplicates: Vec<Finding>,
}
