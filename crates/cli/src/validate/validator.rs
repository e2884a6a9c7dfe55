//! Validates objects against the catalog.

use super::report_builder::ReportBuilder;
use super::write::without_status;
use super::{ObjectReport, title};
use crate::args;
use crate::builtin::BuiltinLookup;
use crate::catalog::{Catalog, CatalogEntry, StoredObjects};
use crate::files::InputSource;
use crate::input::{Document, InputObject};
use crate::json_schemas::JsonSchemas;
use crate::locate::{DocumentLocator, locate_all};
use crate::placeholders;
use crate::policy::PathOverride;
use crate::problem::Problem;
use crate::report::Issue;
use rayon::prelude::*;
use scantling_admit::{FieldValidation, NewObjectMeta};
use scantling_schema::names::group_version;
use scantling_schema::rules::Meter;
use scantling_value::{FieldError, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The groups of files that only clients read.
const CLIENT_GROUPS: [&str; 5] = [
    "kustomize.config.k8s.io",
    "kubeadm.k8s.io",
    "kind.x-k8s.io",
    "kubelet.config.k8s.io",
    "kubeproxy.config.k8s.io",
];

/// Lists of at least this many objects are validated on all cores.
const SHARED: usize = 32;

pub(crate) struct Validator<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) target: args::TargetFlags,
    /// The stored objects, if updates are validated.
    pub(crate) stored: Option<&'a StoredObjects<'a>>,
    pub(crate) skip: &'a [String],
    pub(crate) missing: MissingSchemas,
    pub(crate) invalid_crds: InvalidCrds,
    pub(crate) show_object: bool,
    pub(crate) field_validation: FieldValidation,
    /// Settings for some paths.
    pub(crate) overrides: &'a [PathOverride],
    /// The files that the user named.
    pub(crate) named: BTreeSet<&'a str>,
    /// The namespaces that kustomizations give to the objects of files.
    pub(crate) kustomize_namespaces: BTreeMap<Arc<str>, Arc<str>>,
    /// Variables of Flux.
    pub(crate) variables: &'a [args::Variable],
    /// JSON schemas for kinds without a CRD.
    pub(crate) json_schemas: Option<&'a JsonSchemas>,
    /// The subresource that objects are written through.
    pub(crate) subresource: Option<args::SubresourceFlag>,
    pub(crate) identity: NewObjectMeta,
}

/// The treatment of objects whose kind has no schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingSchemas {
    Reported,
    Skipped,
}

/// The treatment of objects whose CRD a cluster would refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidCrds {
    /// The objects are reported as not checked: no cluster can ever accept them.
    Refused,
    /// The objects are checked as far as the CRD allows, for commands that help to repair it.
    Used,
}

/// An object that was not validated, and why.
#[derive(Debug)]
pub(crate) struct Skipped {
    pub(crate) file: Arc<str>,
    pub(crate) title: String,
    pub(crate) reason: &'static str,
}

/// The results for the objects of one document.
#[derive(Default)]
pub(crate) struct DocumentResults {
    pub(crate) reports: Vec<ObjectReport>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) problems: Vec<Problem>,
}

/// The result for one object.
pub(super) enum ObjectResult {
    Validated(Box<ObjectReport>),
    Skipped(Skipped),
}

impl<'a> Validator<'a> {
    /// Returns a validator that creates every object.
    pub(crate) fn new(catalog: &'a Catalog, target: args::TargetFlags) -> Self {
        Validator {
            catalog,
            target,
            stored: None,
            skip: &[],
            missing: MissingSchemas::Reported,
            invalid_crds: InvalidCrds::Refused,
            show_object: false,
            field_validation: FieldValidation::Warn,
            overrides: &[],
            named: BTreeSet::new(),
            kustomize_namespaces: BTreeMap::new(),
            variables: &[],
            json_schemas: None,
            subresource: None,
            identity: NewObjectMeta {
                uid: "00000000-0000-0000-0000-000000000000".into(),
                created: "1970-01-01T00:00:00Z".into(),
                suffix: "00000".into(),
            },
        }
    }

    /// Validates all objects of a document.
    pub(crate) fn document(&self, document: &Document<'_>) -> DocumentResults {
        let mut results = DocumentResults::default();
        // Variables are replaced in the text, as Flux does: a value may become a number or a whole mapping.
        let text = placeholders::substitute(document.text, self.variables);
        let document = &Document {
            file: document.file,
            text: &text,
            start: document.start,
            notation: document.notation,
            within: document.within.clone(),
        };
        let mut objects = match document.objects() {
            Ok(objects) => objects,
            Err(problem) => {
                results.problems.push(problem);
                return results;
            }
        };
        if let Some(namespace) = self.kustomize_namespaces.get(document.file) {
            objects
                .iter_mut()
                .for_each(|object| object.rename_namespace(namespace));
        }
        let locator = DocumentLocator::new(document);
        let validator = |object: InputObject| self.validator(document.file, Some(&locator), object, None);
        // Most documents have one object; distributing them would cost more than it gains.
        let report: Vec<Result<ObjectResult, Problem>> = if objects.len() < SHARED {
            objects.into_iter().map(validator).collect()
        } else {
            objects.into_par_iter().map(validator).collect()
        };
        let mut reports = Vec::with_capacity(report.len());
        for result in report {
            match result {
                Ok(ObjectResult::Validated(report)) => reports.push(*report),
                Ok(ObjectResult::Skipped(skipped)) => results.skipped.push(skipped),
                Err(problem) => results.problems.push(problem),
            }
        }
        // After all objects: a lookup reads the whole text, whatever the number of queries.
        locate_all(&locator, &mut reports);
        results.reports = reports;
        results
    }

    /// Returns why an object is skipped, if it is.
    fn skip_reason(&self, file: &str, object: &InputObject) -> Option<&'static str> {
        let (kind, version) = (object.kind(), object.api_version());
        // `Kind` matches every version; `group/version/Kind` matches one.
        let skipped =
            |s: &String| s == kind || s.strip_suffix(kind).and_then(|s| s.strip_suffix('/')) == Some(version);
        let (group, _) = group_version(version);
        if self.skip.iter().any(skipped) {
            Some("named by --skip")
        } else if self
            .overrides(file)
            .any(|settings| settings.skip.iter().any(skipped))
        {
            Some("named by `skip` in the configuration")
        } else if CLIENT_GROUPS.contains(&group) {
            Some("a configuration file of a tool, not an object of a cluster")
        } else if object.is_definition_patch() && !self.named.contains(file) {
            Some("a patch of a CRD: it has no group, names and versions")
        } else {
            None
        }
    }

    /// The settings for a file.
    fn overrides(&self, file: &str) -> impl Iterator<Item = &PathOverride> {
        self.overrides.iter().filter(|settings| settings.matches(file))
    }

    fn missing(&self, file: &str) -> MissingSchemas {
        match self
            .overrides(file)
            .filter_map(|settings| settings.ignore_missing_schemas)
            // Later overrides win over earlier ones, as with flags.
            .last()
        {
            Some(true) => MissingSchemas::Skipped,
            Some(false) => MissingSchemas::Reported,
            None => self.missing,
        }
    }

    pub(super) fn field_validation(&self, file: &str) -> FieldValidation {
        let own = self
            .overrides(file)
            .filter_map(|settings| settings.field_validation)
            .last();
        own.map_or(self.field_validation, FieldValidation::from)
    }

    /// Validates an object that is not part of a document. Returns `None` if it is skipped. The meter gets the cost of
    /// each rule.
    pub(crate) fn object(
        &self,
        file: &Arc<str>,
        object: InputObject,
        meter: Meter<'_>,
    ) -> Result<Option<ObjectReport>, Problem> {
        match self.validator(file, None, object, Some(meter))? {
            ObjectResult::Validated(report) => Ok(Some(*report)),
            ObjectResult::Skipped(_) => Ok(None),
        }
    }

    /// Validates an object.
    fn validator(
        &self,
        file: &Arc<str>,
        locator: Option<&DocumentLocator<'_>>,
        object: InputObject,
        meter: Option<Meter<'_>>,
    ) -> Result<ObjectResult, Problem> {
        let skipped = |reason| {
            let title = title(object.kind(), object.namespace(), object.name());
            let file = Arc::clone(file);
            Ok(ObjectResult::Skipped(Skipped { file, title, reason }))
        };
        if let Some(reason) = self.skip_reason(file, &object) {
            return skipped(reason);
        }
        let report = ObjectReport {
            api_version: object.api_version().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            ..ObjectReport::new(file, object.kind())
        };
        let mut builder = ReportBuilder {
            report,
            locator,
            index: object.index.clone(),
        };
        // CRDs among the inputs are in the catalog, which has compiled them for the other objects.
        if object.is_definition() {
            self.definition(&mut builder);
            return Ok(builder.end());
        }
        if self.subresource == Some(args::SubresourceFlag::Scale) {
            self.scale(&mut builder, object, meter)?;
            return Ok(builder.end());
        }
        let Some(found) = self
            .catalog
            .find(&builder.report.api_version, &builder.report.kind)
        else {
            let (api_version, kind) = (&builder.report.api_version, &builder.report.kind);
            match self.catalog.builtin_kinds().find(api_version, kind) {
                BuiltinLookup::Found(found) => {
                    self.write_builtin(&mut builder, found, object);
                    return Ok(builder.end());
                }
                BuiltinLookup::OtherRelease(why) => {
                    let issue = Issue {
                        help: Some(why),
                        ..Issue::undefined(kind, api_version)
                    };
                    builder.refuse_for(issue, "kind");
                    return Ok(builder.end());
                }
                BuiltinLookup::Unknown => {}
            }
            if let Some(schemas) = self.json_schemas
                && let Some(schema) = schemas.find(api_version, kind)?
            {
                builder.json_schema(&schema, &object.value)?;
                return Ok(builder.end());
            }
            // A kind that resembles a known one is probably a mistake.
            let help = self.catalog.suggestion(api_version, kind);
            if self.missing(file) == MissingSchemas::Skipped && help.is_none() {
                return skipped("no schema");
            }
            let issue = Issue {
                help,
                ..Issue::undefined(kind, api_version)
            };
            builder.refuse_for(issue, "kind");
            return Ok(builder.end());
        };
        if self.invalid_crds == InvalidCrds::Refused && !self.catalog.refused(found.entry).is_empty() {
            let name = found.entry.definition.name();
            let why = format!("not checked: a cluster refuses the CustomResourceDefinition {name}");
            builder.report.checked = false;
            builder.refuse_for(Issue::plain("NotChecked", why), "kind");
            return Ok(builder.end());
        }
        let resource = self.catalog.usable(found)?;
        let mut old = match self.stored {
            Some(stored) => stored.find(&object, found)?,
            None => None,
        };
        if self.subresource == Some(args::SubresourceFlag::Status) {
            if !resource.status {
                let why = format!("{} has no status subresource", found.entry.definition.name());
                builder.refuse_for(Issue::plain("NotServed", why), "kind");
                return Ok(builder.end());
            }
            // Without a stored object, it is the one that the status is written to.
            old = old.or_else(|| Some(without_status(&object.value)));
        }
        self.write_custom(&mut builder, found, object, old, resource, meter);
        Ok(builder.end())
    }

    /// The CRDs that objects were not checked against because a cluster refuses them. CRDs among the inputs are left
    /// out: they have their own reports.
    pub(crate) fn invalid_definitions(&self, inputs: &[InputSource]) -> Vec<ObjectReport> {
        let invalid = self.catalog.entries().iter().filter_map(|entry| {
            let errors = entry.refused_if_asked()?;
            let is_input = inputs.iter().any(|source| source.name == entry.file);
            (!errors.is_empty() && !is_input).then_some((entry, errors))
        });
        let report = |(entry, errors): (&CatalogEntry, &[FieldError])| {
            let fields: Vec<String> = errors.iter().map(|e| entry.written(e.field())).collect();
            let locations = entry.locations(&fields);
            let issues = errors.iter().zip(locations).map(|(e, location)| Issue {
                location,
                ..Issue::new(e, None)
            });
            ObjectReport {
                api_version: format!("apiextensions.k8s.io/{}", entry.api.as_str()),
                name: entry.definition.name().to_owned(),
                accepted: false,
                errors: issues.collect(),
                ..ObjectReport::new(&entry.file, "CustomResourceDefinition")
            }
        };
        invalid.map(report).collect()
    }

    /// Validates a CRD among the inputs.
    fn definition(&self, builder: &mut ReportBuilder<'_>) {
        let (file, name) = (&builder.report.file, &builder.report.name);
        // From the end: of several CRDs with this name in the file, objects are checked against the last.
        let entry = self.catalog.entries().iter().rev();
        let mut entry = entry.filter(|e| e.file == *file && e.definition.name() == name);
        match entry.next() {
            Some(entry) => {
                let warnings = entry.api.deprecation().map(str::to_owned);
                builder.report.warnings.extend(warnings);
                builder.refuse_definition(entry, self.catalog.refused(entry));
            }
            None => builder.refuse_for(
                Issue::plain("BadRequest", "the definition cannot be read"),
                "kind",
            ),
        }
    }

    /// Validates a write to `/scale` of the stored object with the same namespace and name.
    fn scale(
        &self,
        builder: &mut ReportBuilder<'_>,
        object: InputObject,
        meter: Option<Meter<'_>>,
    ) -> Result<(), Problem> {
        if object.kind() != "Scale" || object.api_version() != "autoscaling/v1" {
            let why = "a write to /scale is an object of kind Scale in autoscaling/v1";
            builder.refuse_for(Issue::plain("BadRequest", why), "kind");
            return Ok(());
        }
        let Some(stored) = self.stored else {
            return Err(Problem::usage(
                "--subresource scale needs the stored objects: name them with --old",
            ));
        };
        // A Scale does not say which kind it scales; only the path of the request would.
        let mut targets = Vec::new();
        for old in stored.named(object.namespace(), object.name()) {
            let found = self.catalog.find(old.get_str("apiVersion"), old.get_str("kind"));
            if let Some(found) = found
                && let Some(scale) = &self.catalog.usable(found)?.scale
            {
                targets.push((found, scale, old));
            }
        }
        let [(found, scale, old)] = targets.as_slice() else {
            let what = match targets.len() {
                0 => "no stored object",
                _ => "more than one stored object",
            };
            let why = format!("{what} with this namespace and name has a scale subresource");
            builder.refuse_for(Issue::plain("NotServed", why), "metadata");
            return Ok(());
        };
        // In a Scale, absent replicas are zero: the Go field is not a pointer.
        let replicas = object
            .value
            .at(["spec", "replicas"])
            .and_then(Value::as_int)
            .unwrap_or(0);
        match scale.with_replicas(old, replicas) {
            Ok(value) => {
                let resource = self.catalog.usable(*found)?;
                let object = InputObject { value, ..object };
                self.write_custom(builder, *found, object, Some((*old).clone()), resource, meter);
            }
            Err(why) => builder.refuse_for(Issue::plain("InternalError", why), "spec"),
        }
        Ok(())
    }
}
