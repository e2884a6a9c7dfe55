//! Flags for the output of a command.

use crate::report::Severity;
use clap::{Args, ValueEnum};
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// The output of a command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// The output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Add the counts of what was checked and found. Text on a terminal always has them, unless --quiet is given
    #[arg(long)]
    summary: bool,
    /// Show details of each result, and what was skipped
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Show only errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// The least severe finding that makes the command fail
    #[arg(long, value_enum, default_value_t = FailOn::Error)]
    pub(crate) fail_on: FailOn,
    /// The configuration file, instead of the nearest scantling.yaml from the current directory upwards
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Do not read a configuration file
    #[arg(long)]
    pub(crate) no_config: bool,
}

impl Output {
    /// Returns whether the report ends with a summary.
    pub(crate) fn shows_summary(&self) -> bool {
        // Programs that read the output see the same bytes whatever the time that the summary would state.
        let for_people = self.output == OutputFormat::Text && std::io::stdout().is_terminal();
        self.summary || (for_people && !self.quiet)
    }
}

/// The least severe finding that makes a command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Advice,
}

impl FailOn {
    /// Returns whether a finding of this severity makes the command fail.
    pub(crate) fn includes(self, severity: Severity) -> bool {
        match severity {
            Severity::Unreadable | Severity::Error => true,
            Severity::Warning => self != FailOn::Error,
            Severity::Advice => self == FailOn::Advice,
        }
    }
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people: each finding with its line
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
    /// Markdown, for comments on pull requests
    Markdown,
}
