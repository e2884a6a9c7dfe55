//! Equality of an immutable value as an expression.
//!
//! `==` compares lists of type `set` and of type `map` without regard to the order of their elements. An immutable value
//! may differ in the order of sets, but not in the order of lists of type `map`, so these are compared on top.

use super::{
    Correlation, Reason, children, correlation, for_each_index, identifier, list_keys, list_length, same_keys,
};
use scantling_value::{Map, Value};

/// The test that two values of a schema are equal.
pub(super) fn equal(schema: &Map, a: &str, b: &str) -> Result<String, Reason> {
    if hides_fields(schema) {
        return Err("rules do not see fields that the schema does not declare; declare them".into());
    }
    let mut tests = vec![format!("{a} == {b}")];
    tests.extend(same_order(schema, a, b, 0)?);
    Ok(tests.join(" && "))
}

/// Returns whether values may have fields that `==` ignores.
fn hides_fields(schema: &Map) -> bool {
    let keywords = [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ];
    keywords
        .iter()
        .any(|keyword| schema.get(keyword) == Some(&Value::Bool(true)))
        || children(schema).any(hides_fields)
}

fn has_map_list(schema: &Map) -> bool {
    correlation(schema) == Correlation::Keys || children(schema).any(has_map_list)
}

/// The test that the lists of type `map` in two values, which are equal otherwise, have their elements in the same order.
fn same_order(schema: &Map, a: &str, b: &str, depth: usize) -> Result<Option<String>, Reason> {
    if !has_map_list(schema) {
        return Ok(None);
    }
    let mut tests = Vec::new();
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, property) in properties.iter() {
            let Some(property) = property.as_object().filter(|property| has_map_list(property)) else {
                continue;
            };
            let name = identifier(name)?;
            let (a, b) = (format!("{a}.{name}"), format!("{b}.{name}"));
            if let Some(test) = same_order(property, &a, &b, depth)? {
                // The values are equal except for order, so either both have the field or neither does.
                tests.push(format!("(!has({a}) || ({test}))"));
            }
        }
    }
    if let Some(Value::Object(values)) = schema.get("additionalProperties") {
        let k = format!("k{depth}");
        if let Some(test) = same_order(values, &format!("{a}[{k}]"), &format!("{b}[{k}]"), depth + 1)? {
            tests.push(format!("{a}.all({k}, {test})"));
        }
    }
    if let Some(Value::Object(items)) = schema.get("items") {
        tests.extend(same_order_of_items(schema, items, a, b, depth)?);
    }
    Ok((!tests.is_empty()).then(|| tests.join(" && ")))
}

fn same_order_of_items(
    list: &Map,
    items: &Map,
    a: &str,
    b: &str,
    depth: usize,
) -> Result<Vec<String>, Reason> {
    match correlation(list) {
        Correlation::Keys => {
            let keys = list_keys(list);
            let mut tests = keys
                .iter()
                .map(|key| {
                    let key = identifier(key)?;
                    Ok(format!("{a}.map(e, e.{key}) == {b}.map(e, e.{key})"))
                })
                .collect::<Result<Vec<_>, Reason>>()?;
            let (x, y) = (format!("x{depth}"), format!("y{depth}"));
            if let Some(test) = same_order(items, &x, &y, depth + 1)? {
                let same = same_keys(&keys, &x, &y)?;
                tests.push(format!("{a}.all({x}, {b}.all({y}, !({same}) || ({test})))"));
            }
            Ok(tests)
        }
        Correlation::None if has_map_list(items) => {
            Err("the order of lists inside the elements of a set cannot be compared by a rule".into())
        }
        Correlation::None => Ok(Vec::new()),
        Correlation::Index => {
            let i = format!("i{depth}");
            match same_order(items, &format!("{a}[{i}]"), &format!("{b}[{i}]"), depth + 1)? {
                Some(test) => Ok(vec![for_each_index(list_length(list)?, &i, a, b, &test)]),
                None => Ok(Vec::new()),
            }
        }
    }
}
