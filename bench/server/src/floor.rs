//! What the disk alone takes for one durable write: no server and no network, one thread.

use crate::Failure;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a patch of the bench's object adds to the journal, in whole blocks of the disk.
const WRITE: usize = 8 << 10;
const BLOCK: usize = 4 << 10;
const WRITES: usize = 400;

/// The median time to write past the cache and flush, in a file whose blocks are there already.
pub fn flush(directory: &Path) -> Result<Duration, Failure> {
    let path = directory.join("floor");
    std::fs::write(&path, vec![0; WRITE * WRITES])?;
    let mut options = OpenOptions::new();
    options.write(true);
    let ordinary = options.open(&path)?;
    ordinary.sync_all()?;
    // Some file systems have no such access.
    let file = options
        .custom_flags(libc::O_DIRECT)
        .open(&path)
        .unwrap_or(ordinary);
    let bytes = vec![b'x'; WRITE + BLOCK];
    let start = bytes.as_ptr().align_offset(BLOCK);
    let block = &bytes[start..start + WRITE];
    let mut times = Vec::new();
    for n in 0..WRITES {
        let begin = Instant::now();
        file.write_all_at(block, (n * WRITE) as u64)?;
        file.sync_data()?;
        times.push(begin.elapsed());
    }
    std::fs::remove_file(path)?;
    times.sort_unstable();
    Ok(times[WRITES / 2])
}
