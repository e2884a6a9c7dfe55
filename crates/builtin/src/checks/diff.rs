//! Differences between two values, as errors about immutable structs show them.
//!
//! Kubernetes prints both values as indented JSON and shows a unified diff of the lines. Which lines match is decided by
//! the algorithm of Python's `difflib` (Ratcliff and Obershelp), so that this module follows it step by step.

use super::go;
use scantling_value::{BadValue, Value, deadline};
use std::collections::BTreeMap;
use std::ops::Range;

/// The unified diff of two structs: `package` and `name` are their type in the table of API types.
pub(crate) fn structs(package: &str, name: &str, old: Option<&Value>, new: Option<&Value>) -> String {
    let [old, new] = [old, new].map(|value| match go::structure(package, name, value) {
        BadValue::Raw(json) => indented(&json),
        _ => String::new(),
    });
    unified(&lines(&old), &lines(&new))
}

/// JSON without spaces, indented by one space per level.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut is_string = false;
    let mut is_escaped = false;
    let mut chars = json.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth));
    };
    while let Some(c) = chars.next() {
        if is_string {
            out.push(c);
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => is_string = false,
                _ => {}
            }
            continue;
        }
        match c {
            '{' | '[' => {
                out.push(c);
                match chars.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        new_line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                is_string = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

/// A step from the old lines to the new ones: these old lines become those new ones.
#[derive(Clone)]
struct Step {
    is_equal: bool,
    old: Range<usize>,
    new: Range<usize>,
}

/// The lines around a difference that are shown.
const CONTEXT: usize = 3;

/// The differing lines in the unified format, without file names.
fn unified(old: &[&str], new: &[&str]) -> String {
    let mut out = String::new();
    for group in groups(&steps(old, new)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        out.push_str("@@ -");
        write_range(first.old.start..last.old.end, &mut out);
        out.push_str(" +");
        write_range(first.new.start..last.new.end, &mut out);
        out.push_str(" @@\n");
        for step in &group {
            let old = old.get(step.old.clone()).unwrap_or(&[]);
            let new = new.get(step.new.clone()).unwrap_or(&[]);
            match step.is_equal {
                true => write_lines(' ', old, &mut out),
                false => {
                    write_lines('-', old, &mut out);
                    write_lines('+', new, &mut out);
                }
            }
        }
    }
    out
}

fn write_lines(mark: char, lines: &[&str], out: &mut String) {
    for line in lines {
        out.push(mark);
        out.push_str(line);
        out.push('\n');
    }
}

/// The first line, counted from 1, and the number of lines unless it is 1.
fn write_range(range: Range<usize>, out: &mut String) {
    let text = match range.len() {
        // An empty range is named by the line before it.
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    };
    out.push_str(&text);
}

/// Differences with their context. Differences that are close to each other are in one group.
fn groups(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut steps = steps.to_vec();
    let keep_end = |range: &Range<usize>, n: usize| range.end.saturating_sub(n).max(range.start)..range.end;
    let keep_start = |range: &Range<usize>, n: usize| range.start..(range.start + n).min(range.end);
    if let Some(first) = steps.first_mut().filter(|s| s.is_equal) {
        (first.old, first.new) = (keep_end(&first.old, CONTEXT), keep_end(&first.new, CONTEXT));
    }
    if let Some(last) = steps.last_mut().filter(|s| s.is_equal) {
        (last.old, last.new) = (keep_start(&last.old, CONTEXT), keep_start(&last.new, CONTEXT));
    }
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for step in steps {
        if step.is_equal && step.old.len() > 2 * CONTEXT {
            group.push(Step {
                is_equal: true,
                old: keep_start(&step.old, CONTEXT),
                new: keep_start(&step.new, CONTEXT),
            });
            groups.push(std::mem::take(&mut group));
            group.push(Step {
                is_equal: true,
                old: keep_end(&step.old, CONTEXT),
                new: keep_end(&step.new, CONTEXT),
            });
        } else {
            group.push(step);
        }
    }
    groups.push(group);
    groups.retain(|g| g.iter().any(|s| !s.is_equal));
    groups
}

fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut i, mut j) = (0, 0);
    for (in_old, in_new, length) in BlockMatcher::new(old, new).blocks() {
        if i < in_old || j < in_new {
            steps.push(Step {
                is_equal: false,
                old: i..in_old,
                new: j..in_new,
            });
        }
        (i, j) = (in_old + length, in_new + length);
        if length > 0 {
            steps.push(Step {
                is_equal: true,
                old: in_old..i,
                new: in_new..j,
            });
        }
    }
    steps
}

struct BlockMatcher<'l> {
    old: &'l [&'l str],
    new: &'l [&'l str],
    /// The positions of each line in the new text, without lines that are too frequent.
    positions: BTreeMap<&'l str, Vec<usize>>,
}

impl<'l> BlockMatcher<'l> {
    fn new(old: &'l [&'l str], new: &'l [&'l str]) -> Self {
        let mut positions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (j, line) in new.iter().enumerate() {
            positions.entry(line).or_default().push(j);
        }
        const LONG: usize = 200;
        // difflib, whose algorithm Kubernetes uses, does not search for lines that are this frequent in a long text.
        if new.len() >= LONG {
            let most = new.len() / 100 + 1;
            positions.retain(|_, at| at.len() <= most);
        }
        BlockMatcher { old, new, positions }
    }

    /// The blocks of lines that both have, in order; the last one is empty and at the end.
    fn blocks(&self) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        // The order of the queue does not matter, because the blocks are sorted afterwards.
        let mut queue = vec![(0..self.old.len(), 0..self.new.len())];
        while let Some((old, new)) = queue.pop() {
            let (i, j, length) = self.longest(old.clone(), new.clone());
            if length > 0 {
                found.push((i, j, length));
                queue.push((old.start..i, new.start..j));
                queue.push((i + length..old.end, j + length..new.end));
            }
        }
        found.sort_unstable();
        // difflib joins blocks that follow each other directly in both texts.
        let mut joined: Vec<(usize, usize, usize)> = Vec::new();
        for (i, j, length) in found {
            match joined.last_mut() {
                Some(last) if last.0 + last.2 == i && last.1 + last.2 == j => last.2 += length,
                _ => joined.push((i, j, length)),
            }
        }
        joined.push((self.old.len(), self.new.len(), 0));
        joined
    }

    /// The longest block in a part of the lines; of several, the first one.
    fn longest(&self, old: Range<usize>, new: Range<usize>) -> (usize, usize, usize) {
        let mut best = (old.start, new.start, 0);
        // The length of the block that ends at the previous old line and at a new line.
        let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
        for i in old.clone() {
            // Each step looks at all lines that equal this one, so the search is quadratic in the worst case.
            deadline::tick();
            let mut next = BTreeMap::new();
            let line = self.old.get(i).copied().unwrap_or("");
            for j in self.positions.get(line).into_iter().flatten().copied() {
                if j >= new.end {
                    break;
                }
                if j < new.start {
                    continue;
                }
                let before = j
                    .checked_sub(1)
                    .and_then(|j| lengths.get(&j))
                    .copied()
                    .unwrap_or(0);
                let length = before + 1;
                next.insert(j, length);
                if length > best.2 {
                    best = (i + 1 - length, j + 1 - length, length);
                }
            }
            lengths = next;
        }
        self.extended(best, &old, &new)
    }

    /// Adds equal lines before and after a block: frequent lines are not searched for, but belong to blocks.
    fn extended(
        &self,
        (mut i, mut j, mut length): (usize, usize, usize),
        old: &Range<usize>,
        new: &Range<usize>,
    ) -> (usize, usize, usize) {
        let is_same = |i: usize, j: usize| self.old.get(i) == self.new.get(j);
        while i > old.start && j > new.start && is_same(i - 1, j - 1) {
            (i, j, length) = (i - 1, j - 1, length + 1);
        }
        while i + length < old.end && j + length < new.end && is_same(i + length, j + length) {
            length += 1;
        }
        (i, j, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn indents_as_go_does() {
        let text = indented(r#"{"A":{},"B":[1,"x:{\",\"}"],"C":[]}"#);
        expect![[r#"
            {
             "A": {},
             "B": [
              1,
              "x:{\",\"}"
             ],
             "C": []
            }"#]]
        .assert_eq(&text);
    }

    #[test]
    fn shows_context() {
        let old: Vec<String> = (0..20).map(|i| i.to_string()).collect();
        let mut new = old.clone();
        new[4] = "x".into();
        new.insert(15, "y".into());
        let [old, new] = [&old, &new].map(|l| l.iter().map(String::as_str).collect::<Vec<_>>());
        expect![[r#"
            @@ -2,7 +2,7 @@
             1
             2
             3
            -4
            +x
             5
             6
             7
            @@ -13,6 +13,7 @@
             12
             13
             14
            +y
             15
             16
             17
        "#]]
        .assert_eq(&unified(&old, &new));
    }
}
