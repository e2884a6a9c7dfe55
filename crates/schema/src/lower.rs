//! Lowering of the extensions that only Scantling has to rules that every cluster since Kubernetes 1.29
//! accepts.
//!
//! - `x-kubernetes-immutable`: a transition rule that compares old and new value.
//! - `x-kubernetes-immutable-keys`, `-addition-only`, `-deletion-only`: transition rules that compare keys.
//! - `x-kubernetes-unions`: rules that count the fields that are set, and compare the discriminator.
//! - `appliesOnCreate` of a rule: `optionalOldSelf`, with `oldSelf` rewritten as an optional value.
//!
//! A transition rule runs where both the old and the new value exist. An extension also forbids to set or to
//! remove a field, so its rule is on the object around a field that may be unset, and on the field itself
//! otherwise.
//!
//! Expressions cannot iterate over two lists by index. Where elements correspond by index (lists that are
//! neither of type `map` nor `set`), the rule enumerates the indices, so the list needs a small `maxItems`.

mod equality;
mod old_self;

use crate::rules::escape::escape;
use crate::structural::Mutability;
use scantling_value::{Map, Value};

/// The maximum number of list indices that a rule enumerates.
const MAX_ENUMERATED: i64 = 128;

/// The result of lowering a schema.
#[derive(Debug, Default)]
pub struct Lowering {
    /// The rules that were added or rewritten.
    pub rules: Vec<LoweredRule>,
    /// The extensions that no rule can express.
    pub unsupported: Vec<Unsupported>,
}

/// A rule that replaces an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoweredRule {
    /// The field that had the extension: `spec.users[].name`.
    pub field: String,
    /// The extension.
    pub extension: &'static str,
    /// The expression.
    pub rule: String,
}

/// An extension that no rule can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The field that has the extension.
    pub field: String,
    /// The extension.
    pub extension: &'static str,
    /// The reason, and what would help.
    pub reason: String,
}

/// The name of the extension for unions.
const UNIONS: &str = "x-kubernetes-unions";

/// The member that makes a rule apply to new values, too.
const APPLIES_ON_CREATE: &str = "appliesOnCreate";

/// The keyword that contains the rules of a schema.
const VALIDATIONS: &str = "x-kubernetes-validations";

/// Replaces the extensions in the schema of a version (`openAPIV3Schema`) by rules.
pub fn lower(schema: &mut Value) -> Lowering {
    let mut pass = Pass::default();
    if let Some(root) = schema.as_object_mut() {
        pass.schema(root, "");
    }
    pass.lowering
}

/// The reason why an extension cannot be lowered.
type Reason = String;

#[derive(Default)]
struct Pass {
    lowering: Lowering,
}

impl Pass {
    /// Lowers the extensions of a schema and of everything below; the caller has already removed its own
    /// mutability.
    fn schema(&mut self, schema: &mut Map, at: &str) {
        self.unions(schema, at);
        self.rules_on_create(schema, at);
        self.properties(schema, at);
        if let Some(Value::Object(values)) = schema.get_mut("additionalProperties") {
            self.corresponding(values, &format!("{at}[*]"));
        }
        let correlation = correlation(schema);
        let items_at = format!("{at}[]");
        if correlation == Correlation::Index {
            self.indexed_items(schema, &items_at);
        }
        if let Some(Value::Object(items)) = schema.get_mut("items") {
            if correlation == Correlation::Keys {
                return self.corresponding(items, &items_at);
            }
            // Elements of sets are added and removed but never changed; the rule for elements by index is on
            // the list.
            remove_mutability(items);
            self.schema(items, &items_at);
        }
    }

    fn properties(&mut self, schema: &mut Map, at: &str) {
        let required: Vec<String> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        // Moved out, because the loop adds rules to the schema.
        let Some(Value::Object(mut properties)) = schema.remove("properties") else {
            return;
        };
        for (name, property) in properties.iter_mut() {
            let Some(property) = property.as_object_mut() else {
                continue;
            };
            let field = match at {
                "" => name.to_string(),
                at => format!("{at}.{name}"),
            };
            if let Some(mutability) = take_mutability(property) {
                let always_set = required.iter().any(|required| required == name.as_str())
                    || property.get("default").is_some_and(|d| !d.is_null());
                let lowered = match always_set && !is_nullable(property) {
                    true => constraint(mutability, property, "self", "oldSelf")
                        .map(|rule| add_rule(property, &rule, message(mutability), None)),
                    false => constraint_of_property(mutability, name, property, "self", "oldSelf")
                        .map(|rule| add_rule(schema, &rule, message(mutability), Some(name))),
                };
                self.record(field.clone(), mutability, lowered);
                if mutability == Mutability::Immutable {
                    // Everything below is part of it.
                    remove_mutability(property);
                }
            }
            self.schema(property, &field);
        }
        schema.insert("properties", properties.into());
    }

    /// Lowers the schema of values that correspond by key: entries of maps, elements of lists of type `map`.
    /// A transition rule on them is skipped for added and removed ones.
    fn corresponding(&mut self, schema: &mut Map, at: &str) {
        if let Some(mutability) = take_mutability(schema) {
            let lowered = constraint(mutability, schema, "self", "oldSelf")
                .map(|rule| add_rule(schema, &rule, message(mutability), None));
            self.record(at.to_owned(), mutability, lowered);
            if mutability == Mutability::Immutable {
                remove_mutability(schema);
            }
        }
        self.schema(schema, at);
    }

    /// Adds a rule to a list whose elements correspond by index, if their schema limits changes anywhere.
    fn indexed_items(&mut self, list: &mut Map, at: &str) {
        let Some(items) = list.get("items").and_then(Value::as_object) else {
            return;
        };
        let Some(extension) = first_mutability(items) else {
            return;
        };
        let lowered = constraints_below(items, "self[i]", "oldSelf[i]", 0)
            .and_then(|limits| {
                // The extension may be below a set, whose elements never change.
                let limits = limits.unwrap_or_else(|| "true".to_owned());
                Ok(for_each_index(
                    list_length(list)?,
                    "i",
                    "self",
                    "oldSelf",
                    &limits,
                ))
            })
            .map(|rule| {
                add_rule(
                    list,
                    &rule,
                    "an element has changed in a field that is immutable",
                    None,
                )
            });
        self.record(at.to_owned(), extension, lowered);
    }

    fn record(&mut self, field: String, mutability: Mutability, lowered: Result<String, Reason>) {
        let extension = mutability.keyword();
        match lowered {
            Ok(rule) => self.lowering.rules.push(LoweredRule {
                field,
                extension,
                rule,
            }),
            Err(reason) => self.lowering.unsupported.push(Unsupported {
                field,
                extension,
                reason,
            }),
        }
    }

    fn unions(&mut self, schema: &mut Map, at: &str) {
        let Some(Value::Array(unions)) = schema.remove(UNIONS) else {
            return;
        };
        for union in &unions {
            match union_rules(union, schema.get("properties")) {
                Ok(rules) => {
                    for (rule, message, field) in rules {
                        let rule = add_rule(schema, &rule, &message, field);
                        self.lowering.rules.push(LoweredRule {
                            field: at.to_owned(),
                            extension: UNIONS,
                            rule,
                        });
                    }
                }
                Err(reason) => self.lowering.unsupported.push(Unsupported {
                    field: at.to_owned(),
                    extension: UNIONS,
                    reason,
                }),
            }
        }
    }

    /// Rewrites rules that apply on create.
    fn rules_on_create(&mut self, schema: &mut Map, at: &str) {
        let Some(Value::Array(rules)) = schema.get_mut(VALIDATIONS) else {
            return;
        };
        for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
            if rule.remove(APPLIES_ON_CREATE) != Some(Value::Bool(true)) {
                continue;
            }
            match make_optional(rule) {
                Ok(text) => self.lowering.rules.push(LoweredRule {
                    field: at.to_owned(),
                    extension: APPLIES_ON_CREATE,
                    rule: text,
                }),
                Err(reason) => self.lowering.unsupported.push(Unsupported {
                    field: at.to_owned(),
                    extension: APPLIES_ON_CREATE,
                    reason,
                }),
            }
        }
    }
}

/// Makes `oldSelf` of a rule optional. A rule without it applies to new values anyway.
fn make_optional(rule: &mut Map) -> Result<String, Reason> {
    let mut uses_old = false;
    for member in ["rule", "messageExpression"] {
        let text = rule.get_str(member).to_owned();
        if let Some(rewritten) = old_self::rewrite(&text)? {
            rule.insert(member, rewritten.into());
            uses_old = true;
        }
    }
    if uses_old {
        rule.insert("optionalOldSelf", true.into());
    }
    Ok(rule.get_str("rule").to_owned())
}

/// Removes the mutability from a schema and returns it.
fn take_mutability(schema: &mut Map) -> Option<Mutability> {
    let taken =
        Mutability::ALL.map(|mutability| schema.remove(mutability.keyword()) == Some(Value::Bool(true)));
    Mutability::ALL
        .into_iter()
        .zip(taken)
        .find_map(|(mutability, is_set)| is_set.then_some(mutability))
}

/// The mutability of a schema.
fn mutability_of(schema: &Map) -> Option<Mutability> {
    let is_set = |mutability: &Mutability| schema.get(mutability.keyword()) == Some(&Value::Bool(true));
    Mutability::ALL.into_iter().find(is_set)
}

/// The schemas directly below a schema.
fn children(schema: &Map) -> impl Iterator<Item = &Map> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(Map::values);
    let others = ["additionalProperties", "items"].map(|keyword| schema.get(keyword));
    properties
        .chain(others.into_iter().flatten())
        .filter_map(Value::as_object)
}

/// The mutability of a schema, or the first one below it.
fn first_mutability(schema: &Map) -> Option<Mutability> {
    mutability_of(schema).or_else(|| children(schema).find_map(first_mutability))
}

/// Removes the mutability of a schema and of everything below.
fn remove_mutability(schema: &mut Map) {
    take_mutability(schema);
    for keyword in ["additionalProperties", "items"] {
        if let Some(Value::Object(child)) = schema.get_mut(keyword) {
            remove_mutability(child);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (_, property) in properties.iter_mut() {
            if let Some(property) = property.as_object_mut() {
                remove_mutability(property);
            }
        }
    }
}

/// The correspondence of elements of an old and a new list.
#[derive(Clone, Copy, PartialEq)]
enum Correlation {
    /// By their keys.
    Keys,
    /// Not at all.
    None,
    /// By their index.
    Index,
}

fn correlation(list: &Map) -> Correlation {
    match list.get_str("x-kubernetes-list-type") {
        "map" => Correlation::Keys,
        "set" => Correlation::None,
        _ => Correlation::Index,
    }
}

/// The keys of a list of type `map`.
fn list_keys(list: &Map) -> Vec<&str> {
    let keys = list.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    keys.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The number of elements whose indices a rule can enumerate.
fn list_length(list: &Map) -> Result<i64, Reason> {
    match list.get("maxItems").and_then(Value::as_int) {
        Some(length @ 0..=MAX_ENUMERATED) => Ok(length),
        _ => Err(format!(
            "elements of this list correspond by their index, which a rule can only compare in a list of at most \
             {MAX_ENUMERATED} elements; set maxItems, or make it a list of type map"
        )),
    }
}

/// A test of the elements that both lists have, by index.
fn for_each_index(length: i64, index: &str, new: &str, old: &str, test: &str) -> String {
    let indices: Vec<String> = (0..length).map(|i| i.to_string()).collect();
    format!(
        "[{}].all({index}, {index} >= {new}.size() || {index} >= {old}.size() || ({test}))",
        indices.join(", ")
    )
}

/// The test that the keys of two elements are equal.
fn same_keys(keys: &[&str], a: &str, b: &str) -> Result<String, Reason> {
    let tests = keys.iter().map(|key| {
        let key = identifier(key)?;
        Ok(format!("{a}.{key} == {b}.{key}"))
    });
    Ok(tests.collect::<Result<Vec<_>, Reason>>()?.join(" && "))
}

/// A field name as an identifier of expressions.
fn identifier(name: &str) -> Result<String, Reason> {
    escape(name).ok_or_else(|| format!("expressions cannot name the field `{name}`"))
}

/// The test that a mutability is kept between two values that both exist.
fn constraint(mutability: Mutability, schema: &Map, new: &str, old: &str) -> Result<String, Reason> {
    match mutability {
        Mutability::Immutable => equality::equal(schema, new, old),
        Mutability::ImmutableKeys => {
            let (added, removed) = (contains(schema, old, new)?, contains(schema, new, old)?);
            Ok(format!("{added} && {removed}"))
        }
        Mutability::AdditionOnly => contains(schema, new, old),
        Mutability::DeletionOnly => contains(schema, old, new),
    }
}

/// The reason why extensions of nullable fields cannot be lowered.
const NULLABLE: &str = "rules cannot tell null from a field that is not set; remove `nullable`";

fn is_nullable(schema: &Map) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

/// The same for a field that may be unset in either object. An unset collection has no keys.
fn constraint_of_property(
    mutability: Mutability,
    name: &str,
    schema: &Map,
    new: &str,
    old: &str,
) -> Result<String, Reason> {
    if is_nullable(schema) {
        return Err(NULLABLE.to_owned());
    }
    let name = identifier(name)?;
    let (a, b) = (format!("{new}.{name}"), format!("{old}.{name}"));
    let within = |whole: &str, part: &str| -> Result<String, Reason> {
        let test = contains(schema, whole, part)?;
        Ok(format!(
            "(!has({part}) || {part}.size() == 0 || (has({whole}) && {test}))"
        ))
    };
    match mutability {
        Mutability::Immutable => {
            let equal = equality::equal(schema, &a, &b)?;
            Ok(format!("has({a}) == has({b}) && (!has({a}) || ({equal}))"))
        }
        Mutability::ImmutableKeys => Ok(format!("{} && {}", within(&b, &a)?, within(&a, &b)?)),
        Mutability::AdditionOnly => within(&a, &b),
        Mutability::DeletionOnly => within(&b, &a),
    }
}

/// The test that one collection has all keys of another.
fn contains(schema: &Map, whole: &str, part: &str) -> Result<String, Reason> {
    if schema.get_str("type") != "array" {
        if schema.contains_key("properties") {
            return Err(
                "an object with both properties and additional properties has no keys for a rule".into(),
            );
        }
        return Ok(format!("{part}.all(k, k in {whole})"));
    }
    match correlation(schema) {
        Correlation::Keys => {
            let same = same_keys(&list_keys(schema), "x", "y")?;
            Ok(format!("{part}.all(x, {whole}.exists(y, {same}))"))
        }
        Correlation::None => Ok(format!("{part}.all(x, x in {whole})")),
        Correlation::Index => Err("the elements of this list have no keys".into()),
    }
}

/// The expression that everything at and below a schema keeps its mutability, between two existing values;
/// `None` if nothing limits changes. For values that cannot have a transition rule.
fn constraints_below(schema: &Map, new: &str, old: &str, depth: usize) -> Result<Option<String>, Reason> {
    let mut tests = Vec::new();
    match mutability_of(schema) {
        Some(Mutability::Immutable) => return equality::equal(schema, new, old).map(Some),
        Some(keys) => tests.push(constraint(keys, schema, new, old)?),
        None => {}
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties.iter() {
            let Some(property) = property.as_object() else {
                continue;
            };
            if let Some(mutability) = mutability_of(property) {
                tests.push(constraint_of_property(mutability, name, property, new, old)?);
            }
            if mutability_of(property) == Some(Mutability::Immutable) || first_mutability(property).is_none()
            {
                continue;
            }
            let name = identifier(name)?;
            let (a, b) = (format!("{new}.{name}"), format!("{old}.{name}"));
            // Its own mutability has been handled above.
            let mut inner = property.clone();
            take_mutability(&mut inner);
            if let Some(test) = constraints_below(&inner, &a, &b, depth)? {
                tests.push(format!("(!has({a}) || !has({b}) || ({test}))"));
            }
        }
    }
    if let Some(Value::Object(values)) = schema.get("additionalProperties") {
        let k = format!("k{depth}");
        if let Some(test) =
            constraints_below(values, &format!("{new}[{k}]"), &format!("{old}[{k}]"), depth + 1)?
        {
            tests.push(format!("{new}.all({k}, !({k} in {old}) || ({test}))"));
        }
    }
    if let Some(Value::Object(items)) = schema.get("items")
        && first_mutability(items).is_some()
    {
        tests.extend(constraints_below_items(schema, items, new, old, depth)?);
    }
    let tests: Vec<String> = tests.into_iter().map(|test| format!("({test})")).collect();
    Ok((!tests.is_empty()).then(|| tests.join(" && ")))
}

fn constraints_below_items(
    list: &Map,
    items: &Map,
    new: &str,
    old: &str,
    depth: usize,
) -> Result<Option<String>, Reason> {
    match correlation(list) {
        Correlation::None => Ok(None),
        Correlation::Keys => {
            let (x, y) = (format!("x{depth}"), format!("y{depth}"));
            let same = same_keys(&list_keys(list), &x, &y)?;
            let test = constraints_below(items, &x, &y, depth + 1)?;
            Ok(test.map(|test| format!("{new}.all({x}, {old}.all({y}, !({same}) || ({test})))")))
        }
        Correlation::Index => {
            let i = format!("i{depth}");
            let test = constraints_below(items, &format!("{new}[{i}]"), &format!("{old}[{i}]"), depth + 1)?;
            let length = list_length(list)?;
            Ok(test.map(|test| for_each_index(length, &i, new, old, &test)))
        }
    }
}

/// A rule with its message, and the field that it is about.
type UnionRule = (String, String, Option<&'static str>);

/// The rules of a union: exactly one of its fields is set, and the discriminator names it if it is set itself.
fn union_rules(union: &Value, properties: Option<&Value>) -> Result<Vec<UnionRule>, Reason> {
    let fields: Vec<(&str, &str)> = match union.get("fields") {
        Some(Value::Object(fields)) => fields
            .iter()
            .map(|(name, tag)| (name.as_str(), tag.as_str().unwrap_or_default()))
            .collect(),
        _ => return Err("the union has no fields".into()),
    };
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let discriminator = union.get_str("discriminator");
    let property = |name: &str| properties.and_then(|p| p.get(name)).and_then(Value::as_object);
    if names
        .iter()
        .copied()
        .chain([discriminator])
        .filter_map(property)
        .any(is_nullable)
    {
        return Err(NULLABLE.to_owned());
    }
    let set: Vec<String> = names
        .iter()
        .map(|name| Ok(format!("has(self.{})", identifier(name)?)))
        .collect::<Result<_, Reason>>()?;
    let mut rules = vec![(
        format!("[{}].exists_one(set, set)", set.join(", ")),
        format!("exactly one of {} must be set", names.join(", ")),
        None,
    )];
    if !discriminator.is_empty() {
        let name = identifier(discriminator)?;
        let named = fields.iter().zip(&set).map(|((_, tag), set)| {
            // A JSON string is also a string literal of CEL.
            let tag = Value::from(*tag).to_json();
            format!("(self.{name} == {tag} && {set})")
        });
        let named: Vec<String> = named.collect();
        rules.push((
            format!("!has(self.{name}) || {}", named.join(" || ")),
            format!("{discriminator} must name the field that is set"),
            None,
        ));
    }
    Ok(rules)
}

/// The message of a rule.
fn message(mutability: Mutability) -> &'static str {
    match mutability {
        Mutability::Immutable => "field is immutable",
        Mutability::ImmutableKeys => "keys are immutable",
        Mutability::AdditionOnly => "only additions are allowed",
        Mutability::DeletionOnly => "only deletions are allowed",
    }
}

/// Adds a rule to a schema and returns its expression. With a field, the error names that field of the object.
fn add_rule(schema: &mut Map, rule: &str, message: &str, field: Option<&str>) -> String {
    let mut entry = Map::new();
    entry.insert("rule", rule.into());
    entry.insert("message", message.into());
    if let Some(field) = field {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let path = match field.chars().all(is_plain) {
            true => format!(".{field}"),
            false => format!("['{field}']"),
        };
        entry.insert("fieldPath", path.into());
    }
    let rules = schema.get_or_insert_with(VALIDATIONS, || Value::Array(Vec::new()));
    if let Some(rules) = rules.as_array_mut() {
        rules.push(entry.into());
    }
    rule.to_owned()
}
