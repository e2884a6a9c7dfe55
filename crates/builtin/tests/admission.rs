//! Admission plugins, in kube-apiserver's order.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use expect_test::expect;
use scantling_builtin::admission::{
    Action, Effects, Found, LAST_PLUGINS, Lookup, PLUGINS, Phase, Request, RequestSubresource,
};
use scantling_builtin::{Context, Subresource, User};
use scantling_value::{Limits, Map, Value, json};
use std::sync::Arc;

fn parse(text: &str) -> Value {
    json::decode(text.as_bytes(), Limits::SERVER).unwrap()
}

/// Runs both phases of all plugins that are on by default for the creation of an object named `x` in namespace `n`.
fn create(resource: &str, object: &str, world: &[&str]) -> String {
    let request = |phase| Request {
        phase,
        action: Action::Create,
        group: "",
        resource,
        subresource: RequestSubresource::Of(Subresource::None),
        namespace: "n",
        name: "x",
        old: None,
        context: Context {
            enabled: |_| true,
            now: "2026-11-18T00:00:00Z",
            user: User::default(),
        },
    };
    let mut world: Vec<Value> = world.iter().map(|o| parse(o)).collect();
    world.push(parse(r#"{"kind":"Namespace","metadata":{"name":"n"}}"#));
    let find = |lookup: &Lookup| -> Vec<Arc<Value>> {
        let is_named = |o: &&Value| {
            let name = o.str_at(["metadata", "name"]);
            // A plural name is the kind in lower case with an ending.
            let is_of_resource = lookup.resource.starts_with(&o.get_str("kind").to_lowercase());
            is_of_resource && lookup.name.as_deref().is_none_or(|n| n == name)
        };
        // The first of equal names counts, so that a test can replace the namespace.
        let all = world.iter().filter(is_named).cloned().map(Arc::new);
        if lookup.name.is_some() {
            all.take(1).collect()
        } else {
            all.collect()
        }
    };
    let mut object: Map = parse(object).into_object().unwrap();
    let plugins = |request| {
        PLUGINS
            .iter()
            .chain(LAST_PLUGINS)
            .filter(move |p| p.is_on_by_default && (p.handles)(request))
    };
    let [mutating, validating] = [Phase::Mutating, Phase::Validating].map(request);
    for plugin in plugins(&mutating) {
        let lookups = (plugin.lookups)(&Value::Object(object.clone()), &mutating);
        let found: Vec<Vec<Arc<Value>>> = lookups.iter().map(find).collect();
        if let Err(denial) = (plugin.mutate)(&mut object, &mutating, &Found::new(&found)) {
            return format!("{}: {} {}", plugin.name, denial.code, denial.message);
        }
    }
    let object = Value::Object(object);
    let mut effects = Effects::default();
    for plugin in plugins(&validating) {
        let found: Vec<Vec<Arc<Value>>> = (plugin.lookups)(&object, &validating).iter().map(find).collect();
        if let Err(denial) = (plugin.check)(&object, &validating, &Found::new(&found), &mut effects) {
            return format!("{}: {} {}", plugin.name, denial.code, denial.message);
        }
    }
    let warnings: String = effects
        .warnings
        .iter()
        .map(|w| format!("\nwarning: {w}"))
        .collect();
    let updates: String = effects
        .updates
        .iter()
        .map(|u| format!("\nupdate: {}", u.to_json()))
        .collect();
    format!("{}{warnings}{updates}", object.to_json())
}

const POD: &str = r#"{"spec":{"containers":[{"name":"c","image":"i"}]}}"#;

#[test]
fn pods_get_priority_and_tolerations() {
    expect![[r#"{"spec":{"containers":[{"image":"i","name":"c"}],"preemptionPolicy":"PreemptLowerPriority","priority":0,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]}}"#]].assert_eq(&create("pods", POD, &[]));
}

#[test]
fn pods_meet_the_standard_of_their_namespace() {
    let namespace = r#"{"kind":"Namespace","metadata":{"name":"n","labels":{
        "pod-security.kubernetes.io/enforce":"restricted"}}}"#;
    expect![[r#"PodSecurity: 403 pods "x" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#]].assert_eq(&create("pods", POD, &[namespace]));
}

#[test]
fn creates_in_terminating_namespaces_are_refused() {
    let namespace = r#"{"kind":"Namespace","metadata":{"name":"n"},"status":{"phase":"Terminating"}}"#;
    expect![[r#"NamespaceLifecycle: 403 configmaps "x" is forbidden: unable to create new content in namespace n because it is being terminated"#]].assert_eq(&create("configmaps", "{}", &[namespace]));
}

#[test]
fn limit_ranges_default_and_limit_resources() {
    let range = |max: &str| {
        format!(
            r#"{{"kind":"LimitRange","metadata":{{"name":"l"}},"spec":{{"limits":[{{"type":"Container",
            "default":{{"cpu":"1"}},"max":{{"cpu":"{max}"}}}}]}}}}"#
        )
    };
    expect![[r#"{"metadata":{"annotations":{"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu limit for container c"}},"spec":{"containers":[{"image":"i","name":"c","resources":{"limits":{"cpu":"1"}}}],"preemptionPolicy":"PreemptLowerPriority","priority":0,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}]}}"#]].assert_eq(&create("pods", POD, &[&range("2")]));
    expect![[
        r#"LimitRanger: 403 pods "x" is forbidden: maximum cpu usage per Container is 500m, but limit is 1"#
    ]]
    .assert_eq(&create("pods", POD, &[&range("500m")]));
}

#[test]
fn ratios_are_compared_in_thousandths() {
    let pod = |request: &str, limit: &str| {
        format!(
            r#"{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"{request}"}},
            "limits":{{"cpu":"{limit}"}}}}}}]}}}}"#
        )
    };
    let range = r#"{"kind":"LimitRange","metadata":{"name":"l"},"spec":{"limits":[{"type":"Container",
        "maxLimitRequestRatio":{"cpu":"1500m"}}]}}"#;
    let refused = |request: &str, limit: &str| {
        let answer = create("pods", &pod(request, limit), &[range]);
        answer.starts_with("LimitRanger: ").then_some(answer)
    };
    assert_eq!(refused("2", "3"), None);
    // Less than a thousandth counts as one.
    assert_eq!(refused("1m", "1100u"), Some("LimitRanger: 403 pods \"x\" is forbidden: cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000".to_owned()));
    assert_eq!(refused("1u", "1m"), None);
    assert_eq!(refused("0", "1"), Some("LimitRanger: 403 pods \"x\" is forbidden: cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0".to_owned()));
}

#[test]
fn quotas_count_and_limit() {
    let quota = |used: &str| {
        format!(
            r#"{{"kind":"ResourceQuota","metadata":{{"name":"q"}},
            "status":{{"hard":{{"configmaps":"2"}},"used":{{"configmaps":"{used}"}}}}}}"#
        )
    };
    expect![[r#"
        {}
        update: {"kind":"ResourceQuota","metadata":{"name":"q"},"status":{"hard":{"configmaps":"2"},"used":{"configmaps":"2"}}}"#]].assert_eq(&create("configmaps", "{}", &[&quota("1")]));
    expect![[r#"ResourceQuota: 403 configmaps "x" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"#]].assert_eq(&create("configmaps", "{}", &[&quota("2")]));
}

#[test]
fn claims_get_the_newest_default_class() {
    let class = |name: &str, created: &str| {
        format!(
            r#"{{"kind":"StorageClass","metadata":{{"name":"{name}","creationTimestamp":"{created}",
            "annotations":{{"storageclass.kubernetes.io/is-default-class":"true"}}}}}}"#
        )
    };
    let classes = [
        class("old", "2026-01-01T00:00:00Z"),
        class("new", "2026-02-01T00:00:00Z"),
    ];
    let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
    expect![[
        r#"{"metadata":{"finalizers":["kubernetes.io/pvc-protection"]},"spec":{"storageClassName":"new"}}"#
    ]]
    .assert_eq(&create("persistentvolumeclaims", r#"{"spec":{}}"#, &classes));
}
