//! ResourceClaim and ResourceClaimTemplate.

use super::{GROUP, claim_spec, claim_status};
use crate::checks::gates::drop_disabled_in;
use crate::checks::update::separate_status;
use crate::checks::{Report, go, metadata, update};
use crate::prepare::{StructName, clear_status, keep_all_metadata, object_if_set, object_in, objects_in};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A claim on devices.
pub(super) const RESOURCE_CLAIM: KindBehavior = KindBehavior {
    default: default_resource_claim,
    prepare: prepare_resource_claim,
    validate: validate_resource_claim,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        status_keeps: &[&["metadata"], &["spec"]],
        ..KindFacts::new(GROUP, "ResourceClaim")
    })
};

/// A template of claims.
pub(super) const RESOURCE_CLAIM_TEMPLATE: KindBehavior = KindBehavior {
    default: default_resource_claim_template,
    prepare: |object, write| drop_disabled_in(object, "spec", SPEC, write),
    validate: validate_resource_claim_template,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "ResourceClaimTemplate")
    })
};

/// The spec of a template.
const SPEC: StructName = ("resource/v1", "ResourceClaimTemplateSpec");

fn default_resource_claim(object: &mut Map, _context: &Context<'_>) {
    if let Some(spec) = object_in(object, "spec") {
        claim_spec::default_spec(spec);
    }
    let allocation = object_if_set(object, "status").and_then(|status| object_if_set(status, "allocation"));
    if let Some(devices) = allocation.and_then(|allocation| object_if_set(allocation, "devices")) {
        objects_in(devices, "results").for_each(claim_spec::default_tolerations);
    }
}

fn prepare_resource_claim(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    keep_all_metadata(object, write);
    if write.old().is_none() {
        clear_status(object, ("resource/v1", "ResourceClaimSpec"));
    }
    drop_disabled_in(object, "spec", ("resource/v1", "ResourceClaimSpec"), write);
    drop_disabled_in(object, "status", ("resource/v1", "ResourceClaimStatus"), write);
    if let (Some(old), Subresource::Status) = (write.old(), write.subresource) {
        claim_status::drop_deallocated(object, old);
    }
}

fn validate_resource_claim(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    match (write.old(), write.subresource) {
        (Some(old), Subresource::Status) => claim_status::check(&root, old, errors),
        (Some(old), _) => {
            // The whole spec is immutable, so that it need not be checked again.
            if !update::same_of("resource/v1", "ResourceClaimSpec", spec.value(), old.get("spec")) {
                errors.invalid_value(&spec, Value::Null, update::IMMUTABLE);
            }
        }
        (None, _) => claim_spec::check_spec(&spec, errors),
    }
}

fn default_resource_claim_template(object: &mut Map, _context: &Context<'_>) {
    let spec = object_if_set(object, "spec").and_then(|template| object_if_set(template, "spec"));
    if let Some(spec) = spec {
        claim_spec::default_spec(spec);
    }
}

fn validate_resource_claim_template(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let template = root.field("spec");
    let old = write.old().map(|old| old.get("spec"));
    // An unchanged template was checked when it was created.
    if old.is_none_or(|old| !update::same_of(SPEC.0, SPEC.1, template.value(), old)) {
        metadata::template_of_objects(&template.field("metadata"), errors);
        claim_spec::check_spec(&template.field("spec"), errors);
        if old.is_some() {
            let shown = go::structure(SPEC.0, SPEC.1, template.value());
            errors.invalid_value(&template, shown, update::IMMUTABLE);
        }
    }
}
