//! A stable text dump of a plan.

use crate::plan::{Features, Plan, PlanNode};
use crate::structural::{Additional, ListType, Mutability, ValueValidation};
use scantling_value::go;
use std::fmt::{self, Write as _};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, &self.root, 0)
    }
}

fn write_node(f: &mut fmt::Formatter<'_>, node: &PlanNode, depth: usize) -> fmt::Result {
    writeln!(f, "{}", head(node))?;
    let mut child = |name: &str, child: &PlanNode| {
        write!(f, "{:indent$}{name}: ", "", indent = 2 * depth + 2)?;
        write_node(f, child, depth + 1)
    };
    for (name, field) in node.fields() {
        child(name, field)?;
    }
    if let Some(additional) = node.additional() {
        child("{}", additional)?;
    }
    if let Some(items) = node.items() {
        child("[]", items)?;
    }
    if let Some(checks) = node.checks() {
        let junctors = [
            ("allOf", &checks.all_of),
            ("anyOf", &checks.any_of),
            ("oneOf", &checks.one_of),
        ];
        for (name, branches) in junctors {
            for branch in branches {
                child(name, branch)?;
            }
        }
        if let Some(not) = &checks.not {
            child("not", not)?;
        }
    }
    Ok(())
}

/// A node without its children, on one line.
fn head(node: &PlanNode) -> String {
    let schema = node.schema();
    let mut words = vec![match node.types().names() {
        "" => "any".to_owned(),
        names => names.to_owned(),
    }];
    if schema.nullable {
        words.push("nullable".into());
    }
    if node.has_here(Features::PRESERVE) {
        words.push("open".into());
    }
    if node.has_here(Features::EMBEDDED) {
        words.push("resource".into());
    }
    match schema.list_type() {
        Some(ListType::Set) => words.push("set".into()),
        Some(ListType::Map) => words.push(format!("keyed by {}", schema.list_map_keys().join(", "))),
        Some(ListType::Atomic) | None => {}
    }
    words.extend(schema.mutability().map(|m| {
        match m {
            Mutability::Immutable => "immutable",
            Mutability::ImmutableKeys => "immutable keys",
            Mutability::AdditionOnly => "addition only",
            Mutability::DeletionOnly => "deletion only",
        }
        .into()
    }));
    if let Some(default) = node.default() {
        words.push(format!("default {}", default.to_json()));
    }
    if schema.additional == Some(Additional::Any(false)) {
        words.push("closed".into());
    }
    for union in schema.unions() {
        let fields: Vec<&str> = union.fields.iter().map(|(name, _)| name.as_str()).collect();
        words.push(format!("one of {}", fields.join(", ")));
    }
    if let Some(v) = node.limits() {
        limits(v, &mut words);
    }
    for rule in &schema.rules {
        words.push(format!("rule {}", go::quote(&rule.rule)));
    }
    words.join("; ")
}

fn limits(v: &ValueValidation, words: &mut Vec<String>) {
    let mut range = |what: &str, low: Option<String>, high: Option<String>| {
        if low.is_some() || high.is_some() {
            let mut text = format!("{what} ");
            let _ = write!(text, "{}..{}", low.unwrap_or_default(), high.unwrap_or_default());
            words.push(text);
        }
    };
    let float = |n: Option<crate::structural::EqFloat>, exclusive: bool| {
        n.map(|n| {
            format!(
                "{}{}",
                go::float_v(n.0),
                if exclusive { " (excluded)" } else { "" }
            )
        })
    };
    let int = |n: Option<i64>| n.map(|n| n.to_string());
    range(
        "value",
        float(v.minimum, v.exclusive_minimum),
        float(v.maximum, v.exclusive_maximum),
    );
    range("length", int(v.min_length), int(v.max_length));
    range("items", int(v.min_items), int(v.max_items));
    range("properties", int(v.min_properties), int(v.max_properties));
    if let Some(factor) = v.multiple_of {
        words.push(format!("multiple of {}", go::float_v(factor.0)));
    }
    if !v.format.is_empty() {
        words.push(format!("format {}", v.format));
    }
    if !v.pattern.is_empty() {
        words.push(format!("matches {}", go::quote(&v.pattern)));
    }
    if !v.enumeration.is_empty() {
        let listed: Vec<String> = v.enumeration.iter().map(|json| json.0.to_json()).collect();
        words.push(format!("in [{}]", listed.join(", ")));
    }
    if !v.required.is_empty() {
        words.push(format!("requires {}", v.required.join(", ")));
    }
}
