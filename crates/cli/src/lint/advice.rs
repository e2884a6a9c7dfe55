//! Advice on CRDs that a cluster accepts.

mod keywords;
mod rules;
mod versions;

use crate::catalog::CatalogEntry;
use crate::locate::{DocumentLocator, Location, LocationQuery, above};
use crate::report::Severity;
use crate::rules::{
    Bound, EstimatedRule, RULE_LIMIT, SCHEMA_LIMIT, Saving, SchemaStep, field_path, schema_path,
};
use scantling_schema::definition::CrdVersion;
use scantling_schema::document::Schema;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::prune::{self, NullPolicy, UnknownFields};
use scantling_schema::rules::Environments;
use scantling_schema::structural::{Interner, Mutability, Structural, Type};
use scantling_value::{Finding, PathBuf, Segment};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::Arc;

/// A piece of advice.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    pub(super) code: &'static str,
    pub(super) severity: Severity,
    /// The field of the CRD.
    pub(super) field: String,
    /// The version of the kind, if the advice is about one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) version: String,
    /// The field of the kind: `spec.rules[].filters[].type`.
    pub(super) path: String,
    pub(super) message: String,
    #[serde(flatten)]
    pub(super) location: Option<Location>,
    #[serde(skip)]
    pub(super) query: Option<LocationQuery>,
}

/// From this share of a limit on, a rule is near it.
const NEAR: f64 = 0.5;

/// A bound is advised if it lowers the estimated cost by this much: a hundredth of a rule's limit.
const WORTH_BOUNDING: u64 = RULE_LIMIT / 100;

/// Returns the advice on a CRD. `locator` and `index` name its text.
pub(super) fn advice(
    entry: &CatalogEntry,
    environments: &Environments,
    locator: &DocumentLocator<'_>,
    index: &[usize],
) -> Vec<Advice> {
    let spec = &entry.definition.spec;
    let mut all: Vec<Advice> = entry
        .unknown
        .iter()
        .filter_map(|finding| behind_a_gate(finding.unknown_field()?, locator, index))
        .collect();
    let mut interner = Interner::new();
    let schemas: Vec<_> = spec
        .versions()
        .iter()
        .map(|version| {
            let document = spec.schema_of(version)?;
            let schema = Schema::new(document).structural(&mut interner).ok()?;
            Some((version, schema))
        })
        .collect();
    let converts = spec
        .conversion
        .as_ref()
        .is_some_and(|c| &*c.strategy == "Webhook");
    // Created with the first default, and shared by all versions.
    let mut compiler = None;
    for (n, schema) in schemas.iter().enumerate() {
        let Some((version, schema)) = schema else {
            continue;
        };
        let mut advisor = Advisor {
            root: entry.schema_field(n),
            root_segments: above(index).chain(entry.schema_segments(n)).collect(),
            version: version.name.to_string(),
            all: &mut all,
            compiler: &mut compiler,
        };
        let rules = crate::rules::rules(schema, environments);
        advisor.costs(&rules);
        advisor.bounds(schema, &rules, environments);
        advisor.node(schema, &mut Vec::new());
        advisor.status(
            spec.subresources_of(version).is_some_and(|s| s.status),
            schema,
            version,
        );
        // A webhook may convert any field, so nothing is known to be lost.
        for (other, others) in schemas.iter().flatten().filter(|_| !converts && version.served) {
            for (at, text) in versions::lost(version, schema, other, others) {
                advisor.add("SCT0601", &at, text);
            }
        }
    }
    all
}

/// Returns the advice on an extension of Scantling whose feature gate is off.
fn behind_a_gate(field: &PathBuf, locator: &DocumentLocator<'_>, index: &[usize]) -> Option<Advice> {
    let Segment::Field(extension) = field.segments().last()? else {
        return None;
    };
    let gate = match extension {
        "appliesOnCreate" => "CustomResourceRulesOnCreate",
        "x-kubernetes-unions" => "CustomResourceUnions",
        _ if Mutability::ALL.iter().any(|m| m.keyword() == extension) => "CustomResourceImmutability",
        _ => return None,
    };
    Some(Advice {
        code: "SCT0403",
        severity: Severity::Advice,
        field: field.to_string(),
        version: String::new(),
        path: field.to_string(),
        message: format!(
            "a Kubernetes cluster ignores this field; `scantling compile` turns it into rules that any cluster enforces, and \
             --feature-gates {gate}=true makes Scantling enforce it"
        ),
        location: None,
        query: locator.path(index, field),
    })
}

struct Advisor<'a> {
    /// The field of the schema in the CRD, and the path to it in the document.
    root: String,
    root_segments: Vec<Segment<'static>>,
    version: String,
    all: &'a mut Vec<Advice>,
    /// Compiles the schemas of defaults. Most CRDs have none, and creating a compiler takes as long as some of them.
    compiler: &'a mut Option<PlanCompiler>,
}

impl Advisor<'_> {
    fn add(&mut self, code: &'static str, at: &[SchemaStep], message: impl Into<String>) {
        self.push(code, at, None, message);
    }

    fn add_on_rule(
        &mut self,
        code: &'static str,
        at: &[SchemaStep],
        index: usize,
        message: impl Into<String>,
    ) {
        self.push(code, at, Some(index), message);
    }

    fn push(
        &mut self,
        code: &'static str,
        at: &[SchemaStep],
        rule: Option<usize>,
        message: impl Into<String>,
    ) {
        let mut field = self.root.clone() + &schema_path(at);
        let mut segments = self.root_segments.clone();
        for step in at {
            match step {
                SchemaStep::Property(name) => {
                    segments.extend([Segment::Field("properties"), Segment::Field(name)]);
                }
                SchemaStep::Items => segments.push(Segment::Field("items")),
                SchemaStep::Additional => segments.push(Segment::Field("additionalProperties")),
            }
        }
        if let Some(n) = rule {
            field.push_str(&format!(".x-kubernetes-validations[{n}].rule"));
            let rule = [
                Segment::Field("x-kubernetes-validations"),
                Segment::Index(n),
                Segment::Field("rule"),
            ];
            segments.extend(rule);
        }
        let default = crate::codes::find(code).and_then(|code| code.severity);
        self.all.push(Advice {
            code,
            severity: default.unwrap_or(Severity::Advice),
            field,
            version: self.version.clone(),
            path: field_path(at),
            // The severity of each code is defined in one place.
            message: message.into(),
            location: None,
            query: Some(LocationQuery::Path(segments.into_iter().collect())),
        });
    }

    fn costs(&mut self, rules: &[EstimatedRule]) {
        let share = |cost: u64, limit: u64| cost as f64 / limit as f64;
        for rule in rules {
            let used = share(rule.total, RULE_LIMIT);
            // Above the limit, the cluster refuses the rule, which is an error and not advice.
            if (NEAR..=1.0).contains(&used) {
                let text = format!(
                    "the rule `{}` is estimated at {:.0}% of its limit",
                    rule.text,
                    used * 100.0
                );
                self.add_on_rule("SCT0101", &rule.at, rule.index, text);
            }
            if !rule.has_message {
                let text = format!(
                    "the rule `{}` has no message: users see the expression",
                    rule.text
                );
                self.add_on_rule("SCT0104", &rule.at, rule.index, text);
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

    /// Advice on missing bounds, the largest saving first.
    fn bounds(&mut self, schema: &Arc<Structural>, rules: &[EstimatedRule], environments: &Environments) {
        let mut all: Vec<Saving> = Vec::new();
        for rule in rules {
            for saving in crate::rules::savings(schema, rule, environments, WORTH_BOUNDING) {
                match all.iter_mut().find(|other| other.bound == saving.bound) {
                    Some(other) => other.saved = other.saved.saturating_add(saving.saved),
                    None => all.push(saving),
                }
            }
        }
        // The order of the rules says nothing about what is worth fixing first.
        all.sort_by_key(|saving| Reverse(saving.saved));
        for Saving { bound, value, saved } in all {
            let Bound { at, keyword, .. } = bound;
            let share = match saved / (RULE_LIMIT / 100) {
                percent @ ..=10_000 => format!("{percent}%"),
                _ => "more than 100 times".to_owned(),
            };
            let text = format!(
                "no {keyword}: a bound of {value} lowers the estimated cost of rules by {saved} ({share} of a rule's limit)"
            );
            self.add("SCT0103", &at, text);
        }
    }

    /// Adds the advice about a schema and everything below it.
    fn node(&mut self, schema: &Arc<Structural>, at: &mut Vec<SchemaStep>) {
        for (n, rule) in schema.rules.iter().enumerate() {
            let is_resource = at.is_empty() || schema.is_embedded_resource();
            for (code, text) in rules::mistakes(&rule.rule, schema, is_resource) {
                self.add_on_rule(code, at, n, text);
            }
        }
        match schema.ty {
            Some(Type::Array) if is_unkeyed_conditions(schema, at) => {
                let text = "conditions are not a list of type map with the key `type`: each apply replaces all of them";
                self.add("SCT0202", at, text);
            }
            Some(Type::Array) if schema.list_type().is_none() => {
                let text = "the list has no x-kubernetes-list-type: server-side apply replaces it as a whole";
                self.add("SCT0201", at, text);
            }
            Some(Type::Object)
                if schema
                    .additional_schema()
                    .is_some_and(|s| s.ty == Some(Type::Object)) =>
            {
                let text = "a map of objects: the API conventions prefer a list with a key in each element";
                self.add("SCT0302", at, text);
            }
            Some(Type::Boolean) => {
                let text = "a boolean: the API conventions prefer a string with named values, to which more can be added";
                self.add("SCT0301", at, text);
            }
            Some(Type::Number) => {
                let text = "a floating-point number: the API conventions prefer an integer, or a quantity in a string";
                self.add("SCT0303", at, text);
            }
            _ => {}
        }
        if schema.nullable {
            let text = "the field is nullable: typed clients cannot tell null from an absent field";
            self.add("SCT0306", at, text);
        }
        self.default(schema, at);
        if schema.preserves_unknown_fields() {
            self.add("SCT0401", at, "unknown fields are preserved and never validated");
        }
        for (name, property) in &schema.properties {
            at.push(SchemaStep::Property(name.to_string()));
            self.field(schema, name, property, at);
            self.node(property, at);
            at.pop();
        }
        if let Some(items) = &schema.items {
            self.below(SchemaStep::Items, items, at);
        }
        if let Some(values) = schema.additional_schema() {
            self.below(SchemaStep::Additional, values, at);
        }
    }

    /// Advice on a field by its name.
    fn field(&mut self, object: &Structural, name: &str, schema: &Structural, at: &[SchemaStep]) {
        if !is_lower_camel(name) {
            self.add("SCT0304", at, "the name of the field is not in lower camel case");
        }
        if is_yaml_boolean(name) {
            let text = format!("YAML 1.1 reads the plain key `{name}` as a boolean: users must quote it");
            self.add("SCT0404", at, text);
        }
        if name.ends_with("Timestamp") && is_time(schema) {
            let text = "the API conventions call times somethingTime, not somethingTimestamp";
            self.add("SCT0304", at, text);
        }
        if let [SchemaStep::Property(status), _] = at
            && (status.as_str(), name, schema.ty) == ("status", "phase", Some(Type::String))
        {
            let text = "a phase: the API conventions prefer conditions, which do not exclude each other";
            self.add("SCT0305", at, text);
        }
        let limits = object.validation.as_deref();
        if schema.default.is_some() && limits.is_some_and(|l| l.required.iter().any(|r| &**r == name)) {
            let text = "the field is required but has a default, so that objects may leave it out";
            self.add("SCT0503", at, text);
        }
    }

    /// Advice on defaults that are pruned or never apply.
    fn default(&mut self, schema: &Arc<Structural>, at: &[SchemaStep]) {
        let Some(default) = &schema.default else {
            return;
        };
        if let Some(SchemaStep::Items | SchemaStep::Additional) = at.last() {
            let text =
                "a default of list elements or map values never applies: an absent element has no position";
            self.add("SCT0502", at, text);
        }
        let plan = self
            .compiler
            .get_or_insert_with(PlanCompiler::new)
            .compile(schema);
        // kube-apiserver also prunes a default before it applies it.
        let options = prune::PruneOptions {
            nulls: NullPolicy::Drop,
            unknown: UnknownFields::List,
        };
        let mut kept = (*default.0).clone();
        let place = if schema.is_embedded_resource() {
            prune::ValueRole::Resource
        } else {
            prune::ValueRole::Part
        };
        let unknown = prune::prune(plan.root(), &mut kept, place, &options);
        if kept != *default.0 {
            let fields: Vec<String> = unknown
                .iter()
                .filter_map(Finding::unknown_field)
                .map(PathBuf::listed)
                .collect();
            let what = match fields.as_slice() {
                [] => "its nulls".to_owned(),
                fields => fields.join(", "),
            };
            self.add("SCT0501", at, format!("a part of the default is pruned: {what}"));
        }
    }

    fn below(&mut self, step: SchemaStep, schema: &Arc<Structural>, at: &mut Vec<SchemaStep>) {
        at.push(step);
        self.node(schema, at);
        at.pop();
    }

    fn status(&mut self, served: bool, schema: &Structural, version: &CrdVersion) {
        if !served && schema.property("status").is_some() {
            let text = format!(
                "version {} has a status but no status subresource: everyone who may update the object may update its status",
                version.name
            );
            self.add("SCT0402", &[SchemaStep::Property("status".to_owned())], text);
        }
    }
}

/// Returns whether YAML 1.1 reads a plain word as a boolean.
fn is_yaml_boolean(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_known = matches!(
        lower.as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false"
    );
    // The next line also accepts words in capitals.
    // Mixed case such as `oN` is a string.
    let capitalized = word.chars().skip(1).all(|c| c.is_ascii_lowercase());
    is_known && (capitalized || word.chars().all(|c| c.is_ascii_uppercase()))
}

/// Whether a schema is that of `status.conditions`, without the key that makes them a map.
fn is_unkeyed_conditions(schema: &Structural, at: &[SchemaStep]) -> bool {
    let [SchemaStep::Property(status), SchemaStep::Property(conditions)] = at else {
        return false;
    };
    let has_type = schema
        .items
        .as_ref()
        .is_some_and(|items| items.property("type").is_some());
    let keys = schema.extensions.as_deref().map_or(&[][..], |e| &e.list_map_keys);
    status == "status" && conditions == "conditions" && has_type && !matches!(keys, [key] if &**key == "type")
}

fn is_lower_camel(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn is_time(schema: &Structural) -> bool {
    schema
        .validation
        .as_deref()
        .is_some_and(|l| &*l.format == "date-time")
}
