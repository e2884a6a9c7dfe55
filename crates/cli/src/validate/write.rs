//! Runs the write of one object through the pipeline.

use super::metadata::{UnknowableMetadata, apply_request_context, complete_metadata};
use super::report_builder::{ReportBuilder, undecodable_names};
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
use scantling_value::{ErrorKind, FieldError, Finding, Value};
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
        let sent = value;
        builder.report.by = Some(Arc::clone(&found.entry.title));
        let old = old.map(|mut old| {
            if let Some(members) = old.as_object_mut() {
                // The file may have another version of the kind. Conversion by strategy None changes only the
                // apiVersion.
                members.insert("apiVersion", resource.api_version.as_str().into());
            }
            let version = old.at(["metadata", "resourceVersion"]).cloned();
            // Any version does: it must be present in an update, and equal to that of the stored object.
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
            // Only a shown object omits what the server alone knows; errors are not affected.
            .show_object
            .then(|| UnknowableMetadata::new(&sent, old.as_ref()));
        builder.report.update = old.is_some();
        let write = |mut object: Value, field_validation| {
            apply_request_context(resource, &mut object, version);
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
        let validation = self.field_validation(&builder.report.file);
        let first = write_open(&sent, |object| write(object, validation));
        builder.warn_version(found);
        // The second write finds the errors that kube-apiserver would report only after the strict ones are fixed.
        let rest =
            is_strict(&first.outcome).then(|| write(first.written(&sent).clone(), FieldValidation::Ignore));
        self.report_outcomes(builder, first, rest, old.as_ref(), &sent, unknown);
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
        // The cluster is not asked for built-in kinds: `--old-from-cluster` reads the kinds of CRDs.
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
        let sent = value;
        let unknown = self
            .show_object
            .then(|| UnknowableMetadata::new(&sent, old.as_ref()));
        builder.report.update = old.is_some();
        let write = |mut object: Value, field_validation| {
            complete_metadata(found.scope(), &mut object, version.as_ref());
            let outcome = self.admit_builtin(found, object, old.clone(), &found_in_text, field_validation);
            // Inside the closure, because the retry without unknown fields needs the same exception.
            without_allocated(&sent, outcome)
        };
        let validation = self.field_validation(&builder.report.file);
        let first = write_open(&sent, |object| write(object, validation));
        let rest =
            is_strict(&first.outcome).then(|| write(first.written(&sent).clone(), FieldValidation::Ignore));
        let releases = match &first.outcome.error {
            Some(AdmissionError::Strict(findings)) => {
                let mut releases = findings.iter().filter_map(|f| found.field_exists(&sent, f));
                releases.next_back()
            }
            _ => None,
        };
        let before = builder.report.errors.len();
        self.report_outcomes(builder, first, rest, old.as_ref(), &sent, unknown);
        if let (Some(issue), Some(help)) = (builder.report.errors.get_mut(before), releases) {
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
        first: OpenWrite,
        rest: Option<AdmitOutcome>,
        old: Option<&Value>,
        sent: &Value,
        unknown: Option<UnknowableMetadata>,
    ) {
        let OpenWrite {
            outcome,
            blanked,
            reasons,
        } = first;
        builder.note_blanks(&reasons, sent);
        // An object with nulls is not what a cluster would store.
        let unknown = unknown.filter(|_| blanked.is_none());
        let sent = SentObject {
            read: sent,
            blanked: blanked.as_ref(),
        };
        let Some(mut rest) = rest else {
            return self.report_outcome(builder, outcome, old, sent, unknown);
        };
        self.report_outcome(builder, outcome, old, sent, None);
        let strict = builder.report.errors.len();
        // The first write has already reported the warnings.
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
        sent: SentObject<'_>,
        unknown: Option<UnknowableMetadata>,
    ) {
        let SentObject { read: sent, blanked } = sent;
        builder.warn(&outcome.warnings);
        builder.report.cel_cost = outcome.stats.rule_cost;
        match &outcome.error {
            None => {}
            Some(AdmissionError::Invalid(errors) | AdmissionError::Immutable(errors)) => {
                builder.refuse(errors, &outcome.object, old, sent, blanked);
            }
            Some(AdmissionError::Strict(found)) => {
                builder.refuse_undecodable(&format!("strict decoding error: {}", found.strict_error()), sent);
                builder.locate_strict(found);
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

/// The number of writes in which values that are not final are replaced one field at a time; then all are.
const MAX_SINGLE_BLANKS: usize = 8;

/// The outcome of a write whose object may have values that are not final.
struct OpenWrite {
    outcome: AdmitOutcome,
    /// The object with null for values that do not fit their fields, if there were any.
    blanked: Option<Value>,
    /// The type errors about these values.
    reasons: Vec<String>,
}

impl OpenWrite {
    /// The object that was written.
    fn written<'v>(&'v self, sent: &'v Value) -> &'v Value {
        self.blanked.as_ref().unwrap_or(sent)
    }
}

/// An object as it was read, and as it was written if some values were replaced by null.
#[derive(Clone, Copy)]
struct SentObject<'v> {
    read: &'v Value,
    blanked: Option<&'v Value>,
}

/// Writes an object. A value that is not final may not fit the type of its field, which hides all other errors. Such values
/// are replaced by null, so that the rest is validated; a value that is final is never replaced.
fn write_open(sent: &Value, write: impl Fn(Value) -> AdmitOutcome) -> OpenWrite {
    let mut result = OpenWrite {
        outcome: write(sent.clone()),
        blanked: None,
        reasons: Vec::new(),
    };
    while let Some(AdmissionError::Undecodable(why)) = &result.outcome.error {
        let mut next = result.written(sent).clone();
        let names = undecodable_names(why);
        // After several fields, all are replaced at once: each write validates the whole object.
        let is_found = if names.is_empty() || result.reasons.len() >= MAX_SINGLE_BLANKS {
            placeholders::blank(&mut next, &[])
        } else {
            placeholders::blank(&mut next, &names)
        };
        if !is_found {
            // The error is about a final value, which must be reported as it is.
            break;
        }
        result.reasons.push(why.clone());
        result.outcome = write(next.clone());
        result.blanked = Some(next);
    }
    result
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
