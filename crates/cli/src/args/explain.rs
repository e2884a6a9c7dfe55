//! Flags of `scantling explain`.

use super::eval::EvalFormat;
use super::inputs::{ReadFlags, SchemaSource};
use super::target::TargetFlags;
use clap::Args;

#[derive(Args, Clone, Debug)]
pub(crate) struct Explain {
    /// The resource and the field: `crontabs.spec.jobs[].image`
    #[arg(value_name = "RESOURCE.PATH")]
    pub(crate) field: String,
    /// Files or directories with CRDs, .tgz archives, `git:REVISION:PATH`
    #[arg(long, value_name = "SOURCE")]
    pub(crate) crds: Vec<SchemaSource>,
    /// The version of the resource; without it, the one that is stored
    #[arg(long, value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = EvalFormat::Text)]
    pub(crate) output: EvalFormat,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
}
