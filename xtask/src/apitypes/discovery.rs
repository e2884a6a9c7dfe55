//! Reads the resources of a release from its discovery documents.

use super::git::Repository;
use serde_json::Value;
use std::collections::BTreeMap;

const FOLDER: &str = "api/discovery";

/// A resource and its subresources, each as one line of facts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DiscoveredResource {
    pub(super) name: String,
    pub(super) facts: Vec<String>,
    pub(super) subresources: Vec<(String, Vec<String>)>,
}

/// Resources by group and version.
pub(super) type Resources = BTreeMap<(String, String), Vec<DiscoveredResource>>;

/// Reads the resources of a release. `groups` translates group names to packages of types.
pub(super) fn read(repository: &Repository, commit: &str) -> Result<Resources, String> {
    // Documents of groups and versions have `__` in their names.
    let files = repository.files(commit, &[FOLDER], |path| path.matches("__").count() > 0)?;
    let mut resources = Resources::new();
    for (path, text) in files {
        let document: Value = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
        if text_of(&document, "kind") != "APIResourceList" {
            continue;
        }
        let group_version = text_of(&document, "groupVersion");
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let listed = document.get("resources").and_then(Value::as_array);
        let mut found: Vec<DiscoveredResource> = Vec::new();
        for entry in listed.into_iter().flatten() {
            let name = text_of(entry, "name");
            match name.split_once('/') {
                Some((resource, subresource)) => {
                    let parent = match found.iter().position(|r| r.name == resource) {
                        Some(at) => found.get_mut(at),
                        // Some resources exist only for their subresources.
                        None => None,
                    };
                    if let Some(parent) = parent {
                        parent
                            .subresources
                            .push((subresource.to_owned(), facts(entry, false)));
                    }
                }
                None => found.push(DiscoveredResource {
                    name: name.to_owned(),
                    facts: facts(entry, true),
                    subresources: Vec::new(),
                }),
            }
        }
        resources.insert((group.to_owned(), version.to_owned()), found);
    }
    Ok(resources)
}

fn facts(entry: &Value, is_whole: bool) -> Vec<String> {
    let mut facts = Vec::new();
    let kind = text_of(entry, "kind");
    let (group, version) = (text_of(entry, "group"), text_of(entry, "version"));
    facts.push(match (group, version) {
        ("", "") => format!("kind={kind}"),
        ("", version) => format!("kind={version}/{kind}"),
        (group, version) => format!("kind={group}/{version}/{kind}"),
    });
    if is_whole {
        facts.push(format!("singular={}", text_of(entry, "singularName")));
        let is_namespaced = entry.get("namespaced") == Some(&Value::Bool(true));
        facts.push(if is_namespaced { "namespaced" } else { "cluster" }.to_owned());
    }
    for (key, fact) in [
        ("shortNames", "short"),
        ("categories", "categories"),
        ("verbs", "verbs"),
    ] {
        let values = entry.get(key).and_then(Value::as_array);
        let values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        if !values.is_empty() {
            facts.push(format!("{fact}={}", values.join(",")));
        }
    }
    let hash = text_of(entry, "storageVersionHash");
    if !hash.is_empty() {
        facts.push(format!("hash={hash}"));
    }
    facts
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
