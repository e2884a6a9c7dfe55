//! Asks what a server would say to an object.

use super::{ObjectReport, title};
use crate::args;
use crate::catalog::{Catalog, CatalogEntry, CatalogMatch, StoredObjects};
use crate::files::InputSource;
use crate::input::{Document, InputObject};
use crate::locate::{DocumentLocator, Spots, path_of, place_all, value_at};
use crate::problem::Problem;
use crate::report::Issue;
use rayon::prelude::*;
use scantling_admit::{
    AdmissionError, AdmitOptions, FieldValidation, NewObjectMeta, Request, Resource, WriteOperation, admit,
    prune_and_default_stored,
};
use scantling_merge::patch;
use scantling_schema::meta::Scope;
use scantling_schema::rules::Meter;
use scantling_value::{FieldError, Map, Path, PathBuf, Value};
use serde_json::value::RawValue;
use std::sync::Arc;

/// From so many objects on, those of one list are shared out among the cores.
const SHARED: usize = 32;

pub(crate) struct Validator<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) target: args::TargetFlags,
    /// Where updates are asked for.
    pub(crate) stored: Option<&'a StoredObjects<'a>>,
    pub(crate) skip: &'a [String],
    pub(crate) missing: MissingSchemas,
    pub(crate) invalid_crds: InvalidCrds,
    pub(crate) show_object: bool,
    pub(crate) field_validation: FieldValidation,
    pub(crate) identity: NewObjectMeta,
}

/// What becomes of objects whose kind has no definition.
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
    pub(crate) report: Vec<ObjectReport>,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) problems: Vec<Problem>,
}

/// The result for one object.
enum ObjectResult {
    Validated(Box<(ObjectReport, Spots)>),
    Skipped(Skipped),
}

impl<'a> Validator<'a> {
    /// One that takes every object for a new one.
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
            identity: NewObjectMeta {
                uid: "00000000-0000-0000-0000-000000000000".into(),
                created: "1970-01-01T00:00:00Z".into(),
                suffix: "00000".into(),
            },
        }
    }

    /// Judges all objects of a document.
    pub(crate) fn document(&self, document: &Document<'_>) -> DocumentResults {
        let mut results = DocumentResults::default();
        let objects = match document.objects() {
            Ok(objects) => objects,
            Err(problem) => {
                results.problems.push(problem);
                return results;
            }
        };
        let sent = DocumentLocator::new(document);
        let validator = |object: InputObject| self.validator(document.file, Some(&sent), object, None);
        let report: Vec<Result<ObjectResult, Problem>> = if objects.len() < SHARED {
            objects.into_iter().map(validator).collect()
        } else {
            objects.into_par_iter().map(validator).collect()
        };
        let mut verdicts = Vec::with_capacity(report.len());
        for result in report {
            match result {
                Ok(ObjectResult::Validated(report)) => verdicts.push(*report),
                Ok(ObjectResult::Skipped(skipped)) => results.skipped.push(skipped),
                Err(problem) => results.problems.push(problem),
            }
        }
        results.report = place_all(&sent, verdicts, ObjectReport::placed);
        results
    }

    fn is_skipped(&self, object: &InputObject) -> bool {
        let (kind, version) = (object.kind(), object.api_version());
        let skipped =
            |s: &String| s == kind || s.strip_suffix(kind).and_then(|s| s.strip_suffix('/')) == Some(version);
        self.skip.iter().any(skipped)
    }

    /// Judges an object that no document holds; nothing comes of one that is to be skipped. What each rule costs is
    /// told to the meter.
    pub(crate) fn object(
        &self,
        file: &Arc<str>,
        object: InputObject,
        meter: Meter<'_>,
    ) -> Result<Option<ObjectReport>, Problem> {
        match self.validator(file, None, object, Some(meter))? {
            ObjectResult::Validated(report) => Ok(Some(report.0)),
            ObjectResult::Skipped(_) => Ok(None),
        }
    }

    /// Judges an object, and says which places are to be looked up for that: of errors, of what else the last error
    /// is about, and of warnings.
    fn validator(
        &self,
        file: &Arc<str>,
        sent: Option<&DocumentLocator<'_>>,
        object: InputObject,
        meter: Option<Meter<'_>>,
    ) -> Result<ObjectResult, Problem> {
        let skipped = |reason| {
            let title = title(object.kind(), object.namespace(), object.name());
            let file = Arc::clone(file);
            Ok(ObjectResult::Skipped(Skipped { file, title, reason }))
        };
        if self.is_skipped(&object) {
            return skipped("named by --skip");
        }
        let report = ObjectReport {
            api_version: object.api_version().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            ..ObjectReport::new(file, object.kind())
        };
        let mut builder = ReportBuilder {
            report,
            spots: Spots::default(),
            sent,
            index: object.index.clone(),
        };
        if object.is_definition() {
            self.definition(&mut builder);
            return Ok(builder.end());
        }
        let Some(found) = self
            .catalog
            .find(&builder.report.api_version, &builder.report.kind)
        else {
            let (api_version, kind) = (&builder.report.api_version, &builder.report.kind);
            // A kind that looks like a known one is a mistake, which the user must see.
            let help = self.catalog.suggestion(api_version, kind);
            if self.missing == MissingSchemas::Skipped && help.is_none() {
                return skipped("no CRD");
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
        let old = match self.stored {
            Some(stored) => stored.find(&object, found)?,
            None => None,
        };
        self.state(&mut builder, found, object, old, resource, meter);
        Ok(builder.end())
    }

    /// The CRDs that objects were not checked against because a cluster refuses them, except those among the inputs, which
    /// are reported there.
    pub(crate) fn invalid_definitions(&self, inputs: &[InputSource]) -> Vec<ObjectReport> {
        let invalid = self.catalog.entries().iter().filter_map(|entry| {
            let errors = entry.refused_if_asked()?;
            let is_input = inputs.iter().any(|source| source.name == entry.file);
            (!errors.is_empty() && !is_input).then_some((entry, errors))
        });
        let report = |(entry, errors): (&CatalogEntry, &[FieldError])| {
            let fields: Vec<String> = errors.iter().map(|e| entry.written(e.field())).collect();
            let places = entry.places(&fields);
            let issues = errors.iter().zip(places).map(|(e, place)| Issue::new(e, place));
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

    /// A definition among the inputs is checked as one.
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
        let request = Request {
            operation: match &old {
                Some(old) => WriteOperation::Update(old),
                None => WriteOperation::Create(&self.identity),
            },
            object: value,
            findings: &found_in_text,
        };
        let options = AdmitOptions {
            gates: self.target.feature_gates,
            field_validation: self.field_validation,
            meter,
            ..AdmitOptions::default()
        };
        let outcome = admit(resource, request, &options);
        builder.warn(found, patch::warnings(&outcome.warnings));
        builder.report.cel_cost = outcome.stats.rule_cost;
        match &outcome.error {
            None => {}
            Some(AdmissionError::Invalid(errors) | AdmissionError::Immutable(errors)) => {
                builder.refuse(errors, &outcome.object, old.as_ref());
            }
            Some(AdmissionError::Strict(found)) => {
                builder.refuse_undecodable(&format!("strict decoding error: {}", found.join(", ")));
                builder.place_strict(&patch::warnings(found));
            }
            Some(AdmissionError::Undecodable(why) | AdmissionError::Internal(why)) => {
                builder.refuse_undecodable(why)
            }
            Some(AdmissionError::TooLarge(why)) => builder.refuse_undecodable(&why.to_string()),
        }
        if let Some(unknown) = unknown {
            builder.show(outcome.object, unknown);
        }
    }
}

/// Adds what a request says beside the object: the namespace in its path, and which state it is a change of.
pub(crate) fn apply_request_context(resource: &Resource, object: &mut Value, version: Option<&Value>) {
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
    match resource.scope {
        Scope::Namespaced => {
            metadata.get_or_insert_with("namespace", || "default".into());
        }
        // The path has none, and a cluster takes it off.
        Scope::Cluster => {
            metadata.remove("namespace");
        }
    }
    if let Some(version) = version {
        metadata.insert("resourceVersion", version.clone());
    }
}

/// The metadata that are not to be known without the server that stores an object.
struct UnknowableMetadata(Vec<&'static str>);

impl UnknowableMetadata {
    /// Those of an object as it was sent, and of the one that it takes the place of.
    fn new(object: &Value, old: Option<&Value>) -> Self {
        let has = |object: &Value, field: &str| object.at(["metadata", field]).is_some();
        let mut fields = vec!["resourceVersion", "managedFields"];
        match old {
            None => fields.extend(["uid", "creationTimestamp"]),
            // What a file leaves out of the state before is there nevertheless.
            Some(old) => {
                let kept = ["uid", "creationTimestamp", "generation"];
                fields.extend(kept.into_iter().filter(|field| !has(old, field)));
            }
        }
        // Whoever sends the object says which one is meant; names may be generated.
        fields.extend(
            ["namespace", "name"]
                .into_iter()
                .filter(|field| !has(object, field)),
        );
        UnknowableMetadata(fields)
    }
}

/// What is written about an object, and where it comes from.
struct ReportBuilder<'d> {
    report: ObjectReport,
    /// What is to be looked up for it.
    spots: Spots,
    /// Objects of a cluster have none.
    sent: Option<&'d DocumentLocator<'d>>,
    index: Vec<usize>,
}

impl ReportBuilder<'_> {
    fn end(self) -> ObjectResult {
        ObjectResult::Validated(Box::new((self.report, self.spots)))
    }

    /// Refuses a CRD. The errors name fields of the internal type, which are elsewhere in the text.
    fn refuse_definition(&mut self, entry: &CatalogEntry, errors: &[FieldError]) {
        self.report.accepted = errors.is_empty();
        for error in errors {
            let field = entry.written(error.field());
            self.report.errors.push(Issue::new(error, None));
            let [spots, ..] = &mut self.spots;
            spots.push(self.sent.and_then(|sent| sent.spelled(&self.index, &field)));
        }
    }

    /// Adds a server's warnings.
    fn warn(&mut self, found: CatalogMatch<'_>, warnings: Vec<String>) {
        let report = &mut self.report;
        if let Some(version) = found.version() {
            if !version.served {
                let text = format!("{} {} is not served", report.api_version, report.kind);
                report.warnings.push(text);
            }
            let spec = &found.entry.definition.spec;
            report.warnings.extend(spec.deprecation(version));
        }
        if let Some(sent) = self.sent {
            let [_, _, spots] = &mut self.spots;
            // What concerns the version as a whole stands where the version is named.
            spots.extend(
                report
                    .warnings
                    .iter()
                    .map(|_| sent.said(&self.index, "apiVersion")),
            );
            spots.extend(warnings.iter().map(|text| sent.said(&self.index, text)));
        }
        report.warnings.extend(warnings);
    }

    fn refuse(&mut self, errors: &[FieldError], object: &Value, old: Option<&Value>) {
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
        self.report.errors.push(issue);
        let [spots, ..] = &mut self.spots;
        spots.push(self.sent.and_then(|sent| sent.spot(&self.index, path)));
    }

    /// Refuses for what a field says.
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

    /// The one error about all that strict decoding found points at the first of it, and names the places of the rest.
    fn place_strict(&mut self, found: &[String]) {
        let Some(sent) = self.sent else {
            return;
        };
        let mut said = found.iter().filter_map(|text| sent.said(&self.index, text));
        let [first, rest, _] = &mut self.spots;
        if let Some(spot) = first.last_mut() {
            *spot = said.next();
        }
        rest.extend(said.map(Some));
    }

    /// Adds the object as it would be stored, as far as that is to be known.
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
