//! Services get cluster IPs, IP families and node ports.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use expect_test::{Expect, expect};
use scantling_builtin::services::{AllocationError, Pools, allocate};
use scantling_value::{Limits, Map, Value, json};
use std::collections::BTreeSet;

fn parse(text: &str) -> Value {
    json::decode(text.as_bytes(), Limits::SERVER).unwrap()
}

/// Allocates for a service in a cluster with the given ranges, in which `10.0.0.7` and port 30007 are taken.
fn outcome(ranges: &[&str], service: &str, old: Option<&str>, dry_run: bool) -> String {
    let used_addresses = BTreeSet::from(["10.0.0.7".parse().unwrap()]);
    let used_ports = BTreeSet::from([30007]);
    let pools = Pools {
        ranges,
        node_ports: 30000..=32767,
        used_addresses: &used_addresses,
        used_ports: &used_ports,
        seed: 0,
        dry_run,
    };
    let wrap = |spec: &str| Map::from_iter([("spec", parse(spec))]);
    let mut service = wrap(service);
    let old = old.map(|old| Value::Object(wrap(old)));
    match allocate(&mut service, old.as_ref(), &pools) {
        Ok(_) => service.get("spec").unwrap().to_json(),
        Err(AllocationError::Invalid(errors)) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("\n")
        }
        Err(AllocationError::Internal(why) | AllocationError::Failed(why)) => why,
    }
}

#[track_caller]
fn check(ranges: &[&str], services: &[&str], expected: &Expect) {
    let outcomes: Vec<String> = services.iter().map(|s| outcome(ranges, s, None, false)).collect();
    expected.assert_eq(&outcomes.join("\n"));
}

#[test]
fn single_stack() {
    check(
        &["10.0.0.0/24"],
        &[
            r#"{"type":"ClusterIP"}"#,
            r#"{"type":"ClusterIP","clusterIP":"10.0.0.9"}"#,
            r#"{"type":"ClusterIP","clusterIP":"10.0.0.7"}"#,
            r#"{"type":"ClusterIP","clusterIP":"10.0.0.255"}"#,
            r#"{"type":"ClusterIP","clusterIP":"10.1.0.1"}"#,
            r#"{"type":"ClusterIP","clusterIP":"None"}"#,
            r#"{"type":"ClusterIP","clusterIP":"None","selector":{"a":"b"}}"#,
            r#"{"type":"ClusterIP","ipFamilyPolicy":"RequireDualStack"}"#,
            r#"{"type":"ClusterIP","ipFamilies":["IPv6"]}"#,
            r#"{"type":"ExternalName"}"#,
        ],
        &expect![[r#"
            {"clusterIP":"10.0.0.17","clusterIPs":["10.0.0.17"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","type":"ClusterIP"}
            {"clusterIP":"10.0.0.9","clusterIPs":["10.0.0.9"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","type":"ClusterIP"}
            spec.clusterIPs: Invalid value: ["10.0.0.7"]: failed to allocate IP 10.0.0.7: provided IP is already allocated
            spec.clusterIPs: Invalid value: ["10.0.0.255"]: failed to allocate IP 10.0.0.255: the provided network does not match the current range
            spec.clusterIPs: Invalid value: ["10.1.0.1"]: failed to allocate IP 10.1.0.1: the provided network does not match the current range
            {"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"RequireDualStack","type":"ClusterIP"}
            {"clusterIP":"None","clusterIPs":["None"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","selector":{"a":"b"},"type":"ClusterIP"}
            spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services
            spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster
            {"type":"ExternalName"}"#]],
    );
}

#[test]
fn dual_stack() {
    check(
        &["10.0.0.0/24", "fd00::/112"],
        &[
            r#"{"type":"ClusterIP"}"#,
            r#"{"type":"ClusterIP","ipFamilyPolicy":"PreferDualStack"}"#,
            r#"{"type":"ClusterIP","ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv6"]}"#,
            r#"{"type":"ClusterIP","clusterIP":"fd00::9","clusterIPs":["fd00::9"]}"#,
        ],
        &expect![[r#"
            {"clusterIP":"10.0.0.17","clusterIPs":["10.0.0.17"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","type":"ClusterIP"}
            {"clusterIP":"10.0.0.17","clusterIPs":["10.0.0.17","fd00::101"],"ipFamilies":["IPv4","IPv6"],"ipFamilyPolicy":"PreferDualStack","type":"ClusterIP"}
            {"clusterIP":"fd00::101","clusterIPs":["fd00::101","10.0.0.17"],"ipFamilies":["IPv6","IPv4"],"ipFamilyPolicy":"RequireDualStack","type":"ClusterIP"}
            {"clusterIP":"fd00::9","clusterIPs":["fd00::9"],"ipFamilies":["IPv6"],"ipFamilyPolicy":"SingleStack","type":"ClusterIP"}"#]],
    );
}

#[test]
fn node_ports() {
    check(
        &["10.0.0.0/24"],
        &[
            r#"{"type":"NodePort","ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}"#,
            r#"{"type":"NodePort","ports":[{"port":80,"nodePort":30007}]}"#,
            r#"{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}"#,
            r#"{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,"ports":[{"port":80}]}"#,
            r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30007}"#,
        ],
        &expect![[r#"
            {"clusterIP":"10.0.0.17","clusterIPs":["10.0.0.17"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"nodePort":30086,"port":80,"protocol":"TCP"},{"nodePort":30086,"port":80,"protocol":"UDP"}],"type":"NodePort"}
            spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated
            spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767
            {"allocateLoadBalancerNodePorts":false,"clusterIP":"10.0.0.17","clusterIPs":["10.0.0.17"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"port":80}],"type":"LoadBalancer"}
            failed to allocate requested HealthCheck NodePort 30007: provided port is already allocated"#]],
    );
}

#[test]
fn updates_keep_allocations() {
    let old = r#"{"type":"NodePort","clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"ipFamilies":["IPv4"],
        "ipFamilyPolicy":"SingleStack","ports":[{"name":"a","port":80,"nodePort":30007}]}"#;
    let new = [
        r#"{"type":"NodePort","ports":[{"name":"a","port":81}]}"#,
        r#"{"type":"NodePort","ports":[{"name":"b","port":81}]}"#,
        r#"{"type":"ExternalName","clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"]}"#,
    ];
    let outcomes = new.map(|new| outcome(&["10.0.0.0/24"], new, Some(old), false));
    expect![[r#"
        {"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","nodePort":30007,"port":81}],"type":"NodePort"}
        {"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"b","nodePort":30086,"port":81}],"type":"NodePort"}
        {"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"type":"ExternalName"}"#]].assert_eq(&outcomes.join("\n"));
}

#[test]
fn dry_runs_get_placeholders() {
    let service = r#"{"type":"NodePort","ports":[{"name":"a","port":80},{"name":"b","port":81}]}"#;
    expect![[r#"{"clusterIP":"10.0.0.0","clusterIPs":["10.0.0.0"],"ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"a","nodePort":32769,"port":80},{"name":"b","nodePort":32770,"port":81}],"type":"NodePort"}"#]].assert_eq(&outcome(&["10.0.0.0/24"], service, None, true));
}
