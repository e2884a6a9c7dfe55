//! The command line.

use crate::policy::PathOverride;
use crate::report::Severity;
use clap::{Args, Parser, Subcommand, ValueEnum};
use scantling_admit::{FieldValidation, Gates};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::gates;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Validate Kubernetes objects and CRDs as kube-apiserver does, without a cluster; serve custom resources
#[derive(Debug, Parser)]
#[command(name = "scantling", version, propagate_version = true)]
#[command(after_help = "Exit codes: 0 no findings, 1 findings, 2 wrong usage, 3 an input could not be read.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Validate objects against CRDs: as a create or, with --old, as an update
    #[command(args_override_self = true)]
    Validate(Validate),
    /// Report the errors of CRDs that a cluster would refuse, and give advice
    #[command(args_override_self = true)]
    Lint(Lint),
    /// Estimate the cost of CEL rules, and find bounds that bring it below the limit
    #[command(args_override_self = true)]
    Cost(Cost),
    /// Compare two sets of CRDs, and check what the new one does to existing objects
    #[command(args_override_self = true)]
    Upgrade(Upgrade),
    /// Evaluate a CEL expression for a file or for a field of a CRD
    #[command(args_override_self = true)]
    Eval(Eval),
    /// Run table tests of CRDs
    Test(Test),
    /// Turn extensions that only Scantling has into rules that every cluster accepts
    Compile(Compile),
    /// Describe a field: type, bounds, default, immutability, rules with their cost
    Explain(Explain),
    /// Print an object of a CRD that a cluster accepts
    Sample(Sample),
    /// Serve custom resources as a Kubernetes API server
    // The last of several values of a flag wins, as with other servers: scripts append to the flags of others.
    #[command(args_override_self = true)]
    Serve(Serve),
    /// Check, export or import the data of a stopped server
    Store(Store),
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the version
    Version,
}

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

/// How inputs are found and read.
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

impl Inputs {
    /// All paths, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().chain(&self.filename)
    }
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
        let (revision, path) = rest.split_once(':').unwrap_or((rest, ""));
        if revision.is_empty() || revision.starts_with('-') {
            return Err("a git source is written as git:REVISION:PATH".to_owned());
        }
        Ok(SchemaSource::Git {
            revision: revision.to_owned(),
            path: path.to_owned(),
        })
    }
}

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

/// Which findings are reported, and how severe they are.
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

/// The server to behave as.
#[derive(Args, Clone, Copy, Debug)]
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
    /// Whether any flag names a cluster.
    pub(crate) fn names_one(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.server.is_some() || self.token.is_some()
    }
}

/// The output of a command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// The output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
    /// Add the counts of what was checked and found
    #[arg(long)]
    pub(crate) summary: bool,
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

/// The least severe finding that makes a command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Advice,
}

impl FailOn {
    /// Whether a finding of this severity makes the command fail.
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

#[derive(Args, Clone, Debug)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// CRDs: files, directories, .tgz archives or `git:REVISION:PATH`; CRDs among the inputs are used as well
    #[arg(long, value_name = "SOURCE")]
    pub(crate) crds: Vec<SchemaSource>,
    /// JSON schemas for kinds without a CRD, in kubeconform's syntax: a path or URL with {{.Group}}, {{.ResourceKind}},
    /// {{.ResourceAPIVersion}}; `default` is the catalog of kubeconform. Such schemas have no rules and no defaults
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) schema_location: Vec<String>,
    /// Where downloaded JSON schemas are kept; without it, they are downloaded on every run
    #[arg(long, value_name = "DIR")]
    pub(crate) schema_cache: Option<PathBuf>,
    /// Stored objects: an input of the same kind, namespace and name is validated as their update
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) old: Vec<PathBuf>,
    /// Take the stored objects from the cluster: an input that exists there is an update, any other one a create
    #[arg(long)]
    pub(crate) old_from_cluster: bool,
    /// Validate writes to a subresource of objects that exist (--old), or of the objects themselves
    #[arg(long, value_enum)]
    pub(crate) subresource: Option<SubresourceFlag>,
    /// The treatment of unknown and duplicate fields, as in kubectl
    #[arg(long, value_enum, default_value_t = FieldValidationFlag::Strict)]
    pub(crate) field_validation: FieldValidationFlag,
    /// Add each object as it would be stored: defaulted and pruned
    #[arg(long)]
    pub(crate) show_object: bool,
    /// Skip objects of kinds without a schema
    #[arg(long)]
    pub(crate) ignore_missing_schemas: bool,
    /// Kinds to skip: `Kind` or `group/version/Kind`
    #[arg(long, value_name = "KIND,…", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Values of Flux variables: `${NAME}` is replaced in manifests, `${NAME:=default}` also without a value
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) var: Vec<Variable>,
    /// Settings for some paths, from the configuration file.
    #[arg(skip)]
    pub(crate) overrides: Vec<PathOverride>,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) cluster: Cluster,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A variable that Flux substitutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Variable {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err("a variable is written as NAME=VALUE".to_owned()),
        }
    }
}

/// A subresource that objects are written through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubresourceFlag {
    /// The status: everything else stays as it is stored
    Status,
    /// The scale: inputs are objects of kind Scale (autoscaling/v1)
    Scale,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Lint {
    /// Files or directories with CRDs, .tgz archives, `git:REVISION:PATH`, `-` for standard input
    #[arg(value_name = "SOURCE", required_unless_present_any = ["filename", "crds", "explain"])]
    pub(crate) paths: Vec<SchemaSource>,
    /// The same as the positional arguments
    #[arg(short = 'f', long = "filename", value_name = "SOURCE")]
    pub(crate) filename: Vec<SchemaSource>,
    /// The same as the positional arguments
    #[arg(long, value_name = "SOURCE")]
    pub(crate) crds: Vec<SchemaSource>,
    /// Print the page of a code
    #[arg(long, value_name = "CODE")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) control: ControlFlags,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) output: Output,
}

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

#[derive(Args, Clone, Debug)]
pub(crate) struct Upgrade {
    /// The current CRDs: files, directories, .tgz archives or `git:REVISION:PATH`; without it, those of the cluster
    #[arg(long, value_name = "SOURCE", required_unless_present_any = ["kubeconfig", "context", "server", "token"])]
    pub(crate) from: Vec<SchemaSource>,
    /// The new CRDs
    #[arg(long, value_name = "SOURCE", required = true)]
    pub(crate) to: Vec<SchemaSource>,
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

#[derive(Args, Clone, Debug)]
pub(crate) struct Test {
    /// Test files, or directories with files that end in .test.yaml, _test.yaml or .testsuite.yaml
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Files or directories with the CRDs of test files that name none
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) crds: Vec<PathBuf>,
    /// Rewrite the expectations of failing cases with what they got
    #[arg(long)]
    pub(crate) update: bool,
    /// List the rules, bounds and enumeration values that no case exercises
    #[arg(long)]
    pub(crate) coverage: bool,
    /// Run again whenever a file changes
    #[arg(long, conflicts_with = "update")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Compile {
    /// Files or directories with CRDs, `-` for standard input
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Write each CRD to a file in this directory, instead of standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The oldest version of Kubernetes that must accept the result
    #[arg(long, value_name = "X.Y", default_value = "1.29", value_parser = version)]
    pub(crate) kubernetes_version: KubernetesVersion,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Explain {
    /// The resource and the field: `crontabs.spec.jobs[].image`
    #[arg(value_name = "RESOURCE.PATH")]
    pub(crate) field: String,
    /// Files or directories with CRDs
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) crds: Vec<PathBuf>,
    /// The version of the resource; without it, the one that is stored
    #[arg(long, value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = EvalFormat::Text)]
    pub(crate) output: EvalFormat,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Sample {
    /// Files or directories with CRDs, `-` for standard input
    #[arg(value_name = "CRD", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Add all fields that fit together, with their descriptions and limits as comments
    #[arg(long)]
    pub(crate) full: bool,
    /// The version of the resource; without it, the one that is stored
    #[arg(long, value_name = "VERSION")]
    pub(crate) api_version: Option<String>,
    #[command(flatten)]
    pub(crate) read: ReadFlags,
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

#[derive(Args, Clone, Debug)]
pub(crate) struct Serve {
    /// The address to listen on
    #[arg(long, env = "SCANTLING_BIND_ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// The port to listen on; 0 takes a free one
    #[arg(long, env = "SCANTLING_SECURE_PORT", default_value_t = 6443)]
    pub(crate) secure_port: u16,
    /// Where everything is kept; without it, `scantling` in the user's data directory
    #[arg(
        long,
        env = "SCANTLING_DATA_DIR",
        value_name = "DIR",
        conflicts_with = "in_memory"
    )]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep everything in memory alone
    #[arg(long, env = "SCANTLING_IN_MEMORY", conflicts_with = "etcd_servers")]
    pub(crate) in_memory: bool,
    /// Where the administrator's kubeconfig is written
    #[arg(long, env = "SCANTLING_WRITE_KUBECONFIG", value_name = "FILE")]
    pub(crate) write_kubeconfig: Option<PathBuf>,
    /// A certificate (chain) in PEM, instead of one of the server's own
    #[arg(
        long,
        env = "SCANTLING_TLS_CERT_FILE",
        value_name = "FILE",
        requires = "tls_private_key_file"
    )]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The key of that certificate
    #[arg(
        long,
        env = "SCANTLING_TLS_PRIVATE_KEY_FILE",
        value_name = "FILE",
        requires = "tls_cert_file"
    )]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// The authority whose client certificates are accepted
    #[arg(long, env = "SCANTLING_CLIENT_CA_FILE", value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// A file of `token,user,uid,"groups"` lines
    #[arg(long, env = "SCANTLING_TOKEN_AUTH_FILE", value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Whether requests without a credential are those of `system:anonymous`, who may ask for the version and the
    /// health of the server, and nothing else; if not, they are refused
    #[arg(long, env = "SCANTLING_ANONYMOUS_AUTH", action = clap::ArgAction::Set, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) anonymous_auth: bool,
    /// What users with a credential may do; members of `system:masters` may do everything
    #[arg(long, env = "SCANTLING_AUTHORIZATION_MODE", value_enum, default_value_t = AuthorizationMode::AlwaysAllow)]
    pub(crate) authorization_mode: AuthorizationMode,
    /// Members of an etcd cluster to store in, instead of the data directory
    #[arg(
        long,
        env = "SCANTLING_ETCD_SERVERS",
        value_name = "URL,…",
        value_delimiter = ','
    )]
    pub(crate) etcd_servers: Vec<String>,
    /// The authority that signed the certificates of etcd; without it, those that the system trusts
    #[arg(
        long,
        env = "SCANTLING_ETCD_CAFILE",
        value_name = "FILE",
        requires = "etcd_servers"
    )]
    pub(crate) etcd_cafile: Option<PathBuf>,
    /// The certificate that this server shows to etcd
    #[arg(
        long,
        env = "SCANTLING_ETCD_CERTFILE",
        value_name = "FILE",
        requires = "etcd_keyfile"
    )]
    pub(crate) etcd_certfile: Option<PathBuf>,
    /// The key of that certificate
    #[arg(
        long,
        env = "SCANTLING_ETCD_KEYFILE",
        value_name = "FILE",
        requires = "etcd_certfile"
    )]
    pub(crate) etcd_keyfile: Option<PathBuf>,
    /// Where keys begin in the store
    #[arg(long, env = "SCANTLING_ETCD_PREFIX", default_value = "/registry")]
    pub(crate) etcd_prefix: String,
    /// Feature gates: `Name=true,Name=false`
    #[arg(long, env = "SCANTLING_FEATURE_GATES", value_name = "NAME=BOOL,…", value_delimiter = ',', value_parser = gates::parse)]
    pub(crate) feature_gates: Vec<(String, bool)>,
    /// How many requests are worked on at once; watches do not count
    #[arg(long, env = "SCANTLING_MAX_REQUESTS_INFLIGHT", default_value_t = 600)]
    pub(crate) max_requests_inflight: usize,
    /// How long a request may take: `60s`, `2m`
    #[arg(long, env = "SCANTLING_REQUEST_TIMEOUT", default_value = "60s", value_parser = duration)]
    pub(crate) request_timeout: Duration,
    /// How many seconds a watch lasts at least whose client does not say; it may last twice that
    #[arg(
        long,
        env = "SCANTLING_MIN_REQUEST_TIMEOUT",
        value_name = "SECONDS",
        default_value = "1800",
        value_parser = seconds,
        allow_negative_numbers = true
    )]
    pub(crate) min_request_timeout: Duration,
    /// What the header `Strict-Transport-Security` says: `max-age=31536000,includeSubDomains,preload`
    #[arg(long, env = "SCANTLING_STRICT_TRANSPORT_SECURITY_DIRECTIVES", value_name = "DIRECTIVE,…", value_delimiter = ',', value_parser = directive)]
    pub(crate) strict_transport_security_directives: Vec<String>,
    /// How long to go on serving after a stop is asked for, with readiness failing: `5s`
    #[arg(long, env = "SCANTLING_SHUTDOWN_DELAY_DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) shutdown_delay_duration: Duration,
    /// The time that running requests get to end when the server stops; the rest is cut off
    #[arg(long, env = "SCANTLING_SHUTDOWN_GRACE_PERIOD", default_value = "10s", value_parser = period)]
    pub(crate) shutdown_grace_period: Duration,
    /// The most open connections; without it, what the limit on open files allows, at most 8192
    #[arg(long, env = "SCANTLING_MAX_CONNECTIONS", value_name = "NUMBER")]
    pub(crate) max_connections: Option<NonZeroUsize>,
    /// The most open connections from one address; without it, half of all
    #[arg(long, env = "SCANTLING_MAX_CONNECTIONS_PER_CLIENT", value_name = "NUMBER")]
    pub(crate) max_connections_per_client: Option<NonZeroUsize>,
    /// The most concurrent requests on an HTTP/2 connection
    #[arg(
        long,
        env = "SCANTLING_HTTP2_MAX_STREAMS_PER_CONNECTION",
        value_name = "NUMBER",
        default_value = "100"
    )]
    pub(crate) http2_max_streams_per_connection: NonZeroU32,
    /// The time limit for the first request of a connection, and for the head of any HTTP/1 request
    #[arg(long, env = "SCANTLING_READ_HEADER_TIMEOUT", default_value = "32s", value_parser = timeout)]
    pub(crate) read_header_timeout: Duration,
    /// The time after which a connection without a request is closed
    #[arg(long, env = "SCANTLING_IDLE_TIMEOUT", default_value = "90s", value_parser = timeout)]
    pub(crate) idle_timeout: Duration,
    /// The time after which a client is cut off that reads nothing of its response or watch
    #[arg(long, env = "SCANTLING_WRITE_TIMEOUT", default_value = "30s", value_parser = timeout)]
    pub(crate) write_timeout: Duration,
    /// The memory for bodies of requests and responses of all clients together, in MiB
    #[arg(
        long,
        env = "SCANTLING_MAX_BUFFERED_MIB",
        value_name = "MIB",
        default_value = "256"
    )]
    pub(crate) max_buffered_mib: NonZeroU32,
    /// The form of log lines, which go to standard error
    #[arg(long, env = "SCANTLING_LOGGING_FORMAT", value_enum, default_value_t = LoggingFormat::Text)]
    pub(crate) logging_format: LoggingFormat,
    /// How much is logged: 0 what is wrong, 2 what happens, 3 every request and connection
    #[arg(
        short = 'v',
        long = "v",
        env = "SCANTLING_V",
        value_name = "LEVEL",
        default_value_t = 2
    )]
    pub(crate) verbosity: u8,
}

/// The permissions of authenticated users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum AuthorizationMode {
    /// Everything
    AlwaysAllow,
    /// Nothing
    AlwaysDeny,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggingFormat {
    /// For people
    Text,
    /// A JSON object on each line
    Json,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Store {
    /// The data directory of the server
    #[arg(
        long,
        global = true,
        env = "SCANTLING_DATA_DIR",
        value_name = "DIR",
        default_value = "."
    )]
    pub(crate) data_dir: PathBuf,
    #[command(subcommand)]
    pub(crate) command: StoreCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Read everything and compare every checksum
    Check,
    /// Write everything to a file, as lines of JSON
    Export {
        /// The file, `-` for standard output
        file: PathBuf,
    },
    /// Make a store out of an exported file, with every revision as it was
    Import {
        /// The file, `-` for standard input
        file: PathBuf,
    },
}

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FieldValidationFlag {
    /// Errors
    Strict,
    /// Dropped with a warning
    Warn,
    /// Dropped
    Ignore,
}

impl From<FieldValidationFlag> for FieldValidation {
    fn from(strictness: FieldValidationFlag) -> Self {
        match strictness {
            FieldValidationFlag::Strict => FieldValidation::Strict,
            FieldValidationFlag::Warn => FieldValidation::Warn,
            FieldValidationFlag::Ignore => FieldValidation::Ignore,
        }
    }
}

fn version(text: &str) -> Result<KubernetesVersion, String> {
    let mut parts = text.trim_start_matches('v').split('.');
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => Ok(KubernetesVersion::new(major, minor)),
        _ => Err("a version is written as 1.37".to_owned()),
    }
}

/// Reads `Name=true,Name=false`. Gates without effect are no error, as they are none for a server.
fn gates(text: &str) -> Result<Gates, String> {
    let settings = text.split(',').filter(|setting| !setting.trim().is_empty());
    let settings = settings.map(gates::parse).collect::<Result<_, _>>()?;
    Ok(Gates::apply(&settings)?.gates)
}

/// Reads a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: i64 = text.parse().map_err(|_| format!("`{text}` is no whole number"))?;
    let number =
        u64::try_from(number).map_err(|_| "--min-request-timeout can not be negative value".to_owned())?;
    Ok(Duration::from_secs(number))
}

/// Reads a directive of the header `Strict-Transport-Security`.
fn directive(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("empty value in strict-transport-security-directives".to_owned());
    }
    let is_age = |(name, age): (&str, &str)| name == "max-age" && !age.contains('=');
    if !matches!(text, "includeSubDomains" | "preload") && !text.split_once('=').is_some_and(is_age) {
        return Err(
            "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, \
             preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
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
    Ok(number.saturating_mul(unit))
}

/// Reads a share: `60%`, as 0.6.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    match number.filter(|n| n.is_finite() && *n > 0.0) {
        Some(number) => Ok(number / 100.0),
        None => Err("a budget is written as 60%".to_owned()),
    }
}

/// Reads a time to wait for, of at most a year.
fn period(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
    duration(text).and_then(|d| match d {
        d if d > LONGEST => Err("it may not be longer than a year: 8760h".to_owned()),
        d => Ok(d),
    })
}

/// A period after which something is given up.
fn timeout(text: &str) -> Result<Duration, String> {
    period(text).and_then(|d| match d {
        Duration::ZERO => Err("it has to be longer than 0s".to_owned()),
        d => Ok(d),
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 3600,
        _ => return Err("a duration is written as 60s, 2m or 1h".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{digits}` is no whole number"))?;
    Ok(Duration::from_secs(number.saturating_mul(unit)))
}
