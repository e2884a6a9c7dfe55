//! The effect of new CRDs on existing objects.

use crate::args::FailOn;
use crate::builtin::{BuiltinLookup, BuiltinMatch};
use crate::catalog::Catalog;
use crate::input::{Document, InputObject};
use crate::locate::{
    DocumentLocator, Locatable, Location, LocationQuery, LocationVisitor, locate_all, path_of,
};
use crate::policy::{Directives, Fingerprint, Policy};
use crate::problem::Problem;
use crate::render::{RenderedItem, Renderer};
use crate::report::{Finding, Issue, ReportItem, ReportSubject, Severity};
use crate::validate::metadata::{apply_request_context, complete_metadata};
use crate::validate::title;
use rayon::prelude::*;
use scantling_admit::{
    AdmissionError, AdmitOptions, Gates, NormalizeMode, Normalized, Request, Resource, Warning,
    WriteOperation, admit, check, prune_and_default_stored,
};
use scantling_value::{FieldError, Map, Path, PathBuf, Value};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The effect of an upgrade on the next write of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum UpgradeOutcome {
    /// The object is valid.
    Ok,
    /// The write is accepted while the invalid values stay unchanged.
    Ratcheted,
    /// The write is refused.
    Refused,
}

/// The result for one object.
#[derive(Debug, Serialize)]
pub(super) struct ObjectUpgrade {
    file: Arc<str>,
    kind: String,
    namespace: String,
    name: String,
    pub(super) outcome: UpgradeOutcome,
    /// The errors with which the next write is refused.
    errors: Vec<Issue>,
    /// Errors that ratcheting accepts while the values stay unchanged.
    ratcheted: Vec<Issue>,
    /// Fields that the new CRD does not declare: the next write prunes them.
    pruned: Vec<String>,
    /// Fields with another default.
    defaulted: Vec<String>,
    /// The findings behind these lists.
    findings: Vec<UpgradeFinding>,
}

/// A finding about an object.
#[derive(Debug, Serialize)]
struct UpgradeFinding {
    code: &'static str,
    severity: Severity,
    message: String,
    #[serde(flatten)]
    location: Option<Location>,
    #[serde(skip)]
    query: Option<LocationQuery>,
    #[serde(skip)]
    help: Option<String>,
}

/// Finds out how the location of a path is looked up.
type PathQuery<'q> = dyn Fn(&PathBuf) -> Option<LocationQuery> + 'q;

impl ObjectUpgrade {
    fn new(file: &Arc<str>, object: &InputObject) -> Self {
        ObjectUpgrade {
            file: Arc::clone(file),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            outcome: UpgradeOutcome::Ok,
            errors: Vec::new(),
            ratcheted: Vec::new(),
            pruned: Vec::new(),
            defaulted: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Checks the next write of an object of a built-in kind.
    fn builtin(&mut self, found: BuiltinMatch, object: &InputObject, query: &PathQuery<'_>) {
        let Some(resource) = found.resource() else {
            let why = format!("the table of API types has no {}", found.title());
            return self.refuse_write(&AdmissionError::Internal(why), query, &object.value);
        };
        let options = AdmitOptions::default();
        let mut stored = object.value.clone();
        // An update needs a resource version, and files usually have none.
        complete_metadata(found.scope(), &mut stored, Some(&"1".into()));
        let old = match Normalized::new(&resource, stored.clone(), &[], NormalizeMode::Applied, &options) {
            Ok(normalized) => normalized.into_parts().0,
            Err(rejected) => return self.refuse_write(&rejected.error, query, &object.value),
        };
        let request = Request {
            operation: WriteOperation::Update(&old),
            object: with_label_change(stored),
            findings: &[],
        };
        let outcome = admit(&resource, request, &options);
        self.note_pruned(&outcome.warnings, query);
        // Nothing else has been added yet, so findings and unknown fields run in parallel.
        let unknown = unknown_fields(&outcome.warnings);
        for (finding, (unknown, _)) in self.findings.iter_mut().zip(unknown) {
            finding.help = found.field_exists(&object.value, unknown);
        }
        if let Some(error) = &outcome.error {
            self.refuse_write(error, query, &object.value);
        }
    }

    /// Records the fields that the next write prunes.
    fn note_pruned(&mut self, warnings: &[Warning], query: &PathQuery<'_>) {
        for (_, at) in unknown_fields(warnings) {
            let pruned = at.listed();
            let text = format!("{pruned} is pruned by the next write");
            self.add("SCT1203", Severity::Warning, text, query(at));
            self.pruned.push(pruned);
        }
    }

    /// Records the error of the next write.
    fn refuse_write(&mut self, error: &AdmissionError, query: &PathQuery<'_>, object: &Value) {
        let (reason, why) = match error {
            AdmissionError::Invalid(found) | AdmissionError::Immutable(found) => {
                for e in found {
                    self.refuse("SCT1201", Issue::new(e, query(&path_of(e, object))));
                }
                return;
            }
            AdmissionError::Strict(found) => ("BadRequest", found.strict_error()),
            AdmissionError::Undecodable(why) => ("BadRequest", why.clone()),
            AdmissionError::TooLarge(why) => ("RequestEntityTooLarge", why.to_string()),
            AdmissionError::Internal(why) => ("InternalError", why.clone()),
        };
        let issue = Issue {
            query: query(&PathBuf::default()),
            ..Issue::plain(reason, why)
        };
        self.refuse("SCT1201", issue);
    }

    fn fingerprint(&self, finding: &UpgradeFinding) -> Fingerprint {
        Fingerprint {
            code: finding.code.to_owned(),
            file: self.file.to_string(),
            name: title(&self.kind, &self.namespace, &self.name),
            at: finding.message.clone(),
        }
    }

    /// Returns the identities of the findings for baselines.
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> {
        self.findings.iter().map(|finding| self.fingerprint(finding))
    }

    /// Returns whether a finding makes the command fail.
    pub(super) fn fails(&self, fail_on: FailOn) -> bool {
        self.findings
            .iter()
            .any(|finding| fail_on.includes(finding.severity))
    }

    /// Applies the policy to the findings. The outcome stays: it says what the upgrade does.
    fn apply_policy(&mut self, policy: &Policy, directives: &Directives) {
        let mut findings = std::mem::take(&mut self.findings);
        findings.retain_mut(|finding| {
            let line = finding.location.as_ref().map(|at| at.line);
            let fingerprint = || self.fingerprint(finding);
            let severity = finding.severity;
            match policy.severity(
                (finding.code, &self.file),
                severity,
                (directives, line),
                fingerprint,
            ) {
                Some(severity) => {
                    finding.severity = severity;
                    true
                }
                None => false,
            }
        });
        self.findings = findings;
    }

    fn add(&mut self, code: &'static str, severity: Severity, message: String, query: Option<LocationQuery>) {
        self.findings.push(UpgradeFinding {
            code,
            severity,
            message,
            location: None,
            query,
            help: None,
        });
    }

    /// Records why the next write is refused.
    fn refuse(&mut self, code: &'static str, why: Issue) {
        self.outcome = UpgradeOutcome::Refused;
        self.add(code, Severity::Error, why.field_and_message(), why.query.clone());
        if let Some(finding) = self.findings.last_mut() {
            finding.help.clone_from(&why.help);
        }
        self.errors.push(why);
    }
}

impl Locatable for ObjectUpgrade {
    fn visit_locations(&mut self, visit: &mut LocationVisitor<'_>) {
        for issue in self.errors.iter_mut().chain(&mut self.ratcheted) {
            issue.visit_locations(visit);
        }
        for finding in &mut self.findings {
            visit(&mut finding.query, &mut finding.location);
        }
    }
}

impl ReportItem for ObjectUpgrade {
    fn subject(&self) -> ReportSubject {
        let finding = |finding: &UpgradeFinding| Finding {
            notes: finding.help.iter().map(|help| format!("help: {help}")).collect(),
            ..Finding::new(
                finding.severity,
                finding.code,
                finding.message.clone(),
                finding.location.as_ref(),
            )
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            name: title(&self.kind, &self.namespace, &self.name),
            findings: self.findings.iter().map(finding).collect(),
            outcome: match self.outcome {
                UpgradeOutcome::Ok => "ok",
                UpgradeOutcome::Ratcheted => "ok while its invalid values stay unchanged",
                UpgradeOutcome::Refused => "refused",
            }
            .to_owned(),
            ..ReportSubject::default()
        }
    }
}

/// The results for one document.
pub(super) struct DocumentOutcome {
    pub(super) items: Vec<(ObjectUpgrade, RenderedItem)>,
    /// The objects of unknown kinds.
    pub(super) skipped: Vec<String>,
}

/// Checks objects against two sets of CRDs.
pub(super) struct UpgradeCheck<'a> {
    pub(super) before: &'a Catalog,
    pub(super) after: &'a Catalog,
    pub(super) gates: Gates,
    pub(super) policy: &'a Policy,
}

impl UpgradeCheck<'_> {
    /// Checks all objects of a document.
    pub(super) fn document(
        &self,
        document: &Document<'_>,
        renderer: &Renderer,
    ) -> Result<DocumentOutcome, Problem> {
        let locator = DocumentLocator::new(document);
        let directives = Directives::new(document.text, document.start.line);
        // Only objects are checked here: --from and --to name the CRDs.
        let objects = document.objects()?.into_par_iter().filter(|o| !o.is_definition());
        let checked = objects.map(|object| {
            let checked = self.object(document.file, Some(&locator), &object)?;
            let title = || title(object.kind(), object.namespace(), object.name());
            Ok(checked.ok_or_else(|| format!("{}: {}", document.file, title())))
        });
        let checked: Vec<Result<_, String>> = checked.collect::<Result<_, Problem>>()?;
        let (mut items, mut skipped) = (Vec::with_capacity(checked.len()), Vec::new());
        for checked in checked {
            match checked {
                Ok(item) => items.push(item),
                Err(title) => skipped.push(title),
            }
        }
        locate_all(&locator, &mut items);
        items
            .iter_mut()
            // Locations first: comments that silence findings apply to lines.
            .for_each(|item| item.apply_policy(self.policy, &directives));
        let items = rendered(items, renderer)?;
        Ok(DocumentOutcome { items, skipped })
    }

    /// Checks objects of a cluster.
    pub(super) fn cluster_objects(
        &self,
        file: &Arc<str>,
        objects: Vec<InputObject>,
        renderer: &Renderer,
    ) -> Result<Vec<(ObjectUpgrade, RenderedItem)>, Problem> {
        let checked = objects
            .into_par_iter()
            .map(|object| self.object(file, None, &object));
        let checked: Vec<_> = checked.collect::<Result<_, Problem>>()?;
        let mut items: Vec<ObjectUpgrade> = checked.into_iter().flatten().collect();
        items
            .iter_mut()
            // Objects of a cluster have no text, and so no comments that silence findings.
            .for_each(|item| item.apply_policy(self.policy, &Directives::default()));
        rendered(items, renderer)
    }

    /// Returns the compiled kind of an object in a set of CRDs.
    fn resource<'c>(
        catalog: &'c Catalog,
        object: &InputObject,
    ) -> Result<Option<&'c Arc<Resource>>, Problem> {
        let found = catalog.find(object.api_version(), object.kind());
        found.map(|found| catalog.usable(found)).transpose()
    }

    /// Checks an object. Returns `None` if its kind is unknown before and after.
    fn object(
        &self,
        file: &Arc<str>,
        locator: Option<&DocumentLocator<'_>>,
        object: &InputObject,
    ) -> Result<Option<ObjectUpgrade>, Problem> {
        let before = Self::resource(self.before, object)?;
        let after = Self::resource(self.after, object)?;
        let mut item = ObjectUpgrade::new(file, object);
        let query = |path: &PathBuf| locator.and_then(|locator| locator.path(&object.index, path));
        let field = |name: &str| query(&PathBuf::from(&Path::ROOT.field(name)));
        let Some(after) = after else {
            let (api_version, kind) = (object.api_version(), object.kind());
            let help = match self.after.builtin_kinds().find(api_version, kind) {
                BuiltinLookup::Found(found) => {
                    item.builtin(found, object, &query);
                    return Ok(Some(item));
                }
                BuiltinLookup::OtherRelease(why) => Some(why),
                BuiltinLookup::Unknown => self.after.suggestion(api_version, kind),
            };
            // Neither the old nor the new CRDs have the kind, so the upgrade does not affect it.
            if before.is_none() && help.is_none() {
                return Ok(None);
            }
            let issue = Issue {
                help,
                query: field("kind"),
                ..Issue::undefined(kind, api_version)
            };
            item.refuse("SCT1205", issue);
            return Ok(Some(item));
        };
        let mut stored = object.value.clone();
        apply_request_context(after, &mut stored, Some(&"1".into()));
        // kube-apiserver prunes and defaults a stored object by the new CRD when it reads it, before any write.
        let mut old = stored.clone();
        if let Err(why) = prune_and_default_stored(after, &mut old) {
            item.refuse_write(&AdmissionError::TooLarge(why), &query, &object.value);
            return Ok(Some(item));
        }
        let options = AdmitOptions {
            gates: self.gates,
            ..AdmitOptions::default()
        };
        let request = Request {
            operation: WriteOperation::Update(&old),
            object: with_label_change(stored.clone()),
            findings: &[],
        };
        let outcome = admit(after, request, &options);
        item.note_pruned(&outcome.warnings, &query);
        let issue = |e: &FieldError| Issue::new(e, query(&path_of(e, &object.value)));
        match &outcome.error {
            Some(error) => item.refuse_write(error, &query, &object.value),
            None => {
                // Without an old object, nothing ratchets: these are the errors that the update was spared.
                let flaws = check(after, &old, None, &options).errors;
                for issue in flaws.iter().map(issue) {
                    item.outcome = UpgradeOutcome::Ratcheted;
                    let text = format!(
                        "accepted only while it stays unchanged: {}",
                        issue.field_and_message()
                    );
                    item.add("SCT1202", Severity::Warning, text, issue.query.clone());
                    item.ratcheted.push(issue);
                }
            }
        }
        // The old CRD may be unable to read the object; then its defaults cannot be compared.
        if let Some(before) = before
            && prune_and_default_stored(before, &mut stored).is_ok()
        {
            differences(&stored, &old, Some(&object.value), "", &mut item.defaulted);
        }
        // A pruned field has disappeared, which is already reported.
        let pruned: BTreeSet<&String> = item.pruned.iter().collect();
        item.defaulted.retain(|field| !pruned.contains(field));
        for defaulted in item.defaulted.clone() {
            item.add(
                "SCT1204",
                Severity::Advice,
                format!("{defaulted} has another default"),
                None,
            );
        }
        Ok(Some(item))
    }
}

/// Returns the object after the smallest write, which changes only the metadata. A write without any change is always
/// accepted.
pub(super) fn with_label_change(mut object: Value) -> Value {
    let metadata = object.as_object_mut().and_then(|o| o.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut)
        && let Some(labels) = metadata
            .get_or_insert_with("labels", || Value::Object(Map::new()))
            .as_object_mut()
    {
        labels.insert("scantling/touched", "".into());
    }
    object
}

fn rendered(
    items: Vec<ObjectUpgrade>,
    renderer: &Renderer,
) -> Result<Vec<(ObjectUpgrade, RenderedItem)>, Problem> {
    let render = |item: ObjectUpgrade| {
        let piece = renderer.piece(&item)?;
        Ok((item, piece))
    };
    items.into_iter().map(render).collect()
}

/// The unknown fields among warnings, with their paths.
fn unknown_fields(warnings: &[Warning]) -> impl Iterator<Item = (&scantling_value::Finding, &PathBuf)> {
    warnings.iter().filter_map(|warning| match warning {
        Warning::Finding(finding) => Some((finding, finding.unknown_field()?)),
        Warning::Text(_) => None,
    })
}

/// Collects the fields that two versions of a CRD default differently. A field of the object itself is not defaulted: one
/// of the versions prunes it.
fn differences(a: &Value, b: &Value, sent: Option<&Value>, at: &str, found: &mut Vec<String>) {
    let is_filled = || sent.is_none_or(Value::is_null);
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(name)));
            for name in names {
                let at = if at.is_empty() {
                    name.to_string()
                } else {
                    format!("{at}.{name}")
                };
                let sent = sent.and_then(|sent| sent.get(name));
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differences(a, b, sent, &at, found),
                    _ if sent.is_none_or(Value::is_null) => found.push(at),
                    _ => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                let sent = sent.and_then(|sent| sent.as_array()?.get(n));
                differences(a, b, sent, &format!("{at}[{n}]"), found);
            }
        }
        _ if a == b || !is_filled() => {}
        _ => found.push(at.to_owned()),
    }
}
