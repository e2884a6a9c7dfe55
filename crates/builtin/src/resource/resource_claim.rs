//! ResourceClaim and ResourceClaimTemplate.

use super::{GROUP, claim_spec, claim_status};
use crate::checks::gates::drop_disabled;
use crate::checks::update::separate_status;
use crate::checks::{Report, go, metadata, update};
use crate::prepare::{StructName, clear_status, keep_all_metadata, object_if_set, object_in, objects_in};
use crate::{BuiltinKind, Context, Cursor, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A claim on devices.
#[derive(Debug)]
pub(super) struct ResourceClaim;

/// A template of claims.
#[derive(Debug)]
pub(super) struct ResourceClaimTemplate;

const CLAIM: KindFacts = KindFacts {
    delete_returns_object: true,
    validates_name_on_update: true,
    status_keeps: &[&["metadata"], &["spec"]],
    ..KindFacts::new(GROUP, "ResourceClaim")
};

const TEMPLATE: KindFacts = KindFacts {
    delete_returns_object: true,
    validates_name_on_update: true,
    ..KindFacts::new(GROUP, "ResourceClaimTemplate")
};

/// The spec of a template.
const SPEC: StructName = ("resource/v1", "ResourceClaimTemplateSpec");

impl BuiltinKind for ResourceClaim {
    fn facts(&self) -> &'static KindFacts {
        &CLAIM
    }

    fn default(&self, object: &mut Map, _context: &Context<'_>) {
        if let Some(spec) = object_in(object, "spec") {
            claim_spec::default_spec(spec);
        }
        let allocation =
            object_if_set(object, "status").and_then(|status| object_if_set(status, "allocation"));
        if let Some(devices) = allocation.and_then(|allocation| object_if_set(allocation, "devices")) {
            objects_in(devices, "results").for_each(claim_spec::default_tolerations);
        }
    }

    fn prepare(&self, object: &mut Map, write: &Write<'_>) {
        separate_status(object, write);
        keep_all_metadata(object, write);
        if write.old().is_none() {
            clear_status(object, ("resource/v1", "ResourceClaimSpec"));
        }
        for (field, name) in [("spec", "ResourceClaimSpec"), ("status", "ResourceClaimStatus")] {
            if let Some(part) = object_if_set(object, field) {
                let old = write.old().and_then(|old| old.get(field));
                drop_disabled("resource/v1", name, part, old, &write.context);
            }
        }
        if let (Some(old), Subresource::Status) = (write.old(), write.subresource) {
            claim_status::drop_deallocated(object, old);
        }
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
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
}

impl BuiltinKind for ResourceClaimTemplate {
    fn facts(&self) -> &'static KindFacts {
        &TEMPLATE
    }

    fn default(&self, object: &mut Map, _context: &Context<'_>) {
        let spec = object_if_set(object, "spec").and_then(|template| object_if_set(template, "spec"));
        if let Some(spec) = spec {
            claim_spec::default_spec(spec);
        }
    }

    fn prepare(&self, object: &mut Map, write: &Write<'_>) {
        if let Some(spec) = object_if_set(object, "spec") {
            let old = write.old().and_then(|old| old.get("spec"));
            drop_disabled(SPEC.0, SPEC.1, spec, old, &write.context);
        }
    }

    fn validate(&self, object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
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
}
