//! A session: one expression after the other.

use super::Session;
use crate::problem::{Problem, warn};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Context, Editor, Helper, Highlighter, Hinter, Validator};
use scantling_cel::shape::{Kind, Shape};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HELP: &str = "An expression gives its value. :type EXPR and :cost EXPR tell its type and cost, :load FILE takes \
                    another file as self, :quit ends.";

/// Reads expressions until the input ends.
pub(super) fn run(session: &mut Session) -> Result<(), Problem> {
    let failed = |e: ReadlineError| Problem::new("cannot read the terminal", e);
    let mut editor: Editor<Names, DefaultHistory> = Editor::new().map_err(failed)?;
    editor.set_helper(Some(Names {
        shape: Arc::clone(&session.place.shape),
    }));
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".scantling_history"));
    if let Some(history) = &history {
        // The first session has none.
        let _ = editor.load_history(history);
    }
    println!("{HELP}");
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                if !obey(session, line.trim()) {
                    break;
                }
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => break,
            Err(e) => return Err(failed(e)),
        }
    }
    if let Some(history) = &history
        && let Err(e) = editor.save_history(history)
    {
        warn(&format!("cannot keep the history in {}: {e}", history.display()));
    }
    Ok(())
}

/// Does what a line says; false where it ends the session.
fn obey(session: &mut Session, line: &str) -> bool {
    let (command, rest) = match line.strip_prefix(':') {
        Some(command) => command.split_once(' ').unwrap_or((command, "")),
        None => ("", line),
    };
    match command {
        "" if rest.is_empty() => {}
        "" => tell(session.answer(rest).map(|a| a.value.unwrap_or(a.ty))),
        "type" => tell(session.answer(rest).map(|a| a.ty)),
        "cost" => tell(session.answer(rest).map(|a| match a.cost {
            Some(cost) => format!("{cost}, estimated at most {}", a.estimate()),
            None => format!("estimated at most {}", a.estimate()),
        })),
        "load" => {
            if let Err(problem) = session.load(Path::new(rest)) {
                problem.print();
            }
        }
        "quit" | "q" => return false,
        _ => println!("{HELP}"),
    }
    true
}

fn tell(answer: Result<String, String>) {
    match answer {
        Ok(text) => println!("{text}"),
        Err(why) => Problem::plain(why).print(),
    }
}

/// Completes the names of fields.
#[derive(Helper, Highlighter, Hinter, Validator)]
struct Names {
    shape: Arc<Shape>,
}

impl Completer for Names {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or_default();
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .map_or(0, |n| n + 1);
        let chain = before.get(start..).unwrap_or_default();
        let Some((parents, begun)) = chain.rsplit_once('.') else {
            return Ok((at, Vec::new()));
        };
        let mut steps = parents.split('.');
        if !matches!(steps.next(), Some("self" | "oldSelf")) {
            return Ok((at, Vec::new()));
        }
        let mut here = &self.shape;
        for step in steps {
            match here.field(step) {
                Some(field) => here = &field.shape,
                None => return Ok((at, Vec::new())),
            }
        }
        let Kind::Object { fields, .. } = &here.kind else {
            return Ok((at, Vec::new()));
        };
        let names = fields.iter().map(|field| field.name.to_string());
        let pairs = names.filter(|name| name.starts_with(begun)).map(|name| Pair {
            display: name.clone(),
            replacement: name,
        });
        Ok((at - begun.len(), pairs.collect()))
    }
}
