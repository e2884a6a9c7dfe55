//! Snapshots of the public API of the library crates (`xtask/api/<crate>.txt`).
//!
//! The lint `unreachable_pub` ensures that every `pub` item is reachable from outside, so a list of the `pub`
//! items in the formatted sources is the public API. A change of the API shows in the diff of its snapshot.

use super::RustFile;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The crates with an API for other programs.
const CRATES: &[&str] = &["admit", "cel", "merge", "schema", "server", "store", "value"];

pub(super) fn check(root: &Path, files: &[RustFile], bless: bool) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for name in CRATES {
        let folder = format!("crates/{name}/src/");
        let sources = files
            .iter()
            .filter_map(|file| Some((file.name.strip_prefix(&folder)?, file.text.as_str())));
        let found = snapshot(sources);
        let path = root.join("xtask/api").join(format!("{name}.txt"));
        let fail = |e: std::io::Error| format!("{}: {e}", path.display());
        if bless {
            fs::write(&path, found).map_err(fail)?;
        } else if fs::read_to_string(&path).map_err(fail)? != found {
            findings.push(format!(
                "the public API of {name} changed: review `cargo xtask tidy --bless`"
            ));
        }
    }
    Ok(findings)
}

/// Lists the `pub` items of some files, each with its module and the item that contains it.
fn snapshot<'f>(files: impl Iterator<Item = (&'f str, &'f str)>) -> String {
    let mut modules: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, text) in files {
        let module = file.trim_end_matches(".rs").replace('/', "::");
        modules.entry(module).or_default().extend(items(text));
    }
    let mut out = String::new();
    for (module, items) in modules {
        for item in items {
            out += &format!("{module}: {item}\n");
        }
    }
    out
}

fn items(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    // The header of the top-level item around the current line.
    let mut container = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        // Tests are the last item of a file.
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let indent = line.len() - line.trim_start().len();
        let is_item = line.trim_start().starts_with("pub ");
        if indent == 0 && (is_item || line.starts_with("impl")) {
            container = header(line, &mut lines);
            if is_item {
                out.push(container.clone());
            }
        } else if indent == 0 && line.starts_with('}') {
            container.clear();
        } else if indent == 4 && is_item && !container.is_empty() {
            // Only one level is followed: formatted members are indented by four spaces.
            let member = header(line.trim_start(), &mut lines);
            out.push(format!("{} / {member}", container.trim_start_matches("pub ")));
        } else if indent == 4 && container.starts_with("pub trait") && line.trim_start().starts_with("fn ") {
            out.push(format!(
                "{} / {}",
                container.trim_start_matches("pub "),
                header(line.trim_start(), &mut lines)
            ));
        }
    }
    out
}

/// Joins the lines of an item up to its body.
fn header<'l>(first: &str, lines: &mut impl Iterator<Item = &'l str>) -> String {
    let mut whole = first.to_owned();
    let is_complete = |text: &str| {
        text.ends_with(['{', ';', ',', '}']) && text.matches('(').count() == text.matches(')').count()
    };
    while !is_complete(&whole) && !whole.contains(" = ") {
        let Some(next) = lines.next() else { break };
        whole.push(' ');
        whole.push_str(next.trim());
    }
    whole.trim_end_matches(['{', ';', ',', '}']).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_with_their_container() {
        let text = "pub struct A {\n    pub b: u8,\n    c: u8,\n}\n\nimpl A {\n    pub fn new(\n        b: u8,\n    ) -> Self {\n        A { b }\n    }\n\n    fn hidden() {}\n}\n\npub trait T {\n    fn f(&self);\n}\n\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(
            items(text),
            [
                "pub struct A",
                "struct A / pub b: u8",
                "impl A / pub fn new( b: u8, ) -> Self",
                "pub trait T",
                "trait T / fn f(&self)"
            ]
        );
    }
}
