//! Built-in kinds: lists whose items are checked against each other, defaults, admission plugins and allocation.

use crate::cluster::{APPLY, JSON, MERGE_PATCH, STRATEGIC_PATCH, list, numbered, patch, post, put, repeated};
use crate::http::HttpRequest;
use crate::plan::{Attack, Size};
use base64::Engine as _;
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The answers to a write that is large but otherwise well-formed: it is done, refused, or out of time.
const DONE_OR_REFUSED: &[u16] = &[200, 201, 400, 403, 413, 422, 500, 504];

/// A list of values made of their numbers.
fn many(n: usize, item: impl Fn(usize) -> Value) -> Value {
    Value::Array((0..n).map(item).collect())
}

fn container(name: &str) -> Value {
    json!({"name": name, "image": "i"})
}

/// The JSON of a Pod with one container and more fields in its `spec`.
fn pod(name: &str, fields: &Value) -> Value {
    let mut spec = json!({"containers": [container("c")]});
    merge(&mut spec, fields);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

/// The same Pod in the template of a Deployment.
fn deployment(name: &str, fields: &Value) -> Value {
    let spec = pod("", fields)["spec"].take();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": spec},
        },
    })
}

fn merge(object: &mut Value, fields: &Value) {
    if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
        object.extend(fields.clone());
    }
}

/// A dry run, so that the same object can be created again and again.
fn try_create(path: &str, body: &Value) -> HttpRequest {
    post(&format!("{path}?dryRun=All"), body)
}

/// Creates a Pod with large fields.
fn pod_with(name: &'static str, request: &'static str, fields: impl Fn(Size) -> Value + 'static) -> Attack {
    Attack::one(name, request, move |size| {
        try_create(PODS, &pod("a", &fields(size)))
    })
    .expect(DONE_OR_REFUSED)
}

/// Creates an object of any kind with a large `spec` or other members.
fn object_with(
    name: &'static str,
    request: &'static str,
    path: &'static str,
    object: impl Fn(Size) -> Value + 'static,
) -> Attack {
    Attack::one(name, request, move |size| try_create(path, &object(size))).expect(DONE_OR_REFUSED)
}

/// The protobuf of a Pod whose `spec` is the same field again and again.
fn protobuf_pod(field: &[u8], n: usize) -> HttpRequest {
    // The same envelope as for any kind: the prefix, `runtime.Unknown`, its type and its raw bytes.
    let metadata = length_delimited(1, &length_delimited(1, b"a"));
    let raw = [metadata, length_delimited(2, &field.repeat(n))].concat();
    let type_meta = [length_delimited(1, b"v1"), length_delimited(2, b"Pod")].concat();
    let body = [
        b"k8s\0".to_vec(),
        length_delimited(1, &type_meta),
        length_delimited(2, &raw),
    ]
    .concat();
    HttpRequest::new("POST", format!("{PODS}?dryRun=All"), PROTOBUF, body)
}

fn length_delimited(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

pub(crate) fn table() -> Vec<Attack> {
    [
        pods(),
        members(),
        services_and_network(),
        policies(),
        patches(),
        others(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn pods() -> Vec<Attack> {
    vec![
        pod_with(
            "builtin/containers",
            "a Pod with 25 000 containers",
            |size| json!({"containers": many(size.scale(25_000), |i| container(&format!("c{i}")))}),
        ),
        pod_with(
            "builtin/containers-same-name",
            "a Pod with 50 000 containers of one name",
            |size| json!({"containers": list(&container("c"), size.scale(50_000))}),
        ),
        pod_with(
            "builtin/containers-empty",
            "a Pod with 500 000 empty containers",
            |size| json!({"containers": list(&json!({}), size.scale(500_000))}),
        ),
        Attack::one(
            "builtin/containers-protobuf",
            "a Pod with 1 000 000 empty containers in protobuf",
            |size| protobuf_pod(&[0x12, 0], size.scale(1_000_000)),
        )
        .expect(DONE_OR_REFUSED),
        Attack::one(
            "builtin/volumes-protobuf",
            "a Pod with 1 000 000 empty volumes in protobuf",
            |size| protobuf_pod(&[0x0a, 0], size.scale(1_000_000)),
        )
        .expect(DONE_OR_REFUSED),
        pod_with(
            "builtin/mounts-and-volumes",
            "10 000 volumes and 20 000 mounts",
            |size| {
                let n = size.scale(10_000);
                let mount = |i: usize| json!({"name": format!("v{}", i % n), "mountPath": format!("/m{i}")});
                let mut container = container("c");
                container["volumeMounts"] = many(2 * n, mount);
                json!({
                    "containers": [container],
                    "volumes": many(n, |i| json!({"name": format!("v{i}"), "emptyDir": {}})),
                })
            },
        ),
        pod_with(
            "builtin/host-ports",
            "a container with 30 000 host ports",
            |size| {
                let mut container = container("c");
                container["ports"] = many(
                    size.scale(30_000),
                    |i| json!({"containerPort": i % 60_000 + 1, "hostPort": i % 60_000 + 1}),
                );
                json!({"containers": [container]})
            },
        ),
        pod_with(
            "builtin/ports-same-name",
            "a container with 40 000 ports of one name",
            |size| {
                let mut container = container("c");
                container["ports"] = list(
                    &json!({"containerPort": 1, "name": "a", "protocol": "UDP"}),
                    size.scale(40_000),
                );
                json!({"containers": [container]})
            },
        ),
        pod_with(
            "builtin/environment",
            "40 000 environment variables, each name twice",
            |size| {
                let mut container = container("c");
                container["env"] = many(
                    size.scale(40_000),
                    |i| json!({"name": format!("E{}", i / 2), "value": "v"}),
                );
                json!({"containers": [container]})
            },
        ),
        pod_with(
            "builtin/environment-invalid",
            "40 000 environment variables without a name",
            |size| {
                let mut container = container("c");
                container["env"] = list(
                    &json!({"valueFrom": {"fieldRef": {"fieldPath": "x"}}}),
                    size.scale(40_000),
                );
                json!({"containers": [container]})
            },
        ),
        pod_with(
            "builtin/tolerations",
            "40 000 tolerations",
            |size| json!({"tolerations": many(size.scale(40_000), |i| json!({"key": format!("k{i}"), "operator": "Exists"}))}),
        ),
        pod_with(
            "builtin/topology-spread",
            "20 000 topology spread constraints",
            |size| {
                json!({"topologySpreadConstraints": many(size.scale(20_000), |i| json!({
                    "maxSkew": 1, "topologyKey": format!("k{i}"), "whenUnsatisfiable": "DoNotSchedule",
                }))})
            },
        ),
        pod_with(
            "builtin/affinity",
            "20 000 node selector requirements and 20 000 pod affinity terms",
            |size| {
                let n = size.scale(20_000);
                let requirement =
                    |i: usize| json!({"key": format!("k{i}"), "operator": "In", "values": ["a"]});
                let term = |i: usize| json!({"topologyKey": format!("k{i}"), "labelSelector": {"matchLabels": {"a": "b"}}});
                json!({"affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": many(n, requirement)}]}},
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": many(n, term)},
                }})
            },
        ),
        pod_with(
            "builtin/projected-paths",
            "a projected volume of 20 000 sources with the same path",
            |size| {
                let source = json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}});
                json!({"volumes": [{"name": "v", "projected": {"sources": list(&source, size.scale(20_000))}}]})
            },
        ),
        pod_with(
            "builtin/resource-names",
            "a container with 30 000 resources",
            |size| {
                let resources: Value = (0..size.scale(30_000))
                    .map(|i| (format!("example.com/r{i}"), json!("1")))
                    .collect::<serde_json::Map<_, _>>()
                    .into();
                let mut container = container("c");
                container["resources"] = json!({"limits": resources});
                json!({"containers": [container]})
            },
        ),
        pod_with(
            "builtin/quantity-digits",
            "a quantity of 2 000 000 digits",
            |size| {
                let mut container = container("c");
                container["resources"] = json!({"limits": {"cpu": "1".repeat(size.scale(2_000_000))}});
                json!({"containers": [container]})
            },
        ),
        pod_with(
            "builtin/quantity-exponents",
            "10 000 quantities with huge exponents",
            |size| {
                let resources: Value = (0..size.scale(10_000))
                    .map(|i| {
                        (
                            format!("example.com/r{i}"),
                            json!(format!("1e{}", 999_999_000 + i)),
                        )
                    })
                    .collect::<serde_json::Map<_, _>>()
                    .into();
                let mut container = container("c");
                container["resources"] = json!({"limits": resources});
                json!({"containers": [container]})
            },
        ),
        object_with(
            "builtin/template-errors",
            "a Deployment with 20 000 invalid containers",
            DEPLOYMENTS,
            |size| {
                let bad = json!({"name": "Ä", "image": " ", "imagePullPolicy": "x", "ports": [{"containerPort": 0}]});
                deployment("a", &json!({"containers": list(&bad, size.scale(20_000))}))
            },
        ),
        Attack::one(
            "builtin/pod-security",
            "a Pod with 10 000 containers against the restricted standard",
            |size| {
                let fields = json!({"containers": many(size.scale(10_000), |i| container(&format!("c{i}")))});
                try_create("/api/v1/namespaces/restricted/pods", &pod("a", &fields))
            },
        )
        .after_one(|_| {
            post(
                "/api/v1/namespaces",
                &json!({
                    "apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": "restricted", "labels": {
                        "pod-security.kubernetes.io/enforce": "restricted",
                        "pod-security.kubernetes.io/warn": "restricted",
                        "pod-security.kubernetes.io/audit": "restricted",
                    }},
                }),
            )
        })
        .expect(DONE_OR_REFUSED),
    ]
}

/// Members of objects that are added among many others, from two sources.
fn members() -> Vec<Attack> {
    let amounts = |prefix: &str, n: usize| -> Value {
        let name = |i: usize| (format!("{prefix}.example.com/r{i:05}"), json!("1"));
        (0..n).map(name).collect::<serde_json::Map<_, _>>().into()
    };
    let texts = |prefix: &str, n: usize| numbered(n, |i| format!("\"{prefix}{i:06}\":\"\""));
    vec![
        Attack::one("builtin/secret-string-data", "a Secret with 60 000 entries of data and 60 000 of stringData before them", move |size| {
            let n = size.scale(20_000);
            let (data, string_data) = (texts("z", n), texts("a", n));
            let body = format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"a"}},"data":{{{data}}},"stringData":{{{string_data}}}}}"#);
            HttpRequest::new("POST", "/api/v1/namespaces/default/secrets?dryRun=All", JSON, body)
        })
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/duplicate-data", "a ConfigMap whose data appears twice with 100 000 entries", move |size| {
            let n = size.scale(100_000);
            let (first, second) = (texts("z", n), texts("a", n));
            let body = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{{first}}},"data":{{{second}}}}}"#);
            HttpRequest::new("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", JSON, body)
        })
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/data-protobuf", "a ConfigMap in protobuf with 200 000 entries in reverse order", |size| {
            let n = size.scale(200_000);
            let entry = |i: usize| length_delimited(2, &length_delimited(1, format!("{:06}", n - i).as_bytes()));
            let entries: Vec<u8> = (0..n).flat_map(entry).collect();
            let raw = [length_delimited(1, &length_delimited(1, b"a")), entries].concat();
            let type_meta = [length_delimited(1, b"v1"), length_delimited(2, b"ConfigMap")].concat();
            let body = [b"k8s\0".to_vec(), length_delimited(1, &type_meta), length_delimited(2, &raw)].concat();
            HttpRequest::new("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", PROTOBUF, body)
        })
        .expect(DONE_OR_REFUSED),
        object_with("builtin/limit-range-amounts", "a LimitRange with 30 000 maxima and 30 000 defaults", "/api/v1/namespaces/default/limitranges", move |size| {
            let n = size.scale(30_000);
            json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}, "spec": {"limits": [{
                "type": "Container", "max": amounts("a", n), "default": amounts("z", n),
            }]}})
        }),
        Attack::one("builtin/limit-range-defaults", "a Pod with 10 000 containers that lack 10 000 default amounts", |size| {
            let fields = json!({"containers": many(size.scale(10_000), |i| container(&format!("c{i}")))});
            try_create(PODS, &pod("a", &fields))
        })
        .after_one(move |size| {
            post("/api/v1/namespaces/default/limitranges", &json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}, "spec": {"limits": [{
                "type": "Container", "default": amounts("a", size.scale(10_000)), "defaultRequest": {"cpu": "1"},
            }]}}))
        })
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/limit-range-errors", "a Pod with 10 000 containers below 10 000 minima", |size| {
            let fields = json!({"containers": many(size.scale(10_000), |i| container(&format!("c{i}")))});
            try_create(PODS, &pod("a", &fields))
        })
        .after_one(move |size| {
            post("/api/v1/namespaces/default/limitranges", &json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "a"}, "spec": {"limits": [{
                "type": "Container", "maxLimitRequestRatio": amounts("a", size.scale(10_000)),
            }]}}))
        })
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/quantity-sums", "2 000 containers whose requests differ by 80 000 digits", |size| {
            let n = size.scale(2_000);
            let container = |i: usize| json!({"name": format!("c{i}"), "image": "i", "resources": {"requests": {"cpu": format!("1e{}", i * 40)}}});
            try_create(PODS, &pod("a", &json!({"containers": many(n, container), "resources": {"limits": {"cpu": "1e100000"}}})))
        })
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/spread-constraints-update", "an update of a Pod with 8 000 topology spread constraints with keys", |size| {
            let mut object = pod("a", &spread(size));
            object["metadata"]["labels"] = json!({"x": "y"});
            put(&format!("{PODS}/a?dryRun=All"), &object)
        })
        .after_one(|size| post(PODS, &pod("a", &spread(size))))
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/tolerations-of-class", "a Pod with 10 000 tolerations beside those of its RuntimeClass", |size| {
            try_create(PODS, &pod("a", &json!({"runtimeClassName": "r", "tolerations": tolerations("p", size.scale(10_000))})))
        })
        .after_one(|size| {
            post("/apis/node.k8s.io/v1/runtimeclasses", &json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "h",
                "scheduling": {"tolerations": tolerations("c", size.scale(10_000))}}))
        })
        .expect(DONE_OR_REFUSED),
    ]
}

fn tolerations(prefix: &str, n: usize) -> Value {
    many(
        n,
        |i| json!({"key": format!("{prefix}{i}"), "operator": "Exists"}),
    )
}

/// Topology spread constraints whose keys are merged into their selectors.
fn spread(size: Size) -> Value {
    json!({"topologySpreadConstraints": many(size.scale(8_000), |i| json!({
        "maxSkew": 1, "topologyKey": format!("k{i}"), "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["c"],
    }))})
}

fn service_with_addresses(size: Size, is_reverse: bool) -> Value {
    let n = size.scale(100_000);
    let address = |i: usize| format!("{}.{}.{}.9", 10 + (i >> 16), i >> 8 & 255, i & 255);
    let addresses = many(n, |i| json!(address(if is_reverse { n - 1 - i } else { i })));
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {
        "ports": [{"port": 1}], "externalIPs": addresses,
    }})
}

fn services_and_network() -> Vec<Attack> {
    vec![
        object_with("builtin/service-ports", "a Service with 30 000 ports", SERVICES, |size| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {
                "type": "NodePort",
                "ports": many(size.scale(30_000), |i| json!({"name": format!("p{i}"), "port": i % 60_000 + 1})),
            }})
        }),
        object_with("builtin/service-node-ports", "a Service with 30 000 times the same node port", SERVICES, |size| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {
                "type": "NodePort",
                "ports": many(size.scale(30_000), |i| json!({"name": format!("p{i}"), "port": 1, "nodePort": 30_000})),
            }})
        }),
        object_with("builtin/service-ports-one-number", "a dry run of a Service with 100 000 ports of one number", SERVICES, |size| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {
                "type": "NodePort",
                "ports": many(size.scale(100_000), |_| json!({"port": 1})),
            }})
        }),
        Attack::one("builtin/service-external-addresses", "an update of a Service with 100 000 external addresses, in reverse order", |size| {
            put(&format!("{SERVICES}/a?dryRun=All"), &service_with_addresses(size, true))
        })
        .after_one(|size| post(SERVICES, &service_with_addresses(size, false)))
        .expect(DONE_OR_REFUSED),
        Attack::requests("builtin/service-addresses-exhausted", "Services after the last cluster IP", |_| {
            vec![post(SERVICES, &json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "s"}, "spec": {"ports": [{"port": 1}]},
            })); 20]
        })
        .after(|size| {
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "s"}, "spec": {"ports": [{"port": 1}]}});
            vec![post(SERVICES, &service); size.scale(240)]
        })
        .expect(&[201, 422, 500]),
        object_with("builtin/network-policy", "a NetworkPolicy with 20 000 peers and 20 000 exceptions", "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", |size| {
            let n = size.scale(20_000);
            let mut peers = many(n, |i| json!({"ipBlock": {"cidr": format!("10.{}.{}.0/24", i / 256 % 256, i % 256)}}));
            peers[0]["ipBlock"] = json!({"cidr": "10.0.0.0/8", "except": many(n, |i| json!(format!("10.{}.{}.0/24", i / 256 % 256, i % 256)))});
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
                "spec": {"podSelector": {}, "ingress": [{"from": peers}]}})
        }),
        object_with("builtin/ingress-rules", "an Ingress with 30 000 hosts and 30 000 TLS entries", "/apis/networking.k8s.io/v1/namespaces/default/ingresses", |size| {
            let n = size.scale(30_000);
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}, "spec": {
                "defaultBackend": {"service": {"name": "s", "port": {"number": 80}}},
                "rules": many(n, |i| json!({"host": format!("h{i}.example.com")})),
                "tls": many(n, |i| json!({"hosts": [format!("h{i}.example.com")], "secretName": "s"})),
            }})
        }),
        object_with("builtin/endpoints", "Endpoints with 60 000 addresses", "/api/v1/namespaces/default/endpoints", |size| {
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}, "subsets": [{
                "addresses": many(size.scale(60_000), |i| json!({"ip": format!("10.{}.{}.{}", i >> 16 & 255, i >> 8 & 255, i & 255)})),
                "ports": [{"port": 1}],
            }]})
        }),
        object_with("builtin/endpoint-slice", "an EndpointSlice with 40 000 endpoints", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", |size| {
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a"}, "addressType": "IPv4",
                "endpoints": many(size.scale(40_000), |_| json!({"addresses": ["10.0.0.1", "10.0.0.1"]}))})
        }),
    ]
}

fn policies() -> Vec<Attack> {
    vec![
        Attack::one("builtin/limit-ranges", "a Pod with 2 000 containers against 100 LimitRanges", |size| {
            let fields = json!({"containers": many(size.scale(2_000), |i| container(&format!("c{i}")))});
            try_create(PODS, &pod("a", &fields))
        })
        .after(|size| {
            let range = |i: usize| json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": format!("r{i}")}, "spec": {"limits": [{
                "type": "Container", "max": {"cpu": "1", "memory": "1Gi"}, "default": {"cpu": "1", "memory": "1Gi"},
            }]}});
            (0..size.scale(100)).map(|i| post("/api/v1/namespaces/default/limitranges", &range(i))).collect()
        })
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/resource-quotas", "a Pod against 200 ResourceQuotas", |_| try_create(PODS, &pod("a", &json!({}))))
        .after(|size| {
            let quota = |i: usize| json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": format!("q{i}")}, "spec": {"hard": {
                "pods": "0", "requests.cpu": "1", "limits.memory": "1Gi", "count/pods": "0",
            }}});
            (0..size.scale(200)).map(|i| post("/api/v1/namespaces/default/resourcequotas", &quota(i))).collect()
        })
        .expect(DONE_OR_REFUSED),
        object_with("builtin/quota-resources", "a ResourceQuota with 40 000 resources", "/api/v1/namespaces/default/resourcequotas", |size| {
            let hard: serde_json::Map<_, _> = (0..size.scale(40_000)).map(|i| (format!("count/r{i}.example.com"), json!("1"))).collect();
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "a"}, "spec": {"hard": hard}})
        }),
        Attack::one("builtin/priority-classes", "a Pod beside 1 000 PriorityClasses", |_| try_create(PODS, &pod("a", &json!({}))))
        .after(|size| {
            let class = |i: usize| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": format!("p{i}")}, "value": i});
            (0..size.scale(1_000)).map(|i| post("/apis/scheduling.k8s.io/v1/priorityclasses", &class(i))).collect()
        }),
        object_with("builtin/role-rules", "a ClusterRole with 40 000 rules", "/apis/rbac.authorization.k8s.io/v1/clusterroles", |size| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"},
                "rules": list(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "nonResourceURLs": ["/x"]}), size.scale(40_000))})
        }),
        object_with("builtin/policy-validations", "a ValidatingAdmissionPolicy with 2 000 validations", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", |size| {
            let validation = |i: usize| json!({"expression": format!("object.metadata.name.all(c, c == 'a{i}') && object.spec.replicas < {i}")});
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "a"}, "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]},
                "validations": many(size.scale(2_000), validation),
            }})
        }),
        object_with("builtin/policy-variables", "a ValidatingAdmissionPolicy with 400 variables that double each other", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", |size| {
            let variable = |i: usize| json!({"name": format!("v{i}"), "expression": if i == 0 { "'x'".to_owned() } else { format!("variables.v{0} + variables.v{0}", i - 1) }});
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "a"}, "spec": {
                "matchConstraints": {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]},
                "variables": many(size.scale(400), variable),
                "validations": [{"expression": "true"}],
            }})
        }),
        object_with("builtin/webhook-conditions", "a webhook with 64 conditions of 30 kB", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", |size| {
            let expression = vec!["object.metadata.name != ''"; size.scale(1_000)].join(" && ");
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "a"}, "webhooks": [{
                "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "matchConditions": many(64, |i| json!({"name": format!("c{i}"), "expression": expression})),
            }]})
        }),
        object_with("builtin/device-selectors", "a ResourceClaim with 500 CEL selectors", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", |size| {
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"}, "spec": {"devices": {"requests": many(size.scale(500), |i| json!({
                "name": format!("r{i}"),
                "exactly": {"deviceClassName": "c", "selectors": list(&json!({"cel": {"expression": "device.attributes['a'].b == 'c'"}}), 10)},
            }))}}})
        }),
    ]
}

fn patches() -> Vec<Attack> {
    let stored = |size: Size| {
        post(
            DEPLOYMENTS,
            &deployment(
                "a",
                &json!({"containers": many(size.scale(8_000), |i| container(&format!("c{i}")))}),
            ),
        )
    };
    vec![
        Attack::one("builtin/strategic-containers", "a strategic patch of 8 000 containers in reverse order", |size| {
            let n = size.scale(8_000);
            patch(&format!("{DEPLOYMENTS}/a"), STRATEGIC_PATCH, &json!({"spec": {"template": {"spec": {
                "$setElementOrder/containers": many(n, |i| json!({"name": format!("c{}", n - 1 - i)})),
                "containers": many(n, |i| json!({"name": format!("c{}", n - 1 - i), "image": "j"})),
            }}}}))
        })
        .after_one(stored)
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/strategic-delete", "$patch: delete of 8 000 containers", |size| {
            patch(&format!("{DEPLOYMENTS}/a?dryRun=All"), STRATEGIC_PATCH, &json!({"spec": {"template": {"spec": {
                "containers": many(size.scale(8_000), |i| json!({"name": format!("c{i}"), "$patch": "delete"})),
            }}}}))
        })
        .after_one(stored)
        .expect(DONE_OR_REFUSED),
        Attack::requests("builtin/apply-ports", "an apply of 10 000 ports by two managers", |size| {
            let ports = many(size.scale(10_000), |i| json!({"containerPort": i + 1, "protocol": "TCP"}));
            let mut container = container("c");
            container["ports"] = ports;
            let body = deployment("p", &json!({"containers": [container]}));
            ["m", "n"].map(|manager| {
                HttpRequest::new("PATCH", format!("{DEPLOYMENTS}/p?fieldManager={manager}&force=true"), APPLY, body.to_string())
            }).to_vec()
        })
        .expect(&[200, 201, 400, 409, 413, 422, 500, 504]),
        Attack::one("builtin/ephemeral-containers", "20 000 ephemeral containers", |size| {
            patch(&format!("{PODS}/a/ephemeralcontainers?dryRun=All"), STRATEGIC_PATCH, &json!({"spec": {
                "ephemeralContainers": many(size.scale(20_000), |i| json!({"name": format!("e{i}"), "image": "i"})),
            }}))
        })
        .after_one(|_| post(PODS, &pod("a", &json!({}))))
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/node-status", "a Node with 40 000 images", |size| {
            patch("/api/v1/nodes/n/status", MERGE_PATCH, &json!({"status": {
                "images": many(size.scale(40_000), |i| json!({"names": [format!("i{i}"), format!("j{i}")], "sizeBytes": i})),
            }}))
        })
        .after_one(|_| post("/api/v1/nodes", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})))
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/pod-conditions-update", "an update of 8 000 conditions of a Pod, in reverse order", |size| {
            put(&format!("{PODS}/a/status"), &pod_with_conditions(size, true))
        })
        .after_one(|_| post(PODS, &pod("a", &json!({}))))
        .after_one(|size| patch(&format!("{PODS}/a/status"), MERGE_PATCH, &pod_with_conditions(size, false)))
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/pod-status", "a Pod status with 40 000 conditions and container statuses", |size| {
            let n = size.scale(20_000);
            patch(&format!("{PODS}/a/status"), MERGE_PATCH, &json!({"status": {
                "conditions": many(n, |i| json!({"type": format!("t{i}"), "status": "True"})),
                "containerStatuses": many(n, |i| json!({"name": format!("c{i}"), "image": "i", "imageID": "", "ready": true, "restartCount": 0})),
            }}))
        })
        .after_one(|_| post(PODS, &pod("a", &json!({}))))
        .expect(DONE_OR_REFUSED),
    ]
}

fn pod_with_conditions(size: Size, is_reverse: bool) -> Value {
    let n = size.scale(8_000);
    let condition =
        |i: usize| json!({"type": format!("t{}", if is_reverse { n - 1 - i } else { i }), "status": "True"});
    let mut object = pod("a", &json!({}));
    object["status"] = json!({"conditions": many(n, condition)});
    object
}

fn others() -> Vec<Attack> {
    vec![
        object_with("builtin/storage-topologies", "a StorageClass with 40 000 topology terms", "/apis/storage.k8s.io/v1/storageclasses", |size| {
            let term = |i: usize| json!({"matchLabelExpressions": [{"key": "k", "values": [format!("v{i}")]}]});
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "a"}, "provisioner": "p",
                "allowedTopologies": many(size.scale(40_000), term)})
        }),
        object_with("builtin/cron-schedule", "a schedule of 1 MB", "/apis/batch/v1/namespaces/default/cronjobs", |size| {
            let template = json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container("c")]}}}});
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a"},
                "spec": {"schedule": format!("{} * * * *", repeated("1-59/1", size.scale(150_000))), "jobTemplate": template}})
        }),
        object_with("builtin/certificate-request", "a certificate request of 2 MB", "/apis/certificates.k8s.io/v1/certificatesigningrequests", |size| {
            let der = base64::engine::general_purpose::STANDARD.encode(vec![0x30; size.scale(1_000_000)]);
            let lines: Vec<&str> = der.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
            let pem = format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", lines.join("\n"));
            json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "a"}, "spec": {
                "request": base64::engine::general_purpose::STANDARD.encode(pem), "signerName": "example.com/s", "usages": ["client auth"],
            }})
        }),
        Attack::one("builtin/token-audiences", "a TokenRequest with 60 000 audiences", |size| {
            post("/api/v1/namespaces/default/serviceaccounts/a/token", &json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": {"audiences": many(size.scale(60_000), |i| json!(format!("audience-{i}")))},
            }))
        })
        .after_one(|_| post("/api/v1/namespaces/default/serviceaccounts", &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})))
        .expect(DONE_OR_REFUSED),
        Attack::one("builtin/evictions", "an eviction beside 300 PodDisruptionBudgets", |_| {
            post(&format!("{PODS}/a/eviction?dryRun=All"), &json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}))
        })
        .after(|size| {
            let budget = |i: usize| json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": format!("b{i}")},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"a": "b"}}}});
            let mut labelled = pod("a", &json!({}));
            labelled["metadata"]["labels"] = json!({"a": "b"});
            let budgets = (0..size.scale(300)).map(|i| post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget(i)));
            budgets.chain([post(PODS, &labelled)]).collect()
        })
        .expect(&[200, 201, 429, 500]),
        Attack::requests("builtin/pod-tables", "tables of 400 Pods of 50 containers, by field", |_| {
            let mut request = HttpRequest::new("GET", format!("{PODS}?fieldSelector=spec.restartPolicy%3DAlways,status.phase!%3DFailed"), JSON, String::new());
            request.headers.push(("Accept".to_owned(), "application/json;as=Table;v=v1;g=meta.k8s.io".to_owned()));
            vec![request]
        })
        .after(|size| {
            let fields = json!({"containers": many(50, |i| container(&format!("c{i}")))});
            (0..size.scale(400)).map(|i| post(PODS, &pod(&format!("p{i}"), &fields))).collect()
        }),
        Attack::requests("builtin/openapi", "all OpenAPI documents in JSON and protobuf", |_| {
            let get = |path: &str, accept: &str| {
                let mut request = HttpRequest::new("GET", path.to_owned(), JSON, String::new());
                request.headers.push(("Accept".to_owned(), accept.to_owned()));
                request
            };
            vec![
                get("/openapi/v2", "application/json"),
                get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
                get("/openapi/v3/api/v1", "application/json"),
                get("/openapi/v3/apis/apps/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"),
                get("/openapi/v3/apis/batch/v1", "application/json"),
            ]
        }),
        Attack::one("builtin/secret-data", "a Secret with 60 000 keys", |size| {
            let data: serde_json::Map<_, _> = (0..size.scale(60_000)).map(|i| (format!("key-{i}"), json!("YQ=="))).collect();
            try_create("/api/v1/namespaces/default/secrets", &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data}))
        })
        .expect(DONE_OR_REFUSED),
        Attack::requests("builtin/namespace-deleted", "a namespace with 3 000 objects is deleted", |_| {
            vec![
                HttpRequest::new("DELETE", "/api/v1/namespaces/full".to_owned(), JSON, String::new()),
                HttpRequest::new("GET", "/api/v1/namespaces/full/configmaps".to_owned(), JSON, String::new()),
            ]
        })
        .after_one(|_| post("/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}})))
        .after(|size| {
            let map = |i: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")}, "data": {"k": numbered(20, |j| j.to_string())}});
            (0..size.scale(3_000)).map(|i| post("/api/v1/namespaces/full/configmaps", &map(i))).collect()
        })
        .expect(&[200, 202, 404, 409]),
        Attack::one("builtin/deployment-update", "an update of a Deployment with 8 000 containers", |size| {
            let mut object = deployment("a", &json!({"containers": many(size.scale(8_000), |i| container(&format!("c{i}")))}));
            object["metadata"]["labels"] = json!({"x": "y"});
            put(&format!("{DEPLOYMENTS}/a"), &object)
        })
        .after_one(|size| post(DEPLOYMENTS, &deployment("a", &json!({"containers": many(size.scale(8_000), |i| container(&format!("c{i}")))}))))
        .expect(DONE_OR_REFUSED),
    ]
}
