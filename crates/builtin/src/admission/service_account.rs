//! `ServiceAccount`: pods run as a service account of their namespace, and get its token and pull secrets.
//!
//! Off unless enabled: it refuses pods in namespaces without a `default` service account, which a controller creates.

use super::{Action, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource};
use crate::Subresource;
use crate::prepare::{append, object_in, objects_in};
use scantling_value::{Map, Value};
use std::collections::BTreeSet;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    is_on_by_default: false,
    lookups,
    mutate,
    check,
    ..Plugin::new("ServiceAccount", handles)
};

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// An hour and a few seconds, by which the API server tells these tokens from others.
const TOKEN_SECONDS: i64 = 3607;
const FILE_MODE: i64 = 0o644;

fn handles(request: &Request<'_>) -> bool {
    let debugs = request.subresource == RequestSubresource::Of(Subresource::EphemeralContainers);
    match request.action {
        Action::Create => request.is_for("", "pods"),
        Action::Update => request.is_resource("", "pods") && debugs,
        Action::Delete => false,
    }
}

fn lookups(object: &Value, request: &Request<'_>) -> Vec<Lookup> {
    if is_mirror(object) {
        return Vec::new();
    }
    let account = account_name(object, request.action);
    vec![Lookup::one("", "serviceaccounts", account).within(request.namespace)]
}

fn mutate(object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let pod = Value::Object(object.clone());
    if request.action != Action::Create || is_mirror(&pod) {
        return Ok(());
    }
    let name = account_name(&pod, request.action).to_owned();
    let account = find(&pod, &name, request, found)?;
    let Some(spec) = object_in(object, "spec") else {
        return Ok(());
    };
    for field in ["serviceAccountName", "serviceAccount"] {
        spec.insert(field, name.as_str().into());
    }
    let automounts = pod
        .at(["spec", "automountServiceAccountToken"])
        .and_then(Value::as_bool);
    let automounts = automounts.or_else(|| {
        account
            .get("automountServiceAccountToken")
            .and_then(Value::as_bool)
    });
    if automounts.unwrap_or(true) {
        mount_token(spec, &pod, request);
    }
    // The account's secrets are only for pods that name none.
    if pod.list_at(["spec", "imagePullSecrets"]).is_empty() {
        for secret in account.list("imagePullSecrets") {
            let reference = Map::from_iter([("name", Value::from(secret.get_str("name")))]);
            append(spec, "imagePullSecrets", reference);
        }
    }
    Ok(())
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    if is_mirror(object) {
        return check_mirror(object, request);
    }
    let name = object.str_at(["spec", "serviceAccountName"]);
    // The mutating phase sets the name. In kube-apiserver a webhook may then remove it.
    if name.is_empty() {
        let pod = object.str_at(["metadata", "name"]);
        let why = format!("no service account specified for pod {}/{pod}", request.namespace);
        return Err(request.forbidden(object, why));
    }
    let account = find(object, name, request, found)?;
    let enforced = account.str_at(["metadata", "annotations", ENFORCE_SECRETS]);
    // The values that Go reads as true.
    let is_enforced = matches!(enforced, "1" | "t" | "T" | "true" | "TRUE" | "True");
    match is_enforced
        .then(|| unreferenced_secret(object, account, request.action))
        .flatten()
    {
        Some(why) => Err(request.forbidden(object, why)),
        None => Ok(()),
    }
}

fn is_mirror(pod: &Value) -> bool {
    pod.at(["metadata", "annotations", MIRROR]).is_some()
}

fn account_name(pod: &Value, action: Action) -> &str {
    match pod.str_at(["spec", "serviceAccountName"]) {
        "" if action == Action::Create => DEFAULT,
        name => name,
    }
}

fn find<'f>(
    pod: &Value,
    name: &str,
    request: &Request<'_>,
    found: &Found<'f>,
) -> Result<&'f Value, Box<Denial>> {
    found.one().ok_or_else(|| {
        let namespace = request.namespace;
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        request.forbidden(pod, why)
    })
}

/// A pod that a node runs on its own cannot depend on objects of the cluster.
fn check_mirror(pod: &Value, request: &Request<'_>) -> PluginVerdict {
    let volumes = pod.list_at(["spec", "volumes"]);
    let mut projections = volumes.iter().flat_map(|v| v.list_at(["projected", "sources"]));
    let what = if !pod.str_at(["spec", "serviceAccountName"]).is_empty() {
        "reference service accounts"
    } else if !secret_names(pod).is_empty() {
        "reference secrets"
    } else if projections.any(|p| p.get("serviceAccountToken").is_some_and(|t| !t.is_null())) {
        "use ServiceAccountToken volume projections"
    } else {
        return Ok(());
    };
    Err(request.forbidden(pod, format!("a mirror pod may not {what}")))
}

/// The secrets that a pod names in volumes, environments and as pull secrets.
fn secret_names(pod: &Value) -> BTreeSet<&str> {
    let volumes = pod.list_at(["spec", "volumes"]);
    let mounted = volumes.iter().map(|v| v.str_at(["secret", "secretName"]));
    let projections = volumes.iter().flat_map(|v| v.list_at(["projected", "sources"]));
    let projected = projections.map(|p| p.str_at(["secret", "name"]));
    let pulled = pod
        .list_at(["spec", "imagePullSecrets"])
        .iter()
        .map(|s| s.get_str("name"));
    let containers = ["containers", "initContainers", "ephemeralContainers"].into_iter();
    let containers = containers.flat_map(|field| pod.list_at(["spec", field]));
    let environments = containers.flat_map(|c| {
        let variables = c
            .list("env")
            .iter()
            .map(|e| e.str_at(["valueFrom", "secretKeyRef", "name"]));
        variables.chain(c.list("envFrom").iter().map(|e| e.str_at(["secretRef", "name"])))
    });
    let all = mounted.chain(projected).chain(pulled).chain(environments);
    all.filter(|name| !name.is_empty()).collect()
}

/// Returns an error if a pod uses a secret that its service account does not list.
fn unreferenced_secret(pod: &Value, account: &Value, action: Action) -> Option<String> {
    let owner = account.str_at(["metadata", "name"]);
    let listed = |field: &str| -> BTreeSet<&str> {
        let secrets = account.list(field).iter();
        secrets.map(|secret| secret.get_str("name")).collect()
    };
    let (secrets, pulled) = (listed("secrets"), listed("imagePullSecrets"));
    let is_unlisted = |name: &&str| !name.is_empty() && !secrets.contains(name);
    let refusal = |what: String| {
        format!("{what} is not allowed because service account {owner} does not reference that secret")
    };
    // An update only adds ephemeral containers, which cannot add volumes.
    if action == Action::Create {
        let volumes = pod.list_at(["spec", "volumes"]).iter();
        let mut names = volumes.map(|v| v.str_at(["secret", "secretName"]));
        if let Some(name) = names.find(is_unlisted) {
            return Some(refusal(format!("volume with secret.secretName=\"{name}\"")));
        }
    }
    let fields: &[(&str, &str)] = match action {
        Action::Create => &[("initContainers", "init container"), ("containers", "container")],
        Action::Update | Action::Delete => &[("ephemeralContainers", "ephemeral container")],
    };
    for (field, kind) in fields {
        for container in pod.list_at(["spec", field]) {
            let owner = container.get_str("name");
            for variable in container.list("env") {
                let name = variable.str_at(["valueFrom", "secretKeyRef", "name"]);
                if is_unlisted(&name) {
                    return Some(refusal(format!(
                        "{kind} {owner} with envVar {} referencing secret.secretName=\"{name}\"",
                        variable.get_str("name")
                    )));
                }
            }
            let mut sources = container
                .list("envFrom")
                .iter()
                .map(|e| e.str_at(["secretRef", "name"]));
            if let Some(name) = sources.find(is_unlisted) {
                let what = format!("{kind} {owner} with envFrom referencing secret.secretName=\"{name}\"");
                return Some(refusal(what));
            }
        }
    }
    if action != Action::Create {
        return None;
    }
    let pull_secrets = pod
        .list_at(["spec", "imagePullSecrets"])
        .iter()
        .map(|s| s.get_str("name"));
    let mut unlisted = pull_secrets
        .enumerate()
        .filter(|(_, name)| !pulled.contains(*name));
    let (i, name) = unlisted.next()?;
    Some(format!(
        "imagePullSecrets[{i}].name=\"{name}\" is not allowed because service account {owner} does not reference that \
         imagePullSecret"
    ))
}

/// Mounts a token where containers have none.
fn mount_token(spec: &mut Map, pod: &Value, request: &Request<'_>) {
    let mut volumes = pod.list_at(["spec", "volumes"]).iter().map(|v| v.get_str("name"));
    let existing = volumes.find(|name| name.starts_with(VOLUME_PREFIX));
    let name = existing.map_or_else(|| volume_name(pod, request), str::to_owned);
    let mut is_mounted = false;
    for field in ["initContainers", "containers"] {
        for container in objects_in(spec, field) {
            let mounts = container
                .get("volumeMounts")
                .and_then(Value::as_array)
                .unwrap_or(&[]);
            if mounts.iter().any(|m| m.get_str("mountPath") == MOUNT_PATH) {
                continue;
            }
            let mount = Map::from_iter([
                ("mountPath", Value::from(MOUNT_PATH)),
                ("name", Value::from(name.as_str())),
                ("readOnly", Value::from(true)),
            ]);
            append(container, "volumeMounts", mount);
            is_mounted = true;
        }
    }
    if is_mounted && existing.is_none() {
        let volume = Map::from_iter([("name", Value::from(name)), ("projected", token_volume())]);
        append(spec, "volumes", volume);
    }
}

/// A name with a suffix that differs between pods and times, as generated names have it.
fn volume_name(pod: &Value, request: &Request<'_>) -> String {
    // Generated names in Kubernetes use this alphabet, which lacks vowels, so that no words arise.
    const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // Rules are pure, so the suffix is not random but derived from what differs between pods.
    let parts = [
        request.context.now,
        request.namespace,
        pod.str_at(["metadata", "name"]),
    ];
    // FNV-1a
    let bytes = parts.iter().flat_map(|p| p.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let size = u64::try_from(ALPHABET.len()).unwrap_or(1);
    let digit = |i: u32| {
        let index = usize::try_from(hash / size.pow(i) % size).unwrap_or(0);
        ALPHABET.get(index).map_or('b', |b| char::from(*b))
    };
    let suffix: String = (0..5).map(digit).collect();
    format!("{VOLUME_PREFIX}{suffix}")
}

/// The token, the cluster's certificate authority and the namespace as files.
fn token_volume() -> Value {
    let object = |members: Vec<(&'static str, Value)>| Value::Object(Map::from_iter(members));
    let token = object(vec![
        ("expirationSeconds", Value::Int(TOKEN_SECONDS)),
        ("path", "token".into()),
    ]);
    let authority = object(vec![
        (
            "items",
            Value::Array(vec![object(vec![
                ("key", "ca.crt".into()),
                ("path", "ca.crt".into()),
            ])]),
        ),
        ("name", "kube-root-ca.crt".into()),
    ]);
    let field = object(vec![
        ("apiVersion", "v1".into()),
        ("fieldPath", "metadata.namespace".into()),
    ]);
    let namespace = object(vec![("fieldRef", field), ("path", "namespace".into())]);
    let namespace = object(vec![("items", Value::Array(vec![namespace]))]);
    let sources = vec![
        object(vec![("serviceAccountToken", token)]),
        object(vec![("configMap", authority)]),
        object(vec![("downwardAPI", namespace)]),
    ];
    object(vec![
        ("defaultMode", Value::Int(FILE_MODE)),
        ("sources", Value::Array(sources)),
    ])
}
