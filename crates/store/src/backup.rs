//! Backups: a store as JSON Lines.
//!
//! The first line is a header and every further line an entry. The last line holds the number of entries and
//! a checksum, so a truncated file is not taken for a backup.

use std::io::{BufRead, Read, Write};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::state::Snapshot;
use crate::{
    Entry, ListRequest, MAX_KEY_BYTES, MAX_VALUE_BYTES, MaybeCompressed, ReadAt, ReaderCache, Revision,
    Store, StoreError,
};

/// The format of the lines.
const FORMAT: u64 = 1;
/// The highest revision that is restored: etcd and clients use signed 64-bit revisions.
const MAX_REVISION: Revision = i64::MAX as u64 / 2;

/// An error of writing or reading a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file could not be read or written.
    #[error("cannot read or write the backup: {0}")]
    Io(#[from] std::io::Error),
    /// The file is not a complete backup.
    #[error("line {line} of the backup is not as it was written: {detail}")]
    Malformed {
        /// The line number, from 1.
        line: usize,
        /// The reason.
        detail: String,
    },
}

/// A summary of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupSummary {
    /// The revision of the state.
    pub revision: Revision,
    /// The number of entries.
    pub entries: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupHeader {
    format: u64,
    revision: Revision,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupLine {
    key: String,
    create_revision: Revision,
    mod_revision: Revision,
    version: u64,
    /// The value, if it is UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The value in base64, if it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupTrailer {
    entries: u64,
    crc32: u32,
}

/// Writes everything under a prefix.
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
        // Without the line break, which the reader removes.
        sum.update(line.as_bytes());
        writeln!(out, "{line}")
    };
    write(json(&BackupHeader {
        format: FORMAT,
        revision: page.revision,
    })?)?;
    for entry in &page.entries {
        let value = entry.value.decompress().ok_or_else(|| {
            std::io::Error::other(format!("the value of key `{}` cannot be unpacked", entry.key))
        })?;
        let text = std::str::from_utf8(&value).ok();
        let line = BackupLine {
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
        json(&BackupTrailer {
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

/// The maximum length of a line: every byte of the largest key and value may take six characters.
const MAX_LINE_BYTES: usize = 6 * (MAX_VALUE_BYTES + MAX_KEY_BYTES) + 1024;

/// Reads and checks a backup entry by entry. Only the last line proves that it is complete: on an error,
/// discard all entries read before.
pub(crate) struct BackupReader<R> {
    input: R,
    /// The current line.
    line: Vec<u8>,
    number: usize,
    sum: crc32fast::Hasher,
    revision: Revision,
    entries: u64,
    last_key: Option<Arc<str>>,
    ended: bool,
}

impl<R: BufRead> BackupReader<R> {
    /// Reads the header.
    pub(crate) fn begin(input: R) -> Result<Self, BackupError> {
        let mut reader = Self {
            input,
            line: Vec::new(),
            number: 0,
            sum: crc32fast::Hasher::new(),
            revision: 0,
            entries: 0,
            last_key: None,
            ended: false,
        };
        reader.read_line()?;
        let head: BackupHeader = reader.parse()?;
        if head.format != FORMAT {
            let detail = format!(
                "it has format {}, this program reads format {FORMAT}",
                head.format
            );
            return Err(reader.malformed(detail));
        }
        // Revisions continue after this one.
        if head.revision < Snapshot::empty().revision || head.revision > MAX_REVISION {
            return Err(reader.malformed(format!("revision {} is out of range", head.revision)));
        }
        reader.revision = head.revision;
        reader.sum.update(&reader.line);
        Ok(reader)
    }

    /// The revision of the state.
    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, BackupError> {
        if self.ended {
            return Ok(None);
        }
        self.read_line()?;
        // An entry does not parse as a trailer, because unknown fields are rejected.
        if let Ok(tail) = serde_json::from_slice::<BackupTrailer>(&self.line) {
            if (tail.entries, tail.crc32) != (self.entries, self.sum.clone().finalize()) {
                return Err(self.malformed("what came before it has changed".to_owned()));
            }
            if !self.input.fill_buf()?.is_empty() {
                return Err(self.malformed("it says that the backup ends, but more follows".to_owned()));
            }
            self.ended = true;
            return Ok(None);
        }
        let line: BackupLine = self.parse()?;
        let entry = entry(line, self.revision).map_err(|detail| self.malformed(detail))?;
        // Exports are in key order, so this also rejects repeated keys.
        if self.last_key.as_ref().is_some_and(|last| *last >= entry.key) {
            return Err(self.malformed("its key does not come after the one before".to_owned()));
        }
        self.last_key = Some(Arc::clone(&entry.key));
        self.entries += 1;
        self.sum.update(&self.line);
        Ok(Some(entry))
    }

    /// Reads one line without its terminator.
    fn read_line(&mut self) -> Result<(), BackupError> {
        self.number += 1;
        self.line.clear();
        // One byte more than allowed reveals a longer line without reading all of it.
        let limit = MAX_LINE_BYTES as u64 + 1;
        (&mut self.input).take(limit).read_until(b'\n', &mut self.line)?;
        if self.line.is_empty() {
            return Err(self.malformed("the backup ends too early".to_owned()));
        }
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.len() > MAX_LINE_BYTES {
            return Err(self.malformed(format!("it is longer than {MAX_LINE_BYTES} bytes")));
        }
        Ok(())
    }

    fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, BackupError> {
        serde_json::from_slice(&self.line).map_err(|error| {
            // The line number in a JSON error is always 1.
            let text = error.to_string();
            let detail = text.strip_suffix(&format!(" at line {} column {}", error.line(), error.column()));
            let detail = detail.unwrap_or(&text);
            self.malformed(format!("column {}: {detail}", error.column()))
        })
    }

    fn malformed(&self, detail: String) -> BackupError {
        BackupError::Malformed {
            line: self.number,
            detail,
        }
    }
}

impl<R: BufRead> Iterator for &mut BackupReader<R> {
    type Item = Result<Arc<Entry>, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_entry().transpose().map(|entry| entry.map(Arc::new))
    }
}

/// An entry of a state at a revision.
fn entry(line: BackupLine, revision: Revision) -> Result<Entry, String> {
    let value = match (line.value, line.value_base64) {
        (Some(text), None) => Bytes::from(text),
        (None, Some(text)) => STANDARD.decode(text).map_err(|error| error.to_string())?.into(),
        _ => return Err("it needs one of `value` and `value_base64`".to_owned()),
    };
    crate::key::check_key(&line.key).map_err(|error| error.to_string())?;
    if value.len() > MAX_VALUE_BYTES {
        return Err(format!(
            "its value has {} bytes, more than {MAX_VALUE_BYTES}",
            value.len()
        ));
    }
    let (created, modified) = (line.create_revision, line.mod_revision);
    if created == 0 || created > modified || modified > revision || line.version == 0 {
        return Err(format!(
            "create revision {created}, mod revision {modified} and version {} are not those of an entry at \
             revision {revision}",
            line.version
        ));
    }
    Ok(Entry {
        key: line.key.into(),
        value: MaybeCompressed::new(value),
        create_revision: line.create_revision,
        mod_revision: line.mod_revision,
        version: line.version,
        reader_cache: ReaderCache::default(),
    })
}
