//! `scantling store`: maintains the data directory of a stopped server.

use crate::args::{Store, StoreCommand};
use crate::problem::{ExitStatus, Problem};
use crate::{render, serve};
use scantling_store::private::NewFile;
use scantling_store::{EmbeddedStore, export};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Runs the command.
pub(crate) fn run(flags: &Store) -> Result<ExitStatus, Problem> {
    let directory = serve::data_directory(flags.data_dir.as_deref())?.join("store");
    match &flags.command {
        StoreCommand::Check => check(&directory)?,
        StoreCommand::Export { file } => export_to(&directory, file)?,
        StoreCommand::Import { file } => import_from(&directory, file)?,
    }
    Ok(ExitStatus::Success)
}

fn check(directory: &Path) -> Result<(), Problem> {
    let report = EmbeddedStore::check(directory).map_err(|e| Problem::new("the store check failed", e))?;
    render::write(format!(
        "sound: {} entries of {} bytes at revision {}, history since revision {}\n",
        report.entries, report.value_bytes, report.revision, report.history_after
    ))
}

fn export_to(directory: &Path, file: &Path) -> Result<(), Problem> {
    let failed = |e: &dyn std::fmt::Display| Problem::new(format!("cannot write {}", file.display()), e);
    let store = EmbeddedStore::read(directory).map_err(|e| Problem::new("cannot export", e))?;
    let runtime = crate::runtime()?;
    let write = |out: &mut (dyn Write + Send)| {
        runtime
            .block_on(export(&store, "/", BufWriter::new(out)))
            .map_err(|e| Problem::new("cannot export", e))
    };
    let summary = if file.as_os_str() == "-" {
        write(&mut std::io::stdout())?
    } else if is_stream(file) {
        // A pipe or a device is written in place: replacing it would cut off its reader.
        let mut out = File::options().write(true).open(file).map_err(|e| failed(&e))?;
        write(&mut out)?
    } else {
        // The file appears only when it is complete, so a failed export leaves the previous one.
        let mut out = NewFile::create(file).map_err(|e| failed(&e))?;
        let summary = write(&mut out)?;
        out.commit().map_err(|e| failed(&e))?;
        summary
    };
    // Standard output may be the export itself.
    eprintln!(
        "exported {} entries at revision {}",
        summary.entries, summary.revision
    );
    Ok(())
}

/// Returns whether a file is a pipe or a device, which is written to rather than replaced.
fn is_stream(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|data| !data.is_file() && !data.is_dir())
}

fn import_from(directory: &Path, file: &Path) -> Result<(), Problem> {
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
