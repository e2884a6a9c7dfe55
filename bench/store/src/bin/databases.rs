//! Compares embedded databases (redb, fjall and SQLite) on the workload of the embedded engine.
//!
//! A commit is a batch of creates. Each stores a value of 1 KiB under a key and a row in the history table;
//! the oldest rows of the history are removed as new ones come. A commit ends when the data is durable. For
//! comparison, the same bytes are appended to one preallocated file and flushed.
//!
//! `databases [directory] [objects]`: the directory to write to, and the number of objects for the opening
//! test.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redb::{ReadableDatabase, ReadableTable};

/// The number of revisions in the history.
const HISTORY: u64 = 10_000;
/// The duration of the run for each batch size.
const RUN: Duration = Duration::from_secs(3);

type Failure = Box<dyn std::error::Error>;

/// The operations that the engine needs from a database.
trait Database: Sized {
    const NAME: &'static str;
    fn open(path: &Path) -> Result<Self, Failure>;
    /// Stores a batch durably; the first entry has this revision.
    fn commit(&mut self, revision: u64, batch: &[(String, Vec<u8>)]) -> Result<(), Failure>;
    /// Reads everything; returns the number of entries and of value bytes.
    fn scan(&self) -> Result<(usize, usize), Failure>;
}

const STATE: redb::TableDefinition<&str, &[u8]> = redb::TableDefinition::new("state");
const LOG: redb::TableDefinition<u64, &[u8]> = redb::TableDefinition::new("log");

struct Redb(redb::Database);

impl Database for Redb {
    const NAME: &'static str = "redb";

    fn open(path: &Path) -> Result<Self, Failure> {
        Ok(Self(redb::Database::create(path.join("redb"))?))
    }

    fn commit(&mut self, revision: u64, batch: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        let transaction = self.0.begin_write()?;
        {
            let mut state = transaction.open_table(STATE)?;
            let mut log = transaction.open_table(LOG)?;
            for (at, (key, value)) in (revision..).zip(batch) {
                state.insert(key.as_str(), value.as_slice())?;
                log.insert(at, key.as_bytes())?;
                if at > HISTORY {
                    log.remove(at - HISTORY)?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<(usize, usize), Failure> {
        let transaction = self.0.begin_read()?;
        let (mut entries, mut bytes) = (0, 0);
        for row in transaction.open_table(STATE)?.iter()? {
            entries += 1;
            bytes += row?.1.value().len();
        }
        Ok((entries, bytes))
    }
}

struct Fjall {
    database: fjall::Database,
    state: fjall::Keyspace,
    log: fjall::Keyspace,
}

impl Database for Fjall {
    const NAME: &'static str = "fjall";

    fn open(path: &Path) -> Result<Self, Failure> {
        let database = fjall::Database::builder(path.join("fjall")).open()?;
        let state = database.keyspace("state", fjall::KeyspaceCreateOptions::default)?;
        let log = database.keyspace("log", fjall::KeyspaceCreateOptions::default)?;
        Ok(Self { database, state, log })
    }

    fn commit(&mut self, revision: u64, batch: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        let mut writes = self
            .database
            .batch()
            .durability(Some(fjall::PersistMode::SyncData));
        for (at, (key, value)) in (revision..).zip(batch) {
            writes.insert(&self.state, key.as_str(), value.as_slice());
            // Big-endian keys sort by number.
            writes.insert(&self.log, at.to_be_bytes(), key.as_str());
            if at > HISTORY {
                writes.remove(&self.log, (at - HISTORY).to_be_bytes());
            }
        }
        Ok(writes.commit()?)
    }

    fn scan(&self) -> Result<(usize, usize), Failure> {
        let (mut entries, mut bytes) = (0, 0);
        for row in self.state.iter() {
            entries += 1;
            bytes += row.value()?.len();
        }
        Ok((entries, bytes))
    }
}

struct Sqlite(rusqlite::Connection);

impl Database for Sqlite {
    const NAME: &'static str = "sqlite";

    fn open(path: &Path) -> Result<Self, Failure> {
        let connection = rusqlite::Connection::open(path.join("sqlite"))?;
        connection.execute_batch(
            // The same durability as the others: `full` flushes the log on every commit.
            "pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -65536;
             create table if not exists state (key text primary key, value blob) without rowid;
             create table if not exists log (revision integer primary key, key text);",
        )?;
        Ok(Self(connection))
    }

    fn commit(&mut self, revision: u64, batch: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        let transaction = self.0.transaction()?;
        {
            let mut state = transaction.prepare_cached("insert into state values (?1, ?2)")?;
            let mut log = transaction.prepare_cached("insert into log values (?1, ?2)")?;
            for (at, (key, value)) in (revision..).zip(batch) {
                state.execute((key, value))?;
                log.execute((at.cast_signed(), key))?;
            }
            let last = revision + batch.len() as u64;
            // SQLite removes a range in one statement.
            let mut trim = transaction.prepare_cached("delete from log where revision < ?1")?;
            trim.execute((last.saturating_sub(HISTORY).cast_signed(),))?;
        }
        Ok(transaction.commit()?)
    }

    fn scan(&self) -> Result<(usize, usize), Failure> {
        let mut statement = self.0.prepare("select key, value from state order by key")?;
        let mut rows = statement.query(())?;
        let (mut entries, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            entries += 1;
            bytes += row.get_ref(1)?.as_blob()?.len();
        }
        Ok((entries, bytes))
    }
}

/// The disk alone: no index, no structure, one flush per batch.
struct Flush {
    file: File,
    offset: u64,
}

const PREALLOCATED: u64 = 256 << 20;

impl Database for Flush {
    const NAME: &'static str = "flush";

    fn open(path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .read(true)
            .open(path.join("flush"))?;
        // Written in advance: extending a file would also flush its metadata.
        let zeros = vec![0; 1 << 20];
        for at in (0..PREALLOCATED).step_by(zeros.len()) {
            file.write_all_at(&zeros, at)?;
        }
        file.sync_all()?;
        Ok(Self { file, offset: 0 })
    }

    fn commit(&mut self, revision: u64, batch: &[(String, Vec<u8>)]) -> Result<(), Failure> {
        let mut bytes = revision.to_be_bytes().to_vec();
        for (key, value) in batch {
            bytes.extend_from_slice(key.as_bytes());
            bytes.extend_from_slice(value);
        }
        if self.offset + bytes.len() as u64 > PREALLOCATED {
            self.offset = 0;
        }
        self.file.write_all_at(&bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        Ok(self.file.sync_data()?)
    }

    fn scan(&self) -> Result<(usize, usize), Failure> {
        Ok((0, 0))
    }
}

/// Keys of many namespaces in random order, as servers see them.
fn batch(revision: u64, size: u64, bytes: usize) -> Vec<(String, Vec<u8>)> {
    let object = |n: u64| {
        // Multiplication by an odd constant spreads consecutive numbers over the whole range.
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = format!(
            "/registry/example.com/widgets/team-{}/object-{mixed:016x}",
            mixed % 100
        );
        let value = mixed.to_le_bytes().iter().copied().cycle().take(bytes).collect();
        (key, value)
    };
    (revision..revision + size).map(object).collect()
}

fn disk_bytes(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return path.metadata().map_or(0, |data| data.len());
    };
    entries.flatten().map(|entry| disk_bytes(&entry.path())).sum()
}

fn run<D: Database>(root: &Path, objects: u64) -> Result<(), Failure> {
    let directory = tempfile::tempdir_in(root)?;
    let mut line = format!("{:8}", D::NAME);
    let mut database = D::open(directory.path())?;
    let mut revision = 2;
    for size in [1, 16, 256] {
        let (start, mut writes, mut latencies) = (Instant::now(), 0, Vec::new());
        while start.elapsed() < RUN {
            let batch = batch(revision, size, 1024);
            let begin = Instant::now();
            database.commit(revision, &batch)?;
            latencies.push(begin.elapsed());
            revision += size;
            writes += size;
        }
        latencies.sort_unstable();
        let p99 = latencies[latencies.len() * 99 / 100];
        // Only the time in commits: making the batches is not the database's work.
        let busy: Duration = latencies.iter().sum();
        line += &format!(
            " {:>8.0}/s p99 {:>6} us",
            writes as f64 / busy.as_secs_f64(),
            p99.as_micros()
        );
    }
    drop(database);
    let directory = tempfile::tempdir_in(root)?;
    let mut database = D::open(directory.path())?;
    let start = Instant::now();
    for revision in (1..=objects).step_by(10_000) {
        database.commit(revision, &batch(revision, 10_000, 300))?;
    }
    let fill = start.elapsed();
    drop(database);
    let start = Instant::now();
    let database = D::open(directory.path())?;
    let open = start.elapsed();
    let (entries, bytes) = database.scan()?;
    let scan = start.elapsed() - open;
    println!(
        "{line} | {objects} objects: fill {:.1} s, open {:.3} s, scan {:.3} s, {entries} entries, {} MB for {} MB",
        fill.as_secs_f64(),
        open.as_secs_f64(),
        scan.as_secs_f64(),
        disk_bytes(directory.path()) >> 20,
        bytes >> 20,
    );
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let root = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let objects = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    println!("creates of 1 KiB per second in batches of 1, 16 and 256");
    run::<Flush>(&root, 10_000)?;
    run::<Redb>(&root, objects)?;
    run::<Fjall>(&root, objects)?;
    run::<Sqlite>(&root, objects)?;
    Ok(())
}
