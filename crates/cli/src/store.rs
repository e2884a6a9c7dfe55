//! `scantling store`: looking after the data directory of a server that does not run.

use crate::args::{Store, StoreCommand};
use crate::problem::{Problem, Verdict};
use crate::render;
use scantling_store::{EmbeddedConfig, EmbeddedStore, export};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Does what is asked.
pub(crate) fn run(flags: &Store) -> Result<Verdict, Problem> {
    let directory = flags.data_dir.join("store");
    match &flags.command {
        StoreCommand::Check => check(&directory)?,
        StoreCommand::Export { file } => write(&directory, file)?,
        StoreCommand::Import { file } => read(&directory, file)?,
    }
    Ok(Verdict::Well)
}

fn check(directory: &Path) -> Result<(), Problem> {
    let report = EmbeddedStore::check(directory).map_err(|e| Problem::new("the store is not sound", e))?;
    render::write(format!(
        "sound: {} entries of {} bytes at revision {}, history since revision {}\n",
        report.entries, report.value_bytes, report.revision, report.history_after
    ))
}

fn write(directory: &Path, file: &Path) -> Result<(), Problem> {
    EmbeddedStore::check(directory).map_err(|e| Problem::new("cannot export", e))?;
    let out: Box<dyn Write + Send> = if file.as_os_str() == "-" {
        Box::new(std::io::stdout())
    } else {
        let made = File::create(file);
        Box::new(made.map_err(|e| Problem::new(format!("cannot write {}", file.display()), e))?)
    };
    let config = EmbeddedConfig::new(directory);
    let store = EmbeddedStore::open(config).map_err(|e| Problem::new("cannot open the store", e))?;
    let summary = crate::runtime()?
        .block_on(export(&store, "/", BufWriter::new(out)))
        .map_err(|e| Problem::new("cannot export", e))?;
    store
        .close()
        .map_err(|e| Problem::new("cannot close the store", e))?;
    eprintln!(
        "exported {} entries at revision {}",
        summary.entries, summary.revision
    );
    Ok(())
}

fn read(directory: &Path, file: &Path) -> Result<(), Problem> {
    let input: Box<dyn Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        let opened = File::open(file);
        Box::new(opened.map_err(|e| Problem::new(format!("cannot read {}", file.display()), e))?)
    };
    let summary = EmbeddedStore::restore(directory, BufReader::new(input))
        .map_err(|e| Problem::new("cannot import", e))?;
    eprintln!(
        "imported {} entries at revision {}",
        summary.entries, summary.revision
    );
    Ok(())
}
