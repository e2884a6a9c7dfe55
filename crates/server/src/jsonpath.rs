//! The JSONPath of printer columns: kubectl's template language, of which a column is one action.
//!
//! Public crates implement RFC 9535; columns are written in an older dialect (`.a\.b`, `[?(@.type=="Ready")]`,
//! recursive `..name`, slices with steps), so this one is read by hand.

mod parse;

use scantling_value::Value;
use std::cmp::Ordering;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    /// What stands between braces, and where a text closes the braces of the column, what it opens after that.
    actions: Vec<Steps>,
}

type Steps = Vec<Step>;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    Descend,
    Slice(Slice),
    Union(Vec<Steps>),
    Filter {
        left: Steps,
        test: Option<(String, Steps)>,
    },
    /// A number or a boolean: one for every value that was found so far.
    Constant(Value),
    /// A quoted text, whatever was found so far.
    Text(Value),
    /// A word, of which templates know two; neither finds anything in a single action.
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// That of the list.
    Open,
    Before(i64),
    /// After one element; this is the number after its own.
    Next(i64),
}

type Found<'a> = Vec<&'a Value>;

/// What was found, or what was at hand when something went wrong.
type Outcome<'a> = Result<Found<'a>, Found<'a>>;

impl JsonPath {
    /// Reads an expression without the braces of a template: `.spec.list[0].name`.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        parse::actions(text).map(|actions| JsonPath { actions })
    }

    /// The values that the expression finds; missing keys find nothing, and so does what goes wrong.
    pub(crate) fn find<'a>(&'a self, root: &'a Value) -> Found<'a> {
        let outcomes = self.actions.iter().map(|steps| walk(steps, vec![root]));
        let outcomes = outcomes.collect::<Result<Vec<_>, _>>();
        outcomes
            .ok()
            .and_then(|found| found.into_iter().next())
            .unwrap_or_default()
    }
}

fn walk<'a>(steps: &'a [Step], input: Found<'a>) -> Outcome<'a> {
    steps.iter().try_fold(input, |found, step| step.apply(found))
}

impl Step {
    fn apply<'a>(&'a self, input: Found<'a>) -> Outcome<'a> {
        match self {
            Step::Field(name) => {
                let members = input.into_iter().filter_map(Value::as_object);
                Ok(members.filter_map(|m| m.get(name)).collect())
            }
            Step::Wildcard => Ok(input.into_iter().flat_map(children).collect()),
            Step::Descend => Ok(descend(input)),
            Step::Slice(slice) => slice.apply(input),
            Step::Union(branches) => {
                let mut out = Vec::new();
                for steps in branches {
                    match walk(steps, input.clone()) {
                        Ok(found) => out.extend(found),
                        Err(_) => return Err(input),
                    }
                }
                Ok(out)
            }
            Step::Filter { left, test } => filter(left, test.as_ref(), input),
            Step::Constant(value) => Ok(input.iter().map(|_| value).collect()),
            Step::Text(text) => Ok(vec![text]),
            Step::Word => Err(input),
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(m) => m.values().collect(),
        Value::Array(a) => a.iter().collect(),
        _ => Vec::new(),
    }
}

/// The values and all below them that have something in them, each before what it holds.
fn descend(mut open: Found<'_>) -> Found<'_> {
    let mut out = Vec::new();
    open.reverse();
    while let Some(value) = open.pop() {
        let below = children(value);
        if !below.is_empty() || value.as_str().is_some_and(|text| !text.is_empty()) {
            out.push(value);
        }
        open.extend(below.into_iter().rev());
    }
    out
}

impl Slice {
    fn apply<'a>(&self, input: Found<'a>) -> Outcome<'a> {
        let mut out = Vec::new();
        for value in &input {
            let list = match value {
                Value::Null => continue,
                Value::Array(list) => list,
                _ => return Err(input),
            };
            match self.bounds(list.len()) {
                // Where nothing is asked for, nothing is looked at any more.
                Some((start, end)) if start == end => return Ok(out),
                Some((start, end)) => match self.step.map_or(Ok(1), usize::try_from) {
                    Ok(step @ 1..) => {
                        out.extend(list.get(start..end).unwrap_or_default().iter().step_by(step));
                    }
                    _ => return Err(input),
                },
                None => return Err(input),
            }
        }
        Ok(out)
    }

    /// From where to where, if the list is long enough.
    fn bounds(&self, len: usize) -> Option<(usize, usize)> {
        let length = i64::try_from(len).ok()?;
        let from_end = |i: i64| if i < 0 { i.saturating_add(length) } else { i };
        let start = from_end(self.start.unwrap_or(0));
        let end = match self.end {
            End::Open | End::Next(0) => length,
            End::Before(end) | End::Next(end) => from_end(end),
        };
        if start == end {
            return Some((0, 0));
        }
        let within = (0..length).contains(&start) && (start..=length).contains(&end);
        let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        bounds.filter(|_| within)
    }
}

fn filter<'a>(left: &'a [Step], test: Option<&'a (String, Steps)>, input: Found<'a>) -> Outcome<'a> {
    let mut out = Vec::new();
    for value in &input {
        let Value::Array(list) = value else {
            return Err(input);
        };
        for item in list {
            let found = walk(left, vec![item]);
            let Some((operator, right)) = test else {
                // Whatever is at hand counts.
                let (Ok(found) | Err(found)) = found;
                if !found.is_empty() {
                    out.push(item);
                }
                continue;
            };
            let (Ok(l), Ok(r)) = (found, walk(right, vec![item])) else {
                return Err(input);
            };
            match (l.as_slice(), r.as_slice()) {
                ([], _) | ([_], []) => {}
                ([l], [r]) => match compare(l, operator, r) {
                    Some(true) => out.push(item),
                    Some(false) => {}
                    None => return Err(out),
                },
                _ => return Err(input),
            }
        }
    }
    Ok(out)
}

/// Whether a comparison holds; nothing where values cannot be compared so.
fn compare(l: &Value, operator: &str, r: &Value) -> Option<bool> {
    let order = match (l, r) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => a.cmp(b),
        _ => return None,
    };
    match operator {
        "==" => Some(order == Ordering::Equal),
        "!=" => Some(order != Ordering::Equal),
        "<" => Some(order == Ordering::Less),
        "<=" => Some(order != Ordering::Greater),
        ">" => Some(order == Ordering::Greater),
        ">=" => Some(order != Ordering::Less),
        _ => None,
    }
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
            (r".spec['a\.b']", r#""dot""#),
            (".spec['a.b']", ""),
            (".spec.list[0].t", r#""A""#),
            (".spec.list[].t", r#""A""#),
            (".spec.list[-1].s", r#""z""#),
            (".spec.list[0:2].s", r#""x" "y""#),
            (".spec.list[*].s", r#""x" "y" "z""#),
            (".spec.list[0,2].s", r#""x" "z""#),
            (r#".spec.list[?(@.t=="B")].s"#, r#""y" "z""#),
            (r#".spec.list[?(@.t == 'A')].s"#, r#""x""#),
            (".spec.list[?(@.none)].s", ""),
            (".m.*.v", "1 2"),
            ("..v", "1 2"),
            (".none.x", ""),
            (".spec.list[9].t", ""),
            (".spec.", ""),
            (".spec . n", ""),
            (".spec.n}{.m", "1"),
            (".spec.list[", "error: unterminated array"),
            ("x", ""),
            ("%", "error: unrecognized character in action: '%'"),
            (".spec.n}{.m[", "error: unterminated array"),
        ];
        for (path, want) in table {
            let got = match JsonPath::parse(path) {
                Ok(path) => {
                    let found: Vec<_> = path.find(&doc).iter().map(|v| v.to_json()).collect();
                    found.join(" ")
                }
                Err(e) => format!("error: {e}"),
            };
            assert_eq!(got, want, "{path}");
        }
    }
}
