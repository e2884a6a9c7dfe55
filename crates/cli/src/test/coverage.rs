//! Coverage: the constraints of CRDs that no case exercises.
//!
//! A rule, bound or pattern is exercised by a case that breaks it; a value of an enumeration by an object that has it.

use super::branches::BranchCatalog;
use super::run::CaseOutcome;
use super::suite::{CaseWrite, NewState, TestCase};
use crate::args::TargetFlags;
use crate::catalog::Catalog;
use crate::report::{Finding, ReportItem, ReportSubject, Severity};
use scantling_value::{FieldError, Segment, Value};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A kind under test: its `apiVersion` and kind.
pub(crate) type KindKey = (String, String);

/// The constraints of the CRDs of a suite.
#[derive(Debug)]
pub(crate) struct CoveragePlan {
    kinds: BTreeMap<KindKey, KindPlan>,
    /// The CRDs with variants of their rules, if a rule has branches.
    pub(crate) branches: Option<BranchCatalog>,
}

#[derive(Debug)]
struct KindPlan {
    file: Arc<str>,
    schema: Arc<Value>,
    constraints: Arc<BTreeSet<Constraint>>,
}

/// The constraints of each schema of a kind.
type Schemas = Vec<Arc<BTreeSet<Constraint>>>;

/// The exercised constraints, and all constraints.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// By kind: its file, and the constraints of its schemas.
    kinds: BTreeMap<KindKey, (Arc<str>, Schemas)>,
    exercised: BTreeSet<(KindKey, Constraint)>,
}

/// A constraint of a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Constraint {
    /// The field: `spec.rules[].type`.
    field: String,
    /// The keyword, the rule, or a branch of a rule.
    keyword: &'static str,
    /// The text of the rule or branch, or the value of the keyword.
    text: String,
    /// The message of a rule, empty if it is computed; for a branch, its rule.
    message: String,
}

impl Constraint {
    /// A branch of a rule.
    pub(crate) fn branch(field: &str, text: &str, rule: &str) -> Self {
        Constraint {
            field: field.to_owned(),
            keyword: "branch",
            text: text.to_owned(),
            message: rule.to_owned(),
        }
    }
}

/// The keywords whose violation is recognized by a part of the error message.
const BOUNDS: [(&str, &str); 12] = [
    ("minimum", "should be greater than"),
    ("maximum", "should be less than"),
    ("multipleOf", "should be a multiple of"),
    ("minLength", "should be at least"),
    ("maxLength", "may not be more than"),
    ("pattern", "should match"),
    ("format", "must be of type"),
    ("minItems", "should have at least"),
    ("maxItems", "must have at most"),
    ("minProperties", "should have at least"),
    ("maxProperties", "must have at most"),
    ("required", "Required value"),
];

impl CoveragePlan {
    /// Collects the constraints of CRDs.
    pub(crate) fn new(catalog: &Catalog, target: TargetFlags) -> Result<Self, String> {
        let branches = BranchCatalog::new(catalog, target)?;
        let mut kinds = BTreeMap::new();
        for entry in catalog.entries() {
            let spec = &entry.definition.spec;
            for version in spec.versions() {
                let Some(schema) = spec.schema_of(version) else {
                    continue;
                };
                let kind = (
                    format!("{}/{}", spec.group, version.name),
                    spec.names.kind.to_string(),
                );
                let mut constraints = BTreeSet::new();
                collect(schema, "", &mut constraints);
                let branches = branches.iter().flat_map(|branches| branches.constraints(&kind));
                constraints.extend(branches.cloned());
                let plan = KindPlan {
                    file: Arc::clone(&entry.file),
                    schema: Arc::clone(schema),
                    constraints: constraints.into(),
                };
                kinds.insert(kind, plan);
            }
        }
        Ok(CoveragePlan { kinds, branches })
    }

    /// Returns the constraints that a case exercises. `variants` are the errors of its write under the
    /// variants of rules.
    pub(crate) fn of_case(
        &self,
        case: &TestCase,
        outcome: &CaseOutcome,
        variants: &[FieldError],
    ) -> Coverage {
        let mut coverage = Coverage::default();
        let objects: Vec<&Value> = match &case.write {
            CaseWrite::Create(object) => vec![object],
            // Values of the old object count as well: the case has stored it.
            CaseWrite::Update(old, NewState::Object(new)) => vec![old, new],
            CaseWrite::Update(old, _) => vec![old],
        };
        for object in objects {
            let kind = (
                object.get_str("apiVersion").to_owned(),
                object.get_str("kind").to_owned(),
            );
            let Some(plan) = self.kinds.get(&kind) else {
                continue;
            };
            mark_values(&plan.schema, object, "", &kind, &mut coverage);
            for error in &outcome.errors {
                mark_error(&plan.constraints, &kind, error, &mut coverage);
            }
            let constraints = vec![Arc::clone(&plan.constraints)];
            coverage.kinds.insert(kind, (Arc::clone(&plan.file), constraints));
        }
        if let Some(branches) = &self.branches {
            coverage.exercised.extend(branches.exercised(variants));
        }
        coverage
    }
}

impl Coverage {
    /// Adds what another case exercised.
    pub(crate) fn add(&mut self, other: Coverage) {
        for (kind, (file, constraints)) in other.kinds {
            let (_, known) = self.kinds.entry(kind).or_insert_with(|| (file, Vec::new()));
            for set in constraints {
                // All cases of a suite share one set, so comparing pointers is enough.
                if !known.iter().any(|known| Arc::ptr_eq(known, &set)) {
                    known.push(set);
                }
            }
        }
        self.exercised.extend(other.exercised);
    }

    /// The constraints that no case exercised.
    pub(crate) fn items(&self) -> impl Iterator<Item = Unexercised> {
        self.kinds.iter().flat_map(|(kind, (file, constraints))| {
            let all: BTreeSet<&Constraint> = constraints.iter().flat_map(|set| set.iter()).collect();
            let missing = all
                .into_iter()
                .filter(|constraint| !self.exercised.contains(&(kind.clone(), (*constraint).clone())));
            missing.map(|constraint| Unexercised {
                file: Arc::clone(file),
                api_version: kind.0.clone(),
                kind: kind.1.clone(),
                field: constraint.field.clone(),
                keyword: constraint.keyword,
                text: constraint.text.clone(),
                rule: match constraint.keyword {
                    "branch" => Some(constraint.message.clone()),
                    _ => None,
                },
            })
        })
    }
}

/// Collects the constraints of a schema.
fn collect(schema: &Value, at: &str, constraints: &mut BTreeSet<Constraint>) {
    for rule in schema.list("x-kubernetes-validations") {
        let text = rule.get_str("rule").to_owned();
        let message = match (rule.get_str("message"), rule.get_str("messageExpression")) {
            // kube-apiserver's message for a rule without one.
            ("", "") => format!("failed rule: {}", text.trim()),
            (message, "") => message.to_owned(),
            // A computed message is unknown here, so any error at the field counts as one of the rule.
            _ => String::new(),
        };
        constraints.insert(Constraint {
            field: at.to_owned(),
            keyword: "rule",
            text,
            message,
        });
    }
    let mut add = |field: &str, keyword, text: String| {
        constraints.insert(Constraint {
            field: field.to_owned(),
            keyword,
            text,
            message: String::new(),
        });
    };
    for value in schema.list("enum") {
        add(at, "enum", value.to_json());
    }
    for (keyword, _) in BOUNDS {
        match (keyword, schema.get(keyword)) {
            (_, None) => {}
            ("required", Some(_)) => {
                for name in schema.list("required").iter().filter_map(Value::as_str) {
                    // kube-apiserver reports a missing field at the field and not at its object.
                    add(&join(at, name), "required", String::new());
                }
            }
            (_, Some(value)) => add(at, keyword, value.to_json()),
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        for (name, property) in properties.iter() {
            collect(property, &join(at, name), constraints);
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(keyword) {
            collect(child, &format!("{at}[]"), constraints);
        }
    }
}

/// The path of a field below another.
pub(crate) fn join(at: &str, name: &str) -> String {
    match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    }
}

/// Marks the values of enumerations that an object has.
fn mark_values(schema: &Value, value: &Value, at: &str, kind: &KindKey, coverage: &mut Coverage) {
    if schema.list("enum").contains(value) {
        let constraint = Constraint {
            field: at.to_owned(),
            keyword: "enum",
            text: value.to_json(),
            message: String::new(),
        };
        coverage.exercised.insert((kind.clone(), constraint));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter() {
                match schema.at(["properties", name.as_str()]) {
                    Some(property) => mark_values(property, member, &join(at, name), kind, coverage),
                    None => {
                        if let Some(values) = schema.get("additionalProperties") {
                            mark_values(values, member, &format!("{at}[]"), kind, coverage);
                        }
                    }
                }
            }
        }
        Value::Array(elements) => {
            if let Some(items) = schema.get("items") {
                for element in elements {
                    mark_values(items, element, &format!("{at}[]"), kind, coverage);
                }
            }
        }
        _ => {}
    }
}

/// Marks the constraints that an error violates.
fn mark_error(
    constraints: &BTreeSet<Constraint>,
    kind: &KindKey,
    error: &FieldError,
    coverage: &mut Coverage,
) {
    let field = field_of(error.at().segments());
    let message = error.message();
    let is_broken = |constraint: &&Constraint| match constraint.keyword {
        // A rule may report a field below its own.
        "rule" => {
            is_at_or_below(&field, &constraint.field)
                && (constraint.message.is_empty() || constraint.message == error.detail())
        }
        // Branches are marked by the errors of their variants.
        "branch" => false,
        keyword => {
            let is_told = |(name, text): &(&str, &str)| *name == keyword && message.contains(text);
            constraint.field == field && BOUNDS.iter().any(is_told)
        }
    };
    for constraint in constraints.iter().filter(is_broken) {
        coverage.exercised.insert((kind.clone(), constraint.clone()));
    }
}

fn is_at_or_below(field: &str, above: &str) -> bool {
    let rest = field.strip_prefix(above);
    rest.is_some_and(|rest| above.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A path without indices and keys: `spec.rules[].type`.
fn field_of<'a>(segments: impl Iterator<Item = Segment<'a>>) -> String {
    let mut field = String::new();
    for segment in segments {
        match segment {
            Segment::Field(name) if field.is_empty() => field.push_str(name),
            Segment::Field(name) => {
                field.push('.');
                field.push_str(name);
            }
            Segment::Key(_) | Segment::Index(_) => field.push_str("[]"),
        }
    }
    field
}

/// A constraint that no case exercises.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unexercised {
    file: Arc<str>,
    api_version: String,
    kind: String,
    field: String,
    keyword: &'static str,
    text: String,
    /// The rule that a branch belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
}

impl ReportItem for Unexercised {
    fn subject(&self) -> ReportSubject {
        let field = match self.field.as_str() {
            "" => "the object".to_owned(),
            field => field.to_owned(),
        };
        let text = match self.keyword {
            "rule" => format!("{field}: no case breaks the rule `{}`", self.text),
            "branch" => format!(
                "{field}: no case depends on `{}` in the rule `{}`",
                self.text,
                self.rule.as_deref().unwrap_or_default()
            ),
            "enum" => format!("{field}: no case has the value {}", self.text),
            "required" => format!("{field}: no case omits this required field"),
            keyword => format!("{field}: no case breaks {keyword}: {}", self.text),
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            name: format!("{} {}", self.kind, self.api_version),
            findings: vec![Finding::new(Severity::Advice, "NotExercised", text, None)],
            ..ReportSubject::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_at_or_below;

    #[test]
    fn a_field_contains_the_fields_below_it() {
        for below in ["", "spec", "spec.a", "spec.a.b", "spec.a[]", "spec.a[].b"] {
            assert!(is_at_or_below(below, ""), "{below}");
        }
        for (field, wanted) in [
            ("spec.a", true),
            ("spec.a.b", true),
            ("spec.a[].b", true),
            ("spec.ab", false),
            ("spec", false),
        ] {
            assert_eq!(is_at_or_below(field, "spec.a"), wanted, "{field}");
        }
    }
}
