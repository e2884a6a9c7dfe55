//! Exit codes, invalid inputs and locations.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/program.rs"]
mod program;
#[path = "support/time.rs"]
mod time;

use expect_test::expect;
use program::{fed, scantling};
use std::path::Path;
use std::process::{Command, Stdio};
use time::without_time;

/// Runs a command at the root of the repository: standard output, standard error, exit code.
fn run(arguments: &str, input: &str) -> (String, String, i32) {
    let output = fed(scantling().args(arguments.split_whitespace()), input);
    let text = |bytes| without_time(&String::from_utf8(bytes).unwrap());
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}

#[test]
fn bad_input_is_named() {
    let crds = "--crds examples/crontab/definition.yaml";
    let cases = [
        ("validate absent.yaml", ""),
        ("validate -", "a: [\n"),
        ("validate -", "- 1\n"),
        ("validate -", "metadata: {name: a}\n"),
        ("validate docs", ""),
        (
            "validate --crds examples/crontab/object.yaml examples/crontab/object.yaml",
            "",
        ),
        (
            "validate --crds - examples/crontab/object.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: 1\n",
        ),
        ("cost absent.yaml", ""),
        ("store --data-dir absent check", ""),
        ("validate -", "kind: \u{1}\u{2}\n"),
        ("validate -", "{\"kind\": "),
        ("lint examples/crontab/object.yaml", ""),
        ("upgrade --from absent --to absent", ""),
        (
            "upgrade --kubeconfig absent --to examples/crontab/tightened.yaml",
            "",
        ),
        ("eval -f absent self", ""),
        ("validate -", "kind: A\nspec:\n\ta: 1\n"),
        ("validate -", "k\0i\0n\0d\0:\0 \0A\0\n\0"),
        (
            "validate -",
            "{{- if .Values.on }}\nkind: {{ .Values.kind }}\n{{- end }}\n",
        ),
        (
            "validate -",
            "kind: List\nitems:\n- kind: List\n  items: [{kind: A}]\n",
        ),
    ];
    let mut all = String::new();
    for (arguments, input) in cases {
        let (out, err, code) = run(arguments, input);
        assert_eq!(code, 3, "{arguments}: {err}");
        all.push_str(&format!("{arguments}\n{out}{err}"));
    }
    expect![[r#"
        validate absent.yaml
        absent.yaml: error: cannot read: no such file or directory
        validate -
        <stdin>:2:1: error: yaml: line 1: did not find expected node content
          |
        2 | 
          | ^
        validate -
        <stdin>:1:1: error: the document is not a Kubernetes object
          |
        1 | - 1
          | ^
          = help: an object is a mapping with apiVersion and kind
        validate -
        <stdin>:1:1: error: the object has no kind
          |
        1 | metadata: {name: a}
          | ^
        validate docs
        error: no manifests in docs
        hint: directories are searched for files that end in .yaml, .yml or .json; --no-ignore includes hidden and ignored files
        validate --crds examples/crontab/object.yaml examples/crontab/object.yaml
        examples/crontab/object.yaml:2:1: error: CronTab jobs/backup: no matches for kind "CronTab" in version "stable.example.com/v1"
          |
        2 | kind: CronTab
          | ^
        hint: 1 object without a schema: name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        error: no CustomResourceDefinition in examples/crontab/object.yaml
        validate --crds - examples/crontab/object.yaml
        examples/crontab/object.yaml:2:1: error: CronTab jobs/backup: no matches for kind "CronTab" in version "stable.example.com/v1"
          |
        2 | kind: CronTab
          | ^
        <stdin>:1:1: error: the CRD cannot be decoded: json: cannot unmarshal number into Go struct field CustomResourceDefinition.spec of type v1.CustomResourceDefinitionSpec
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        hint: 1 object without a schema: name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        cost absent.yaml
        absent.yaml: error: cannot read: no such file or directory
        store --data-dir absent check
        error: the store is not sound: cannot check absent/store: it holds no store
        validate -
        <stdin>:1:7: error: yaml: control characters are not allowed
          |
        1 | kind: ��
          |       ^
        validate -
        <stdin>:1:10: error: unexpected end of JSON input
          |
        1 | {"kind":
          |         ^
        lint examples/crontab/object.yaml
        error: no CustomResourceDefinition among the inputs
        upgrade --from absent --to absent
        absent: error: cannot read: no such file or directory
        absent: error: cannot read: no such file or directory
        upgrade --kubeconfig absent --to examples/crontab/tightened.yaml
        error: cannot use the kubeconfig: failed to read kubeconfig from '"absent"': No such file or directory (os error 2)
        eval -f absent self
        error: absent: cannot read: no such file or directory
        validate -
        <stdin>:3:1: error: yaml: line 3: found character that cannot start any token
          |
        3 | 	a: 1
          | ^
          = help: the line begins with a tab: YAML indents with spaces only
        validate -
        <stdin>:1:2: error: yaml: control characters are not allowed
          |
        1 | k�i�n�d�:� �A�
          |  ^
          = help: it looks like UTF-16 without a byte order mark: pipe the output of `iconv -t UTF-8` to `-`
        validate -
        <stdin>:1:3: error: yaml: did not find expected node content
          |
        1 | {{- if .Values.on }}
          |   ^
          = help: it looks like a template: use --helm, or pipe the output of `helm template` to `-`
        validate -
        <stdin>:1:1: error: items[0].items[0]: the object has no apiVersion
          |
        1 | kind: List
          | ^
    "#]].assert_eq(&all);
    for arguments in [
        "validate",
        "no-such-command",
        "lint --explain SCT9999",
        "validate --feature-gates X=true .",
        "validate --kubernetes-version one .",
        "validate -q -v .",
        "validate - -",
        "validate --crds - -",
        "upgrade --to .",
        "serve --authorization-mode Webhook",
    ] {
        assert_eq!(run(arguments, "").2, 2, "{arguments}");
    }
    let unknown = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n";
    assert_eq!(run(&format!("validate {crds} -"), unknown).2, 1);
    assert_eq!(
        run(&format!("validate {crds} --ignore-missing-schemas -"), unknown).2,
        0
    );
    assert_eq!(
        run(&format!("validate {crds} --skip example.com/v1/Thing -"), unknown).2,
        0
    );
}

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

#[test]
fn pipes_are_read_once() {
    let program = env!("CARGO_BIN_EXE_scantling");
    let script = format!(
        "'{program}' validate <(cat examples/crontab/definition.yaml) <(cat examples/crontab/object.yaml)"
    );
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match Command::new("bash")
        .args(["-c", &script])
        .current_dir(root)
        .output()
    {
        Ok(output) => {
            let out = String::from_utf8(output.stdout).unwrap();
            assert_eq!(output.status.code(), Some(0), "{out}");
            assert_eq!(
                out.lines().filter(|line| line.ends_with(": accepted")).count(),
                2,
                "{out}"
            );
        }
        Err(e) => println!("SKIPPED: nothing was read from a pipe: bash: {e}"),
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for arguments in [
        "completion bash",
        "version",
        "lint examples -o json",
        "validate examples/crontab",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_scantling"))
            .args(arguments.split_whitespace())
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments}: {said}");
        assert!(!said.contains("panicked"), "{arguments}: {said}");
    }
}

#[test]
fn differing_crds_of_one_kind_are_reported() {
    let both = "validate --crds examples/crontab/definition.yaml --crds examples/crontab/tightened.yaml examples/crontab/object.yaml";
    let (_, err, _) = run(both, "");
    assert_eq!(
        err,
        "warning: examples/crontab/tightened.yaml: the CRD crontabs.stable.example.com differs from the one in \
         examples/crontab/definition.yaml; this one is used\n"
    );
}

const CRDS: &str = "--crds examples/crontab/definition.yaml";

#[test]
fn warnings_and_strict_errors_have_locations() {
    let input = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec:\n  cronSpec: '* * * * *'\n  \
                 cronSpec: '* * * * *'\n  colour: blue\n  env: [{name: a, colour: blue}]\n";
    let (warned, _, code) = run(&format!("validate {CRDS} --field-validation warn -"), input);
    assert_eq!(code, 0);
    let (strict, _, code) = run(&format!("validate {CRDS} -"), input);
    assert_eq!(code, 1);
    let (json, _, _) = run(
        &format!("validate {CRDS} --field-validation warn -o json -"),
        input,
    );
    let (github, _, _) = run(
        &format!("validate {CRDS} --field-validation warn -o github -"),
        input,
    );
    expect![[r#"
        <stdin>:6:3: warning: CronTab a: line 6: key "cronSpec" already set in map
          |
        6 |   cronSpec: '* * * * *'
          |   ^
        <stdin>:7:3: warning: CronTab a: unknown field "spec.colour"
          |
        7 |   colour: blue
          |   ^
        <stdin>:8:19: warning: CronTab a: unknown field "spec.env[0].colour"
          |
        8 |   env: [{name: a, colour: blue}]
          |                   ^
        <stdin>: CronTab a: accepted
        <stdin>:6:3: error: CronTab a: CronTab in version "v1" cannot be handled as a CronTab: strict decoding error: yaml: unmarshal errors:
                line 6: key "cronSpec" already set in map, unknown field "spec.colour", unknown field "spec.env[0].colour"
          |
        6 |   cronSpec: '* * * * *'
          |   ^
          = also at 7:3
          = also at 8:19
        {
          "kind": "ValidationReport",
          "items": [
            {
              "file": "<stdin>",
              "apiVersion": "stable.example.com/v1",
              "kind": "CronTab",
              "namespace": "",
              "name": "a",
              "accepted": true,
              "errors": [],
              "warnings": [
                "line 6: key \"cronSpec\" already set in map",
                "unknown field \"spec.colour\"",
                "unknown field \"spec.env[0].colour\""
              ],
              "warningPositions": [
                {
                  "line": 6,
                  "column": 3
                },
                {
                  "line": 7,
                  "column": 3
                },
                {
                  "line": 8,
                  "column": 19
                }
              ],
              "celCost": 5
            }
          ]
        }
        ::warning file=<stdin>,line=6,col=3,title=CronTab a::line 6: key "cronSpec" already set in map
        ::warning file=<stdin>,line=7,col=3,title=CronTab a::unknown field "spec.colour"
        ::warning file=<stdin>,line=8,col=19,title=CronTab a::unknown field "spec.env[0].colour"
    "#]].assert_eq(&format!("{warned}{strict}{json}{github}"));
}

#[test]
fn deprecated_versions_are_reported() {
    let definition = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/definition.yaml"),
    );
    let definition = definition
        .unwrap()
        .replace("  - name: v1\n", "  - name: v1\n    deprecated: true\n");
    let object = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec: {cronSpec: '* * * * *'}\n";
    let (out, err, code) = run("validate -", &format!("{definition}---\n{object}"));
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("warning: CronTab a: stable.example.com/v1 CronTab is deprecated"),
        "{out}"
    );
}

/// Each line of the fixture names the codes of the advice on what stands there.
#[test]
fn all_advice_has_locations() {
    let file = "crates/cli/tests/fixtures/lint-advice/definition.yaml";
    let (out, _, _) = run(&format!("lint -o json {file}"), "");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let told = report["items"][0]["advice"].as_array().unwrap();
    let mut told: Vec<(u64, &str)> = told
        .iter()
        .map(|a| (a["line"].as_u64().unwrap(), a["code"].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    told.dedup();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap();
    let marked: Vec<(u64, &str)> = (1..)
        .zip(text.lines())
        .filter_map(|(n, line)| Some((n, line.rsplit_once("  # ")?.1)))
        .flat_map(|(n, codes)| codes.split(", ").map(move |code| (n, code)))
        .collect();
    assert_eq!(told, marked);

    let (out, _, _) = run(&format!("lint --skip SCT01,SCT0301 {file}"), "");
    assert!(out.contains("advice[SCT0302]") && !out.contains("advice[SCT01") && !out.contains("SCT0301"));
    let (_, err, code) = run(&format!("lint --skip SCT9 {file}"), "");
    assert!(
        code == 2 && err.starts_with("error: there is no code SCT9\n"),
        "{err}"
    );
}

#[test]
fn namespaces_of_cluster_scoped_objects_are_removed() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
        metadata: {name: as.example.com, namespace: odd}\nspec:\n  group: example.com\n  scope: Cluster\n  \
        names: {plural: as, singular: a, kind: A, listKind: AList}\n  versions:\n  - name: v1\n    served: true\n    \
        storage: true\n    schema:\n      openAPIV3Schema: {type: object}\n";
    let object = "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a, namespace: odd}\n";
    let (out, err, code) = run("lint -", definition);
    assert_eq!(code, 0, "{out}{err}");
    let (out, err, code) = run("validate -", &format!("{definition}---\n{object}"));
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn unchecked_objects_are_reported() {
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n";
    let mut all = String::new();
    for (arguments, input) in [
        (format!("validate {CRDS} -"), "---\n# nothing\n---\n"),
        (format!("validate {CRDS} --ignore-missing-schemas -"), thing),
        (format!("validate {CRDS} -"), thing),
        (format!("validate {CRDS} -q -"), thing),
        (
            format!(
                "validate {CRDS} --old examples/crontab/object.yaml --old examples/crontab/changed.yaml -"
            ),
            "",
        ),
    ] {
        let (_, err, code) = run(&arguments, input);
        all.push_str(&format!("{arguments}: {code}\n{err}"));
    }
    expect![[r#"
        validate --crds examples/crontab/definition.yaml -: 0
        warning: no object was checked (0 skipped)
        validate --crds examples/crontab/definition.yaml --ignore-missing-schemas -: 0
        warning: no object was checked (1 skipped)
        validate --crds examples/crontab/definition.yaml -: 1
        hint: 1 object without a schema: name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        validate --crds examples/crontab/definition.yaml -q -: 1
        validate --crds examples/crontab/definition.yaml --old examples/crontab/object.yaml --old examples/crontab/changed.yaml -: 0
        warning: examples/crontab/changed.yaml: there are several versions of CronTab jobs/backup; this one is used
        warning: no object was checked (0 skipped)
    "#]].assert_eq(&all);
}

/// An object in every notation that texts come in has its places and lines.
#[test]
fn encodings_do_not_matter() {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/invalid.yaml"),
    );
    let text = text.unwrap();
    let (wanted, _, _) = run(&format!("validate {CRDS} --field-validation warn -"), &text);
    assert!(wanted.contains("<stdin>:7:3: error"), "{wanted}");
    let units = |mark: [u8; 2], bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        mark.into_iter()
            .chain(text.encode_utf16().flat_map(bytes))
            .collect()
    };
    let directory = tempfile::tempdir().unwrap();
    for (n, bytes) in [
        units([0xff, 0xfe], u16::to_le_bytes),
        units([0xfe, 0xff], u16::to_be_bytes),
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        text.replace('\n', "\r\n").into_bytes(),
    ]
    .iter()
    .enumerate()
    {
        let file = directory.path().join(format!("{n}.yaml"));
        std::fs::write(&file, bytes).unwrap();
        let name = file.to_str().unwrap();
        let (found, err, code) = run(&format!("validate {CRDS} --field-validation warn {name}"), "");
        assert_eq!((err.as_str(), code), ("", 1));
        assert_eq!(found.replace(name, "<stdin>"), wanted, "{n}");
    }
}

/// A directory is read as far as it can be.
#[cfg(unix)]
#[test]
fn directories_are_searched() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(at("sub/loop")).unwrap();
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/object.yaml");
    for name in ["sub/a.yml", "b.yaml", "notes.txt"] {
        std::fs::copy(&object, at(name)).unwrap();
    }
    std::os::unix::fs::symlink("..", at("sub/loop/up.yaml")).unwrap();
    std::os::unix::fs::symlink("b.yaml", at("link.yaml")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("gone.yaml")).unwrap();
    let name = directory.path().to_str().unwrap();
    let (out, err, code) = run(&format!("validate {CRDS} {name}"), "");
    assert_eq!(code, 3);
    expect![[r#"
        DIR/b.yaml: CronTab jobs/backup: accepted
        DIR/link.yaml: CronTab jobs/backup: accepted
        DIR/sub/a.yml: CronTab jobs/backup: accepted
        DIR/gone.yaml: error: cannot read: no such file or directory
    "#]]
    .assert_eq(&format!("{out}{err}").replace(name, "DIR"));
}

/// A CI system must see a file that cannot be parsed, whatever the format of the report.
#[test]
fn unparsable_inputs_are_findings_in_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("broken.yaml");
    std::fs::write(&file, "kind: A\nspec:\n  a: [1\n  b: 2\n").unwrap();
    let name = file.to_str().unwrap();
    for command in ["validate", "lint"] {
        for (format, wanted) in [
            ("json", "\"line\": 4"),
            ("yaml", "line: 4"),
            ("junit", "errors=\"1\""),
            ("sarif", "\"startLine\": 4"),
            ("github", ",line=4,col="),
            ("text", "broken.yaml:4:"),
        ] {
            let (out, err, code) = run(&format!("{command} -o {format} {name}"), "");
            assert_eq!(code, 3, "{command} {format}: {out}{err}");
            assert!(out.contains(wanted), "{command} {format}: {out}");
        }
    }
}

#[test]
fn objects_of_invalid_crds_are_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let crd = directory.path().join("crd.yaml");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/definition.yaml");
    let text = std::fs::read_to_string(example).unwrap();
    std::fs::write(&crd, text.replace("type: integer", "type: intger")).unwrap();
    let crd = crd.to_str().unwrap();
    let (out, err, code) = run(
        &format!("validate --summary --crds {crd} examples/crontab/object.yaml"),
        "",
    );
    assert_eq!(code, 1, "{out}{err}");
    expect![[r#"
        examples/crontab/object.yaml:2:1: error: CronTab jobs/backup: not checked: a cluster refuses the CustomResourceDefinition crontabs.stable.example.com
          |
        2 | kind: CronTab
          | ^
        CRD:52:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[minReplicas].default: Invalid value: "integer":  in body must be of type intger: "integer"
           |
        52 |                 default: 0
           |                 ^
        CRD:48:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[replicas].default: Invalid value: "integer":  in body must be of type intger: "integer"
           |
        48 |                 default: 1
           |                 ^
        CRD:50:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[minReplicas].type: Unsupported value: "intger": supported values: "array", "boolean", "integer", "number", "object", "string"
           |
        50 |                 type: intger
           |                 ^
        CRD:45:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[replicas].type: Unsupported value: "intger": supported values: "array", "boolean", "integer", "number", "object", "string"
           |
        45 |                 type: intger
           |                 ^
        1 CRD, 2 objects: 0 accepted, 2 refused, 0 warnings, 1 not checked
    "#]].assert_eq(&format!("{out}{err}").replace(crd, "CRD"));
}

#[test]
fn other_objects_beside_crds_are_skipped_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().to_str().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/definition.yaml");
    std::fs::copy(example, directory.path().join("crd.yaml")).unwrap();
    let other = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [crd.yaml]\n";
    std::fs::write(directory.path().join("kustomization.yaml"), other).unwrap();
    for command in [
        format!("validate --crds {name} examples/crontab/object.yaml"),
        format!("cost {name}"),
        format!("upgrade --from {name} --to {name}"),
    ] {
        let (out, err, code) = run(&command, "");
        assert_eq!((code, err.as_str()), (0, ""), "{command}: {out}");
        let (_, err, code) = run(&format!("{command} -v"), "");
        assert_eq!(code, 0);
        assert!(
            err.contains("Kustomization (no name): skipped: not a CustomResourceDefinition"),
            "{err}"
        );
    }
}

#[test]
fn near_misses_of_known_kinds_are_errors() {
    let object = |api_version: &str, kind: &str| {
        format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n---\n")
    };
    let input = [
        object("stable.example.com/v2", "CronTab"),
        object("stable.example.com/v1", "Crontab"),
        object("stable.exmaple.com/v1", "CronTab"),
        object("stable.example.com/v1", "Backup"),
        object("other.example.com/v1", "Thing"),
    ]
    .concat();
    let (out, err, code) = run(
        &format!("validate {CRDS} --ignore-missing-schemas --summary -v -"),
        &input,
    );
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>:2:1: error: CronTab a: no matches for kind "CronTab" in version "stable.example.com/v2"
          |
        2 | kind: CronTab
          | ^
          = help: did you mean kind CronTab in stable.example.com/v1?
          = the rules that ran cost 0
        <stdin>:6:1: error: Crontab a: no matches for kind "Crontab" in version "stable.example.com/v1"
          |
        6 | kind: Crontab
          | ^
          = help: did you mean kind CronTab in stable.example.com/v1?
          = the rules that ran cost 0
        <stdin>:10:1: error: CronTab a: no matches for kind "CronTab" in version "stable.exmaple.com/v1"
           |
        10 | kind: CronTab
           | ^
          = help: did you mean kind CronTab in stable.example.com/v1?
          = the rules that ran cost 0
        1 CRD, 3 objects: 0 accepted, 3 refused, 0 warnings, 2 skipped
        note: <stdin>: Backup a: skipped: no schema
        note: <stdin>: Thing a: skipped: no schema
    "#]]
    .assert_eq(&format!("{out}{err}"));
}

/// The changes of a CRD whose `spec.a` has one schema and then another, with further fields of the version.
fn upgraded((old, old_version): (&str, &str), (new, new_version): (&str, &str), object: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let crd = |schema: &str, version: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: \
             widgets.example.com}}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {{plural: widgets, kind: \
             Widget}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    {version}\n    schema:\n      \
             openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            {schema}\n"
        )
    };
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("old.yaml"), crd(old, old_version)).unwrap();
    std::fs::write(at("new.yaml"), crd(new, new_version)).unwrap();
    let object = format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {object}\n");
    let command = format!("upgrade --from {} --to {} -", at("old.yaml"), at("new.yaml"));
    let (out, err, _) = run(&command, &object);
    let said = format!("{out}{err}").replace(directory.path().to_str().unwrap(), "");
    let lines = said.lines().filter(|line| line.starts_with(['/', '<']));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn upgrade_verdicts_match_the_effect_on_objects() {
    let spec = |schema: &str| format!("{{type: object, properties: {{a: {schema}}}}}");
    let mut all = String::new();
    for (old, new, object) in [
        ("{type: string}", "{type: integer}", "{a: x}"),
        ("{x-kubernetes-int-or-string: true}", "{type: string}", "{a: 1}"),
        (
            "{type: array, items: {type: object, required: [k], properties: {k: {type: string}}}}",
            "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}",
            "{a: []}",
        ),
        (
            "{type: string}",
            "{type: string, x-kubernetes-validations: [{rule: 'self != \"b\"'}]}",
            "{a: c}",
        ),
        (
            "{type: object}",
            "{type: object, properties: {b: {type: string}}}",
            "{a: {b: c}}",
        ),
    ] {
        all.push_str(&upgraded((&spec(old), ""), (&spec(new), ""), object));
        all.push('\n');
    }
    let plain = "{type: object, properties: {a: {type: string}}}";
    let status = "{type: object, properties: {a: {type: string}}}\n          status: {type: object}";
    all.push_str(&upgraded(
        (plain, ""),
        (status, "subresources: {status: {}}"),
        "{a: b}",
    ));
    expect![[r#"
        /new.yaml:18:45: error[SCT1104]: widgets.example.com: v1 spec.a: type changes from "string" to "integer" (breaking)
        <stdin>:4:8: warning[SCT1202]: Widget a: accepted only while it stays unchanged: spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"
        <stdin>: Widget a: ok while its invalid values stay unchanged

        /new.yaml:18:41: advice[SCT1104]: widgets.example.com: v1 spec.a: x-kubernetes-int-or-string changes from true to nothing (safe)
        /new.yaml:18:45: error[SCT1104]: widgets.example.com: v1 spec.a: type changes from nothing to "string" (breaking)
        <stdin>:4:8: warning[SCT1202]: Widget a: accepted only while it stays unchanged: spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"
        <stdin>: Widget a: ok while its invalid values stay unchanged

        /new.yaml:18:58: error[SCT1109]: widgets.example.com: v1 spec.a: x-kubernetes-list-type changes from nothing to "map" (breaking)
        <stdin>: Widget a: ok

        /new.yaml:18:86: warning[SCT1110]: widgets.example.com: v1 spec.a: the rule `self != "b"` is added (safe with ratcheting)
        /new.yaml: widgets.example.com: safe with ratcheting
        <stdin>: Widget a: ok

        /new.yaml:18:72: advice[SCT1102]: widgets.example.com: v1 spec.a.b: the field is added (safe)
        /new.yaml: widgets.example.com: safe
        <stdin>: Widget a: ok

        /new.yaml:9:5: advice[SCT1008]: widgets.example.com: v1: /status is served (safe)
        /new.yaml:19:11: advice[SCT1102]: widgets.example.com: v1 status: the field is added (safe)
        /new.yaml: widgets.example.com: safe
        <stdin>: Widget a: ok
    "#]].assert_eq(&all);
}

/// A server decides about metadata, too. What only it knows is left out.
#[test]
fn show_object_has_the_stored_metadata() {
    let object = |metadata: &str| {
        format!(
            "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {metadata}\nspec: {{cronSpec: '* * * * *'}}\n"
        )
    };
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.yaml");
    std::fs::write(
        &old,
        object("{name: a, uid: u, generation: 3, resourceVersion: '7'}"),
    )
    .unwrap();
    let mut all = String::new();
    for (what, arguments, metadata) in [
        (
            "create",
            String::new(),
            "{name: a, uid: mine, creationTimestamp: null, generation: 9, selfLink: /a, labels: {a: b}}",
        ),
        ("generated", String::new(), "{generateName: a-}"),
        (
            "update",
            format!("--old {}", old.display()),
            "{name: a, generation: 9, labels: {a: b}}",
        ),
    ] {
        let (out, err, code) = run(
            &format!("validate {CRDS} --show-object {arguments} -"),
            &object(metadata),
        );
        assert_eq!((err.as_str(), code), ("", 0), "{out}");
        let shown = out
            .split("metadata:")
            .nth(1)
            .unwrap()
            .split("spec:")
            .next()
            .unwrap()
            .to_owned();
        all.push_str(&format!("{what}:{shown}"));
    }
    expect![[r#"
        create:
          generation: 1
          labels:
            a: b
          name: a
        generated:
          generateName: a-
          generation: 1
        update:
          generation: 3
          labels:
            a: b
          name: a
          uid: u
    "#]]
    .assert_eq(&all);
}

#[test]
fn v1beta1_crds_are_reported_as_deprecated() {
    let definition = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.c}\nspec:\n  \
        group: b.c\n  scope: Cluster\n  preserveUnknownFields: false\n  names: {plural: as, singular: a, kind: A, listKind: AList}\n  version: v1\n  validation:\n    \
        openAPIV3Schema:\n      type: object\n      properties: {spec: {type: object, properties: {a: {type: integer}}}}\n";
    let object = "apiVersion: b.c/v1\nkind: A\nmetadata: {name: a}\nspec: {a: 1, b: 2}\n";
    let (lint, _, code) = run("lint -", definition);
    assert_eq!(code, 0);
    let (validate, _, code) = run(
        "validate --field-validation warn --show-object -",
        &format!("{definition}---\n{object}"),
    );
    assert_eq!(code, 0);
    expect![[r#"
        <stdin>: warning: as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
        <stdin>: as.b.c: accepted
        <stdin>: warning: CustomResourceDefinition as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
        <stdin>: CustomResourceDefinition as.b.c: accepted
        <stdin>:18:14: warning: A a: unknown field "spec.b"
           |
        18 | spec: {a: 1, b: 2}
           |              ^
        <stdin>: A a: accepted
        ---
        apiVersion: b.c/v1
        kind: A
        metadata:
          generation: 1
          name: a
        spec:
          a: 1
    "#]].assert_eq(&format!("{lint}{validate}"));
}

#[test]
fn eval_has_three_output_formats() {
    let (_, err, code) = run("eval 1+1 -o junit", "");
    assert_eq!(code, 2);
    let (failed, _, code) = run("eval 1+ -o json", "");
    assert_eq!(code, 1);
    let (yaml, _, code) = run("eval 1+1 -o yaml", "");
    assert_eq!(code, 0);
    expect![[r#"
        error: invalid value 'junit' for '--output <OUTPUT>'
          [possible values: text, json, yaml]

        For more information, try '--help'.
        {
          "error": "ERROR: <input>:1:3: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1+\n | ..^"
        }
        cost: 1
        estimatedCost: 1
        type: int
        value: "2"
    "#]].assert_eq(&format!("{err}{failed}{yaml}"));
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
