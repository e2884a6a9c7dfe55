//! Flags of `scantling upgrade`.

use super::findings::ControlFlags;
use super::inputs::{ReadFlags, SchemaSource};
use super::output::Output;
use super::target::{Cluster, TargetFlags, version};
use clap::Args;
use scantling_cel::kubernetes::KubernetesVersion;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Upgrade {
    /// The current CRDs: files, directories, .tgz archives or `git:REVISION:PATH`; without it, those of the cluster
    #[arg(long, value_name = "SOURCE", required_unless_present_any = ["kubeconfig", "context", "server", "token", "from_kubernetes_version"])]
    pub(crate) from: Vec<SchemaSource>,
    /// The new CRDs
    #[arg(
        long,
        value_name = "SOURCE",
        required_unless_present = "from_kubernetes_version"
    )]
    pub(crate) to: Vec<SchemaSource>,
    /// The current Kubernetes version, for an upgrade of the cluster to --kubernetes-version
    #[arg(long, value_name = "X.Y", value_parser = version)]
    pub(crate) from_kubernetes_version: Option<KubernetesVersion>,
    /// Files or directories with objects, `-` for standard input; objects of the cluster are checked as well
    #[arg(value_name = "FILE|DIR|-")]
    pub(crate) paths: Vec<PathBuf>,
    /// The same as the positional arguments
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(crate) filename: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlFlags,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Upgrade {
    /// The server before the upgrade.
    pub(crate) fn target_before(&self) -> TargetFlags {
        TargetFlags {
            kubernetes_version: self
                .from_kubernetes_version
                .unwrap_or(self.target.kubernetes_version),
            ..self.target
        }
    }
}
