//! CRDs that have passed validation.

use super::{CrdVersion, Definition, ValidationContext, warnings};
use crate::default;
use crate::document::Schema;
use crate::meta::{self, Scope};
use crate::plan::PlanCompiler;
use crate::structural::{Interner, Structural};
use scantling_value::{ErrorList, Path, Value};
use std::ops::Deref;
use std::sync::Arc;

/// A CRD that has passed validation. Only an accepted CRD can be compiled and served.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted(Definition);

/// An accepted CRD and its warnings.
#[derive(Debug)]
pub struct Acceptance {
    /// The definition.
    pub accepted: Accepted,
    /// The warnings, in kube-apiserver's order.
    pub warnings: Vec<String>,
}

impl Accepted {
    /// Validates a new CRD and returns it, or all errors.
    pub fn create(
        mut definition: Definition,
        context: &ValidationContext<'_>,
    ) -> Result<Acceptance, ErrorList> {
        definition.prepare_create(context.gates);
        let mut errors = definition.validate(context);
        if errors.is_empty() {
            // The rules shared by all kinds are checked last, and only if there are no other errors.
            let metadata = Value::from(definition.metadata.clone());
            errors = meta::check_common(Some(&metadata), Scope::Cluster, &Path::ROOT.field("metadata"));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        coerce_defaults(&mut definition);
        let warnings = warnings(&definition, None);
        Ok(Acceptance {
            accepted: Accepted(definition),
            warnings,
        })
    }

    /// Validates an update of a CRD and returns it, or all errors.
    pub fn update(
        mut definition: Definition,
        old: &Accepted,
        context: &ValidationContext<'_>,
    ) -> Result<Acceptance, ErrorList> {
        definition.prepare_update(old, context.gates);
        let mut errors = common_update(&definition, old);
        errors.extend(definition.validate_update(old, context));
        if !errors.is_empty() {
            return Err(errors);
        }
        coerce_defaults(&mut definition);
        let warnings = warnings(&definition, Some(old));
        Ok(Acceptance {
            accepted: Accepted(definition),
            warnings,
        })
    }

    /// Validates a status update of a CRD and returns it, or all errors.
    pub fn update_status(mut definition: Definition, old: &Accepted) -> Result<Accepted, ErrorList> {
        definition.prepare_status_update(old);
        let mut errors = common_update(&definition, old);
        errors.extend(definition.validate_status_update(old));
        if errors.is_empty() {
            Ok(Accepted(definition))
        } else {
            Err(errors)
        }
    }

    /// Accepts a CRD without validation: one that was accepted before and is read back from the store.
    pub fn assume_accepted(definition: Definition) -> Self {
        Accepted(definition)
    }

    /// Updates names and conditions; see [`Definition::update_conditions`].
    pub fn update_conditions<'a>(
        &mut self,
        group: impl IntoIterator<Item = &'a Accepted>,
        now: &str,
    ) -> bool {
        // The group contains the stored form of this CRD; its present form takes that place.
        let before = self.0.clone();
        let group = group
            .into_iter()
            .map(|a| if a.name() == before.name() { &before } else { &a.0 });
        self.0.update_conditions(group, now)
    }

    /// Replaces the metadata, which the caller that stores the CRD manages.
    #[must_use]
    pub fn with_metadata(mut self, metadata: scantling_value::Map) -> Self {
        self.0.metadata = metadata;
        self
    }

    /// The definition.
    pub fn into_inner(self) -> Definition {
        self.0
    }

    /// The structural schema of a version, for compiling. `None` for schemas that were stored before they had
    /// to be structural.
    pub fn structural(&self, version: &CrdVersion, interner: &mut Interner) -> Option<Arc<Structural>> {
        let document = self.spec.schema_of(version)?;
        Schema::new(document).structural(interner).ok()
    }
}

impl Deref for Accepted {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        &self.0
    }
}

/// Normalizes the defaults of all schemas as kube-apiserver stores them.
fn coerce_defaults(definition: &mut Definition) {
    let spec = &mut definition.spec;
    let versions = spec.versions.iter_mut().flatten();
    let places = versions.map(|version| &mut version.validation);
    for validation in places.chain([&mut spec.validation]).flatten() {
        // Only embedded resources have metadata to normalize. Most CRDs have none, and compiling a plan is
        // expensive.
        let Some(document) = validation.schema.as_mut().filter(|schema| embeds(schema)) else {
            continue;
        };
        // A schema that is not structural has no defaults.
        if let Ok(schema) = Schema::new(document).structural(&mut Interner::new()) {
            let plan = PlanCompiler::new().compile(&schema);
            default::coerce_defaults(&plan, Arc::make_mut(document));
        }
    }
}

/// Returns whether a schema document describes embedded resources anywhere.
fn embeds(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("x-kubernetes-embedded-resource") || members.values().any(embeds)
        }
        Value::Array(list) => list.iter().any(embeds),
        _ => false,
    }
}

/// The update rules shared by all kinds. kube-apiserver checks CRDs twice, so these errors are repeated.
fn common_update(new: &Definition, old: &Definition) -> ErrorList {
    let metadata = |d: &Definition| Value::from(d.metadata.clone());
    let (new, old) = (metadata(new), metadata(old));
    let at = Path::ROOT.field("metadata");
    let mut errors = meta::check_common(Some(&new), Scope::Cluster, &at);
    errors.extend(meta::check_update(Some(&new), Some(&old), &at));
    errors
}
