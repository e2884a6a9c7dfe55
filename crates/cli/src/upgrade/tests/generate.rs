//! Generates schemas, changes of schemas and objects from a byte sequence that proptest shrinks.

use serde_json::{Map, Value as Json, json};

/// Choices from bytes; once they are used up, always the first one.
pub(super) struct Choices<'b>(std::slice::Iter<'b, u8>);

impl<'b> Choices<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Choices(bytes.iter())
    }

    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count.max(1)
    }

    fn pick<'v>(&mut self, values: &'v [Json]) -> &'v Json {
        &values[self.below(values.len())]
    }
}

const FIELDS: [&str; 3] = ["a", "b", "c"];

/// A schema with an arbitrary specification.
pub(super) fn definition(choices: &mut Choices<'_>) -> Json {
    let spec = schema(choices, 2);
    let mut root = json!({"type": "object", "properties": {"spec": spec}});
    if choices.below(6) == 5 {
        edit(&mut root, choices);
    }
    root
}

fn schema(choices: &mut Choices<'_>, depth: usize) -> Json {
    let kinds = if depth == 0 { 4 } else { 8 };
    let mut schema = match choices.below(kinds) {
        0 => json!({"type": "integer"}),
        1 => json!({"type": "string"}),
        2 => json!({"type": "number"}),
        3 => json!({"x-kubernetes-int-or-string": true}),
        4 => json!({"type": "array", "items": schema(choices, depth - 1)}),
        5 => json!({"type": "object", "additionalProperties": schema(choices, depth - 1)}),
        _ => {
            let mut fields = Map::new();
            for name in FIELDS.iter().take(choices.below(3) + 1) {
                fields.insert((*name).to_owned(), schema(choices, depth - 1));
            }
            json!({"type": "object", "properties": fields})
        }
    };
    for _ in 0..choices.below(3) {
        edit(&mut schema, choices);
    }
    schema
}

/// A schema with one or two changes somewhere.
pub(super) fn changed(schema: &Json, choices: &mut Choices<'_>) -> Json {
    let mut schema = schema.clone();
    for _ in 0..=choices.below(2) {
        edit(somewhere(&mut schema, choices), choices);
    }
    schema
}

fn somewhere<'s>(schema: &'s mut Json, choices: &mut Choices<'_>) -> &'s mut Json {
    if choices.below(4) == 3 {
        return schema;
    }
    let below = match &*schema {
        Json::Object(members) if members.contains_key("properties") => "properties",
        Json::Object(members) if members.contains_key("items") => "items",
        Json::Object(members) if members.contains_key("additionalProperties") => "additionalProperties",
        _ => return schema,
    };
    let next = &mut schema[below];
    if below != "properties" {
        return somewhere(next, choices);
    }
    let names: Vec<String> = next.as_object().unwrap().keys().cloned().collect();
    match names.get(choices.below(names.len())) {
        Some(name) => somewhere(&mut next[name], choices),
        None => next,
    }
}

/// Sets or removes a keyword.
fn edit(schema: &mut Json, choices: &mut Choices<'_>) {
    let ty = schema["type"].as_str().unwrap_or_default().to_owned();
    let (keyword, values) = keyword(&ty, choices);
    if keyword == "properties" {
        return edit_fields(schema, choices);
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    match choices.below(values.len() + 1) {
        0 => {
            members.remove(keyword);
        }
        n => {
            members.insert(keyword.to_owned(), values[n - 1].clone());
        }
    }
    // The keys that a list of type `map` requires.
    if members.get("x-kubernetes-list-type") == Some(&json!("map")) {
        members.insert("x-kubernetes-list-map-keys".to_owned(), json!(["a"]));
    } else {
        members.remove("x-kubernetes-list-map-keys");
    }
}

fn edit_fields(schema: &mut Json, choices: &mut Choices<'_>) {
    let name = FIELDS[choices.below(FIELDS.len())];
    let Some(fields) = schema.get_mut("properties").and_then(Json::as_object_mut) else {
        return;
    };
    if fields.remove(name).is_none() {
        fields.insert(name.to_owned(), self::schema(choices, 0));
    }
}

fn keyword(ty: &str, choices: &mut Choices<'_>) -> (&'static str, Vec<Json>) {
    let rules = |rules: &[&str]| -> Vec<Json> { rules.iter().map(|r| json!([{"rule": r}])).collect() };
    let list = |values: Json| values.as_array().unwrap().clone();
    let common = choices.below(3) == 0;
    match (ty, choices.below(9)) {
        _ if common && choices.below(2) == 0 => ("nullable", list(json!([true]))),
        ("integer" | "number", _) if common => ("default", list(json!([0, 1, 2]))),
        ("string", _) if common => ("default", list(json!(["", "a", "ab"]))),
        ("array", _) if common => ("default", list(json!([[], ["a"]]))),
        ("object", _) if common => ("default", list(json!([{}, {"a": 1}, {"a": "a"}]))),
        ("integer" | "number", n) => match n {
            0 => ("minimum", list(json!([0, 1, 2]))),
            1 => ("maximum", list(json!([1, 2, 3]))),
            2 => ("exclusiveMaximum", list(json!([true]))),
            3 => ("exclusiveMinimum", list(json!([true]))),
            4 => ("multipleOf", list(json!([1, 2, 4]))),
            5 => ("enum", list(json!([[0, 1], [1, 2, 3], [0, 1, 2]]))),
            6 => ("type", list(json!(["integer", "number", "string"]))),
            7 => (
                "anyOf",
                list(json!([[{"minimum": 1}], [{"minimum": 1}, {"maximum": 0}]])),
            ),
            _ => (
                "x-kubernetes-validations",
                rules(&[
                    "self > 0",
                    "self >= oldSelf",
                    "self == oldSelf",
                    "self != oldSelf",
                ]),
            ),
        },
        ("string", n) => match n {
            0 => ("minLength", list(json!([0, 1, 2]))),
            1 => ("maxLength", list(json!([0, 1, 2]))),
            2 => ("pattern", list(json!(["^a", "b$"]))),
            3 => ("enum", list(json!([["a"], ["", "a", "b"], ["ab"]]))),
            4 => ("format", list(json!(["date", "byte", "ipv4", "nonsense"]))),
            5 => ("type", list(json!(["integer", "string"]))),
            6 => ("not", list(json!([{"maxLength": 1}, {"pattern": "b"}]))),
            7 => (
                "oneOf",
                list(json!([[{"maxLength": 1}], [{"maxLength": 1}, {"pattern": "^ab"}]])),
            ),
            _ => (
                "x-kubernetes-validations",
                rules(&[
                    "self.size() < 2",
                    "self == oldSelf",
                    "self.size() > oldSelf.size()",
                ]),
            ),
        },
        ("array", n) => match n {
            0 => ("minItems", list(json!([1, 2]))),
            1 => ("maxItems", list(json!([1, 2]))),
            2 | 3 => ("x-kubernetes-list-type", list(json!(["atomic", "set", "map"]))),
            4 => (
                "allOf",
                list(json!([[{"maxItems": 1}], [{"maxItems": 1}, {"minItems": 1}]])),
            ),
            _ => (
                "x-kubernetes-validations",
                rules(&[
                    "self.size() < 2",
                    "self == oldSelf",
                    "self.size() >= oldSelf.size()",
                ]),
            ),
        },
        ("object", n) => match n {
            0 => ("required", list(json!([["a"], ["a", "b"], ["spec"]]))),
            1 => ("minProperties", list(json!([1, 2]))),
            2 => ("maxProperties", list(json!([1, 2]))),
            3 => ("x-kubernetes-preserve-unknown-fields", list(json!([true]))),
            4 => (
                "anyOf",
                list(json!([[{"required": ["a"]}], [{"required": ["a"]}, {"required": ["b"]}]])),
            ),
            5 | 6 => ("properties", Vec::new()),
            _ => (
                "x-kubernetes-validations",
                rules(&[
                    "has(self.a)",
                    "!has(self.a) || has(self.b)",
                    "self == oldSelf",
                    "self.a == oldSelf.a",
                    "has(self.a) == has(oldSelf.a)",
                    "!has(oldSelf.a) || has(self.a)",
                    "size(self) < 2",
                    "has(self.spec)",
                ]),
            ),
        },
        _ => ("x-kubernetes-int-or-string", list(json!([true]))),
    }
}

/// A specification that may or may not conform to a schema.
pub(super) fn spec(schema: &Json, choices: &mut Choices<'_>) -> Json {
    fitting(&schema["properties"]["spec"], choices)
}

fn fitting(schema: &Json, choices: &mut Choices<'_>) -> Json {
    let numbers = json!([1, 0, 2, 3, -1, 4]);
    let floats = json!([1, 0.5, 2, 1.5, 3]);
    let texts = json!(["a", "", "b", "ab", "abc", "2020-01-01", "YWI="]);
    let of = |values: &Json, choices: &mut Choices<'_>| choices.pick(values.as_array().unwrap()).clone();
    match choices.below(12) {
        10 => return Json::Null,
        // No lists: kube-apiserver accepts them in place of a string with a format.
        11 => return of(&json!(["a", 1, {}]), choices),
        _ => {}
    }
    match schema["type"].as_str().unwrap_or_default() {
        "integer" => of(&numbers, choices),
        "number" => of(&floats, choices),
        "string" => of(&texts, choices),
        "array" => (0..choices.below(4))
            .map(|_| fitting(&schema["items"], choices))
            .collect(),
        "object" => {
            let mut members = Map::new();
            for name in FIELDS {
                if choices.below(3) == 2 {
                    continue;
                }
                let below = schema["properties"]
                    .get(name)
                    .or(schema.get("additionalProperties"));
                if let Some(below) = below {
                    members.insert(name.to_owned(), fitting(below, choices));
                } else if choices.below(3) == 1 {
                    members.insert(name.to_owned(), of(&json!([1, "a", {"a": 1}, [1]]), choices));
                }
            }
            members.into()
        }
        _ => of(&json!([1, "a"]), choices),
    }
}
