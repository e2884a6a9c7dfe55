//! Sources of objects and CRDs: git revisions, archives, the output of other tools, repositories of Flux.

use crate::project::Project;
use expect_test::expect;
use std::path::Path;
use std::process::Command;

/// A CRD whose field has a limit.
fn crd(maximum: u32) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         properties:\n          spec:\n            type: object\n            properties:\n              \
         size: {{type: integer, maximum: {maximum}}}\n"
    )
}

const OBJECT: &str = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 5}\n";

fn git(project: &Project, arguments: &str) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments.split_whitespace())
        .current_dir(project.path(""))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
}

#[test]
fn crds_are_read_from_git_revisions() {
    let project = Project::new(&[
        ("config/crd.yaml", &crd(9)),
        ("config/README.md", "#"),
        ("a.yaml", OBJECT),
    ]);
    git(&project, "init -q");
    git(&project, "add .");
    git(&project, "commit -q -m first");
    git(&project, "tag v1.0.0");
    project.write("config/crd.yaml", &crd(4));
    let mut all = String::new();
    for command in [
        "validate --crds git:v1.0.0:config a.yaml",
        "validate --crds config a.yaml",
        "upgrade --from git:v1.0.0:config --to config a.yaml",
        "cost --from git:HEAD:config config",
        "lint git:v1.0.0:config/crd.yaml",
        "explain --crds git:v1.0.0 widgets.spec.size",
        "validate --crds git:v2.0.0:config a.yaml",
        "validate --crds git:v1.0.0:absent a.yaml",
        "validate --crds git: a.yaml",
    ] {
        let (out, code) = project.run(command);
        all.push_str(&format!("$ {command}: {code}\n{out}"));
    }
    expect![[r#"
        $ validate --crds git:v1.0.0:config a.yaml: 0
        a.yaml: Widget a: accepted
        $ validate --crds config a.yaml: 1
        a.yaml:4:8: error: Widget a: spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
          |
        4 | spec: {size: 5}
          |        ^
        $ upgrade --from git:v1.0.0:config --to config a.yaml: 0
        config/crd.yaml:19:37: warning[SCT1105]: widgets.example.com: v1 spec.size: maximum changes from 9 to 4 (safe with ratcheting)
           |
        19 |               size: {type: integer, maximum: 4}
           |                                     ^
        config/crd.yaml: widgets.example.com: safe with ratcheting
        a.yaml:4:8: warning[SCT1202]: Widget a: accepted only while it stays unchanged: spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
          |
        4 | spec: {size: 5}
          |        ^
        a.yaml: Widget a: ok while its invalid values stay unchanged
        $ cost --from git:HEAD:config config: 0
        note: no CRD has rules
        $ lint git:v1.0.0:config/crd.yaml: 0
        git:v1.0.0:config/crd.yaml: widgets.example.com: accepted
        $ explain --crds git:v1.0.0 widgets.spec.size: 0
        KIND:     Widget
        VERSION:  example.com/v1
        FIELD:    spec.size <integer>

        CONSTRAINTS:
            integer, maximum 9
        $ validate --crds git:v2.0.0:config a.yaml: 3
        a.yaml:2:1: error: Widget a: no matches for kind "Widget" in version "example.com/v1"
        hint: 1 object without a schema (1 Widget): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        error: `git archive --format=tar v2.0.0 -- config` failed: fatal: not a valid object name: v2.0.0
        $ validate --crds git:v1.0.0:absent a.yaml: 3
        a.yaml:2:1: error: Widget a: no matches for kind "Widget" in version "example.com/v1"
        hint: 1 object without a schema (1 Widget): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        error: `git archive --format=tar v1.0.0 -- absent` failed: fatal: pathspec 'absent' did not match any files
        $ validate --crds git: a.yaml: 2
        error: invalid value 'git:' for '--crds <SOURCE>': a git source is written as git:REVISION:PATH

        For more information, try '--help'.
    "#]].assert_eq(&all);
}

/// The CRDs of a packaged chart are in `crds/`; its templates are not manifests.
#[test]
fn crds_are_read_from_packaged_charts() {
    let project = Project::new(&[("a.yaml", OBJECT)]);
    let file = std::fs::File::create(project.path("chart-1.0.0.tgz")).unwrap();
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(file, flate2::Compression::fast()));
    for (name, text) in [
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: chart\nversion: 1.0.0\n".to_owned(),
        ),
        ("chart/values.yaml", "size: 3\n".to_owned()),
        ("chart/crds/widgets.yaml", crd(4)),
        (
            "chart/templates/widget.yaml",
            "{{ if true }}\nkind: Widget\n{{ end }}\n".to_owned(),
        ),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
    let (validated, code) = project.run("validate --crds chart-1.0.0.tgz a.yaml");
    assert_eq!(code, 1);
    let (linted, code) = project.run("lint chart-1.0.0.tgz -q");
    assert_eq!(code, 0);
    project.write("broken.tgz", "no archive");
    let (broken, code) = project.run("lint broken.tgz");
    assert_eq!(code, 3);
    expect![[r#"
        a.yaml:4:8: error: Widget a: spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
          |
        4 | spec: {size: 5}
          |        ^
        broken.tgz: error: cannot read: invalid gzip header
    "#]].assert_eq(&(validated + &linted + &broken));
}

/// Writes an executable that prints its arguments and an object.
#[cfg(unix)]
fn tool(project: &Project, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = format!("bin/{name}");
    project.write(&path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(project.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a command with the tools of the project alone on the path.
#[cfg(unix)]
fn with_tools(project: &Project, arguments: &str) -> (String, i32) {
    project.finish(
        project
            .command("")
            .args(arguments.split_whitespace())
            .env("PATH", project.path("bin")),
    )
}

#[cfg(unix)]
#[test]
fn the_output_of_kustomize_and_helm_is_validated() {
    let project = Project::new(&[
        ("crd.yaml", &crd(4)),
        ("values.yaml", "size: 5\n"),
        ("bin/empty", ""),
    ]);
    let object = "\"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 5}\"";
    let mut all = String::new();
    let mut record = |command: &str| {
        let (out, code) = with_tools(&project, &format!("validate --crds crd.yaml {command}"));
        all.push_str(&format!("$ {command}: {code}\n{out}"));
    };
    record("--kustomize overlay");
    record("--helm chart");
    tool(
        &project,
        "kubectl",
        &format!("[ \"$1\" = kustomize ] && echo {object}"),
    );
    tool(&project, "helm", &format!("echo \"# $@\"\necho {object}"));
    record("--kustomize overlay");
    record("--helm chart --helm-values values.yaml -o github");
    tool(&project, "kustomize", "echo 'no such directory' >&2; exit 1");
    record("--kustomize overlay");
    expect![[r#"
        $ --kustomize overlay: 3
        error: cannot run `kustomize build overlay`: kustomize is not installed
        hint: --kustomize needs kustomize or kubectl on the PATH
        $ --helm chart: 3
        error: cannot run `helm template release-name chart --include-crds`: helm is not installed
        hint: --helm needs helm on the PATH
        $ --kustomize overlay: 1
        kustomize build overlay:4:8: error: Widget a: spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
          |
        4 | spec: {size: 5}
          |        ^
        $ --helm chart --helm-values values.yaml -o github: 1
        ::error file=helm template chart,line=5,col=8,title=Widget a::spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
        $ --kustomize overlay: 3
        error: `kustomize build overlay` failed: no such directory
    "#]].assert_eq(&all);
}

/// A repository of Flux has variables, components and kustomizations that rename the Namespace.
#[test]
fn repositories_of_flux_are_validated_as_they_are() {
    let project = Project::new(&[
        ("crds/widgets.yaml", &crd(4)),
        (
            "apps/jobs/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: jobs\n\
             resources: [./namespace.yaml, widget.yaml]\npatches: [{path: patch.yaml}]\n",
        ),
        (
            "apps/jobs/namespace.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n",
        ),
        ("apps/jobs/patch.yaml", "- op: remove\n  path: /spec\n"),
        (
            "apps/jobs/widget.yaml",
            &OBJECT.replace("{size: 5}", "\n  size: ${SIZE}"),
        ),
        (
            "components/common/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [namespace.yaml]\n",
        ),
        (
            "components/common/namespace.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n",
        ),
        (
            "apps/bad/namespace.yaml",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n",
        ),
        (
            "docs/snippet.yaml",
            "{% raw %}\napiVersion: v1\nkind: Secret\n{% endraw %}\n",
        ),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
        ),
        ("chart/values.yaml", "size: 3\n"),
        ("chart/templates/widget.yaml", "kind: {{ .Values.kind }}\n"),
        ("node_modules/a.yaml", "a: ["),
        (".hidden/a.yaml", "a: ["),
        ("build/a.yaml", "a: ["),
        (".scantlingignore", "build/\n"),
        ("generated.gen.yaml", "a: ["),
    ]);
    let (all, code) = project.run("validate . --exclude *.gen.yaml --summary -v");
    assert_eq!(code, 1);
    let (small, code) = project.run("validate crds apps/jobs --var SIZE=3 --show-object");
    assert_eq!(code, 0);
    let (large, code) = project.run("validate crds apps/jobs --var SIZE=5 -q");
    assert_eq!(code, 1);
    expect![[r#"
        apps/bad/namespace.yaml:3:12: error: Namespace _: metadata.name: Invalid value: "_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
          |
        3 | metadata: {name: _}
          |            ^
        apps/bad/namespace.yaml:3:1: error: Namespace _: metadata.labels: Invalid value: "_": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
          |
        3 | metadata: {name: _}
          | ^
          = built-in kind of Kubernetes 1.37
          = the rules that ran cost 0
        apps/jobs/namespace.yaml: Namespace jobs: accepted
          = built-in kind of Kubernetes 1.37
          = the rules that ran cost 0
        apps/jobs/widget.yaml:5:3: warning: Widget a: not validated, because the value is not final: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"
          |
        5 |   size: ${SIZE}
          |   ^
        apps/jobs/widget.yaml: Widget a: accepted, except for values that are not final
          = by widgets.example.com in crds/widgets.yaml
          = the rules that ran cost 0
        components/common/namespace.yaml: Namespace example: accepted
          = built-in kind of Kubernetes 1.37
          = the rules that ran cost 0
        crds/widgets.yaml: CustomResourceDefinition widgets.example.com: accepted
          = the rules that ran cost 0
        1 CRD, 5 objects: 4 accepted (1 with values that are not final), 1 refused, 1 warning, 2 skipped, 5 files skipped
        note: apps/jobs/kustomization.yaml: Kustomization (no name): skipped: a configuration file of a tool, not an object of a cluster
        note: components/common/kustomization.yaml: Component (no name): skipped: a configuration file of a tool, not an object of a cluster
        note: apps/jobs/patch.yaml: skipped: a patch of a kustomization: use --kustomize
        note: chart/templates/widget.yaml: skipped: a Helm template: validate the output of `helm template`, or use --helm
        note: chart/Chart.yaml: skipped: not a Kubernetes object
        note: chart/values.yaml: skipped: not a Kubernetes object
        note: docs/snippet.yaml: skipped: a template: validate what it is rendered to
        $ SIZE=3
        crds/widgets.yaml: CustomResourceDefinition widgets.example.com: accepted
        apps/jobs/namespace.yaml: Namespace jobs: accepted
        ---
        apiVersion: v1
        kind: Namespace
        metadata:
          labels:
            kubernetes.io/metadata.name: jobs
          name: jobs
        spec:
          finalizers:
          - kubernetes
        status:
          phase: Active
        apps/jobs/widget.yaml: Widget a: accepted
        ---
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          generation: 1
          name: a
        spec:
          size: 3
        $ SIZE=5
        apps/jobs/widget.yaml:5:3: error: Widget a: spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
          |
        5 |   size: 5
          |   ^
    "#]].assert_eq(&format!("{all}$ SIZE=3\n{small}$ SIZE=5\n{large}"));
}

/// Patterns of the shell name files; a directory is searched, a file is read whatever its name.
#[cfg(unix)]
#[test]
fn mistakes_of_users_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::new(&[
        ("crd.yaml", &crd(4)),
        ("empty.yaml", ""),
        ("comments.yaml", "# nothing\n---\n---\n"),
        ("windows.yaml", &OBJECT.replace('\n', "\r\n")),
        (
            "lines.json",
            "{\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\", \"metadata\": {\"name\": \"a\"}}\n{\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\", \"metadata\": {\"name\": \"b\"}, \"spec\": {\"size\": 9}}\n",
        ),
        ("kind.yaml", &OBJECT.replace("Widget", "Wigdet")),
        ("version.yaml", &OBJECT.replace("/v1", "/v2")),
        ("group.yaml", &OBJECT.replace("example.com", "exmaple.com")),
        (
            "builtin.yaml",
            "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: a}\n",
        ),
        (
            "case.yaml",
            "apiVersion: v1\nkind: configmap\nmetadata: {name: a}\n",
        ),
        (
            "number.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {port: 80, on: true}\n",
        ),
        (
            "tab.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: a\n",
        ),
        ("secret.yaml", OBJECT),
    ]);
    std::fs::write(project.path("binary.yaml"), [0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 3]).unwrap();
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|m| {
        use std::os::unix::fs::MetadataExt as _;
        m.uid() == 0
    });
    std::fs::set_permissions(
        project.path("secret.yaml"),
        std::fs::Permissions::from_mode(0o000),
    )
    .unwrap();
    let mut all = String::new();
    for command in [
        "empty.yaml",
        "comments.yaml",
        "windows.yaml",
        "lines.json",
        "kind.yaml",
        "--ignore-missing-schemas kind.yaml",
        "--ignore-missing-schemas version.yaml",
        "--ignore-missing-schemas group.yaml",
        "--ignore-missing-schemas --summary group.yaml",
        "builtin.yaml",
        "case.yaml",
        "number.yaml",
        "tab.yaml",
        "binary.yaml",
        "*.yml",
    ] {
        let (out, code) = project.run(&format!("validate --crds crd.yaml {command}"));
        all.push_str(&format!("$ {command}: {code}\n{out}"));
    }
    if !is_root {
        let (out, code) = project.run("validate --crds crd.yaml secret.yaml");
        assert_eq!(code, 3, "{out}");
    }
    expect![[r#"
        $ empty.yaml: 0
        warning: no object was checked (0 skipped)
        $ comments.yaml: 0
        warning: no object was checked (0 skipped)
        $ windows.yaml: 1
        windows.yaml:4:8: error: Widget a: spec.size: Invalid value: 5: spec.size in body should be less than or equal to 4
          |
        4 | spec: {size: 5}
          |        ^
        $ lines.json: 1
        lines.json: Widget a: accepted
        lines.json:2:88: error: Widget b: spec.size: Invalid value: 9: spec.size in body should be less than or equal to 4
          |
        2 | {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "b"}, "spec": {"size": 9}}
          |                                                                                        ^
        $ kind.yaml: 1
        kind.yaml:2:1: error: Wigdet a: no matches for kind "Wigdet" in version "example.com/v1"
          |
        2 | kind: Wigdet
          | ^
          = help: did you mean kind Widget in example.com/v1?
        $ --ignore-missing-schemas kind.yaml: 1
        kind.yaml:2:1: error: Wigdet a: no matches for kind "Wigdet" in version "example.com/v1"
          |
        2 | kind: Wigdet
          | ^
          = help: did you mean kind Widget in example.com/v1?
        $ --ignore-missing-schemas version.yaml: 1
        version.yaml:2:1: error: Widget a: no matches for kind "Widget" in version "example.com/v2"
          |
        2 | kind: Widget
          | ^
          = help: did you mean kind Widget in example.com/v1?
        $ --ignore-missing-schemas group.yaml: 1
        group.yaml:2:1: error: Widget a: no matches for kind "Widget" in version "exmaple.com/v1"
          |
        2 | kind: Widget
          | ^
          = help: did you mean kind Widget in example.com/v1?
        $ --ignore-missing-schemas --summary group.yaml: 1
        group.yaml:2:1: error: Widget a: no matches for kind "Widget" in version "exmaple.com/v1"
          |
        2 | kind: Widget
          | ^
          = help: did you mean kind Widget in example.com/v1?
        1 CRD, 1 object: 0 accepted, 1 refused, 0 warnings
        $ builtin.yaml: 1
        builtin.yaml:2:1: error: Deployment a: no matches for kind "Deployment" in version "extensions/v1beta1"
          |
        2 | kind: Deployment
          | ^
          = help: did you mean kind Deployment in apps/v1?
        $ case.yaml: 1
        case.yaml:2:1: error: configmap a: no matches for kind "configmap" in version "v1"
          |
        2 | kind: configmap
          | ^
          = help: did you mean kind ConfigMap in v1?
        $ number.yaml: 1
        number.yaml:4:1: error: ConfigMap a: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string
          |
        4 | data: {port: 80, on: true}
          | ^
        $ tab.yaml: 3
        tab.yaml:4:1: error: yaml: line 4: found character that cannot start any token
          |
        4 | 	name: a
          | ^
          = help: the line begins with a tab: YAML indents with spaces only
        $ binary.yaml: 3
        binary.yaml:1:1: error: yaml: invalid leading UTF-8 octet
          |
        1 | ��������
          | ^
        $ *.yml: 3
        *.yml: error: cannot read: no such file or directory
    "#]].assert_eq(&all);
}

#[test]
fn every_command_has_an_example() {
    let help = |command: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
            .args(command.split_whitespace())
            .arg("--help")
            .env("COLUMNS", "100")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for command in [
        "validate", "lint", "cost", "upgrade", "eval", "test", "compile", "explain", "sample", "serve",
        "store",
    ] {
        let text = help(command);
        assert!(text.contains(&format!("\n  scantling {command} ")), "{text}");
        let long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{command}");
    }
}

/// Values that a tool replaces later do not hide the errors of other values.
#[test]
fn values_that_are_not_final_do_not_hide_other_errors() {
    let deployment = |name: &str, replicas: &str, image: &str, port: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  replicas: {replicas}\n  \
             selector: {{matchLabels: {{app: a}}}}\n  template:\n    metadata: {{labels: {{app: a}}}}\n    spec:\n      containers:\n      \
             - name: a\n        image: {image}\n        ports:\n        - containerPort: {port}\n"
        )
    };
    let project = Project::new(&[
        (
            "open.yaml",
            &deployment("a", "${REPLICAS}", "a:${TAG}", "$(PORT)"),
        ),
        ("template.yaml", &deployment("'{{ .Name }}'", "1", "a", "80")),
        (
            "chainsaw.yaml",
            &deployment("($test.name)", "'@REPLICAS@'", "a", "80"),
        ),
        ("wrong.yaml", &deployment("a", "three", "a:${TAG}", "80")),
        ("range.yaml", &deployment("a", "${REPLICAS}", "a", "80800")),
        ("text.yaml", &deployment("<your-name>", "1", "a", "80")),
        (
            "claim.yaml",
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: '${NAME}'}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
             dataSourceRef: {apiGroup: example.com, kind: Restore, name: '${NAME}'}\n  resources: {requests: {storage: '${SIZE:=5Gi}'}}\n",
        ),
    ]);
    let (out, code) = project.run("validate . --summary");
    assert_eq!(code, 1);
    let (json, _) = project.run("validate open.yaml -o json");
    assert!(json.contains("\"final\": false"), "{json}");
    expect![[r#"
        chainsaw.yaml:6:3: warning: Deployment ($test.name): not validated, because the value is not final: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
          |
        6 |   replicas: '@REPLICAS@'
          |   ^
        chainsaw.yaml:4:3: warning: Deployment ($test.name): not validated, because the value is not final: metadata.name: Invalid value: "($test.name)": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
          |
        4 |   name: ($test.name)
          |   ^
        chainsaw.yaml: Deployment ($test.name): accepted, except for values that are not final
        claim.yaml:1:1: warning: PersistentVolumeClaim ${NAME}: not validated, because the value is not final: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
          |
        1 | apiVersion: v1
          | ^
        claim.yaml:7:3: warning: PersistentVolumeClaim ${NAME}: not validated, because the value is not final: spec.resources[storage]: Invalid value: "0": must be greater than zero
          |
        7 |   resources: {requests: {storage: '${SIZE:=5Gi}'}}
          |   ^
        claim.yaml:4:1: warning: PersistentVolumeClaim ${NAME}: not validated, because the value is not final: spec.dataSource.name: Required value
          |
        4 | spec:
          | ^
        claim.yaml: PersistentVolumeClaim ${NAME}: accepted, except for values that are not final
        open.yaml:6:3: warning: Deployment a: not validated, because the value is not final: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
          |
        6 |   replicas: ${REPLICAS}
          |   ^
        open.yaml:11:7: warning: Deployment a: not validated, because the value is not final: json: cannot unmarshal string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32
           |
        11 |       containers:
           |       ^
        open.yaml: Deployment a: accepted, except for values that are not final
        range.yaml:15:11: error: Deployment a: spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 80800: must be between 1 and 65535, inclusive
           |
        15 |         - containerPort: 80800
           |           ^
        range.yaml:6:3: warning: Deployment a: not validated, because the value is not final: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
          |
        6 |   replicas: ${REPLICAS}
          |   ^
        template.yaml:4:3: warning: Deployment {{ .Name }}: not validated, because the value is not final: metadata.name: Invalid value: "{{ .Name }}": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
          |
        4 |   name: '{{ .Name }}'
          |   ^
        template.yaml: Deployment {{ .Name }}: accepted, except for values that are not final
        text.yaml:4:3: error: Deployment <your-name>: metadata.name: Invalid value: "<your-name>": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
          |
        4 |   name: <your-name>
          |   ^
          = help: the value looks like a placeholder: replace it
        wrong.yaml:6:3: error: Deployment a: Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32
          |
        6 |   replicas: three
          |   ^
        0 CRDs, 7 objects: 4 accepted (4 with values that are not final), 3 refused, 9 warnings
    "#]].assert_eq(&out);
}

/// Scripts replace placeholders before they apply a file, which is not YAML until then.
#[test]
fn files_with_placeholders_of_scripts_are_skipped() {
    let project = Project::new(&[
        (
            "a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: @NAME@\n",
        ),
        (
            "b.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  clusterIP: {PREFIX}.16\n  type: ClusterIP\n",
        ),
        (
            "c.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: @name\n",
        ),
    ]);
    let (out, code) = project.run("validate . -v --summary");
    assert_eq!(code, 3);
    let (named, code) = project.run("validate a.yaml");
    assert_eq!(code, 3);
    expect![[r#"
        c.yaml:4:9: error: yaml: line 4: found character that cannot start any token
          |
        4 |   name: @name
          |         ^
        0 CRDs, 0 objects: 0 accepted, 0 refused, 0 warnings, 2 files skipped
        note: a.yaml: skipped: a template: validate what it is rendered to
        note: b.yaml: skipped: a template: validate what it is rendered to
        a.yaml:4:9: error: yaml: line 4: found character that cannot start any token
          |
        4 |   name: @NAME@
          |         ^
    "#]]
    .assert_eq(&[out, named].concat());
}

/// Generated kustomizations list patches in comments until the user enables them; others are never listed.
#[test]
fn patches_that_are_not_enabled_are_skipped() {
    let patch = |name: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {name}\n  annotations: {{a: b}}\n"
        )
    };
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n";
    let project = Project::new(&[
        ("crd/bases/widgets.yaml", &crd(4)),
        (
            "crd/kustomization.yaml",
            "resources:\n- bases/widgets.yaml\n#- service.yaml\n\n#patches:\n# [WEBHOOK] To enable webhooks, uncomment these lines:\n\
             #- path: patches/cainjection.yaml\n#  target:\n#    kind: Service\n#+kubebuilder:scaffold:patch\n#- path: patches/service.yaml # for later\n\
             # - patches/webhook.yaml\n",
        ),
        ("crd/patches/service.yaml", service),
        ("crd/patches/webhook.yaml", &patch("widgets.example.com")),
        ("crd/patches/cainjection.yaml", &patch("widgets.example.com")),
        ("crd/patches/unlisted.yaml", &patch("widgets.example.com")),
        ("crd/service.yaml", service),
    ]);
    let (validate, code) = project.run("validate . -v --summary");
    assert_eq!(code, 1);
    let (lint, code) = project.run("lint . --summary");
    assert_eq!(code, 0);
    let (cost, code) = project.run("cost . -v");
    assert_eq!(code, 0);
    let (named, code) = project.run("lint crd/patches/cainjection.yaml -q");
    assert_eq!(code, 1);
    expect![[r#"
        crd/bases/widgets.yaml: CustomResourceDefinition widgets.example.com: accepted
          = the rules that ran cost 0
        crd/service.yaml:1:1: error: Service a: spec.ports: Required value
          |
        1 | apiVersion: v1
          | ^
          = built-in kind of Kubernetes 1.37
          = the rules that ran cost 0
        1 CRD, 2 objects: 1 accepted, 1 refused, 0 warnings, 1 skipped, 4 files skipped
        note: crd/patches/unlisted.yaml: CustomResourceDefinition widgets.example.com: skipped: a patch of a CRD: it has no group, names and versions
        note: crd/patches/cainjection.yaml: skipped: a patch of a kustomization: use --kustomize
        note: crd/patches/service.yaml: skipped: a patch of a kustomization: use --kustomize
        note: crd/patches/webhook.yaml: skipped: a patch of a kustomization: use --kustomize
        note: crd/kustomization.yaml: skipped: not a Kubernetes object
        crd/bases/widgets.yaml: widgets.example.com: accepted
        1 CRD: 0 refused, 0 pieces of advice, 3 files skipped
        note: crd/patches/unlisted.yaml: CustomResourceDefinition widgets.example.com: skipped: not a CustomResourceDefinition
        note: crd/service.yaml: Service a: skipped: not a CustomResourceDefinition
        note: crd/patches/cainjection.yaml: skipped: a patch of a kustomization: use --kustomize
        note: crd/patches/service.yaml: skipped: a patch of a kustomization: use --kustomize
        note: crd/patches/webhook.yaml: skipped: a patch of a kustomization: use --kustomize
        note: no CRD has rules
        crd/patches/cainjection.yaml:4:3: error: widgets.example.com: metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group
          |
        4 |   name: widgets.example.com
          |   ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.group: Required value
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.scope: Required value
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.versions: Invalid value: null: must have exactly one version marked as storage version
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.names.plural: Required value
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.names.singular: Required value
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.names.kind: Required value
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: spec.names.listKind: Required value
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
        crd/patches/cainjection.yaml:1:1: error: widgets.example.com: status.storedVersions: Invalid value: null: must have at least one stored version
          |
        1 | apiVersion: apiextensions.k8s.io/v1
          | ^
    "#]].assert_eq(&[validate, lint, cost, named].concat());
}
