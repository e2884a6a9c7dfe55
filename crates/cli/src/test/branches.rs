//! Coverage of the operands of `||` and the branches of `?:`.
//!
//! Each branch of a rule gets a variant of the rule that fails if the branch decides the result: an operand of
//! `||` is replaced by `false`, and a branch of `?:` by an error. A case exercises a branch if the rule passes
//! and its variant fails, or if the variant ends with that error.

use super::coverage::{Constraint, KindKey, join};
use crate::args::TargetFlags;
use crate::catalog::{self, Catalog, CrdTexts};
use crate::input::InputObject;
use scantling_cel::syntax::{BranchKind, branches};
use scantling_schema::definition::ApiVersion;
use scantling_value::{FieldError, Map, Value};
use std::collections::BTreeSet;

/// CRDs whose rules have variants.
#[derive(Debug)]
pub(crate) struct BranchCatalog {
    pub(crate) catalog: Catalog,
    branches: Vec<TestedBranch>,
}

#[derive(Debug)]
struct TestedBranch {
    owner: KindKey,
    constraint: Constraint,
    kind: BranchKind,
    /// The number of the rule.
    rule: usize,
}

impl BranchCatalog {
    /// Adds variants to the rules of a catalog; `None` if no rule has branches.
    pub(crate) fn new(original: &Catalog, target: TargetFlags) -> Result<Option<Self>, String> {
        let mut variants = Variants::default();
        let mut catalog = Catalog::new(target, CrdTexts::Dropped);
        for entry in original.entries() {
            let mut value = entry.definition.encode(ApiVersion::V1);
            let versions = value
                .as_object_mut()
                .and_then(|crd| crd.get_mut("spec")?.as_object_mut()?.get_mut("versions"));
            if let Some(Value::Array(versions)) = versions {
                let spec = &entry.definition.spec;
                for version in versions {
                    variants.owner = (
                        format!("{}/{}", spec.group, version.get_str("name")),
                        spec.names.kind.to_string(),
                    );
                    let schema = version.as_object_mut().and_then(|v| {
                        let schema = v.get_mut("schema")?.as_object_mut()?;
                        schema.get_mut("openAPIV3Schema")
                    });
                    if let Some(schema) = schema {
                        variants.schema(schema, "");
                    }
                }
            }
            let object = InputObject {
                value,
                found_in_text: Vec::new(),
                index: Vec::new(),
            };
            catalog.add(catalog::entry(&entry.file, object, target)?);
        }
        let branches = variants.branches;
        Ok((!branches.is_empty()).then_some(BranchCatalog { catalog, branches }))
    }

    /// Returns the branches in the rules of a kind.
    pub(crate) fn constraints(&self, kind: &KindKey) -> impl Iterator<Item = &Constraint> {
        let own = self.branches.iter().filter(move |branch| branch.owner == *kind);
        own.map(|branch| &branch.constraint)
    }

    /// Returns the branches that a case exercises, from the errors of its write under the variants.
    pub(crate) fn exercised(&self, errors: &[FieldError]) -> Vec<(KindKey, Constraint)> {
        // By field as well: the same rule runs for every element, and one of them may fail for another reason.
        let broken_rules: BTreeSet<(usize, &str)> = errors
            .iter()
            .filter_map(|error| Some((number(error.detail(), RULE)?, error.field())))
            .collect();
        let exercised = errors.iter().filter_map(|error| {
            let branch = self.branches.get(number(error.detail(), BRANCH)?)?;
            let is_exercised = match branch.kind {
                // If the rule itself also fails, the operand has decided nothing.
                BranchKind::OrOperand => !broken_rules.contains(&(branch.rule, error.field())),
                // As its own message, the marker says that the variant is false. After an error text, it says that the
                // branch ran.
                BranchKind::Conditional => !error.detail().starts_with(BRANCH),
            };
            is_exercised.then(|| (branch.owner.clone(), branch.constraint.clone()))
        });
        exercised.collect()
    }
}

/// The prefix of the messages of rules and their variants.
const RULE: &str = "scantling-rule-";
const BRANCH: &str = "scantling-branch-";

/// The number after a marker in a message.
fn number(message: &str, marker: &str) -> Option<usize> {
    // From the right: a message may quote a value that contains a marker.
    let (_, rest) = message.rsplit_once(marker)?;
    rest.parse().ok()
}

#[derive(Default)]
struct Variants {
    /// The kind whose rules are changed.
    owner: KindKey,
    rules: usize,
    branches: Vec<TestedBranch>,
}

impl Variants {
    /// Adds variants to the rules of a schema and of those below it.
    fn schema(&mut self, schema: &mut Value, at: &str) {
        let Some(members) = schema.as_object_mut() else {
            return;
        };
        if let Some(Value::Array(rules)) = members.get_mut("x-kubernetes-validations") {
            let own = std::mem::take(rules);
            for rule in own {
                self.rule(&rule, at, rules);
            }
        }
        if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
            for (name, property) in properties.iter_mut() {
                self.schema(property, &join(at, name));
            }
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(below) = members.get_mut(keyword) {
                self.schema(below, &format!("{at}[]"));
            }
        }
    }

    fn rule(&mut self, rule: &Value, at: &str, out: &mut Vec<Value>) {
        let number = self.rules;
        self.rules += 1;
        let text = rule.get_str("rule").to_owned();
        let variant = |text: String, message: String| {
            let mut members = rule.as_object().cloned().unwrap_or_else(Map::new);
            // Message, reason and path are dropped: the marker has to be the whole message.
            members.retain(|name, _| matches!(name, "optionalOldSelf" | "appliesOnCreate"));
            members.insert("rule", text.into());
            members.insert("message", message.into());
            Value::Object(members)
        };
        out.push(variant(text.clone(), format!("{RULE}{number}")));
        for branch in branches(&text) {
            let (Some(before), Some(part), Some(after)) = (
                text.get(..branch.range.start),
                text.get(branch.range.clone()),
                text.get(branch.range.end..),
            ) else {
                continue;
            };
            let replaced = match branch.kind {
                BranchKind::OrOperand => format!("{before}false{after}"),
                // An index out of range is an error at run time that the type checker accepts.
                BranchKind::Conditional => format!("{before}[{part}][1]{after}"),
            };
            out.push(variant(replaced, format!("{BRANCH}{}", self.branches.len())));
            self.branches.push(TestedBranch {
                owner: self.owner.clone(),
                constraint: Constraint::branch(at, part, &text),
                kind: branch.kind,
                rule: number,
            });
        }
    }
}
