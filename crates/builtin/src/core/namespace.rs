//! Namespace.

use crate::checks::metadata::qualified_finalizer;
use crate::checks::update::keep;
use crate::checks::{Report, Rule};
use crate::prepare::{object_in, set_default_text};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_notation::names;
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, FieldError, Map, Value};

/// A scope for the names of other objects.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        names: NameRule::Label,
        selectable: &["status.phase"],
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new("", "Namespace")
    })
};

/// The finalizer that every Namespace has.
const KUBERNETES: &str = "kubernetes";

fn default(namespace: &mut Map, _context: &Context<'_>) {
    if let Some(status) = object_in(namespace, "status") {
        set_default_text(status, "phase", "Active");
    }
    // Every Namespace has its name as a label, so that selectors find it.
    if let Some(metadata) = object_in(namespace, "metadata")
        && let Some(name @ Value::String(_)) = metadata.get("name").cloned()
        && let Some(labels) = object_in(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name", name);
    }
}

fn prepare(namespace: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            namespace.remove("status");
            if let Some(spec) = object_in(namespace, "spec") {
                let finalizers = spec.get_or_insert_with("finalizers", || Value::Array(Vec::new()));
                if finalizers.is_null() {
                    *finalizers = Value::Array(Vec::new());
                }
                if let Some(finalizers) = finalizers.as_array_mut()
                    && !finalizers.iter().any(|f| f.as_str() == Some(KUBERNETES))
                {
                    finalizers.push(KUBERNETES.into());
                }
            }
            // A name that the server generated becomes a label after validation, which refuses the name only.
            let name = namespace
                .get("metadata")
                .map_or("", |metadata| metadata.get_str("name"));
            if names::label_value(name).is_empty() {
                default(namespace, &write.context);
            }
        }
        (Operation::Update(old), Subresource::Status) => keep(namespace, old, "spec"),
        (Operation::Update(old), Subresource::Finalize) => keep(namespace, old, "status"),
        (Operation::Update(old), _) => {
            keep(namespace, old, "spec");
            keep(namespace, old, "status");
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let finalizers = spec.field("finalizers");
    match (write.operation, write.subresource) {
        // On a create, errors name the list, not the element.
        (Operation::Create, _) => {
            for finalizer in finalizers.items() {
                check_finalizer(&finalizer.with_path(*finalizers.path()), errors);
            }
        }
        (_, Subresource::Finalize) => {
            Rule::Each(check_finalizer).check(&finalizers, errors);
        }
        (_, Subresource::Status) => check_phase(&root, errors),
        _ => {}
    }
}

fn check_finalizer(finalizer: &Cursor<'_, '_>, errors: &mut ErrorList) {
    errors.invalid_for(finalizer, names::label_key(finalizer.str()));
    qualified_finalizer(finalizer, errors);
}

/// The phase follows from the deletion timestamp.
fn check_phase(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (only, when) = match root.field("metadata").field("deletionTimestamp").is_set() {
        false => ("Active", "is empty"),
        true => ("Terminating", "is not empty"),
    };
    let status = root.field("status");
    let phase = status.field("phase").str();
    if !phase.is_empty() && phase != only {
        let why = format!("may only be '{only}' if `deletionTimestamp` {when}");
        // UPSTREAM: the path has the name of the Go field.
        errors.push_with(|| FieldError::invalid(&status.path().field("Phase"), phase, why));
    }
}
