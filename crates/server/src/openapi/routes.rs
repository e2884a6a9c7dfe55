//! Documents outside resources: the version, and the groups and versions of the API.

use super::models::ModelRenderer;
use super::names::GroupVersionWords;
use super::operations::content;
use super::{META, object, path_of, reference, v2};
use crate::codec::media::Encoding;
use crate::kinds::kind::Kinds;
use scantling_value::{Map, Str, Value};

/// A path that returns a document of a fixed type.
struct Route {
    path: String,
    tag: String,
    description: &'static str,
    operation: String,
    model: String,
    encodings: &'static [Encoding],
}

/// The names of these documents.
pub(super) fn names(kinds: &Kinds) -> impl Iterator<Item = String> {
    let groups = kinds
        .groups()
        .filter(|g| !g.is_empty() && kinds.has_builtin_group(g));
    let groups = groups.map(|g| format!("apis/{g}"));
    ["version", "api", "apis"]
        .map(str::to_owned)
        .into_iter()
        .chain(groups)
}

/// Builds the document with a name.
pub(super) fn document(kinds: &Kinds, name: &str) -> Result<Value, String> {
    let route = route(kinds, name).ok_or_else(|| format!("there is no route {name}"))?;
    let renderer = ModelRenderer::for_version("", "v1");
    let mut schemas = Map::from_iter([(route.model.as_str(), renderer.model(&route.model)?)]);
    renderer.add_references(std::iter::empty(), &mut schemas);
    let components = [("schemas", schemas.into()), ("securitySchemes", v2::security().1)];
    Ok(object([
        ("openapi", "3.0.0".into()),
        ("info", v2::info()),
        ("paths", Map::from_iter([route.path_item()]).into()),
        ("components", object(components)),
    ]))
}

/// The paths of these documents, including those of versions.
pub(super) fn paths(kinds: &Kinds) -> Vec<(Str, Value)> {
    let built_in = kinds.groups().filter(|g| kinds.has_builtin_group(g));
    let versions = built_in.flat_map(|g| {
        let versions = crate::discovery::served_versions(kinds, g).into_iter();
        versions
            .filter(|v| kinds.serves_builtin(g, v))
            .map(|v| resources(g, &v))
            .collect::<Vec<_>>()
    });
    let routes = names(kinds).filter_map(|name| Some(route(kinds, &name)?.path_item()));
    routes.chain(versions).collect()
}

/// The path that lists the resources of a built-in version.
pub(super) fn resources(group: &str, version: &str) -> (Str, Value) {
    let words = GroupVersionWords::new(group, Some(version));
    let route = Route {
        path: format!("/{}/", path_of(group, version)),
        tag: words.tag,
        description: "get available resources",
        operation: format!("get{}APIResources", words.word),
        model: format!("{META}.APIResourceList"),
        encodings: Encoding::USUAL,
    };
    route.path_item()
}

impl Route {
    fn path_item(self) -> (Str, Value) {
        let types = self.encodings.iter().map(|e| e.content_type()).collect();
        let content = content(types, &reference(&self.model));
        let responses = object([
            (
                "200",
                object([("description", "OK".into()), ("content", content)]),
            ),
            ("401", object([("description", "Unauthorized".into())])),
        ]);
        let operation = object([
            ("tags", Value::from(vec![self.tag])),
            ("description", self.description.into()),
            ("operationId", self.operation.into()),
            ("responses", responses),
        ]);
        (self.path.into(), object([("get", operation)]))
    }
}

fn route(kinds: &Kinds, name: &str) -> Option<Route> {
    let (tag, description, operation, model, encodings): (_, _, _, _, &[Encoding]) = match name {
        "version" => (
            "version".to_owned(),
            "get the version information for this server",
            "getCodeVersion".to_owned(),
            "io.k8s.apimachinery.pkg.version.Info".to_owned(),
            &[Encoding::Json],
        ),
        "api" => (
            "core".to_owned(),
            "get available API versions",
            "getCoreAPIVersions".to_owned(),
            format!("{META}.APIVersions"),
            Encoding::USUAL,
        ),
        "apis" => (
            "apis".to_owned(),
            "get available API versions",
            "getAPIVersions".to_owned(),
            format!("{META}.APIGroupList"),
            Encoding::USUAL,
        ),
        _ => {
            let group = name
                .strip_prefix("apis/")
                .filter(|g| !g.is_empty() && kinds.has_builtin_group(g))?;
            let words = GroupVersionWords::new(group, None);
            (
                words.tag,
                "get information of a group",
                format!("get{}APIGroup", words.word),
                format!("{META}.APIGroup"),
                Encoding::USUAL,
            )
        }
    };
    Some(Route {
        // kube-apiserver documents these paths with a trailing slash, and serves them without it, too.
        path: format!("/{name}/"),
        tag,
        description,
        operation,
        model,
        encodings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_document_with_its_model() {
        let kinds = crate::kinds::builtin::test_kinds();
        for name in names(&kinds) {
            let document = document(&kinds, &name).unwrap();
            let schemas = document.at(["components", "schemas"]).and_then(Value::as_object);
            assert!(
                schemas.is_some_and(|s| s.values().all(|s| s.get("type").is_some())),
                "{name}"
            );
        }
        assert!(document(&kinds, "apis/example.com").is_err() && document(&kinds, "apis/").is_err());
    }
}
