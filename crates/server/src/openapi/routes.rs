//! The documents of what is no resource: the version, and which groups and versions there are.

use super::paths::{First, word};
use super::{META, models, object, reference};
use crate::codec::media::Encoding;
use crate::kinds::kind::Kinds;
use scantling_value::{Map, Value};

/// A path that is answered with a document of a fixed type.
struct Route<'n> {
    path: String,
    tag: &'n str,
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

/// The document of a name.
pub(super) fn document(kinds: &Kinds, name: &str) -> Result<Value, String> {
    let route = route(kinds, name).ok_or_else(|| format!("there is no route {name}"))?;
    let schema = object([("schema", reference(&route.model))]);
    let content = route.encodings.iter().map(|e| (e.content_type(), schema.clone()));
    let answers = [
        (
            "200",
            object([
                ("description", "OK".into()),
                ("content", Value::Object(content.collect())),
            ]),
        ),
        ("401", object([("description", "Unauthorized".into())])),
    ];
    let operation = object([
        ("tags", Value::from(vec![route.tag])),
        ("description", route.description.into()),
        ("operationId", route.operation.into()),
        ("responses", Value::Object(answers.into_iter().collect())),
    ]);
    let mut schemas = Map::new();
    schemas.insert(route.model.clone(), models::named_model(&route.model)?);
    models::add_references(&mut schemas);
    Ok(object([
        ("openapi", "3.0.0".into()),
        (
            "info",
            object([("title", "Kubernetes".into()), ("version", "1.37".into())]),
        ),
        (
            "paths",
            Map::from_iter([(route.path, object([("get", operation)]))]).into(),
        ),
        ("components", object([("schemas", schemas.into())])),
    ]))
}

fn route<'n>(kinds: &Kinds, name: &'n str) -> Option<Route<'n>> {
    let group = name.strip_prefix("apis/");
    let (tag, description, operation, model, encodings): (_, _, _, _, &[Encoding]) = match (name, group) {
        ("version", _) => (
            "version",
            "get the version information for this server",
            "getCodeVersion".to_owned(),
            "io.k8s.apimachinery.pkg.version.Info".to_owned(),
            &[Encoding::Json],
        ),
        ("api", _) => (
            "core",
            "get available API versions",
            "getCoreAPIVersions".to_owned(),
            format!("{META}.APIVersions"),
            Encoding::USUAL,
        ),
        ("apis", _) => (
            "apis",
            "get available API versions",
            "getAPIVersions".to_owned(),
            format!("{META}.APIGroupList"),
            Encoding::USUAL,
        ),
        (_, Some(group)) => {
            let known = Some(group).filter(|g| !g.is_empty() && kinds.has_builtin_group(g))?;
            let tag = known.split_once('.').map_or(known, |(tag, _)| tag);
            (
                tag,
                "get information of a group",
                format!("get{}APIGroup", word(tag, First::Large)),
                format!("{META}.APIGroup"),
                Encoding::USUAL,
            )
        }
        _ => return None,
    };
    Some(Route {
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
