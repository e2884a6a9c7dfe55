//! The glossary rule: a name denotes at most two types in the workspace.

use super::RustFile;
use std::collections::BTreeMap;

/// The maximum number of types with one name.
const MAX_TYPES: usize = 2;

/// Names with a conventional meaning in each module.
const CONVENTIONAL: &[&str] = &["Error", "Options", "Iter", "Parser"];

pub(super) fn check(files: &[RustFile]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let counted = |file: &&RustFile| !file.name.starts_with("bench/") && !file.name.starts_with("fuzz/");
    for RustFile { name, text } in files.iter().filter(counted) {
        for line in text.lines() {
            if let Some(type_name) = type_name(line) {
                places.entry(type_name).or_default().push(name);
            }
        }
    }
    let mut findings = Vec::new();
    for (type_name, files) in places {
        if files.len() > MAX_TYPES && !CONVENTIONAL.contains(&type_name) {
            findings.push(format!(
                "`{type_name}` names {} types, at most {MAX_TYPES}: {}",
                files.len(),
                files.join(", ")
            ));
        }
    }
    findings
}

/// Returns the name of the type that a line of formatted code defines. Associated types are indented and do not count.
fn type_name(line: &str) -> Option<&str> {
    let is_nested_type = line.starts_with(' ') && line.trim_start().starts_with("type ");
    let mut words = line
        .split([' ', '<', '(', '{', ';', ':'])
        .filter(|word| !word.is_empty());
    let mut word = words.next()?;
    if word == "pub" {
        word = words.next()?;
        if matches!(word, "crate)" | "super)") {
            word = words.next()?;
        }
    }
    let defines = matches!(word, "struct" | "enum" | "trait" | "type" | "union") && !is_nested_type;
    let name = words.next().filter(|_| defines)?;
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names() {
        for (line, name) in [
            ("pub struct Entry {", Some("Entry")),
            ("pub(crate) enum Place<'a> {", Some("Place")),
            ("    struct Local;", Some("Local")),
            ("type Changes = HashMap<A, B>;", Some("Changes")),
            ("    type Item = u8;", None),
            ("impl Entry {", None),
            ("// struct of a thing", None),
        ] {
            assert_eq!(type_name(line), name, "{line}");
        }
    }
}
