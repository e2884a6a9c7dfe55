//! Validates CRDs. An update may keep violations that were stored before.

pub(super) mod structural;

mod conversion;
mod defaults;
mod extensions;
pub(super) mod names;
mod schema;
mod spec;
mod warnings;

pub(super) use conversion::bundle_fault;
pub use conversion::{service as check_webhook_service, url as check_webhook_url};
pub(super) use defaults::are_in_objects;
pub(crate) use schema::has_unknown_type;
pub(crate) use structural::{check as structural_errors, is_int_or_string as spells_int_or_string};
pub use warnings::warnings;

use super::convert::same_list;
use super::{ApiVersion, Definition, Spec, Validation, ValidationContext};
use crate::default::PrunedDefaults;
use crate::meta;
use crate::rules::Expressions;
use crate::structural::ValidationRule;
use scantling_value::{ErrorList, FieldError, Path, Str, Value};
use std::collections::BTreeMap;

/// The maximum number of selectable fields of a version.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// The error about defaults in `v1beta1` CRDs.
const NO_DEFAULTS_IN_BETA: &str =
    "(cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use apiextensions.k8s.io/v1)";

/// The applicable checks. A new CRD must pass all of them; an update may keep violations of the stored CRD.
/// Requests in `v1beta1` are exempt from checks that only `v1` has.
#[derive(Debug)]
struct Requirements<'a> {
    /// A webhook must name a supported review version.
    recognised_review: bool,
    /// Names that clients may have seen must not change.
    fixed_names: bool,
    /// Every version has a schema.
    schemas: bool,
    /// Schemas must be structural, even if the CRD uses no feature that requires it.
    structural: bool,
    /// A conversion webhook needs `preserveUnknownFields: false`.
    webhook_needs_pruning: bool,
    /// The treatment of unknown fields in defaults.
    pruned_defaults: PrunedDefaults,
    /// The requirements on single schemas.
    schema: schema::SchemaRequirements,
    /// CA bundles are not checked.
    any_bundle: bool,
    /// The validation context.
    context: &'a ValidationContext<'a>,
    /// The stored CRD.
    stored: Option<&'a Spec>,
}

impl Definition {
    /// Returns the errors of a new CRD.
    pub fn validate(&self, context: &ValidationContext<'_>) -> ErrorList {
        let beta = context.api == ApiVersion::V1Beta1;
        let requirements = Requirements {
            recognised_review: true,
            fixed_names: false,
            schemas: !beta,
            structural: !beta,
            webhook_needs_pruning: true,
            pruned_defaults: PrunedDefaults::Required,
            schema: schema::SchemaRequirements {
                types: !beta,
                no_defaults: beta.then_some(NO_DEFAULTS_IN_BETA),
                atomic_sets: true,
                keyed_lists: true,
            },
            // An invalid bundle does not prevent the creation of a CRD, but keeps it from being established.
            any_bundle: true,
            context,
            stored: None,
        };
        let mut errors = names::check_metadata(self);
        spec::check(&self.spec, &requirements, &mut errors);
        self.check_status(&mut errors);
        if !beta {
            errors.extend(names::check_approval(self, None));
            self.check_preserve_unknown_fields(None, &mut errors);
        }
        errors
    }

    /// Returns the errors of an update.
    pub fn validate_update(&self, old: &Definition, context: &ValidationContext<'_>) -> ErrorList {
        let beta = context.api == ApiVersion::V1Beta1;
        let stored = &old.spec;
        let any = |test: fn(crate::document::Schema<'_>) -> bool| stored.schemas().any(test);
        let established = old.has_condition("Established");
        let bundle = stored
            .conversion
            .as_ref()
            .and_then(|c| c.client.as_ref())
            .map_or("", |c| &c.ca_bundle);
        // An update may keep violations that are stored already, so that stricter rules do not block unrelated
        // changes.
        let requirements = Requirements {
            recognised_review: stored
                .conversion
                .as_ref()
                .is_none_or(|c| conversion::is_recognised(c.review_versions.as_deref())),
            fixed_names: established,
            schemas: !beta && stored.has_all_schemas(),
            structural: !beta && !stored.has_non_structural_schema(),
            webhook_needs_pruning: !(stored.has_webhook() && (beta || stored.preserves_unknown_fields())),
            pruned_defaults: if stored
                .schemas()
                .any(|s| defaults::has_unpruned(s, context.environments))
            {
                PrunedDefaults::Optional
            } else {
                PrunedDefaults::Required
            },
            schema: schema::SchemaRequirements {
                types: !beta && !any(schema::has_unknown_type),
                no_defaults: (beta && !any(defaults::has_default)).then_some(NO_DEFAULTS_IN_BETA),
                atomic_sets: !any(schema::has_granular_set),
                keyed_lists: !any(schema::has_loose_list),
            },
            any_bundle: !established || (!bundle.is_empty() && conversion::bundle_fault(bundle).is_some()),
            context,
            stored: Some(stored),
        };
        let metadata = |d: &Definition| Value::from(d.metadata.clone());
        let at = Path::ROOT.field("metadata");
        let mut errors = meta::check_update(Some(&metadata(self)), Some(&metadata(old)), &at);
        spec::check(&self.spec, &requirements, &mut errors);
        spec::check_fixed(&self.spec, stored, &requirements, &mut errors);
        self.check_status(&mut errors);
        if !beta {
            errors.extend(names::check_approval(self, Some(old)));
            self.check_preserve_unknown_fields(Some(old), &mut errors);
        }
        errors
    }

    /// Returns the errors of a status update.
    pub fn validate_status_update(&self, old: &Definition) -> ErrorList {
        let metadata = |d: &Definition| Value::from(d.metadata.clone());
        let at = Path::ROOT.field("metadata");
        let mut errors = meta::check_update(Some(&metadata(self)), Some(&metadata(old)), &at);
        // The stored versions are not checked, so clients can remove versions after a storage migration.
        names::check(
            &self.status.accepted_names,
            &Path::ROOT.field("status").field("acceptedNames"),
            &mut errors,
        );
        errors
    }

    fn check_status(&self, errors: &mut ErrorList) {
        let at = Path::ROOT.field("status");
        names::check(&self.status.accepted_names, &at.field("acceptedNames"), errors);
        let at = at.field("storedVersions");
        let stored = &self.status.stored_versions;
        if stored.is_empty() {
            // Go prints an empty slice that was never allocated as null.
            let none = scantling_value::BadValue::Raw("null".into());
            errors.push_with(|| FieldError::invalid(&at, none, "must have at least one stored version"));
            return;
        }
        // For a version that is listed twice, the last index is shown; for versions with equal names, the
        // first one counts.
        let mut listed: BTreeMap<&Str, usize> = stored.iter().enumerate().map(|(i, v)| (v, i)).collect();
        for v in self.spec.versions() {
            if listed.remove(&v.name).is_none() && v.storage {
                let detail = format!("must have the storage version {}", v.name);
                errors.push_with(|| FieldError::invalid(&at, Value::from(stored.clone()), detail));
            }
        }
        // kube-apiserver iterates over a Go map; here the errors are sorted by version.
        for (v, i) in listed {
            let detail = format!(
                "missing from spec.versions; {v} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {v} and removes {v} from \
                 status.storedVersions"
            );
            errors.push_with(|| FieldError::invalid(&at.index(i), v.clone(), detail));
        }
    }

    fn check_preserve_unknown_fields(&self, old: Option<&Definition>, errors: &mut ErrorList) {
        let kept = old.is_some_and(|old| old.spec.preserves_unknown_fields());
        if self.spec.preserves_unknown_fields() && !kept {
            let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                          spec.versions[*].schema instead";
            let spec = Path::ROOT.field("spec");
            errors.push_with(|| FieldError::invalid(&spec.field("preserveUnknownFields"), true, detail));
        }
    }
}

impl Spec {
    fn has_all_schemas(&self) -> bool {
        self.validation.as_ref().is_some_and(|v| v.schema.is_some())
            || self
                .versions()
                .iter()
                .all(|v| v.validation.as_ref().is_some_and(|v| v.schema.is_some()))
    }

    fn has_webhook(&self) -> bool {
        self.conversion.as_ref().is_some_and(|c| c.strategy == "Webhook")
    }

    /// Returns whether any schema is not structural.
    pub fn has_non_structural_schema(&self) -> bool {
        self.schemas()
            .any(|s| s.unsupported().is_some() || !structural::check(s, &Path::ROOT).is_empty())
    }

    /// All CEL expressions in the schemas.
    pub fn expressions(&self) -> Expressions {
        let mut all = Expressions::default();
        for s in self.schemas() {
            s.any(&mut |s| {
                for ValidationRule {
                    rule,
                    message_expression,
                    ..
                } in s.rules()
                {
                    all.rules.insert(rule);
                    if !message_expression.is_empty() {
                        all.messages.insert(message_expression);
                    }
                }
                // Never true, so that the walk visits every schema.
                false
            });
        }
        all
    }

    /// The validation settings of a version; `None` if the CRD has schemas both at the top and with versions,
    /// or does not have the version.
    fn validation_of(&self, version: &str) -> Option<Option<&Validation>> {
        if self.versions().iter().all(|v| v.validation.is_none()) {
            return Some(self.validation.as_ref());
        }
        if self.validation.is_some() {
            return None;
        }
        self.version(version).map(|v| v.validation.as_ref())
    }

    /// Returns whether an update leaves the schema of a version unchanged.
    fn keeps_schema(&self, stored: &Spec, version: &str) -> bool {
        match (self.validation_of(version), stored.validation_of(version)) {
            (Some(new), Some(old)) => super::convert::same_validation(new, old),
            _ => false,
        }
    }

    /// Returns whether a version may exceed the limit of selectable fields, because the stored one does.
    fn keeps_selectable_fields(&self, stored: &Spec, version: Option<&str>) -> bool {
        let fields = |spec: &'_ Spec| match version {
            None => Some(spec.selectable_fields.clone()),
            Some(name) => spec.version(name).map(|v| v.selectable_fields.clone()),
        };
        let (Some(new), Some(old)) = (fields(self), fields(stored)) else {
            return false;
        };
        old.as_ref().is_some_and(|f| f.len() > MAX_SELECTABLE_FIELDS)
            && same_list(new.as_deref(), old.as_deref())
    }
}
