//! What a cluster accepts, and we would do differently.

use crate::locate::Place;
use crate::rules::{self, RULE_LIMIT, Rule, SCHEMA_LIMIT, Step, spell};
use scantling_schema::definition::{Definition, Version};
use scantling_schema::document::Schema;
use scantling_schema::plan::Compiler;
use scantling_schema::prune::{self, Nulls, Unknown};
use scantling_schema::rules::Environments;
use scantling_schema::structural::{Interner, Structural, Type};
use serde::Serialize;
use std::sync::Arc;

/// A piece of advice.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    /// Which piece, for good: see the page of that name.
    pub(super) code: &'static str,
    /// Where in the definition.
    pub(super) field: String,
    /// What to do.
    pub(super) message: String,
    #[serde(flatten)]
    pub(super) place: Option<Place>,
}

/// From this share of a limit on, a rule is near it.
const NEAR: f64 = 0.5;

/// The advice on a definition.
pub(super) fn of(definition: &Definition, environments: &Environments) -> Vec<Advice> {
    let spec = &definition.spec;
    let mut all = Vec::new();
    for (n, version) in spec.versions().iter().enumerate() {
        let structural = spec
            .schema_of(version)
            .and_then(|document| Schema::new(document).structural(&mut Interner::new()).ok());
        if let Some(structural) = structural {
            let mut advisor = Advisor {
                root: format!("spec.versions[{n}].schema.openAPIV3Schema"),
                all: &mut all,
            };
            advisor.costs(&rules::rules(&structural, environments));
            advisor.node(&structural, &mut Vec::new(), UnderRules::No);
            advisor.status(
                spec.subresources_of(version).is_some_and(|s| s.status),
                &structural,
                version,
            );
        }
    }
    all
}

struct Advisor<'a> {
    root: String,
    all: &'a mut Vec<Advice>,
}

/// Whether rules see the values of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnderRules {
    No,
    Yes,
}

impl Advisor<'_> {
    fn add(&mut self, code: &'static str, at: &[Step], message: impl Into<String>) {
        self.all.push(Advice {
            code,
            field: format!("{}{}", self.root, spell(at)),
            message: message.into(),
            place: None,
        });
    }

    fn costs(&mut self, rules: &[Rule]) {
        let share = |cost: u64, limit: u64| cost as f64 / limit as f64;
        for rule in rules {
            let used = share(rule.total, RULE_LIMIT);
            if (NEAR..=1.0).contains(&used) {
                let text = format!(
                    "the rule `{}` is estimated at {:.0}% of its limit",
                    rule.text,
                    used * 100.0
                );
                self.add("SCT0101", &rule.at, text);
            }
            if !rule.has_message {
                let text = format!(
                    "the rule `{}` has no message: users are shown the rule",
                    rule.text
                );
                self.add("SCT0104", &rule.at, text);
            }
        }
        let total = rules.iter().fold(0u64, |sum, r| sum.saturating_add(r.total));
        let used = share(total, SCHEMA_LIMIT);
        if (NEAR..=1.0).contains(&used) {
            let text = format!(
                "all rules together are estimated at {:.0}% of their limit",
                used * 100.0
            );
            self.add("SCT0102", &[], text);
        }
    }

    fn node(&mut self, schema: &Arc<Structural>, at: &mut Vec<Step>, above: UnderRules) {
        let under = if schema.rules.is_empty() {
            above
        } else {
            UnderRules::Yes
        };
        if under == UnderRules::Yes
            && let Some(keyword) = rules::unbounded(schema)
        {
            self.add(
                "SCT0103",
                at,
                format!("rules see this value, and it has no {keyword}"),
            );
        }
        match schema.ty {
            Some(Type::Array) if schema.list_type().is_none() => {
                let text = "the list has no x-kubernetes-list-type: server-side apply takes it as a whole";
                self.add("SCT0201", at, text);
            }
            Some(Type::Object)
                if schema
                    .additional_schema()
                    .is_some_and(|s| s.ty == Some(Type::Object)) =>
            {
                let text = "a map of objects: API conventions advise a list with a key in each element";
                self.add("SCT0302", at, text);
            }
            Some(Type::Boolean) => {
                let text = "a boolean: API conventions advise a string with named values, which can grow";
                self.add("SCT0301", at, text);
            }
            _ => {}
        }
        self.default(schema, at);
        if schema.preserves_unknown_fields() {
            self.add(
                "SCT0401",
                at,
                "fields that the schema does not know are kept, and never checked",
            );
        }
        for (name, property) in &schema.properties {
            self.below(Step::Property(name.to_string()), property, at, under);
        }
        if let Some(items) = &schema.items {
            self.below(Step::Items, items, at, under);
        }
        if let Some(values) = schema.additional_schema() {
            self.below(Step::Additional, values, at, under);
        }
    }

    /// Defaults of which a part is dropped, and those that never apply.
    fn default(&mut self, schema: &Arc<Structural>, at: &[Step]) {
        let Some(default) = &schema.default else {
            return;
        };
        if let Some(Step::Items | Step::Additional) = at.last() {
            let text =
                "a default of list elements or map values never applies: what is absent there has no place";
            self.add("SCT0502", at, text);
        }
        let plan = Compiler::new().compile(schema);
        let options = prune::Options {
            nulls: Nulls::Drop,
            unknown: Unknown::List,
        };
        let mut kept = (*default.0).clone();
        let place = if schema.is_embedded_resource() {
            prune::Place::Resource
        } else {
            prune::Place::Part
        };
        let unknown = prune::prune(plan.root(), &mut kept, place, &options);
        if kept != *default.0 {
            let what = match unknown.as_slice() {
                [] => "its nulls".to_owned(),
                fields => fields.join(", "),
            };
            self.add("SCT0501", at, format!("a part of the default is dropped: {what}"));
        }
    }

    fn below(&mut self, step: Step, schema: &Arc<Structural>, at: &mut Vec<Step>, under: UnderRules) {
        at.push(step);
        self.node(schema, at, under);
        at.pop();
    }

    fn status(&mut self, served: bool, schema: &Structural, version: &Version) {
        if !served && schema.property("status").is_some() {
            let text = format!(
                "version {} has a status but no status subresource: whoever may write the object may write its status",
                version.name
            );
            self.add("SCT0402", &[Step::Property("status".to_owned())], text);
        }
    }
}
