//! Pod templates, as workloads embed them, and the kind `PodTemplate`.

use super::pod;
use crate::apps::template::is_new_or_changed;
use crate::prepare::{count_change, is_changed, set_generation};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Write};
use scantling_value::{ErrorList, Map, Value};

/// Fills in the defaults of a pod template: those of its pod spec.
pub(crate) fn default(template: &mut Map, _context: &Context<'_>) {
    let spec = template.get_or_insert_with("spec", || Map::new().into());
    if let Some(spec) = spec.as_object_mut() {
        pod::default_spec(spec);
    }
}

/// Drops the fields of disabled feature gates. `old` is the stored template on an update.
pub(crate) fn drop_disabled(template: &mut Map, old: Option<&Value>, context: &Context<'_>) {
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        pod::drop_from_spec(spec, old.and_then(|old| old.get("spec")), context);
    }
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        pod::drop_init_container_annotations(metadata);
    }
}

/// Validates a pod template. `old` is the stored template on an update; the pod-level feature checks ratchet on it.
pub(crate) fn validate(
    template: &Cursor<'_, '_>,
    old: Option<&Cursor<'_, '_>>,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    pod::validate_template(template, old.and_then(Cursor::value), context, errors);
}

/// Adds the warnings of a pod template: deprecated fields, duplicate names and the like.
pub(crate) fn warn(template: &Cursor<'_, '_>, context: &Context<'_>, warnings: &mut Vec<String>) {
    pod::warn_template(template, context, warnings);
}

/// Pod templates that are objects of their own.
pub(crate) const KIND: KindBehavior = KindBehavior {
    default: default_pod_template,
    prepare,
    validate: validate_pod_template,
    warn: warn_pod_template,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        has_generation: true,
        ..KindFacts::new("", "PodTemplate")
    })
};

fn default_pod_template(object: &mut Map, context: &Context<'_>) {
    let template = object.get_or_insert_with("template", || Map::new().into());
    if let Some(template) = template.as_object_mut() {
        default(template, context);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    let old = write.old().and_then(|old| old.get("template"));
    if let Some(template) = object.get_mut("template").and_then(Value::as_object_mut) {
        drop_disabled(template, old, &write.context);
    }
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(old) => {
            let changed = is_changed(object, old, "template", ("core/v1", "PodTemplateSpec"));
            count_change(object, old, changed);
        }
    }
}

fn validate_pod_template(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let old = write.old().map(Cursor::root);
    let old = old.as_ref().map(|old| old.field("template"));
    validate(&root.field("template"), old.as_ref(), &write.context, errors);
}

fn warn_pod_template(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if !is_new_or_changed(object, write) {
        return;
    }
    warn(&Cursor::root(object).field("template"), &write.context, warnings);
}
