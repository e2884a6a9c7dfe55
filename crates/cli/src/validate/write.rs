//! Runs the write of one object through the pipeline.

use super::metadata::{UnknowableMetadata, apply_request_context, complete_metadata};
use super::report_builder::ReportBuilder;
use super::validator::Validator;
use crate::args;
use crate::builtin::BuiltinMatch;
use crate::catalog::CatalogMatch;
use crate::input::InputObject;
use crate::placeholders;
use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, NormalizeMode, Normalized, Request,
    RequestContext, Resource, Stats, WriteOperation, admit, prune_and_default_stored,
};
use scantling_schema::rules::Meter;
use scantling_value::{ErrorKind, FieldError, Finding, PathBuf, Value};
use std::sync::Arc;

impl Validator<'_> {
    /// Writes an object of a custom resource.
    pub(super) fn write_custom(
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
                return builder
                    .refuse_undecodable(&format!("the stored object cannot be read: {why}"), &sent);
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

    /// Writes an object of a built-in kind.
    pub(super) fn write_builtin(
        &self,
        builder: &mut ReportBuilder<'_>,
        found: BuiltinMatch,
        object: InputObject,
    ) {
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
            issue.help = Some(match issue.help.take() {
                Some(other) => format!("{help}; {other}"),
                None => help,
            });
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
        let strict = builder.report.errors.len();
        rest.warnings.clear();
        self.report_outcome(builder, rest, old, sent, unknown);
        if builder.report.errors.len() > strict
            && let Some(issue) = strict
                .checked_sub(1)
                .and_then(|n| builder.report.errors.get_mut(n))
        {
            let help = "a cluster reports the errors that follow only once this one is fixed";
            issue.help = Some(help.to_owned());
        }
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
                builder.refuse_undecodable(&format!("strict decoding error: {}", found.strict_error()), sent);
                builder.locate_strict(found);
            }
            Some(AdmissionError::Undecodable(why)) if placeholders::is_unresolved(sent) => {
                let query = builder.query(&PathBuf::default());
                let text = format!("not validated, because values are not final: {why}");
                builder.report.warnings.push(text);
                builder.report.warning_queries.push(query);
            }
            Some(AdmissionError::Undecodable(why) | AdmissionError::Internal(why)) => {
                builder.refuse_undecodable(why, sent);
            }
            Some(AdmissionError::TooLarge(why)) => builder.refuse_undecodable(&why.to_string(), sent),
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

/// Returns whether a write is refused for unknown or duplicate fields.
fn is_strict(outcome: &AdmitOutcome) -> bool {
    matches!(outcome.error, Some(AdmissionError::Strict(_)))
}

/// Returns an object as it is before its status is written for the first time.
pub(super) fn without_status(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    object
}
