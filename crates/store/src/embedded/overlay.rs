//! A copy-on-write view of a file: writes stay in memory.
//!
//! redb repairs a database that was not closed when it opens it. A reader must not change the file: it may be
//! on a read-only file system, and a damaged file is evidence.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::file::{DataFile, FaultInjector, io_error};
use crate::StoreError;

/// The unit in which written bytes are kept.
const BLOCK: u64 = 4096;

#[derive(Debug)]
pub(crate) struct Overlay {
    file: DataFile,
    written: Mutex<OverlayState>,
}

#[derive(Debug)]
struct OverlayState {
    /// The length of the view.
    length: u64,
    /// The length of the part of the file that has not been truncated.
    visible: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub(crate) fn open(path: &Path, faults: Option<Arc<FaultInjector>>) -> Result<Self, StoreError> {
        let file = DataFile::open_to_read(path, faults)?;
        let length = file.len().map_err(|source| io_error("measure", path, source))?;
        let written = OverlayState {
            length,
            visible: length,
            blocks: BTreeMap::new(),
        };
        Ok(Self {
            file,
            written: Mutex::new(written),
        })
    }

    /// Reads from the file itself, and zeros beyond its visible part.
    fn read_file(&self, visible: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = usize::try_from(visible.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (from_file, beyond) = out.split_at_mut(there.min(out.len()));
        beyond.fill(0);
        if from_file.is_empty() {
            return Ok(());
        }
        self.file.read(from_file, offset)
    }
}

/// Splits a range at block boundaries: the block, the offset in it, and the length of each part.
fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + length as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        let (block, begin) = (at / BLOCK, at % BLOCK);
        let part = (BLOCK - begin).min(end - at);
        at += part;
        // A part is at most as long as a block.
        (part > 0).then_some((block, usize::try_from(begin).ok()?, usize::try_from(part).ok()?))
    })
}

impl redb::StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock();
        if offset
            .checked_add(out.len() as u64)
            .is_none_or(|end| end > written.length)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let visible = written.visible;
        // Without written blocks there is nothing to overlay, so parallel readers need not hold the lock.
        if written.blocks.is_empty() {
            drop(written);
            return self.read_file(visible, offset, out);
        }
        self.read_file(visible, offset, out)?;
        let mut rest = out;
        for (block, begin, length) in parts(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(length);
            if let Some(held) = written
                .blocks
                .get(&block)
                .and_then(|b| b.get(begin..begin + length))
            {
                part.copy_from_slice(held);
            }
            rest = after;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut written = self.written.lock();
        if length < written.length {
            // Truncated bytes must read as zeros, even after the view grows again.
            written.visible = written.visible.min(length);
            written.blocks.split_off(&length.div_ceil(BLOCK));
            if let Some(last) = written.blocks.get_mut(&(length / BLOCK)) {
                let kept = usize::try_from(length % BLOCK).unwrap_or(usize::MAX);
                last.iter_mut().skip(kept).for_each(|byte| *byte = 0);
            }
        }
        written.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        // Nothing to flush: what was written is discarded with the view.
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock();
        let visible = written.visible;
        let mut rest = data;
        for (block, begin, length) in parts(offset, data.len()) {
            let (part, after) = rest.split_at(length);
            let held = match written.blocks.entry(block) {
                Entry::Occupied(held) => held.into_mut(),
                Entry::Vacant(free) => {
                    // Read first, because the write may cover only a part of the block.
                    let mut bytes = vec![0; usize::try_from(BLOCK).map_err(io::Error::other)?];
                    self.read_file(visible, block * BLOCK, &mut bytes)?;
                    free.insert(bytes.into())
                }
            };
            if let Some(place) = held.get_mut(begin..begin + length) {
                place.copy_from_slice(part);
            }
            rest = after;
        }
        written.length = written.length.max(offset + data.len() as u64);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redb::StorageBackend;

    use super::*;

    #[derive(Debug, Clone)]
    enum FileStep {
        Write(u16, u8, u16),
        Resize(u16),
        Read(u16, u16),
    }

    fn step() -> impl Strategy<Value = FileStep> {
        prop_oneof![
            (0..20_000_u16, any::<u8>(), 0..9_000_u16)
                .prop_map(|(at, byte, length)| FileStep::Write(at, byte, length)),
            (0..20_000_u16).prop_map(FileStep::Resize),
            (0..20_000_u16, 0..9_000_u16).prop_map(|(at, length)| FileStep::Read(at, length)),
        ]
    }

    proptest! {
        #[test]
        fn it_reads_as_a_file_would(length in 0..20_000_usize, steps in proptest::collection::vec(step(), 1..20)) {
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut model: Vec<u8> = (0..length).map(|n| (n % 251) as u8 + 1).collect();
            std::fs::write(file.path(), &model).unwrap();
            let original = model.clone();
            let overlay = Overlay::open(file.path(), None).unwrap();
            for step in steps {
                match step {
                    FileStep::Write(at, byte, length) => {
                        let (at, length) = (usize::from(at), usize::from(length));
                        overlay.write(at as u64, &vec![byte; length]).unwrap();
                        model.resize(model.len().max(at + length), 0);
                        model[at..at + length].fill(byte);
                    }
                    FileStep::Resize(length) => {
                        overlay.set_len(length.into()).unwrap();
                        model.resize(length.into(), 0);
                    }
                    FileStep::Read(at, length) => {
                        let (at, length) = (usize::from(at), usize::from(length));
                        let mut found = vec![7; length];
                        let outcome = overlay.read(at as u64, &mut found);
                        match model.get(at..at + length) {
                            Some(want) => prop_assert!(outcome.is_ok() && found == want),
                            None => prop_assert!(outcome.is_err()),
                        }
                    }
                }
                prop_assert_eq!(overlay.len().unwrap(), model.len() as u64);
            }
            prop_assert!(std::fs::read(file.path()).unwrap() == original);
        }
    }
}
