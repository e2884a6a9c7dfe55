//! Flags of `scantling store`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Store {
    /// The data directory of the server; by default `scantling` in the user's data directory
    #[arg(long, global = true, env = "SCANTLING_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read everything and verify every checksum
    Check,
    /// Write everything to a file, as lines of JSON
    Export {
        /// The file, `-` for standard output
        file: PathBuf,
    },
    /// Create a store from an exported file, with the same revisions
    Import {
        /// The file, `-` for standard input
        file: PathBuf,
    },
}
