//! Flags that select findings and set their severity.

use crate::policy::PathOverride;
use crate::report::Severity;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// The severity of findings whose code begins with a prefix: `SCT0201=error`. `None` silences them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeveritySetting {
    pub(crate) prefix: String,
    pub(crate) severity: Option<Severity>,
}

impl FromStr for SeveritySetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (prefix, severity) = text.split_once('=').unwrap_or((text, ""));
        if !crate::codes::is_prefix(prefix) {
            return Err(format!("there is no code {prefix}"));
        }
        let severity = match severity {
            "error" => Some(Severity::Error),
            "warning" => Some(Severity::Warning),
            "advice" => Some(Severity::Advice),
            "off" => None,
            _ => return Err("a severity is error, warning, advice or off".to_owned()),
        };
        Ok(SeveritySetting {
            prefix: prefix.to_owned(),
            severity,
        })
    }
}

/// The flags that select findings and set their severity.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Findings")]
pub(crate) struct ControlFlags {
    /// Report only findings with these codes or prefixes of codes: `SCT0201,SCT05`
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    pub(crate) select: Vec<String>,
    /// Do not report findings with these codes or prefixes of codes
    #[arg(long, value_name = "CODE,…", value_delimiter = ',', alias = "skip")]
    pub(crate) ignore: Vec<String>,
    /// Treat findings with these codes or prefixes of codes as errors
    #[arg(long, value_name = "CODE,…", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
    /// The severity of codes: `SCT0201=error,SCT03=off`; error, warning, advice or off
    #[arg(long, value_name = "CODE=SEVERITY,…", value_delimiter = ',')]
    pub(crate) severity: Vec<SeveritySetting>,
    /// A file of known findings, which are not reported
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the findings of this run to a baseline file
    #[arg(long, value_name = "FILE")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Settings for some paths, from the configuration file.
    #[arg(skip)]
    pub(crate) overrides: Vec<PathOverride>,
}
