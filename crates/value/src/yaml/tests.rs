//! The fast path gives what the scanner gives, or gives up.

use super::construct::ValueBuilder;
use super::{decode_scanned, fast_path, locate, readable};
use crate::{Limits, Path, PathBuf, Segment, Value};
use proptest::prelude::*;

fn fast(text: &str) -> Option<Value> {
    let text = readable(text.as_bytes()).ok()?;
    fast_path::read(&text, Limits::SAFE, &mut ValueBuilder::default())
}

/// All paths of a value, and one that leads out of it.
fn paths(value: &Value, at: &Path<'_>, out: &mut Vec<PathBuf>) {
    out.push(PathBuf::from(at));
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter() {
                paths(value, &at.field(name), out);
            }
            out.push(PathBuf::from(&at.field("absent")));
        }
        Value::Array(items) => {
            for (n, value) in items.iter().enumerate() {
                paths(value, &at.push(Segment::Index(n)), out);
            }
        }
        _ => {}
    }
}

/// Compares values and places. Returns whether the fast path read the text.
#[track_caller]
fn compare(text: &str) -> bool {
    let Some(value) = fast(text) else {
        return false;
    };
    let scanned = decode_scanned(text, Limits::SAFE);
    let scanned =
        scanned.unwrap_or_else(|e| panic!("{text:?}: the fast path reads {value:?}, the scanner: {e}"));
    assert_eq!(value, scanned.value, "{text:?}");
    assert!(scanned.duplicates.is_empty(), "{text:?}");
    let mut all = Vec::new();
    paths(&value, &Path::ROOT, &mut all);
    let all: Vec<&PathBuf> = all.iter().collect();
    let found = locate::locate(text.as_bytes(), &all, Limits::SAFE);
    let scanned = locate::locate_scanned(text, &all, Limits::SAFE);
    for ((path, found), scanned) in all.iter().zip(found.unwrap()).zip(scanned.unwrap()) {
        assert_eq!(found, scanned, "{path} in {text:?}");
    }
    true
}

#[test]
fn common_documents_take_the_fast_path() {
    for text in [
        "a: 1\nb:\n- x\n- q: z\n  w: v\n",
        "---\n# a comment\nkind: A # another\nspec:\n\n  list:\n    - a\n    - - b\n      - c\n  empty:\n  map: {}\nend: ''\n",
        "a: |\n  l1\n   l2\n\n  l3\nb: >-\n  fold\n  ed\n\n  x\n   more\n  y\nc: |+\n  keep\n\nd: x\n",
        "a: 'it''s'\nb: \"x\\ty\\\\ \\\"q\\\"\"\nc: 'multi\n\n  line'\nd: plain\n  text\n\n  more # comment\ne: \"a\n  b\"\n",
        "a: [1, x y, 'q', {b: c, \"d\":1}, [], {}]\nb: [\n  x,\n  z\n]\n",
        "{\"a\": {\"b\": [1, 2.5, true, null, \"c\"]}}\n",
        "list:\n- |\n  a\n- >\n  b\n- 'c'\n-\n  d: e\n-   f: g\n    h: i\n",
        "url: http://a:80/b#c\ntime: 10:30\nneg: -1\ndash: -a\nhash: a#b\nquote: a'b\"c\n",
        "\u{e9}: \u{fc}\nb: '\u{65e5}\u{672c}' # \u{e9}\nc: [\u{e9}, {a: b}]\n",
    ] {
        assert!(compare(text), "{text:?}");
    }
}

#[test]
fn everything_else_is_left_to_the_scanner() {
    for text in [
        "",
        "a",
        "- a: b\n   c: d\n",
        "a: b\n c: d\n",
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "? a\n: b\n",
        "on: 1\n",
        "1: a\n",
        "a: b: c\n",
        "a:\tb\n",
        "\ta: b\n",
        "a: b\r\nc: d\r\n",
        "a: 1\na: 2\n",
        "<<: {a: b}\n",
        "a: .inf\n",
        "a: b\n---\nc: d\n",
        "a: b\n...\n",
        "%YAML 1.1\n---\na: b\n",
        "a: \"\\u00e9\"\n",
        "a: 'b\n",
        "a: [b\n",
        "a: {b}\n",
        "a: |1\n  b\n",
        "a: - b\n",
        "\u{feff}a: b\n",
        "a: b\u{2028}c\n",
        "a: @b\n",
        "- \n- a\n",
    ] {
        assert!(fast(text).is_none(), "{text:?}");
    }
}

/// Lines, as they are and as they should not be.
const LINES: [&str; 48] = [
    "a: b",
    "b: c d",
    "c:",
    "d: # e",
    "e: |",
    "f: >-",
    "g: |+",
    "h: 'i''j'",
    "k: \"l\\n\\\\m\"",
    "nn: 'o",
    "p' # q",
    "r: \"s",
    "t\"",
    "u: [v, w x, {q: z}]",
    "a2: {}",
    "b2: [",
    "]",
    "}",
    "c2: {d: 1, \"e\":2}",
    "# f",
    "",
    "   ",
    "text",
    "more text # g",
    "- h",
    "-",
    "- i: j",
    "- - k",
    "- 'l': m",
    "- |",
    "\"n o\": p",
    "'q': 1",
    "1: r",
    "on: s",
    "t: 0x1f",
    "u: 1.50",
    "v: ~",
    "w: x: y",
    "\tz: a",
    "b: \tc",
    "\u{e9}: \u{fc}",
    "d: &e f",
    "g: *e",
    "<<: h",
    "...",
    "---",
    "i: http://j:1/k#l",
    "m: -n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 4_000 } else { 100_000 }))]

    #[test]
    fn the_fast_path_agrees_with_the_scanner(
        lines in prop::collection::vec((0..5usize, 0..LINES.len()), 1..9),
        ends in prop::bool::ANY,
    ) {
        let lines: Vec<String> = lines.iter().map(|(indent, n)| format!("{}{}", " ".repeat(*indent), LINES[*n])).collect();
        let mut text = lines.join("\n");
        if ends {
            text.push('\n');
        }
        compare(&text);
    }
}
