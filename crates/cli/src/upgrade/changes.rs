//! What changed between two definitions, and what each change means for those who use them.

use crate::catalog::{Catalog, Entry};
use crate::locate;
use crate::report::{Finding, Item, Level, Subject};
use scantling_cel::ast::{Expr, ExprKind};
use scantling_cel::syntax::{ParseOptions, parse};
use scantling_schema::definition::{Spec, Version};
use scantling_value::{Map, Value};
use serde::Serialize;
use std::sync::Arc;

/// What a change means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Meaning {
    /// All that was accepted still is.
    Safe,
    /// What is stored passes while it is not touched; what is new must comply.
    SafeWithRatcheting,
    /// Clients or stored objects break.
    Breaking,
}

/// A change of a definition.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    version: String,
    path: String,
    what: String,
    verdict: Meaning,
    /// Where that stands in the new definition, as far as it is there.
    #[serde(flatten)]
    place: Option<locate::Place>,
}

impl Change {
    /// The field of a definition that it is about.
    fn field(&self, spec: &Spec) -> String {
        match spec.versions().iter().position(|v| v.name == self.version) {
            Some(n) if self.path.is_empty() => format!("spec.versions[{n}]"),
            Some(n) => format!("spec.versions[{n}].schema.openAPIV3Schema{}", self.path),
            None => "spec".to_owned(),
        }
    }

    /// What changes, after version and path as far as it is about them.
    fn text(&self) -> String {
        let place = format!("{} {}", self.version, self.path);
        match place.trim() {
            "" => self.what.clone(),
            place => format!("{place}: {}", self.what),
        }
    }
}

/// A definition that both sides have, or one of them.
#[derive(Debug, Serialize)]
pub(super) struct Definition {
    name: String,
    verdict: Meaning,
    changes: Vec<Change>,
    #[serde(skip)]
    file: Arc<str>,
}

impl Definition {
    fn new(entry: &Entry, mut changes: Vec<Change>) -> Self {
        let fields: Vec<String> = changes.iter().map(|c| c.field(&entry.definition.spec)).collect();
        for (change, place) in changes.iter_mut().zip(entry.places(&fields)) {
            change.place = place;
        }
        let rank = |m: Meaning| match m {
            Meaning::Safe => 0,
            Meaning::SafeWithRatcheting => 1,
            Meaning::Breaking => 2,
        };
        Definition {
            name: entry.definition.name().to_owned(),
            verdict: changes
                .iter()
                .map(|c| c.verdict)
                .max_by_key(|m| rank(*m))
                .unwrap_or(Meaning::Safe),
            changes,
            file: Arc::clone(&entry.file),
        }
    }

    /// Whether anyone breaks.
    pub(super) fn breaks(&self) -> bool {
        self.verdict == Meaning::Breaking
    }
}

impl Item for Definition {
    fn subject(&self) -> Subject {
        let finding = |c: &Change| {
            let (level, said) = match c.verdict {
                Meaning::Safe => (Level::Advice, "safe"),
                Meaning::SafeWithRatcheting => (Level::Warning, "safe with ratcheting"),
                Meaning::Breaking => (Level::Error, "breaking"),
            };
            Finding {
                level,
                code: "Change".to_owned(),
                text: format!("{} ({said})", c.text()),
                place: c.place.clone(),
                notes: Vec::new(),
            }
        };
        Subject {
            file: Arc::clone(&self.file),
            name: self.name.clone(),
            findings: self.changes.iter().map(finding).collect(),
            outcome: match self.verdict {
                Meaning::Safe => "safe",
                Meaning::SafeWithRatcheting => "safe with ratcheting",
                Meaning::Breaking => "breaking",
            }
            .to_owned(),
            details: Vec::new(),
            body: None,
        }
    }
}

/// Compares all definitions.
pub(super) fn compare(before: &Catalog, after: &Catalog) -> Vec<Definition> {
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
            all.push(Definition::new(new, definition(old, new)));
        }
    }
    for old in before.entries() {
        if named(after, old.definition.name()).is_none() {
            let change = Change {
                version: String::new(),
                path: String::new(),
                what: "the definition is gone".to_owned(),
                verdict: Meaning::Breaking,
                place: None,
            };
            all.push(Definition::new(old, vec![change]));
        }
    }
    all
}

fn definition(old: &Entry, new: &Entry) -> Vec<Change> {
    let (old, new) = (&old.definition.spec, &new.definition.spec);
    let mut changes = Vec::new();
    Place {
        version: "",
        changes: &mut changes,
    }
    .spec(old, new);
    for before in old.versions() {
        let mut at = Place {
            version: &before.name,
            changes: &mut changes,
        };
        let Some(after) = new.version(&before.name) else {
            at.add("", "the version is gone".to_owned(), Meaning::Breaking);
            continue;
        };
        if before.served && !after.served {
            at.add(
                "",
                "the version is no longer served".to_owned(),
                Meaning::Breaking,
            );
        }
        at.subresources((old, before), (new, after));
        let schemas = (
            old.schema_of(before).and_then(|s| s.as_object()),
            new.schema_of(after).and_then(|s| s.as_object()),
        );
        if let (Some(before), Some(after)) = schemas {
            at.schema(before, after, "");
        }
    }
    for after in new.versions().iter().filter(|v| old.version(&v.name).is_none()) {
        let mut at = Place {
            version: &after.name,
            changes: &mut changes,
        };
        at.add("", "the version is new".to_owned(), Meaning::Safe);
    }
    changes
}

struct Place<'a> {
    version: &'a str,
    changes: &'a mut Vec<Change>,
}

impl Place<'_> {
    fn add(&mut self, path: &str, what: String, verdict: Meaning) {
        self.changes.push(Change {
            version: self.version.to_owned(),
            path: path.to_owned(),
            what,
            verdict,
            place: None,
        });
    }

    /// What all versions share.
    fn spec(&mut self, old: &Spec, new: &Spec) {
        let names = [
            ("the kind", &old.names.kind, &new.names.kind),
            ("the plural name", &old.names.plural, &new.names.plural),
            ("the scope", &old.scope, &new.scope),
        ];
        for (what, before, after) in names.into_iter().filter(|(_, a, b)| a != b) {
            let what = format!("{what} changes from {before} to {after}");
            self.add("", what, Meaning::Breaking);
        }
        let stored = |spec: &Spec| spec.storage_version().map(|v| v.name.to_string());
        if let (Some(before), Some(after)) = (stored(old), stored(new))
            && before != after
        {
            let what = format!("objects are stored as {after} instead of {before}");
            self.add("", what, Meaning::Safe);
        }
    }

    /// What is served beside the objects themselves.
    fn subresources(&mut self, old: (&Spec, &Version), new: (&Spec, &Version)) {
        let of = |(spec, version): (&Spec, &Version)| {
            let all = spec.subresources_of(version);
            [
                ("/status", all.is_some_and(|s| s.status)),
                ("/scale", all.is_some_and(|s| s.scale.is_some())),
            ]
        };
        for ((name, before), (_, after)) in of(old).into_iter().zip(of(new)) {
            match (before, after) {
                (true, false) => {
                    self.add("", format!("{name} is no longer served"), Meaning::Breaking);
                }
                // Whoever wrote the status with the rest of the object no longer can.
                (false, true) if name == "/status" => {
                    let what = format!("{name} is served: it alone writes the status now");
                    self.add("", what, Meaning::Breaking);
                }
                (false, true) => self.add("", format!("{name} is served"), Meaning::Safe),
                _ => {}
            }
        }
    }

    fn schema(&mut self, old: &Map, new: &Map, path: &str) {
        let keywords = old.keys().chain(new.keys().filter(|k| !old.contains_key(k)));
        for keyword in keywords {
            let (before, after) = (old.get(keyword), new.get(keyword));
            if before == after {
                continue;
            }
            match keyword.as_str() {
                "description" | "title" | "example" | "externalDocs" => {}
                "properties" => self.properties(before, after, new, path),
                "items" | "additionalProperties" => {
                    let at = format!("{path}.{keyword}");
                    match (
                        before.and_then(Value::as_object),
                        after.and_then(Value::as_object),
                    ) {
                        (Some(old), Some(new)) => self.schema(old, new, &at),
                        _ => self.keyword(keyword, before, after, path),
                    }
                }
                "x-kubernetes-validations" => self.rules(before, after, path),
                _ => self.keyword(keyword, before, after, path),
            }
        }
    }

    fn properties(&mut self, before: Option<&Value>, after: Option<&Value>, new: &Map, path: &str) {
        let none = Map::new();
        let old_fields = before.and_then(Value::as_object).unwrap_or(&none);
        let new_fields = after.and_then(Value::as_object).unwrap_or(&none);
        let kept = new
            .get("x-kubernetes-preserve-unknown-fields")
            .and_then(Value::as_bool)
            == Some(true);
        for (name, field) in old_fields.iter() {
            let at = format!("{path}.properties[{name}]");
            match (field.as_object(), new_fields.get(name).map(Value::as_object)) {
                (Some(old), Some(Some(new))) => self.schema(old, new, &at),
                (_, None) if kept => {
                    self.add(&at, "the field is no longer described".to_owned(), Meaning::Safe);
                }
                _ => self.add(
                    &at,
                    "the field is gone: its values are dropped".to_owned(),
                    Meaning::Breaking,
                ),
            }
        }
        for name in new_fields.keys().filter(|name| !old_fields.contains_key(name)) {
            self.add(
                &format!("{path}.properties[{name}]"),
                "the field is new".to_owned(),
                Meaning::Safe,
            );
        }
    }

    fn rules(&mut self, before: Option<&Value>, after: Option<&Value>, path: &str) {
        let rules = |v: Option<&Value>| -> Vec<String> {
            let list = v.and_then(Value::as_array).unwrap_or_default();
            list.iter()
                .filter_map(|r| Some(r.get("rule")?.as_str()?.to_owned()))
                .collect()
        };
        let (before, after) = (rules(before), rules(after));
        for rule in after.iter().filter(|r| !before.contains(r)) {
            // Rules about changes are not let pass for what is not touched: there is nothing else that they look at.
            let verdict = if compares(rule) {
                Meaning::Breaking
            } else {
                Meaning::SafeWithRatcheting
            };
            self.add(path, format!("the rule `{rule}` is new"), verdict);
        }
        for rule in before.iter().filter(|r| !after.contains(r)) {
            self.add(path, format!("the rule `{rule}` is gone"), Meaning::Safe);
        }
    }

    fn keyword(&mut self, keyword: &str, before: Option<&Value>, after: Option<&Value>, path: &str) {
        let show = |v: Option<&Value>| v.map_or_else(|| "nothing".to_owned(), Value::to_json);
        let what = format!("{keyword} changes from {} to {}", show(before), show(after));
        self.add(path, what, meaning(keyword, before, after));
    }
}

/// Whether a rule looks at the state before an update.
fn compares(rule: &str) -> bool {
    fn mentions(expression: &Expr) -> bool {
        let mut found = matches!(&expression.kind, ExprKind::Ident(name) if name.as_ref() == "oldSelf");
        expression.for_each_child(|child| found = found || mentions(child));
        found
    }
    parse(rule, &ParseOptions::default()).is_ok_and(|ast| mentions(&ast.root))
}

/// What it means that a keyword changes.
fn meaning(keyword: &str, before: Option<&Value>, after: Option<&Value>) -> Meaning {
    let number = |v: Option<&Value>| match v {
        Some(Value::Int(n)) => Some(*n as f64),
        Some(Value::Float(f)) => Some(*f),
        _ => None,
    };
    let on = |v: Option<&Value>| v.and_then(Value::as_bool).unwrap_or(false);
    let list = |v: Option<&Value>| {
        v.and_then(Value::as_array)
            .map(<[Value]>::to_vec)
            .unwrap_or_default()
    };
    let loosened = match keyword {
        "maximum" | "maxLength" | "maxItems" | "maxProperties" => match (number(before), number(after)) {
            (_, None) => true,
            (Some(a), Some(b)) => b >= a,
            (None, Some(_)) => false,
        },
        "minimum" | "minLength" | "minItems" | "minProperties" => match (number(before), number(after)) {
            (_, None) => true,
            (Some(a), Some(b)) => b <= a,
            (None, Some(_)) => false,
        },
        "enum" => {
            after.is_none() || (before.is_some() && list(before).iter().all(|v| list(after).contains(v)))
        }
        "required" => list(after).iter().all(|v| list(before).contains(v)),
        "pattern" | "format" | "multipleOf" | "not" | "allOf" => after.is_none(),
        "anyOf" | "oneOf" => after.is_none(),
        "uniqueItems" | "exclusiveMaximum" | "exclusiveMinimum" => !on(after),
        "nullable" => on(after),
        "default" | "x-kubernetes-preserve-unknown-fields" => return default_or_unknown(keyword, on(after)),
        // Types, list types, map types, keys, embedded resources: what is stored may no longer be readable.
        _ => return Meaning::Breaking,
    };
    if loosened {
        Meaning::Safe
    } else {
        Meaning::SafeWithRatcheting
    }
}

fn default_or_unknown(keyword: &str, on: bool) -> Meaning {
    if keyword == "default" || on {
        Meaning::Safe
    } else {
        Meaning::Breaking
    }
}
