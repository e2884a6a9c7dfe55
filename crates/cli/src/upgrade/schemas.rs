//! The changes between two schemas, and the effect of each on objects.
//!
//! A change that accepts more is safe. A change that accepts less is safe with ratcheting wherever an update can leave the
//! value unchanged: every update changes the root and its metadata. Limits and rules of a parent are affected by changes of
//! the values that they see: a default, a null that is kept or dropped.

use super::compatibility::{self, Compatibility, EMBEDDED, Effect, PRESERVE, PresenceChange, is_on};
use super::expressions::{self, Concern};
use crate::rules::SchemaStep;
use scantling_value::{Map, Value};

/// A change of one schema node.
#[derive(Debug)]
pub(super) struct SchemaChange {
    pub(super) code: &'static str,
    pub(super) steps: Vec<SchemaStep>,
    /// The keyword or rule below that path.
    pub(super) member: String,
    pub(super) what: String,
    pub(super) compatibility: Compatibility,
}

/// The treatment of objects, independent of their schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Treatment {
    /// True if updates may keep invalid values unchanged.
    pub(super) ratcheting: bool,
    /// True if undeclared fields are preserved, as in old CRDs.
    pub(super) everything_stays: bool,
}

/// The changes from one schema to another.
pub(super) fn compare(old: &Map, new: &Map, treatment: Treatment) -> Vec<SchemaChange> {
    let mut diff = SchemaDiff {
        treatment,
        above: Vec::new(),
        steps: Vec::new(),
        changes: Vec::new(),
    };
    diff.schema(old, new);
    diff.changes
}

/// The observers of a value: limits and rules at or above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Observer {
    /// Limits and rules above it.
    Above(PresenceChange),
    /// Also those of the value itself.
    Here(PresenceChange),
    /// Only rules, at and above it: its type looks different to them.
    Rules,
}

struct SchemaDiff<'a> {
    treatment: Treatment,
    /// The new schemas from the root to the current one, and the steps between them.
    above: Vec<&'a Map>,
    steps: Vec<SchemaStep>,
    changes: Vec<SchemaChange>,
}

impl<'a> SchemaDiff<'a> {
    fn add(&mut self, code: &'static str, what: String, compatibility: Compatibility) {
        self.add_to(code, String::new(), what, compatibility);
    }

    /// Adds a change of a keyword of the current schema.
    fn add_to(&mut self, code: &'static str, member: String, what: String, compatibility: Compatibility) {
        self.changes.push(SchemaChange {
            code,
            steps: self.steps.clone(),
            member,
            what,
            compatibility,
        });
    }

    fn below(&mut self, step: SchemaStep, old: &Map, new: &'a Map) {
        self.steps.push(step);
        self.schema(old, new);
        self.steps.pop();
    }

    fn schema(&mut self, old: &Map, new: &'a Map) {
        self.above.push(new);
        // Keywords of both schemas, each once: a removed one is a change, too.
        let keywords = old.keys().chain(new.keys().filter(|k| !old.contains_key(k)));
        for keyword in keywords {
            let (before, after) = (old.get(keyword), new.get(keyword));
            if before == after {
                continue;
            }
            match keyword.as_str() {
                // Documentation accepts and refuses nothing.
                "description" | "title" | "example" | "externalDocs" => {}
                "properties" => self.properties(before, after, old, new),
                "items" => self.entries(SchemaStep::Items, keyword, before, after),
                "additionalProperties" => self.entries(SchemaStep::Additional, keyword, before, after),
                "x-kubernetes-validations" => self.rules(before, after),
                _ => self.keyword(keyword, old, new),
            }
        }
        self.above.pop();
    }

    fn entries(&mut self, step: SchemaStep, keyword: &str, before: Option<&Value>, after: Option<&'a Value>) {
        match (
            before.and_then(Value::as_object),
            after.and_then(Value::as_object),
        ) {
            (Some(old), Some(new)) => self.below(step, old, new),
            // Preserved fields may now be pruned.
            _ => self.add_to(
                "SCT1112",
                format!(".{keyword}"),
                changes(keyword, before, after),
                Compatibility::Breaking,
            ),
        }
    }

    fn properties(&mut self, before: Option<&Value>, after: Option<&'a Value>, old: &Map, new: &'a Map) {
        let none = Map::new();
        let fields = |v: Option<&'a Value>| v.and_then(Value::as_object);
        let old_fields = before.and_then(Value::as_object).unwrap_or(&none);
        for (name, field) in old_fields.iter() {
            let kept = fields(after).and_then(|fields| fields.get(name));
            match (field.as_object(), kept.and_then(Value::as_object)) {
                (Some(old), Some(new)) => self.below(SchemaStep::Property(name.to_string()), old, new),
                _ => self.gone(name, field, new),
            }
        }
        for (name, field) in fields(after).into_iter().flat_map(Map::iter) {
            if let (false, Some(field)) = (old_fields.contains_key(name), field.as_object()) {
                self.described(name, field, old);
            }
        }
    }

    /// A field is no longer declared.
    fn gone(&mut self, name: &str, field: &Value, new: &Map) {
        let kept = self.is_implied(name) || self.keeps_unknown(new);
        self.steps.push(SchemaStep::Property(name.to_owned()));
        if kept {
            let default = field.get("default").map_or(Compatibility::Safe, |_| {
                self.seen(Observer::Above(PresenceChange::Ends))
            });
            // The worse of both: the default ends, and rules see an undeclared field.
            let compatibility = default.max(self.seen(Observer::Rules));
            self.add(
                "SCT1101",
                "the field is no longer declared".to_owned(),
                compatibility,
            );
        } else {
            let what = "the field is removed: its values are pruned".to_owned();
            self.add("SCT1101", what, Compatibility::Breaking);
        }
        self.steps.pop();
    }

    /// A field is declared for the first time.
    fn described(&mut self, name: &str, field: &'a Map, old: &Map) {
        let (implied, kept, metadata) = (self.is_implied(name), self.keeps_unknown(old), self.is_metadata());
        self.steps.push(SchemaStep::Property(name.to_owned()));
        if implied {
            // It was implicitly declared, with that type.
            let ty = field.get("type").map(|ty| ("type", ty.clone()));
            self.schema(&ty.into_iter().collect(), field);
        } else if kept {
            // Undeclared fields inside are pruned, or prevent ratcheting. The fields of metadata are known.
            let compatibility = if metadata {
                self.tightened()
            } else {
                Compatibility::Breaking
            };
            let compatibility = compatibility
                .max(self.seen(Observer::Rules))
                .max(self.with_default(field));
            let what = "the field is declared: its values were not validated before".to_owned();
            self.add("SCT1103", what, compatibility);
        } else {
            let compatibility = self.with_default(field);
            self.add("SCT1102", "the field is added".to_owned(), compatibility);
        }
        self.steps.pop();
    }

    /// The effect of a field that gets a default. Rules that read the old value begin to run.
    fn with_default(&self, field: &Map) -> Compatibility {
        match field.get("default") {
            Some(_) if expressions::compare_states(field) => Compatibility::Breaking,
            Some(_) => self.seen(Observer::Above(PresenceChange::Begins)),
            None => Compatibility::Safe,
        }
    }

    /// Returns whether a field exists whatever the current schema declares.
    fn is_implied(&self, name: &str) -> bool {
        matches!(name, "apiVersion" | "kind" | "metadata") && self.is_resource(self.steps.len())
    }

    /// Returns whether the schema at a depth is that of a whole resource.
    fn is_resource(&self, depth: usize) -> bool {
        let embedded = |schema: &&Map| is_on(schema.get(EMBEDDED));
        depth == 0 || self.above.get(depth).is_some_and(embedded)
    }

    /// Returns whether the current schema is the metadata of a resource.
    fn is_metadata(&self) -> bool {
        match self.steps.split_last() {
            Some((SchemaStep::Property(name), above)) => name == "metadata" && self.is_resource(above.len()),
            _ => false,
        }
    }

    /// Returns whether a schema at the current path preserves undeclared fields.
    fn keeps_unknown(&self, schema: &Map) -> bool {
        self.is_metadata() || self.treatment.everything_stays || is_on(schema.get(PRESERVE))
    }

    fn rules(&mut self, before: Option<&Value>, after: Option<&'a Value>) {
        let (before, after) = (compatibility::rules(before), compatibility::rules(after));
        for (n, rule) in after
            .iter()
            .enumerate()
            // A rule whose text, or whose flags for the old value, have changed is a new rule.
            .filter(|(_, rule)| !before.contains(rule))
        {
            let here = self.above.last().copied();
            let compatibility =
                // A rule that compares states runs on every update, so ratcheting does not spare it unless it holds
                // unchanged.
                if !expressions::compares(rule.text) || expressions::holds_unchanged(rule.text, here) {
                    self.tightened()
                } else {
                    Compatibility::Breaking
                };
            let member = format!(".x-kubernetes-validations[{n}]");
            self.add_to(
                "SCT1110",
                member,
                format!("the rule `{}` is added", rule.text),
                compatibility,
            );
        }
        for rule in before.iter().filter(|rule| !after.contains(rule)) {
            // Without the rule, everything that was accepted still is.
            self.add(
                "SCT1111",
                format!("the rule `{}` is removed", rule.text),
                Compatibility::Safe,
            );
        }
    }

    fn keyword(&mut self, keyword: &str, old: &Map, new: &Map) {
        if let Some(effect) = compatibility::effect(keyword, old, new) {
            let compatibility = self.effect(effect);
            let what = changes(keyword, old.get(keyword), new.get(keyword));
            self.add_to(
                compatibility::code(keyword),
                format!(".{keyword}"),
                what,
                compatibility,
            );
        }
    }

    fn effect(&self, effect: Effect) -> Compatibility {
        match effect {
            Effect::Loosens => Compatibility::Safe,
            Effect::Tightens => self.tightened(),
            Effect::Breaks => Compatibility::Breaking,
            Effect::Retypes => self.seen(Observer::Rules),
            Effect::TightensAndRetypes => self.tightened().max(self.seen(Observer::Rules)),
            // A null that was dropped is now kept, so observers see it. In a list it was refused.
            Effect::KeepsNulls => match self.steps.last() {
                Some(SchemaStep::Items) => self.seen(Observer::Rules),
                _ => self.seen(Observer::Here(PresenceChange::Begins)),
            },
            Effect::DropsNulls => self
                .tightened()
                .max(self.seen(Observer::Here(PresenceChange::Ends))),
            Effect::Defaults(presence) => match self.above.last() {
                Some(new) if presence == PresenceChange::Begins => self.with_default(new),
                _ => self.seen(Observer::Above(presence)),
            },
            Effect::Holds => Compatibility::SafeWithRatcheting,
        }
    }

    /// The effect of accepting fewer values at the current path.
    fn tightened(&self) -> Compatibility {
        self.tightened_at(self.steps.len())
    }

    /// The same at a path above, at a depth from the root. kube-apiserver never treats a value with
    /// undeclared fields as unchanged.
    fn tightened_at(&self, depth: usize) -> Compatibility {
        let metadata = |step: &SchemaStep| matches!(step, SchemaStep::Property(name) if name == "metadata");
        // Every write changes `metadata`, and so the root that contains it.
        let touched = depth == 0 || (depth == 1 && self.steps.first().is_some_and(metadata));
        let undescribed = |schema: &&Map| compatibility::holds_undescribed(schema);
        let unknowable = self.treatment.everything_stays || self.above.get(depth).is_some_and(undescribed);
        if self.treatment.ratcheting && !touched && !unknowable {
            Compatibility::SafeWithRatcheting
        } else {
            Compatibility::Breaking
        }
    }

    /// The effect on observers of a changed value or type.
    fn seen(&self, sight: Observer) -> Compatibility {
        // From the root down: each schema above sees the change in its own way.
        let mut worst = self.seen_as_key();
        for (depth, schema) in self.above.iter().enumerate() {
            let below = self.steps.get(depth..).unwrap_or_default();
            let limited = match (sight, below) {
                (Observer::Rules, _) | (Observer::Above(_), []) => false,
                (Observer::Above(presence) | Observer::Here(presence), [step]) => {
                    compatibility::limits_whole(schema)
                        || compatibility::presence_matters(schema, step, presence)
                }
                _ => compatibility::limits_whole(schema),
            };
            if limited {
                worst = worst.max(self.tightened_at(depth));
            }
            // A default satisfies the rules of its own schema, otherwise the CRD is refused.
            if matches!(sight, Observer::Above(_)) && below.is_empty() {
                continue;
            }
            for rule in compatibility::rules(schema.get("x-kubernetes-validations")) {
                worst = worst.max(match expressions::concern(rule.text, below) {
                    Concern::None => Compatibility::Safe,
                    Concern::State => self.tightened_at(depth),
                    Concern::Change => Compatibility::Breaking,
                });
            }
        }
        worst
    }

    /// The keys of a list may no longer distinguish its elements; then none is unchanged.
    fn seen_as_key(&self) -> Compatibility {
        let [.., SchemaStep::Items, SchemaStep::Property(name)] = self.steps.as_slice() else {
            return Compatibility::Safe;
        };
        let list = self.steps.len().checked_sub(2).and_then(|n| self.above.get(n));
        let keys = list.and_then(|list| list.get("x-kubernetes-list-map-keys")?.as_array());
        let is_key = keys.is_some_and(|keys| keys.iter().any(|key| key.as_str() == Some(name)));
        if is_key {
            Compatibility::Breaking
        } else {
            Compatibility::Safe
        }
    }
}

fn changes(keyword: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    let show = |v: Option<&Value>| v.map_or_else(|| "nothing".to_owned(), Value::to_json);
    format!("{keyword} changes from {} to {}", show(before), show(after))
}
