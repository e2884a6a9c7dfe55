//! The JSONPath of printer columns: the part of kubectl's template language that a column may use.
//!
//! Public crates implement RFC 9535; columns are written in an older dialect (`.a\.b`, `[?(@.type=="Ready")]`,
//! recursive `..name`, slices with steps, `[]` for the first element), with quirks that CRDs rely on. So it is
//! implemented here, as kube-apiserver parses it.

mod read;

use scantling_value::{Value, deadline};
use std::cmp::Ordering;
use std::sync::LazyLock;

/// A parsed template. Columns print its first expression; the others may still fail.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath {
    expressions: Vec<Path>,
}

type Path = Vec<JsonPathStep>;

#[derive(Clone, Debug, PartialEq)]
enum JsonPathStep {
    Field(String),
    Wildcard,
    Descend,
    Slice(Slice),
    Union(Vec<Path>),
    Filter(Filter),
    /// A string literal, printed once.
    Text(Value),
    /// A number or a boolean, printed once for each value.
    Constant(Value),
    /// An identifier without a meaning.
    Word(String),
}

/// A slice of a list; negative indexes count from the end.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    start: i64,
    end: End,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The end of the list.
    Last,
    /// The index after the start: the slice is a single element.
    AfterStart,
    At(i64),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Path,
    /// The right side; without it, the filter tests whether the left side exists.
    test: Option<(String, Path)>,
}

impl JsonPath {
    /// Parses an expression without the braces of a template: `.spec.list[0].name`.
    pub(crate) fn parse(text: &str) -> Result<JsonPath, String> {
        let expressions = read::template(text)?;
        Ok(JsonPath { expressions })
    }

    /// Returns the values that the expression selects; missing keys select nothing.
    pub(crate) fn find<'a>(&'a self, root: &'a Value) -> Result<Vec<&'a Value>, String> {
        let found = self.expressions.iter().map(|path| follow(path, vec![root]));
        // All expressions are evaluated, although only the first is printed: an error in any leaves the cell empty.
        let all: Vec<Vec<&Value>> = found.collect::<Result<_, _>>()?;
        Ok(all.into_iter().next().unwrap_or_default())
    }
}

/// The bytes of a string, as numbers.
static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| (0..=i64::from(u8::MAX)).map(Value::Int).collect());

/// The maximum number of values that a step selects. A short path may select the same values repeatedly.
const MOST: usize = 1 << 20;

/// The values that a step has selected.
#[derive(Default)]
struct SelectedValues<'a>(Vec<&'a Value>);

impl<'a> SelectedValues<'a> {
    fn push(&mut self, value: &'a Value) -> Result<(), String> {
        deadline::tick();
        if self.0.len() >= MOST {
            return Err(format!("more than {MOST} values are found on the way"));
        }
        self.0.push(value);
        Ok(())
    }

    fn extend(&mut self, values: impl IntoIterator<Item = &'a Value>) -> Result<(), String> {
        values.into_iter().try_for_each(|value| self.push(value))
    }
}

/// Follows a path from some values.
fn follow<'a>(path: &'a [JsonPathStep], from: Vec<&'a Value>) -> Result<Vec<&'a Value>, String> {
    path.iter().try_fold(from, |found, step| step.from(found))
}

impl JsonPathStep {
    fn from<'a>(&'a self, found: Vec<&'a Value>) -> Result<Vec<&'a Value>, String> {
        let mut out = SelectedValues::default();
        match self {
            JsonPathStep::Field(name) => out.extend(found.iter().filter_map(|v| v.get(name)))?,
            JsonPathStep::Wildcard => {
                for value in found {
                    match value {
                        Value::Object(members) => out.extend(members.values())?,
                        Value::Array(items) => out.extend(items)?,
                        Value::String(text) => {
                            out.extend(text.bytes().filter_map(|b| BYTES.get(usize::from(b))))?;
                        }
                        _ => {}
                    }
                }
            }
            JsonPathStep::Descend => {
                for value in found {
                    descend(value, &mut out)?;
                }
            }
            JsonPathStep::Slice(slice) => {
                for value in found {
                    // Go returns from its loop here, so that the values after an empty slice are lost.
                    if !slice.eval(value, &mut out)? {
                        break;
                    }
                }
            }
            JsonPathStep::Union(paths) => {
                for path in paths {
                    out.extend(follow(path, found.clone())?)?;
                }
            }
            JsonPathStep::Filter(filter) => {
                for value in found {
                    filter.eval(value, &mut out)?;
                }
            }
            JsonPathStep::Text(text) => out.push(text)?,
            JsonPathStep::Constant(value) => out.extend(std::iter::repeat_n(value, found.len()))?,
            JsonPathStep::Word(word) => return Err(format!("unrecognized identifier {word}")),
        }
        Ok(out.0)
    }
}

/// A value and everything below it that is not empty, the value itself first. Strings contain bytes.
fn descend<'a>(value: &'a Value, out: &mut SelectedValues<'a>) -> Result<(), String> {
    // A stack instead of recursion: objects may be as deep as the limit of the decoder.
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) if !members.is_empty() => {
                out.push(value)?;
                let children: Vec<_> = members.values().collect();
                open.extend(children.into_iter().rev());
            }
            Value::Array(items) if !items.is_empty() => {
                out.push(value)?;
                open.extend(items.iter().rev());
            }
            Value::String(text) if !text.is_empty() => out.push(value)?,
            _ => {}
        }
    }
    Ok(())
}

impl Slice {
    /// Selects elements of a list. Returns whether the path continues: an empty slice ends it.
    fn eval<'a>(&self, value: &'a Value, out: &mut SelectedValues<'a>) -> Result<bool, String> {
        let items = match value {
            Value::Null => return Ok(true),
            Value::Array(items) => items,
            _ => return Err("value is not array or slice".to_owned()),
        };
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let from_end = |i: i64| if i < 0 { i.saturating_add(length) } else { i };
        let start = from_end(self.start);
        let end = match self.end {
            End::Last => length,
            // The index after -1 would be 0, the first element.
            End::AfterStart if self.start == -1 => length,
            End::AfterStart => from_end(self.start.saturating_add(1)),
            End::At(end) => from_end(end),
        };
        // Before the bounds are checked: in Go, an empty slice of an empty list is not out of bounds.
        if start == end {
            return Ok(false);
        }
        let out_of_bounds = |at| format!("array index out of bounds: index {at}, length {length}");
        if !(0..length).contains(&start) {
            return Err(out_of_bounds(start));
        }
        if !(0..=length).contains(&end) {
            return Err(out_of_bounds(end.saturating_sub(1)));
        }
        if start > end {
            return Err(format!(
                "starting index {start} is greater than ending index {end}"
            ));
        }
        let step = self.step.unwrap_or(1);
        let (Ok(start), Ok(end), Ok(step @ 1..)) = (
            usize::try_from(start),
            usize::try_from(end),
            usize::try_from(step),
        ) else {
            return Err("step must be > 0".to_owned());
        };
        out.extend(items.get(start..end).unwrap_or_default().iter().step_by(step))?;
        Ok(true)
    }
}

impl Filter {
    fn eval<'a>(&'a self, value: &'a Value, out: &mut SelectedValues<'a>) -> Result<(), String> {
        let Value::Array(items) = value else {
            return Err("value is not array or slice and cannot be filtered".to_owned());
        };
        for item in items {
            deadline::tick();
            if self.passes(item)? {
                out.push(item)?;
            }
        }
        Ok(())
    }

    fn passes(&self, item: &Value) -> Result<bool, String> {
        let left = follow(&self.left, vec![item]);
        let Some((operator, right)) = &self.test else {
            // A path that fails counts as present.
            return Ok(left.map_or(true, |found| !found.is_empty()));
        };
        // A missing side fails every comparison, also `!=`. The left one hides errors of the right one.
        let Some(left) = only(&left?)? else {
            return Ok(false);
        };
        match only(&follow(right, vec![item])?)? {
            Some(right) => compare(left, operator, right),
            None => Ok(false),
        }
    }
}

/// The value of a side of a comparison; `None` if it is missing.
fn only<'a>(side: &[&'a Value]) -> Result<Option<&'a Value>, String> {
    match side {
        [] => Ok(None),
        [value] => Ok(Some(*value)),
        _ => Err("can only compare one element at a time".to_owned()),
    }
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
        // As in Go, an integer and a float do not compare.
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) if matches!(operator, "==" | "!=") => Some(a.cmp(b)),
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    let is = |wanted: &[Ordering]| order.is_some_and(|order| wanted.contains(&order));
    Ok(match operator {
        "==" => is(&[Ordering::Equal]),
        "!=" => !is(&[Ordering::Equal]),
        "<" => is(&[Ordering::Less]),
        "<=" => is(&[Ordering::Less, Ordering::Equal]),
        ">" => is(&[Ordering::Greater]),
        ">=" => is(&[Ordering::Greater, Ordering::Equal]),
        other => return Err(format!("unrecognized filter operator {other}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jsonpath_results_are_bounded() {
        let list = Value::Array(vec![Value::Int(1); 8]);
        let document = Value::Object([("a", list)].into_iter().collect());
        let doubled = |times: usize| JsonPath::parse(&format!(".a{}", "['x',*,*]".repeat(times)));
        let union = JsonPath::parse(&format!("{}.a", "['a','a']".repeat(2)));
        assert_eq!(union.unwrap().find(&document), Ok(Vec::new()));
        let nested = (0..2000).fold(Value::Int(1), |below, _| {
            Value::Object([("a", below)].into_iter().collect())
        });
        let often = JsonPath::parse(&"..a".repeat(4)).unwrap();
        let why = format!("more than {MOST} values are found on the way");
        assert_eq!(often.find(&nested), Err(why));
        assert!(doubled(1).is_ok_and(|path| path.find(&document).is_ok()));
    }

    #[test]
    fn paths_select_values() {
        let doc = scantling_value::json::decode(
            br#"{"spec":{"n":1,"a.b":"dot","list":[{"t":"A","s":"x"},{"t":"B","s":"y"},{"t":"B","s":"z"}]},
                 "m":{"k1":{"v":1},"k2":{"v":2}}}"#,
            scantling_value::Limits::SAFE,
        )
        .unwrap();
        let table = [
            (".spec.n", "1"),
            (".spec.", ""),
            (r".spec.a\.b", r#""dot""#),
            (r".spec['a\.b']", r#""dot""#),
            (".spec['a.b']", ""),
            (".spec.list[0].t", r#""A""#),
            (".spec.list[].t", r#""A""#),
            (".spec.list[-1].s", r#""z""#),
            (".spec.list[0:2].s", r#""x" "y""#),
            (".spec.list[::2].s", r#""x" "z""#),
            (".spec.list[*].s", r#""x" "y" "z""#),
            (".spec.list[0,2].s", r#""x" "z""#),
            (".spec['n','none']", "1"),
            (r#".spec.list[?(@.t=="B")].s"#, r#""y" "z""#),
            (r#".spec.list[?(@.t == 'A')].s"#, r#""x""#),
            (".spec.list[?(@.none)].s", ""),
            (".spec.list[?(@.none==@.t[9])].s", ""),
            (
                ".spec.list[?(@.t==@.t[9])].s",
                "error: value is not array or slice",
            ),
            (
                ".spec.list[?(@..==@.none)].s",
                "error: can only compare one element at a time",
            ),
            (
                ".spec.list[?(@.t==)].s",
                "error: unrecognized character in action: U+003D '='",
            ),
            (".spec.list[?(@.t=)].s", ""),
            (
                ".spec.list[?(@.t=~'A')].s",
                "error: unrecognized character in action: U+007E '~'",
            ),
            (
                ".spec.list[?(@.t=>'A')].s",
                "error: unrecognized filter operator =>",
            ),
            (".m.*.v", "1 2"),
            ("..v", "1 2"),
            (".m 1", "1"),
            (".m 'x'", r#""x""#),
            (".none.x", ""),
            (
                ".spec.n} and {.spec.list[9]",
                "error: array index out of bounds: index 9, length 3",
            ),
            (
                ".spec.list[9].t",
                "error: array index out of bounds: index 9, length 3",
            ),
            (
                ".spec.list[2:1].t",
                "error: starting index 2 is greater than ending index 1",
            ),
            (".spec.list[", "error: unterminated array"),
            (".spec.list[a]", "error: invalid array index a"),
            (".spec.list[?(@.t", "error: unterminated filter"),
            ("x", "error: unrecognized identifier x"),
            (".spec\t.n", "error: unrecognized character in action: U+0009"),
        ];
        for (path, want) in table {
            let found = JsonPath::parse(path).and_then(|p| {
                let found = p.find(&doc)?;
                let texts: Vec<String> = found.iter().map(|v| v.to_json()).collect();
                Ok(texts.join(" "))
            });
            let got = found.unwrap_or_else(|e| format!("error: {e}"));
            assert_eq!(got, want, "{path}");
        }
    }
}
