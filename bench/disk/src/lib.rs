//! What the disk allows: bytes written to a file whose blocks are there already, and a flush; by one thread, with nothing
//! looked up, nothing kept, and nobody to tell.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How large the file is.
const SIZE: u64 = 64 << 20;
/// What direct writes begin at, and are a multiple of.
const BLOCK: usize = 4096;
/// How long each way to write is tried, twice.
const TRIAL: Duration = Duration::from_millis(300);
/// What is written in a trial at once.
const TRIAL_BYTES: usize = 16 << 10;

/// A file to write to in the way that is the faster one here.
pub struct Target {
    file: File,
    /// The way, in words.
    pub way: &'static str,
    offset: u64,
    buffer: Vec<u8>,
}

impl Target {
    /// A file in a directory.
    pub fn new(directory: &Path) -> io::Result<Self> {
        let path = directory.join("limit");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path)?;
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
        // Some file systems have no such access.
        let Ok(file) = options.custom_flags(libc::O_DIRECT).open(&path) else {
            return Ok(buffered);
        };
        let mut direct = target(file, "past the cache");
        let (mut fast, mut slow) = (direct.flushes()?, buffered.flushes()?);
        fast += direct.flushes()?;
        slow += buffered.flushes()?;
        Ok(if fast >= slow { direct } else { buffered })
    }

    /// How many writes are flushed in a while.
    fn flushes(&mut self) -> io::Result<usize> {
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < TRIAL {
            self.append(&vec![b'x'; TRIAL_BYTES])?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes bytes in whole blocks, as the file system or we ourselves have to, and flushes.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len().next_multiple_of(BLOCK);
        if self.buffer.len() < length + BLOCK {
            self.buffer = vec![0; length + BLOCK];
        }
        let start = self.buffer.as_ptr().align_offset(BLOCK);
        self.buffer[start..start + bytes.len()].copy_from_slice(bytes);
        if self.offset + length as u64 > SIZE {
            self.offset = 0;
        }
        self.file
            .write_all_at(&self.buffer[start..start + length], self.offset)?;
        self.file.sync_data()?;
        self.offset += length as u64;
        Ok(())
    }

    /// How long some writes take, one after the other.
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

/// How long writes took.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Takes more of them in.
    pub fn extend(&mut self, more: Times) {
        self.0.extend(more.0);
    }

    /// How long requests would take that come at a rate and share these flushes: each waits for the flush that is under
    /// way, and then for the next. No server that flushes for several at once can be faster; one slow flush holds up
    /// all who come meanwhile.
    pub fn shared(&self, per_second: f64) -> Times {
        let between = Duration::from_secs_f64(1.0 / per_second);
        let mut taken = Vec::new();
        let (mut now, mut due) = (Duration::ZERO, Duration::ZERO);
        for flush in &self.0 {
            // Whoever has come by now is in this flush; if nobody has, it begins with the next.
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

    /// A quantile of them.
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
