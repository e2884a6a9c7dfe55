//! What can be said on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use scantling_admit::{FieldValidation, Gates};
use scantling_cel::kubernetes::Version;
use std::path::PathBuf;

/// Validate, lint, cost and upgrade Kubernetes custom resources with no cluster; serve them with one.
#[derive(Debug, Parser)]
#[command(name = "scantling", version, propagate_version = true)]
#[command(after_help = "Exit codes: 0 all well, 1 findings, 2 wrong usage, 3 could not read or load.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check objects against definitions, as a create or, with --old, as an update
    Validate(Validate),
    /// Print the version
    Version,
}

/// Where objects and definitions come from.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inputs {
    /// Files or directories to read, `-` for standard input
    #[arg(value_name = "FILE|DIR|-", required_unless_present = "filename")]
    pub(crate) paths: Vec<PathBuf>,
    /// The same as the positional arguments, as in kubectl
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(crate) filename: Vec<PathBuf>,
}

impl Inputs {
    /// All paths, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().chain(&self.filename)
    }
}

/// The server that answers are to be those of.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The version of Kubernetes whose expression library rules may use
    #[arg(long, value_name = "X.Y", default_value = "1.37", value_parser = version)]
    pub(crate) kubernetes_version: Version,
    /// Features to switch on or off: `Name=true,Name=false`
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = gates)]
    pub(crate) feature_gates: Gates,
}

/// How results look.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// The form of the output
    #[arg(short, long, value_enum, default_value_t = Form::Text)]
    pub(crate) output: Form,
    /// Add the numbers of what was checked
    #[arg(long)]
    pub(crate) summary: bool,
    /// Show what is fine, too
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Show nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people: each finding with its place in the file
    Text,
    /// One JSON document
    Json,
    /// The same as YAML
    Yaml,
    /// JUnit XML, for CI systems
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Files or directories with definitions; definitions among the inputs count as well
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) crds: Vec<PathBuf>,
    /// Files or directories with stored objects: an input of the same kind, namespace and name is their update
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) old: Vec<PathBuf>,
    /// What becomes of unknown and duplicate fields
    #[arg(long, value_enum, default_value_t = Strictness::Warn)]
    pub(crate) field_validation: Strictness,
    /// Add each object as it would be stored: defaulted and pruned
    #[arg(long)]
    pub(crate) show_object: bool,
    /// Skip objects of kinds that have no definition
    #[arg(long)]
    pub(crate) ignore_missing_schemas: bool,
    /// Kinds to skip: `Kind` or `group/version/Kind`
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What becomes of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strictness {
    /// They are errors
    Strict,
    /// They are dropped with a warning
    Warn,
    /// They are dropped
    Ignore,
}

impl From<Strictness> for FieldValidation {
    fn from(strictness: Strictness) -> Self {
        match strictness {
            Strictness::Strict => FieldValidation::Strict,
            Strictness::Warn => FieldValidation::Warn,
            Strictness::Ignore => FieldValidation::Ignore,
        }
    }
}

fn version(text: &str) -> Result<Version, String> {
    let mut parts = text.trim_start_matches('v').split('.');
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => Ok(Version::new(major, minor)),
        _ => Err("a version is written as 1.37".to_owned()),
    }
}

fn gates(text: &str) -> Result<Gates, String> {
    let mut gates = Gates::default();
    for (name, on) in switches(text)? {
        if !gates.set(&name, on) {
            let known = Gates::NAMES.join(", ");
            return Err(format!("there is no gate `{name}`: known ones are {known}"));
        }
    }
    Ok(gates)
}

/// Reads `Name=true,Name=false`.
pub(crate) fn switches(text: &str) -> Result<Vec<(String, bool)>, String> {
    let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
    parts
        .map(|part| {
            let (name, on) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not of the form Name=true"))?;
            let on = on
                .parse()
                .map_err(|_| format!("`{on}` is neither true nor false"))?;
            Ok((name.to_owned(), on))
        })
        .collect()
}
