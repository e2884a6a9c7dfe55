//! Licences, bans, duplicate versions and unused dependencies.
//!
//! The rules are those of `deny.toml`, so `cargo deny check` agrees if it is installed; this check needs no
//! other program and no network.

use super::{array, collect, string};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Dependencies that no source file names, with the reason.
const UNNAMED: &[(&str, &str)] = &[
    (
        "ciborium-io",
        "its `std` feature, which ciborium does not switch on",
    ),
    (
        "k8s-openapi",
        "carries the descriptions of API types, which a build script reads from its package",
    ),
    (
        "serde-sarif",
        "carries the schema of SARIF, which a test reads from its package",
    ),
];

pub(super) fn check(root: &Path, metadata: &Value) -> Result<Vec<String>, String> {
    let deny = fs::read_to_string(root.join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let allowed = quoted(list(&deny, "allow"));
    let banned = crates(list(&deny, "deny"));
    let skipped = crates(list(&deny, "skip"));
    let mut findings = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in array(metadata, "packages") {
        let (name, version, licence) = (
            string(package, "name"),
            string(package, "version"),
            string(package, "license"),
        );
        versions.entry(name).or_default().insert(version);
        if !licence_is_allowed(licence, &allowed) {
            findings.push(format!(
                "{name} {version}: licence `{licence}` is not in deny.toml"
            ));
        }
        if banned.contains(name) {
            findings.push(format!("{name} {version} is banned in deny.toml"));
        }
    }
    for (name, versions) in &versions {
        if versions.len() > 1 && !skipped.contains(*name) {
            let versions: Vec<&str> = versions.iter().copied().collect();
            findings.push(format!(
                "{name} has the versions {}: use one, or skip it in deny.toml",
                versions.join(", ")
            ));
        }
    }
    // A stale exception would hide the next duplicate.
    for name in &skipped {
        if versions
            .get(name.as_str())
            .is_none_or(|versions| versions.len() < 2)
        {
            findings.push(format!("deny.toml skips {name}, which has one version"));
        }
    }
    for package in array(metadata, "packages")
        .iter()
        // Packages of the workspace have no source.
        .filter(|package| package.get("source").is_some_and(Value::is_null))
    {
        findings.extend(unused(package)?);
    }
    Ok(findings)
}

/// Returns the text of an array in a TOML file.
fn list<'t>(toml: &'t str, key: &str) -> &'t str {
    // A search instead of a TOML parser: this check must not add dependencies of its own.
    let start = toml.find(&format!("\n{key} = ["));
    let rest = start.and_then(|at| toml.get(at..)).unwrap_or_default();
    rest.split("\n[")
        .next()
        .and_then(|section| section.split("]\n").next())
        .unwrap_or_default()
}

fn quoted(list: &str) -> BTreeSet<String> {
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the names in a list of `{ crate = "name", … }`.
fn crates(list: &str) -> BTreeSet<String> {
    let names = list
        .split("crate = \"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    names.map(str::to_owned).collect()
}

/// Evaluates an SPDX expression: all parts of at least one alternative must be allowed.
fn licence_is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // A slash is an older way to write OR. Without parentheses, AND binds all parts of an alternative.
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression.split(" OR ").any(|alternative| {
        alternative.split(" AND ").all(|part| {
            let part = part.trim();
            allowed.contains(part)
                || part
                    .split_once(" WITH ")
                    .is_some_and(|(licence, _)| allowed.contains(licence))
        })
    })
}

/// Returns the dependencies of a package that none of its source files names.
fn unused(package: &Value) -> Result<Vec<String>, String> {
    let manifest = Path::new(string(package, "manifest_path"));
    let mut files = Vec::new();
    collect(manifest.parent().unwrap_or(manifest), "rs", &mut files)?;
    let mut text = String::new();
    for file in files {
        text += &fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let mut findings = Vec::new();
    for dependency in array(package, "dependencies") {
        let name = string(dependency, "name");
        // A renamed dependency appears in the sources under its new name.
        let rename = dependency.get("rename").and_then(Value::as_str).unwrap_or(name);
        let path = rename.replace('-', "_");
        let named = [
            format!("{path}::"),
            format!("use {path};"),
            format!("use {path} as "),
        ];
        if !named.iter().any(|usage| text.contains(usage)) && !UNNAMED.iter().any(|(known, _)| *known == name)
        {
            findings.push(format!(
                "{}: the dependency {name} is unused",
                string(package, "name")
            ));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences() {
        let allowed = quoted(r#"["MIT", "Apache-2.0", "Zlib"]"#);
        for (expression, expected) in [
            ("MIT", true),
            ("MIT/GPL-3.0", true),
            ("(GPL-3.0 OR MIT) AND Zlib", true),
            ("MIT AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("", false),
        ] {
            assert_eq!(licence_is_allowed(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn lists_of_deny_toml() {
        let toml = "[licenses]\nallow = [\"MIT\"]\n\n[bans]\nskip = [\n  { crate = \"a\" },\n]\ndeny = [\n  { crate = \"b\" },\n]\n";
        assert!(quoted(list(toml, "allow")).contains("MIT"));
        assert_eq!(crates(list(toml, "skip")).into_iter().collect::<Vec<_>>(), ["a"]);
        assert_eq!(crates(list(toml, "deny")).into_iter().collect::<Vec<_>>(), ["b"]);
    }
}
