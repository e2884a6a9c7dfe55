//! Flags of `scantling test`.

use super::inputs::{ReadFlags, SchemaSource};
use super::output::Output;
use super::target::TargetFlags;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Test {
    /// Test files, or directories with files that end in .test.yaml, _test.yaml or .testsuite.yaml
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// CRDs for test files that name none: files, directories, .tgz archives or `git:REVISION:PATH`
    #[arg(long, value_name = "SOURCE")]
    pub(crate) crds: Vec<SchemaSource>,
    /// Rewrite the expectations of failing cases with what they got
    #[arg(long)]
    pub(crate) update: bool,
    /// List the rules, branches of rules, bounds and enumeration values that no case exercises
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Run test files again whenever they or their CRDs change
    #[arg(long, conflicts_with = "update")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) output: Output,
}
