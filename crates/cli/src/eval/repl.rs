//! An interactive session.

use super::Session;
use super::complete::FieldCompleter;
use crate::problem::{Problem, warn};
use rustyline::Editor;
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use std::path::{Path, PathBuf};

const HELP: &str = "An expression gives its value. :type EXPR and :cost EXPR tell its type and cost, :load FILE takes \
                    another file as self, :quit ends.";

/// Reads expressions until the input ends.
pub(super) fn run(session: &mut Session) -> Result<(), Problem> {
    let failed = |e: ReadlineError| Problem::new("cannot read the terminal", e);
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut editor: Editor<FieldCompleter, DefaultHistory> = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(FieldCompleter::new(session)));
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".scantling_history"));
    if let Some(history) = &history {
        // The first session has no history.
        let _ = editor.load_history(history);
    }
    println!("{HELP}");
    loop {
        match editor.readline("> ") {
            Ok(line) => {
                let _ = editor.add_history_entry(line.as_str());
                if !execute_line(session, line.trim()) {
                    break;
                }
                editor.set_helper(Some(FieldCompleter::new(session)));
            }
            // As in a shell: the line is discarded, not the session.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
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

/// Executes a line; returns false if it ends the session.
fn execute_line(session: &mut Session, line: &str) -> bool {
    let (command, rest) = match line.strip_prefix(':') {
        Some(command) => command
            .split_once(' ')
            .map_or((command, ""), |(command, rest)| (command, rest.trim())),
        None => ("", line),
    };
    match command {
        "" if rest.is_empty() => {}
        "" => print_result(session.answer(rest).map(|a| a.value.unwrap_or(a.ty))),
        "type" => print_result(session.answer(rest).map(|a| a.ty)),
        "cost" => print_result(session.answer(rest).map(|a| match a.cost {
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

fn print_result(answer: Result<String, String>) {
    match answer {
        Ok(text) => println!("{text}"),
        Err(why) => Problem::plain(why).print(),
    }
}
