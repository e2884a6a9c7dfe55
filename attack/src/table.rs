//! The table of figures in a document: the rows of attacks that ran are replaced, the others stay.

use crate::AttackError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The row above the first attack.
const RULE: &str = "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --- |";
/// The columns of a row that a run does not measure: the name, the request, and the figures before the limits.
const BEFORE: usize = 5;
/// The figures of an attack that the document does not have yet.
const NO_FIGURES: [&str; 3] = ["–"; 3];

/// The measured columns of an attack.
pub(crate) struct TableRow {
    pub(crate) name: &'static str,
    pub(crate) request: &'static str,
    /// CPU, peak, p99, longest, answers.
    pub(crate) measured: [String; 5],
}

/// Replaces the rows of a document. `names` has all attacks in their order; rows of other attacks are dropped.
pub(crate) fn refresh(path: &Path, names: &[&str], rows: &[TableRow]) -> Result<(), AttackError> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    std::fs::write(path, refreshed(&text, names, rows)?)?;
    Ok(())
}

fn refreshed(text: &str, names: &[&str], rows: &[TableRow]) -> Result<String, AttackError> {
    let (above, table) = text
        .split_once(&format!("{RULE}\n"))
        .ok_or("the document has no table of attacks")?;
    let length = table.lines().take_while(|line| line.starts_with('|'));
    // The last line may lack its line break.
    let length = length.map(|line| line.len() + 1).sum::<usize>().min(table.len());
    let (table, below) = table.split_at(length);
    let old: BTreeMap<&str, &str> = table
        .lines()
        .filter_map(|line| Some((name_of(line)?, line)))
        .collect();
    let new: BTreeMap<&str, &TableRow> = rows.iter().map(|row| (row.name, row)).collect();
    let mut out = format!("{above}{RULE}\n");
    for name in names {
        match (new.get(name), old.get(name)) {
            // A run measures only some of the columns; the others are kept from the document.
            (Some(row), old) => {
                let before = old.map_or(NO_FIGURES, |line| before(line));
                let (request, before) = (row.request.replace('|', "\\|"), before.join(" | "));
                writeln!(
                    out,
                    "| `{name}` | {request} | {before} | {} |",
                    row.measured.join(" | ")
                )?;
            }
            (None, Some(line)) => writeln!(out, "{line}")?,
            (None, None) => {}
        }
    }
    out.push_str(below);
    Ok(out)
}

/// The name of the attack in a row.
fn name_of(row: &str) -> Option<&str> {
    row.strip_prefix("| `")?.split('`').next()
}

/// The figures before the limits, in a row.
fn before(row: &str) -> [&str; 3] {
    // A request may contain an escaped bar.
    let cells: Vec<&str> = row.split(" | ").collect();
    let cell = |n: usize| cells.get(n).copied().unwrap_or("–");
    [cell(BEFORE - 3), cell(BEFORE - 2), cell(BEFORE - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_attacks_that_ran_are_replaced() {
        let document = format!(
            "text\n\n| attack | … |\n{RULE}\n| `a/gone` | x | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ok |\n\
             | `a/kept` | y \\| z | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ok |\n\
             | `a/run` | old | 1.5 | **2** | 3 | 4 | 5 | 6 | 7 | ok |\n\nmore\n"
        );
        let row = |name| TableRow {
            name,
            request: "now",
            measured: ["8", "9", "10", "11", "201"].map(str::to_owned),
        };
        let rows = [row("a/new"), row("a/run")];
        let found = refreshed(&document, &["a/kept", "a/new", "a/run"], &rows).expect("a table");
        let want = format!(
            "text\n\n| attack | … |\n{RULE}\n| `a/kept` | y \\| z | 1 | 2 | 3 | 4 | 5 | 6 | 7 | ok |\n\
             | `a/new` | now | – | – | – | 8 | 9 | 10 | 11 | 201 |\n\
             | `a/run` | now | 1.5 | **2** | 3 | 8 | 9 | 10 | 11 | 201 |\n\nmore\n"
        );
        assert_eq!(found, want);
    }
}
