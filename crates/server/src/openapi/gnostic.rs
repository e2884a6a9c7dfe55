//! OpenAPI in protobuf (gnostic's `openapi.v2` and `openapi.v3`), which clients prefer because it is faster to decode.
//!
//! A message is a table of its fields, with the numbers of gnostic's `.proto` files; one encoder interprets the tables.
//! They cover the keywords that this server's documents contain.

use crate::codec::protobuf::{boolean, bytes, double, number, string};
use Content::{Amount, Count, Each, Extensions, Flag, Limits, One, Text, Texts};
use MessageForm::{Any, Choice, Entries, Fields, In, Scalar};
use scantling_value::{Map, Value};

/// The form of a JSON value as a message.
enum MessageForm {
    /// An object, by these members.
    Fields(&'static [MessageField]),
    /// The message is in one field of another one, which JSON does not have.
    In(u64, &'static MessageForm),
    /// The members of an object, in this field: each has its name in field 1 and its value in field 2.
    Entries(u64, &'static MessageForm),
    /// The first message for a value that passes the test, the second one for others.
    Choice(fn(&Value) -> bool, &'static MessageForm, &'static MessageForm),
    /// A number in field 1, a boolean in field 2, or a string in this field. Other values are empty messages.
    Scalar(u64),
    /// Any value, as YAML.
    Any,
}

/// A field: its number, the member that it holds, and how the member is written.
type MessageField = (u64, &'static str, Content);

enum Content {
    Text,
    Texts,
    /// A boolean that is written if it is true.
    Flag,
    /// An integer that is written unless it is 0.
    Count,
    /// A double that is written unless it is 0.
    Amount,
    One(&'static MessageForm),
    /// A message per element of a list.
    Each(&'static MessageForm),
    /// All members with the prefix `x-`.
    Extensions,
    /// The fields of [`LIMITS`], counted from this one.
    Limits,
}

impl MessageForm {
    fn encode(&self, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Fields(fields) => write_fields(&mut out, 0, fields, value),
            In(field, content) => bytes(&mut out, *field, &content.encode(value)),
            Entries(field, content) => {
                for (name, member) in value.as_object().into_iter().flat_map(Map::iter) {
                    write_entry(&mut out, *field, name, content, member);
                }
            }
            Choice(test, first, second) => {
                let message = if test(value) { first } else { second };
                return message.encode(value);
            }
            Scalar(field) => match value {
                #[expect(clippy::cast_precision_loss, reason = "the format has doubles alone")]
                Value::Int(n) => double(&mut out, 1, *n as f64),
                Value::Float(f) => double(&mut out, 1, *f),
                Value::Bool(b) => boolean(&mut out, 2, *b),
                Value::String(s) => string(&mut out, *field, s),
                Value::Null | Value::Array(_) | Value::Object(_) => {}
            },
            // gnostic's clients parse this field as YAML.
            Any => string(&mut out, 2, &scantling_value::yaml::encode(value)),
        }
        out
    }
}

/// Writes fields whose numbers count from `first`.
fn write_fields(out: &mut Vec<u8>, first: u64, fields: &[MessageField], value: &Value) {
    for (field, name, content) in fields {
        let field = first + field;
        match (content, value.get(name)) {
            (Text, Some(Value::String(s))) => string(out, field, s),
            (Texts, Some(list)) => {
                let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
                texts.for_each(|s| string(out, field, s));
            }
            (Flag, Some(Value::Bool(true))) => boolean(out, field, true),
            (Count, Some(Value::Int(n))) if *n != 0 => number(out, field, *n),
            #[expect(clippy::cast_precision_loss, reason = "the format has doubles alone")]
            (Amount, Some(Value::Int(n))) if *n != 0 => double(out, field, *n as f64),
            (Amount, Some(Value::Float(f))) if *f != 0.0 => double(out, field, *f),
            (One(message), Some(member)) => bytes(out, field, &message.encode(member)),
            (Each(message), Some(list)) => {
                let items = list.as_array().into_iter().flatten();
                items.for_each(|item| bytes(out, field, &message.encode(item)));
            }
            (Extensions, _) => {
                let members = value.as_object().into_iter().flat_map(Map::iter);
                for (name, member) in members.filter(|(name, _)| name.starts_with("x-")) {
                    write_entry(out, field, name, &Any, member);
                }
            }
            (Limits, _) => write_fields(out, field, LIMITS, value),
            _ => {}
        }
    }
}

/// `NamedX { name = 1, value = 2 }`
fn write_entry(out: &mut Vec<u8>, field: u64, name: &str, content: &MessageForm, value: &Value) {
    let mut entry = Vec::new();
    string(&mut entry, 1, name);
    bytes(&mut entry, 2, &content.encode(value));
    bytes(out, field, &entry);
}

/// The beginning of a document of v2: version and `info`. Paths are field 8, schemas field 9.
pub(super) fn beginning(swagger: &str, info: Value) -> Vec<u8> {
    static BEGINNING: MessageForm = Fields(&[(1, "swagger", Text), (2, "info", One(&INFO))]);
    static INFO: MessageForm = Fields(&[(1, "title", Text), (2, "version", Text)]);
    BEGINNING.encode(&super::object([("swagger", swagger.into()), ("info", info)]))
}

/// The end of a document of v2: shared parameters and security.
pub(super) fn end(parameters: Map, (security, definitions): (Value, Value)) -> Vec<u8> {
    static END: MessageForm = Fields(&[
        (10, "parameters", One(&Entries(1, &OWN_PARAMETER))),
        (12, "security", Each(&Entries(1, &Fields(&[])))),
        (13, "securityDefinitions", One(&Entries(1, &In(2, &KEY)))),
    ]);
    static KEY: MessageForm = Fields(&[
        (1, "type", Text),
        (2, "name", Text),
        (3, "in", Text),
        (4, "description", Text),
    ]);
    END.encode(&super::object([
        ("parameters", parameters.into()),
        ("security", security),
        ("securityDefinitions", definitions),
    ]))
}

/// An entry of the paths of a document of v2.
pub(super) fn named_path(name: &str, item: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_entry(&mut out, 2, name, &PATH_ITEM, item);
    out
}

/// An entry of the schemas of a document of v2.
pub(super) fn named_schema(name: &str, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_entry(&mut out, 1, name, &SCHEMA, value);
    out
}

/// A document of v3.
pub(super) fn document(value: &Value) -> Vec<u8> {
    v3::DOCUMENT.encode(value)
}

/// The validation keywords: fifteen consecutive fields in either version.
const LIMITS: &[MessageField] = &[
    (0, "multipleOf", Amount),
    (1, "maximum", Amount),
    (2, "exclusiveMaximum", Flag),
    (3, "minimum", Amount),
    (4, "exclusiveMinimum", Flag),
    (5, "maxLength", Count),
    (6, "minLength", Count),
    (7, "pattern", Text),
    (8, "maxItems", Count),
    (9, "minItems", Count),
    (10, "uniqueItems", Flag),
    (11, "maxProperties", Count),
    (12, "minProperties", Count),
    (13, "required", Texts),
    (14, "enum", Each(&Any)),
];

static PATH_ITEM: MessageForm = Fields(&[
    (2, "get", One(&OPERATION)),
    (3, "put", One(&OPERATION)),
    (4, "post", One(&OPERATION)),
    (5, "delete", One(&OPERATION)),
    (6, "options", One(&OPERATION)),
    (7, "head", One(&OPERATION)),
    (8, "patch", One(&OPERATION)),
    (9, "parameters", Each(&PARAMETER)),
]);

static OPERATION: MessageForm = Fields(&[
    (1, "tags", Texts),
    (3, "description", Text),
    (5, "operationId", Text),
    (6, "produces", Texts),
    (7, "consumes", Texts),
    (8, "parameters", Each(&PARAMETER)),
    (9, "responses", One(&Entries(1, &In(1, &RESPONSE)))),
    (10, "schemes", Texts),
    (13, "", Extensions),
]);

static RESPONSE: MessageForm = Fields(&[(1, "description", Text), (2, "schema", One(&In(1, &SCHEMA)))]);

static PARAMETER: MessageForm = Choice(is_reference, &In(2, &REFERENCE), &In(1, &OWN_PARAMETER));

static REFERENCE: MessageForm = Fields(&[(1, "$ref", Text)]);

fn is_reference(value: &Value) -> bool {
    value.get("$ref").is_some_and(|name| name.as_str().is_some())
}

static OWN_PARAMETER: MessageForm = Choice(
    |parameter| parameter.get_str("in") == "body",
    &In(1, &BODY_PARAMETER),
    &In(2, &OTHER_PARAMETER),
);

static OTHER_PARAMETER: MessageForm = Choice(
    |parameter| parameter.get_str("in") == "path",
    &In(4, &PATH_PARAMETER),
    &In(3, &QUERY_PARAMETER),
);

static BODY_PARAMETER: MessageForm = Fields(&[
    (1, "description", Text),
    (2, "name", Text),
    (3, "in", Text),
    (4, "required", Flag),
    (5, "schema", One(&SCHEMA)),
]);

static PATH_PARAMETER: MessageForm = Fields(&[
    (1, "required", Flag),
    (2, "in", Text),
    (3, "description", Text),
    (4, "name", Text),
    (5, "type", Text),
    (19, "uniqueItems", Flag),
]);

/// It has one field more than the parameter of a path, `allow_empty_value`.
static QUERY_PARAMETER: MessageForm = Fields(&[
    (1, "required", Flag),
    (2, "in", Text),
    (3, "description", Text),
    (4, "name", Text),
    (6, "type", Text),
    (20, "uniqueItems", Flag),
]);

static SCHEMA: MessageForm = Fields(&[
    (1, "$ref", Text),
    (2, "format", Text),
    (3, "title", Text),
    (4, "description", Text),
    (5, "default", One(&Any)),
    (6, "", Limits),
    (21, "additionalProperties", One(&ADDITIONAL)),
    (22, "type", One(&Scalar(1))),
    (23, "items", One(&In(1, &SCHEMA))),
    (24, "allOf", Each(&SCHEMA)),
    (25, "properties", One(&Entries(1, &SCHEMA))),
    (30, "example", One(&Any)),
    (31, "", Extensions),
]);

/// A schema or a boolean.
static ADDITIONAL: MessageForm = Choice(is_object, &In(1, &SCHEMA), &Scalar(0));

fn is_object(value: &Value) -> bool {
    value.as_object().is_some()
}

mod v3 {
    use super::{
        Any, Choice, Each, Entries, Extensions, Fields, Flag, In, Limits, MessageForm, One, REFERENCE,
        Scalar, Text, Texts, is_object, is_reference,
    };

    pub(super) static DOCUMENT: MessageForm = Fields(&[
        (1, "openapi", Text),
        (
            2,
            "info",
            One(&Fields(&[(1, "title", Text), (6, "version", Text)])),
        ),
        (4, "paths", One(&Entries(1, &PATH_ITEM))),
        (5, "components", One(&COMPONENTS)),
    ]);

    static COMPONENTS: MessageForm = Fields(&[
        (1, "schemas", One(&Entries(1, &SCHEMA_OR_REFERENCE))),
        (7, "securitySchemes", One(&Entries(1, &In(1, &SECURITY_SCHEME)))),
    ]);

    static SECURITY_SCHEME: MessageForm = Fields(&[
        (1, "type", Text),
        (2, "description", Text),
        (3, "name", Text),
        (4, "in", Text),
    ]);

    static PATH_ITEM: MessageForm = Fields(&[
        (4, "get", One(&OPERATION)),
        (5, "put", One(&OPERATION)),
        (6, "post", One(&OPERATION)),
        (7, "delete", One(&OPERATION)),
        (8, "options", One(&OPERATION)),
        (9, "head", One(&OPERATION)),
        (10, "patch", One(&OPERATION)),
        (13, "parameters", Each(&In(1, &PARAMETER))),
    ]);

    static OPERATION: MessageForm = Fields(&[
        (1, "tags", Texts),
        (3, "description", Text),
        (5, "operationId", Text),
        (6, "parameters", Each(&In(1, &PARAMETER))),
        (7, "requestBody", One(&In(1, &BODY))),
        (8, "responses", One(&Entries(2, &In(1, &RESPONSE)))),
        (13, "", Extensions),
    ]);

    static BODY: MessageForm = Fields(&[
        (1, "description", Text),
        (2, "content", One(&CONTENT)),
        (3, "required", Flag),
    ]);

    static RESPONSE: MessageForm = Fields(&[(1, "description", Text), (3, "content", One(&CONTENT))]);

    /// The media types of a body, and the schema of each.
    static CONTENT: MessageForm = Entries(1, &Fields(&[(1, "schema", One(&SCHEMA_OR_REFERENCE))]));

    static PARAMETER: MessageForm = Fields(&[
        (1, "name", Text),
        (2, "in", Text),
        (3, "description", Text),
        (4, "required", Flag),
        (10, "schema", One(&SCHEMA_OR_REFERENCE)),
    ]);

    static SCHEMA_OR_REFERENCE: MessageForm = Choice(is_reference, &In(2, &REFERENCE), &In(1, &SCHEMA));

    static SCHEMA: MessageForm = Fields(&[
        (1, "nullable", Flag),
        (7, "example", One(&Any)),
        (9, "title", Text),
        (10, "", Limits),
        (25, "type", Text),
        (26, "allOf", Each(&SCHEMA_OR_REFERENCE)),
        (27, "oneOf", Each(&SCHEMA_OR_REFERENCE)),
        (28, "anyOf", Each(&SCHEMA_OR_REFERENCE)),
        (29, "not", One(&SCHEMA)),
        (30, "items", One(&In(1, &SCHEMA_OR_REFERENCE))),
        (31, "properties", One(&Entries(1, &SCHEMA_OR_REFERENCE))),
        (32, "additionalProperties", One(&ADDITIONAL)),
        // Only scalars are defaults in this format.
        (33, "default", One(&Scalar(3))),
        (34, "description", Text),
        (35, "format", Text),
        (36, "", Extensions),
    ]);

    /// A schema or a boolean.
    static ADDITIONAL: MessageForm = Choice(is_object, &In(1, &SCHEMA_OR_REFERENCE), &Scalar(0));
}
