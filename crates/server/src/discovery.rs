//! Discovery documents: groups, versions and resources, plain and aggregated.

use crate::codec::media::{self, Accept, Encoding};
use crate::kinds::kind::{Kind, Kinds};
use scantling_schema::definition::compare_versions;
use scantling_value::{Map, Value};
use std::sync::Arc;

/// The root of a discovery document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Root {
    /// `/api`: the core group.
    Core,
    /// `/apis`: all others.
    Groups,
}

/// The encoding of the aggregated form of `/api` and `/apis`, if the client accepts that form. Then the plain form is
/// not considered, whatever its preference.
pub(crate) fn aggregated_encoding(accept: Accept<'_>) -> Option<Encoding> {
    let clauses = media::clauses(accept.text.unwrap_or_default());
    clauses.iter().find_map(|clause| {
        let asked = [clause.param("g"), clause.param("v"), clause.param("as")];
        let aggregated = asked
            == [
                Some("apidiscovery.k8s.io"),
                Some("v2"),
                Some("APIGroupDiscoveryList"),
            ];
        // The aggregated document has no protobuf message.
        let mut encodings = accept.encodings.iter().filter(|e| **e != Encoding::Protobuf);
        encodings
            .find(|e| aggregated && clause.takes(e.content_type()))
            .copied()
    })
}

/// The media type of the aggregated form.
pub(crate) fn aggregated_type(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Encoding::Cbor => "application/cbor;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        Encoding::Json | Encoding::Protobuf => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        }
    }
}

fn object<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Object(entries.into_iter().collect())
}

fn texts(list: &[impl AsRef<str>]) -> Value {
    Value::Array(list.iter().map(|s| s.as_ref().into()).collect())
}

/// `group/version`, or the version alone in the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

/// `/api`
pub(crate) fn core_versions(address: &str) -> Value {
    let server = object([
        ("clientCIDR", "0.0.0.0/0".into()),
        ("serverAddress", address.into()),
    ]);
    object([
        ("kind", "APIVersions".into()),
        ("versions", texts(&["v1"])),
        ("serverAddressByClientCIDRs", Value::Array(vec![server])),
    ])
}

/// `/apis/<group>`
pub(crate) fn group(kinds: &Kinds, name: &str) -> Option<Value> {
    let mut g = group_entry(kinds, name)?;
    let m = g.as_object_mut()?;
    m.insert("kind", "APIGroup".into());
    m.insert("apiVersion", "v1".into());
    Some(g)
}

/// `/apis`
pub(crate) fn groups(kinds: &Kinds) -> Value {
    let groups = kinds
        .groups()
        .filter(|g| !g.is_empty())
        .filter_map(|g| group_entry(kinds, g))
        .collect();
    object([
        ("kind", "APIGroupList".into()),
        ("apiVersion", "v1".into()),
        ("groups", Value::Array(groups)),
    ])
}

fn group_entry(kinds: &Kinds, name: &str) -> Option<Value> {
    let versions = served_versions(kinds, name);
    let entry = |v: &String| {
        object([
            ("groupVersion", api_version(name, v).into()),
            ("version", v.as_str().into()),
        ])
    };
    // A group without served versions is not listed.
    let preferred = versions.first().map(entry)?;
    let all = versions.iter().map(entry).collect();
    Some(object([
        ("name", name.into()),
        ("versions", Value::Array(all)),
        ("preferredVersion", preferred),
    ]))
}

/// The served versions of a group, the preferred one first. Those of CRDs precede built-in ones.
pub(crate) fn served_versions(kinds: &Kinds, group: &str) -> Vec<String> {
    let mut out = versions(kinds.overshadowed(group));
    out.retain(|version| !kinds.serves_builtin(group, version));
    out.extend(versions(kinds.in_group(group)));
    out
}

/// The served versions of some kinds, the preferred one first.
fn versions<'a>(kinds: impl Iterator<Item = &'a Arc<Kind>>) -> Vec<String> {
    let mut out: Vec<String> = kinds
        .flat_map(|k| k.versions.iter().filter(|v| v.served).map(|v| v.name.clone()))
        .collect();
    out.sort_by(|a, b| compare_versions(b, a));
    out.dedup();
    out
}

/// `/apis/<group>/<version>`
pub(crate) fn resources(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    let mut any = false;
    for kind in kinds.in_group(group) {
        let Some(v) = kind.served_version(version) else {
            continue;
        };
        any = true;
        list.push(resource(kind));
        for sub in &v.subresources {
            let mut m: Map = [
                ("name", Value::from(format!("{}/{}", kind.plural, sub.name))),
                ("singularName", "".into()),
                ("namespaced", kind.namespaced.into()),
                ("kind", (*sub.kind).into()),
                ("verbs", texts(&sub.verbs)),
            ]
            .into_iter()
            .collect();
            if let (Some(group), Some(version)) = (sub.group, sub.version) {
                m.insert("group", group.into());
                m.insert("version", version.into());
            }
            list.push(m.into());
        }
    }
    any.then(|| {
        let mut document: Map = [
            ("kind", Value::from("APIResourceList")),
            ("groupVersion", api_version(group, version).into()),
            ("resources", Value::Array(list)),
        ]
        .into_iter()
        .collect();
        // The list of the core group has no apiVersion.
        if !group.is_empty() {
            document.insert("apiVersion", "v1".into());
        }
        document.into()
    })
}

fn resource(kind: &Kind) -> Value {
    let mut m: Map = [
        ("name", Value::from(kind.plural.as_str())),
        ("singularName", kind.singular.as_str().into()),
        ("namespaced", kind.namespaced.into()),
        ("kind", kind.kind.as_str().into()),
        ("verbs", texts(&kind.verbs)),
    ]
    .into_iter()
    .collect();
    if let Some(hash) = &kind.storage_hash {
        m.insert("storageVersionHash", hash.as_str().into());
    }
    if !kind.short_names.is_empty() {
        m.insert("shortNames", texts(&kind.short_names));
    }
    if !kind.categories.is_empty() {
        m.insert("categories", texts(&kind.categories));
    }
    m.into()
}

/// `/api` or `/apis` with everything below it in one document.
pub(crate) fn aggregated(kinds: &Kinds, root: Root) -> Value {
    let groups = kinds.groups().filter(|g| g.is_empty() == (root == Root::Core));
    let items = groups
        .filter_map(|g| {
            let versions: Vec<Value> = served_versions(kinds, g)
                .iter()
                .map(|v| aggregated_version(kinds, g, v))
                .collect();
            (!versions.is_empty()).then(|| {
                let metadata = if g.is_empty() {
                    Map::new()
                } else {
                    Map::from_iter([("name", Value::from(g))])
                };
                object([
                    ("metadata", metadata.into()),
                    ("versions", Value::Array(versions)),
                ])
            })
        })
        .collect();
    object([
        ("kind", "APIGroupDiscoveryList".into()),
        ("apiVersion", "apidiscovery.k8s.io/v2".into()),
        ("metadata", Map::new().into()),
        ("items", Value::Array(items)),
    ])
}

fn aggregated_version(kinds: &Kinds, group: &str, version: &str) -> Value {
    let response = |group: &str, version: &str, kind: &str| {
        object([
            ("group", group.into()),
            ("version", version.into()),
            ("kind", kind.into()),
        ])
    };
    let resources = kinds
        .listed(group, version)
        .filter_map(|kind| {
            let v = kind.served_version(version)?;
            let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
            // The group and version of built-in kinds are omitted.
            let (own_group, own_version) = if kind.built_in { ("", "") } else { (group, version) };
            let mut m: Map = [
                ("resource", Value::from(kind.plural.as_str())),
                ("responseKind", response(own_group, own_version, &kind.kind)),
                ("scope", scope.into()),
                ("singularResource", kind.singular.as_str().into()),
                ("verbs", texts(&kind.verbs)),
            ]
            .into_iter()
            .collect();
            if !kind.short_names.is_empty() {
                m.insert("shortNames", texts(&kind.short_names));
            }
            if !kind.categories.is_empty() {
                m.insert("categories", texts(&kind.categories));
            }
            let subs: Vec<Value> = v
                .subresources
                .iter()
                .map(|s| {
                    let (g, v) = s.group.zip(s.version).unwrap_or((own_group, own_version));
                    object([
                        ("subresource", s.name.into()),
                        ("responseKind", response(g, v, &s.kind)),
                        ("verbs", texts(&s.verbs)),
                    ])
                })
                .collect();
            if !subs.is_empty() {
                m.insert("subresources", Value::Array(subs));
            }
            Some(Value::from(m))
        })
        .collect();
    object([
        ("version", version.into()),
        ("resources", Value::Array(resources)),
        ("freshness", "Current".into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_by_priority() {
        let mut v = [
            "foo1",
            "v1",
            "v10",
            "v2",
            "v1beta2",
            "v11alpha2",
            "v1alpha1",
            "v3beta1",
            "foo10",
            "v12alpha1",
        ];
        v.sort_by(|a, b| compare_versions(b, a));
        let want = [
            "v10",
            "v2",
            "v1",
            "v3beta1",
            "v1beta2",
            "v12alpha1",
            "v11alpha2",
            "v1alpha1",
            "foo1",
            "foo10",
        ];
        assert_eq!(v, want);
    }
}
