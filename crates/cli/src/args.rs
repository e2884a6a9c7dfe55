//! The command line: a file per command, and one per group of flags that commands share.

mod compile;
mod cost;
mod eval;
mod explain;
mod findings;
mod inputs;
mod lint;
mod output;
mod sample;
mod serve;
mod store;
mod target;
mod test;
mod upgrade;
mod validate;

use clap::{Parser, Subcommand};

pub(crate) use compile::Compile;
pub(crate) use cost::Cost;
pub(crate) use eval::{Eval, EvalFormat};
pub(crate) use explain::Explain;
pub(crate) use findings::{ControlFlags, SeveritySetting};
pub(crate) use inputs::{ReadFlags, SchemaSource};
pub(crate) use lint::Lint;
pub(crate) use output::{FailOn, Output, OutputFormat};
pub(crate) use sample::Sample;
pub(crate) use serve::{AuthorizationMode, LoggingFormat, Serve};
pub(crate) use store::{Store, StoreCommand};
pub(crate) use target::{Cluster, TargetFlags};
pub(crate) use test::Test;
pub(crate) use upgrade::Upgrade;
pub(crate) use validate::{FieldValidationFlag, SubresourceFlag, Validate, Variable};

/// Validate Kubernetes objects and CRDs as kube-apiserver does, without a cluster; serve them as an API server
#[derive(Debug, Parser)]
#[command(name = "scantling", version, propagate_version = true)]
// The last of several values of a flag wins: scripts append to the flags of others, and users override the configuration.
#[command(args_override_self = true)]
#[command(after_help = "Exit codes: 0 no findings, 1 findings, 2 wrong usage, 3 an input could not be read.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Validate custom resources and built-in objects: as a create or, with --old, as an update
    #[command(
        after_help = "Examples:\n  scantling validate --crds config/crd manifests\n  helm template chart | scantling validate --crds config/crd -"
    )]
    Validate(Validate),
    /// Report the errors of CRDs that a cluster would refuse, and give advice
    #[command(after_help = "Examples:\n  scantling lint config/crd\n  scantling lint --explain SCT0103")]
    Lint(Lint),
    /// Estimate the cost of CEL rules, and find bounds that bring it below the limit
    #[command(after_help = "Example:\n  scantling cost config/crd --from git:main:config/crd --budget 60%")]
    Cost(Cost),
    /// Compare two sets of CRDs, and check what the new one does to existing objects
    #[command(
        after_help = "Example:\n  scantling upgrade --from git:v1.4.0:config/crd --to config/crd manifests"
    )]
    Upgrade(Upgrade),
    /// Evaluate a CEL expression for a file or for a field of a CRD
    #[command(
        after_help = "Example:\n  scantling eval 'self.replicas <= 3' --crd crd.yaml --at spec -f object.yaml"
    )]
    Eval(Eval),
    /// Run table tests of CRDs
    #[command(after_help = "Example:\n  scantling test --crds config/crd tests")]
    Test(Test),
    /// Turn extensions that only Scantling has into rules that every cluster accepts
    #[command(after_help = "Example:\n  scantling compile config/crd --output build/crd")]
    Compile(Compile),
    /// Describe a field: type, bounds, default, immutability, rules with their cost
    #[command(
        after_help = "Examples:\n  scantling explain deployments.spec.strategy\n  scantling explain --crds config/crd crontabs.spec"
    )]
    Explain(Explain),
    /// Print an object of a CRD that a cluster accepts
    #[command(after_help = "Example:\n  scantling sample --full config/crd/crontabs.yaml")]
    Sample(Sample),
    /// Serve CRDs, custom resources and built-in kinds as a Kubernetes API server
    #[command(after_help = "Example:\n  scantling serve --data-dir data")]
    Serve(Serve),
    /// Check, export or import the data of a stopped server
    #[command(after_help = "Example:\n  scantling store --data-dir data export backup.jsonl")]
    Store(Store),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version,
}
