//! Normalized responses and their differences.

use regex::Regex;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A response without the values that differ from server to server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The returned object; `None` for a `Status`.
    pub(crate) fn object(&self) -> Option<&Value> {
        Some(&self.body).filter(|body| self.is_success() && body.get_str("kind") != "Status")
    }

    /// The statements of the response.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("status {}", self.status)];
        lines.extend(self.warnings.iter().map(|text| format!("warning {text}")));
        let causes = self.body.list_at(["details", "causes"]);
        for cause in causes {
            let [reason, field, message] = ["reason", "field", "message"].map(|name| cause.get_str(name));
            lines.push(format!("cause {field}: {reason}: {message}"));
        }
        flatten(&self.body, "", &mut lines);
        if self.body.get_str("kind") == "Status" {
            lines.retain(|line| !line.starts_with(".message = ") && !line.starts_with(".details.causes"));
            // The message repeats causes.
            if causes.is_empty() {
                lines.push(format!("message {}", self.body.get_str("message")));
            }
        }
        lines
    }
}

fn flatten(value: &Value, at: &str, lines: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members
                .iter()
                .for_each(|(name, value)| flatten(value, &format!("{at}.{name}"), lines));
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, item) in items.iter().enumerate() {
                flatten(item, &format!("{at}[{i}]"), lines);
            }
        }
        scalar => lines.push(format!("{at} = {}", scalar.to_json())),
    }
}

/// The statements that only one of the responses makes: `-` is kube-apiserver's, `+` is ours.
pub(crate) fn differences(theirs: &Answer, ours: &Answer) -> Vec<String> {
    let mut count: BTreeMap<String, i64> = BTreeMap::new();
    let (theirs, ours) = (theirs.lines(), ours.lines());
    theirs
        .iter()
        .for_each(|line| *count.entry(line.clone()).or_default() += 1);
    ours.iter()
        .for_each(|line| *count.entry(line.clone()).or_default() -= 1);
    let only = |lines: &[String], sign: i64, mark: char| -> Vec<String> {
        let lines = lines
            .iter()
            .filter(|line| count.get(*line).is_some_and(|n| n * sign > 0));
        lines.map(|line| format!("{mark} {line}")).collect()
    };
    [only(&theirs, 1, '-'), only(&ours, -1, '+')].concat()
}

/// What a difference is about, without the values of one object: the first lines of both servers.
pub(crate) fn class(differences: &[String]) -> String {
    static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        let rules = [
            (r#""(?:[^"\\]|\\.)*""#, "\"…\""),
            (r"(cause )[^:]*?([^.:\[\]]*)(?:\[[^\]]*\])?: ", "$1$2: "),
            (r"\[[^\]]*\]", "[]"),
            (r"(\D)-?\d+(\.\d+)?", "${1}N"),
            (r"^(. \.\S+) = .*", "$1"),
            (r"Invalid value: .*?: ", "Invalid value: …: "),
        ];
        let compile = |(pattern, with)| Some((Regex::new(pattern).ok()?, with));
        rules.into_iter().filter_map(compile).collect()
    });
    let general = |line: &String| {
        let replace =
            |line: String, (rule, with): &(Regex, &str)| rule.replace_all(&line, *with).into_owned();
        if line.get(2..).is_some_and(|line| line.starts_with("status ")) {
            return line.clone();
        }
        let line = VARYING.iter().fold(line.clone(), replace);
        line.chars().take(160).collect::<String>()
    };
    let of = |mark: char| {
        let mut lines = differences.iter().filter(|line| line.starts_with(mark));
        let is_text = |line: &&String| {
            let text = line.get(2..).unwrap_or_default();
            ["cause ", "warning ", "message "]
                .iter()
                .any(|word| text.starts_with(word))
        };
        let first = lines.clone().find(is_text);
        first.or_else(|| lines.next()).map(general)
    };
    let both: Vec<String> = [of('-'), of('+')].into_iter().flatten().collect();
    both.join(" | ")
}
