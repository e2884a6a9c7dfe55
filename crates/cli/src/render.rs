//! Renders reports.
//!
//! Each item is rendered on the core that produced it. The pieces are written in order and dropped, except
//! for formats that need all of them first.

mod github;
mod junit;
mod markdown;
mod sarif;
mod text;

use crate::args::{Output, OutputFormat};
use crate::problem::Problem;
use crate::report::{CostRow, ReportItem, Severity, UnreadableInput};
use scantling_value::{Limits, json, yaml};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{BufWriter, Stdout, Write};
use std::sync::Arc;
use text::Palette;

/// Renders items of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Renderer {
    form: OutputFormat,
    verbosity: text::Verbosity,
    palette: Palette,
}

/// A rendered item.
#[derive(Debug)]
pub(crate) struct RenderedItem {
    text: String,
    /// Facts for formats that need all pieces first.
    facts: Option<PieceFacts>,
}

#[derive(Debug)]
struct PieceFacts {
    file: Arc<str>,
    failed: bool,
    unreadable: bool,
    codes: Vec<String>,
    cost: Option<CostRow>,
}

impl Renderer {
    pub(crate) fn new(output: &Output) -> Self {
        Renderer {
            form: output.output,
            verbosity: text::Verbosity::from_flags(output),
            palette: Palette::for_standard_output(),
        }
    }

    /// Renders an item.
    pub(crate) fn piece<I: ReportItem>(&self, item: &I) -> Result<RenderedItem, Problem> {
        let text = match self.form {
            OutputFormat::Json => indented(&json_text(item)?),
            OutputFormat::Yaml => yaml_text(item)?,
            OutputFormat::Text => text::render(&item.subject(), self.verbosity, &self.palette),
            OutputFormat::Github => github::render(&item.subject()),
            OutputFormat::Junit | OutputFormat::Sarif | OutputFormat::Markdown => return self.kept(item),
        };
        Ok(RenderedItem { text, facts: None })
    }

    fn kept<I: ReportItem>(&self, item: &I) -> Result<RenderedItem, Problem> {
        let subject = item.subject();
        let text = match self.form {
            OutputFormat::Junit => junit::case(&subject),
            OutputFormat::Markdown => markdown::rows(&subject),
            _ => sarif::results(&subject)?,
        };
        let has = |level| subject.findings.iter().any(|f| f.level == level);
        let kept = PieceFacts {
            failed: has(Severity::Error),
            unreadable: has(Severity::Unreadable),
            codes: subject.findings.iter().map(|f| f.code.clone()).collect(),
            cost: subject.cost,
            file: subject.file,
        };
        Ok(RenderedItem {
            text,
            facts: Some(kept),
        })
    }
}

/// Writes the pieces of a report.
pub(crate) struct Report {
    renderer: Renderer,
    command: &'static str,
    out: BufWriter<Stdout>,
    /// The first write error. A reader that closes the pipe is not an error.
    failed: Option<std::io::Error>,
    section: Option<&'static str>,
    /// The number of items in the section.
    items: usize,
    kept: Vec<RenderedItem>,
}

impl Report {
    /// Begins the report of a command.
    pub(crate) fn begin(kind: &str, command: &'static str, output: &Output) -> Self {
        let mut report = Report {
            renderer: Renderer::new(output),
            command,
            out: BufWriter::with_capacity(1 << 16, std::io::stdout()),
            failed: None,
            section: None,
            items: 0,
            kept: Vec::new(),
        };
        match output.output {
            OutputFormat::Json => report.write(&format!("{{\n  \"kind\": \"{kind}\"")),
            OutputFormat::Yaml => report.write(&format!("kind: {kind}\n")),
            OutputFormat::Text
            | OutputFormat::Github
            | OutputFormat::Junit
            | OutputFormat::Sarif
            | OutputFormat::Markdown => {}
        }
        report
    }

    /// Returns the renderer of items, which can be used on any core.
    pub(crate) fn renderer(&self) -> Renderer {
        self.renderer
    }

    /// Begins a list of items.
    pub(crate) fn section(&mut self, name: &'static str) {
        self.end_section();
        self.section = Some(name);
        // Each form ends a list differently, so the number of items is counted per section.
        self.items = 0;
        match self.renderer.form {
            OutputFormat::Json => self.write(&format!(",\n  \"{name}\": [")),
            OutputFormat::Yaml => self.write(&format!("{name}:")),
            OutputFormat::Text
            | OutputFormat::Github
            | OutputFormat::Junit
            | OutputFormat::Sarif
            | OutputFormat::Markdown => {}
        }
    }

    /// Writes an item of the section.
    pub(crate) fn add(&mut self, piece: RenderedItem) {
        let first = self.items == 0;
        self.items += 1;
        match self.renderer.form {
            OutputFormat::Json => self.write(if first { "\n    " } else { ",\n    " }),
            OutputFormat::Yaml if first => self.write("\n"),
            // These formats have totals or rules before the items, so all items must be known.
            OutputFormat::Junit | OutputFormat::Sarif | OutputFormat::Markdown => {
                self.kept.push(piece);
                return;
            }
            OutputFormat::Yaml | OutputFormat::Text | OutputFormat::Github => {}
        }
        self.write(&piece.text);
    }

    /// Renders an item and writes it.
    pub(crate) fn write_item<I: ReportItem>(&mut self, item: &I) -> Result<(), Problem> {
        let piece = self.renderer.piece(item)?;
        self.add(piece);
        Ok(())
    }

    /// Writes the problems with inputs as items.
    pub(crate) fn write_problems(&mut self, problems: &[Problem]) -> Result<(), Problem> {
        for item in problems.iter().filter_map(UnreadableInput::new) {
            self.write_item(&item)?;
        }
        Ok(())
    }

    fn end_section(&mut self) {
        let Some(_) = self.section.take() else {
            return;
        };
        match (self.renderer.form, self.items) {
            (OutputFormat::Json, 0) => self.write("]"),
            (OutputFormat::Json, _) => self.write("\n  ]"),
            (OutputFormat::Yaml, 0) => self.write(" []\n"),
            _ => {}
        }
    }

    /// Ends the report. The summary is given as one line and in the form of the JSON contract.
    pub(crate) fn end<S: Serialize>(mut self, summary: Option<(&str, &S)>) -> Result<(), Problem> {
        self.end_section();
        match (self.renderer.form, summary) {
            (OutputFormat::Json, Some((_, summary))) => {
                let text = json_text(summary)?.replace('\n', "\n  ");
                self.write(&format!(",\n  \"summary\": {text}"));
            }
            (OutputFormat::Yaml, Some((_, summary))) => {
                let text = yaml_of(summary)?.replace('\n', "\n  ");
                self.write(&format!("summary:\n  {}\n", text.trim_end()));
            }
            (OutputFormat::Text, Some((line, _))) => self.write(&format!("{line}\n")),
            _ => {}
        }
        match self.renderer.form {
            OutputFormat::Json => self.write("\n}\n"),
            OutputFormat::Junit => {
                let text = junit::document(self.command, &self.kept);
                self.write(&text);
            }
            OutputFormat::Sarif => {
                let text = sarif::document(&self.kept)?;
                self.write(&text);
            }
            OutputFormat::Markdown => {
                let line = summary.map(|(line, _)| line);
                let text = markdown::document(self.command, line, &self.kept);
                self.write(&text);
            }
            OutputFormat::Yaml | OutputFormat::Text | OutputFormat::Github => {}
        }
        // The buffer is flushed here: `Drop` would ignore an error.
        let flushed = self.out.flush();
        ignore_broken_pipe(self.failed.map_or(flushed, Err))
    }

    fn write(&mut self, text: &str) {
        // After an error, nothing more is written, but the command still ends with its own status.
        if self.failed.is_none() {
            self.failed = self.out.write_all(text.as_bytes()).err();
        }
    }
}

/// Returns the time that a command took, for its summary.
pub(crate) fn elapsed(begun: std::time::Instant) -> String {
    let seconds = begun.elapsed().as_secs_f64();
    match seconds {
        ..0.001 => ", in less than 1 ms".to_owned(),
        ..1.0 => format!(", in {:.0} ms", seconds * 1000.0),
        _ => format!(", in {seconds:.1} s"),
    }
}

/// Returns a value as indented JSON.
pub(crate) fn json_text(item: &impl Serialize) -> Result<String, Problem> {
    serde_json::to_string_pretty(item).map_err(|e| unwritable(&e))
}

/// Indents an item of a list that is two levels deep. JSON strings contain no line breaks.
fn indented(text: &str) -> String {
    text.replace('\n', "\n    ")
}

fn yaml_text(item: &impl Serialize) -> Result<String, Problem> {
    yaml_of(&[item])
}

/// Returns a value as YAML.
pub(crate) fn yaml_of(item: &impl Serialize) -> Result<String, Problem> {
    let text = serde_json::to_string(item).map_err(|e| unwritable(&e))?;
    // The same encoder writes objects and reports, so both quote alike.
    let value = json::decode(text.as_bytes(), Limits::SERVER).map_err(|e| unwritable(&e))?;
    Ok(yaml::encode(&value))
}

fn unwritable(why: &dyn std::fmt::Display) -> Problem {
    Problem::new("cannot write the report", why)
}

/// Writes to standard output. A reader that closes the pipe is not an error.
pub(crate) fn write(text: impl AsRef<[u8]>) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    ignore_broken_pipe(out.write_all(text.as_ref()).and_then(|()| out.flush()))
}

fn ignore_broken_pipe(result: std::io::Result<()>) -> Result<(), Problem> {
    // The reader has seen enough, as with `| head`.
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::new("cannot write to standard output", e))
        }
        _ => Ok(()),
    }
}

/// Returns the codes of all pieces, each once.
fn codes_of(pieces: &[RenderedItem]) -> BTreeSet<&str> {
    let kept = pieces.iter().filter_map(|p| p.facts.as_ref());
    kept.flat_map(|k| k.codes.iter().map(String::as_str)).collect()
}
