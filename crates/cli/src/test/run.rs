//! Runs a case.

use super::suite::{CaseWrite, ErrorPattern, Expectation, NewState, TestCase, Verdict};
use crate::catalog::Catalog;
use crate::validate::metadata::apply_request_context;
use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, Gates, NewObjectMeta, Request, Resource,
    WriteOperation, admit, prune_and_default_stored,
};
use scantling_merge::{json_patch::JsonPatch, merge_patch};
use scantling_schema::names::group_version;
use scantling_value::{ErrorKind, FieldError, Map, Value, aggregate, go};
use std::sync::Arc;

/// Runs cases against CRDs.
pub(crate) struct CaseRunner<'a> {
    /// The CRDs under test.
    pub(crate) catalog: &'a Catalog,
    /// The CRDs under which objects were stored before, for cases that change them.
    pub(crate) initial: Option<&'a Catalog>,
    pub(crate) gates: Gates,
}

/// The outcome of a case.
#[derive(Debug, Default)]
pub(crate) struct CaseOutcome {
    /// The differences from the expectation.
    pub(crate) failures: Vec<String>,
    /// The errors of the last write.
    pub(crate) errors: Vec<FieldError>,
    /// The message of the `Status`, if a write was refused.
    pub(crate) message: Option<String>,
    pub(crate) warnings: Vec<String>,
    /// The object as it was stored.
    pub(crate) stored: Option<Value>,
    pub(crate) cost: u64,
    /// False if the case is wrong and has written nothing.
    pub(crate) has_run: bool,
    /// True if the expected message is one of an older release of Kubernetes.
    pub(crate) has_older_message: bool,
}

/// The reason why a case cannot run: the case is wrong, not the CRD.
type CannotRun = String;

impl CaseRunner<'_> {
    /// Runs a case and compares the outcome with what it expects.
    pub(crate) fn run(&self, case: &TestCase) -> CaseOutcome {
        match self.write(case) {
            Ok(mut outcome) => {
                outcome.failures = unexpected(&case.expect, &outcome);
                // Only after a mismatch: suites are written for one release and must still pass on later ones.
                if !outcome.failures.is_empty() && expects_older_message(&case.expect, &outcome) {
                    outcome.failures.clear();
                    outcome.has_older_message = true;
                }
                outcome
            }
            Err(why) => CaseOutcome {
                failures: vec![why],
                ..CaseOutcome::default()
            },
        }
    }

    fn write(&self, case: &TestCase) -> Result<CaseOutcome, CannotRun> {
        match &case.write {
            CaseWrite::Create(object) => {
                let resource = find(self.catalog, object)?;
                let outcome = self.create(&resource, object);
                Ok(CaseOutcome::new(&resource, outcome))
            }
            CaseWrite::Update(old, new) => self.update(old, new),
        }
    }

    fn update(&self, old: &Value, new: &NewState) -> Result<CaseOutcome, CannotRun> {
        let initial = find(self.initial.unwrap_or(self.catalog), old)?;
        let mut stored = self.store(&initial, old)?;
        // The object was stored under the initial CRD; kube-apiserver prunes and defaults it by the current one on
        // reading.
        let resource = find(self.catalog, old)?;
        prune_and_default_stored(&resource, &mut stored).map_err(|e| e.to_string())?;
        let object = match new {
            NewState::Object(new) => new.clone(),
            NewState::Status(status) => {
                let written = self.update_status(&resource, &stored, status.clone());
                return Ok(CaseOutcome::new(&resource, written));
            }
            NewState::Scale(replicas) => {
                let scale = resource
                    .scale
                    .as_ref()
                    .ok_or("the CRD has no scale subresource")?;
                scale.with_replicas(&stored, *replicas)?
            }
            NewState::MergePatch(patch) => merge_patch::apply(stored.clone(), patch.clone())
                .map_err(|e| format!("the patch fails: {e}"))?,
            NewState::JsonPatch(patch) => patched(&stored, patch)?,
        };
        let resource = find(self.catalog, &object)?;
        // A main-resource write ignores the status of a resource with `/status`, so it takes a second write.
        let status = object
            .get("status")
            .filter(|_| matches!(new, NewState::Object(_)))
            .cloned();
        // A patch may leave out the name, and the path of the request supplies it.
        let updated = self.admit(&resource, WriteOperation::Update(&stored), named(object, &stored));
        if updated.error.is_some() {
            return Ok(CaseOutcome::new(&resource, updated));
        }
        let Some(status) = status.filter(|_| resource.status) else {
            return Ok(CaseOutcome::new(&resource, updated));
        };
        let cost = updated.stats.rule_cost;
        let written = self.update_status(&resource, &updated.object, status);
        let mut outcome = CaseOutcome::new(&resource, written);
        outcome.cost += cost;
        // The prefix tells apart which of the two writes was refused.
        outcome.message = outcome.message.map(|message| format!("{STATUS}{message}"));
        Ok(outcome)
    }

    /// Stores the object before an update, status included.
    fn store(&self, resource: &Resource, object: &Value) -> Result<Value, CannotRun> {
        let created = self.create(resource, object);
        if let Some(error) = &created.error {
            let message = message(resource, &created.object, error);
            return Err(format!("the object before the update is refused: {message}"));
        }
        let mut created = created;
        // Stored objects have a resource version; an update without one is refused for custom resources.
        apply_request_context(resource, &mut created.object, Some(&"1".into()));
        let Some(status) = object.get("status").filter(|_| resource.status) else {
            return Ok(created.object);
        };
        let written = self.update_status(resource, &created.object, status.clone());
        match &written.error {
            None => Ok(written.object),
            Some(error) => {
                let message = message(resource, &written.object, error);
                Err(format!("the status before the update is refused: {message}"))
            }
        }
    }

    fn create(&self, resource: &Resource, object: &Value) -> AdmitOutcome {
        let meta = NewObjectMeta {
            // Fixed metadata makes stored objects comparable across runs.
            uid: "00000000-0000-0000-0000-000000000000".into(),
            created: "1970-01-01T00:00:00Z".into(),
            suffix: "00000".into(),
        };
        let mut object = object.clone();
        apply_request_context(resource, &mut object, None);
        let metadata = object.as_object_mut().and_then(|o| o.get_mut("metadata"));
        if let Some(metadata) = metadata.and_then(Value::as_object_mut)
            // `generateName` produces a name, and a name beside it would take precedence.
            && !metadata.contains_key("generateName")
        {
            metadata.get_or_insert_with("name", || "test".into());
        }
        self.admit(resource, WriteOperation::Create(&meta), object)
    }

    fn update_status(&self, resource: &Resource, stored: &Value, status: Value) -> AdmitOutcome {
        let mut object = stored.clone();
        if let Some(members) = object.as_object_mut() {
            members.insert("status", status);
        }
        self.admit(resource, WriteOperation::UpdateStatus(stored), object)
    }

    fn admit(&self, resource: &Resource, operation: WriteOperation<'_>, mut object: Value) -> AdmitOutcome {
        if !matches!(operation, WriteOperation::Create(_)) {
            apply_request_context(resource, &mut object, Some(&"1".into()));
        }
        let request = Request {
            operation,
            object,
            findings: &[],
        };
        let options = AdmitOptions {
            gates: self.gates,
            // Unknown fields are pruned with a warning, as in an update by a client that sends no validation directive.
            field_validation: FieldValidation::Warn,
            ..AdmitOptions::default()
        };
        admit(resource, request, &options)
    }
}

/// The prefix of the message of a refused status.
const STATUS: &str = "status: ";

impl CaseOutcome {
    fn new(resource: &Resource, outcome: AdmitOutcome) -> Self {
        let message = outcome
            .error
            .as_ref()
            .map(|error| message(resource, &outcome.object, error));
        CaseOutcome {
            failures: Vec::new(),
            errors: outcome
                .error
                .as_ref()
                .map_or(&[][..], AdmissionError::errors)
                .to_vec(),
            message,
            warnings: outcome.warnings.iter().map(ToString::to_string).collect(),
            cost: outcome.stats.rule_cost,
            has_run: true,
            has_older_message: false,
            stored: outcome.error.is_none().then_some(outcome.object),
        }
    }
}

/// The resource of an object.
fn find(catalog: &Catalog, object: &Value) -> Result<Arc<Resource>, CannotRun> {
    let (api_version, kind) = (object.get_str("apiVersion"), object.get_str("kind"));
    let Some(found) = catalog.find(api_version, kind) else {
        return Err(format!("no CRD for kind \"{kind}\" in version \"{api_version}\""));
    };
    catalog
        .usable(found)
        .map(Arc::clone)
        .map_err(|problem| problem.to_string())
}

/// An update names the object that is stored.
fn named(mut object: Value, stored: &Value) -> Value {
    let Some(members) = object.as_object_mut() else {
        return object;
    };
    let metadata = members.get_or_insert_with("metadata", || Map::new().into());
    if let Some(metadata) = metadata.as_object_mut() {
        for field in ["name", "namespace"] {
            if let Some(value) = stored.at(["metadata", field]) {
                metadata.insert(field, value.clone());
            }
        }
    }
    object
}

/// A document with a JSON patch applied.
pub(crate) fn patched(document: &Value, patch: &Value) -> Result<Value, CannotRun> {
    let text = patch.to_json();
    let patch = JsonPatch::from_value(patch.clone(), text.as_bytes())
        .map_err(|e| format!("the patch is wrong: {e}"))?;
    patch
        .apply(document.clone())
        .map_err(|e| format!("the patch fails: {e}"))
}

/// The message of the `Status` for a refused write.
fn message(resource: &Resource, object: &Value, error: &AdmissionError) -> String {
    match error {
        AdmissionError::Invalid(errors) => {
            let (group, _) = group_version(&resource.api_version);
            let name = go::quote(object.str_at(["metadata", "name"]));
            format!(
                "{}.{group} {name} is invalid: {}",
                resource.kind,
                aggregate(errors.iter())
            )
        }
        AdmissionError::Immutable(errors) => aggregate(errors.iter()),
        AdmissionError::Strict(found) => format!("strict decoding error: {}", found.strict_error()),
        AdmissionError::Undecodable(why) | AdmissionError::Internal(why) => why.clone(),
        AdmissionError::TooLarge(why) => why.to_string(),
    }
}

/// The differences between an outcome and the expectation.
fn unexpected(expect: &Expectation, outcome: &CaseOutcome) -> Vec<String> {
    let mut failures = Vec::new();
    let accepted = || "expected an error, but the write is accepted".to_owned();
    match (&expect.verdict, &outcome.message) {
        (Verdict::Accepted, None) => {}
        (Verdict::Accepted, Some(message)) => {
            failures.push(format!("expected no error, got: {message}"));
            return failures;
        }
        (_, None) => failures.push(accepted()),
        (Verdict::Rejected(patterns), Some(_)) => failures.extend(unmatched(patterns, outcome)),
        (Verdict::RejectedWith(text), Some(message)) => {
            // An error of the status has the prefix, and must not satisfy an expectation about the main write.
            if message.starts_with(STATUS) || !message.contains(text.as_str()) {
                failures.push(format!(
                    "expected an error that contains {text:?}, got: {message}"
                ));
            }
        }
        (Verdict::StatusRejectedWith(text), Some(message)) => {
            if !message
                .strip_prefix(STATUS)
                .is_some_and(|message| message.contains(text.as_str()))
            {
                failures.push(format!(
                    "expected an error of the status that contains {text:?}, got: {message}"
                ));
            }
        }
    }
    if let Some(expected) = &expect.warnings
        && *expected != outcome.warnings
    {
        failures.push(format!(
            "expected the warnings {expected:?}, got {:?}",
            outcome.warnings
        ));
    }
    if let (Some(expected), Some(stored)) = (&expect.stored, &outcome.stored) {
        differences(expected, stored, &mut failures);
    }
    if let Some(max) = expect.max_cost.filter(|max| outcome.cost > *max) {
        failures.push(format!("expected a cost of at most {max}, got {}", outcome.cost));
    }
    failures
}

/// Returns whether a case expects a message in the words of an older release of Kubernetes. Those name the type of an invalid value
/// instead of the value, and print duplicate objects in Go's syntax.
fn expects_older_message(expect: &Expectation, outcome: &CaseOutcome) -> bool {
    let (Verdict::RejectedWith(text) | Verdict::StatusRejectedWith(text)) = &expect.verdict else {
        return false;
    };
    // Lists differ in their spaces.
    let joined = |text: &str| text.replace("\", \"", "\",\"");
    let mut expected = joined(&text.trim().replace("map[string]interface {}{", "{"));
    for name in [
        "string", "object", "array", "integer", "number", "boolean", "null", "",
    ] {
        let (whole, start) = (format!("Invalid value: \"{name}\""), format!("\"{name}\": "));
        expected = expected.replace(&format!("{whole}: "), "Invalid value: ");
        expected = expected
            .strip_suffix(&whole)
            .map_or(expected.clone(), |e| format!("{e}Invalid value: "));
        expected = expected
            .strip_prefix(&start)
            .map_or(expected.clone(), str::to_owned);
    }
    let without_value = |error: &FieldError| match error.kind() {
        ErrorKind::Invalid => format!("{}: Invalid value: {}", error.field(), error.detail()),
        _ => error.to_string(),
    };
    let errors = aggregate(outcome.errors.iter().map(without_value));
    let message = outcome.message.as_deref().unwrap_or_default();
    let subject = message
        .find(INVALID)
        .and_then(|at| message.get(..at + INVALID.len()));
    let subject = subject.map_or("", |subject| subject.trim_start_matches(STATUS));
    let found = joined(&format!("{subject}{errors}"));
    // Without any wording of an older release, a mismatch is a real one.
    !outcome.errors.is_empty() && expected != *text && found.contains(&expected)
}

/// The text between the object and its errors in the message about an invalid object.
const INVALID: &str = " is invalid: ";

/// The errors that no pattern expects, and the patterns that no error matches.
fn unmatched(patterns: &[ErrorPattern], outcome: &CaseOutcome) -> Vec<String> {
    // No patterns mean that any error will do.
    if patterns.is_empty() {
        return Vec::new();
    }
    let whole = outcome.message.as_deref().unwrap_or_default();
    // A decoding error has no fields, so only its whole message can match.
    if outcome.errors.is_empty() {
        let is_expected = |p: &ErrorPattern| {
            p.contains
                .as_ref()
                .is_some_and(|text| whole.contains(text.as_str()))
        };
        return match patterns.iter().any(is_expected) {
            true => Vec::new(),
            false => vec![format!("unexpected error: {whole}")],
        };
    }
    let mut free: Vec<&ErrorPattern> = patterns.iter().collect();
    let mut failures = Vec::new();
    for error in &outcome.errors {
        match free.iter().position(|pattern| matches(pattern, error)) {
            Some(n) => {
                // A pattern matches one error, so two equal errors need two patterns.
                free.swap_remove(n);
            }
            None => failures.push(format!("unexpected error: {error}")),
        }
    }
    let missing = free
        .iter()
        .map(|pattern| format!("expected an error with {}", describe(pattern)));
    failures.extend(missing);
    failures
}

fn matches(pattern: &ErrorPattern, error: &FieldError) -> bool {
    let is = |want: &Option<String>, got: &str| want.as_ref().is_none_or(|want| want == got);
    is(&pattern.field, error.field())
        && is(&pattern.reason, error.reason())
        && is(&pattern.message, &error.message())
        && pattern
            .contains
            .as_ref()
            .is_none_or(|text| error.to_string().contains(text.as_str()))
}

fn describe(pattern: &ErrorPattern) -> String {
    let parts = [
        ("field", &pattern.field),
        ("reason", &pattern.reason),
        ("message", &pattern.message),
        ("text", &pattern.contains),
    ];
    let parts = parts
        .iter()
        .filter_map(|(name, value)| Some(format!("{name} {:?}", value.as_ref()?)));
    parts.collect::<Vec<_>>().join(", ")
}

/// The metadata that a server sets.
const SET_BY_SERVER: [&str; 9] = [
    "name",
    "namespace",
    "generateName",
    "uid",
    "generation",
    "creationTimestamp",
    "resourceVersion",
    "managedFields",
    "deletionTimestamp",
];

/// Compares a stored object with the expected one. Metadata that the server sets is compared only where it is expected.
fn differences(expected: &Value, stored: &Value, failures: &mut Vec<String>) {
    let mut stored = stored.clone();
    if let Some(metadata) = stored
        .as_object_mut()
        .and_then(|o| o.get_mut("metadata"))
        .and_then(Value::as_object_mut)
    {
        let expected = expected.get("metadata");
        metadata.retain(|name, _| {
            !SET_BY_SERVER.contains(&name) || expected.is_some_and(|metadata| metadata.get(name).is_some())
        });
    }
    let empty = Value::Object(Map::new());
    let mut expected = expected.clone();
    // The stored object always has metadata, so an expectation without it must not differ in that.
    if let Some(members) = expected.as_object_mut() {
        members.get_or_insert_with("metadata", || empty.clone());
    }
    compare(&expected, &stored, "", failures);
}

fn compare(expected: &Value, got: &Value, at: &str, failures: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            let name = |key: &str| {
                if at.is_empty() {
                    key.to_owned()
                } else {
                    format!("{at}.{key}")
                }
            };
            for (key, value) in a.iter() {
                match b.get(key) {
                    Some(other) => compare(value, other, &name(key), failures),
                    None => failures.push(format!(
                        "{}: expected {}, but it is not set",
                        name(key),
                        value.to_json()
                    )),
                }
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(key)) {
                failures.push(format!(
                    "{}: expected not to be set, got {}",
                    name(key),
                    value.to_json()
                ));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{at}[{i}]"), failures);
            }
        }
        // `1` and `1.0` are the same number in JSON.
        (Value::Int(a), Value::Float(b)) | (Value::Float(b), Value::Int(a)) if *a as f64 == *b => {}
        (a, b) if a == b => {}
        (a, b) => failures.push(format!("{at}: expected {}, got {}", a.to_json(), b.to_json())),
    }
}
