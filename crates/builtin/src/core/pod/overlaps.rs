//! Warnings about files of a volume whose paths overlap.

use super::warnings::MAX_WARNINGS;
use crate::Cursor;
use scantling_value::go::quote;
use std::collections::BTreeMap;
use std::fmt;

/// A path of a file, and where it comes from.
#[derive(Clone, PartialEq)]
struct File<'v> {
    path: &'v str,
    source: String,
}

impl fmt::Display for File<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = quote(self.path);
        match self.source.as_str() {
            "" => f.write_str(&path),
            source => write!(f, "{path} ({source})"),
        }
    }
}

/// Adds the warnings about volumes.
pub(super) fn warn(volumes: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    for volume in volumes.items() {
        let name = quote(volume.field("name").str());
        for (field, name_field, kind) in [
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("downwardAPI", "", "DownwardAPI"),
        ] {
            let source = volume.field(field);
            let about = match name_field {
                "" => kind.to_owned(),
                field => format!("{kind} {}", quote(source.field(field).str())),
            };
            overlaps(&files(&source, ""), |a, b| {
                warnings.push(format!(
                    "volume {name} ({about}): overlapping paths: {a} with {b}"
                ));
            });
        }
        let projected = volume.field("projected");
        let mut all = Vec::new();
        for source in projected.field("sources").items() {
            if source.map().is_none_or(scantling_value::Map::is_empty) {
                warnings.push(format!("volume {name} (Projected) has no sources provided"));
            } else {
                all.extend(projected_files(&source));
            }
        }
        overlaps(&all, |a, b| {
            warnings.push(format!(
                "volume {name} (Projected): overlapping paths: {a} with {b}"
            ));
        });
    }
}

fn files<'v>(source: &Cursor<'v, '_>, name: &str) -> Vec<File<'v>> {
    let items = source.field("items");
    let file = |item: &'v scantling_value::Value| File {
        path: item.get_str("path").trim_end_matches('/'),
        source: name.to_owned(),
    };
    items.list().iter().map(file).collect()
}

fn projected_files<'v>(source: &Cursor<'v, '_>) -> Vec<File<'v>> {
    let single = |at: &Cursor<'v, '_>, field: &str, source: String| File {
        path: at.field(field).str().trim_end_matches('/'),
        source,
    };
    let [map, secret, downward, token, bundle, certificate] = [
        "configMap",
        "secret",
        "downwardAPI",
        "serviceAccountToken",
        "clusterTrustBundle",
        "podCertificate",
    ]
    .map(|field| source.field(field));
    if map.field("items").is_set() {
        files(&map, &format!("ConfigMap {}", quote(map.field("name").str())))
    } else if secret.field("items").is_set() {
        files(&secret, &format!("Secret {}", quote(secret.field("name").str())))
    } else if downward.field("items").is_set() {
        files(&downward, "DownwardAPI")
    } else if token.is_set() {
        vec![single(&token, "path", "ServiceAccountToken".into())]
    } else if bundle.is_set() {
        let name = match bundle.field("name").is_set() {
            true => bundle.field("name").str(),
            false => bundle.field("signerName").str(),
        };
        vec![single(
            &bundle,
            "path",
            format!("ClusterTrustBundle {}", quote(name)),
        )]
    } else {
        let paths = [
            ("certificateChainPath", "PodCertificate chain"),
            ("keyPath", "PodCertificate key"),
            ("credentialBundlePath", "PodCertificate credential bundle"),
        ];
        let set = paths
            .into_iter()
            .filter(|(field, _)| !certificate.field(field).str().is_empty());
        set.map(|(field, name)| single(&certificate, field, name.to_owned()))
            .collect()
    }
}

/// Calls a function for each pair of files whose paths overlap. The number of calls is bounded.
fn overlaps<'v>(files: &[File<'v>], mut report: impl FnMut(&File<'v>, &File<'v>)) {
    let is_within = |inner: &str, outer: &str| {
        let rest = inner.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let involved = involved(files);
    let mut found = 0;
    for (i, file) in involved.iter().enumerate() {
        for other in involved.iter().take(i) {
            if is_within(file.path, other.path) || is_within(other.path, file.path) {
                report(file, other);
                found += 1;
            }
            if found >= MAX_WARNINGS {
                return;
            }
        }
    }
}

/// Returns the files whose paths overlap with another one. Usually there are none, and no pairs are compared.
fn involved<'f, 'v>(files: &'f [File<'v>]) -> Vec<&'f File<'v>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.path.is_empty()) {
        *counts.entry(file.path).or_default() += 1;
    }
    let has_parent = |path: &str| {
        let mut ends = path.match_indices('/').map(|(i, _)| i);
        ends.any(|end| path.get(..end).is_some_and(|parent| counts.contains_key(parent)))
    };
    let has_child = |path: &str| {
        // If any path is within this one, the next path in order is, too.
        let prefix = format!("{path}/");
        let mut after = counts.range(prefix.as_str()..);
        after.next().is_some_and(|(child, _)| child.starts_with(&prefix))
    };
    let is_involved = |file: &&File<'_>| match counts.get(file.path) {
        None => false,
        Some(2..) => true,
        Some(_) => has_parent(file.path) || has_child(file.path),
    };
    files.iter().filter(is_involved).collect()
}
