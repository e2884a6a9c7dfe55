//! Errors in expressions and their rendering.

use std::fmt::{self, Write as _};
use std::sync::Arc;

/// The number of issues that are kept. Further ones are only counted.
const MAX_ISSUES: usize = 100;

/// Longer source lines, in bytes, are not rendered.
const MAX_SNIPPET_BYTES: usize = 16_384;

/// The offset before the first character, for nodes that error recovery has inserted.
pub(crate) const BEFORE_START: u32 = u32::MAX - 1;

/// An error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The offset in code points; `None` for the expression as a whole.
    pub offset: Option<u32>,
    /// The message.
    pub message: String,
}

/// The errors of one expression.
///
/// `Display` renders each with its position, the source line and a caret, sorted by position.
/// The list may be empty while it is being filled.
#[derive(Clone, Debug)]
pub struct Issues {
    source: Arc<str>,
    kept: Vec<Issue>,
    reported: usize,
}

impl Issues {
    /// Creates an empty list.
    pub fn new(source: Arc<str>) -> Self {
        Issues {
            source,
            kept: Vec::new(),
            reported: 0,
        }
    }

    /// Creates a list with one issue about the expression as a whole.
    pub fn of_whole(source: Arc<str>, message: impl Into<String>) -> Self {
        let mut issues = Issues::new(source);
        issues.report(None, message);
        issues
    }

    /// Adds an issue. The first 100 are kept.
    pub fn report(&mut self, offset: Option<u32>, message: impl Into<String>) {
        // All errors are counted, because the rendering says how many were truncated.
        self.reported += 1;
        if self.kept.len() < MAX_ISSUES {
            let message = message.into();
            self.kept.push(Issue { offset, message });
        }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.reported == 0
    }

    /// The number of reported issues, including those not kept.
    pub fn len(&self) -> usize {
        self.reported
    }

    /// The issues kept, in the order of their report.
    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.kept.iter()
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = SourceLines::new(&self.source);
        let mut sorted: Vec<(Location, &Issue)> =
            self.kept.iter().map(|i| (lines.location(i.offset), i)).collect();
        // A stable sort, as in cel-go: errors at one position keep the order of their report.
        sorted.sort_by_key(|(at, _)| (at.line, at.column));
        for (n, (at, issue)) in sorted.into_iter().enumerate() {
            if n > 0 {
                f.write_char('\n')?;
            }
            write!(
                f,
                "ERROR: <input>:{}:{}: {}",
                at.line,
                at.column + 1,
                issue.message
            )?;
            if let Some(line) = lines.line_text(at.line).filter(|l| l.len() <= MAX_SNIPPET_BYTES) {
                write_snippet(f, line, at.column)?;
            }
        }
        if self.reported > MAX_ISSUES {
            write!(f, "\n{} more errors were truncated", self.reported - MAX_ISSUES)?;
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

/// Writes the source line and, below it, a caret at the column. Non-ASCII characters are taken to be two
/// cells wide and are matched by full-width dots and carets.
fn write_snippet(f: &mut fmt::Formatter<'_>, line: &str, column: i64) -> fmt::Result {
    f.write_str("\n | ")?;
    for c in line.chars() {
        // A tab becomes one space, so that the caret below stands under the right character.
        f.write_char(if c == '\t' { ' ' } else { c })?;
    }
    f.write_str("\n | ")?;
    let mut rest = line.chars();
    // Column -1 (no position) has no dots before its caret.
    for c in rest.by_ref().take(usize::try_from(column).unwrap_or(0)) {
        f.write_char(if c.is_ascii() { '.' } else { '\u{ff0e}' })?;
    }
    f.write_char(if rest.next().is_none_or(|c| c.is_ascii()) {
        '^'
    } else {
        '\u{ff3e}'
    })
}

/// A rendered position: lines count from 1, columns from 0; both are -1 for the expression as a whole.
#[derive(Clone, Copy)]
struct Location {
    line: i64,
    column: i64,
}

/// The line starts of a source.
struct SourceLines<'s> {
    source: &'s str,
    /// The first code point of every line but the first, and a sentinel: the one after the end.
    starts: Vec<u32>,
}

impl<'s> SourceLines<'s> {
    fn new(source: &'s str) -> Self {
        let mut starts = Vec::new();
        let mut next = 0;
        for c in source.chars() {
            next += 1;
            if c == '\n' {
                starts.push(next);
            }
        }
        // An error at the end of the source is still on the last line.
        starts.push(next + 1);
        SourceLines { source, starts }
    }

    fn location(&self, offset: Option<u32>) -> Location {
        let Some(offset) = offset else {
            return Location { line: -1, column: -1 };
        };
        if self.source.is_empty() || offset == BEFORE_START {
            // An empty source has no first line.
            return Location { line: 1, column: -1 };
        }
        let before = self.starts.partition_point(|start| *start <= offset);
        let start = before
            .checked_sub(1)
            .and_then(|n| self.starts.get(n))
            .copied()
            .unwrap_or(0);
        Location {
            line: before as i64 + 1,
            column: i64::from(offset) - i64::from(start),
        }
    }

    /// The text of a line, without its terminator.
    fn line_text(&self, line: i64) -> Option<&'s str> {
        let index = usize::try_from(line - 1).ok()?;
        if self.source.is_empty() {
            return None;
        }
        self.source.split('\n').nth(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]
    fn check(source: &str, at: &[(Option<u32>, &str)], expect: Expect) {
        let mut issues = Issues::new(source.into());
        for (offset, message) in at {
            issues.report(*offset, *message);
        }
        expect.assert_eq(&issues.to_string());
    }

    #[test]
    fn issues_are_sorted_and_have_a_caret() {
        check(
            "a\tb\nc",
            &[(Some(4), "third"), (Some(2), "second"), (None, "first")],
            expect![[r#"
                ERROR: <input>:-1:0: first
                ERROR: <input>:1:3: second
                 | a b
                 | ..^
                ERROR: <input>:2:1: third
                 | c
                 | ^"#]],
        );
    }

    #[test]
    fn wide_characters_have_wide_carets() {
        check(
            "'é' + ü",
            &[(Some(6), "here"), (Some(7), "end")],
            expect![[r#"
                ERROR: <input>:1:7: here
                 | 'é' + ü
                 | .．....＾
                ERROR: <input>:1:8: end
                 | 'é' + ü
                 | .．....．^"#]],
        );
    }

    #[test]
    fn issues_at_the_end_of_the_source() {
        check("", &[(Some(0), "empty")], expect!["ERROR: <input>:1:0: empty"]);
        check(
            "a\n",
            &[(Some(2), "end")],
            expect![[r#"
                ERROR: <input>:2:1: end
                 | 
                 | ^"#]],
        );
    }

    #[test]
    fn more_than_a_hundred_issues_are_counted() {
        let mut issues = Issues::new("a".into());
        for n in 0..103 {
            issues.report(Some(0), n.to_string());
        }
        let text = issues.to_string();
        assert_eq!(issues.len(), 103);
        assert!(text.ends_with("^\n3 more errors were truncated"), "{text}");
        assert_eq!(text.matches("ERROR").count(), 100);
    }

    #[test]
    fn long_lines_are_not_rendered() {
        let text = "a".repeat(MAX_SNIPPET_BYTES + 1);
        check(&text, &[(Some(0), "long")], expect!["ERROR: <input>:1:1: long"]);
    }
}
