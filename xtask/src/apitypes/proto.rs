//! Compares the table's field numbers with Kubernetes' `.proto` files.

use super::git::Repository;
use scantling_apitypes::TypeTable;
use std::collections::BTreeSet;

/// Compares the numbers of all messages; returns the number of messages.
pub(super) fn check(repository: &Repository, commit: &str) -> Result<usize, String> {
    let files = repository.files(commit, &["staging/src/k8s.io"], |path| {
        path.ends_with("/generated.proto")
    })?;
    let table = TypeTable::latest();
    let mut count = 0;
    let mut problems = Vec::new();
    for (path, text) in &files {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let import = folder.strip_prefix("staging/src/").unwrap_or(folder);
        let Some(package) = table.packages().iter().find(|p| p.path == import) else {
            continue;
        };
        for (message, numbers) in messages(text) {
            let s = table.find(package.id, message).and_then(|d| d.as_struct());
            let Some(s) = s else { continue };
            let ours: BTreeSet<u32> = s.declared.iter().map(|f| f.number).filter(|n| *n > 0).collect();
            count += 1;
            if ours != numbers {
                problems.push(format!(
                    "{}.{message}: {ours:?} instead of {numbers:?}",
                    package.id
                ));
            }
        }
    }
    if problems.is_empty() {
        return Ok(count);
    }
    Err(problems.join("\n"))
}

/// The messages of a file and the numbers of their fields.
fn messages(text: &str) -> Vec<(&str, BTreeSet<u32>)> {
    let mut messages: Vec<(&str, BTreeSet<u32>)> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line
            .strip_prefix("message ")
            .and_then(|rest| rest.strip_suffix(" {"))
        {
            messages.push((name, BTreeSet::new()));
        } else if let Some((declaration, number)) =
            line.strip_suffix(';').and_then(|line| line.rsplit_once(" = "))
        {
            let is_field = declaration.starts_with("  ") && !declaration.trim_start().starts_with("//");
            if let (true, Some((_, numbers)), Ok(number)) = (is_field, messages.last_mut(), number.parse()) {
                numbers.insert(number);
            }
        }
    }
    messages
}
