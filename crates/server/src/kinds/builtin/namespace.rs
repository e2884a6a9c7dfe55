//! What is particular about namespaces.

use super::core::{RestStrategy, ValidationContext, WritePart};
use crate::rest::write::metadata_mut;
use scantling_notation::names;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, FieldError, Map, Path, Value};

/// The finalizer that every namespace has.
const KUBERNETES: &str = "kubernetes";

pub(super) static PARTICULARS: RestStrategy = RestStrategy {
    scope: Scope::Cluster,
    names: NameRule::Label,
    selectable: &["metadata.name", "status.phase"],
    qualifies_finalizers: true,
    creates_on_update: false,
    unconditional_update: true,
    kept_in_memory: true,
    complete: complete_sent,
    prepare: |_, _| {},
    check,
    warn: |_| Vec::new(),
};

fn check(ctx: &ValidationContext<'_>) -> ErrorList {
    let ValidationContext { part, object, .. } = *ctx;
    let root = Path::ROOT;
    let mut errors = ErrorList::new();
    let spec = root.field("spec");
    let at = spec.field("finalizers");
    let finalizers = crate::controllers::namespaces::finalizers(object.get("spec"));
    let mut check = |finalizer: &str, at: &Path<'_>| {
        let malformed = names::label_key(finalizer).into_iter();
        errors.extend(malformed.map(|why| FieldError::invalid(at, finalizer, why)));
        errors.extend(unqualified(finalizer, at));
    };
    match part {
        WritePart::New => finalizers.iter().for_each(|f| check(f, &at)),
        WritePart::Finalizers => {
            let indexed = finalizers.iter().enumerate();
            indexed.for_each(|(i, f)| check(f, &at.index(i)));
        }
        WritePart::Whole | WritePart::Status => {}
    }
    if part == WritePart::Status {
        let phase = object.get("status").and_then(|s| s.get("phase")?.as_str());
        let (only, when) = match ctx.metadata.get("deletionTimestamp") {
            None => ("Active", "is empty"),
            Some(_) => ("Terminating", "is not empty"),
        };
        if let Some(found) = phase.filter(|phase| !phase.is_empty() && *phase != only) {
            let why = format!("may only be '{only}' if `deletionTimestamp` {when}");
            let status = root.field("status");
            errors.push_with(|| FieldError::invalid(&status.field("Phase"), found, why));
        }
    }
    errors
}

/// A finalizer that belongs to nobody: neither one of those that every server knows nor one with a domain.
pub(super) fn unqualified(finalizer: &str, at: &Path<'_>) -> Option<FieldError> {
    let known = matches!(finalizer, KUBERNETES | "orphan" | "foregroundDeletion");
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    (!known && !finalizer.contains('/')).then(|| FieldError::invalid(at, finalizer, why))
}

/// Completes what was sent or made.
fn complete_sent(namespace: &mut Value) {
    if let Some(metadata) = metadata_mut(namespace) {
        label_with_name(metadata);
    }
    if let Some(members) = namespace.as_object_mut() {
        set_phase(members);
    }
}

/// Completes a new namespace.
pub(super) fn complete(object: &mut Map, metadata: &mut Map) {
    let mut finalizers = crate::controllers::namespaces::finalizers(object.get("spec"));
    if !finalizers.iter().any(|f| f == KUBERNETES) {
        finalizers.push(KUBERNETES.to_owned());
    }
    let spec = Map::from_iter([("finalizers", Value::from(finalizers))]);
    object.insert("spec", spec.into());
    object.remove("status");
    set_phase(object);
    label_with_name(metadata);
}

/// Every namespace is in some phase.
fn set_phase(object: &mut Map) {
    let status = object.get_or_insert_with("status", || Map::new().into());
    if let Some(status) = status.as_object_mut()
        && !matches!(status.get("phase"), Some(Value::String(phase)) if !phase.is_empty())
    {
        status.insert("phase", "Active".into());
    }
}

/// Every namespace that has a name has it as a label, too.
fn label_with_name(metadata: &mut Map) {
    let Some(name @ Value::String(_)) = metadata.get("name").cloned() else {
        return;
    };
    if !matches!(metadata.get("labels"), Some(Value::Object(_))) {
        metadata.insert("labels", Map::new().into());
    }
    if let Some(labels) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
        labels.insert("kubernetes.io/metadata.name", name);
    }
}
