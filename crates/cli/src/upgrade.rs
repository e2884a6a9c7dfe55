//! `scantling upgrade`: what new definitions do to the objects that there are.

mod changes;

use crate::args;
use crate::catalog::{Catalog, OtherObjects};
use crate::files::{self, Source};
use crate::input::{self, Document, Object};
use crate::locate::{locate, path_of};
use crate::problem::{Problem, Verdict};
use crate::render;
use crate::report::{Finding, Issue, Level, Report, Subject};
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
    let (mut before, mut after) = (Catalog::new(flags.target), Catalog::new(flags.target));
    problems.extend(before.load(&from, OtherObjects::Unexpected));
    problems.extend(after.load(&to, OtherObjects::Unexpected));
    let definitions = changes::compare(&before, &after);
    let trial = Trial {
        before: &before,
        after: &after,
        flags,
    };
    let tried: Vec<_> = sources.par_iter().map(|source| trial.file(source)).collect();
    let mut items = Vec::new();
    for (found, more) in tried {
        items.extend(found);
        problems.extend(more);
    }
    let report = UpgradeReport {
        kind: "UpgradeReport",
        definitions,
        items,
    };
    render::print(&report, &flags.output)?;
    for problem in &problems {
        problem.print();
    }
    let breaks = report.items.iter().any(|i| i.outcome == Fate::Refused)
        || report.definitions.iter().any(changes::Definition::breaks);
    Ok(if !problems.is_empty() {
        Verdict::Unreadable
    } else if breaks {
        Verdict::Findings
    } else {
        Verdict::Well
    })
}

#[derive(Debug, Serialize)]
struct UpgradeReport {
    kind: &'static str,
    definitions: Vec<changes::Definition>,
    items: Vec<Item>,
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
}

impl Report for UpgradeReport {
    const COMMAND: &'static str = "upgrade";

    fn subjects(&self) -> Vec<Subject> {
        let definitions = self.definitions.iter().map(changes::Definition::subject);
        definitions.chain(self.items.iter().map(Item::subject)).collect()
    }

    fn summary(&self) -> String {
        let count = |fate| self.items.iter().filter(|i| i.outcome == fate).count();
        let (ok, ratcheted, refused) = (count(Fate::Ok), count(Fate::Ratcheted), count(Fate::Refused));
        format!(
            "{} objects: {ok} ok, {ratcheted} ratcheted, {refused} refused",
            self.items.len()
        )
    }
}

impl Item {
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
        let pruned = self.pruned.iter().map(|field| {
            note(
                Level::Warning,
                "Pruned",
                format!("{field} is dropped with the next write"),
                None,
            )
        });
        let defaulted = self.defaulted.iter().map(|field| {
            note(
                Level::Advice,
                "Defaulted",
                format!("{field} is filled in differently"),
                None,
            )
        });
        Subject {
            file: Arc::clone(&self.file),
            name: format!("{} {}/{}", self.kind, self.namespace, self.name),
            findings: errors.chain(ratcheted).chain(pruned).chain(defaulted).collect(),
            outcome: match self.outcome {
                Fate::Ok => "ok",
                Fate::Ratcheted => "ok while its flaws are not touched",
                Fate::Refused => "refused",
            }
            .to_owned(),
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
    fn file(&self, source: &Source) -> (Vec<Item>, Vec<Problem>) {
        let bytes = match source.read() {
            Ok(bytes) => bytes,
            Err(problem) => return (Vec::new(), vec![problem]),
        };
        let (documents, mut problems) = input::documents(&source.name, &bytes);
        let mut items = Vec::new();
        for document in &documents {
            match document.objects(&source.name) {
                Ok(objects) => {
                    for object in objects.into_iter().filter(|o| !o.is_definition()) {
                        match self.object(&source.name, document, &object) {
                            Ok(item) => items.extend(item),
                            Err(problem) => problems.push(problem),
                        }
                    }
                }
                Err(problem) => problems.push(problem),
            }
        }
        (items, problems)
    }

    /// The compiled kind of an object in a set of definitions.
    fn resource<'c>(catalog: &'c Catalog, object: &Object) -> Result<Option<&'c Arc<Resource>>, Problem> {
        let Some(found) = catalog.find(object.api_version(), object.kind()) else {
            return Ok(None);
        };
        let failed = |why| Problem::new(format!("{}: cannot use the definition", found.entry.file), why);
        catalog.resource(found).map(Some).map_err(failed)
    }

    /// Tries an object out; nothing comes of one whose kind neither side defines.
    fn object(
        &self,
        file: &Arc<str>,
        document: &Document<'_>,
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
        };
        let Some(after) = after else {
            if before.is_none() {
                return Ok(None);
            }
            let message = format!(
                "no matches for kind \"{}\" in version \"{}\"",
                item.kind,
                object.api_version()
            );
            item.outcome = Fate::Refused;
            item.errors.push(Issue {
                field: String::new(),
                reason: "NotFound".to_owned(),
                message,
                place: None,
                old: None,
            });
            return Ok(Some(item));
        };
        let issues = |errors: &[FieldError]| -> Vec<Issue> {
            let paths: Vec<_> = errors.iter().map(|e| path_of(e, &object.value)).collect();
            let places = locate(document, object.index, &paths);
            errors
                .iter()
                .zip(places)
                .map(|(e, place)| Issue::new(e, place))
                .collect()
        };
        let mut stored = object.value.clone();
        crate::validate::settle(after, &mut stored, Some(&"1".into()));
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
        self.errors.push(Issue {
            field: String::new(),
            reason: "BadRequest".to_owned(),
            message: why.to_owned(),
            place: None,
            old: None,
        });
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
