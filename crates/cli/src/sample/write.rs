//! Writes samples.

use crate::wrap::push_wrapped;
use regex_syntax::hir::{Class, Hir, HirKind};
use scantling_value::{Map, Value, yaml};

/// Writes an object as YAML, with the most important fields first.
pub(super) fn plain(object: &Value) -> String {
    ordered(object)
        .into_iter()
        // One member at a time keeps the order: a map of the encoder is sorted.
        .map(|(name, value)| yaml::encode(&Value::Object([(name, value.clone())].into_iter().collect())))
        .collect()
}

/// The members of an object in the order of manifests.
fn ordered(object: &Value) -> Vec<(&str, &Value)> {
    let members = object.as_object().into_iter().flat_map(Map::iter);
    let mut members: Vec<(&str, &Value)> = members.map(|(name, value)| (name.as_str(), value)).collect();
    let rank = |name: &str| match name {
        "apiVersion" => 0,
        "kind" => 1,
        "metadata" => 2,
        _ => 3,
    };
    members.sort_by_key(|(name, _)| rank(name));
    members
}

/// An object with the description and the limits of each field, and the fields that it does not have as comments.
pub(super) fn commented(object: &Value, schema: Option<&Value>) -> String {
    let mut out = String::new();
    for (name, value) in ordered(object) {
        let property = schema.and_then(|schema| schema.at(["properties", name]));
        let property = property.filter(|_| !matches!(name, "apiVersion" | "kind" | "metadata"));
        write_member(name, value, property, is_required(schema, name), 0, &mut out);
    }
    write_absent(object, schema, 0, &mut out);
    out
}

fn is_required(schema: Option<&Value>, name: &str) -> bool {
    schema.is_some_and(|schema| schema.list("required").iter().any(|r| r.as_str() == Some(name)))
}

fn write_member(
    name: &str,
    value: &Value,
    schema: Option<&Value>,
    required: bool,
    indent: usize,
    out: &mut String,
) {
    let pad = " ".repeat(indent);
    if let Some(schema) = schema {
        write_comment(schema, required, &pad, out);
    }
    match value {
        Value::Object(members) if !members.is_empty() => {
            out.push_str(&format!("{pad}{}:\n", key(name)));
            write_members(members, value, schema, indent + 2, out);
        }
        // The dash takes the place of two spaces, so members are written first and the dash is set afterwards.
        Value::Array(elements) if elements.iter().any(|e| e.as_object().is_some()) => {
            out.push_str(&format!("{pad}{}:\n", key(name)));
            let items = schema.and_then(|schema| schema.get("items"));
            for element in elements {
                let mut text = String::new();
                match element {
                    Value::Object(members) if !members.is_empty() => {
                        write_members(members, element, items, indent + 2, &mut text);
                    }
                    other => text.push_str(&format!("{pad}  {}\n", scalar(other))),
                }
                // The dash precedes the first line that is not a comment.
                let mut has_dash = false;
                for line in text.lines() {
                    let is_comment = line.trim_start().starts_with('#');
                    match has_dash || is_comment {
                        true => out.push_str(&format!("{line}\n")),
                        false => {
                            has_dash = true;
                            let rest = line.get(indent + 2..).unwrap_or(line);
                            out.push_str(&format!("{pad}- {rest}\n"));
                        }
                    }
                }
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            out.push_str(&format!("{pad}{}:\n", key(name)));
            for element in elements {
                out.push_str(&format!("{pad}- {}\n", scalar(element)));
            }
        }
        other => out.push_str(&format!("{pad}{}: {}\n", key(name), scalar(other))),
    }
}

/// A value on one line.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains('\n') => yaml::encode(value).trim_end().to_owned(),
        // JSON is valid YAML on one line, which keeps comments and indentation simple.
        other => other.to_json(),
    }
}

fn write_members(members: &Map, object: &Value, schema: Option<&Value>, indent: usize, out: &mut String) {
    for (name, value) in members.iter() {
        let property = schema.and_then(|schema| {
            let declared = schema.at(["properties", name.as_str()]);
            declared.or_else(|| schema.get("additionalProperties"))
        });
        write_member(name, value, property, is_required(schema, name), indent, out);
    }
    write_absent(object, schema, indent, out);
}

/// Lists the declared fields that an object does not have.
fn write_absent(object: &Value, schema: Option<&Value>, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    let properties = schema
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    for (name, property) in properties.into_iter().flat_map(Map::iter) {
        // Placeholders for these would suggest that users set them.
        let is_known = indent == 0 && matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status");
        if is_known || object.get(name).is_some() {
            continue;
        }
        write_comment(property, false, &pad, out);
        out.push_str(&format!("{pad}# {}:\n", key(name)));
    }
}

fn write_comment(schema: &Value, required: bool, pad: &str, out: &mut String) {
    push_wrapped(schema.get_str("description").trim(), &format!("{pad}# "), out);
    let facts = facts(schema, required);
    if !facts.is_empty() {
        out.push_str(&format!("{pad}# ({facts})\n"));
    }
}

/// The type and the limits of a field, in one line.
pub(crate) fn facts(schema: &Value, required: bool) -> String {
    let mut facts: Vec<String> = Vec::new();
    match (schema.get_str("type"), schema.get_str("format")) {
        _ if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) => {
            facts.push("integer or string".to_owned());
        }
        ("", _) => {}
        (ty, "") => facts.push(ty.to_owned()),
        (ty, format) => facts.push(format!("{ty}, {format}")),
    }
    if required {
        facts.push("required".to_owned());
    }
    let choices: Vec<String> = schema.list("enum").iter().map(Value::to_json).collect();
    if !choices.is_empty() {
        facts.push(format!("one of {}", choices.join(", ")));
    }
    for keyword in [
        "default",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ] {
        if let Some(value) = schema.get(keyword) {
            facts.push(format!("{keyword} {}", value.to_json()));
        }
    }
    facts.join(", ")
}

fn key(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    // YAML 1.1 reads these words as booleans.
    let is_boolean = matches!(
        name.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    match starts_well && name.chars().all(is_plain) && !is_boolean {
        true => name.to_owned(),
        false => Value::from(name).to_json(),
    }
}

/// The shortest match of a regular expression, as far as its parts can be chosen independently.
pub(super) fn shortest_match(tree: &Hir) -> String {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => String::new(),
        HirKind::Literal(literal) => String::from_utf8_lossy(&literal.0).into_owned(),
        HirKind::Class(class) => character(class).into_iter().collect(),
        HirKind::Repetition(repetition) => {
            // A pattern may repeat thousands of times; request limits refuse longer texts anyway.
            let count = usize::try_from(repetition.min).unwrap_or(0).min(1 << 12);
            shortest_match(&repetition.sub).repeat(count)
        }
        HirKind::Capture(capture) => shortest_match(&capture.sub),
        // Parts are chosen on their own, so an assertion may still fail; the sample is validated afterwards.
        HirKind::Concat(parts) => parts.iter().map(shortest_match).collect(),
        HirKind::Alternation(parts) => {
            let texts = parts.iter().map(shortest_match);
            texts.min_by_key(String::len).unwrap_or_default()
        }
    }
}

/// A character of a class: a lower-case letter or a digit if it has one.
fn character(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|r| (r.start(), r.end())).collect(),
        Class::Bytes(class) => class
            .ranges()
            .iter()
            .map(|r| (char::from(r.start()), char::from(r.end())))
            .collect(),
    };
    let has = |c: &char| ranges.iter().any(|(from, to)| (from..=to).contains(&c));
    // Values of Kubernetes are mostly lower-case names.
    let preferred = ('a'..='z')
        .chain('0'..='9')
        .chain('A'..='Z')
        .chain([' '])
        .find(has);
    preferred.or_else(|| ranges.first().map(|(from, _)| *from))
}
