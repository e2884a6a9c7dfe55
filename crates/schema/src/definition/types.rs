//! The types of CRDs and their schemas in the table of API types.

use super::ApiVersion;
use scantling_apitypes::{TypeDef, TypeTable};
use scantling_value::Map;
use std::sync::LazyLock;

/// The type of CRDs in a version.
pub(super) fn definition(version: ApiVersion) -> &'static TypeDef {
    static V1: LazyLock<&TypeDef> = LazyLock::new(|| known("apiextensions/v1", "CustomResourceDefinition"));
    static V1BETA1: LazyLock<&TypeDef> =
        LazyLock::new(|| known("apiextensions/v1beta1", "CustomResourceDefinition"));
    match version {
        ApiVersion::V1 => &V1,
        ApiVersion::V1Beta1 => &V1BETA1,
    }
}

/// A schema as kube-apiserver encodes it: no empty values, no unset keywords.
pub(crate) fn canonical_schema(members: Map) -> Map {
    static SCHEMA: LazyLock<&TypeDef> = LazyLock::new(|| known("apiextensions/v1", "JSONSchemaProps"));
    TypeTable::latest().canonical(&SCHEMA, members)
}

fn known(package: &str, name: &str) -> &'static TypeDef {
    TypeTable::latest().known(package, name)
}
