//! From text to steps.

use super::{End, Slice, Step, Steps};
use scantling_value::Value;

/// How deep actions may nest.
const DEPTH: usize = 16;

/// Reads the text of a column, which stands in braces.
pub(super) fn actions(text: &str) -> Result<Vec<Steps>, String> {
    template(text, DEPTH)
}

/// Reads a text as what stands in braces, and all that follows where it closes them.
fn template(text: &str, depth: usize) -> Result<Vec<Steps>, String> {
    let depth = depth.checked_sub(1).ok_or("the expression nests too deep")?;
    let text = format!("{{{text}}}");
    let mut rest = text.as_str();
    let mut actions = Vec::new();
    while let Some((_, inside)) = rest.split_once('{') {
        let mut reader = Reader {
            rest: inside,
            depth,
            steps: Vec::new(),
        };
        reader.action()?;
        rest = reader.rest;
        actions.push(reader.steps);
    }
    Ok(actions)
}

/// Reads a text in braces of its own, of which the first action counts.
fn action(text: &str, depth: usize) -> Result<Steps, String> {
    Ok(template(text, depth)?.into_iter().next().unwrap_or_default())
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
    steps: Steps,
}

impl<'t> Reader<'t> {
    /// Reads up to the closing brace, and that.
    fn action(&mut self) -> Result<(), String> {
        loop {
            if self.skip("}") {
                return Ok(());
            }
            if self.skip("[?(") {
                self.filter()?;
            } else if self.skip("..") {
                self.descend()?;
            } else {
                self.step()?;
            }
        }
    }

    fn step(&mut self) -> Result<(), String> {
        match self.rest.chars().next() {
            None | Some('\r' | '\n') => return Err("unclosed action".to_owned()),
            // The current object is what steps start from anyway.
            Some(c @ (' ' | '@' | '$')) => self.advance(c.len_utf8()),
            Some('[') => self.brackets()?,
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            Some('.') => {
                self.advance(1);
                self.field();
            }
            Some(c) if matches!(c, '+' | '-') || c.is_numeric() => self.number()?,
            Some(c) if is_name(c) => self.word(),
            Some(c) => return Err(format!("unrecognized character in action: {c:?}")),
        }
        Ok(())
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let after = self.rest.strip_prefix(prefix);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Takes so many bytes.
    fn take(&mut self, bytes: usize) -> &'t str {
        let taken = self.rest.get(..bytes).unwrap_or(self.rest);
        self.advance(taken.len());
        taken
    }

    /// A name up to what ends it; a backslash takes the character after it as it is.
    fn field(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|c| {
            let ends = !escaped && is_end(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len())).replace('\\', "");
        self.steps.push(match name.as_str() {
            "*" => Step::Wildcard,
            _ => Step::Field(name),
        });
    }

    fn descend(&mut self) -> Result<(), String> {
        if self.steps.last() == Some(&Step::Descend) {
            return Err("invalid multiple recursive descent".to_owned());
        }
        self.steps.push(Step::Descend);
        if self.rest.starts_with(is_name) {
            self.field();
        }
        Ok(())
    }

    fn word(&mut self) {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let step = match self.take(end) {
            "true" => Step::Constant(true.into()),
            "false" => Step::Constant(false.into()),
            _ => Step::Word,
        };
        self.steps.push(step);
    }

    fn number(&mut self) -> Result<(), String> {
        let digits = self.rest.strip_prefix(['+', '-']).unwrap_or(self.rest);
        let after = digits.trim_start_matches(|c: char| c == '.' || c.is_numeric());
        let text = self.take(self.rest.len() - after.len());
        let whole = text.parse().map(Value::Int).ok();
        let number = whole.or_else(|| text.parse().map(Value::Float).ok());
        let number = number.ok_or_else(|| format!("cannot parse number {text}"))?;
        self.steps.push(Step::Constant(number));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), String> {
        self.advance(1);
        let mut before = quote;
        let end = self.rest.find(|c| {
            let ends = c == '\n' || (c == quote && before != '\\');
            before = c;
            ends
        });
        let text = self.take(end.unwrap_or(self.rest.len()));
        if !self.rest.starts_with(quote) {
            return Err("unterminated quoted string".to_owned());
        }
        self.advance(1);
        let text = unescaped(text, quote).ok_or("invalid syntax")?;
        self.steps.push(Step::Text(text.into()));
        Ok(())
    }

    /// What stands in brackets: keys, numbers and slices. The first bracket closes them, in quotes or not.
    fn brackets(&mut self) -> Result<(), String> {
        self.advance(1);
        let end = self.rest.find([']', '\n']).unwrap_or(self.rest.len());
        let inside = self.take(end);
        if !self.skip("]") {
            return Err("unterminated array".to_owned());
        }
        if inside.contains(',') {
            let branch = |part: &str| action(&format!("[{}]", part.trim_matches(' ')), self.depth);
            let branches = inside.split(',').map(branch).collect::<Result<_, _>>()?;
            self.steps.push(Step::Union(branches));
        } else if let Some(key) = key(inside) {
            // A key is read like any name, dots included.
            self.steps.extend(action(&format!(".{key}"), self.depth)?);
        } else {
            self.steps.push(Step::Slice(slice(inside)?));
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<(), String> {
        // One text in quotes may hide parentheses.
        let (mut pair, mut closed, mut before) = (None, false, '(');
        let end = self.rest.find(|c| {
            let ends = match (c, pair) {
                ('\n', _) => true,
                ('"' | '\'', None) => {
                    pair = Some(c);
                    false
                }
                (_, Some(quote)) if c == quote => {
                    closed |= before != '\\';
                    false
                }
                (')', _) => pair.is_some() == closed,
                _ => false,
            };
            before = c;
            ends
        });
        let inside = self.take(end.unwrap_or(self.rest.len()));
        if !self.skip(")") {
            return Err("unterminated filter".to_owned());
        }
        if !self.skip("]") {
            return Err("unclosed array expect ]".to_owned());
        }
        let (left, test) = match comparison(inside) {
            Some((left, operator, right)) => (left, Some((operator.to_owned(), action(right, self.depth)?))),
            None => (inside, None),
        };
        let left = action(left, self.depth)?;
        self.steps.push(Step::Filter { left, test });
        Ok(())
    }
}

/// The two sides of a comparison and what stands between them.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    const OPERATORS: [char; 4] = ['!', '<', '>', '='];
    let (left, rest) = text.split_at_checked(text.find(OPERATORS)?)?;
    let right = rest.trim_start_matches(OPERATORS);
    let (operator, right) = match rest.split_at_checked(rest.len() - right.len())? {
        // Something has to stand on the right: the last sign of the operator, if need be.
        (signs, "") => signs.split_at_checked(signs.len().checked_sub(1)?)?,
        both => both,
    };
    (!left.is_empty() && !operator.is_empty() && !right.is_empty()).then_some((left, operator, right))
}

/// A key in single quotes.
fn key(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then_some(inner)
}

fn slice(text: &str) -> Result<Slice, String> {
    let text = if text == "*" { ":" } else { text };
    let wrong = || format!("invalid array index {text}");
    let number = |part: &str| match part {
        "" => Ok(None),
        part if part.starts_with('+') => Err(wrong()),
        part => part.parse::<i64>().map(Some).map_err(|_| wrong()),
    };
    let mut parts = text.split(':');
    let start = number(parts.next().unwrap_or_default())?;
    let end = match parts.next() {
        Some(end) => number(end)?.map_or(End::Open, End::Before),
        None => End::Next(start.unwrap_or(0).saturating_add(1)),
    };
    let step = number(parts.next().unwrap_or_default())?;
    match parts.next() {
        Some(_) => Err(wrong()),
        None => Ok(Slice { start, end, step }),
    }
}

/// A quoted text with what its backslashes mean.
fn unescaped(text: &str, quote: char) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            c if c == quote => c,
            c @ ('x' | 'u' | 'U') => {
                let digits = match c {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let (code, rest) = chars.as_str().split_at_checked(digits)?;
                chars = rest.chars();
                char::from_u32(u32::from_str_radix(code, 16).ok()?)?
            }
            _ => return None,
        });
    }
    Some(out)
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether a character ends a name.
fn is_end(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}
