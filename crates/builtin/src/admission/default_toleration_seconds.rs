//! `DefaultTolerationSeconds`: pods tolerate nodes that are not ready or unreachable for five minutes.

use super::{Action, Found, Plugin, PluginVerdict, Request};
use crate::prepare::{append, object_in};
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    mutate,
    ..Plugin::new("DefaultTolerationSeconds", handles)
};

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: i64 = 300;

fn handles(request: &Request<'_>) -> bool {
    request.is_for("", "pods") && request.action != Action::Delete && request.is_mutating()
}

fn mutate(object: &mut Map, _: &Request<'_>, _: &Found<'_>) -> PluginVerdict {
    let Some(spec) = object_in(object, "spec") else {
        return Ok(());
    };
    // Both are judged by the tolerations that the client gave.
    let given = spec.get("tolerations").and_then(Value::as_array).unwrap_or(&[]);
    // kube-apiserver does not look at operators here, so that an empty key always counts as tolerating both
    // taints.
    let is_or_empty = |toleration: &Value, field: &str, value: &str| {
        let text = toleration.get_str(field);
        text.is_empty() || text == value
    };
    let tolerates = |taint: &str| {
        let covers = |t: &Value| is_or_empty(t, "key", taint) && is_or_empty(t, "effect", "NoExecute");
        given.iter().any(covers)
    };
    let missing = TAINTS.map(|taint| (taint, !tolerates(taint)));
    for (taint, _) in missing.into_iter().filter(|(_, is_missing)| *is_missing) {
        let toleration = Map::from_iter([
            ("effect", Value::from("NoExecute")),
            ("key", Value::from(taint)),
            ("operator", Value::from("Exists")),
            ("tolerationSeconds", Value::from(SECONDS)),
        ]);
        append(spec, "tolerations", toleration);
    }
    Ok(())
}
