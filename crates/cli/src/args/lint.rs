//! Flags of `scantling lint`.

use super::findings::ControlFlags;
use super::inputs::{ReadFlags, SchemaSource};
use super::output::Output;
use super::target::TargetFlags;
use clap::Args;

#[derive(Args, Clone, Debug)]
pub(crate) struct Lint {
    /// Files or directories with CRDs, .tgz archives, `git:REVISION:PATH`, `-` for standard input
    #[arg(value_name = "SOURCE", required_unless_present_any = ["filename", "crds", "explain"])]
    pub(crate) paths: Vec<SchemaSource>,
    /// The same as the positional arguments
    #[arg(short = 'f', long = "filename", value_name = "SOURCE")]
    pub(crate) filename: Vec<SchemaSource>,
    /// The same as the positional arguments
    #[arg(long, value_name = "SOURCE")]
    pub(crate) crds: Vec<SchemaSource>,
    /// Print the page of a code
    #[arg(long, value_name = "CODE")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlFlags,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) output: Output,
}
