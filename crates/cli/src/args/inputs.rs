//! Flags for inputs: files, directories, sources of CRDs.

use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// The objects to validate.
#[derive(Args, Clone, Debug)]
pub(crate) struct Inputs {
    /// Files or directories to read, `-` for standard input
    #[arg(value_name = "FILE|DIR|-", required_unless_present_any = ["filename", "kustomize", "helm"])]
    pub(crate) paths: Vec<PathBuf>,
    /// The same as the positional arguments, as in kubectl
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-")]
    pub(crate) filename: Vec<PathBuf>,
    /// Directories with a kustomization: validate the output of `kustomize build`
    #[arg(long, value_name = "DIR")]
    pub(crate) kustomize: Vec<PathBuf>,
    /// Helm charts: validate the output of `helm template`
    #[arg(long, value_name = "CHART")]
    pub(crate) helm: Vec<PathBuf>,
    /// Values files for the Helm charts
    #[arg(long, value_name = "FILE", requires = "helm")]
    pub(crate) helm_values: Vec<PathBuf>,
}

impl Inputs {
    /// All paths, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().chain(&self.filename)
    }
}

/// The flags that control how inputs are found and read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Inputs")]
pub(crate) struct ReadFlags {
    /// Files and directories to leave out of directories, as patterns of .gitignore: `charts/,*.gen.yaml`
    #[arg(long, value_name = "PATTERN,…", value_delimiter = ',')]
    pub(crate) exclude: Vec<String>,
    /// Read hidden files, and files that .gitignore, .ignore or .scantlingignore names
    #[arg(long)]
    pub(crate) no_ignore: bool,
    /// The size limit of one file, pipe or standard input: `512Mi`, `4Gi`
    #[arg(long, value_name = "BYTES", default_value = "128Mi", value_parser = bytes)]
    pub(crate) max_input_bytes: u64,
    /// The limit on the number of files and directories below the given directories
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub(crate) max_input_files: usize,
}

/// A source of CRDs: a file, a directory, a `.tgz` archive, or files of a git revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SchemaSource {
    Path(PathBuf),
    /// `git:v1.4.0:config/crd`
    Git {
        revision: String,
        path: String,
    },
}

impl FromStr for SchemaSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("git:") else {
            return Ok(SchemaSource::Path(PathBuf::from(text)));
        };
        // A revision has no colon in git, so the first one begins the path.
        let (revision, path) = rest.split_once(':').unwrap_or((rest, ""));
        // git would read such a revision as a flag.
        if revision.is_empty() || revision.starts_with('-') {
            return Err("a git source is written as git:REVISION:PATH".to_owned());
        }
        Ok(SchemaSource::Git {
            revision: revision.to_owned(),
            path: path.to_owned(),
        })
    }
}

/// Reads a number of bytes, with the suffixes of Kubernetes' quantities.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.strip_prefix(digits) {
        Some("") => 1,
        Some("k") => 1000,
        Some("M") => 1000 * 1000,
        Some("G") => 1000 * 1000 * 1000,
        Some("Ki") => 1 << 10,
        Some("Mi") => 1 << 20,
        Some("Gi") => 1 << 30,
        _ => return Err("a number of bytes is written as 1048576, 512Mi or 4Gi".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{digits}` is no whole number"))?;
    // A limit beyond the range of the type has no effect.
    Ok(number.saturating_mul(unit))
}
