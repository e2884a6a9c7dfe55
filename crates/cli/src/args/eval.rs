//! Flags of `scantling eval`.

use super::inputs::ReadFlags;
use super::target::TargetFlags;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct Eval {
    /// The expression
    #[arg(required_unless_present = "repl")]
    pub(crate) expression: Option<String>,
    /// A JSON or YAML file that `self` is read from, `-` for standard input
    #[arg(short, long = "filename", value_name = "FILE|-")]
    pub(crate) file: Option<PathBuf>,
    /// A JSON or YAML file that `oldSelf` is read from
    #[arg(long, value_name = "FILE")]
    pub(crate) old: Option<PathBuf>,
    /// A CRD that gives `self` its type; files are then read as objects of its kind, with defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) crd: Option<PathBuf>,
    /// The field that `self` is, in the CRD and in the file: `spec.rules[].filters[]`, `spec.rules[0]`
    #[arg(
        long,
        value_name = "PATH",
        default_value = "",
        hide_default_value = true,
        requires = "crd"
    )]
    pub(crate) at: String,
    /// The version of the CRD; without it, the storage version
    #[arg(long, value_name = "VERSION", requires = "crd")]
    pub(crate) api_version: Option<String>,
    /// Read expressions interactively
    #[arg(long, conflicts_with_all = ["expression", "output"])]
    pub(crate) repl: bool,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = EvalFormat::Text)]
    pub(crate) output: EvalFormat,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
}

/// An output format of `eval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EvalFormat {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// The same as YAML
    Yaml,
}
