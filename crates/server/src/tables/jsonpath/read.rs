//! The parser of JSONPath expressions.

use super::{End, Filter, JsonPathStep, Path, Slice};
use scantling_value::Value;

/// The maximum depth of nested filters.
const DEPTH: usize = 16;

/// Parses a template that begins and ends with an expression, without its outer braces. Between expressions is text.
pub(super) fn template(text: &str) -> Result<Vec<Path>, String> {
    let mut expressions = Vec::new();
    let mut next = Some(text);
    while let Some(text) = next {
        let mut reader = Reader {
            rest: text,
            depth: DEPTH,
        };
        expressions.push(reader.path()?);
        // Text between expressions is skipped: columns do not print it.
        next = reader.rest.split_once('{').map(|(_, after)| after);
    }
    Ok(expressions)
}

/// Parses an expression inside another.
fn inner(text: &str, depth: usize) -> Result<Path, String> {
    let depth = depth.checked_sub(1).ok_or("the expression nests too deep")?;
    Reader { rest: text, depth }.path()
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// Parses up to a closing brace, or to the end.
    fn path(&mut self) -> Result<Path, String> {
        let mut steps = Path::new();
        while let Some(c) = self.rest.chars().next() {
            if self.skip("}") {
                return Ok(steps);
            }
            if self.skip("[?(") {
                steps.push(self.filter()?);
            } else if self.skip("..") {
                if steps.last() == Some(&JsonPathStep::Descend) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                steps.push(JsonPathStep::Descend);
                if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                    steps.push(self.field());
                }
            } else if self.skip(".") {
                steps.push(self.field());
            } else if self.skip("[") {
                steps.extend(self.array()?);
            } else if !(self.skip(" ") || self.skip("@") || self.skip("$")) {
                // As in Kubernetes' parser, `@` and `$` are skipped wherever they are.
                steps.push(match c {
                    '\r' | '\n' => return Err("unclosed action".to_owned()),
                    '"' | '\'' => self.quote(c)?,
                    '+' | '-' => self.number()?,
                    _ if c.is_numeric() => self.number()?,
                    _ if c == '_' || c.is_alphanumeric() => self.word(),
                    _ => return Err(unrecognized(c)),
                });
            }
        }
        Ok(steps)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let after = self.rest.strip_prefix(prefix);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    /// Takes a number of bytes from the rest.
    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Parses a name up to the next step. A backslash escapes the next character.
    fn field(&mut self) -> JsonPathStep {
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((i, c)) = chars.next() {
            if c == '\\' {
                chars.next();
            } else if is_terminator(c) {
                end = i;
                break;
            }
        }
        match self.take(end) {
            "*" => JsonPathStep::Wildcard,
            name => JsonPathStep::Field(name.replace('\\', "")),
        }
    }

    fn word(&mut self) -> JsonPathStep {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        match self.take(end) {
            "true" => JsonPathStep::Constant(true.into()),
            "false" => JsonPathStep::Constant(false.into()),
            word => JsonPathStep::Word(word.to_owned()),
        }
    }

    fn number(&mut self) -> Result<JsonPathStep, String> {
        let digits = self.rest.trim_start_matches(['+', '-']);
        // A number has at most one sign.
        let sign = usize::from(digits.len() < self.rest.len());
        let after = self.rest.get(sign..).unwrap_or_default();
        let length = after.find(|c: char| c != '.' && !c.is_numeric());
        let text = self.take(sign + length.unwrap_or(after.len()));
        let number = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(i), _) => Value::Int(i),
            (_, Ok(f)) => Value::Float(f),
            _ => return Err(format!("cannot parse number {text}")),
        };
        Ok(JsonPathStep::Constant(number))
    }

    fn quote(&mut self, quote: char) -> Result<JsonPathStep, String> {
        let unterminated = || "unterminated quoted string".to_owned();
        let mut before = quote;
        for (i, c) in self.rest.char_indices().skip(1) {
            if c == '\n' {
                return Err(unterminated());
            }
            if c == quote && before != '\\' {
                let text = self.take(i + 1);
                let inside = text.get(1..i).unwrap_or_default();
                let said = unquoted(inside, quote);
                let said = said.ok_or_else(|| format!("unquote string {text} error invalid syntax"))?;
                return Ok(JsonPathStep::Text(said.into()));
            }
            before = c;
        }
        Err(unterminated())
    }

    /// The text in brackets, up to the first closing one, quoted or not.
    fn array(&mut self) -> Result<Vec<JsonPathStep>, String> {
        // The lexer of Go ends an array at a line break, even between quotes.
        let end = self.rest.find([']', '\n']);
        let end = end.filter(|end| self.rest.get(*end..).is_some_and(|at| at.starts_with(']')));
        let end = end.ok_or("unterminated array")?;
        let inside = self.take(end);
        self.skip("]");
        if inside.contains(',') {
            let parts = inside
                .split(',')
                .map(|part| inner(&format!("[{}]", part.trim_matches(' ')), self.depth));
            return Ok(vec![JsonPathStep::Union(parts.collect::<Result<_, _>>()?)]);
        }
        let key = inside.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        match key.filter(|key| !key.contains('\'')) {
            // A key is parsed like a field: its dots separate steps.
            Some(key) => inner(&format!(".{key}"), self.depth),
            None => Ok(vec![JsonPathStep::Slice(slice(if inside == "*" {
                ":"
            } else {
                inside
            })?)]),
        }
    }

    /// Parses a filter up to its closing bracket; one kind of quotes may contain the other.
    fn filter(&mut self) -> Result<JsonPathStep, String> {
        let unterminated = || "unterminated filter".to_owned();
        let (mut quote, mut closed, mut before) = (None, false, '(');
        let mut end = None;
        for (i, c) in self.rest.char_indices() {
            match c {
                '\n' => return Err(unterminated()),
                '"' | '\'' if quote.is_none() => quote = Some(c),
                '"' | '\'' if quote == Some(c) && before != '\\' => closed = true,
                // Go counts one pair of quotes: after it, further quotes are not looked at.
                ')' if quote.is_some() == closed => {
                    end = Some(i);
                    break;
                }
                _ => {}
            }
            before = c;
        }
        let text = self.take(end.ok_or_else(unterminated)?);
        self.skip(")");
        if !self.skip("]") {
            return Err("unclosed array expect ]".to_owned());
        }
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let begin = text.find(is_operator).filter(|begin| *begin > 0);
        let (left, rest) = begin
            .and_then(|begin| text.split_at_checked(begin))
            .unwrap_or((text, ""));
        let operators = rest.len() - rest.trim_start_matches(is_operator).len();
        // The right side has a character, if need be the last one of the operator.
        let operators = operators.min(rest.len().saturating_sub(1));
        Ok(JsonPathStep::Filter(match rest.split_at_checked(operators) {
            Some((operator, right)) if !operator.is_empty() => Filter {
                left: inner(left, self.depth)?,
                test: Some((operator.to_owned(), inner(right, self.depth)?)),
            },
            _ => Filter {
                left: inner(text, self.depth)?,
                test: None,
            },
        }))
    }
}

/// Returns whether a character ends a name.
fn is_terminator(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn unrecognized(c: char) -> String {
    let shown = if scantling_value::go::is_print(c) {
        format!(" '{c}'")
    } else {
        String::new()
    };
    format!("unrecognized character in action: U+{:04X}{shown}", u32::from(c))
}

/// Parses a slice: start, end and step, all optional.
fn slice(text: &str) -> Result<Slice, String> {
    let invalid = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    let is_number = |part: &&str| {
        part.strip_prefix('-')
            .unwrap_or(part)
            .bytes()
            .all(|b| b.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(is_number) {
        return Err(invalid());
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(part) => {
            let number = part.parse::<i64>().map(Some);
            number.map_err(|_| format!("array index {part} is not a number"))
        }
    };
    Ok(Slice {
        start: number(0)?.unwrap_or(0),
        end: match number(1)? {
            Some(end) => End::At(end),
            None if parts.len() > 1 => End::Last,
            None => End::AfterStart,
        },
        step: number(2)?,
    })
}

/// Unquotes a string.
fn unquoted(text: &str, quote: char) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                c if c == '\\' || c == quote => c,
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}
