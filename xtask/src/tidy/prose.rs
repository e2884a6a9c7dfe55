//! Checks prose in documentation, lint pages and `--help`.

use super::collect;
use std::fs;
use std::path::{Path, PathBuf};

/// The maximum number of words in a sentence.
const MAX_WORDS: usize = 40;

/// Phrases that are not idiomatic technical English, with replacements.
const BANNED: &[(&str, &str)] = &[
    ("what is told", "name the thing"),
    ("what is said", "name the thing"),
    ("what is asked", "name the thing"),
    ("are told about", "say who does what"),
    ("is told about", "say who does what"),
    ("behind everyone's back", "asynchronously"),
    ("behind the writers' back", "asynchronously"),
    ("as if nothing", "use the field's term"),
    ("those who", "name the actor: client, caller, writer"),
    ("he who", "name the actor: client, caller, writer"),
    ("whoever", "name the actor: client, caller, writer"),
    ("to be had", "available"),
    ("to the letter", "exactly"),
    ("has to say", "plain verb"),
    ("come to be", "use the field's term"),
];

pub(super) fn check(root: &Path) -> Result<Vec<String>, String> {
    let mut files: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|f| root.join(f))
        .into();
    for folder in ["docs", "examples", "fuzz", "crates/cli/src/codes/pages"] {
        collect(&root.join(folder), "md", &mut files)?;
    }
    // The doc comments of the arguments are the text of `--help`.
    files.push(root.join("crates/cli/src/args.rs"));
    collect(&root.join("crates/cli/src/args"), "rs", &mut files)?;
    let mut findings = Vec::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file).map_err(|e| format!("{name}: {e}"))?;
        let is_rust = file.extension().is_some_and(|e| e == "rs");
        for (line, paragraph) in paragraphs(&text, is_rust) {
            findings.extend(judge(&paragraph).map(|why| format!("{name}:{line}: {why}")));
        }
    }
    Ok(findings)
}

/// Returns the paragraphs of prose with the number of their first line. Code, tables and headings are not prose.
fn paragraphs(text: &str, is_rust: bool) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let prose = if is_rust {
            // Only doc comments reach the users, as the text of `--help`.
            line.trim_start().strip_prefix("///").unwrap_or_default()
        } else if line.starts_with("    ") || line.starts_with(['|', '#']) {
            ""
        } else {
            line
        };
        let prose = prose.trim();
        if prose.starts_with("```") {
            fenced = !fenced;
            open = false;
            continue;
        }
        let is_item = prose.starts_with("- ")
            || prose.starts_with("* ")
            || prose.starts_with(|c: char| c.is_ascii_digit());
        if prose.is_empty() || fenced {
            open = false;
        } else if let (true, false, Some((_, paragraph))) = (open, is_item, out.last_mut()) {
            paragraph.push(' ');
            paragraph.push_str(prose);
        } else {
            out.push((number + 1, prose.to_owned()));
            open = true;
        }
    }
    out
}

fn judge(paragraph: &str) -> Option<String> {
    let lower = paragraph.to_lowercase();
    if let Some((phrase, better)) = BANNED.iter().find(|(phrase, _)| has_phrase(&lower, phrase)) {
        return Some(format!("\"{phrase}\": {better}"));
    }
    let mut words: Vec<&str> = Vec::new();
    for word in paragraph.split_whitespace() {
        words.push(word);
        if words.len() > MAX_WORDS {
            let start: Vec<&str> = words.into_iter().take(10).collect();
            return Some(format!(
                "a sentence of more than {MAX_WORDS} words: {} …",
                start.join(" ")
            ));
        }
        // A colon or a semicolon also ends a thought, so it ends the count.
        if word.ends_with(['.', ';', ':', '!', '?']) {
            words.clear();
        }
    }
    None
}

fn has_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let joined = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let (before, after) = (text.get(..at), text.get(at + phrase.len()..));
        !joined(before.and_then(|t| t.chars().next_back())) && !joined(after.and_then(|t| t.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sentences_and_banned_phrases_are_found() {
        let long = "word ".repeat(MAX_WORDS + 1);
        assert!(judge(&long).is_some());
        assert!(judge(&format!("{}. {}", "word ".repeat(30).trim(), "word ".repeat(30))).is_none());
        assert!(judge("Those who write wait.").is_some());
        assert!(judge("Writers wait.").is_none());
    }

    #[test]
    fn code_and_tables_are_not_prose() {
        let text = "# Title\nOne.\n```\ncode\n```\n| a |\n- two\n- three\n";
        let found: Vec<String> = paragraphs(text, false).into_iter().map(|(_, p)| p).collect();
        assert_eq!(found, ["One.", "- two", "- three"]);
    }
}
