//! Markdown, for comments on pull requests: findings as a table, rules by cost with bars.

use super::RenderedItem;
use crate::report::{CostRow, Finding, ReportSubject, Severity};
use std::fmt::Write as _;

/// The maximum number of rows: comments have a size limit.
const MAX_ROWS: usize = 100;
/// The number of characters of a bar.
const BAR: usize = 10;

/// Returns the rows for the findings of one subject.
pub(super) fn rows(subject: &ReportSubject) -> String {
    let mut out = String::new();
    for finding in &subject.findings {
        let _ = writeln!(
            out,
            "| {} {} | {} | {} |",
            icon(finding.level),
            finding.level.name(),
            origin(&subject.file, finding),
            text(subject, finding)
        );
    }
    out
}

fn text(subject: &ReportSubject, finding: &Finding) -> String {
    let code = if finding.code.starts_with("SCT") {
        format!(" `{}`", finding.code)
    } else {
        String::new()
    };
    let name = match subject.name.as_str() {
        "" => String::new(),
        name => format!("**{}**: ", cell(name)),
    };
    let notes: String = finding
        .notes
        .iter()
        .map(|note| format!("<br>{}", cell(note)))
        .collect();
    format!("{name}{}{code}{notes}", cell(&finding.text))
}

fn origin(file: &str, finding: &Finding) -> String {
    match &finding.location {
        Some(at) => format!("`{file}:{}`", at.line),
        None => format!("`{file}`"),
    }
}

fn icon(severity: Severity) -> &'static str {
    match severity {
        Severity::Unreadable | Severity::Error => "❌",
        Severity::Warning => "⚠️",
        Severity::Advice => "💡",
    }
}

/// Returns the whole report.
pub(super) fn document(command: &str, summary: Option<&str>, pieces: &[RenderedItem]) -> String {
    let mut out = format!("### scantling {command}\n\n");
    let rows: Vec<&str> = pieces.iter().flat_map(|piece| piece.text.lines()).collect();
    let mut costs: Vec<(&RenderedItem, &CostRow)> = pieces
        .iter()
        .filter_map(|piece| Some((piece, piece.facts.as_ref()?.cost.as_ref()?)))
        .collect();
    match summary {
        Some(summary) => {
            let _ = writeln!(out, "{}\n", cell(summary));
        }
        None if rows.is_empty() && costs.is_empty() => out.push_str("No findings.\n"),
        None => {}
    }
    if !rows.is_empty() {
        out.push_str("| severity | where | finding |\n| --- | --- | --- |\n");
        for row in rows.iter().take(MAX_ROWS) {
            let _ = writeln!(out, "{row}");
        }
        more(&mut out, rows.len());
    }
    if !costs.is_empty() {
        // The sort is stable, so equal costs keep the order of the CRDs.
        costs.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
        if !rows.is_empty() {
            out.push('\n');
        }
        out.push_str("| share of limit | cost | change | rule |\n| --- | ---: | ---: | --- |\n");
        for (_, cost) in costs.iter().take(MAX_ROWS) {
            let _ = writeln!(
                out,
                "| `{}` {} | {} | {} | **{}** {} |",
                bar(cost.share),
                percent(cost.share),
                cost.total,
                change(cost),
                cell(&cost.at),
                code(&cost.rule)
            );
        }
        more(&mut out, costs.len());
    }
    out
}

fn more(out: &mut String, rows: usize) {
    if rows > MAX_ROWS {
        let _ = writeln!(out, "\n{} more are not shown.", rows - MAX_ROWS);
    }
}

fn percent(share: f64) -> String {
    if share > 100.0 {
        "over 100×".to_owned()
    } else {
        format!("{:.1}%", share * 100.0)
    }
}

fn bar(share: f64) -> String {
    let filled = ((share.clamp(0.0, 1.0) * BAR as f64).round() as usize).min(BAR);
    "█".repeat(filled) + &"░".repeat(BAR - filled)
}

fn change(cost: &CostRow) -> String {
    match cost.previous {
        None => String::new(),
        Some(None) => "new".to_owned(),
        Some(Some(before)) if before == cost.total => "±0".to_owned(),
        // A percentage of zero is undefined.
        Some(Some(0)) => format!("+{}", cost.total),
        Some(Some(before)) => format!("{:+.0}%", (cost.total as f64 / before as f64 - 1.0) * 100.0),
    }
}

/// Escapes text for a table cell.
fn cell(text: &str) -> String {
    // The ampersand first, because the other escapes contain it.
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('|', "\\|");
    text.replace('\r', "").replace('\n', "<br>")
}

/// Formats code in a table cell.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|").replace(['\r', '\n'], " ");
    // A backtick ends a span with one backtick, so such code has a fence of two.
    let fence = if text.contains('`') { "``" } else { "`" };
    format!("{fence}{text}{fence}")
}
