//! Names and resources that configurations cannot use.

use crate::checks::Report;
use crate::{Cursor, Write};
use scantling_value::{ErrorList, Value};
use std::collections::BTreeSet;

/// The suffix of names of configurations that kube-apiserver reads from files.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// The resources that webhooks do not intercept: a webhook that needs its own answer would block all requests.
const EXCLUDED: &[(&str, &[&str])] = &[
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
];

fn refuses_static_names(write: &Write<'_>) -> bool {
    (write.context.enabled)("ManifestBasedAdmissionControlConfig")
}

fn reason() -> String {
    format!(
        "names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based configurations and cannot be \
         managed via the API"
    )
}

/// New objects cannot have a reserved name.
pub(super) fn check_name(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let metadata = root.field("metadata");
    let name = metadata.field("name");
    if write.old().is_none() && refuses_static_names(write) && name.str().ends_with(STATIC_SUFFIX) {
        errors.invalid(&name, reason());
    }
}

/// Warns about reserved names of objects that exist, or are created because the gate is off.
pub(super) fn warn_name(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    let is_accepted = write.old().is_some() || !refuses_static_names(write);
    if is_accepted && object.str_at(["metadata", "name"]).ends_with(STATIC_SUFFIX) {
        warnings.push(format!("metadata.name: {}", reason()));
    }
}

/// Warns about rules of webhooks that name resources which webhooks do not intercept.
pub(super) fn warn_rules(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if !(write.context.enabled)("ExcludeAdmissionWebhookVirtualResources") {
        return;
    }
    let root = Cursor::root(object);
    for webhook in root.field("webhooks").items() {
        for rule in webhook.field("rules").items() {
            let [groups, resources] = ["apiGroups", "resources"].map(|member| {
                let list = rule.value().map_or(&[][..], |rule| rule.list(member));
                list.iter().filter_map(Value::as_str).collect::<Vec<_>>()
            });
            // The intent of a wildcard is unknown.
            if groups.contains(&"*") || resources.contains(&"*") {
                continue;
            }
            let mut seen = BTreeSet::new();
            for group in groups {
                let excluded = EXCLUDED.iter().find(|(name, _)| *name == group);
                let Some((_, excluded)) = excluded else { continue };
                for resource in &resources {
                    if excluded.contains(resource) && seen.insert((group, *resource)) {
                        warnings.push(format!(
                            "{}: {resource}.{group} is excluded from admission webhooks; this rule will have no effect",
                            rule.path()
                        ));
                    }
                }
            }
        }
    }
}
