//! Flags of `scantling test`.

use super::inputs::ReadFlags;
use super::output::Output;
use super::target::TargetFlags;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Test {
    /// Test files, or directories with files that end in .test.yaml, _test.yaml or .testsuite.yaml
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Files or directories with the CRDs of test files that name none
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) crds: Vec<PathBuf>,
    /// Rewrite the expectations of failing cases with what they got
    #[arg(long)]
    pub(crate) update: bool,
    /// List the rules, bounds and enumeration values that no case exercises
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Run again whenever a file changes
    #[arg(long, conflicts_with = "update")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) output: Output,
}
