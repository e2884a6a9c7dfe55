//! Flags of `scantling compile`.

use super::inputs::{ReadFlags, SchemaSource};
use super::target::version;
use clap::Args;
use scantling_cel::kubernetes::KubernetesVersion;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Compile {
    /// Files or directories with CRDs, .tgz archives, `git:REVISION:PATH`, `-` for standard input
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) paths: Vec<SchemaSource>,
    /// Write each CRD to a file in this directory, instead of standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The oldest version of Kubernetes that must accept the result
    #[arg(long, value_name = "X.Y", default_value = "1.29", value_parser = version)]
    pub(crate) kubernetes_version: KubernetesVersion,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
}
