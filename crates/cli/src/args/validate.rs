//! Flags of `scantling validate`.

use super::inputs::{Inputs, ReadFlags, SchemaSource};
use super::output::Output;
use super::target::{Cluster, TargetFlags};
use crate::policy::PathOverride;
use clap::{Args, ValueEnum};
use scantling_admit::FieldValidation;
use std::path::PathBuf;
use std::str::FromStr;

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
    /// Validate writes to `/status` or `/scale`; the rest of the object comes from --old, or from the input
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
