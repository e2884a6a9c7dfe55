//! Encodes a CRD as a document.

use super::members::{MemberValue, Record};
use super::types;
use super::{ApiVersion, Definition, Spec};
use scantling_apitypes::TypeTable;
use scantling_value::{Map, Value};

/// The members of `spec` that only `v1beta1` has.
const SHARED: [&str; 5] = [
    "version",
    "validation",
    "subresources",
    "additionalPrinterColumns",
    "selectableFields",
];

impl Definition {
    /// Encodes this CRD in one of the two versions of its kind.
    pub fn encode(&self, api: ApiVersion) -> Value {
        self.clone().into_document(api)
    }

    /// Like [`Definition::encode`], but consumes the CRD and does not copy its schemas.
    pub fn into_document(self, api: ApiVersion) -> Value {
        TypeTable::latest()
            .canonical(types::definition(api), self.members(api))
            .into()
    }

    /// Like [`Definition::encode`], but keeps empty lists and maps: decoding the document gives an equal CRD,
    /// with the same errors.
    pub fn into_held_document(self, api: ApiVersion) -> Value {
        TypeTable::latest()
            .in_memory(types::definition(api), self.members(api))
            .into()
    }

    /// Converts a document of [`Definition::into_held_document`] to that of [`Definition::encode`]; `None` if
    /// they are equal.
    pub fn to_version(document: &Value, api: ApiVersion) -> Option<Value> {
        let (table, definition) = (TypeTable::latest(), types::definition(api));
        let members = document
            .as_object()
            .filter(|m| table.omits_empty_collections(definition, m))?;
        Some(table.canonical(definition, members.clone()).into())
    }

    fn members(mut self, api: ApiVersion) -> Map {
        if api == ApiVersion::V1 {
            self.spec.distribute_shared_settings();
        }
        let mut spec = self.spec.into_members(api);
        if api == ApiVersion::V1 {
            for shared in SHARED {
                spec.remove(shared);
            }
        }
        Map::from_iter([
            (
                "apiVersion",
                format!("apiextensions.k8s.io/{}", api.as_str()).into(),
            ),
            ("kind", "CustomResourceDefinition".into()),
            ("metadata", self.metadata.into()),
            ("spec", spec.into()),
            ("status", self.status.write(api)),
        ])
    }
}

/// Encodes the specification with all values: equal documents mean equal specifications.
pub(super) fn spec(s: Spec) -> Value {
    // `v1beta1` can hold a setting at the top or with versions, so encoding moves nothing.
    let members = Map::from_iter([("spec", s.write(ApiVersion::V1Beta1))]);
    TypeTable::latest()
        .canonical(types::definition(ApiVersion::V1Beta1), members)
        .remove("spec")
        .unwrap_or_default()
}
