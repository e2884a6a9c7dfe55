//! Tests with a real `kubectl`, if it is installed.

use crate::server::Process;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt], categories: [fleet]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.oars, statusReplicasPath: .status.oars}
    additionalPrinterColumns:
    - {name: Oars, type: integer, jsonPath: .spec.oars}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: Boat floats.
        properties:
          spec:
            type: object
            description: What the boat should be.
            properties:
              oars: {type: integer, description: How many oars it has., maximum: 8}
              colour: {type: string}
          status:
            type: object
            properties:
              oars: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
";

const BOAT: &str = "
apiVersion: example.com/v1
kind: Boat
metadata: {name: ann, labels: {fleet: north}}
spec: {oars: 2, colour: red}
";

struct Kubectl {
    server: Process,
    home: tempfile::TempDir,
}

/// Starts a server with a CRD and one object; `None` without kubectl.
fn kubectl() -> Option<Kubectl> {
    let there = Command::new("kubectl").args(["version", "--client"]).output();
    if !there.is_ok_and(|o| o.status.success()) {
        eprintln!("SKIPPED: there is no kubectl on this machine");
        return None;
    }
    let kubectl = Kubectl {
        server: Process::start(&[]),
        home: tempfile::tempdir().expect("a directory"),
    };
    kubectl.says(&["apply", "-f", "-"], DEFINITION, "boats.example.com created");
    kubectl.says(
        &["wait", "--for=condition=established", "crd/boats.example.com"],
        "",
        "condition met",
    );
    kubectl.says(&["apply", "-f", "-"], BOAT, "boat.example.com/ann created");
    Some(kubectl)
}

impl Kubectl {
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.server.kubeconfig())
            // Its discovery cache belongs to this server only.
            .env("HOME", self.home.path())
            .env("KUBE_EDITOR", "sed -i s/blue/green/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl runs");
        let written = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("kubectl ends");
        // kubectl need not read all of its input.
        drop(written);
        output
    }

    /// Returns the output of a successful command.
    fn out(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    fn says(&self, arguments: &[&str], input: &str, what: &str) {
        let out = self.out(arguments, input);
        assert!(
            out.contains(what),
            "kubectl {arguments:?} does not say {what:?} but {out}"
        );
    }

    /// Expects a command to fail with a message.
    fn fails(&self, arguments: &[&str], input: &str, why: &str) {
        let output = self.run(arguments, input);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "kubectl {arguments:?} succeeds");
        assert!(
            stderr.contains(why),
            "kubectl {arguments:?} does not say {why:?} but {stderr}"
        );
        assert!(!stderr.contains("panic"), "{stderr}");
    }
}

#[test]
fn kubectl_reads_objects() {
    let Some(k) = kubectl() else { return };
    let columns = |out: &str| {
        let head = out.lines().next().unwrap_or_default().to_owned();
        head.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(columns(&k.out(&["get", "boats"], "")), "NAME OARS");
    assert_eq!(
        columns(&k.out(&["get", "bt", "-o", "wide"], "")),
        "NAME OARS COLOUR"
    );
    assert_eq!(
        columns(&k.out(&["get", "fleet", "-A"], "")),
        "NAMESPACE NAME OARS"
    );
    assert_eq!(columns(&k.out(&["get", "ns"], "")), "NAME STATUS AGE");
    assert_eq!(
        columns(&k.out(&["get", "crd"], "")),
        "NAME SCOPE VERSIONS CREATED AT"
    );
    k.says(&["get", "boat", "ann", "-o", "yaml"], "", "oars: 2");
    k.says(&["get", "boat/ann", "-o", "jsonpath={.spec.colour}"], "", "red");
    k.says(
        &["get", "boats", "-l", "fleet=north", "-o", "name"],
        "",
        "boat.example.com/ann",
    );
    k.says(
        &["get", "boats", "--chunk-size=1", "--show-labels"],
        "",
        "fleet=north",
    );
    k.says(&["describe", "boat", "ann"], "", "Colour:");
    k.fails(&["get", "boat", "bob"], "", "boats.example.com \"bob\" not found");
    k.fails(
        &["get", "ships"],
        "",
        "the server doesn't have a resource type \"ships\"",
    );
    k.says(&["api-resources"], "", "example.com/v1");
    k.says(
        &["api-resources", "--api-group=example.com", "-o", "wide"],
        "",
        "fleet",
    );
    k.says(&["api-versions"], "", "example.com/v1");
    k.says(&["get", "--raw", "/readyz?verbose"], "", "readyz check passed");
}

#[test]
fn kubectl_explains_fields() {
    let Some(k) = kubectl() else { return };
    k.says(&["explain", "boats.spec.oars"], "", "How many oars it has.");
    k.says(&["explain", "boats", "--recursive"], "", "colour\t<string>");
    k.says(
        &["explain", "crd"],
        "",
        "CustomResourceDefinition represents a resource",
    );
    k.says(
        &["explain", "crd.spec.versions"],
        "",
        "additionalPrinterColumns\t<[]CustomResourceColumnDefinition>",
    );
    let rules = "crd.spec.versions.schema.openAPIV3Schema.properties.x-kubernetes-validations.rule";
    k.says(&["explain", rules], "", "FIELD: rule <string>");
    k.says(
        &["explain", "namespace.status"],
        "",
        "conditions\t<[]NamespaceCondition>",
    );
    k.says(
        &["explain", "event"],
        "",
        "involvedObject\t<ObjectReference> -required-",
    );
    k.says(&["explain", "event.series.count"], "", "FIELD: count <integer>");
    k.says(
        &[
            "explain",
            "crd.spec",
            "--api-version=apiextensions.k8s.io/v1beta1",
        ],
        "",
        "validation",
    );
}

#[test]
fn kubectl_changes_objects() {
    let Some(k) = kubectl() else { return };
    k.says(&["apply", "-f", "-"], BOAT, "boat.example.com/ann unchanged");
    k.says(
        &["apply", "-f", "-"],
        &BOAT.replace("oars: 2", "oars: 4"),
        "boat.example.com/ann configured",
    );
    k.says(
        &["apply", "--server-side", "--force-conflicts", "-f", "-"],
        &BOAT.replace("red", "blue"),
        "boat.example.com/ann serverside-applied",
    );
    let diff = k.run(&["diff", "-f", "-"], &BOAT.replace("oars: 2", "oars: 6"));
    assert_eq!(
        diff.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&diff.stderr)
    );
    assert!(String::from_utf8_lossy(&diff.stdout).contains("+  oars: 6"));
    k.says(
        &["scale", "boat/ann", "--replicas=3"],
        "",
        "boat.example.com/ann scaled",
    );
    k.fails(
        &["scale", "boat/ann", "--replicas=9"],
        "",
        "should be less than or equal to 8",
    );
    k.says(
        &[
            "patch",
            "boat",
            "ann",
            "--type=merge",
            "-p",
            r#"{"spec":{"oars":5}}"#,
        ],
        "",
        "patched",
    );
    let operations = r#"[{"op":"replace","path":"/spec/oars","value":6}]"#;
    k.says(
        &["patch", "boat", "ann", "--type=json", "-p", operations],
        "",
        "patched",
    );
    k.fails(
        &["patch", "boat", "ann", "-p", r#"{"spec":{"oars":7}}"#],
        "",
        "the body of the request was in an unknown format",
    );
    let strategic = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    k.says(
        &["patch", "crd", "boats.example.com", "-p", strategic],
        "",
        "patched",
    );
    k.says(&["patch", "ns", "default", "-p", strategic], "", "patched");
    let status = r#"{"status":{"conditions":[{"type":"Afloat","status":"True"}]}}"#;
    k.says(
        &[
            "patch",
            "boat",
            "ann",
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        ],
        "",
        "patched",
    );
    k.says(
        &["wait", "--for=condition=Afloat", "boat/ann", "--timeout=60s"],
        "",
        "condition met",
    );
    k.says(
        &[
            "wait",
            "--for=jsonpath={.spec.oars}=6",
            "boat/ann",
            "--timeout=60s",
        ],
        "",
        "condition met",
    );
    k.says(&["label", "boat", "ann", "port=home"], "", "labeled");
    k.says(&["annotate", "boat", "ann", "note=well"], "", "annotated");
    let live = k.out(&["get", "boat", "ann", "-o", "yaml"], "");
    k.says(
        &["replace", "-f", "-"],
        &live.replace("oars: 6", "oars: 7"),
        "replaced",
    );
    k.fails(&["replace", "-f", "-"], &live, "the object has been modified");
    k.says(
        &["create", "-f", "-", "--dry-run=server"],
        &BOAT.replace("ann", "bob"),
        "created (server dry run)",
    );
    k.fails(&["create", "-f", "-"], BOAT, "already exists");
    // The editor is set in the environment.
    k.says(&["edit", "boat", "ann"], "", "boat.example.com/ann edited");
    k.says(&["get", "boat/ann", "-o", "jsonpath={.spec.colour}"], "", "green");
}

#[test]
fn kubectl_validates_fields() {
    let Some(k) = kubectl() else { return };
    let odd = BOAT.replace("oars: 2", "oars: 2, mast: tall");
    k.fails(
        &["apply", "--validate=strict", "-f", "-"],
        &odd,
        "unknown field \"spec.mast\"",
    );
    let warned = k.run(&["apply", "--validate=warn", "-f", "-"], &odd);
    assert!(warned.status.success());
    assert!(String::from_utf8_lossy(&warned.stderr).contains("Warning: unknown field \"spec.mast\""));
    let ignored = k.run(&["apply", "--validate=ignore", "-f", "-"], &odd);
    assert!(ignored.status.success());
    assert!(!String::from_utf8_lossy(&ignored.stderr).contains("mast"));
    // CRDs are validated, too.
    let definition = DEFINITION.replace("scope: Namespaced", "scope: Namespaced\n  shape: round");
    k.fails(
        &["apply", "--validate=strict", "-f", "-"],
        &definition,
        "unknown field \"spec.shape\"",
    );
    k.fails(
        &["apply", "-f", "-"],
        &BOAT.replace("oars: 2", "oars: many"),
        "must be of type integer",
    );
}

#[test]
fn events_and_namespaces() {
    let Some(k) = kubectl() else { return };
    let event = "
apiVersion: v1
kind: Event
metadata: {name: e}
type: Warning
reason: Sunk
message: it sank
involvedObject: {apiVersion: example.com/v1, kind: Boat, name: ann, namespace: default}
firstTimestamp: 2026-01-01T00:00:00Z
lastTimestamp: 2026-01-01T00:00:00Z
count: 1
";
    k.says(&["create", "-f", "-"], event, "event/e created");
    let listed = k.out(&["get", "events"], "");
    let head = listed
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(head, "LAST SEEN TYPE REASON OBJECT MESSAGE");
    assert!(listed.contains("boat/ann"), "{listed}");
    k.says(&["get", "events", "-o", "wide"], "", "SUBOBJECT");
    k.says(&["events", "--for", "boat/ann"], "", "it sank");
    k.says(&["create", "namespace", "ships"], "", "namespace/ships created");
    k.says(&["apply", "-n", "ships", "-f", "-"], BOAT, "created");
    k.says(&["get", "boats", "-A"], "", "ships");
    k.says(
        &["delete", "ns", "ships", "--timeout=60s"],
        "",
        "namespace \"ships\" deleted",
    );
    k.fails(&["get", "ns", "ships"], "", "not found");
    k.fails(
        &["delete", "ns", "default"],
        "",
        "this namespace may not be deleted",
    );
    let none = k.run(&["get", "boats", "-n", "ships"], "");
    assert!(String::from_utf8_lossy(&none.stderr).contains("No resources found in ships namespace."));
}

#[test]
fn kubectl_deletes_objects() {
    let Some(k) = kubectl() else { return };
    for name in ["bob", "cid", "dot"] {
        k.says(&["apply", "-f", "-"], &BOAT.replace("ann", name), "created");
    }
    k.says(&["delete", "boat", "bob"], "", "boat.example.com \"bob\" deleted");
    k.says(&["delete", "-f", "-"], &BOAT.replace("ann", "cid"), "deleted");
    k.says(&["delete", "boat", "cid", "--ignore-not-found"], "", "");
    k.says(&["delete", "boats", "-l", "fleet=north"], "", "\"dot\" deleted");
    k.says(&["apply", "-f", "-"], BOAT, "created");
    k.says(
        &["delete", "boats", "--all", "--wait=true", "--timeout=60s"],
        "",
        "\"ann\" deleted",
    );
    k.says(
        &["delete", "crd", "boats.example.com", "--timeout=60s"],
        "",
        "deleted",
    );
    // Its discovery cache may be stale.
    k.fails(&["get", "boats"], "", "the server");
}

/// Unsupported requests fail with a message and without a crash.
#[test]
fn unusual_kubectl_flags() {
    let Some(k) = kubectl() else { return };
    k.says(&["auth", "whoami"], "", "Username");
    let whoami = ["auth", "whoami", "-o", "jsonpath={.status.userInfo}"];
    let with = |flags: &[&'static str]| [&whoami[..], flags].concat();
    k.says(
        &with(&["--as=bob", "--as-group=dev", "--as-group=ops", "--as-uid=7"]),
        "",
        r#"{"groups":["dev","ops","system:authenticated"],"uid":"7","username":"bob"}"#,
    );
    k.says(
        &with(&["--as=system:serviceaccount:ci:builder"]),
        "",
        r#""groups":["system:serviceaccounts","system:serviceaccounts:ci","system:authenticated"]"#,
    );
    k.fails(
        &["get", "boats", "--as=system:anonymous"],
        "",
        r#"User "system:anonymous" cannot list resource "boats" in API group "example.com" in the namespace "default""#,
    );
    k.says(&["auth", "can-i", "list", "boats"], "", "yes");
    k.fails(
        &["get", "ships"],
        "",
        "the server doesn't have a resource type \"ships\"",
    );
    k.fails(&["logs", "x"], "", "");
    k.fails(&["top", "nodes"], "", "");
    k.says(&["__complete", "get", "bo"], "", "boats");
    k.says(&["__complete", "get", "boats", ""], "", "ann");
    k.says(&["__complete", "-n", "kube"], "", "kube-system");
}
