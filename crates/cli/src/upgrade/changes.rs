//! What changed between two definitions, and what each change means for those who use them.

use super::compatibility::{Compatibility, PRESERVE, is_on};
use super::schemas::{self, Treatment};
use crate::catalog::{Catalog, CatalogEntry};
use crate::locate;
use crate::report::{Finding, ReportItem, ReportSubject, Severity};
use scantling_schema::definition::{CrdVersion, Spec};
use scantling_value::{Str, Value};
use serde::Serialize;
use std::sync::Arc;

/// A change of a definition.
#[derive(Debug, Serialize)]
pub(super) struct DefinitionChange {
    version: String,
    path: String,
    what: String,
    verdict: Compatibility,
    /// Where that stands in the new definition, as far as it is there.
    #[serde(flatten)]
    place: Option<locate::Location>,
    /// The field of the definition that it is about, where version and path do not tell.
    #[serde(skip)]
    field: Option<String>,
    /// The keyword or rule of the schema at the path.
    #[serde(skip)]
    member: String,
}

impl DefinitionChange {
    /// The field of a definition that it is about.
    fn field(&self, entry: &CatalogEntry) -> String {
        if let Some(field) = &self.field {
            return field.clone();
        }
        let mut versions = entry.definition.spec.versions().iter();
        match versions.position(|v| v.name == self.version) {
            Some(n) if self.path.is_empty() => format!("spec.versions[{n}]"),
            Some(n) => format!("{}{}{}", entry.schema_field(n), self.path, self.member),
            None => "spec".to_owned(),
        }
    }

    /// What changes, after version and path as far as it is about them.
    fn description(&self) -> String {
        let place = format!("{} {}", self.version, self.path);
        match place.trim() {
            "" => self.what.clone(),
            place => format!("{place}: {}", self.what),
        }
    }
}

/// A definition that both sides have, or one of them.
#[derive(Debug, Serialize)]
pub(super) struct DefinitionDiff {
    name: String,
    verdict: Compatibility,
    changes: Vec<DefinitionChange>,
    #[serde(skip)]
    file: Arc<str>,
}

impl DefinitionDiff {
    fn new(entry: &CatalogEntry, mut changes: Vec<DefinitionChange>) -> Self {
        let fields: Vec<String> = changes.iter().map(|c| c.field(entry)).collect();
        for (change, place) in changes.iter_mut().zip(entry.places(&fields)) {
            change.place = place;
        }
        let verdicts = changes.iter().map(|c| c.verdict);
        DefinitionDiff {
            name: entry.definition.name().to_owned(),
            verdict: verdicts.max().unwrap_or(Compatibility::Safe),
            changes,
            file: Arc::clone(&entry.file),
        }
    }

    /// Whether anyone breaks.
    pub(super) fn breaks(&self) -> bool {
        self.verdict == Compatibility::Breaking
    }
}

impl ReportItem for DefinitionDiff {
    fn subject(&self) -> ReportSubject {
        let finding = |c: &DefinitionChange| Finding {
            level: match c.verdict {
                Compatibility::Safe => Severity::Advice,
                Compatibility::SafeWithRatcheting => Severity::Warning,
                Compatibility::Breaking => Severity::Error,
            },
            code: "DefinitionChange".to_owned(),
            text: format!("{} ({})", c.description(), c.verdict.as_str()),
            place: c.place.clone(),
            notes: Vec::new(),
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            place: None,
            name: self.name.clone(),
            findings: self.changes.iter().map(finding).collect(),
            outcome: self.verdict.as_str().to_owned(),
            details: Vec::new(),
            body: None,
        }
    }
}

/// Compares all definitions.
pub(super) fn compare(before: &Catalog, after: &Catalog) -> Vec<DefinitionDiff> {
    let named = |catalog: &'_ Catalog, name: &str| {
        catalog
            .entries()
            .iter()
            .rposition(|e| e.definition.name() == name)
    };
    let mut all = Vec::new();
    for new in after.entries() {
        let old = named(before, new.definition.name()).and_then(|n| before.entries().get(n));
        if let Some(old) = old {
            let mut changes = ChangeList::default();
            changes.refusals(old, new, after);
            changes.definition(&old.definition.spec, &new.definition.spec, after.ratcheting());
            all.push(DefinitionDiff::new(new, changes.0));
        }
    }
    for old in before.entries() {
        if named(after, old.definition.name()).is_none() {
            let mut changes = ChangeList::default();
            changes.add("", "the definition is gone".to_owned(), Compatibility::Breaking);
            all.push(DefinitionDiff::new(old, changes.0));
        }
    }
    all
}

#[derive(Default)]
struct ChangeList(Vec<DefinitionChange>);

impl ChangeList {
    fn add(&mut self, version: &str, what: String, verdict: Compatibility) {
        self.0.push(DefinitionChange {
            version: version.to_owned(),
            path: String::new(),
            what,
            verdict,
            place: None,
            field: None,
            member: String::new(),
        });
    }

    /// What a cluster does not let the new definition be.
    fn refusals(&mut self, old: &CatalogEntry, new: &CatalogEntry, catalog: &Catalog) {
        for error in catalog.refused_after(new, old) {
            let (field, message) = (error.field(), error.message());
            self.add(
                "",
                format!("a cluster refuses the definition: {field}: {message}"),
                Compatibility::Breaking,
            );
            if let Some(change) = self.0.last_mut() {
                change.field = Some(new.written(field));
            }
        }
    }

    fn definition(&mut self, old: &Spec, new: &Spec, ratcheting: bool) {
        self.shared(old, new);
        let treatment = Treatment {
            ratcheting,
            everything_stays: old.preserves_unknown_fields() && new.preserves_unknown_fields(),
        };
        for before in old.versions() {
            let Some(after) = new.version(&before.name) else {
                self.add(
                    &before.name,
                    "the version is gone".to_owned(),
                    Compatibility::Breaking,
                );
                continue;
            };
            self.version((old, before), (new, after));
            let schemas = (
                old.schema_of(before).and_then(|s| s.as_object()),
                new.schema_of(after).and_then(|s| s.as_object()),
            );
            match schemas {
                (Some(before), Some(after_schema)) => {
                    let changes = schemas::compare(before, after_schema, treatment);
                    self.0.extend(changes.into_iter().map(|change| DefinitionChange {
                        version: after.name.to_string(),
                        path: change.path,
                        what: change.what,
                        verdict: change.compatibility,
                        place: None,
                        field: None,
                        member: change.member,
                    }));
                }
                (None, Some(_)) => self.add(
                    &after.name,
                    "there is a schema".to_owned(),
                    Compatibility::Breaking,
                ),
                (Some(_), None) => {
                    self.add(&after.name, "the schema is gone".to_owned(), Compatibility::Safe)
                }
                (None, None) => {}
            }
        }
        for after in new.versions().iter().filter(|v| old.version(&v.name).is_none()) {
            self.add(&after.name, "the version is new".to_owned(), Compatibility::Safe);
        }
    }

    /// What all versions share.
    fn shared(&mut self, old: &Spec, new: &Spec) {
        let names = [
            ("the kind", &old.names.kind, &new.names.kind),
            ("the kind of lists", &old.names.list_kind, &new.names.list_kind),
            ("the plural name", &old.names.plural, &new.names.plural),
            ("the scope", &old.scope, &new.scope),
        ];
        for (what, before, after) in names.into_iter().filter(|(_, a, b)| a != b) {
            let what = format!("{what} changes from {before} to {after}");
            self.add("", what, Compatibility::Breaking);
        }
        let stored = |spec: &Spec| spec.storage_version().map(|v| v.name.to_string());
        if let (Some(before), Some(after)) = (stored(old), stored(new))
            && before != after
        {
            let what = format!("objects are stored as {after} instead of {before}");
            self.add("", what, Compatibility::Safe);
        }
        match (old.preserves_unknown_fields(), new.preserves_unknown_fields()) {
            (true, false) => {
                let what = "fields that no schema describes are dropped: preserveUnknownFields is off";
                self.add("", what.to_owned(), Compatibility::Breaking);
            }
            (false, true) => {
                let what = "fields that no schema describes stay: preserveUnknownFields is on";
                self.add("", what.to_owned(), Compatibility::Safe);
            }
            _ => {}
        }
    }

    /// What there is of a version beside its schema.
    fn version(&mut self, old: (&Spec, &CrdVersion), new: (&Spec, &CrdVersion)) {
        let (before, after) = (old.1, new.1);
        let name = &after.name;
        match (before.served, after.served) {
            (true, false) => self.add(
                name,
                "the version is no longer served".to_owned(),
                Compatibility::Breaking,
            ),
            (false, true) => self.add(name, "the version is served".to_owned(), Compatibility::Safe),
            _ => {}
        }
        if !before.deprecated && after.deprecated {
            self.add(name, "the version is deprecated".to_owned(), Compatibility::Safe);
        }
        self.subresources(old, new);
        let fields = |(spec, version): (&Spec, &CrdVersion)| spec.selectable_fields_of(version).to_vec();
        let (before, after): (Vec<Str>, Vec<Str>) = (fields(old), fields(new));
        for field in before.iter().filter(|field| !after.contains(field)) {
            let what = format!("{field} can no longer be selected by");
            self.add(name, what, Compatibility::Breaking);
        }
        for field in after.iter().filter(|field| !before.contains(field)) {
            self.add(name, format!("{field} can be selected by"), Compatibility::Safe);
        }
    }

    /// What is served beside the objects themselves.
    fn subresources(&mut self, old: (&Spec, &CrdVersion), new: (&Spec, &CrdVersion)) {
        let name = &new.1.name;
        let of = |(spec, version): (&Spec, &CrdVersion)| spec.subresources_of(version).cloned();
        let (before, after) = (of(old).unwrap_or_default(), of(new).unwrap_or_default());
        match (before.status, after.status) {
            (true, false) => self.add(
                name,
                "/status is no longer served".to_owned(),
                Compatibility::Breaking,
            ),
            // No object has a status yet.
            (false, true) if !may_have_status(old) => {
                self.add(name, "/status is served".to_owned(), Compatibility::Safe);
            }
            // Clients that wrote the status with the rest of the object no longer can.
            (false, true) => {
                let what = "/status is served: it alone writes the status now".to_owned();
                self.add(name, what, Compatibility::Breaking);
            }
            _ => {}
        }
        match (before.scale, after.scale) {
            (Some(_), None) => self.add(
                name,
                "/scale is no longer served".to_owned(),
                Compatibility::Breaking,
            ),
            (None, Some(scale)) => {
                let schema = new.0.schema_of(new.1);
                let paths = [&scale.spec_replicas_path, &scale.status_replicas_path];
                match paths.into_iter().find(|path| !is_count(schema, path)) {
                    None => self.add(name, "/scale is served".to_owned(), Compatibility::Safe),
                    Some(path) => self.add(
                        name,
                        format!(
                            "/scale is served: objects are refused whose {path} is none that a scale may have, and \
                             the schema allows them"
                        ),
                        Compatibility::Breaking,
                    ),
                }
            }
            (Some(before), Some(after)) if before != after => {
                self.add(
                    name,
                    "/scale reads other fields".to_owned(),
                    Compatibility::Breaking,
                );
            }
            _ => {}
        }
    }
}

/// Whether objects of a version may have a status: the schema declares it, or keeps what it does not declare.
fn may_have_status((spec, version): (&Spec, &CrdVersion)) -> bool {
    let Some(schema) = spec.schema_of(version) else {
        return true;
    };
    spec.preserves_unknown_fields()
        || is_on(schema.get(PRESERVE))
        || schema.at(["properties", "status"]).is_some()
}

/// Whether a schema allows nothing at a path (`.spec.replicas`) that a scale may not have: a whole number from zero to
/// the largest of 32 bits.
fn is_count(schema: Option<&Arc<Value>>, path: &str) -> bool {
    let mut steps = path.split('.').filter(|step| !step.is_empty());
    let found = steps.try_fold(schema.map(|s| &**s), |at, step| {
        Some(at?.get("properties")?.get(step))
    });
    let Some(Some(schema)) = found else {
        return false;
    };
    let said = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
    let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_int);
    said("type") == Some("integer")
        && schema.get("nullable").and_then(Value::as_bool) != Some(true)
        && bound("minimum").is_some_and(|n| n >= 0)
        && (said("format") == Some("int32") || bound("maximum").is_some_and(|n| n <= i64::from(i32::MAX)))
}
