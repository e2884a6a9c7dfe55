//! `scantling upgrade`: what new definitions do to the objects that there are.

mod changes;

use crate::args;
use crate::catalog::{Catalog, OtherObjects, Texts};
use crate::cluster;
use crate::files;
use crate::input::{Document, Object};
use crate::locate::{Place, locate, path_in, path_of};
use crate::problem::{Problem, Verdict};
use crate::render::{Piece, Renderer, Report};
use crate::report::{self, Finding, Issue, Level, Subject, count};
use crate::stream;
use crate::validate::judge::{no_match, settle};
use crate::validate::title;
use rayon::prelude::*;
use scantling_admit::{Operation, Options, Refusal, Request, Resource, admit, check, load};
use scantling_value::{FieldError, Value};
use serde::Serialize;
use std::sync::Arc;

/// Compares the definitions and tries out the objects.
pub(crate) fn run(flags: &args::Upgrade) -> Result<Verdict, Problem> {
    let (from, mut problems) = files::find(&flags.from);
    let (to, more) = files::find(&flags.to);
    problems.extend(more);
    let (sources, more) = files::find(flags.filename.iter().chain(&flags.paths));
    problems.extend(more);
    let cluster = cluster::asked_for(&flags.cluster)?;
    let (mut before, mut after) = (
        Catalog::new(flags.target, Texts::Kept),
        Catalog::new(flags.target, Texts::Kept),
    );
    problems.extend(after.load(&to, OtherObjects::Unexpected));
    match &cluster {
        Some(cluster) if flags.from.is_empty() => {
            let wanted = |name: &str| after.entries().iter().any(|e| e.definition.name() == name);
            problems.extend(before.load_from(cluster, wanted));
        }
        _ => problems.extend(before.load(&from, OtherObjects::Unexpected)),
    }
    let mut report = Report::begin("UpgradeReport", "upgrade", &flags.output);
    report.section("definitions");
    let definitions = changes::compare(&before, &after);
    for definition in &definitions {
        report.tell(definition)?;
    }
    report.section("items");
    let trial = Trial {
        before: &before,
        after: &after,
        flags,
    };
    let renderer = report.renderer();
    let (mut summary, mut unusable) = (Summary::default(), Vec::new());
    let unread = stream::each_document(
        &sources,
        |document| trial.document(document, &renderer),
        |tried| match tried {
            Ok(items) => summary.tell(items, &mut report),
            Err(problem) => unusable.push(problem),
        },
    );
    problems.extend(unread);
    problems.extend(unusable);
    if let Some(cluster) = &cluster {
        problems.extend(cluster.each_page(&before, |file, objects| {
            let tried = objects
                .into_par_iter()
                .map(|object| trial.render(file, None, &object, &renderer));
            let tried: Vec<_> = tried.collect::<Result<_, Problem>>()?;
            summary.tell(tried.into_iter().flatten(), &mut report);
            Ok(())
        }));
    }
    let line = summary.line();
    report.end(flags.output.summary.then_some((line.as_str(), &summary)))?;
    let breaks = summary.refused > 0 || definitions.iter().any(changes::Definition::breaks);
    Ok(Verdict::after(breaks, &problems))
}

#[derive(Debug, Default, Serialize)]
struct Summary {
    ok: usize,
    ratcheted: usize,
    refused: usize,
}

impl Summary {
    fn tell(&mut self, items: impl IntoIterator<Item = (Fate, Piece)>, report: &mut Report) {
        for (fate, piece) in items {
            match fate {
                Fate::Ok => self.ok += 1,
                Fate::Ratcheted => self.ratcheted += 1,
                Fate::Refused => self.refused += 1,
            }
            report.add(piece);
        }
    }

    fn line(&self) -> String {
        let Summary {
            ok,
            ratcheted,
            refused,
        } = self;
        let all = count(ok + ratcheted + refused, "object");
        format!("{all}: {ok} ok, {ratcheted} ratcheted, {refused} refused")
    }
}

/// What becomes of an object on its next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Fate {
    /// It is as good as new.
    Ok,
    /// It passes, as long as what is wrong with it is left as it is.
    Ratcheted,
    /// It is refused.
    Refused,
}

#[derive(Debug, Serialize)]
struct Item {
    file: Arc<str>,
    kind: String,
    namespace: String,
    name: String,
    outcome: Fate,
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
    places: Vec<Option<Place>>,
}

impl report::Item for Item {
    fn subject(&self) -> Subject {
        let note = |level, code: &str, text: String, place| Finding {
            level,
            code: code.to_owned(),
            text,
            place,
            notes: Vec::new(),
        };
        let errors = self.errors.iter().map(Finding::error);
        let ratcheted = self.ratcheted.iter().map(|issue| {
            let text = format!("passes only while it is not touched: {}", issue.text());
            note(Level::Warning, "Ratcheted", text, issue.place.clone())
        });
        let places = self.places.iter().cloned().chain(std::iter::repeat(None));
        let pruned = self.pruned.iter().zip(places).map(|(field, place)| {
            let text = format!("{field} is dropped with the next write");
            note(Level::Warning, "Pruned", text, place)
        });
        let defaulted = self.defaulted.iter().map(|field| {
            let text = format!("{field} is filled in differently");
            note(Level::Advice, "Defaulted", text, None)
        });
        Subject {
            file: Arc::clone(&self.file),
            name: title(&self.kind, &self.namespace, &self.name),
            findings: errors.chain(ratcheted).chain(pruned).chain(defaulted).collect(),
            outcome: match self.outcome {
                Fate::Ok => "ok",
                Fate::Ratcheted => "ok while its flaws are not touched",
                Fate::Refused => "refused",
            }
            .to_owned(),
            details: Vec::new(),
            body: None,
        }
    }
}

struct Trial<'a> {
    before: &'a Catalog,
    after: &'a Catalog,
    flags: &'a args::Upgrade,
}

impl Trial<'_> {
    fn document(&self, document: &Document<'_>, renderer: &Renderer) -> Result<Vec<(Fate, Piece)>, Problem> {
        let objects = document.objects()?;
        let tried = objects
            .into_par_iter()
            .filter(|o| !o.is_definition())
            .map(|object| self.render(document.file, Some(document), &object, renderer));
        let tried: Vec<_> = tried.collect::<Result<_, Problem>>()?;
        Ok(tried.into_iter().flatten().collect())
    }

    fn render(
        &self,
        file: &Arc<str>,
        document: Option<&Document<'_>>,
        object: &Object,
        renderer: &Renderer,
    ) -> Result<Option<(Fate, Piece)>, Problem> {
        let item = self.object(file, document, object)?;
        item.map(|item| Ok((item.outcome, renderer.piece(&item)?)))
            .transpose()
    }

    /// The compiled kind of an object in a set of definitions.
    fn resource<'c>(catalog: &'c Catalog, object: &Object) -> Result<Option<&'c Arc<Resource>>, Problem> {
        let found = catalog.find(object.api_version(), object.kind());
        found.map(|found| catalog.usable(found)).transpose()
    }

    /// Tries an object out; nothing comes of one whose kind neither side defines.
    fn object(
        &self,
        file: &Arc<str>,
        document: Option<&Document<'_>>,
        object: &Object,
    ) -> Result<Option<Item>, Problem> {
        let before = Self::resource(self.before, object)?;
        let after = Self::resource(self.after, object)?;
        let mut item = Item {
            file: Arc::clone(file),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            outcome: Fate::Ok,
            errors: Vec::new(),
            ratcheted: Vec::new(),
            pruned: Vec::new(),
            defaulted: Vec::new(),
            places: Vec::new(),
        };
        let Some(after) = after else {
            if before.is_none() {
                return Ok(None);
            }
            let message = no_match(&item.kind, object.api_version());
            item.outcome = Fate::Refused;
            item.errors.push(Issue::plain("NotFound", message));
            return Ok(Some(item));
        };
        let places = |paths: &[_]| match document {
            Some(document) => locate(document, &object.index, paths),
            None => vec![None; paths.len()],
        };
        let issues = |errors: &[FieldError]| -> Vec<Issue> {
            let paths: Vec<_> = errors.iter().map(|e| path_of(e, &object.value)).collect();
            let issues = errors.iter().zip(places(&paths));
            issues.map(|(e, place)| Issue::new(e, place)).collect()
        };
        let mut stored = object.value.clone();
        settle(after, &mut stored, Some(&"1".into()));
        let mut old = stored.clone();
        load(after, &mut old);
        let options = Options {
            gates: self.flags.target.feature_gates,
            ..Options::default()
        };
        let request = Request {
            operation: Operation::Update(&old),
            object: stored.clone(),
            found_in_text: &[],
        };
        let outcome = admit(after, request, &options);
        item.pruned = outcome
            .warnings
            .iter()
            .filter_map(|w| {
                w.strip_prefix("unknown field \"")?
                    .strip_suffix('"')
                    .map(str::to_owned)
            })
            .collect();
        let pruned: Vec<_> = item.pruned.iter().map(|f| path_in(f, &object.value)).collect();
        item.places = places(&pruned);
        match &outcome.refusal {
            Some(Refusal::Invalid(errors) | Refusal::Immutable(errors)) => {
                item.outcome = Fate::Refused;
                item.errors = issues(errors);
            }
            Some(Refusal::Strict(found)) => item.refuse(&found.join(", ")),
            Some(Refusal::Undecodable(why)) => item.refuse(why),
            None => {
                let flaws = check(after, &old, None, &options).errors;
                if !flaws.is_empty() {
                    item.outcome = Fate::Ratcheted;
                    item.ratcheted = issues(&flaws);
                }
            }
        }
        if let Some(before) = before {
            load(before, &mut stored);
            differences(&stored, &old, "", &mut item.defaulted);
        }
        item.defaulted.retain(|field| !item.pruned.contains(field));
        Ok(Some(item))
    }
}

impl Item {
    fn refuse(&mut self, why: &str) {
        self.outcome = Fate::Refused;
        self.errors.push(Issue::plain("BadRequest", why));
    }
}

/// The paths at which two forms of one object differ.
fn differences(a: &Value, b: &Value, at: &str, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(name)));
            for name in names {
                let at = if at.is_empty() {
                    name.to_string()
                } else {
                    format!("{at}.{name}")
                };
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differences(a, b, &at, found),
                    _ => found.push(at),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (n, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{at}[{n}]"), found);
            }
        }
        _ if a == b => {}
        _ => found.push(at.to_owned()),
    }
}
