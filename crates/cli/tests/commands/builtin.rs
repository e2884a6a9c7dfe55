//! Built-in kinds, in the releases of Kubernetes that have them.

use crate::run;
use expect_test::expect;

/// Objects whose kind or field exists since a release, each with the path of the field.
const NEW: [(u32, &str, &str); 8] = [
    (
        34,
        "the kind",
        "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: a}\ndriverName: a.b\nparameters: {a: b}\n",
    ),
    (
        34,
        "restartPolicyRules",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: a\n    restartPolicy: Never\n    restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]\n",
    ),
    (
        35,
        "the kind",
        "apiVersion: certificates.k8s.io/v1beta1\nkind: PodCertificateRequest\nmetadata: {name: a}\nspec: {}\n",
    ),
    (
        35,
        "userAnnotations",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: a, image: a}]\n  volumes:\n  - name: a\n    projected:\n      sources: [{podCertificate: {signerName: a.b/c, keyType: ED25519, credentialBundlePath: a, userAnnotations: {a.b/c: d}}}]\n",
    ),
    (
        36,
        "the kind",
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicyBinding\nmetadata: {name: a}\nspec: {policyName: a}\n",
    ),
    (
        36,
        "schedulingGroup",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: a, image: a}]\n  schedulingGroup: {podGroupName: a}\n",
    ),
    (
        37,
        "the kind",
        "apiVersion: certificates.k8s.io/v1\nkind: ClusterTrustBundle\nmetadata: {name: a}\nspec: {trustBundle: a}\n",
    ),
    (
        37,
        "mode",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: a, image: a}]\n  volumes: [{name: a, emptyDir: {mode: 0}}]\n",
    ),
];

/// Every release from 1.33 to 1.37 says since when what it does not have exists.
#[test]
fn releases_say_since_when_kinds_and_fields_exist() {
    for release in 33..=37 {
        for (since, what, object) in NEW {
            let (out, err, _) = run(&format!("validate --kubernetes-version 1.{release} -"), object);
            let about = match what {
                "the kind" => "the kind exists since Kubernetes",
                _ => "the field exists since Kubernetes",
            };
            // An older release may lack what the field is in, too.
            let text = match release + 1 < since {
                true => about.to_owned(),
                false => format!("{about} 1.{since}"),
            };
            assert_eq!(
                out.contains(&text),
                release < since,
                "1.{release} {what}: {out}{err}"
            );
            if release >= since {
                assert!(!out.contains("no matches for kind"), "1.{release} {what}: {out}");
                assert!(!out.contains("unknown field"), "1.{release} {what}: {out}");
            }
        }
    }
}

#[test]
fn removed_kinds_say_up_to_when_they_existed() {
    let object = "apiVersion: networking.k8s.io/v1beta1\nkind: IPAddress\nmetadata: {name: 192.0.2.1}\nspec: {parentRef: {resource: services, name: a, namespace: b}}\n";
    let (out, _, code) = run("validate --kubernetes-version 1.36 -", object);
    assert_eq!(code, 0, "{out}");
    let (out, _, code) = run("validate --kubernetes-version 1.37 -", object);
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>:2:1: error: IPAddress 192.0.2.1: no matches for kind "IPAddress" in version "networking.k8s.io/v1beta1"
          |
        2 | kind: IPAddress
          | ^
          = help: the kind exists up to Kubernetes 1.36; --kubernetes-version is 1.37
    "#]]
    .assert_eq(&out);
}

#[test]
fn built_in_kinds_are_explained() {
    let (deployment, err, code) = run("explain deploy.spec.strategy", "");
    assert_eq!((err.as_str(), code), ("", 0));
    let (full, _, _) = run("explain deployments.apps.spec.strategy", "");
    assert_eq!(full, deployment);
    let (ports, _, _) = run("explain service.spec.ports[].targetPort", "");
    let (gated, _, _) = run("explain pods.spec.volumes.emptyDir.mode", "");
    let (_, older, code) = run(
        "explain pods.spec.volumes.emptyDir.mode --kubernetes-version 1.36",
        "",
    );
    assert_eq!(code, 3);
    let (_, unknown, _) = run("explain pods.spec.container", "");
    let (_, nothing, _) = run("explain podz", "");
    let (_, kind, _) = run(
        "explain clustertrustbundles --api-version certificates.k8s.io/v1 --kubernetes-version 1.33",
        "",
    );
    expect![[r#"
        KIND:     Deployment
        VERSION:  apps/v1
        FIELD:    spec.strategy <DeploymentStrategy>

        DESCRIPTION:
            The deployment strategy to use to replace existing pods with new ones.

        CONSTRAINTS:
            object

        FIELDS:
          rollingUpdate <RollingUpdateDeployment>
            Rolling update config params. Present only if DeploymentStrategyType = RollingUpdate.
            object
          type <string>
            Type of deployment. Can be "Recreate" or "RollingUpdate". Default is RollingUpdate.
            string, one of "Recreate", "RollingUpdate"
        KIND:     Service
        VERSION:  v1
        FIELD:    spec.ports[].targetPort <IntOrString>

        DESCRIPTION:
            Number or name of the port to access on the pods targeted by the service. Number must be in
            the range 1 to 65535. Name must be an IANA_SVC_NAME. If this is a string, it will be looked
            up as a named port in the target Pod's container ports. If this is not specified, the value
            of the 'port' field is used (an identity map). This field is ignored for services with
            clusterIP=None, and should be omitted or set equal to the 'port' field. More info:
            https://kubernetes.io/docs/concepts/services-networking/service/#defining-a-service
        KIND:     Pod
        VERSION:  v1
        FIELD:    spec.volumes.emptyDir.mode <integer>

        DESCRIPTION:
            mode specifies the permission bits for the emptyDir directory, in numeric notation (e.g.,
            0755, 01777). Must be a value between 0000 and 01777. If not specified, defaults to 0777.
            This might be in conflict with other options that affect the file mode, like fsGroup. If
            fsGroup is specified, the fsGroup permissions will override the mode specified here. This
            field has no effect on Windows. This field is alpha and requires EmptyDirVolumeMode
            featuregate to be enabled.

        CONSTRAINTS:
            integer, int32, since Kubernetes 1.37, feature gate EmptyDirVolumeMode
        error: there is no field spec.volumes.emptyDir.mode
        hint: the field exists since Kubernetes 1.37; --kubernetes-version is 1.36
        error: there is no field spec.container
        hint: did you mean spec.containers?
        error: no CRD or built-in kind is called podz
        hint: did you mean pod?
        error: no CRD or built-in kind is called clustertrustbundles
        hint: the kind exists since Kubernetes 1.37; --kubernetes-version is 1.33
    "#]]
    .assert_eq(&[deployment, ports, gated, older, unknown, nothing, kind].concat());
}

/// The objects of a cluster that is upgraded to another release.
#[test]
fn upgrades_of_the_cluster_check_built_in_objects() {
    let objects = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    \
        metadata: {labels: {a: b}}\n    spec:\n      containers: [{name: a, image: a}]\n      workloadRef: {name: a, podGroup: b}\n---\n\
        apiVersion: networking.k8s.io/v1beta1\nkind: IPAddress\nmetadata: {name: 192.0.2.1}\nspec: {parentRef: {resource: services, name: a, namespace: b}}\n---\n\
        apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}], selector: {a: b}}\n";
    let (out, err, code) = run(
        "upgrade --from-kubernetes-version 1.35 --kubernetes-version 1.37 - --summary",
        objects,
    );
    assert_eq!((err.as_str(), code), ("", 1));
    expect![[r#"
        <stdin>:10:7: warning[SCT1203]: Deployment a: spec.template.spec.workloadRef is pruned by the next write
           |
        10 |       workloadRef: {name: a, podGroup: b}
           |       ^
          = help: the field exists up to Kubernetes 1.35
        <stdin>: Deployment a: ok
        <stdin>:13:1: error[SCT1205]: IPAddress 192.0.2.1: no matches for kind "IPAddress" in version "networking.k8s.io/v1beta1"
           |
        13 | kind: IPAddress
           | ^
          = help: the kind exists up to Kubernetes 1.36; --kubernetes-version is 1.37
        <stdin>: Service a: ok
        0 CRDs, 3 objects: 2 ok, 0 ratcheted, 1 refused
    "#]].assert_eq(&out);
}

/// A cluster allocates the port.
#[test]
fn allocated_fields_may_be_left_out() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}], selector: {a: b}}\n";
    let (out, _, code) = run("validate -", service);
    assert_eq!((out.as_str(), code), ("<stdin>: Service a: accepted\n", 0));
}
