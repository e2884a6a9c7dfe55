//! Flags of `scantling cost`.

use super::inputs::{ReadFlags, SchemaSource};
use super::output::Output;
use super::target::{Cluster, TargetFlags};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Cost {
    /// Files or directories with CRDs, .tgz archives, `git:REVISION:PATH`, `-` for standard input
    #[arg(value_name = "SOURCE", required_unless_present = "crds")]
    pub(crate) definitions: Vec<SchemaSource>,
    /// The same as the positional arguments
    #[arg(long, value_name = "SOURCE")]
    pub(crate) crds: Vec<SchemaSource>,
    /// Earlier CRDs: show how the cost of each rule has changed
    #[arg(long, value_name = "SOURCE")]
    pub(crate) from: Vec<SchemaSource>,
    /// Fail if a rule or a schema is estimated above this share of its limit: `60%`
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) budget: Option<f64>,
    /// Objects to measure the cost of rules with; objects of the cluster are measured as well
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(crate) filename: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Reads a share: `60%`, as 0.6.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    match number.filter(|n| n.is_finite() && *n > 0.0) {
        Some(number) => Ok(number / 100.0),
        None => Err("a budget is written as 60%".to_owned()),
    }
}
