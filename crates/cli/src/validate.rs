//! `scantling validate`: what a server would say to objects.

use crate::args;
use crate::catalog::{Catalog, OtherObjects, Stored};
use crate::cost::Measured;
use crate::files::{self, Source};
use crate::input::{self, Document, Object};
use crate::locate::{locate, path_of, value_at};
use crate::problem::{Problem, Verdict, warn};
use crate::render;
use crate::report::{Finding, Issue, Report, Subject};
use rayon::prelude::*;
use scantling_admit::{
    FieldValidation, Identity, Operation, Options, Refusal, Request, Resource, admit, load,
};
use scantling_schema::meta::Scope;
use scantling_value::{FieldError, Map, Value};
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Checks the objects.
pub(crate) fn run(flags: &args::Validate) -> Result<Verdict, Problem> {
    let (sources, mut problems) = files::find(flags.inputs.all());
    let (crds, more) = files::find(&flags.crds);
    problems.extend(more);
    let (olds, more) = files::find(&flags.old);
    problems.extend(more);
    let mut catalog = Catalog::new(flags.target);
    problems.extend(catalog.load(&crds, OtherObjects::Unexpected));
    problems.extend(catalog.load(&sources, OtherObjects::Skipped));
    let (stored, more) = Stored::load(&olds);
    problems.extend(more);

    let validator = Validator {
        stored: (!flags.old.is_empty()).then_some(&stored),
        skip: &flags.skip,
        missing: if flags.ignore_missing_schemas {
            Missing::Skipped
        } else {
            Missing::Reported
        },
        show_object: flags.show_object,
        field_validation: flags.field_validation.into(),
        ..Validator::new(&catalog, flags.target)
    };
    let bar = crate::progress::bar(sources.len());
    let checked: Vec<_> = sources
        .par_iter()
        .map(|source| {
            let result = validator.file(source);
            bar.inc(1);
            result
        })
        .collect();
    bar.finish_and_clear();
    let mut items = Vec::new();
    for (found, more) in checked {
        items.extend(found);
        problems.extend(more);
    }
    for entry in catalog.used() {
        let refused = catalog.refused(entry);
        if let Some(first) = refused.first() {
            let more = match refused.len() {
                1 => String::new(),
                n => format!(" (and {} more, see `scantling lint`)", n - 1),
            };
            let name = entry.definition.name();
            warn(&format!(
                "{}: a cluster would refuse the definition {name}: {first}{more}",
                entry.file
            ));
        }
    }
    let report = ValidationReport {
        kind: "ValidationReport",
        summary: flags.output.summary.then(|| Summary::of(&items)),
        items,
    };
    render::print(&report, &flags.output)?;
    for problem in &problems {
        problem.print();
    }
    Ok(if !problems.is_empty() {
        Verdict::Unreadable
    } else if report.items.iter().all(|item| item.accepted) {
        Verdict::Well
    } else {
        Verdict::Findings
    })
}

#[derive(Debug, Serialize)]
struct ValidationReport {
    kind: &'static str,
    items: Vec<Item>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
}

/// What became of one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    file: Arc<str>,
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    accepted: bool,
    errors: Vec<Issue>,
    warnings: Vec<String>,
    cel_cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Box<RawValue>>,
    #[serde(skip)]
    stored: Option<Value>,
    #[serde(skip)]
    update: bool,
}

#[derive(Debug, Serialize)]
struct Summary {
    accepted: usize,
    refused: usize,
    warnings: usize,
}

impl Summary {
    fn of(items: &[Item]) -> Self {
        let accepted = items.iter().filter(|i| i.accepted).count();
        Summary {
            accepted,
            refused: items.len() - accepted,
            warnings: items.iter().map(|i| i.warnings.len()).sum(),
        }
    }
}

impl Report for ValidationReport {
    const COMMAND: &'static str = "validate";

    fn subjects(&self) -> Vec<Subject> {
        self.items.iter().map(Item::subject).collect()
    }

    fn summary(&self) -> String {
        let Summary {
            accepted,
            refused,
            warnings,
        } = Summary::of(&self.items);
        format!(
            "{} objects: {accepted} accepted, {refused} refused, {warnings} warnings",
            self.items.len()
        )
    }
}

impl Item {
    fn subject(&self) -> Subject {
        let namespace = match self.namespace.as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        let name = match self.name.as_str() {
            "" => "(no name)",
            name => name,
        };
        let errors = self.errors.iter().map(Finding::error);
        let warnings = self.warnings.iter().map(|w| Finding::warning(w));
        let stored = self
            .stored
            .as_ref()
            .map(|v| format!("---\n{}", scantling_value::yaml::encode(v)));
        Subject {
            file: Arc::clone(&self.file),
            name: format!("{} {namespace}{name}", self.kind),
            findings: errors.chain(warnings).collect(),
            outcome: if self.update {
                "update accepted"
            } else {
                "accepted"
            }
            .to_owned(),
            body: stored,
        }
    }
}

struct Validator<'a> {
    catalog: &'a Catalog,
    target: args::Target,
    /// Where updates are asked for.
    stored: Option<&'a Stored>,
    skip: &'a [String],
    missing: Missing,
    show_object: bool,
    field_validation: FieldValidation,
    identity: Identity,
}

/// What becomes of objects whose kind has no definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Reported,
    Skipped,
}

/// What the rules cost that run when objects are created.
pub(crate) fn measure(
    catalog: &Catalog,
    sources: &[Source],
    target: args::Target,
) -> (Vec<Measured>, Vec<Problem>) {
    let validator = Validator {
        missing: Missing::Skipped,
        ..Validator::new(catalog, target)
    };
    let checked: Vec<_> = sources.par_iter().map(|source| validator.file(source)).collect();
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for (items, more) in checked {
        problems.extend(more);
        all.extend(items.into_iter().map(|item| Measured {
            file: item.file,
            kind: item.kind,
            namespace: item.namespace,
            name: item.name,
            cel_cost: item.cel_cost,
        }));
    }
    (all, problems)
}

impl<'a> Validator<'a> {
    /// One that takes every object for a new one.
    fn new(catalog: &'a Catalog, target: args::Target) -> Self {
        Validator {
            catalog,
            target,
            stored: None,
            skip: &[],
            missing: Missing::Reported,
            show_object: false,
            field_validation: FieldValidation::Warn,
            identity: Identity {
                uid: "00000000-0000-0000-0000-000000000000".into(),
                created: "1970-01-01T00:00:00Z".into(),
                suffix: "00000".into(),
            },
        }
    }

    fn file(&self, source: &Source) -> (Vec<Item>, Vec<Problem>) {
        let bytes = match source.read() {
            Ok(bytes) => bytes,
            Err(problem) => return (Vec::new(), vec![problem]),
        };
        let (documents, mut problems) = input::documents(&source.name, &bytes);
        let checked: Vec<_> = documents
            .par_iter()
            .map(|document| self.document(&source.name, document))
            .collect();
        let mut items = Vec::new();
        for result in checked {
            match result {
                Ok(found) => items.extend(found),
                Err(problem) => problems.push(problem),
            }
        }
        (items, problems)
    }

    fn document(&self, file: &Arc<str>, document: &Document<'_>) -> Result<Vec<Item>, Problem> {
        let mut items = Vec::new();
        for object in document.objects(file)? {
            if !self.is_skipped(&object) {
                items.extend(self.object(file, document, object)?);
            }
        }
        Ok(items)
    }

    fn is_skipped(&self, object: &Object) -> bool {
        let (kind, version) = (object.kind(), object.api_version());
        let skipped =
            |s: &String| s == kind || s.strip_suffix(kind).and_then(|s| s.strip_suffix('/')) == Some(version);
        self.skip.iter().any(skipped)
    }

    /// Checks an object; nothing comes of one that is to be skipped.
    fn object(
        &self,
        file: &Arc<str>,
        document: &Document<'_>,
        object: Object,
    ) -> Result<Option<Item>, Problem> {
        let mut item = Item {
            file: Arc::clone(file),
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            accepted: true,
            errors: Vec::new(),
            warnings: Vec::new(),
            cel_cost: 0,
            object: None,
            stored: None,
            update: false,
        };
        if object.is_definition() {
            self.definition(&mut item, document, &object);
            return Ok(Some(item));
        }
        let Some(found) = self.catalog.find(&item.api_version, &item.kind) else {
            if self.missing == Missing::Skipped {
                return Ok(None);
            }
            let text = format!(
                "no matches for kind \"{}\" in version \"{}\"",
                item.kind, item.api_version
            );
            item.refuse_plainly("NotFound", text);
            return Ok(Some(item));
        };
        let resource = self.catalog.resource(found).map_err(|why| {
            let name = found.entry.definition.name();
            Problem::new(
                format!("{}: cannot use the definition {name}", found.entry.file),
                why,
            )
            .hint("`scantling lint` says everything that is wrong with a definition")
        })?;
        if let Some(version) = found.version()
            && !version.served
        {
            item.warnings
                .push(format!("{} {} is not served", item.api_version, item.kind));
        }
        self.judge(&mut item, document, object, resource);
        Ok(Some(item))
    }

    /// A definition among the inputs is checked as one.
    fn definition(&self, item: &mut Item, document: &Document<'_>, object: &Object) {
        let entry = self.catalog.entries().iter().rev();
        let mut entry = entry.filter(|e| *e.file == *item.file && e.definition.name() == item.name);
        match entry.next() {
            Some(entry) => {
                let errors = self.catalog.refused(entry);
                item.refuse(errors, document, object.index, &object.value, None);
            }
            None => item.refuse_plainly("BadRequest", "the definition cannot be read".to_owned()),
        }
    }

    fn judge(&self, item: &mut Item, document: &Document<'_>, object: Object, resource: &Resource) {
        let Object {
            value: sent,
            found_in_text,
            index,
        } = object;
        let mut value = sent.clone();
        let old = self.stored.and_then(|stored| stored.of(&sent)).map(|old| {
            let mut old = old.clone();
            if let Some(members) = old.as_object_mut() {
                members.insert("apiVersion", item.api_version.as_str().into());
            }
            let version = old.at(["metadata", "resourceVersion"]).cloned();
            settle(resource, &mut old, Some(&version.unwrap_or_else(|| "1".into())));
            load(resource, &mut old);
            old
        });
        let version = old
            .as_ref()
            .and_then(|old| old.at(["metadata", "resourceVersion"]));
        settle(resource, &mut value, version);
        item.update = old.is_some();
        let request = Request {
            operation: match &old {
                Some(old) => Operation::Update(old),
                None => Operation::Create(&self.identity),
            },
            object: value,
            found_in_text: &found_in_text,
        };
        let options = Options {
            gates: self.target.feature_gates,
            field_validation: self.field_validation,
            ..Options::default()
        };
        let outcome = admit(resource, request, &options);
        item.warnings.extend(outcome.warnings);
        item.cel_cost = outcome.stats.rule_cost;
        match &outcome.refusal {
            None => {}
            Some(Refusal::Invalid(errors) | Refusal::Immutable(errors)) => {
                item.refuse(errors, document, index, &sent, old.as_ref());
            }
            Some(Refusal::Strict(found)) => {
                item.refuse_undecodable(&format!("strict decoding error: {}", found.join(", ")));
            }
            Some(Refusal::Undecodable(why)) => item.refuse_undecodable(why),
        }
        if self.show_object {
            item.show(outcome.object, &sent);
        }
    }
}

/// Adds what a request says beside the object: the namespace in its path, and which state it is a change of.
pub(crate) fn settle(resource: &Resource, object: &mut Value, version: Option<&Value>) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    let metadata = members.get_or_insert_with("metadata", || Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    if resource.scope == Scope::Namespaced {
        metadata.get_or_insert_with("namespace", || "default".into());
    }
    if let Some(version) = version {
        metadata.insert("resourceVersion", version.clone());
    }
}

impl Item {
    fn refuse(
        &mut self,
        errors: &[FieldError],
        document: &Document<'_>,
        index: Option<usize>,
        object: &Value,
        old: Option<&Value>,
    ) {
        self.accepted = self.accepted && errors.is_empty();
        let paths: Vec<_> = errors.iter().map(|error| path_of(error, object)).collect();
        let places = locate(document, index, &paths);
        for ((error, path), place) in errors.iter().zip(&paths).zip(places) {
            self.errors.push(Issue {
                old: old.and_then(|old| value_at(old, path)).map(Value::to_json),
                ..Issue::new(error, place)
            });
        }
    }

    fn refuse_plainly(&mut self, reason: &str, message: String) {
        self.accepted = false;
        self.errors.push(Issue {
            field: String::new(),
            reason: reason.to_owned(),
            message,
            place: None,
            old: None,
        });
    }

    fn refuse_undecodable(&mut self, why: &str) {
        let (kind, version) = (
            &self.kind,
            self.api_version.rsplit('/').next().unwrap_or_default(),
        );
        let text = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}");
        self.refuse_plainly("BadRequest", text);
    }

    /// Adds the object as it would be stored. Its metadata are those that were sent: the ones that a server adds cannot
    /// be known.
    fn show(&mut self, mut stored: Value, sent: &Value) {
        if let Some(members) = stored.as_object_mut() {
            match sent.get("metadata") {
                Some(metadata) => members.insert("metadata", metadata.clone()),
                None => members.remove("metadata"),
            };
        }
        self.object = RawValue::from_string(stored.to_json()).ok();
        self.stored = Some(stored);
    }
}
