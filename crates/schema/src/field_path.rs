//! Paths into a schema, as in `fieldPath` of rules and in selectable fields: `.spec.map['a key']`.

use crate::structural::{Additional, Structural};
use std::fmt;
use std::sync::Arc;

/// The notations of keys that a path may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BracketSyntax {
    /// `['key']` is allowed.
    Allowed,
    /// Only dots.
    Refused,
}

/// A resolved path.
#[derive(Debug)]
pub struct ResolvedPath<'s> {
    /// The steps: declared properties and keys of maps.
    pub steps: Vec<PathStep>,
    /// The schema at the end; `None` below a map of any values.
    pub schema: Option<&'s Arc<Structural>>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStep {
    /// A declared property.
    Field(String),
    /// A key of a map.
    Key(String),
}

/// The reason why a path does not resolve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFieldPath(String);

impl fmt::Display for InvalidFieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidFieldPath {}

/// Resolves a path from a schema.
pub fn resolve<'s>(
    path: &str,
    root: &'s Arc<Structural>,
    brackets: BracketSyntax,
) -> Result<ResolvedPath<'s>, InvalidFieldPath> {
    let fail = |text: &str| InvalidFieldPath(text.into());
    let end = || fail("unexpected end of JSON path");
    let mut tokens = Tokens(path);
    let mut steps = Vec::new();
    let mut schema = Some(root);
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if brackets == BracketSyntax::Refused => return Err(fail("array notation is not allowed")),
            "[" => {
                let token = tokens.next().ok_or_else(end)?;
                let quoted = token.strip_prefix('\'').and_then(|t| t.strip_suffix('\''));
                let quoted = quoted.ok_or_else(|| {
                    InvalidFieldPath(format!("expected single quoted string but got {token}"))
                })?;
                unescape(quoted).map_err(|e| InvalidFieldPath(format!("invalid string literal: {e}")))?
            }
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            other => return Err(InvalidFieldPath(format!("expected [ or . but got: {other}"))),
        };
        let nowhere = || fail("does not refer to a valid field");
        let here = schema.ok_or_else(nowhere)?;
        if !here.properties.is_empty() {
            schema = Some(here.property(&name).ok_or_else(nowhere)?);
            steps.push(PathStep::Field(name));
        } else {
            schema = match here.additional.as_ref().ok_or_else(nowhere)? {
                Additional::Schema(s) => Some(s),
                Additional::Any(_) => None,
            };
            steps.push(PathStep::Key(name));
        }
        if token == "[" {
            match tokens.next() {
                Some("]") => {}
                Some(other) => return Err(InvalidFieldPath(format!("expected ] but got {other}"))),
                None => return Err(end()),
            }
        }
    }
    Ok(ResolvedPath { steps, schema })
}

/// Splits a path at `.`, `[` and `]`, which are tokens themselves; a text in single quotes is one token.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0;
        let first = *rest.as_bytes().first()?;
        let length = if first == b'\'' {
            let mut previous = first;
            let close = rest.bytes().skip(1).position(|b| {
                let close = b == b'\'' && previous != b'\\';
                previous = b;
                close
            });
            // The token includes both quotes.
            close.map_or(rest.len(), |i| i + 2)
        } else if matches!(first, b'.' | b'[' | b']') {
            1
        } else {
            rest.find(['.', '[', ']']).unwrap_or(rest.len())
        };
        let (token, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(token)
    }
}

fn unescape(s: &str) -> Result<String, String> {
    let mut out = String::with_capacity(s.len());
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(c @ ('\'' | '\\')) => c,
            Some(c) => return Err(format!("invalid escape char \\{c}")),
            // A trailing backslash escapes nothing.
            None => '\\',
        });
    }
    Ok(out)
}
