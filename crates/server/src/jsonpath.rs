//! The JSONPath of printer columns: the part of kubectl's template language that a single expression may use.
//!
//! Public crates implement RFC 9535; columns are written in an older dialect (`.a\.b`, `[?(@.type=="Ready")]`,
//! recursive `..name`, slices with steps), so this one is read by hand.

use scantling_value::Value;
use std::cmp::Ordering;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Descend,
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: Option<i64>,
        single: bool,
    },
    Union(Vec<JsonPath>),
    Filter {
        left: Operand,
        test: Option<(Compare, Operand)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Constant(Value),
}

/// How deep brackets may nest.
const DEPTH: usize = 16;

impl JsonPath {
    /// Reads an expression without the braces of a template: `.spec.list[0].name`.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        parse(text, DEPTH)
    }

    /// The values that the expression finds; missing keys find nothing.
    pub(crate) fn find<'a>(&self, root: &'a Value) -> Result<Vec<&'a Value>, String> {
        self.find_from(vec![root])
    }

    fn find_from<'a>(&self, mut found: Vec<&'a Value>) -> Result<Vec<&'a Value>, String> {
        for step in &self.steps {
            let mut next = Vec::new();
            for v in found {
                step.apply(v, &mut next)?;
            }
            found = next;
        }
        Ok(found)
    }
}

fn parse(text: &str, depth: usize) -> Result<JsonPath, String> {
    let depth = depth.checked_sub(1).ok_or("the expression nests too deep")?;
    let mut steps = Vec::new();
    let mut rest = text.trim();
    rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
    // What follows a closing brace is text around the expression.
    rest = rest.split_once('}').map_or(rest, |(inside, _)| inside);
    if rest == "." {
        steps.push(Step::Field(String::new()));
        rest = "";
    }
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("..") {
            steps.push(Step::Descend);
            // A name follows directly; `..[` and `..*` are read by their own rules.
            rest = after;
            if !rest.is_empty() && !rest.starts_with(['[', '.']) {
                let (name, after) = field_name(rest);
                steps.push(if name == "*" {
                    Step::Wildcard
                } else {
                    Step::Field(name)
                });
                rest = after;
            }
        } else if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = field_name(after);
            match name.as_str() {
                "" => {}
                "*" => steps.push(Step::Wildcard),
                _ => steps.push(Step::Field(name)),
            }
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = bracket(after)?;
            steps.push(bracket_step(inside, depth)?);
            rest = after;
        } else {
            return Err(format!(
                "unrecognized character in action: U+{:04X} '{c}'",
                u32::from(c)
            ));
        }
    }
    Ok(JsonPath { steps })
}

/// A name up to the next step; a backslash takes the character after it as it is.
fn field_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' => {
                return (name, text.get(i..).unwrap_or_default());
            }
            c if c.is_whitespace() => return (name, text.get(i..).unwrap_or_default().trim_start()),
            c => name.push(c),
        }
    }
    (name, "")
}

/// What stands in brackets, and what follows them. Quotes hide brackets; filters may hold brackets of their own.
fn bracket(text: &str) -> Result<(&str, &str), String> {
    let (mut depth, mut quote) = (1usize, None);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') => {
                depth -= 1;
                if depth == 0 {
                    return Ok((
                        text.get(..i).unwrap_or_default(),
                        text.get(i + 1..).unwrap_or_default(),
                    ));
                }
            }
            (None, _) => {}
        }
    }
    Err("unterminated array".to_owned())
}

fn bracket_step(inside: &str, depth: usize) -> Result<Step, String> {
    let inside = inside.trim();
    if let Some(filter) = inside.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        return filter_step(filter, depth);
    }
    if let Some(name) = key(inside) {
        return Ok(Step::Field(name));
    }
    if inside == "*" {
        return Ok(Step::Slice {
            start: None,
            end: None,
            step: None,
            single: false,
        });
    }
    if inside.contains(',') {
        let parts = inside.split(',').map(|p| {
            let p = p.trim();
            let step = match key(p) {
                Some(name) => Step::Field(name),
                None => bracket_step(p, depth)?,
            };
            Ok(JsonPath { steps: vec![step] })
        });
        return Ok(Step::Union(parts.collect::<Result<_, String>>()?));
    }
    let numbers = inside.split(':').map(|n| match n {
        "" => Ok(None),
        n => n
            .parse::<i64>()
            .map(Some)
            .map_err(|_| format!("invalid array index {inside}")),
    });
    match numbers.collect::<Result<Vec<_>, _>>()?.as_slice() {
        [Some(start)] => Ok(Step::Slice {
            start: Some(*start),
            end: None,
            step: None,
            single: true,
        }),
        [start, end] => Ok(Step::Slice {
            start: *start,
            end: *end,
            step: None,
            single: false,
        }),
        [start, end, step] => Ok(Step::Slice {
            start: *start,
            end: *end,
            step: *step,
            single: false,
        }),
        _ => Err(format!("invalid array index {inside}")),
    }
}

/// A key in brackets: in single quotes, in which dots may be escaped, too.
fn key(text: &str) -> Option<String> {
    text.starts_with('\'')
        .then(|| quoted(text))
        .flatten()
        .map(|name| name.replace("\\.", "."))
}

fn quoted(text: &str) -> Option<String> {
    let inner = ['\'', '"']
        .into_iter()
        .find_map(|q| text.strip_prefix(q)?.strip_suffix(q).filter(|t| !t.contains(q)))?;
    Some(inner.to_owned())
}

fn filter_step(text: &str, depth: usize) -> Result<Step, String> {
    const OPERATORS: [(&str, Compare); 6] = [
        ("==", Compare::Equal),
        ("!=", Compare::NotEqual),
        ("<=", Compare::LessOrEqual),
        (">=", Compare::GreaterOrEqual),
        ("<", Compare::Less),
        (">", Compare::Greater),
    ];
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, _) => {
                let rest = text.get(i..).unwrap_or_default();
                if let Some((op, compare)) = OPERATORS.into_iter().find(|(op, _)| rest.starts_with(op)) {
                    let left = operand(text.get(..i).unwrap_or_default(), depth)?;
                    let right = operand(rest.get(op.len()..).unwrap_or_default(), depth)?;
                    return Ok(Step::Filter {
                        left,
                        test: Some((compare, right)),
                    });
                }
            }
        }
    }
    Ok(Step::Filter {
        left: operand(text, depth)?,
        test: None,
    })
}

fn operand(text: &str, depth: usize) -> Result<Operand, String> {
    let text = text.trim();
    let constant = match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        t => quoted(t)
            .map(Value::from)
            .or_else(|| t.parse::<i64>().ok().map(Value::Int))
            .or_else(|| t.parse::<f64>().ok().map(Value::Float)),
    };
    match constant {
        Some(v) => Ok(Operand::Constant(v)),
        None => Ok(Operand::Path(parse(text, depth)?)),
    }
}

impl Step {
    fn apply<'a>(&self, v: &'a Value, out: &mut Vec<&'a Value>) -> Result<(), String> {
        match self {
            Step::Field(name) => match v {
                Value::Object(m) => out.extend(m.get(name)),
                Value::Null => {}
                _ => return Err(format!("{name} is not found")),
            },
            Step::Wildcard => match v {
                Value::Object(m) => out.extend(m.values()),
                Value::Array(a) => out.extend(a),
                _ => {}
            },
            Step::Descend => descend(v, out),
            Step::Slice {
                start,
                end,
                step,
                single,
            } => {
                let Value::Array(a) = v else {
                    return if v.is_null() {
                        Ok(())
                    } else {
                        Err("value is not array or slice".to_owned())
                    };
                };
                slice(a, *start, *end, *step, *single, out)?;
            }
            Step::Union(paths) => {
                for p in paths {
                    out.extend(p.find(v)?);
                }
            }
            Step::Filter { left, test } => {
                let Value::Array(a) = v else {
                    return if v.is_null() {
                        Ok(())
                    } else {
                        Err("value is not array or slice".to_owned())
                    };
                };
                for item in a {
                    if passes(item, left, test.as_ref())? {
                        out.push(item);
                    }
                }
            }
        }
        Ok(())
    }
}

fn slice<'a>(
    a: &'a [Value],
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    single: bool,
    out: &mut Vec<&'a Value>,
) -> Result<(), String> {
    let len = i64::try_from(a.len()).unwrap_or(i64::MAX);
    let from_end = |i: i64| if i < 0 { i.saturating_add(len) } else { i };
    let first = from_end(start.unwrap_or(0));
    let last = if single {
        first.saturating_add(1)
    } else {
        end.map_or(len, from_end)
    };
    if first < 0 || last > len || (single && first >= len) {
        let at = if single || first < 0 || first >= len {
            first
        } else {
            last
        };
        return Err(format!("array index out of bounds: index {at}, length {len}"));
    }
    let step = step.unwrap_or(1);
    if step <= 0 {
        return Err("step must be > 0".to_owned());
    }
    let (Ok(first), Ok(last), Ok(step)) = (
        usize::try_from(first),
        usize::try_from(last),
        usize::try_from(step),
    ) else {
        return Ok(());
    };
    out.extend(a.get(first..last).unwrap_or_default().iter().step_by(step));
    Ok(())
}

/// Everything below a value, the value itself first.
fn descend<'a>(v: &'a Value, out: &mut Vec<&'a Value>) {
    let mut open = vec![v];
    while let Some(v) = open.pop() {
        match v {
            Value::Object(m) => {
                out.push(v);
                let children: Vec<_> = m.values().collect();
                open.extend(children.into_iter().rev());
            }
            Value::Array(a) => open.extend(a.iter().rev()),
            _ => {}
        }
    }
}

fn passes(item: &Value, left: &Operand, test: Option<&(Compare, Operand)>) -> Result<bool, String> {
    fn one<'a>(item: &'a Value, operand: &'a Operand) -> Result<Option<&'a Value>, String> {
        let found = match operand {
            Operand::Constant(v) => vec![v],
            Operand::Path(p) => p.find(item)?,
        };
        match found.as_slice() {
            [] => Ok(None),
            [v] => Ok(Some(v)),
            _ => Err("can only compare one element at a time".to_owned()),
        }
    }
    let l = one(item, left)?;
    let Some((compare, right)) = test else {
        return Ok(l.is_some());
    };
    let (Some(l), Some(r)) = (l, one(item, right)?) else {
        return Ok(false);
    };
    let order = match (l, r) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    Ok(match compare {
        Compare::Equal => order == Some(Ordering::Equal),
        Compare::NotEqual => order != Some(Ordering::Equal),
        Compare::Less => order == Some(Ordering::Less),
        Compare::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Compare::Greater => order == Some(Ordering::Greater),
        Compare::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds() {
        let doc = scantling_value::json::decode(
            br#"{"spec":{"n":1,"a.b":"dot","list":[{"t":"A","s":"x"},{"t":"B","s":"y"},{"t":"B","s":"z"}]},
                 "m":{"k1":{"v":1},"k2":{"v":2}}}"#,
            scantling_value::Limits::SAFE,
        )
        .unwrap();
        let table = [
            (".spec.n", "1"),
            (r".spec.a\.b", r#""dot""#),
            (".spec['a.b']", r#""dot""#),
            (".spec.list[0].t", r#""A""#),
            (".spec.list[-1].s", r#""z""#),
            (".spec.list[0:2].s", r#""x" "y""#),
            (".spec.list[*].s", r#""x" "y" "z""#),
            (r#".spec.list[?(@.t=="B")].s"#, r#""y" "z""#),
            (r#".spec.list[?(@.t == 'A')].s"#, r#""x""#),
            (".spec.list[?(@.none)].s", ""),
            (".m.*.v", "1 2"),
            ("..v", "1 2"),
            (".none.x", ""),
            (
                ".spec.list[9].t",
                "error: array index out of bounds: index 9, length 3",
            ),
            (".spec.list[", "error: unterminated array"),
            ("x", "error: unrecognized character in action: U+0078 'x'"),
        ];
        for (path, want) in table {
            let got = match JsonPath::parse(path).and_then(|p| {
                p.find(&doc)
                    .map(|f| f.iter().map(|v| v.to_json()).collect::<Vec<_>>().join(" "))
            }) {
                Ok(text) => text,
                Err(e) => format!("error: {e}"),
            };
            assert_eq!(got, want, "{path}");
        }
    }
}
