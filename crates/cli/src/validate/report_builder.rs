//! Builds the report of one object.

use super::ObjectReport;
use super::metadata::UnknowableMetadata;
use super::validator::ObjectResult;
use crate::catalog::{CatalogEntry, CatalogMatch};
use crate::json_schemas;
use crate::locate::{DocumentLocator, LocationQuery, path_of, value_at};
use crate::placeholders;
use crate::problem::Problem;
use crate::report::{Issue, RelatedLocation};
use scantling_admit::Warning;
use scantling_value::{BadValue, FieldError, Finding, Path, PathBuf, Segment, Value};
use serde_json::value::RawValue;

/// Builds the report of one object.
pub(super) struct ReportBuilder<'d> {
    pub(super) report: ObjectReport,
    /// Objects of a cluster have no text.
    pub(super) locator: Option<&'d DocumentLocator<'d>>,
    pub(super) index: Vec<usize>,
}

impl ReportBuilder<'_> {
    pub(super) fn end(self) -> ObjectResult {
        ObjectResult::Validated(Box::new(self.report))
    }

    /// Refuses a CRD. The errors name fields of the internal type, which are elsewhere in the text.
    pub(super) fn refuse_definition(&mut self, entry: &CatalogEntry, errors: &[FieldError]) {
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
    pub(super) fn note_sops(&mut self, object: &mut Value) {
        if placeholders::remove_sops(object) {
            let query = self.query(&PathBuf::from(&Path::ROOT.field("sops")));
            self.report
                .warnings
                .push("encrypted by SOPS: encrypted values are not validated".to_owned());
            self.report.warning_queries.push(query);
            self.report.is_final = false;
        }
    }

    /// Warns about values that do not fit their fields, but are not final.
    pub(super) fn note_blanks(&mut self, reasons: &[String], sent: &Value) {
        for why in reasons {
            let query = self.query(&undecodable_path(why, sent));
            self.report
                .warnings
                .push(format!("not validated, because the value is not final: {why}"));
            self.report.warning_queries.push(query);
            self.report.is_final = false;
        }
    }

    /// Adds warnings about the version of an object.
    pub(super) fn warn_version(&mut self, found: CatalogMatch<'_>) {
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
    pub(super) fn warn(&mut self, warnings: &[Warning]) {
        let queries = warnings
            .iter()
            .map(|warning| self.locator?.warning(&self.index, warning));
        self.report.warning_queries.extend(queries);
        self.report
            .warnings
            .extend(warnings.iter().map(ToString::to_string));
    }

    /// Adds errors. `sent` is the object as it was read: an error about a value that is not final, such as a variable
    /// of Flux, is only a warning. `written` is the object that was sent, in which such values may be null.
    pub(super) fn refuse(
        &mut self,
        errors: &[FieldError],
        object: &Value,
        old: Option<&Value>,
        sent: &Value,
        written: Option<&Value>,
    ) {
        let is_final = |error: &&FieldError| {
            // The value in the error counts as well: a rule may name another field than the one that it reads.
            let named = matches!(error.value(), BadValue::Value(value) if is_open_text(value));
            let value = value_at(sent, &path_of(error, sent));
            // Beside nulls for values that are not final, an absent field may be derived from them.
            let may_be_derived = value.is_none() && written.is_some();
            !named && !may_be_derived && !value.is_some_and(placeholders::is_open)
        };
        let (mut errors, mut open): (Vec<&FieldError>, Vec<&FieldError>) = errors.iter().partition(is_final);
        // The rules were not checked because of errors that are now warnings, so this error is one of them.
        if !open.is_empty() && errors.iter().all(|error| says_not_checked(error)) {
            open.append(&mut errors);
        }
        for error in open {
            let path = path_of(error, sent);
            // The value was replaced by null, and its type error has been reported as a warning.
            let is_known = written.is_some_and(|written| value_at(written, &path) == Some(&Value::Null));
            if is_known {
                continue;
            }
            let query = self.query(&path);
            let issue = Issue::new(error, None).field_and_message();
            self.report
                .warnings
                .push(format!("not validated, because the value is not final: {issue}"));
            self.report.warning_queries.push(query);
            self.report.is_final = false;
        }
        self.report.accepted = self.report.accepted && errors.is_empty();
        for error in errors {
            let path = path_of(error, object);
            let mut issue = Issue::new(error, None);
            issue.old = old.and_then(|old| value_at(old, &path)).map(Value::to_json);
            let value = value_at(object, &path);
            if let Some(Value::String(text)) = value
                && placeholders::asks_for_value(text)
            {
                issue.help = Some("the value looks like a placeholder: replace it".to_owned());
            }
            let value = value.map(Value::to_json);
            // For an update, both values explain the error. A message that already shows the value is enough.
            issue.value = value.filter(|v| issue.old.is_some() && !issue.message.contains(v.as_str()));
            self.add(issue, &path);
        }
    }

    fn add(&mut self, issue: Issue, path: &PathBuf) {
        let query = self.query(path);
        self.report.errors.push(Issue { query, ..issue });
    }

    pub(super) fn query(&self, path: &PathBuf) -> Option<LocationQuery> {
        self.locator.and_then(|locator| locator.path(&self.index, path))
    }

    /// Validates an object against a JSON schema.
    pub(super) fn json_schema(
        &mut self,
        schema: &jsonschema::Validator,
        object: &Value,
    ) -> Result<(), Problem> {
        self.report.by = Some("by a JSON schema, which has no rules and no defaults".into());
        self.report.json_schema = true;
        for error in json_schemas::validate(schema, object)? {
            let names: Vec<String> = error
                .pointer
                .split('/')
                .skip(1)
                // In this order, as RFC 6901 demands: `~01` is `~1` and not `/`.
                .map(|name| name.replace("~1", "/").replace("~0", "~"))
                .collect();
            let mut segments = Vec::new();
            let mut value = Some(object);
            for name in &names {
                segments.push(match value {
                    // A pointer into a list always has a number; the fallback only affects the location.
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
    pub(super) fn refuse_for(&mut self, issue: Issue, field: &str) {
        self.report.accepted = false;
        self.add(issue, &PathBuf::from(&Path::ROOT.field(field)));
    }

    /// Refuses an object that is not of its type. `sent` is the object as it was read.
    pub(super) fn refuse_undecodable(&mut self, why: &str, sent: &Value) {
        let ObjectReport {
            kind, api_version, ..
        } = &self.report;
        // kube-apiserver names the version alone, although the object has its group as well.
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let text = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
        self.report.accepted = false;
        self.add(Issue::plain("BadRequest", text), &undecodable_path(why, sent));
    }

    /// Locates the one error about all strict findings at the first of them; the others are related locations.
    pub(super) fn locate_strict(&mut self, findings: &[Finding]) {
        let Some(locator) = self.locator else {
            return;
        };
        let mut queries = findings
            .iter()
            .filter_map(|finding| locator.finding(&self.index, finding));
        // All strict findings are one error, which the caller has just added.
        if let Some(issue) = self.report.errors.last_mut() {
            issue.query = queries.next();
            issue.related.extend(queries.map(|query| RelatedLocation {
                query: Some(query),
                location: None,
            }));
        }
    }

    /// Adds the object as it would be stored, without metadata that only the server knows.
    pub(super) fn show(&mut self, mut stored: Value, UnknowableMetadata(fields): UnknowableMetadata) {
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

/// Returns whether a server omitted rules because of other errors.
fn says_not_checked(error: &FieldError) -> bool {
    error
        .detail()
        .starts_with("some validation rules were not checked")
}

fn is_open_text(value: &Value) -> bool {
    matches!(value, Value::String(_)) && placeholders::is_open(value)
}

/// Returns the names of the field that a type error names: `… into Go struct field PodSpec.spec.replicas of type int32`.
/// Lists have no index there.
pub(super) fn undecodable_names(why: &str) -> Vec<&str> {
    // The text is that of Go's encoding/json: `json: cannot unmarshal … into Go struct field`.
    let named = why
        .split_once("Go struct field ")
        .and_then(|(_, rest)| rest.split_once(" of type "));
    let names = named.and_then(|(field, _)| field.split_once('.'));
    names.map_or(Vec::new(), |(_, names)| names.split('.').collect())
}

/// Returns the field that a type error names. The path ends at the first list, because the error does not name the element.
fn undecodable_path(why: &str, sent: &Value) -> PathBuf {
    let mut value = sent;
    let names = undecodable_names(why).into_iter();
    let known = names.map_while(|name| {
        value = value.get(name)?;
        Some(Segment::Field(name))
    });
    known.collect()
}
