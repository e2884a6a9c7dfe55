//! Validates objects against the catalog.

use super::{ObjectReport, title};
use crate::args;
use crate::builtin::{BuiltinLookup, BuiltinMatch};
use crate::catalog::{Catalog, CatalogEntry, CatalogMatch, StoredObjects};
use crate::files::InputSource;
use crate::input::{Document, InputObject};
use crate::json_schemas::{self, JsonSchemas};
use crate::locate::{DocumentLocator, LocationQuery, locate_all, path_of, value_at};
use crate::placeholders;
use crate::policy::PathOverride;
use crate::problem::Problem;
use crate::report::{Issue, RelatedLocation};
use rayon::prelude::*;
use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, NewObjectMeta, NormalizeMode, Normalized,
    Request, RequestContext, Resource, Stats, Warning, WriteOperation, admit, prune_and_default_stored,
};
use scantling_schema::meta::Scope;
use scantling_schema::names::group_version;
use scantling_schema::rules::Meter;
use scantling_value::{ErrorKind, FieldError, Finding, Map, Path, PathBuf, Segment, Value};
use serde_json::value::RawValue;
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
enum ObjectResult {
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
        let text = placeholders::substitute(document.text, self.variables);
        let document = &Document {
            file: document.file,
            text: &text,
            start: document.start,
            notation: document.notation,
            within: document.within.clone(),
        };
        let objects = match document.objects() {
            Ok(objects) => objects,
            Err(problem) => {
                results.problems.push(problem);
                return results;
            }
        };
        let locator = DocumentLocator::new(document);
        let validator = |object: InputObject| self.validator(document.file, Some(&locator), object, None);
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
        locate_all(&locator, &mut reports);
        results.reports = reports;
        results
    }

    /// Returns why an object is skipped, if it is.
    fn skip_reason(&self, file: &str, object: &InputObject) -> Option<&'static str> {
        let (kind, version) = (object.kind(), object.api_version());
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
            .last()
        {
            Some(true) => MissingSchemas::Skipped,
            Some(false) => MissingSchemas::Reported,
            None => self.missing,
        }
    }

    fn field_validation(&self, file: &str) -> FieldValidation {
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
                    self.builtin(&mut builder, found, object);
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
        self.state(&mut builder, found, object, old, resource, meter);
        Ok(builder.end())
    }

    /// The CRDs that objects were not checked against because a cluster refuses them, except those among the inputs,
    /// which are reported there.
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
        let replicas = object
            .value
            .at(["spec", "replicas"])
            .and_then(Value::as_int)
            .unwrap_or(0);
        match scale.with_replicas(old, replicas) {
            Ok(value) => {
                let resource = self.catalog.usable(*found)?;
                let object = InputObject { value, ..object };
                self.state(builder, *found, object, Some((*old).clone()), resource, meter);
            }
            Err(why) => builder.refuse_for(Issue::plain("InternalError", why), "spec"),
        }
        Ok(())
    }

    fn state(
        &self,
        builder: &mut ReportBuilder<'_>,
        found: CatalogMatch<'_>,
        object: InputObject,
        old: Option<Value>,
        resource: &Resource,
        meter: Option<Meter<'_>>,
    ) {
        let InputObject {
            mut value,
            found_in_text,
            ..
        } = object;
        builder.note_sops(&mut value);
        let sent = value.clone();
        builder.report.by = Some(Arc::clone(&found.entry.title));
        let old = old.map(|mut old| {
            if let Some(members) = old.as_object_mut() {
                members.insert("apiVersion", resource.api_version.as_str().into());
            }
            let version = old.at(["metadata", "resourceVersion"]).cloned();
            apply_request_context(resource, &mut old, Some(&version.unwrap_or_else(|| "1".into())));
            prune_and_default_stored(resource, &mut old).map(|()| old)
        });
        let old = match old.transpose() {
            Ok(old) => old,
            Err(why) => {
                return builder.refuse_undecodable(&format!("the stored object cannot be read: {why}"));
            }
        };
        let version = old
            .as_ref()
            .and_then(|old| old.at(["metadata", "resourceVersion"]));
        let unknown = self
            .show_object
            .then(|| UnknowableMetadata::new(&value, old.as_ref()));
        apply_request_context(resource, &mut value, version);
        builder.report.update = old.is_some();
        let write = |object: Value, field_validation| {
            let request = Request {
                operation: self.operation(old.as_ref()),
                object,
                findings: &found_in_text,
            };
            let options = AdmitOptions {
                gates: self.target.feature_gates,
                field_validation,
                meter,
                ..AdmitOptions::default()
            };
            admit(resource, request, &options)
        };
        let outcome = write(value, self.field_validation(&builder.report.file));
        builder.warn_version(found);
        let rest = is_strict(&outcome).then(|| {
            let mut value = sent.clone();
            apply_request_context(resource, &mut value, version);
            write(value, FieldValidation::Ignore)
        });
        self.report_outcomes(builder, outcome, rest, old.as_ref(), &sent, unknown);
    }

    fn operation<'o>(&'o self, old: Option<&'o Value>) -> WriteOperation<'o> {
        match (old, self.subresource) {
            (Some(old), Some(args::SubresourceFlag::Status)) => WriteOperation::UpdateStatus(old),
            (Some(old), _) => WriteOperation::Update(old),
            (None, _) => WriteOperation::Create(&self.identity),
        }
    }

    /// Validates an object of a built-in kind.
    fn builtin(&self, builder: &mut ReportBuilder<'_>, found: BuiltinMatch, object: InputObject) {
        let stored = self.stored.and_then(|stored| stored.local(&object)).cloned();
        let InputObject {
            mut value,
            found_in_text,
            ..
        } = object;
        builder.report.by = Some(found.title().into());
        builder.note_sops(&mut value);
        let status = self.subresource == Some(args::SubresourceFlag::Status);
        let mut old = stored.or_else(|| status.then(|| without_status(&value)));
        let version = old.as_ref().map(|old| {
            let version = old.at(["metadata", "resourceVersion"]).cloned();
            version.unwrap_or_else(|| "1".into())
        });
        if let Some(old) = &mut old {
            complete_metadata(found.scope(), old, version.as_ref());
        }
        let sent = value.clone();
        let unknown = self
            .show_object
            .then(|| UnknowableMetadata::new(&value, old.as_ref()));
        builder.report.update = old.is_some();
        let write = |mut object: Value, field_validation| {
            complete_metadata(found.scope(), &mut object, version.as_ref());
            let outcome = self.admit_builtin(found, object, old.clone(), &found_in_text, field_validation);
            without_allocated(&sent, outcome)
        };
        let outcome = write(value, self.field_validation(&builder.report.file));
        let rest = is_strict(&outcome).then(|| write(sent.clone(), FieldValidation::Ignore));
        let releases = match &outcome.error {
            Some(AdmissionError::Strict(findings)) => {
                let mut releases = findings.iter().filter_map(|f| found.field_exists(&sent, f));
                releases.next_back()
            }
            _ => None,
        };
        let first = builder.report.errors.len();
        self.report_outcomes(builder, outcome, rest, old.as_ref(), &sent, unknown);
        if let (Some(issue), Some(help)) = (builder.report.errors.get_mut(first), releases) {
            issue.help = Some(help);
        }
    }

    /// Runs the pipeline for an object of a built-in kind.
    fn admit_builtin(
        &self,
        found: BuiltinMatch,
        object: Value,
        old: Option<Value>,
        findings: &[Finding],
        field_validation: FieldValidation,
    ) -> AdmitOutcome {
        let options = AdmitOptions {
            field_validation,
            request: RequestContext {
                now: &self.identity.created,
                ..RequestContext::default()
            },
            ..AdmitOptions::default()
        };
        let Some(resource) = found.resource() else {
            let why = format!("the table of API types has no {}", found.title());
            return AdmitOutcome {
                object,
                error: Some(AdmissionError::Internal(why)),
                warnings: Vec::new(),
                stats: Stats::default(),
            };
        };
        let old = match old {
            Some(old) => match Normalized::new(&resource, old, &[], NormalizeMode::Applied, &options) {
                Ok(normalized) => Some(normalized.into_parts().0),
                Err(rejected) => return AdmitOutcome::from(Err(rejected)),
            },
            None => None,
        };
        let request = Request {
            operation: self.operation(old.as_ref()),
            object,
            findings,
        };
        admit(&resource, request, &options)
    }

    /// Adds the outcome of a write to the report. A cluster names unknown and duplicate fields alone; `rest` is the outcome
    /// without them, so that users see all errors at once.
    fn report_outcomes(
        &self,
        builder: &mut ReportBuilder<'_>,
        outcome: AdmitOutcome,
        rest: Option<AdmitOutcome>,
        old: Option<&Value>,
        sent: &Value,
        unknown: Option<UnknowableMetadata>,
    ) {
        let Some(mut rest) = rest else {
            return self.report_outcome(builder, outcome, old, sent, unknown);
        };
        self.report_outcome(builder, outcome, old, sent, None);
        rest.warnings.clear();
        self.report_outcome(builder, rest, old, sent, unknown);
    }

    fn report_outcome(
        &self,
        builder: &mut ReportBuilder<'_>,
        outcome: AdmitOutcome,
        old: Option<&Value>,
        sent: &Value,
        unknown: Option<UnknowableMetadata>,
    ) {
        builder.warn(&outcome.warnings);
        builder.report.cel_cost = outcome.stats.rule_cost;
        match &outcome.error {
            None => {}
            Some(AdmissionError::Invalid(errors) | AdmissionError::Immutable(errors)) => {
                builder.refuse(errors, &outcome.object, old, sent);
            }
            Some(AdmissionError::Strict(found)) => {
                builder.refuse_undecodable(&format!("strict decoding error: {}", found.strict_error()));
                builder.locate_strict(found);
            }
            Some(AdmissionError::Undecodable(why)) if placeholders::is_unresolved(sent) => {
                let query = builder.query(&PathBuf::default());
                let text = format!("not validated, because values are not final: {why}");
                builder.report.warnings.push(text);
                builder.report.warning_queries.push(query);
            }
            Some(AdmissionError::Undecodable(why) | AdmissionError::Internal(why)) => {
                builder.refuse_undecodable(why);
            }
            Some(AdmissionError::TooLarge(why)) => builder.refuse_undecodable(&why.to_string()),
        }
        if let Some(unknown) = unknown {
            builder.show(outcome.object, unknown);
        }
    }
}

/// The fields that a cluster allocates: an object that leaves them out is complete.
const ALLOCATED: [(&str, &str); 1] = [("Service", "spec.healthCheckNodePort")];

/// Removes errors about absent fields that a cluster allocates.
fn without_allocated(sent: &Value, mut outcome: AdmitOutcome) -> AdmitOutcome {
    if let Some(AdmissionError::Invalid(errors)) = &mut outcome.error {
        let is_allocated = |error: &FieldError| {
            error.kind() == ErrorKind::Required && ALLOCATED.contains(&(sent.get_str("kind"), error.field()))
        };
        errors.retain(|error| !is_allocated(error));
        if errors.is_empty() {
            outcome.error = None;
        }
    }
    outcome
}

/// Whether a write is refused for unknown or duplicate fields.
fn is_strict(outcome: &AdmitOutcome) -> bool {
    matches!(outcome.error, Some(AdmissionError::Strict(_)))
}

/// Returns an object as it is before its status is written for the first time.
fn without_status(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    object
}

/// Adds what a request says outside the object: the namespace of its path, and the version that it updates.
pub(crate) fn apply_request_context(resource: &Resource, object: &mut Value, version: Option<&Value>) {
    complete_metadata(resource.scope, object, version);
}

/// The same for a kind of a scope.
pub(crate) fn complete_metadata(scope: Scope, object: &mut Value, version: Option<&Value>) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    let metadata = members.get_or_insert_with("metadata", || Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    match scope {
        Scope::Namespaced => {
            metadata.get_or_insert_with("namespace", || "default".into());
        }
        // The path has no namespace, and a cluster removes it.
        Scope::Cluster => {
            metadata.remove("namespace");
        }
    }
    if let Some(version) = version {
        metadata.insert("resourceVersion", version.clone());
    }
}

/// The metadata that only the server knows.
struct UnknowableMetadata(Vec<&'static str>);

impl UnknowableMetadata {
    /// Returns those of an object, and of the stored object that it replaces.
    fn new(object: &Value, old: Option<&Value>) -> Self {
        let has = |object: &Value, field: &str| object.at(["metadata", field]).is_some();
        let mut fields = vec!["resourceVersion", "managedFields"];
        match old {
            None => fields.extend(["uid", "creationTimestamp"]),
            // The stored object has them even if its file does not.
            Some(old) => {
                let kept = ["uid", "creationTimestamp", "generation"];
                fields.extend(kept.into_iter().filter(|field| !has(old, field)));
            }
        }
        // The request names the object; names may be generated.
        fields.extend(
            ["namespace", "name"]
                .into_iter()
                .filter(|field| !has(object, field)),
        );
        UnknowableMetadata(fields)
    }
}

/// Builds the report of one object.
struct ReportBuilder<'d> {
    report: ObjectReport,
    /// Objects of a cluster have no text.
    locator: Option<&'d DocumentLocator<'d>>,
    index: Vec<usize>,
}

impl ReportBuilder<'_> {
    fn end(self) -> ObjectResult {
        ObjectResult::Validated(Box::new(self.report))
    }

    /// Refuses a CRD. The errors name fields of the internal type, which are elsewhere in the text.
    fn refuse_definition(&mut self, entry: &CatalogEntry, errors: &[FieldError]) {
        self.report.accepted = errors.is_empty();
        for error in errors {
            let field = entry.written(error.field());
            let query = self
                .locator
                .and_then(|locator| locator.field(&self.index, &field));
            self.report.errors.push(Issue::new(error, query));
        }
    }

    /// Removes the metadata of SOPS from an encrypted object, with a warning.
    fn note_sops(&mut self, object: &mut Value) {
        if placeholders::remove_sops(object) {
            let query = self.query(&PathBuf::from(&Path::ROOT.field("sops")));
            self.report
                .warnings
                .push("encrypted by SOPS: encrypted values are not validated".to_owned());
            self.report.warning_queries.push(query);
        }
    }

    /// Adds warnings about the version of an object.
    fn warn_version(&mut self, found: CatalogMatch<'_>) {
        let Some(version) = found.version() else {
            return;
        };
        let mut warnings = Vec::new();
        if !version.served {
            warnings.push(format!(
                "{} {} is not served",
                self.report.api_version, self.report.kind
            ));
        }
        warnings.extend(found.entry.definition.spec.deprecation(version));
        for warning in warnings {
            let query = self
                .locator
                .and_then(|locator| locator.message(&self.index, "apiVersion"));
            self.report.warnings.push(warning);
            self.report.warning_queries.push(query);
        }
    }

    /// Adds a server's warnings.
    fn warn(&mut self, warnings: &[Warning]) {
        let queries = warnings
            .iter()
            .map(|warning| self.locator?.warning(&self.index, warning));
        self.report.warning_queries.extend(queries);
        self.report
            .warnings
            .extend(warnings.iter().map(ToString::to_string));
    }

    /// Adds errors. `sent` is the object as it was read: an error about a value that is not final, such as a variable
    /// of Flux, is only a warning.
    fn refuse(&mut self, errors: &[FieldError], object: &Value, old: Option<&Value>, sent: &Value) {
        let is_final = |error: &&FieldError| {
            let value = value_at(sent, &path_of(error, sent));
            !value.is_some_and(placeholders::is_unresolved)
        };
        let (errors, open): (Vec<&FieldError>, Vec<&FieldError>) = errors.iter().partition(is_final);
        for error in open {
            let query = self.query(&path_of(error, sent));
            let issue = Issue::new(error, None).field_and_message();
            self.report
                .warnings
                .push(format!("not validated, because the value is not final: {issue}"));
            self.report.warning_queries.push(query);
        }
        self.report.accepted = self.report.accepted && errors.is_empty();
        for error in errors {
            let path = path_of(error, object);
            let mut issue = Issue::new(error, None);
            issue.old = old.and_then(|old| value_at(old, &path)).map(Value::to_json);
            let value = value_at(object, &path).map(Value::to_json);
            issue.value = value.filter(|v| issue.old.is_some() && !issue.message.contains(v.as_str()));
            self.add(issue, &path);
        }
    }

    fn add(&mut self, issue: Issue, path: &PathBuf) {
        let query = self.query(path);
        self.report.errors.push(Issue { query, ..issue });
    }

    fn query(&self, path: &PathBuf) -> Option<LocationQuery> {
        self.locator.and_then(|locator| locator.path(&self.index, path))
    }

    /// Validates an object against a JSON schema.
    fn json_schema(&mut self, schema: &jsonschema::Validator, object: &Value) -> Result<(), Problem> {
        self.report.by = Some("by a JSON schema, which has no rules and no defaults".into());
        self.report.json_schema = true;
        for error in json_schemas::validate(schema, object)? {
            let names: Vec<String> = error
                .pointer
                .split('/')
                .skip(1)
                .map(|name| name.replace("~1", "/").replace("~0", "~"))
                .collect();
            let mut segments = Vec::new();
            let mut value = Some(object);
            for name in &names {
                segments.push(match value {
                    Some(Value::Array(_)) => Segment::Index(name.parse().unwrap_or(0)),
                    _ => Segment::Field(name),
                });
                value = value.and_then(|v| match v {
                    Value::Array(items) => items.get(name.parse::<usize>().ok()?),
                    v => v.get(name),
                });
            }
            let path: PathBuf = segments.into_iter().collect();
            self.report.accepted = false;
            let issue = Issue {
                field: path.to_string(),
                ..Issue::plain("JSONSchema", error.message)
            };
            self.add(issue, &path);
        }
        Ok(())
    }

    /// Adds an error about a field.
    fn refuse_for(&mut self, issue: Issue, field: &str) {
        self.report.accepted = false;
        self.add(issue, &PathBuf::from(&Path::ROOT.field(field)));
    }

    fn refuse_undecodable(&mut self, why: &str) {
        let ObjectReport {
            kind, api_version, ..
        } = &self.report;
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let text = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
        self.refuse_for(Issue::plain("BadRequest", text), "");
    }

    /// Locates the one error about all strict findings at the first of them; the others are related locations.
    fn locate_strict(&mut self, findings: &[Finding]) {
        let Some(locator) = self.locator else {
            return;
        };
        let mut queries = findings
            .iter()
            .filter_map(|finding| locator.finding(&self.index, finding));
        if let Some(issue) = self.report.errors.last_mut() {
            issue.query = queries.next();
            issue.related.extend(queries.map(|query| RelatedLocation {
                query: Some(query),
                location: None,
            }));
        }
    }

    /// Adds the object as it would be stored, without metadata that only the server knows.
    fn show(&mut self, mut stored: Value, UnknowableMetadata(fields): UnknowableMetadata) {
        let metadata = stored.as_object_mut().and_then(|o| o.get_mut("metadata"));
        if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
            for field in fields {
                metadata.remove(field);
            }
        }
        self.report.object = RawValue::from_string(stored.to_json()).ok();
        self.report.stored = Some(stored);
    }
}
