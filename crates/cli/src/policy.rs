//! The selection and severity of findings, from flags, configuration, comments in files, baseline.

use crate::args::{ControlFlags, SeveritySetting};
use crate::codes;
use crate::files;
use crate::problem::Problem;
use crate::render;
use crate::report::Severity;
use globset::GlobSet;
use scantling_value::{Limits, Value, yaml};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The settings for findings with a code.
#[derive(Debug)]
pub(crate) struct Policy {
    /// If not empty, the only codes that are reported.
    select: Vec<String>,
    /// Prefixes of codes and their severity; `None` silences. Of two that match, the longer prefix wins, then the later
    /// one.
    severities: Vec<SeveritySetting>,
    overrides: Vec<PathOverride>,
    baseline: BTreeSet<Fingerprint>,
}

/// Settings for the files that some patterns match.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathOverride {
    pub(crate) paths: GlobSet,
    pub(crate) severities: Vec<SeveritySetting>,
    /// Kinds that `validate` skips.
    pub(crate) skip: Vec<String>,
    pub(crate) field_validation: Option<crate::args::FieldValidationFlag>,
    pub(crate) ignore_missing_schemas: Option<bool>,
}

impl PathOverride {
    /// Returns whether the override applies to a file.
    pub(crate) fn matches(&self, file: &str) -> bool {
        // Patterns begin with the directory of the configuration.
        std::path::absolute(file).is_ok_and(|file| self.paths.is_match(file))
    }
}

/// A finding, identified without its line: lines move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Fingerprint {
    pub(crate) code: String,
    pub(crate) file: String,
    /// The CRD or object.
    pub(crate) name: String,
    /// The field, or the text of a finding without one.
    pub(crate) at: String,
}

impl Policy {
    /// Reads the settings.
    pub(crate) fn new(flags: &ControlFlags) -> Result<Self, Problem> {
        let prefixes = flags.select.iter().chain(&flags.ignore).chain(&flags.deny);
        let settings = flags.severity.iter().map(|setting| &setting.prefix);
        for prefix in prefixes.chain(settings) {
            check_prefix(prefix)?;
        }
        let setting = |severity| {
            move |prefix: &String| SeveritySetting {
                prefix: prefix.clone(),
                severity,
            }
        };
        // The order matters: of equally long prefixes, the last wins, so `--ignore` beats `--deny` beats `--severity`.
        let severities = flags.severity.iter().cloned();
        let severities = severities
            .chain(flags.deny.iter().map(setting(Some(Severity::Error))))
            .chain(flags.ignore.iter().map(setting(None)));
        Ok(Policy {
            select: flags.select.clone(),
            severities: severities.collect(),
            overrides: flags.overrides.clone(),
            baseline: match &flags.baseline {
                Some(file) => read_baseline(file)?,
                None => BTreeSet::new(),
            },
        })
    }

    /// Returns the severity of a finding in a file, or `None` if it is not to be reported. `line` is its line in the
    /// document that `directives` belong to.
    pub(crate) fn severity(
        &self,
        (code, file): (&str, &str),
        default: Severity,
        (directives, line): (&Directives, Option<usize>),
        fingerprint: impl FnOnce() -> Fingerprint,
    ) -> Option<Severity> {
        let selected = self.select.is_empty() || self.select.iter().any(|prefix| code.starts_with(prefix));
        // A fingerprint allocates several strings, so it is made only if there is a baseline.
        let is_known = || !self.baseline.is_empty() && self.baseline.contains(&fingerprint());
        if !selected || directives.ignore(code, line) || is_known() {
            return None;
        }
        let overrides = self.overrides.iter().filter(|o| o.matches(file));
        let all = self
            .severities
            .iter()
            .chain(overrides.flat_map(|o| &o.severities));
        let matching = all.filter(|setting| code.starts_with(&setting.prefix));
        // `max_by_key` returns the last of several maxima, so overrides for paths beat flags.
        match matching.max_by_key(|setting| setting.prefix.len()) {
            Some(setting) => setting.severity,
            None => Some(default),
        }
    }
}

/// Checks that a text is a code or a prefix of codes.
fn check_prefix(prefix: &str) -> Result<(), Problem> {
    if codes::is_prefix(prefix) {
        return Ok(());
    }
    Err(unknown_code(prefix))
}

/// The error for a code that does not exist.
pub(crate) fn unknown_code(code: &str) -> Problem {
    let known: Vec<&str> = codes::CODES.iter().map(|code| code.id).collect();
    Problem::usage(format!("there is no code {code}")).hint(format!("known codes are {}", known.join(", ")))
}

/// The largest baseline file that is read.
const MAX_BASELINE_BYTES: u64 = 64 << 20;

fn read_baseline(file: &Path) -> Result<BTreeSet<Fingerprint>, Problem> {
    let bytes = files::read(file, MAX_BASELINE_BYTES).map_err(|e| files::unreadable(file.display(), &e))?;
    let invalid = |why: &dyn std::fmt::Display| {
        Problem::new(file.display(), why).hint("`--write-baseline FILE` writes a new baseline")
    };
    let value = yaml::decode(&bytes, Limits::SERVER).map_err(|e| invalid(&e))?;
    let findings = value.get("findings").and_then(Value::as_array);
    let findings = findings.ok_or_else(|| invalid(&"not a baseline: it has no list `findings`"))?;
    let fingerprint = |value: &Value| {
        let member = |name: &str| {
            let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| invalid(&format!("a finding has no `{name}`")))
        };
        Ok(Fingerprint {
            code: member("code")?,
            file: member("file")?,
            name: member("name")?,
            at: member("at")?,
        })
    };
    findings.iter().map(fingerprint).collect()
}

/// Writes the findings of a run as a baseline.
pub(crate) fn write_baseline(file: &Path, findings: &BTreeSet<Fingerprint>) -> Result<(), Problem> {
    #[derive(Serialize)]
    struct Baseline<'f> {
        kind: &'static str,
        findings: &'f BTreeSet<Fingerprint>,
    }
    let text = render::yaml_of(&Baseline {
        kind: "Baseline",
        findings,
    })?;
    std::fs::write(file, text).map_err(|e| Problem::new(format!("cannot write {}", file.display()), e))
}

/// The comments of a document that silence findings: `# scantling: ignore SCT0201`. A comment applies to its line and the
/// lines that are indented below it; a comment on a line of its own applies to the next line, in the same way.
#[derive(Debug, Default)]
pub(crate) struct Directives(Vec<Directive>);

#[derive(Debug)]
struct Directive {
    codes: Vec<String>,
    /// The lines of the file, from 1.
    lines: std::ops::Range<usize>,
}

const MARKER: &str = "# scantling: ignore";

impl Directives {
    /// Reads the comments of a document that begins after `first_line` lines of its file.
    pub(crate) fn new(text: &[u8], first_line: usize) -> Self {
        // Nearly all files have no such comment, so the text is not split into lines for them.
        if memchr::memmem::find(text, MARKER.as_bytes()).is_none() {
            return Directives::default();
        }
        let text = String::from_utf8_lossy(text);
        let lines: Vec<&str> = text.lines().collect();
        let indent = |line: &str| line.len() - line.trim_start().len();
        let is_content = |line: &str| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with('#')
        };
        let mut found = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            let Some((before, codes)) = line.split_once(MARKER) else {
                continue;
            };
            let rest = lines.iter().enumerate().skip(n);
            let mut rest = rest.filter(|(_, line)| is_content(line));
            // After content, a comment applies to its own line; alone on a line, to the next content.
            let first = match before.trim() {
                "" => rest.next(),
                _ => rest.next().filter(|(at, _)| *at == n),
            };
            let Some((first, content)) = first else {
                continue;
            };
            let depth = indent(content);
            // The elements of a list may have the indentation of its key.
            let is_key = !content.trim_start().starts_with("- ");
            let is_element =
                |line: &str| is_key && indent(line) == depth && line.trim_start().starts_with("- ");
            let end = rest.find(|(_, line)| indent(line) <= depth && !is_element(line));
            let end = end.map_or(lines.len(), |(at, _)| at);
            found.push(Directive {
                codes: codes
                    .split([',', ' '])
                    .filter(|c| c.starts_with("SCT"))
                    .map(str::to_owned)
                    .collect(),
                lines: first_line + first + 1..first_line + end + 1,
            });
        }
        Directives(found)
    }

    /// Returns whether there are no such comments.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn ignore(&self, code: &str, line: Option<usize>) -> bool {
        let Some(line) = line else {
            return false;
        };
        let applies = |d: &Directive| {
            d.lines.contains(&line)
                && (d.codes.is_empty() || d.codes.iter().any(|c| code.starts_with(c.as_str())))
        };
        self.0.iter().any(applies)
    }
}

#[cfg(test)]
mod tests {
    use super::Directives;

    #[test]
    fn comments_apply_to_their_block() {
        let text = b"a:\n  b: # scantling: ignore SCT0201, SCT03\n    c: 1\n  d: 1\n# scantling: ignore\n\ne:\n- f: 1\ng: 1\n";
        let directives = Directives::new(text, 10);
        let ignored = |code| {
            (11..=19)
                .filter(|line| directives.ignore(code, Some(*line)))
                .collect::<Vec<_>>()
        };
        assert_eq!(ignored("SCT0201"), [12, 13, 17, 18]);
        assert_eq!(ignored("SCT0301"), [12, 13, 17, 18]);
        assert_eq!(ignored("SCT0401"), [17, 18]);
        assert!(!directives.ignore("SCT0401", None));
    }
}
