//! Pods.

mod affinity;
mod annotations;
mod claim_template;
mod containers;
mod defaults;
mod environment;
mod image;
mod mounts;
mod overlaps;
mod prepare;
mod probes;
mod projected;
mod resize;
mod resources;
mod rules;
mod security;
mod spec;
mod status;
mod update;
pub(crate) mod volumes;
mod warnings;
mod windows;

pub(in crate::core) use defaults::spec as default_spec;
pub(in crate::core) use prepare::{drop_from_spec, drop_init_container_annotations};

use crate::checks::{Report, Rule, ip, labels, names};
use crate::{BuiltinKind, Context, Cursor, KindFacts, Operation, Subresource, Write};
use rules::Rules;
use scantling_value::{ErrorList, FieldError, Map, Value};
use spec::Owner;

/// Pods.
#[derive(Debug)]
pub(crate) struct Pod;

static FACTS: KindFacts = KindFacts {
    selectable: &[
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        // The name of old clients for `spec.nodeName`.
        "spec.host",
        "status.phase",
        "status.podIP",
        // kube-apiserver accepts it, but no object has a value.
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    delete_returns_object: true,
    has_generation: true,
    status_keeps: &[
        &["spec"],
        &["metadata", "deletionTimestamp"],
        &["metadata", "ownerReferences"],
    ],
    validates_name_on_update: true,
    ..KindFacts::new("", "Pod")
};

impl BuiltinKind for Pod {
    fn facts(&self) -> &'static KindFacts {
        &FACTS
    }

    fn grace_period(&self, pod: &Value, requested: Option<i64>) -> Option<i64> {
        let own = pod
            .at(["spec", "terminationGracePeriodSeconds"])
            .and_then(Value::as_int);
        let is_scheduled = !pod.str_at(["spec", "nodeName"]).is_empty();
        let has_ended = matches!(pod.str_at(["status", "phase"]), "Failed" | "Succeeded");
        Some(match requested.or(own).unwrap_or(0) {
            // A pod that no node runs has nothing to stop, so it is deleted at once.
            _ if !is_scheduled || has_ended => 0,
            ..0 => 1,
            seconds => seconds,
        })
    }

    fn default(&self, object: &mut Map, context: &Context<'_>) {
        defaults::pod(object, context);
    }

    fn prepare(&self, object: &mut Map, write: &Write<'_>) {
        prepare::pod(object, write);
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
        let root = Cursor::root(object);
        let (at, metadata) = (root.field("spec"), root.field("metadata"));
        let annotations = metadata.field("annotations");
        let old = write.old();
        let old_annotations = old.and_then(|old| old.at(["metadata", "annotations"]));
        let rules = Rules::new(&write.context, old.and_then(|old| old.get("spec")), true);
        let check_annotations = |errors: &mut ErrorList| {
            annotations::check(&annotations, &at, old_annotations, &rules, errors);
        };
        let check_all = |errors: &mut ErrorList| {
            check_annotations(errors);
            let owner = Owner {
                name: metadata.field("name").str(),
                is_mirror: annotations
                    .map()
                    .is_some_and(|a| a.contains_key(annotations::MIRROR)),
            };
            spec::validate(&at, owner, &rules, errors);
            spec::validate_for_pod(&at, errors);
        };
        match (write.operation, write.subresource) {
            (Operation::Create, _) => {
                check_all(errors);
                check_new(&at, errors);
                annotations::match_fields(&annotations, &at, errors);
            }
            (Operation::Update(old), Subresource::Status) => {
                annotations::check_updates(&annotations, old_annotations, errors);
                check_annotations(errors);
                status::validate(object, old, &rules, errors);
            }
            (Operation::Update(old), Subresource::EphemeralContainers) => {
                check_all(errors);
                annotations::check_updates(&annotations, old_annotations, errors);
                update::check_ephemeral_containers(&at, old, errors);
            }
            (Operation::Update(old), Subresource::Resize) => {
                check_all(errors);
                resize::validate(object, &at, old, &rules, errors);
            }
            (Operation::Update(old), _) => {
                check_all(errors);
                annotations::check_updates(&annotations, old_annotations, errors);
                if let Some(old) = old.get("spec") {
                    update::check_spec(&at, old, rules.compares_taints(), errors);
                }
            }
        }
    }

    fn warn_always(&self, object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
        // kube-apiserver adds these warnings while it prepares the pod, before validation.
        if let Operation::Create = write.operation {
            warnings::app_armor_annotations(&Cursor::root(object), warnings);
        }
    }

    fn warn(&self, object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
        let root = Cursor::root(object);
        match (write.operation, write.subresource) {
            (Operation::Create, _) => {
                let wrong = names::dns1123_label(object.str_at(["metadata", "name"]));
                if !wrong.is_empty() {
                    warnings.push(format!(
                        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS \
                         label is recommended: [{}]",
                        wrong.join(" ")
                    ));
                }
                warnings::warn(&root, true, &write.context, warnings);
            }
            (Operation::Update(_), Subresource::Status) => {
                let status = root.field("status");
                for list in ["podIPs", "hostIPs"] {
                    for address in status.field(list).items() {
                        let address = address.field("ip");
                        warnings.extend(ip::warning(address.path(), address.str()));
                    }
                }
            }
            (Operation::Update(_), _) => {}
        }
    }

    fn selectable_field(&self, object: &Value, field: &str) -> String {
        let found = match field {
            "spec.hostNetwork" => {
                let shares = object.at(["spec", "hostNetwork"]).and_then(Value::as_bool);
                return shares.unwrap_or(false).to_string();
            }
            "spec.host" => object.str_at(["spec", "nodeName"]),
            "status.podIPs" => "",
            "status.podIP" => {
                let first = object.list_at(["status", "podIPs"]).first();
                first.map_or("", |ip| ip.get_str("ip"))
            }
            field => object.str_at(field.split('.')),
        };
        found.to_owned()
    }
}

fn check_new(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.list().is_empty() {
        errors.forbidden(&ephemeral, "cannot be set on create");
    }
    let node = spec.field("nodeName");
    if !node.str().is_empty() && !spec.field("schedulingGates").list().is_empty() {
        errors.forbidden(&node, "cannot be set until all schedulingGates have been cleared");
    }
}

/// The containers of all kinds: init containers first, ephemeral ones last.
fn containers_of(spec: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| spec.list(list))
}

/// Calls a function for the containers of all kinds, in the same order.
fn containers_at<'v>(spec: &Cursor<'v, '_>, mut act: impl FnMut(&Cursor<'v, '_>)) {
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        spec.field(list).items().for_each(|container| act(&container));
    }
}

/// Validates a template: `at` is the template, `old` the stored one on an update.
pub(in crate::core) fn validate_template(
    at: &Cursor<'_, '_>,
    old: Option<&Value>,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    let (spec, metadata) = (at.field("spec"), at.field("metadata"));
    // Kubernetes reports labels and annotations as if they were fields of the template itself.
    let metadata = metadata.with_path(*at.path());
    let annotations = metadata.field("annotations");
    labels::labels(&metadata.field("labels"), errors);
    labels::annotations(&annotations, errors);
    let rules = Rules::new(context, old.and_then(|old| old.get("spec")), false);
    let old_annotations = old.and_then(|old| old.at(["metadata", "annotations"]));
    annotations::check(&annotations, &spec, old_annotations, &rules, errors);
    spec::validate(&spec, Owner::default(), &rules, errors);
    annotations::match_fields(&annotations, &spec, errors);
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.list().is_empty() {
        errors.forbidden(&ephemeral, "ephemeral containers not allowed in pod template");
    }
}

/// Adds the warnings about a template.
pub(in crate::core) fn warn_template(at: &Cursor<'_, '_>, context: &Context<'_>, warnings: &mut Vec<String>) {
    warnings::warn(at, false, context, warnings);
}

/// Validates a binding of a pod to a node.
pub fn validate_binding(binding: &Value, errors: &mut ErrorList) {
    let root = Cursor::root(binding);
    let target = root.field("target");
    let (kind, name) = (target.field("kind"), target.field("name"));
    let is_node = matches!(kind.str(), "" | "Node");
    if !is_node {
        errors.push_with(|| FieldError::not_supported(kind.path(), kind.str(), ["Node", "<empty>"]));
    }
    if name.str().is_empty() {
        errors.required(&name, "");
    } else if is_node {
        Rule::Form(names::dns1123_subdomain).check(&name, errors);
    }
}
