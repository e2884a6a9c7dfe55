//! `scantling explain`: a field of a kind with everything that a cluster checks there.

use crate::args;
use crate::catalog::{Catalog, CatalogEntry, OtherObjects, Texts};
use crate::files;
use crate::problem::{ExitStatus, Problem};
use crate::render;
use crate::rules::{self, EstimatedRule, RULE_LIMIT, SchemaStep};
use crate::sample::facts;
use scantling_schema::definition::ApiVersion;
use scantling_schema::document::Schema;
use scantling_schema::structural::{Interner, Mutability};
use scantling_value::{Map, Value};
use serde::Serialize;

/// Explains a field.
pub(crate) fn run(flags: &args::Explain) -> Result<ExitStatus, Problem> {
    let (sources, mut problems) = files::find(&flags.crds, &flags.read);
    let mut catalog = Catalog::new(flags.target, Texts::Dropped);
    if !sources.is_empty() {
        problems.extend(catalog.load(&sources, OtherObjects::Listed));
    }
    let (resource, path) = flags.field.split_once('.').unwrap_or((&flags.field, ""));
    let Some(entry) = catalog.entries().iter().find(|entry| is_named(entry, resource)) else {
        let names: Vec<&str> = catalog
            .entries()
            .iter()
            .map(|e| e.definition.spec.names.plural.as_str())
            .collect();
        let hint = match names.is_empty() {
            true => "name the files with CRDs with --crds".to_owned(),
            false => format!("the CRDs define {}", names.join(", ")),
        };
        return Err(Problem::plain(format!("no CRD defines the resource {resource}")).hint(hint));
    };
    let explanation = explain(&catalog, entry, path, flags)?;
    match flags.output {
        args::EvalFormat::Text => render::write(explanation.text())?,
        args::EvalFormat::Json => render::write(format!("{}\n", render::json_text(&explanation)?))?,
        args::EvalFormat::Yaml => render::write(render::yaml_of(&explanation)?)?,
    }
    Ok(ExitStatus::after(false, &problems))
}

/// Whether a CRD defines a resource: by kind, plural, singular, short name, or full name.
fn is_named(entry: &CatalogEntry, resource: &str) -> bool {
    let names = &entry.definition.spec.names;
    let is = |name: &str| name.eq_ignore_ascii_case(resource);
    is(&names.kind)
        || is(&names.plural)
        || is(&names.singular)
        || names.short_names.iter().flatten().any(|name| is(name))
        || is(entry.definition.name())
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
    /// Type, bounds, default.
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

fn explain(
    catalog: &Catalog,
    entry: &CatalogEntry,
    path: &str,
    flags: &args::Explain,
) -> Result<Explanation, Problem> {
    let spec = &entry.definition.spec;
    let mut versions = spec.versions().iter();
    let version = match &flags.api_version {
        Some(name) => versions.find(|version| name.ends_with(version.name.as_str())),
        None => versions.find(|version| version.storage),
    };
    let version = version.ok_or_else(|| entry.unusable("it has no such version"))?;
    let document = entry.definition.encode(ApiVersion::V1);
    let mut documents = document.list_at(["spec", "versions"]).iter();
    let root = documents
        .find(|v| v.get_str("name") == version.name.as_str())
        .and_then(|v| v.at(["schema", "openAPIV3Schema"]))
        .ok_or_else(|| entry.unusable("the version has no schema"))?;
    let target = descend(root, path).map_err(Problem::plain)?;
    let estimates = match spec
        .schema_of(version)
        .map(|schema| Schema::new(schema).structural(&mut Interner::new()))
    {
        Some(Ok(structural)) => rules::rules(&structural, catalog.environments()),
        Some(Err(why)) => return Err(entry.unusable(&why.to_string())),
        None => Vec::new(),
    };
    let own: Vec<&EstimatedRule> = estimates.iter().filter(|rule| rule.at == target.steps).collect();
    let texts = target.schema.list("x-kubernetes-validations");
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
        kind: spec.names.kind.to_string(),
        api_version: format!("{}/{}", spec.group, version.name),
        field: path.to_owned(),
        ty: type_of(target.schema),
        description: target.schema.get_str("description").trim().to_owned(),
        facts: facts(target.schema, target.required),
        mutability: mutability_of(target.schema),
        rules: rules.collect(),
        fields: fields_of(target.schema),
    })
}

fn mutability_of(schema: &Value) -> Option<&'static str> {
    let keywords = Mutability::ALL.into_iter().map(Mutability::keyword);
    keywords
        .into_iter()
        .find(|keyword| schema.get(keyword) == Some(&Value::Bool(true)))
}

/// The schema behind a path.
struct ExplainedSchema<'s> {
    schema: &'s Value,
    steps: Vec<SchemaStep>,
    required: bool,
}

/// Follows a path such as `spec.rules[].type`. Brackets may be left out.
fn descend<'s>(root: &'s Value, path: &str) -> Result<ExplainedSchema<'s>, String> {
    let mut target = ExplainedSchema {
        schema: root,
        steps: Vec::new(),
        required: false,
    };
    let mut done = String::new();
    for name in path.split('.').filter(|name| !name.is_empty()) {
        let plain = name.trim_end_matches("[]").trim_end_matches("[*]");
        while target.schema.at(["properties", plain]).is_none() {
            if let Some(items) = target.schema.get("items") {
                target.schema = items;
                target.steps.push(SchemaStep::Items);
            } else if let Some(values) = target
                .schema
                .get("additionalProperties")
                .filter(|v| v.as_object().is_some())
            {
                target.schema = values;
                target.steps.push(SchemaStep::Additional);
            } else {
                let known = target.schema.get("properties").and_then(Value::as_object);
                let known: Vec<&str> = known
                    .into_iter()
                    .flat_map(Map::keys)
                    .map(scantling_value::Str::as_str)
                    .collect();
                let near = known
                    .iter()
                    .map(|known| (strsim::damerau_levenshtein(known, plain), *known))
                    .min()
                    .filter(|(distance, _)| *distance <= 2);
                let help = near.map_or_else(String::new, |(_, name)| format!("; did you mean {name}?"));
                return Err(format!("there is no field {done}{plain}{help}"));
            }
        }
        target.required = target
            .schema
            .list("required")
            .iter()
            .any(|required| required.as_str() == Some(plain));
        target.schema = target.schema.at(["properties", plain]).unwrap_or(target.schema);
        target.steps.push(SchemaStep::Property(plain.to_owned()));
        done.push_str(plain);
        done.push('.');
    }
    Ok(target)
}

/// The type of a schema as people write it: `[]string`, `map[string]object`.
fn type_of(schema: &Value) -> String {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return "integer or string".to_owned();
    }
    match schema.get_str("type") {
        "array" => format!(
            "[]{}",
            schema.get("items").map_or_else(|| "any".to_owned(), type_of)
        ),
        "object" => match schema
            .get("additionalProperties")
            .filter(|v| v.as_object().is_some())
        {
            Some(values) => format!("map[string]{}", type_of(values)),
            None => "object".to_owned(),
        },
        "" => "any".to_owned(),
        ty => ty.to_owned(),
    }
}

/// The fields of an object, of the elements of a list, or of the values of a map.
fn fields_of(schema: &Value) -> Vec<ExplainedField> {
    let mut schema = schema;
    while schema.get("properties").is_none() {
        let below = schema.get("items").or_else(|| schema.get("additionalProperties"));
        match below.filter(|below| below.as_object().is_some()) {
            Some(below) => schema = below,
            None => return Vec::new(),
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, property): (&scantling_value::Str, &Value)| {
        let required = schema.list("required").iter().any(|r| r.as_str() == Some(name));
        ExplainedField {
            name: name.to_string(),
            ty: type_of(property),
            required,
            facts: facts(property, false),
            description: property.get_str("description").to_owned(),
            rules: property.list("x-kubernetes-validations").len(),
        }
    };
    properties.into_iter().flat_map(Map::iter).map(field).collect()
}

/// The width of lines.
const WIDTH: usize = 96;

/// Breaks a text into indented lines.
fn wrapped(text: &str, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && indent + line.len() + 1 + word.len() > WIDTH {
                out.push_str(&format!("{pad}{line}\n"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        out.push_str(&format!("{pad}{line}\n"));
    }
}

impl Explanation {
    fn text(&self) -> String {
        let mut out = format!("KIND:     {}\nVERSION:  {}\n", self.kind, self.api_version);
        if !self.field.is_empty() {
            out.push_str(&format!("FIELD:    {} <{}>\n", self.field, self.ty));
        }
        if !self.description.is_empty() {
            out.push_str("\nDESCRIPTION:\n");
            wrapped(&self.description, 4, &mut out);
        }
        if !self.facts.is_empty() || self.mutability.is_some() {
            out.push_str("\nCONSTRAINTS:\n");
            let facts = [self.facts.as_str(), self.mutability.unwrap_or("")];
            let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
            wrapped(&facts.join(", "), 4, &mut out);
        }
        if !self.rules.is_empty() {
            out.push_str("\nRULES:\n");
            for rule in &self.rules {
                wrapped(&rule.rule, 4, &mut out);
                if !rule.message.is_empty() {
                    wrapped(&format!("message: {}", rule.message), 8, &mut out);
                }
                let share = rule.share * 100.0;
                wrapped(
                    &format!("cost: {} ({share:.1} % of the limit)", rule.cost),
                    8,
                    &mut out,
                );
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
                if let Some(first) = field.description.lines().next().filter(|line| !line.is_empty()) {
                    wrapped(first, 4, &mut out);
                }
                if !field.facts.is_empty() && field.facts != field.ty {
                    wrapped(&field.facts, 4, &mut out);
                }
            }
        }
        out
    }
}
