//! `scantling upgrade`: what new definitions do to the objects that there are.

mod changes;
mod compatibility;
mod expressions;
mod schemas;
#[cfg(test)]
mod tests;

use crate::args;
use crate::catalog::{Catalog, OtherObjects, Texts};
use crate::cluster;
use crate::files;
use crate::input::{Document, InputObject};
use crate::locate::{DocumentLocator, Location, Spots, path_in, path_of, place_all};
use crate::problem::{ExitStatus, Problem, note};
use crate::render::{RenderedItem, Renderer, Report};
use crate::report::{Finding, Issue, ReportItem, ReportSubject, Severity, count};
use crate::stream;
use crate::validate::title;
use crate::validate::validator::apply_request_context;
use rayon::prelude::*;
use scantling_admit::{
    AdmissionError, AdmitOptions, Request, Resource, WriteOperation, admit, check, prune_and_default_stored,
};
use scantling_value::{FieldError, Map, Path, PathBuf, Value};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Compares the definitions and tries out the objects.
pub(crate) fn run(flags: &args::Upgrade) -> Result<ExitStatus, Problem> {
    let (from, mut problems) = files::find(&flags.from, flags.limits);
    let (to, more) = files::find(&flags.to, flags.limits);
    problems.extend(more);
    let (sources, more) = files::find(flags.filename.iter().chain(&flags.paths), flags.limits);
    problems.extend(more);
    let cluster = cluster::asked_for(&flags.cluster)?;
    let (mut before, mut after) = (
        Catalog::new(flags.target, Texts::Kept),
        Catalog::new(flags.target, Texts::Kept),
    );
    problems.extend(after.load(&to, OtherObjects::Listed));
    match &cluster {
        Some(cluster) if flags.from.is_empty() => {
            let wanted = |name: &str| after.entries().iter().any(|e| e.definition.name() == name);
            problems.extend(before.load_from(cluster, wanted));
        }
        _ => problems.extend(before.load(&from, OtherObjects::Listed)),
    }
    let mut report = Report::begin("UpgradeReport", "upgrade", &flags.output);
    report.section("definitions");
    let definitions = changes::compare(&before, &after);
    for definition in &definitions {
        report.write_item(definition)?;
    }
    report.section("items");
    let check = UpgradeCheck {
        before: &before,
        after: &after,
        flags,
    };
    let renderer = report.renderer();
    let (mut summary, mut unusable, mut skipped) = (UpgradeSummary::default(), Vec::new(), Vec::new());
    let unread = stream::each_document(
        &sources,
        |document| check.document(document, &renderer),
        |tried| match tried {
            Ok(tried) => {
                summary.record(tried.items, &mut report);
                summary.skipped += tried.skipped.len();
                if flags.output.verbose {
                    skipped.extend(tried.skipped);
                }
            }
            Err(problem) => unusable.push(problem),
        },
    );
    problems.extend(unread);
    problems.extend(unusable);
    if let Some(cluster) = &cluster {
        problems.extend(cluster.each_page(&before, |file, objects| {
            let tried = objects
                .into_par_iter()
                .map(|object| check.object(file, None, &object));
            let tried: Vec<_> = tried.collect::<Result<_, Problem>>()?;
            let items = tried.into_iter().flatten().map(|(item, _)| item);
            summary.record(rendered(items, &renderer)?, &mut report);
            Ok(())
        }));
    }
    report.write_problems(&problems)?;
    let line = summary.line();
    report.end(flags.output.summary.then_some((line.as_str(), &summary)))?;
    if flags.output.verbose {
        before.note_skipped();
        after.note_skipped();
        skipped
            .iter()
            .for_each(|object| note(&format!("{object}: skipped: neither side defines its kind")));
    }
    let breaks = summary.refused > 0 || definitions.iter().any(changes::DefinitionDiff::breaks);
    Ok(ExitStatus::after(breaks, &problems))
}

#[derive(Debug, Default, Serialize)]
struct UpgradeSummary {
    ok: usize,
    ratcheted: usize,
    refused: usize,
    /// Objects of kinds that neither side defines.
    skipped: usize,
}

impl UpgradeSummary {
    fn record(
        &mut self,
        items: impl IntoIterator<Item = (UpgradeOutcome, RenderedItem)>,
        report: &mut Report,
    ) {
        for (fate, piece) in items {
            match fate {
                UpgradeOutcome::Ok => self.ok += 1,
                UpgradeOutcome::Ratcheted => self.ratcheted += 1,
                UpgradeOutcome::Refused => self.refused += 1,
            }
            report.add(piece);
        }
    }

    fn line(&self) -> String {
        let UpgradeSummary {
            ok,
            ratcheted,
            refused,
            skipped,
        } = self;
        let all = count(ok + ratcheted + refused, "object");
        let skipped = match skipped {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        format!("{all}: {ok} ok, {ratcheted} ratcheted, {refused} refused{skipped}")
    }
}

/// What becomes of an object on its next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum UpgradeOutcome {
    /// It is as good as new.
    Ok,
    /// It passes, as long as what is wrong with it is left as it is.
    Ratcheted,
    /// It is refused.
    Refused,
}

#[derive(Debug, Serialize)]
struct ObjectUpgrade {
    file: Arc<str>,
    kind: String,
    namespace: String,
    name: String,
    outcome: UpgradeOutcome,
    /// Why the next write is refused.
    errors: Vec<Issue>,
    /// What is wrong, but let pass while it is not touched.
    ratcheted: Vec<Issue>,
    /// Fields that the new definition does not know: they go with the next write.
    pruned: Vec<String>,
    /// Fields that the two definitions fill in differently.
    defaulted: Vec<String>,
    /// Where those that go stand.
    #[serde(skip)]
    places: Vec<Option<Location>>,
}

impl ReportItem for ObjectUpgrade {
    fn subject(&self) -> ReportSubject {
        let note = |level, code: &str, text: String, place| Finding {
            level,
            code: code.to_owned(),
            text,
            place,
            notes: Vec::new(),
        };
        let errors = self.errors.iter().map(Finding::error);
        let ratcheted = self.ratcheted.iter().map(|issue| {
            let text = format!(
                "passes only while it is not touched: {}",
                issue.field_and_message()
            );
            note(Severity::Warning, "Ratcheted", text, issue.place.clone())
        });
        let places = self.places.iter().cloned().chain(std::iter::repeat(None));
        let pruned = self.pruned.iter().zip(places).map(|(field, place)| {
            let text = format!("{field} is dropped with the next write");
            note(Severity::Warning, "Pruned", text, place)
        });
        let defaulted = self.defaulted.iter().map(|field| {
            let text = format!("{field} is filled in differently");
            note(Severity::Advice, "Defaulted", text, None)
        });
        ReportSubject {
            file: Arc::clone(&self.file),
            place: None,
            name: title(&self.kind, &self.namespace, &self.name),
            findings: errors.chain(ratcheted).chain(pruned).chain(defaulted).collect(),
            outcome: match self.outcome {
                UpgradeOutcome::Ok => "ok",
                UpgradeOutcome::Ratcheted => "ok while its flaws are not touched",
                UpgradeOutcome::Refused => "refused",
            }
            .to_owned(),
            details: Vec::new(),
            body: None,
        }
    }
}

/// The results for one document.
struct DocumentOutcome {
    items: Vec<(UpgradeOutcome, RenderedItem)>,
    /// The objects of kinds that neither side defines.
    skipped: Vec<String>,
}

struct UpgradeCheck<'a> {
    before: &'a Catalog,
    after: &'a Catalog,
    flags: &'a args::Upgrade,
}

impl UpgradeCheck<'_> {
    /// Tries all objects of a document. Those of kinds that neither side defines are named beside the results.
    fn document(&self, document: &Document<'_>, renderer: &Renderer) -> Result<DocumentOutcome, Problem> {
        let sent = DocumentLocator::new(document);
        let objects = document.objects()?.into_par_iter().filter(|o| !o.is_definition());
        let tried = objects.map(|object| {
            let tried = self.object(document.file, Some(&sent), &object)?;
            let title = || title(object.kind(), object.namespace(), object.name());
            Ok(tried.ok_or_else(|| format!("{}: {}", document.file, title())))
        });
        let tried: Vec<Result<_, String>> = tried.collect::<Result<_, Problem>>()?;
        let (mut items, mut skipped) = (Vec::with_capacity(tried.len()), Vec::new());
        for tried in tried {
            match tried {
                Ok(item) => items.push(item),
                Err(title) => skipped.push(title),
            }
        }
        let items = rendered(place_all(&sent, items, ObjectUpgrade::placed), renderer)?;
        Ok(DocumentOutcome { items, skipped })
    }

    /// The compiled kind of an object in a set of definitions.
    fn resource<'c>(
        catalog: &'c Catalog,
        object: &InputObject,
    ) -> Result<Option<&'c Arc<Resource>>, Problem> {
        let found = catalog.find(object.api_version(), object.kind());
        found.map(|found| catalog.usable(found)).transpose()
    }

    /// Tries an object out, and says which places are to be looked up: of errors, of what is let pass and of what
    /// goes. Nothing comes of an object whose kind neither side defines.
    fn object(
        &self,
        file: &Arc<str>,
        sent: Option<&DocumentLocator<'_>>,
        object: &InputObject,
    ) -> Result<Option<(ObjectUpgrade, Spots)>, Problem> {
        let before = Self::resource(self.before, object)?;
        let after = Self::resource(self.after, object)?;
        let mut item = ObjectUpgrade {
            file: Arc::clone(file),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            outcome: UpgradeOutcome::Ok,
            errors: Vec::new(),
            ratcheted: Vec::new(),
            pruned: Vec::new(),
            defaulted: Vec::new(),
            places: Vec::new(),
        };
        let spot = |path: &PathBuf| sent.and_then(|sent| sent.spot(&object.index, path));
        let field = |name: &str| spot(&PathBuf::from(&Path::ROOT.field(name)));
        let Some(after) = after else {
            let help = self.after.suggestion(object.api_version(), object.kind());
            if before.is_none() && help.is_none() {
                return Ok(None);
            }
            item.refuse(Issue {
                help,
                ..Issue::undefined(object.kind(), object.api_version())
            });
            return Ok(Some((item, [vec![field("kind")], Vec::new(), Vec::new()])));
        };
        let mut stored = object.value.clone();
        apply_request_context(after, &mut stored, Some(&"1".into()));
        let mut old = stored.clone();
        if let Err(why) = prune_and_default_stored(after, &mut old) {
            item.refuse(Issue::plain("RequestEntityTooLarge", why.to_string()));
            return Ok(Some((item, [vec![field("")], Vec::new(), Vec::new()])));
        }
        let options = AdmitOptions {
            gates: self.flags.target.feature_gates,
            ..AdmitOptions::default()
        };
        let request = Request {
            operation: WriteOperation::Update(&old),
            object: touched(stored.clone()),
            findings: &[],
        };
        let outcome = admit(after, request, &options);
        let unknown = |w: &String| {
            w.strip_prefix("unknown field \"")?
                .strip_suffix('"')
                .map(str::to_owned)
        };
        item.pruned = outcome.warnings.iter().filter_map(unknown).collect();
        let mut spots = Spots::default();
        let [errors, ratcheted, pruned] = &mut spots;
        pruned.extend(item.pruned.iter().map(|f| spot(&path_in(f, &object.value))));
        let issues = |found: &[FieldError], spots: &mut Vec<_>| -> Vec<Issue> {
            spots.extend(found.iter().map(|e| spot(&path_of(e, &object.value))));
            found.iter().map(|e| Issue::new(e, None)).collect()
        };
        match &outcome.error {
            Some(AdmissionError::Invalid(found) | AdmissionError::Immutable(found)) => {
                item.outcome = UpgradeOutcome::Refused;
                item.errors = issues(found, errors);
            }
            Some(AdmissionError::Strict(found)) => {
                item.refuse(Issue::plain("BadRequest", found.join(", ")));
                errors.push(field(""));
            }
            Some(AdmissionError::Undecodable(why)) => {
                item.refuse(Issue::plain("BadRequest", why.clone()));
                errors.push(field(""));
            }
            Some(AdmissionError::TooLarge(why)) => {
                item.refuse(Issue::plain("RequestEntityTooLarge", why.to_string()));
                errors.push(field(""));
            }
            Some(AdmissionError::Internal(why)) => {
                item.refuse(Issue::plain("InternalError", why.clone()));
                errors.push(field(""));
            }
            None => {
                let flaws = check(after, &old, None, &options).errors;
                if !flaws.is_empty() {
                    item.outcome = UpgradeOutcome::Ratcheted;
                    item.ratcheted = issues(&flaws, ratcheted);
                }
            }
        }
        if let Some(before) = before
            && prune_and_default_stored(before, &mut stored).is_ok()
        {
            differences(&stored, &old, Some(&object.value), "", &mut item.defaulted);
        }
        let pruned: BTreeSet<&String> = item.pruned.iter().collect();
        item.defaulted.retain(|field| !pruned.contains(field));
        Ok(Some((item, spots)))
    }
}

impl ObjectUpgrade {
    fn refuse(&mut self, why: Issue) {
        self.outcome = UpgradeOutcome::Refused;
        self.errors.push(why);
    }

    /// Takes the places of errors, of what is let pass and of what goes.
    fn placed(&mut self, [errors, ratcheted, pruned]: [Vec<Option<Location>>; 3]) {
        let issues = self.errors.iter_mut().zip(errors);
        for (issue, place) in issues.chain(self.ratcheted.iter_mut().zip(ratcheted)) {
            issue.place = place;
        }
        self.places = pruned;
    }
}

/// An object as the smallest write makes it: nothing but its metadata changes. One that changed nothing at all would
/// be let pass whatever is wrong with the object, and would not be a write.
fn touched(mut object: Value) -> Value {
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
    items: impl IntoIterator<Item = ObjectUpgrade>,
    renderer: &Renderer,
) -> Result<Vec<(UpgradeOutcome, RenderedItem)>, Problem> {
    let render = |item: ObjectUpgrade| Ok((item.outcome, renderer.piece(&item)?));
    items.into_iter().map(render).collect()
}

/// The paths at which two versions of a CRD fill in an object differently. A field that the object has itself is not
/// filled in: one of the versions drops it.
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
