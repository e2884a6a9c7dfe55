//! Completion in a session: names of fields, commands, files.

use super::Session;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::{Context, Helper, Highlighter, Hinter, Validator};
use scantling_cel::shape::{Shape, ShapeKind};
use scantling_value::{Map, Value};
use std::sync::Arc;

/// The commands of a session.
const COMMANDS: [&str; 4] = [":cost ", ":load ", ":quit", ":type "];
/// The variables of expressions.
const VARIABLES: [&str; 2] = ["oldSelf", "self"];

/// Completes the names of fields.
#[derive(Helper, Highlighter, Hinter, Validator)]
pub(super) struct FieldCompleter {
    /// The shape of `self`.
    shape: Arc<Shape>,
    /// The loaded value, for fields without a schema.
    value: Option<Arc<Value>>,
}

impl FieldCompleter {
    pub(super) fn new(session: &Session) -> Self {
        FieldCompleter {
            shape: Arc::clone(&session.target.shape),
            value: session.value.clone(),
        }
    }

    /// Returns the start of the word before the cursor, and its completions.
    fn candidates(&self, before: &str) -> (usize, Vec<String>) {
        let begun_at = before.rfind(|c| !is_name(c)).map_or(0, |n| n + 1);
        let (chain, begun) = before.split_at_checked(begun_at).unwrap_or((before, ""));
        let names = match chain.strip_suffix(".?").or_else(|| chain.strip_suffix('.')) {
            Some(parent) => self.below(parent).map(CompletionScope::names).unwrap_or_default(),
            None => VARIABLES.map(str::to_owned).to_vec(),
        };
        let fitting = names.into_iter().filter(|name| name.starts_with(begun));
        (begun_at, fitting.collect())
    }

    /// Resolves the expression at the end of a text: `self.spec.env[0]`.
    fn below(&self, text: &str) -> Option<CompletionScope<'_>> {
        let text = text.trim_end();
        if let Some(inside) = text.strip_suffix(']') {
            return self.below(inside.get(..open_bracket(inside)?)?)?.entry();
        }
        let start = text.rfind(|c| !is_name(c)).map_or(0, |n| n + 1);
        let (chain, name) = text.split_at_checked(start)?;
        match chain.strip_suffix(".?").or_else(|| chain.strip_suffix('.')) {
            Some(parent) => self.below(parent)?.field(name),
            None if VARIABLES.contains(&name) => Some(CompletionScope {
                shape: Some(&self.shape),
                value: self.value.as_deref(),
            }),
            None => None,
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The position of the bracket that matches the one after a text.
fn open_bracket(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (at, c) in text.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return Some(at),
            '[' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The value that an expression leads to.
struct CompletionScope<'n> {
    shape: Option<&'n Shape>,
    value: Option<&'n Value>,
}

impl<'n> CompletionScope<'n> {
    fn field(self, name: &str) -> Option<CompletionScope<'n>> {
        let shape = self.shape.and_then(|shape| match &shape.kind {
            // Any name is an entry of a map, so completion goes on below it.
            ShapeKind::Map { value } => Some(&**value),
            _ => shape.field(name).map(|field| &*field.shape),
        });
        let value = self.value.and_then(|value| value.get(name));
        (shape.is_some() || value.is_some()).then_some(CompletionScope { shape, value })
    }

    fn entry(self) -> Option<CompletionScope<'n>> {
        let shape = self.shape.and_then(|shape| match &shape.kind {
            ShapeKind::List { element, .. } => Some(&**element),
            ShapeKind::Map { value } => Some(&**value),
            _ => None,
        });
        let value = self.value.and_then(|value| match value {
            Value::Array(items) => items.first(),
            Value::Object(members) => members.iter().next().map(|(_, value)| value),
            _ => None,
        });
        (shape.is_some() || value.is_some()).then_some(CompletionScope { shape, value })
    }

    fn names(self) -> Vec<String> {
        if let Some(ShapeKind::Object { fields, .. }) = self.shape.map(|shape| &shape.kind) {
            return fields.iter().map(|field| field.name.to_string()).collect();
        }
        let members = self.value.and_then(Value::as_object);
        let names = members.into_iter().flat_map(Map::keys);
        names
            // Other names are escaped in expressions, which completion does not do.
            .filter(|name| name.chars().all(is_name))
            .map(ToString::to_string)
            .collect()
    }
}

impl Completer for FieldCompleter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..at).unwrap_or_default();
        if before.starts_with(":load ") {
            return FilenameCompleter::new().complete(line, at, context);
        }
        let pair = |name: &str| Pair {
            display: name.trim_end().to_owned(),
            replacement: name.to_owned(),
        };
        if before.starts_with(':') && !before.contains(' ') {
            let fitting = COMMANDS.iter().filter(|command| command.starts_with(before));
            return Ok((0, fitting.map(|command| pair(command)).collect()));
        }
        let (start, names) = self.candidates(before);
        Ok((start, names.iter().map(|name| pair(name)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::FieldCompleter;
    use crate::args::{Arguments, Command};
    use crate::eval::Session;
    use clap::Parser as _;

    fn names(flags: &str) -> FieldCompleter {
        let words = ["scantling", "eval", "--repl"]
            .into_iter()
            .chain(flags.split_whitespace());
        let Command::Eval(flags) = Arguments::parse_from(words).command else {
            panic!("this is another command");
        };
        FieldCompleter::new(&Session::new(&flags).unwrap())
    }

    fn examples() -> String {
        format!("{}/../../examples/crontab", env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn names_come_from_the_schema() {
        let names = names(&format!("--crd {}/definition.yaml", examples()));
        let cases: [(&str, usize, &[&str]); 9] = [
            ("se", 0, &["self"]),
            ("1 + old", 4, &["oldSelf"]),
            ("self.sp", 5, &["spec"]),
            ("self.spec.cron", 10, &["cronSpec"]),
            ("has(self.spec.env[0].", 21, &["name", "value"]),
            ("self.spec.env[self.spec.env[0].size() - 1].na", 43, &["name"]),
            ("oldSelf.spec.?min", 14, &["minReplicas"]),
            ("self.nothing.", 13, &[]),
            ("other.", 6, &[]),
        ];
        for (before, start, wanted) in cases {
            let (at, found) = names.candidates(before);
            assert_eq!(at, start, "{before}");
            assert_eq!(found, wanted, "{before}");
        }
    }

    #[test]
    fn names_come_from_the_file_where_there_is_no_schema() {
        let names = names(&format!("-f {}/object.yaml", examples()));
        assert_eq!(names.candidates("self.spec.cr").1, ["cronSpec"]);
        assert_eq!(names.candidates("self.spec.env[0].").1, ["name", "value"]);
    }
}
