//! Label and field selectors: their text forms, their errors, and matching.

use scantling_schema::names;
use scantling_value::{ErrorList, FieldError, Map, Path, aggregate, deadline};

/// A conjunction of requirements on labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    test: LabelOperator,
}

#[derive(Clone, Debug, PartialEq)]
enum LabelOperator {
    /// Sorted.
    In(Vec<String>),
    /// Sorted.
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Parses the `labelSelector` parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut p = Parser {
            tokens: tokens(text),
            at: 0,
        };
        let mut requirements = Vec::new();
        loop {
            match p.peek(TokenContext::Value) {
                SelectorToken::Word(_) | SelectorToken::Not => {
                    let r = p
                        .requirement()
                        .map_err(|e| format!("unable to parse requirement: {e}"))?;
                    requirements.push(r);
                    match p.next(TokenContext::Value) {
                        SelectorToken::End => break,
                        SelectorToken::Comma => {
                            let after = p.peek(TokenContext::Value);
                            if !matches!(after, SelectorToken::Word(_) | SelectorToken::Not) {
                                return Err(format!("found '{after}', expected: identifier after ','"));
                            }
                        }
                        other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
                    }
                }
                SelectorToken::End => break,
                other => {
                    return Err(format!(
                        "found '{other}', expected: !, identifier, or 'end of string'"
                    ));
                }
            }
        }
        Ok(LabelSelector { requirements })
    }

    /// The number of requirements.
    pub(crate) fn len(&self) -> usize {
        self.requirements.len()
    }

    /// Returns whether every object matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns whether an object with these labels matches.
    pub(crate) fn matches(&self, labels: Option<&Map>) -> bool {
        self.requirements.iter().all(|r| {
            // A selector may have thousands of requirements and is applied to every object of a list.
            deadline::tick();
            let value = labels.and_then(|l| l.get(&r.key)).and_then(|v| v.as_str());
            match (&r.test, value) {
                (LabelOperator::In(set), Some(v)) => contains(set, v),
                (LabelOperator::NotIn(set), Some(v)) => !contains(set, v),
                (LabelOperator::Exists, found) => found.is_some(),
                (LabelOperator::Absent, found) => found.is_none(),
                // `notin` and `!=` also select objects without the label.
                (LabelOperator::NotIn(_), None) => true,
                (LabelOperator::In(_) | LabelOperator::Above(_) | LabelOperator::Below(_), None) => false,
                (LabelOperator::Above(bound), Some(v)) => v.parse::<i64>().is_ok_and(|n| n > *bound),
                (LabelOperator::Below(bound), Some(v)) => v.parse::<i64>().is_ok_and(|n| n < *bound),
            }
        })
    }
}

fn contains(sorted: &[String], value: &str) -> bool {
    sorted.binary_search_by(|s| s.as_str().cmp(value)).is_ok()
}

#[derive(Clone, Debug, PartialEq)]
enum SelectorToken {
    Word(String),
    Equal,
    DoubleEqual,
    NotEqual,
    Not,
    Open,
    Close,
    Comma,
    Above,
    Below,
    In,
    NotIn,
    End,
    /// An invalid token, as the lexer reports it.
    Bad(String),
}

impl std::fmt::Display for SelectorToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SelectorToken::Word(w) | SelectorToken::Bad(w) => w,
            SelectorToken::Equal => "=",
            SelectorToken::DoubleEqual => "==",
            SelectorToken::NotEqual => "!=",
            SelectorToken::Not => "!",
            SelectorToken::Open => "(",
            SelectorToken::Close => ")",
            SelectorToken::Comma => ",",
            SelectorToken::Above => ">",
            SelectorToken::Below => "<",
            SelectorToken::In => "in",
            SelectorToken::NotIn => "notin",
            SelectorToken::End => "",
        })
    }
}

fn symbol(text: &str) -> Option<SelectorToken> {
    Some(match text {
        "=" => SelectorToken::Equal,
        "==" => SelectorToken::DoubleEqual,
        "!=" => SelectorToken::NotEqual,
        "!" => SelectorToken::Not,
        "(" => SelectorToken::Open,
        ")" => SelectorToken::Close,
        "," => SelectorToken::Comma,
        ">" => SelectorToken::Above,
        "<" => SelectorToken::Below,
        _ => return None,
    })
}

/// The tokens of a selector. A zero byte ends a token, and the selector where one would begin.
fn tokens(text: &str) -> Vec<SelectorToken> {
    let is_symbol = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let mut out = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next().filter(|c| *c != '\0') {
        let taken = if is_symbol(first) {
            // The longest run of symbols that is a token.
            let two = rest.get(..2).and_then(symbol).map(|t| (2, t));
            let one = rest.get(..1).and_then(symbol).map(|t| (1, t));
            two.or(one).unwrap_or_else(|| {
                (
                    1,
                    SelectorToken::Bad(format!("error expected: keyword found '{first}'")),
                )
            })
        } else {
            let ends = |c: char| is_symbol(c) || is_space(c) || c == '\0';
            let end = rest.find(ends).unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or_default();
            let token = match word {
                "in" => SelectorToken::In,
                "notin" => SelectorToken::NotIn,
                _ => SelectorToken::Word(word.to_owned()),
            };
            (end, token)
        };
        out.push(taken.1);
        rest = rest.get(taken.0..).unwrap_or_default();
        rest = rest
            // Go's lexer takes a zero byte for the end of its input and consumes it.
            .strip_prefix('\0')
            .unwrap_or(rest)
            .trim_start_matches(is_space);
    }
    out
}

/// The reading of `in` and `notin`: as values or as operators.
#[derive(Clone, Copy, PartialEq)]
enum TokenContext {
    Value,
    Operator,
}

struct Parser {
    tokens: Vec<SelectorToken>,
    at: usize,
}

impl Parser {
    fn peek(&self, context: TokenContext) -> SelectorToken {
        match (self.tokens.get(self.at), context) {
            (Some(t @ (SelectorToken::In | SelectorToken::NotIn)), TokenContext::Value) => {
                SelectorToken::Word(t.to_string())
            }
            (Some(t), _) => t.clone(),
            (None, _) => SelectorToken::End,
        }
    }

    fn next(&mut self, context: TokenContext) -> SelectorToken {
        let t = self.peek(context);
        self.at += 1;
        t
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next(TokenContext::Value);
        let absent = token == SelectorToken::Not;
        if absent {
            token = self.next(TokenContext::Value);
        }
        let SelectorToken::Word(key) = token else {
            return Err(format!("found '{token}', expected: identifier"));
        };
        check_key(&key)?;
        let ends = matches!(
            self.peek(TokenContext::Value),
            SelectorToken::End | SelectorToken::Comma
        );
        // `!key` ends the requirement, so `!key in (a)` fails at the word that follows.
        if absent || ends {
            return Ok(Requirement {
                key,
                test: if absent {
                    LabelOperator::Absent
                } else {
                    LabelOperator::Exists
                },
            });
        }
        let operator = self.next(TokenContext::Operator);
        let values = match operator {
            SelectorToken::In | SelectorToken::NotIn => self.values()?,
            SelectorToken::Equal
            | SelectorToken::DoubleEqual
            | SelectorToken::NotEqual
            | SelectorToken::Above
            | SelectorToken::Below => {
                vec![self.value()?]
            }
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        let number = if matches!(operator, SelectorToken::Above | SelectorToken::Below) {
            let text = values.first().map_or("", String::as_str);
            match text.parse::<i64>() {
                Ok(n) => n,
                Err(_) => {
                    let root = Path::ROOT;
                    let at = root.field("values");
                    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                    return Err(FieldError::invalid(&at.index(0), text, why).to_string());
                }
            }
        } else {
            0
        };
        check_values(&key, &values)?;
        let test = match operator {
            SelectorToken::NotIn | SelectorToken::NotEqual => LabelOperator::NotIn(values),
            SelectorToken::Above => LabelOperator::Above(number),
            SelectorToken::Below => LabelOperator::Below(number),
            _ => LabelOperator::In(values),
        };
        Ok(Requirement { key, test })
    }

    fn value(&mut self) -> Result<String, String> {
        if matches!(
            self.peek(TokenContext::Value),
            SelectorToken::End | SelectorToken::Comma
        ) {
            return Ok(String::new());
        }
        match self.next(TokenContext::Value) {
            SelectorToken::Word(w) => Ok(w),
            other => Err(format!("found '{other}', expected: identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next(TokenContext::Value);
        if open != SelectorToken::Open {
            return Err(format!("found '{open}' expected: '('"));
        }
        let mut out = Vec::new();
        match self.peek(TokenContext::Value) {
            SelectorToken::Word(_) | SelectorToken::Comma => {}
            SelectorToken::Close => {
                self.next(TokenContext::Value);
                // As in Go, `in ()` means the empty value.
                return Ok(vec![String::new()]);
            }
            other => return Err(format!("found '{other}', expected: ',', ')' or identifier")),
        }
        loop {
            match self.next(TokenContext::Value) {
                SelectorToken::Word(w) => {
                    out.push(w);
                    match self.peek(TokenContext::Value) {
                        SelectorToken::Comma => {}
                        SelectorToken::Close => break,
                        other => return Err(format!("found '{other}', expected: ',' or ')'")),
                    }
                }
                SelectorToken::Comma => {
                    if out.is_empty() {
                        out.push(String::new());
                    }
                    match self.peek(TokenContext::Value) {
                        SelectorToken::Close => {
                            out.push(String::new());
                            break;
                        }
                        SelectorToken::Comma => {
                            self.next(TokenContext::Value);
                            out.push(String::new());
                        }
                        _ => {}
                    }
                }
                other => return Err(format!("found '{other}', expected: ',', or identifier")),
            }
        }
        self.next(TokenContext::Value);
        out.sort();
        // Go collects values in a set: sorted for the error texts, and for the binary search.
        out.dedup();
        Ok(out)
    }
}

/// The rules for keys.
fn check_key(key: &str) -> Result<(), String> {
    let wrong = names::label_key(key);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(FieldError::invalid(&Path::ROOT, key, wrong.join("; ")).to_string())
}

/// Validates values; returns all errors.
fn check_values(key: &str, values: &[String]) -> Result<(), String> {
    let root = Path::ROOT;
    let mut errors = ErrorList::new();
    let at = root.field("values");
    for (i, v) in values.iter().enumerate() {
        let wrong = names::label_value(v);
        if !wrong.is_empty() {
            errors.push_with(|| FieldError::invalid(&at.index(i).key(key), v.as_str(), wrong.join("; ")));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(aggregate(&errors))
    }
}

/// A conjunction of equalities on fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSelector {
    /// The terms, in the order of their texts.
    pub(crate) terms: Vec<FieldTerm>,
}

/// One equality or inequality.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldTerm {
    /// `metadata.name`
    pub(crate) field: String,
    /// Its value.
    pub(crate) value: String,
    /// True if it must be equal, false if it must not.
    pub(crate) equal: bool,
}

impl FieldSelector {
    /// Parses the `fieldSelector` parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        let mut parts = split_terms(text);
        // The first error in this order is reported.
        parts.sort_unstable();
        for part in parts.into_iter().filter(|p| !p.is_empty()) {
            let Some((field, equal, value)) = split_term(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            let value = unescape(value)?;
            // A term about nothing selects everything.
            if !field.is_empty() || !value.is_empty() {
                terms.push(FieldTerm {
                    field: field.to_owned(),
                    value,
                    equal,
                });
            }
        }
        Ok(FieldSelector { terms })
    }

    /// The value that a term requires of a field.
    pub(crate) fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|t| t.equal && t.field == field)
            .map(|t| t.value.as_str())
    }

    /// Returns whether an object with these fields matches.
    pub(crate) fn matches(&self, read: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|t| {
            deadline::tick();
            (read(&t.field) == t.value) == t.equal
        })
    }
}

/// Splits at commas that no backslash escapes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                out.extend(text.get(start..i));
                start = i + 1;
            }
            _ => {}
        }
    }
    out.extend(text.get(start..));
    out
}

fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.char_indices().find_map(|(i, _)| {
        let rest = term.get(i..)?;
        // Longest first, at the first position where any operator begins: Go splits terms in this way.
        let operator = ["!=", "==", "="].into_iter().find(|op| rest.starts_with(op))?;
        Some((i, operator))
    });
    let (i, operator) = at?;
    Some((term.get(..i)?, operator != "!=", term.get(i + operator.len()..)?))
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(e @ ('\\' | ',' | '=')) => out.push(e),
                Some(e) => return Err(format!("invalid field selector: invalid escape sequence: \\{e}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_owned()),
            },
            // kube-apiserver prints the code point as a number.
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                ));
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}
