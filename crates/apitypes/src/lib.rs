//! The table of Kubernetes API types, and its interpreters.
//!
//! This crate is the only place that knows the fields of Kubernetes types. The table
//! (`table/<group>/<version>.types`, one line per field) is generated from Kubernetes' own sources by
//! `cargo xtask apitypes` and contains facts only. Everything that depends on the fields of a type interprets
//! it:
//!
//! - [`decode`]: strict decoding of JSON, with the findings and error texts of kube-apiserver.
//! - [`convert`]: conversion of objects that a patch or an apply produced.
//! - [`canonical`]: the fields that kube-apiserver encodes: empty and unset ones are omitted.
//! - [`mod@write`]: JSON with fields in the order of their declarations.
//! - [`protobuf`]: Kubernetes' protobuf encoding.
//! - [`openapi`]: OpenAPI schemas, which are also the merge types of patches and applies.
//!
//! # The format of the table
//!
//! ```text
//! package k8s.io/api/apps/v1 group=apps
//!
//! resource deployments kind=Deployment singular=deployment namespaced short=deploy categories=all verbs=create,…
//!   status kind=Deployment verbs=get,patch,update
//!
//! struct DeploymentSpec
//!   replicas *int32 #1
//!   selector *meta/v1.LabelSelector #2 always required
//!   conditions []DeploymentCondition #6 patch=merge(type) list=map(type)
//!
//! type DeploymentStrategyType string enum=Recreate,RollingUpdate
//!
//! custom Time time
//! ```
//!
//! A package is named by the end of its import path (`apps/v1`); names without a package belong to the same
//! one. A field has its JSON name (or `inline`), its Go type, and attributes:
//!
//! - `#6`: the protobuf field number.
//! - `always`, `omitzero`: no `omitempty` in the JSON tag; `omitzero` in its place.
//! - `required`: required in OpenAPI.
//! - `go=APIVersion`: the Go name, if it is not the capitalized JSON name.
//! - `list=map(type)`, `map=atomic`, `struct=atomic`: how server-side apply merges it.
//! - `patch=merge(type)`: how strategic merge patches merge it.
//! - `enum=…`, `values=…`: the values of an enumeration; OpenAPI names only the former.
//! - `default=…`, `nullable`, `union`, `unionDiscriminator`: as in OpenAPI.
//! - `gate=…`: the feature gate without which the field is dropped.
//! - `since=1.34`, `until=1.36`: the first and the last release that has it.
//! - `message`: a list that is a protobuf message of its own.
//! - `+maxItems=8`: a tag of Kubernetes' declarative validation (`+k8s:maxItems=8`).
//!
//! ```
//! use scantling_apitypes::TypeTable;
//!
//! let table = TypeTable::latest();
//! let deployment = table.kind("apps", "v1", "Deployment").unwrap();
//! let fields: Vec<&str> = deployment.members().iter().map(|f| f.name).collect();
//! assert_eq!(fields, ["kind", "apiVersion", "metadata", "spec", "status"]);
//! ```
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-apitypes is pure"
)]

pub mod canonical;
pub mod convert;
pub mod decode;
pub mod openapi;
pub mod protobuf;
mod table;
pub mod write;

/// The struct that the custom schema types of the same package contain.
const SCHEMA: &str = "JSONSchemaProps";

pub use decode::DecodeError;
pub use table::{
    ApiPackage, ApiResource, ApiSubresource, Attributes, Codec, Extensions, FieldDef, GoType, Presence,
    Release, Scope, StructDef, TYPES_OF_ALL_VERSIONS, TableError, TypeDef, TypeId, TypeKind, TypeTable,
    UNVERSIONED_TYPES,
};
