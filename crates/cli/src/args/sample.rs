//! Flags of `scantling sample`.

use super::inputs::{ReadFlags, SchemaSource};
use super::target::TargetFlags;
use clap::Args;

#[derive(Args, Clone, Debug)]
pub(crate) struct Sample {
    /// Files or directories with CRDs, .tgz archives, `git:REVISION:PATH`, `-` for standard input
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) paths: Vec<SchemaSource>,
    /// Add all fields that fit together, with their descriptions and limits as comments
    #[arg(long)]
    pub(crate) full: bool,
    /// The version of the resource; without it, the one that is stored
    #[arg(long, value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
}
