//! ReplicationController.

use crate::apps::{replica_set, template};
use crate::checks::{Report, labels, numbers};
use crate::core::pod_template;
use crate::prepare::{self, object_if_set, object_in, set_default};
use crate::{Context, Cursor, GarbageCollection, KindBehavior, KindFacts, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};

/// A number of equal pods; the predecessor of ReplicaSets.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    selectable_field,
    ..KindBehavior::new(KindFacts {
        names: NameRule::GeneratedSubdomain,
        selectable: &["status.replicas"],
        has_generation: true,
        // v1 keeps this default for compatibility.
        garbage_collection: GarbageCollection::Orphan,
        ..KindFacts::new("", "ReplicationController")
    })
};

fn default(object: &mut Map, context: &Context<'_>) {
    template::default_labels(object, &[("spec", "selector"), ("metadata", "labels")]);
    if let Some(spec) = object_in(object, "spec") {
        set_default(spec, "replicas", 1_i64);
        if let Some(template) = object_if_set(spec, "template") {
            pod_template::default(template, context);
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    template::drop_disabled(object, write, &["spec"]);
    prepare::spec_and_status(object, write, ("core/v1", "ReplicationControllerSpec"));
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        return replica_set::check_status(&root.field("status"), errors);
    }
    check_spec(&root.field("spec"), write, errors);
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    match write.old() {
        None => template::warn_replicated(object, write, warnings),
        // kube-apiserver swaps the two objects here, so that the warnings are those about the stored template.
        Some(old) if template::is_new_or_changed(object, write) => {
            template::warn(old, &write.context, warnings);
        }
        Some(_) => {}
    }
}

fn selectable_field(object: &Value, field: &str) -> String {
    match field {
        "status.replicas" => {
            let replicas = object.at(["status", "replicas"]).and_then(Value::as_int);
            replicas.unwrap_or(0).to_string()
        }
        _ => object.str_at(field.split('.')).to_owned(),
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let selector = spec.field("selector");
    let is_empty = selector.map().is_none_or(Map::is_empty);
    if is_empty {
        errors.required(&selector, "");
    }
    let template = spec.field("template");
    if template.is_set() {
        if !is_empty {
            check_selected(&selector, &template, errors);
        }
        template::check_template(&template, write, errors);
        template::check_runs_forever(&template, "ReplicationController", errors);
    } else {
        errors.required(&template, "");
    }
    numbers::non_negative(&spec.field("minReadySeconds"), errors);
    numbers::non_negative(&spec.field("replicas"), errors);
}

/// The labels of the template must have the values of the selector.
fn check_selected(selector: &Cursor<'_, '_>, template: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let metadata = template.field("metadata");
    let pod_labels = metadata.field("labels");
    let wanted = Map::from_iter([("matchLabels", selector.value().cloned().unwrap_or_default())]).into();
    if !labels::selects(Some(&wanted), pod_labels.value()) {
        template::report_unselected(&pod_labels, errors);
    }
}
