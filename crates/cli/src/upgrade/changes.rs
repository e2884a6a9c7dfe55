//! The changes between two CRDs, and the effect of each.

use super::compatibility::{Compatibility, PRESERVE, is_on};
use super::schemas::{self, Treatment};
use crate::args::FailOn;
use crate::catalog::{Catalog, CatalogEntry};
use crate::locate::Location;
use crate::policy::{Directives, Fingerprint, Policy};
use crate::report::{Finding, ReportItem, ReportSubject, Severity};
use crate::rules::{field_path, schema_path};
use scantling_schema::definition::{CrdVersion, Spec};
use scantling_value::{Str, Value};
use serde::Serialize;
use std::sync::Arc;

/// A change of a CRD.
#[derive(Debug, Serialize)]
pub(super) struct DefinitionChange {
    code: &'static str,
    severity: Severity,
    version: String,
    path: String,
    /// The field of the kind: `spec.rules[].filters[].type`.
    at: String,
    what: String,
    verdict: Compatibility,
    /// The location in the new CRD.
    #[serde(flatten)]
    location: Option<Location>,
    /// The field of the CRD, if version and path do not tell.
    #[serde(skip)]
    field: Option<String>,
    /// The keyword or rule of the schema at the path.
    #[serde(skip)]
    member: String,
}

/// The severity of a change. A changed default is safe for stored objects, but new ones behave differently.
fn severity(code: &str, verdict: Compatibility) -> Severity {
    match verdict {
        Compatibility::Breaking => Severity::Error,
        Compatibility::SafeWithRatcheting => Severity::Warning,
        Compatibility::Safe if code == "SCT1107" => Severity::Warning,
        Compatibility::Safe => Severity::Advice,
    }
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

    /// Returns the change, after version and field if it is about them.
    fn description(&self) -> String {
        let at = format!("{} {}", self.version, self.at);
        match at.trim() {
            "" => self.what.clone(),
            at => format!("{at}: {}", self.what),
        }
    }

    /// Returns the identity of the finding for baselines.
    fn fingerprint(&self, definition: &DefinitionDiff) -> Fingerprint {
        Fingerprint {
            code: self.code.to_owned(),
            file: definition.file.to_string(),
            name: definition.name.clone(),
            at: self.description(),
        }
    }
}

/// The changes of one CRD.
#[derive(Debug, Serialize)]
pub(super) struct DefinitionDiff {
    name: String,
    verdict: Compatibility,
    changes: Vec<DefinitionChange>,
    #[serde(skip)]
    file: Arc<str>,
    #[serde(skip)]
    directives: Directives,
}

impl DefinitionDiff {
    fn new(entry: &CatalogEntry, mut changes: Vec<DefinitionChange>) -> Self {
        let fields: Vec<String> = changes.iter().map(|c| c.field(entry)).collect();
        // The fields of an error name the new CRD, so its text has the locations; a removed CRD has only the old one.
        for (change, location) in changes.iter_mut().zip(entry.locations(&fields)) {
            change.location = location;
        }
        let verdicts = changes.iter().map(|c| c.verdict);
        DefinitionDiff {
            directives: entry.directives(),
            name: entry.definition.name().to_owned(),
            verdict: verdicts.max().unwrap_or(Compatibility::Safe),
            changes,
            file: Arc::clone(&entry.file),
        }
    }

    /// Applies the policy to the changes. The verdict stays: it says what the upgrade does.
    pub(super) fn apply_policy(&mut self, policy: &Policy) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.retain_mut(|change| {
            let at = (&self.directives, change.location.as_ref().map(|at| at.line));
            let fingerprint = || change.fingerprint(self);
            match policy.severity((change.code, &self.file), change.severity, at, fingerprint) {
                Some(severity) => {
                    change.severity = severity;
                    true
                }
                None => false,
            }
        });
        self.changes = changes;
    }

    /// Returns the identities of the reported changes for baselines.
    pub(super) fn fingerprints(&self) -> impl Iterator<Item = Fingerprint> {
        self.changes.iter().map(|change| change.fingerprint(self))
    }

    /// Returns whether there is a change that makes the command fail.
    pub(super) fn fails(&self, fail_on: FailOn) -> bool {
        self.changes
            .iter()
            .any(|change| fail_on.includes(change.severity))
    }
}

impl ReportItem for DefinitionDiff {
    fn subject(&self) -> ReportSubject {
        let finding = |c: &DefinitionChange| {
            let text = format!("{} ({})", c.description(), c.verdict.as_str());
            Finding::new(c.severity, c.code, text, c.location.as_ref())
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            name: self.name.clone(),
            findings: self.changes.iter().map(finding).collect(),
            outcome: self.verdict.as_str().to_owned(),
            ..ReportSubject::default()
        }
    }
}

/// Compares all CRDs.
pub(super) fn compare(before: &Catalog, after: &Catalog) -> Vec<DefinitionDiff> {
    let named = |catalog: &'_ Catalog, name: &str| {
        catalog
            .entries()
            .iter()
            // From the end: of several CRDs of one name, the catalog uses the last.
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
            // A removed CRD has nothing to compare, and its objects are deleted with it.
            changes.breaks("SCT1001", "", "the CRD is removed");
            all.push(DefinitionDiff::new(old, changes.0));
        }
    }
    all
}

#[derive(Default)]
struct ChangeList(Vec<DefinitionChange>);

impl ChangeList {
    fn breaks(&mut self, code: &'static str, version: &str, what: impl Into<String>) {
        self.add(code, version, what.into(), Compatibility::Breaking);
    }

    fn safe(&mut self, code: &'static str, version: &str, what: impl Into<String>) {
        self.add(code, version, what.into(), Compatibility::Safe);
    }

    fn add(&mut self, code: &'static str, version: &str, what: String, verdict: Compatibility) {
        self.0.push(DefinitionChange {
            code,
            severity: severity(code, verdict),
            version: version.to_owned(),
            path: String::new(),
            at: String::new(),
            what,
            verdict,
            location: None,
            field: None,
            member: String::new(),
        });
    }

    /// Adds the errors with which a cluster refuses the new CRD.
    fn refusals(&mut self, old: &CatalogEntry, new: &CatalogEntry, catalog: &Catalog) {
        for error in catalog.refused_after(new, old) {
            let (field, message) = (error.field(), error.message());
            self.breaks(
                "SCT1002",
                "",
                format!("a cluster refuses the CRD: {field}: {message}"),
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
            // Nothing is pruned only if neither CRD prunes.
            everything_stays: old.preserves_unknown_fields() && new.preserves_unknown_fields(),
        };
        for before in old.versions() {
            let Some(after) = new.version(&before.name) else {
                self.breaks("SCT1003", &before.name, "the version is removed");
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
                        path: schema_path(&change.steps),
                        at: field_path(&change.steps),
                        code: change.code,
                        severity: severity(change.code, change.compatibility),
                        what: change.what,
                        verdict: change.compatibility,
                        location: None,
                        field: None,
                        member: change.member,
                    }));
                }
                (None, Some(_)) => self.breaks("SCT1011", &after.name, "a schema is added"),
                (Some(_), None) => self.safe("SCT1011", &after.name, "the schema is removed"),
                (None, None) => {}
            }
        }
        for after in new.versions().iter().filter(|v| old.version(&v.name).is_none()) {
            self.safe("SCT1003", &after.name, "the version is added");
        }
    }

    /// Compares what all versions share.
    fn shared(&mut self, old: &Spec, new: &Spec) {
        let names = [
            ("the kind", &old.names.kind, &new.names.kind),
            ("the kind of lists", &old.names.list_kind, &new.names.list_kind),
            ("the plural name", &old.names.plural, &new.names.plural),
            ("the scope", &old.scope, &new.scope),
        ];
        for (what, before, after) in names.into_iter().filter(|(_, a, b)| a != b) {
            let what = format!("{what} changes from {before} to {after}");
            self.breaks("SCT1005", "", what);
        }
        let stored = |spec: &Spec| spec.storage_version().map(|v| v.name.to_string());
        if let (Some(before), Some(after)) = (stored(old), stored(new))
            && before != after
        {
            let what = format!("objects are stored as {after} instead of {before}");
            self.safe("SCT1006", "", what);
        }
        match (old.preserves_unknown_fields(), new.preserves_unknown_fields()) {
            (true, false) => {
                let what = "fields that no schema declares are pruned: preserveUnknownFields is off";
                self.breaks("SCT1007", "", what);
            }
            (false, true) => {
                let what = "fields that no schema declares are preserved: preserveUnknownFields is on";
                self.safe("SCT1007", "", what);
            }
            _ => {}
        }
    }

    /// Compares versions, except for their schemas.
    fn version(&mut self, old: (&Spec, &CrdVersion), new: (&Spec, &CrdVersion)) {
        let (before, after) = (old.1, new.1);
        let name = &after.name;
        match (before.served, after.served) {
            (true, false) => self.breaks("SCT1003", name, "the version is no longer served"),
            (false, true) => self.safe("SCT1003", name, "the version is served"),
            _ => {}
        }
        if !before.deprecated && after.deprecated {
            self.safe("SCT1004", name, "the version is deprecated");
        }
        self.subresources(old, new);
        // In v1beta1, these may be declared for all versions at once, so the specification resolves them.
        let fields = |(spec, version): (&Spec, &CrdVersion)| spec.selectable_fields_of(version).to_vec();
        let (before, after): (Vec<Str>, Vec<Str>) = (fields(old), fields(new));
        for field in before.iter().filter(|field| !after.contains(field)) {
            let what = format!("{field} is no longer a selectable field");
            self.breaks("SCT1010", name, what);
        }
        for field in after.iter().filter(|field| !before.contains(field)) {
            self.safe("SCT1010", name, format!("{field} is a selectable field"));
        }
    }

    /// Compares subresources.
    fn subresources(&mut self, old: (&Spec, &CrdVersion), new: (&Spec, &CrdVersion)) {
        let name = &new.1.name;
        let of = |(spec, version): (&Spec, &CrdVersion)| spec.subresources_of(version).cloned();
        let (before, after) = (of(old).unwrap_or_default(), of(new).unwrap_or_default());
        match (before.status, after.status) {
            (true, false) => self.breaks("SCT1008", name, "/status is no longer served"),
            // No object can have a status yet.
            (false, true) if !may_have_status(old) => {
                self.safe("SCT1008", name, "/status is served");
            }
            // Clients that wrote the status with the rest of the object no longer can.
            (false, true) => {
                let what = "/status is served: other writes ignore the status".to_owned();
                self.breaks("SCT1008", name, what);
            }
            _ => {}
        }
        match (before.scale, after.scale) {
            (Some(_), None) => self.breaks("SCT1009", name, "/scale is no longer served"),
            (None, Some(scale)) => {
                let schema = new.0.schema_of(new.1);
                let paths = [&scale.spec_replicas_path, &scale.status_replicas_path];
                match paths.into_iter().find(|path| !is_count(schema, path)) {
                    None => self.safe("SCT1009", name, "/scale is served"),
                    Some(path) => {
                        let why = format!("objects are refused whose {path} is not an integer of 32 bits");
                        let what = format!("/scale is served: {why}, which the schema allows");
                        self.breaks("SCT1009", name, what);
                    }
                }
            }
            (Some(before), Some(after)) if before != after => {
                self.breaks("SCT1009", name, "/scale reads other fields");
            }
            _ => {}
        }
    }
}

/// Returns whether objects of a version may have a status: the schema declares it, or keeps what it does not declare.
fn may_have_status((spec, version): (&Spec, &CrdVersion)) -> bool {
    let Some(schema) = spec.schema_of(version) else {
        return true;
    };
    spec.preserves_unknown_fields()
        || is_on(schema.get(PRESERVE))
        || schema.at(["properties", "status"]).is_some()
}

/// Returns whether a schema allows nothing at a path (`.spec.replicas`) that a scale may not have: a whole number from zero to
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
