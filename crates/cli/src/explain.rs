//! `scantling explain`: a field of a kind with everything that a cluster checks there.

mod kinds;

use crate::args;
use crate::catalog::{Catalog, CrdTexts, OtherObjects};
use crate::files;
use crate::problem::{ExitStatus, Problem};
use crate::render;
use crate::rules::{self, EstimatedRule, RULE_LIMIT, SchemaStep};
use crate::sample::facts;
use crate::wrap::push_wrapped;
use kinds::{ExplainedKind, SchemaNode};
use scantling_schema::structural::Mutability;
use scantling_value::{Map, Str, Value};
use serde::Serialize;

/// Explains a field.
pub(crate) fn run(flags: &args::Explain) -> Result<ExitStatus, Problem> {
    let (sources, mut problems) = files::find_schemas(&flags.crds, &flags.read);
    let mut catalog = Catalog::new(flags.target, CrdTexts::Dropped);
    if !sources.is_empty() {
        problems.extend(catalog.load(&sources, OtherObjects::Listed));
    }
    let (kind, path) = kinds::find(&catalog, flags)?;
    let explanation = explain(&catalog, &kind, path)?;
    match flags.output {
        args::EvalFormat::Text => render::write(explanation.text())?,
        args::EvalFormat::Json => render::write(format!("{}\n", render::json_text(&explanation)?))?,
        args::EvalFormat::Yaml => render::write(render::yaml_of(&explanation)?)?,
    }
    Ok(ExitStatus::after(false, &problems))
}

/// A field with its facts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    kind: String,
    api_version: String,
    field: String,
    #[serde(rename = "type")]
    ty: String,
    description: String,
    /// Type, bounds, default, releases.
    facts: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutability: Option<&'static str>,
    rules: Vec<ExplainedRule>,
    fields: Vec<ExplainedField>,
}

#[derive(Debug, Serialize)]
struct ExplainedRule {
    rule: String,
    message: String,
    cost: u64,
    /// As a share of the limit for one rule.
    share: f64,
}

#[derive(Debug, Serialize)]
struct ExplainedField {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    required: bool,
    facts: String,
    description: String,
    rules: usize,
}

fn explain(catalog: &Catalog, kind: &ExplainedKind<'_>, path: &str) -> Result<Explanation, Problem> {
    let target = descend(kind, path)?;
    let schema = &target.node.schema;
    let estimates = match kind.structural()? {
        Some(structural) => rules::rules(&structural, catalog.environments()),
        None => Vec::new(),
    };
    let own: Vec<&EstimatedRule> = estimates.iter().filter(|rule| rule.at == target.steps).collect();
    let texts = schema.list("x-kubernetes-validations");
    let rules = texts.iter().enumerate().map(|(n, rule)| {
        let cost = own.iter().find(|own| own.index == n).map_or(0, |own| own.total);
        ExplainedRule {
            rule: rule.get_str("rule").to_owned(),
            message: rule.get_str("message").to_owned(),
            cost,
            share: cost as f64 / RULE_LIMIT as f64,
        }
    });
    Ok(Explanation {
        kind: kind.name().to_owned(),
        api_version: kind.api_version(),
        field: path.to_owned(),
        ty: target.ty.clone(),
        description: schema.get_str("description").trim().to_owned(),
        facts: joined([
            facts(schema, target.required),
            target.releases.unwrap_or_default(),
        ]),
        mutability: mutability_of(schema),
        rules: rules.collect(),
        fields: fields_of(kind, &target.node),
    })
}

/// Facts with commas between them.
fn joined(facts: [String; 2]) -> String {
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    facts.join(", ")
}

fn mutability_of(schema: &Value) -> Option<&'static str> {
    let keywords = Mutability::ALL.into_iter().map(Mutability::keyword);
    keywords
        .into_iter()
        .find(|keyword| schema.get(keyword) == Some(&Value::Bool(true)))
}

/// The schema at the end of a path.
struct PathTarget {
    node: SchemaNode,
    ty: String,
    steps: Vec<SchemaStep>,
    required: bool,
    /// The releases that have the field, if not all do.
    releases: Option<String>,
}

/// Follows a path such as `spec.rules[].type`. Brackets may be left out.
fn descend(kind: &ExplainedKind<'_>, path: &str) -> Result<PathTarget, Problem> {
    let mut target = PathTarget {
        node: kind.root()?,
        ty: "object".to_owned(),
        steps: Vec::new(),
        required: false,
        releases: None,
    };
    let mut done = String::new();
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let plain = name.trim_end_matches("[]").trim_end_matches("[*]");
        // Users leave out brackets, so lists and maps are entered until the name is found.
        while target.node.schema.at(["properties", plain]).is_none() {
            let schema = &target.node.schema;
            let (below, step) = match (schema.get("items"), values_of(schema)) {
                (Some(items), _) => (items, SchemaStep::Items),
                (None, Some(values)) => (values, SchemaStep::Additional),
                (None, None) => return Err(unknown_field(kind, &target.node, &done, plain)),
            };
            target.node = kind.resolve(below);
            target.steps.push(step);
        }
        let PathTarget { node, .. } = &target;
        let required = is_required(&node.schema, plain);
        let releases = node.releases(plain);
        let Some(below) = node.schema.at(["properties", plain]) else {
            break;
        };
        target = PathTarget {
            node: kind.resolve(below),
            ty: kinds::type_of(below),
            required,
            releases,
            ..target
        };
        target.steps.push(SchemaStep::Property(plain.to_owned()));
        done.push_str(plain);
        done.push('.');
    }
    Ok(target)
}

/// The schema of the values of a map.
fn values_of(schema: &Value) -> Option<&Value> {
    schema
        .get("additionalProperties")
        .filter(|v| v.as_object().is_some())
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema.list("required").iter().any(|r| r.as_str() == Some(name))
}

fn unknown_field(kind: &ExplainedKind<'_>, node: &SchemaNode, above: &str, name: &str) -> Problem {
    let problem = Problem::plain(format!("there is no field {above}{name}"));
    if let Some(why) = kind.other_release(node, name) {
        return problem.hint(why);
    }
    let known = node.schema.get("properties").and_then(Value::as_object);
    let near = known
        .into_iter()
        .flat_map(Map::keys)
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    match near {
        Some((_, near)) => problem.hint(format!("did you mean {above}{near}?")),
        None => problem,
    }
}

/// The fields of an object, of the elements of a list, or of the values of a map.
fn fields_of(kind: &ExplainedKind<'_>, node: &SchemaNode) -> Vec<ExplainedField> {
    let Some(properties) = node.schema.get("properties").and_then(Value::as_object) else {
        let below = node.schema.get("items").or_else(|| values_of(&node.schema));
        return below.map_or_else(Vec::new, |below| fields_of(kind, &kind.resolve(below)));
    };
    let field = |(name, property): (&Str, &Value)| {
        let resolved = kind.resolve(property).schema;
        // The reference shows the name of the type; its resolution has the facts.
        ExplainedField {
            name: name.to_string(),
            ty: kinds::type_of(property),
            required: is_required(&node.schema, name),
            facts: joined([facts(&resolved, false), node.releases(name).unwrap_or_default()]),
            description: property.get_str("description").to_owned(),
            rules: property.list("x-kubernetes-validations").len(),
        }
    };
    properties.iter().map(field).collect()
}

/// The indentation of texts, and of what belongs to a rule.
const INDENT: &str = "    ";
const RULE_INDENT: &str = "        ";

/// Returns the first paragraph of a description in one line. Generated CRDs keep the line breaks of comments.
fn first_paragraph(description: &str) -> String {
    let lines = description.trim().lines().map(str::trim);
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

impl Explanation {
    fn text(&self) -> String {
        let mut out = format!("KIND:     {}\nVERSION:  {}\n", self.kind, self.api_version);
        if !self.field.is_empty() {
            out.push_str(&format!("FIELD:    {} <{}>\n", self.field, self.ty));
        }
        if !self.description.is_empty() {
            out.push_str("\nDESCRIPTION:\n");
            push_wrapped(&self.description, INDENT, &mut out);
        }
        if !self.facts.is_empty() || self.mutability.is_some() {
            out.push_str("\nCONSTRAINTS:\n");
            let facts = [self.facts.as_str(), self.mutability.unwrap_or("")];
            let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
            push_wrapped(&facts.join(", "), INDENT, &mut out);
        }
        if !self.rules.is_empty() {
            out.push_str("\nRULES:\n");
            for rule in &self.rules {
                push_wrapped(&rule.rule, INDENT, &mut out);
                if !rule.message.is_empty() {
                    push_wrapped(&format!("message: {}", rule.message), RULE_INDENT, &mut out);
                }
                let share = rule.share * 100.0;
                let cost = format!("cost: {} ({share:.1}% of the limit)", rule.cost);
                push_wrapped(&cost, RULE_INDENT, &mut out);
            }
        }
        if !self.fields.is_empty() {
            out.push_str("\nFIELDS:\n");
            for field in &self.fields {
                let required = if field.required { " -required-" } else { "" };
                let rules = match field.rules {
                    0 => String::new(),
                    n => format!(" ({})", crate::report::count(n, "rule")),
                };
                out.push_str(&format!("  {} <{}>{required}{rules}\n", field.name, field.ty));
                let summary = first_paragraph(&field.description);
                if !summary.is_empty() {
                    push_wrapped(&summary, INDENT, &mut out);
                }
                // The type is on the line above already.
                if !field.facts.is_empty() && field.facts != field.ty {
                    push_wrapped(&field.facts, INDENT, &mut out);
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::first_paragraph;

    #[test]
    fn summaries_are_paragraphs() {
        for (description, summary) in [
            ("One line.", "One line."),
            (
                "The share of requests that\nare mirrored.\n\nMore.",
                "The share of requests that are mirrored.",
            ),
            ("", ""),
        ] {
            assert_eq!(first_paragraph(description), summary);
        }
    }
}
