//! Files, streams and directories as inputs.

use crate::{CRDS, run};
use expect_test::expect;
use std::path::Path;
use std::process::{Command, Stdio};

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
        hint: 1 object without a schema (1 CronTab): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        error: no CustomResourceDefinition in examples/crontab/object.yaml
        validate --crds - examples/crontab/object.yaml
        examples/crontab/object.yaml:2:1: error: CronTab jobs/backup: no matches for kind "CronTab" in version "stable.example.com/v1"
        <stdin>:1:1: error: the CRD cannot be decoded: json: cannot unmarshal number into Go struct field CustomResourceDefinition.spec of type v1.CustomResourceDefinitionSpec
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        hint: 1 object without a schema (1 CronTab): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        cost absent.yaml
        absent.yaml: error: cannot read: no such file or directory
        store --data-dir absent check
        error: the store check failed: cannot check absent/store: it holds no store
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
