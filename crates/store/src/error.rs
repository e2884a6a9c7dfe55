//! Errors of a store.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Entry, Revision};

/// An error of a store.
///
/// The first group are negative results: the store works, and the error contains the state that decided, so
/// that the caller need not read again. The second group are failures: after [`StoreError::Io`] or
/// [`StoreError::Unavailable`] the outcome of a *write* is unknown until the key is read again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A create found an existing key.
    #[error("key `{}` already exists (revision {})", current.key, current.mod_revision)]
    AlreadyExists {
        /// The stored entry.
        current: Arc<Entry>,
    },
    /// An update or a delete found no such key.
    #[error("key `{key}` not found")]
    NotFound {
        /// The requested key.
        key: String,
    },
    /// An update or a delete expected another revision of the key.
    #[error("key `{}` is at revision {}, not at the expected {expected}", current.key, current.mod_revision)]
    Conflict {
        /// The stored entry.
        current: Arc<Entry>,
        /// The `mod_revision` the caller expected.
        expected: Revision,
    },
    /// The requested revision is older than the retained history.
    #[error("revision {requested} has been compacted; the oldest one kept is {oldest}")]
    Compacted {
        /// The requested revision.
        requested: Revision,
        /// The oldest revision that can still be read at, or watched after.
        oldest: Revision,
    },
    /// The requested revision is in the future.
    #[error("revision {requested} is in the future; the current one is {current}")]
    FutureRevision {
        /// The requested revision.
        requested: Revision,
        /// The newest revision that this store has seen.
        current: Revision,
    },
    /// The value exceeds the size limit.
    #[error("value of key `{key}` is too large: {size} bytes, where at most {limit} are allowed")]
    TooLarge {
        /// The key.
        key: String,
        /// The size of the value in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
        /// The size of the request that kube-apiserver would send to etcd, in bytes.
        request: usize,
    },
    /// The key is invalid.
    #[error("invalid key `{}`: {reason}", key.escape_debug())]
    InvalidKey {
        /// The key, or the invalid segment of it.
        key: String,
        /// The reason.
        reason: &'static str,
    },

    /// Another process has the store open.
    #[error("the store in {} is in use by another process{}; stop it, or choose another data directory",
        path.display(), holder.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Locked {
        /// The data directory.
        path: PathBuf,
        /// The process that holds the lock, if known.
        holder: Option<u32>,
    },
    /// The stored data is damaged.
    #[error("the store file {} is damaged{}: {detail}; {remedy}; nothing was changed",
        path.display(), offset.map(|offset| format!(" at byte {offset}")).unwrap_or_default())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the damage in the file, if known.
        offset: Option<u64>,
        /// A description of the damage.
        detail: String,
        /// Advice for the operator.
        remedy: Remedy,
    },
    /// The stored data has the format of another release.
    #[error("the store file {} has format {found}, this program reads format {supported}; \
        export the store with the release that wrote it, and import that", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format number in the file.
        found: u64,
        /// The format number that this program reads and writes.
        supported: u64,
    },
    /// An operation on a file failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed operation, as a verb: `open`, `write`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
    /// The store cannot be reached, or has been shut down.
    #[error("the store is unavailable: {detail}")]
    Unavailable {
        /// The reason.
        detail: String,
    },
}

/// Advice for the operator of a store with damaged files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// The data itself is lost.
    RestoreExport,
    /// The file does not match the files beside it: it is from another time or another store.
    MatchingFiles,
    /// A file that does not belong to the store is in the way.
    MoveAway,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::RestoreExport => {
                "put back a copy of the whole directory, or import an export into a new one"
            }
            Self::MatchingFiles => {
                "put back the file that belongs to the others, or a copy of the whole directory, or import an \
                 export into a new one"
            }
            Self::MoveAway => "move it out of the directory",
        })
    }
}
