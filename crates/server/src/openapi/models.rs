//! The schemas of built-in types, from the table of API types.

use super::{META, gvk};
use scantling_apitypes::openapi::{self, COMPONENTS};
use scantling_apitypes::{ApiPackage, Extensions, TypeTable};
use scantling_descriptions::Descriptions;
use scantling_value::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Renders the schemas of built-in types for a document. Descriptions are decompressed on first use and freed with the
/// renderer.
pub(super) struct ModelRenderer {
    descriptions: Descriptions,
    /// The versions that the document lists for types that every version has.
    versions: Vec<(String, String)>,
}

/// The groups of built-in types that kube-apiserver's main scheme does not contain.
const OUTSIDE_SCHEME: [&str; 6] = [
    "admission.k8s.io",
    "apidiscovery.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "imagepolicy.k8s.io",
    "meta.k8s.io",
];

impl ModelRenderer {
    /// The renderer for the document of a built-in version.
    pub(super) fn for_version(group: &str, version: &str) -> ModelRenderer {
        let mut versions = vec![(String::new(), "v1".to_owned())];
        if !group.is_empty() {
            versions.push((group.to_owned(), version.to_owned()));
        }
        ModelRenderer {
            descriptions: Descriptions::new(),
            versions,
        }
    }

    /// The renderer for a document that lists all versions of the scheme, and some of other groups.
    pub(super) fn for_scheme(others: &[&str]) -> ModelRenderer {
        let is_listed = |group: &str| !OUTSIDE_SCHEME.contains(&group) || others.contains(&group);
        let packages = TypeTable::latest().packages().iter();
        let mut versions: Vec<(String, String)> = packages
            .filter_map(|package| Some((package.group?, package.version())))
            .filter(|(group, _)| is_listed(group))
            .map(|(group, version)| (group.to_owned(), version.to_owned()))
            .collect();
        // kube-apiserver's documents have them sorted.
        versions.sort_unstable();
        ModelRenderer {
            descriptions: Descriptions::new(),
            versions,
        }
    }

    /// Returns the schema of a model by its full name.
    pub(super) fn model(&self, name: &str) -> Result<Value, String> {
        let table = TypeTable::latest();
        let definition = table
            .model(name)
            .ok_or_else(|| format!("there is no model {name}"))?;
        let mut schema = table.schema(definition, Extensions::NONE, self);
        if table.is_in_every_version(definition)
            && let Some(members) = schema.as_object_mut()
        {
            let kinds = self
                .versions
                .iter()
                .map(|(group, version)| gvk(group, version, definition.name));
            members.insert("x-kubernetes-group-version-kind", Value::Array(kinds.collect()));
        }
        Ok(schema)
    }

    /// Adds the models that the paths and schemas of a document refer to, directly or through other models.
    /// References that lead nowhere are data of a CRD, such as a default.
    pub(super) fn add_references<'v>(&self, paths: impl Iterator<Item = &'v Value>, schemas: &mut Map) {
        let mut todo: BTreeSet<String> = BTreeSet::new();
        paths.for_each(|path| references(path, &mut todo));
        schemas.values().for_each(|schema| references(schema, &mut todo));
        // Models refer to each other in cycles, so only those that are not there yet are followed.
        while let Some(name) = todo.pop_first() {
            if !schemas.contains_key(&name)
                && let Ok(model) = self.model(&name)
            {
                references(&model, &mut todo);
                schemas.insert(name, model);
            }
        }
    }
}

impl openapi::Descriptions for ModelRenderer {
    fn get(&self, model: &str, field: Option<&str>) -> Option<Cow<'_, str>> {
        let found = |model: &str| self.descriptions.get(model, field).map(Cow::Borrowed);
        // `k8s-openapi` has one type for all lists, and no old versions.
        let of_list = || {
            let (_, name) = model.rsplit_once('.')?;
            let kind = name.strip_suffix("List")?;
            match field {
                None => Some(format!("{name} is a list of {kind} objects.").into()),
                Some("items") => Some(format!("The {kind} objects.").into()),
                // It has the same metadata.
                Some(_) => found(&format!("{META}.Status")),
            }
        };
        found(model)
            .or_else(|| found(&model.replace(".v1beta1.", ".v1.")))
            .or_else(of_list)
    }
}

/// The package of the models of a group and version; the names of CRDs' groups are reversed.
pub(crate) fn package(group: &str, version: &str) -> String {
    let of_table = table_package(group).map(ApiPackage::model);
    let package = match of_table.as_deref().and_then(|model| model.rsplit_once('.')) {
        Some((package, _)) => package.to_owned(),
        None => {
            let mut parts: Vec<&str> = group.split('.').collect();
            parts.reverse();
            parts.join(".")
        }
    };
    format!("{package}.{version}")
}

/// A package of the table whose types belong to a group.
fn table_package(group: &str) -> Option<&'static ApiPackage> {
    let mut packages = TypeTable::latest().packages().iter();
    packages.find(|package| package.group == Some(group))
}

/// Returns whether the schema of a CRD's kind, or of its list, would have the name of a built-in model.
pub(super) fn is_taken(group: &str, name: &str) -> bool {
    let model = name.strip_suffix("List").unwrap_or(name);
    table_package(group).is_none() && TypeTable::latest().model(model).is_some()
}

/// Collects the names of the models that a document refers to.
fn references(schema: &Value, out: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(s) if key == "$ref" => {
                        out.extend(s.strip_prefix(COMPONENTS).map(str::to_owned));
                    }
                    other => references(other, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_types_are_described() {
        let table = TypeTable::latest();
        let renderer = ModelRenderer::for_version("", "v1");
        let undescribed = table
            .resources()
            .iter()
            .filter(|r| r.version == "v1")
            .filter_map(|resource| {
                let name = crate::openapi::schema_name(resource.group, resource.version, resource.kind());
                let model = renderer.model(&name).unwrap();
                let list = renderer
                    .model(&format!("{name}List"))
                    .is_ok_and(|list| list.get("description").is_none());
                (model.get("description").is_none() || list).then_some(name)
            });
        assert_eq!(undescribed.collect::<Vec<_>>(), Vec::<String>::new());
    }

    #[test]
    fn documents_have_no_dangling_references() {
        let renderer = ModelRenderer::for_version("", "v1");
        let event = renderer.model("io.k8s.api.core.v1.Event").unwrap();
        let mut schemas = Map::from_iter([("Event", event)]);
        renderer.add_references(std::iter::empty(), &mut schemas);
        let names: Vec<&str> = schemas
            .keys()
            .map(|k| k.rsplit('.').next().unwrap_or(k))
            .collect();
        assert_eq!(
            names,
            [
                "Event",
                "EventSeries",
                "EventSource",
                "ObjectReference",
                "FieldsV1",
                "ManagedFieldsEntry",
                "MicroTime",
                "ObjectMeta",
                "OwnerReference",
                "Time"
            ]
        );
    }
}
