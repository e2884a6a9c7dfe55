//! Finds valid objects of a schema.
//!
//! Values are derived from the keywords of their schema. Rules and alternatives (`anyOf`, `oneOf`) are
//! satisfied by trial: fields are added near the errors until the object is valid.

use scantling_cel::ast::{Expr, ExprKind, Literal};
use scantling_cel::syntax::{ParseOptions, parse};
use scantling_value::{FieldError, Map, Segment, Value};
use std::collections::BTreeSet;

/// The maximum number of objects that are tried.
const MAX_TRIALS: usize = 4_000;

/// Validates an object.
type Validate<'a> = &'a dyn Fn(&Value) -> Vec<FieldError>;

pub(super) struct Generator<'a> {
    schema: Option<&'a Value>,
    head: Map,
    validate: Validate<'a>,
}

impl<'a> Generator<'a> {
    /// Creates a generator of objects that begin with `head`.
    pub(super) fn new(schema: Option<&'a Value>, head: Map, validate: Validate<'a>) -> Self {
        Generator {
            schema,
            head,
            validate,
        }
    }

    /// Returns the smallest valid object found, or the errors of the best one.
    pub(super) fn smallest(&self) -> Result<Value, String> {
        let mut object = Value::Object(self.head.clone());
        if let (Some(schema), Some(members)) = (self.schema, object.as_object_mut())
            && let Value::Object(required) = required_object(schema, 0)
        {
            for (name, value) in required.iter() {
                members.get_or_insert_with(name, || value.clone());
            }
        }
        self.repaired(object)
    }

    /// Returns a valid object with as many fields as possible.
    pub(super) fn full(&self) -> Result<Value, String> {
        let mut object = self.smallest()?;
        let Some(schema) = self.schema else {
            return Ok(object);
        };
        let mut trials = 0;
        self.fill(schema, &mut Vec::new(), &mut object, &mut trials);
        Ok(object)
    }

    /// Adds fields near the errors of an object until it is valid.
    fn repaired(&self, mut object: Value) -> Result<Value, String> {
        let mut errors = (self.validate)(&object);
        let mut trials = 0;
        // Errors seen before are no progress; without this, two candidates could alternate forever.
        let mut seen = BTreeSet::new();
        while let Some(first) = errors.first() {
            let before = errors.len();
            seen.insert(texts(&errors));
            let mut better = None;
            for candidate in self.candidates(&object, &errors) {
                trials += 1;
                let remaining = (self.validate)(&candidate);
                // Different errors are progress, too, unless they occurred before.
                let is_new = remaining.len() <= before && !seen.contains(&texts(&remaining));
                if remaining.len() < before || is_new {
                    better = Some((candidate, remaining));
                    break;
                }
                if trials >= MAX_TRIALS {
                    break;
                }
            }
            match better {
                Some((candidate, remaining)) => (object, errors) = (candidate, remaining),
                None => return Err(first.to_string()),
            }
        }
        Ok(object)
    }

    /// Objects with one more field, or another value of an enumeration, at or above the fields that have errors.
    fn candidates(&self, object: &Value, errors: &[FieldError]) -> Vec<Value> {
        let mut candidates = Vec::new();
        let Some(schema) = self.schema else {
            return candidates;
        };
        for name in literals(schema) {
            // Singleton kinds have a rule about the name.
            let mut candidate = object.clone();
            if let Some(place) = value_at_mut(
                &mut candidate,
                &[OwnedSegment::name("metadata"), OwnedSegment::name("name")],
            ) {
                *place = name.into();
                candidates.push(candidate);
            }
        }
        for error in errors {
            let path: Vec<OwnedSegment> = error.at().segments().map(OwnedSegment::from).collect();
            // From the field itself upwards: the nearest change keeps the sample small.
            for length in (0..=path.len()).rev() {
                let at = path.get(..length).unwrap_or_default();
                let (Some(schema), Some(value)) = (schema_at(schema, at), value_at(object, at)) else {
                    continue;
                };
                for changed in changes(schema, value) {
                    let mut candidate = object.clone();
                    if let Some(place) = value_at_mut(&mut candidate, at) {
                        *place = changed;
                        candidates.push(candidate);
                    }
                }
            }
        }
        candidates
    }

    /// Adds every optional field with which the object stays valid.
    fn fill(&self, schema: &Value, at: &mut Vec<OwnedSegment>, object: &mut Value, trials: &mut usize) {
        const MAX_DEPTH: usize = 24;
        if at.len() > MAX_DEPTH || *trials >= MAX_TRIALS {
            return;
        }
        if let Some(Value::Object(properties)) = schema.get("properties") {
            for (name, property) in properties.iter() {
                if at.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                    continue;
                }
                at.push(OwnedSegment::Name(name.to_string()));
                // A field that `smallest` has added is kept, and only its children are filled.
                if value_at(object, at).is_none() {
                    self.try_add(property, at, object, trials);
                }
                if value_at(object, at).is_some() {
                    self.fill(property, at, object, trials);
                }
                at.pop();
            }
        }
        let (list, map) = (schema.get("items"), schema.get("additionalProperties"));
        if let Some(child) = list.or(map).filter(|child| child.as_object().is_some()) {
            let step = match list {
                Some(_) => OwnedSegment::Index(0),
                None => OwnedSegment::Name("key".to_owned()),
            };
            at.push(step);
            if value_at(object, at).is_none() {
                self.try_add(child, at, object, trials);
            }
            if value_at(object, at).is_some() {
                self.fill(child, at, object, trials);
            }
            at.pop();
        }
    }

    fn try_add(&self, schema: &Value, at: &[OwnedSegment], object: &mut Value, trials: &mut usize) {
        for value in alternatives(schema) {
            *trials += 1;
            let mut candidate = object.clone();
            if insert(&mut candidate, at, value).is_some() && (self.validate)(&candidate).is_empty() {
                *object = candidate;
                return;
            }
        }
    }
}

/// An owned [`Segment`] of a path to a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum OwnedSegment {
    Name(String),
    Index(usize),
}

impl OwnedSegment {
    fn name(name: &str) -> OwnedSegment {
        OwnedSegment::Name(name.to_owned())
    }
}

impl From<Segment<'_>> for OwnedSegment {
    fn from(segment: Segment<'_>) -> Self {
        match segment {
            Segment::Field(name) | Segment::Key(name) => OwnedSegment::Name(name.to_owned()),
            Segment::Index(index) => OwnedSegment::Index(index),
        }
    }
}

fn schema_at<'s>(schema: &'s Value, at: &[OwnedSegment]) -> Option<&'s Value> {
    at.iter().try_fold(schema, |schema, step| match step {
        OwnedSegment::Name(name) => schema
            .at(["properties", name.as_str()])
            .or_else(|| schema.get("additionalProperties")),
        OwnedSegment::Index(_) => schema.get("items"),
    })
}

fn value_at<'v>(value: &'v Value, at: &[OwnedSegment]) -> Option<&'v Value> {
    at.iter().try_fold(value, |value, step| match step {
        OwnedSegment::Name(name) => value.get(name),
        OwnedSegment::Index(index) => value.as_array()?.get(*index),
    })
}

fn value_at_mut<'v>(value: &'v mut Value, at: &[OwnedSegment]) -> Option<&'v mut Value> {
    at.iter().try_fold(value, |value, step| match step {
        OwnedSegment::Name(name) => value.as_object_mut()?.get_mut(name),
        OwnedSegment::Index(index) => value.as_array_mut()?.get_mut(*index),
    })
}

/// Inserts a value into its parent object or list.
fn insert(object: &mut Value, at: &[OwnedSegment], value: Value) -> Option<()> {
    let (last, above) = at.split_last()?;
    let around = value_at_mut(object, above)?;
    match last {
        OwnedSegment::Name(name) => {
            around.as_object_mut()?.insert(name.as_str(), value);
        }
        OwnedSegment::Index(_) => around.as_array_mut()?.push(value),
    }
    Some(())
}

/// Variants of a value: with one more field, or another choice.
fn changes(schema: &Value, value: &Value) -> Vec<Value> {
    match value {
        Value::Object(members) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let absent = properties
                .into_iter()
                .flat_map(Map::iter)
                .filter(|(name, _)| !members.contains_key(name));
            let with = |(name, property): (&scantling_value::Str, &Value)| {
                let (name, members) = (name.clone(), members.clone());
                let added = alternatives(property).into_iter().map(move |value| {
                    let mut members = members.clone();
                    members.insert(name.clone(), value);
                    Value::Object(members)
                });
                added.collect::<Vec<_>>()
            };
            absent.flat_map(with).collect()
        }
        Value::Array(elements) => {
            let Some(items) = schema.get("items") else {
                return Vec::new();
            };
            let with = alternatives(items).into_iter().map(|value| {
                let mut elements = elements.clone();
                elements.push(value);
                Value::Array(elements)
            });
            with.collect()
        }
        other => alternatives(schema)
            .into_iter()
            .filter(|value| value != other)
            .collect(),
    }
}

/// The values of a schema that are worth trying.
fn alternatives(schema: &Value) -> Vec<Value> {
    let choices = schema.list("enum");
    if !choices.is_empty() {
        return choices.to_vec();
    }
    match schema.get_str("type") {
        "boolean" if schema.get("default").is_none() => vec![true.into(), false.into()],
        "string" => {
            let others = literals(schema)
                .into_iter()
                // `1` fits rules and patterns that demand digits.
                .chain(["example".to_owned(), "1".to_owned()]);
            let mut texts = vec![value_of(schema, 0)];
            texts.extend(others.map(Value::from));
            texts
        }
        _ => vec![value_of(schema, 0)],
    }
}

/// The string literals in the rules of a schema: rules often compare a value with one of them.
fn literals(schema: &Value) -> Vec<String> {
    fn collect(expr: &Expr, found: &mut Vec<String>) {
        if let ExprKind::Literal(Literal::String(text)) = &expr.kind {
            found.push(text.to_string());
        }
        expr.for_each_child(|child| collect(child, found));
    }
    let mut found = Vec::new();
    for rule in schema.list("x-kubernetes-validations") {
        if let Ok(ast) = parse(rule.get_str("rule"), &ParseOptions::default()) {
            collect(&ast.root, &mut found);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The texts of errors.
fn texts(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The maximum depth of a generated value.
const MAX_LEVEL: usize = 48;

/// The object that has the required fields of a schema.
fn required_object(schema: &Value, level: usize) -> Value {
    let mut members = Map::new();
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        // kube-apiserver requires both fields of an embedded resource, whatever the schema says.
        members.insert("apiVersion", "v1".into());
        members.insert("kind", "ConfigMap".into());
    }
    if level < MAX_LEVEL {
        for name in schema.list("required").iter().filter_map(Value::as_str) {
            let property = schema.at(["properties", name]);
            let property = property.or_else(|| schema.get("additionalProperties"));
            let value = || property.map_or_else(|| Value::Object(Map::new()), |p| value_of(p, level + 1));
            members.get_or_insert_with(name, value);
        }
        let missing = usize::try_from(schema.get("minProperties").and_then(Value::as_int).unwrap_or(0))
            .unwrap_or(0)
            .saturating_sub(members.len())
            .min(16);
        let declared = schema.get("properties").and_then(Value::as_object);
        let mut declared = declared.into_iter().flat_map(Map::iter);
        for n in 0..missing {
            match declared.find(|(name, _)| !members.contains_key(name)) {
                Some((name, property)) => {
                    members.insert(name.clone(), value_of(property, level + 1));
                }
                None => {
                    let value = schema.get("additionalProperties").map(|p| value_of(p, level + 1));
                    members.insert(format!("key{n}"), value.unwrap_or_default());
                }
            }
        }
    }
    members.into()
}

/// A value of a schema.
fn value_of(schema: &Value, level: usize) -> Value {
    // The default comes first: it is the value that an omitted field would get.
    if let Some(default) = schema.get("default") {
        return default.clone();
    }
    if let Some(first) = schema.list("enum").first() {
        return first.clone();
    }
    // The schema of such a field has no `type`.
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return Value::Int(1);
    }
    match schema.get_str("type") {
        "string" => string_of(schema).into(),
        "integer" => Value::Int(number_of(schema).ceil() as i64),
        "number" => {
            let number = number_of(schema);
            match number.fract() == 0.0 {
                // A whole number as an integer, so that YAML prints `1` and not `1.0`.
                true => Value::Int(number as i64),
                false => Value::Float(number),
            }
        }
        "boolean" => false.into(),
        "array" => {
            let count = schema
                .get("minItems")
                .and_then(Value::as_int)
                .unwrap_or(0)
                // A larger minimum is left to the repair, which adds one element at a time.
                .clamp(0, 16);
            let item = schema.get("items").map(|items| value_of(items, level + 1));
            let items = (0..count).map(|n| numbered(item.clone().unwrap_or_default(), n));
            Value::Array(items.collect())
        }
        _ => required_object(schema, level),
    }
}

/// Makes the elements of a list distinct.
fn numbered(value: Value, n: i64) -> Value {
    match value {
        // The first element stays as it is: a list of one keeps the value of its enumeration.
        value if n == 0 => value,
        Value::String(text) => format!("{text}{n}").into(),
        Value::Int(number) => Value::Int(number + n),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), numbered(value.clone(), n)));
            Value::Object(members.collect())
        }
        value => value,
    }
}

/// A number within the bounds of a schema: 1 if possible.
fn number_of(schema: &Value) -> f64 {
    let bound = |keyword: &str| match schema.get(keyword)? {
        Value::Int(bound) => Some(*bound as f64),
        Value::Float(bound) => Some(*bound),
        _ => None,
    };
    let is_exclusive = |keyword: &str| schema.get(keyword) == Some(&Value::Bool(true));
    let mut number = 1.0_f64;
    if let Some(minimum) = bound("minimum") {
        let least = if is_exclusive("exclusiveMinimum") {
            minimum + 1.0
        } else {
            minimum
        };
        number = number.max(least);
    }
    if let Some(maximum) = bound("maximum") {
        let most = if is_exclusive("exclusiveMaximum") {
            maximum - 1.0
        } else {
            maximum
        };
        number = number.min(most);
    }
    match bound("multipleOf") {
        Some(step) if step > 0.0 => (number / step).ceil() * step,
        _ => number,
    }
}

/// Sample strings by format.
const FORMATS: [(&str, &str); 22] = [
    ("bsonobjectid", "507f1f77bcf86cd799439011"),
    ("byte", "ZXhhbXBsZQ=="),
    ("cidr", "10.0.0.0/8"),
    ("creditcard", "4111111111111111"),
    ("date", "2026-01-01"),
    ("date-time", "2026-01-01T00:00:00Z"),
    ("datetime", "2026-01-01T00:00:00Z"),
    ("duration", "1h"),
    ("email", "someone@example.com"),
    ("hexcolor", "#aabbcc"),
    ("hostname", "example.com"),
    ("ipv4", "10.0.0.1"),
    ("ipv6", "fd00::1"),
    ("isbn", "9783161484100"),
    ("isbn10", "3161484100"),
    ("isbn13", "9783161484100"),
    ("mac", "00:00:5e:00:53:01"),
    ("rgbcolor", "rgb(1,2,3)"),
    ("ssn", "111-11-1111"),
    ("uri", "https://example.com"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
    ("password", "example"),
];

fn string_of(schema: &Value) -> String {
    let format = schema.get_str("format");
    if let Some((_, text)) = FORMATS.iter().find(|(name, _)| *name == format) {
        return (*text).to_owned();
    }
    let length = |keyword: &str| {
        let length = schema.get(keyword).and_then(Value::as_int)?;
        usize::try_from(length).ok()
    };
    // `minLength` can be any number; the request limit would refuse longer samples anyway.
    let least = length("minLength").unwrap_or(0).min(1 << 16);
    let pattern = schema.get_str("pattern");
    // Formats that the table lacks, and patterns that do not parse, fall through to plain text.
    if !pattern.is_empty()
        && let Ok(tree) = regex_syntax::parse(pattern)
    {
        let text = super::write::shortest_match(&tree);
        let missing = least.saturating_sub(text.chars().count());
        // If the pattern ends in a repetition, its last character may be repeated.
        let last: String = text.chars().last().into_iter().collect();
        return format!("{text}{}", last.repeat(missing));
    }
    let mut text = "example".to_owned();
    if let Some(most) = length("maxLength") {
        text = text.chars().take(most).collect();
    }
    let missing = least.saturating_sub(text.chars().count());
    text.push_str(&"a".repeat(missing));
    text
}
