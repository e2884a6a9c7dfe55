//! Flags for the Kubernetes version to behave as, and for a cluster to read from.

use clap::Args;
use scantling_admit::Gates;
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::gates;
use std::path::PathBuf;

/// The server to behave as.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Kubernetes")]
pub(crate) struct TargetFlags {
    /// The Kubernetes version: built-in kinds, their fields, and the CEL library
    #[arg(long, value_name = "X.Y", default_value = "1.37", value_parser = version)]
    pub(crate) kubernetes_version: KubernetesVersion,
    /// Feature gates: `Name=true,Name=false`
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = gates)]
    pub(crate) feature_gates: Gates,
}

/// A cluster to read from. It is contacted only if one of these flags is given. They mean the same as in kubectl.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cluster (contacted only if one of these is given)")]
pub(crate) struct Cluster {
    /// The kubeconfig to use
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The address of the API server, instead of the one in the kubeconfig
    #[arg(short = 's', long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The bearer token, instead of the credentials in the kubeconfig
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The certificate authority of the server
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// Do not verify the certificate of the server
    #[arg(long)]
    pub(crate) insecure_skip_tls_verify: bool,
}

impl Cluster {
    /// Returns whether any flag names a cluster.
    pub(crate) fn names_one(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.server.is_some() || self.token.is_some()
    }
}

pub(super) fn version(text: &str) -> Result<KubernetesVersion, String> {
    let mut parts = text.trim_start_matches('v').split('.');
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => Ok(KubernetesVersion::new(major, minor)),
        _ => Err("a version is written as 1.37".to_owned()),
    }
}

/// Reads `Name=true,Name=false`. Gates without effect are accepted, as on a server.
fn gates(text: &str) -> Result<Gates, String> {
    let settings = text.split(',').filter(|setting| !setting.trim().is_empty());
    let settings = settings.map(gates::parse).collect::<Result<_, _>>()?;
    Ok(Gates::apply(&settings)?.gates)
}
