//! From reports to text on standard output.

mod github;
mod junit;
mod sarif;
mod text;

use crate::args::{Form, Output};
use crate::problem::Problem;
use crate::report::Report;
use scantling_value::{Limits, json, yaml};
use std::io::Write as _;

/// Prints a report in the wanted form.
pub(crate) fn print<R: Report>(report: &R, output: &Output) -> Result<(), Problem> {
    let text = match output.output {
        Form::Text => return write(&text::render(report, output)),
        Form::Json => json_text(report)?,
        Form::Yaml => {
            let text = json_text(report)?;
            let value = json::decode(text.as_bytes(), Limits::SERVER);
            yaml::encode(&value.map_err(|e| Problem::new("cannot write the report", e))?)
        }
        Form::Junit => junit::render(report),
        Form::Sarif => sarif::render(report)?,
        Form::Github => github::render(report),
    };
    write(&text)
}

fn json_text<R: Report>(report: &R) -> Result<String, Problem> {
    let text = serde_json::to_string_pretty(report);
    text.map(|t| t + "\n")
        .map_err(|e| Problem::new("cannot write the report", e))
}

/// Writes to standard output. A reader that has seen enough is no problem.
pub(crate) fn write(text: &str) -> Result<(), Problem> {
    let mut out = anstream::AutoStream::auto(std::io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::new("cannot write to standard output", e))
        }
        _ => Ok(()),
    }
}
