//! Backups: the whole of a store as lines of JSON, and back.
//!
//! The first line says what follows, every further one is an entry, the last one holds the number of entries and
//! a checksum, so that a file that was cut short is not taken for a backup.

use std::io::{BufRead, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::state::Snapshot;
use crate::{Entry, ListRequest, Note, Packed, ReadAt, Revision, Store, StoreError};

/// The format of the lines.
const FORMAT: u64 = 1;

/// Why a backup could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be read or written.
    #[error("cannot read or write the backup: {0}")]
    Io(#[from] std::io::Error),
    /// The file is not a whole backup.
    #[error("line {line} of the backup is not as it was written: {detail}")]
    Malformed {
        /// The line, counted from one.
        line: usize,
        /// What is wrong with it.
        detail: String,
    },
}

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupSummary {
    /// The revision of the state.
    pub revision: Revision,
    /// How many entries there are.
    pub entries: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    format: u64,
    revision: Revision,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    key: String,
    create_revision: Revision,
    mod_revision: Revision,
    version: u64,
    /// The value, where it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The value in base64, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    entries: u64,
    crc32: u32,
}

/// Writes everything below a prefix.
pub async fn export(
    store: &dyn Store,
    prefix: &str,
    mut out: impl Write + Send,
) -> Result<BackupSummary, BackupError> {
    let request = ListRequest {
        prefix: prefix.to_owned(),
        at: ReadAt::Latest,
        ..ListRequest::default()
    };
    let page = store.list(request).await?;
    let mut sum = crc32fast::Hasher::new();
    let mut write = |line: String| -> std::io::Result<()> {
        sum.update(line.as_bytes());
        writeln!(out, "{line}")
    };
    write(json(&Head {
        format: FORMAT,
        revision: page.revision,
    })?)?;
    for entry in &page.entries {
        let value = entry.value.bytes();
        let text = std::str::from_utf8(&value).ok();
        let line = Line {
            key: entry.key.to_string(),
            create_revision: entry.create_revision,
            mod_revision: entry.mod_revision,
            version: entry.version,
            value: text.map(str::to_owned),
            value_base64: text.is_none().then(|| STANDARD.encode(&value)),
        };
        write(json(&line)?)?;
    }
    let summary = BackupSummary {
        revision: page.revision,
        entries: page.entries.len() as u64,
    };
    writeln!(
        out,
        "{}",
        json(&Tail {
            entries: summary.entries,
            crc32: sum.finalize()
        })?
    )?;
    out.flush()?;
    Ok(summary)
}

fn json(line: &impl Serialize) -> std::io::Result<String> {
    serde_json::to_string(line).map_err(std::io::Error::other)
}

/// Creates everything that a backup holds in a store. Keys that exist already end it, before anything else is
/// written. The entries get new revisions; to keep theirs, make a store with
/// [`EmbeddedStore::restore`](crate::EmbeddedStore::restore).
pub async fn import(store: &dyn Store, input: impl BufRead + Send) -> Result<BackupSummary, BackupError> {
    let (snapshot, summary) = read(input)?;
    for entry in snapshot.entries.values() {
        if let Some(current) = store.get(&entry.key, ReadAt::Latest).await? {
            return Err(StoreError::AlreadyExists { current }.into());
        }
    }
    for entry in snapshot.entries.values() {
        store
            .write(
                &entry.key,
                crate::Write::Create {
                    value: entry.value.clone(),
                },
            )
            .await?;
    }
    Ok(summary)
}

/// Reads and checks a whole backup.
pub(crate) fn read(input: impl BufRead) -> Result<(Snapshot, BackupSummary), BackupError> {
    let mut sum = crc32fast::Hasher::new();
    let mut snapshot: Option<Snapshot> = None;
    let mut number = 0;
    for line in input.lines() {
        let line = line?;
        number += 1;
        let malformed = |detail: String| BackupError::Malformed { line: number, detail };
        let Some(state) = &mut snapshot else {
            let head: Head = serde_json::from_str(&line).map_err(|error| malformed(error.to_string()))?;
            if head.format != FORMAT {
                let detail = format!(
                    "it has format {}, this program reads format {FORMAT}",
                    head.format
                );
                return Err(malformed(detail));
            }
            snapshot = Some(Snapshot {
                revision: head.revision,
                ..Snapshot::empty()
            });
            sum.update(line.as_bytes());
            continue;
        };
        if let Ok(tail) = serde_json::from_str::<Tail>(&line) {
            let (entries, crc32) = (state.entries.len() as u64, sum.finalize());
            if (tail.entries, tail.crc32) != (entries, crc32) {
                return Err(malformed("what came before it has changed".to_owned()));
            }
            return Ok((
                state.clone(),
                BackupSummary {
                    revision: state.revision,
                    entries,
                },
            ));
        }
        let entry = serde_json::from_str::<Line>(&line)
            .map_err(|error| error.to_string())
            .and_then(entry);
        let entry = entry.map_err(malformed)?;
        state.entries.insert(Arc::clone(&entry.key), Arc::new(entry));
        sum.update(line.as_bytes());
    }
    Err(BackupError::Malformed {
        line: number + 1,
        detail: "the backup ends too early".to_owned(),
    })
}

fn entry(line: Line) -> Result<Entry, String> {
    let value = match (line.value, line.value_base64) {
        (Some(text), None) => Bytes::from(text),
        (None, Some(text)) => STANDARD.decode(text).map_err(|error| error.to_string())?.into(),
        _ => return Err("it needs one of `value` and `value_base64`".to_owned()),
    };
    crate::key::check(&line.key).map_err(|error| error.to_string())?;
    Ok(Entry {
        key: line.key.into(),
        value: Packed::new(value),
        create_revision: line.create_revision,
        mod_revision: line.mod_revision,
        version: line.version,
        note: Note::default(),
    })
}
