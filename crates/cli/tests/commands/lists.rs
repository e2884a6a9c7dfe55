//! Lists and files of several documents.

use crate::{CRDS, run};
use expect_test::expect;

#[test]
fn lists_and_several_documents() {
    let object = |name: &str, cron: &str| {
        format!(
            "{{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {{name: {name}}}, spec: {{cronSpec: {cron}}}}}"
        )
    };
    let input = format!(
        "---\n{}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n",
        object("a", "\"* * * * *\""),
        object("b", "\"* * * * *\""),
        object("c", "never")
    );
    let (out, _, code) = run("validate --crds examples/crontab/definition.yaml -", &input);
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>: CronTab a: accepted
        <stdin>: CronTab b: accepted
        <stdin>:10:82: error: CronTab c: spec.cronSpec: Invalid value: "never": spec.cronSpec in body should match '^(\S+\s+){4}\S+$'
           |
        10 | - {apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: c}, spec: {cronSpec: never}}
           |                                                                                  ^
    "#]].assert_eq(&out);
}

#[test]
fn lists_of_lists_are_flattened() {
    let element = "{metadata: {name: a}, spec: {cronSpec: never}}";
    let input = format!(
        "kind: List\nitems:\n- apiVersion: stable.example.com/v1\n  kind: CronTabList\n  items:\n  - {element}\n"
    );
    let (out, err, code) = run("validate --crds examples/crontab/definition.yaml -", &input);
    assert_eq!((err.as_str(), code), ("", 1));
    assert!(
        out.starts_with("<stdin>:6:34: error: CronTab a: spec.cronSpec"),
        "{out}"
    );
}

/// The places and results of a list must not depend on whether it is large enough to be cut.
#[test]
fn large_lists_are_read_like_small_ones() {
    let mut json = String::from("{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [");
    let mut yaml = String::from("apiVersion: v1\nitems:\n");
    for n in 0..40 {
        let cron = if n % 13 == 5 { "never" } else { "* * * * *" };
        let comma = if n > 0 { ", " } else { "" };
        json.push_str(&format!(
            "{comma}{{\"apiVersion\": \"stable.example.com/v1\", \"kind\": \"CronTab\", \"metadata\": {{\"name\": \"a{n}\"}}, \
             \"spec\": {{\"cronSpec\": \"{cron}\"}}}}"
        ));
        yaml.push_str(&format!(
            "- apiVersion: stable.example.com/v1\n  kind: CronTab\n  metadata:\n    name: a{n}\n  spec:\n    cronSpec: '{cron}'\n"
        ));
    }
    json.push_str("]}");
    yaml.push_str("kind: List\nmetadata:\n  resourceVersion: ''\n");
    for text in [json, yaml] {
        let space = " ".repeat(300_000);
        let large = match text.strip_suffix('}') {
            Some(open) => format!("{open}{space}}}"),
            None => format!("{text}{space}"),
        };
        let (small, _, code) = run(&format!("validate {CRDS} - -o json"), &text);
        assert_eq!(code, 1);
        assert_eq!(small.matches("\"accepted\": false").count(), 3);
        assert_eq!(small.matches("\"column\":").count(), 3);
        let (large, err, _) = run(&format!("validate {CRDS} - -o json"), &large);
        assert_eq!(err, "");
        assert_eq!(small, large);
    }
}

/// A list that cannot be cut has its places nevertheless, however large it is.
#[test]
fn large_lists_that_are_not_split_have_locations() {
    let mut text = String::from("kind: List\napiVersion: v1\nitems:\n");
    for n in 0..3 {
        let anchor = if n == 0 { "&a " } else { "" };
        text.push_str(&format!(
            "- {anchor}{{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {{name: a{n}}}, spec: {{cronSpec: never, colour: blue}}}}\n"
        ));
        text.push_str(&format!("# {}\n", "x".repeat(2 << 20)));
    }
    let (out, err, code) = run(
        &format!("validate {CRDS} --field-validation warn -o github -"),
        &text,
    );
    assert_eq!((err.as_str(), code), ("", 1));
    let places: Vec<&str> = out.lines().filter_map(|l| l.split(",title").next()).collect();
    expect![[r#"
        ::error file=<stdin>,line=4,col=86
        ::warning file=<stdin>,line=4,col=103
        ::error file=<stdin>,line=6,col=83
        ::warning file=<stdin>,line=6,col=100
        ::error file=<stdin>,line=8,col=83
        ::warning file=<stdin>,line=8,col=100"#]]
    .assert_eq(&places.join("\n"));
}
