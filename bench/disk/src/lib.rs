//! Measures the disk alone: writes to a preallocated file and flushes, on one thread, without any database
//! work.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The size of the file.
const SIZE: u64 = 64 << 20;
/// The alignment of direct writes.
const BLOCK: usize = 4096;
/// The duration of each trial; every access mode is tried twice.
const TRIAL: Duration = Duration::from_millis(300);
/// The size of a write in a trial.
const TRIAL_BYTES: usize = 16 << 10;

/// A file, accessed in the mode that is faster here.
pub struct Target {
    file: File,
    /// The name of the access mode.
    pub way: &'static str,
    offset: u64,
    buffer: Vec<u8>,
}

impl Target {
    /// Creates a file in a directory.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let path = directory.join("limit");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path)?;
        // Written in advance: extending a file would also flush its metadata.
        for at in (0..SIZE).step_by(1 << 20) {
            file.write_all_at(&vec![0; 1 << 20], at)?;
        }
        file.sync_all()?;
        let target = |file, way| Self {
            file,
            way,
            offset: 0,
            buffer: Vec::new(),
        };
        let mut buffered = target(file, "through the cache");
        // Some file systems do not support direct I/O.
        let Ok(file) = options.custom_flags(libc::O_DIRECT).open(&path) else {
            return Ok(buffered);
        };
        let mut direct = target(file, "past the cache");
        // In turn, twice each, so that a slow moment of the disk does not decide.
        let (mut fast, mut slow) = (direct.flushes()?, buffered.flushes()?);
        fast += direct.flushes()?;
        slow += buffered.flushes()?;
        Ok(if fast >= slow { direct } else { buffered })
    }

    /// Counts the flushes in a trial.
    fn flushes(&mut self) -> io::Result<usize> {
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < TRIAL {
            self.append(&vec![b'x'; TRIAL_BYTES])?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes whole blocks and flushes.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len().next_multiple_of(BLOCK);
        // A block more than needed, because the start is aligned within the buffer.
        if self.buffer.len() < length + BLOCK {
            self.buffer = vec![0; length + BLOCK];
        }
        let start = self.buffer.as_ptr().align_offset(BLOCK);
        self.buffer[start..start + bytes.len()].copy_from_slice(bytes);
        // The file is reused from its beginning, so it never grows.
        if self.offset + length as u64 > SIZE {
            self.offset = 0;
        }
        self.file
            .write_all_at(&self.buffer[start..start + length], self.offset)?;
        // `fdatasync` suffices: the size of the file does not change.
        self.file.sync_data()?;
        self.offset += length as u64;
        Ok(())
    }

    /// Measures consecutive writes.
    pub fn times(&mut self, bytes: usize, writes: usize) -> io::Result<Times> {
        let bytes = vec![b'x'; bytes];
        let mut times = Times::default();
        for _ in 0..writes {
            let begin = Instant::now();
            self.append(&bytes)?;
            times.0.push(begin.elapsed());
        }
        Ok(times)
    }
}

/// The durations of writes.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds more durations.
    pub fn extend(&mut self, more: Times) {
        self.0.extend(more.0);
    }

    /// The latencies of requests that arrive at a rate and share these flushes: each waits for the current
    /// flush and then for the next. This is a lower bound for any server with group commit: one slow flush
    /// delays all requests that arrive meanwhile.
    pub fn shared(&self, per_second: f64) -> Times {
        let between = Duration::from_secs_f64(1.0 / per_second);
        let mut taken = Vec::new();
        let (mut now, mut due) = (Duration::ZERO, Duration::ZERO);
        for flush in &self.0 {
            // Requests that have arrived by now share this flush; if there are none, it starts with the next
            // one.
            now = now.max(due);
            let end = now + *flush;
            while due <= now {
                taken.push(end - due);
                due += between;
            }
            now = end;
        }
        Times(taken)
    }

    /// A quantile of the durations.
    pub fn quantile(&self, q: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * q) as usize;
        sorted
            .get(at.min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }
}
