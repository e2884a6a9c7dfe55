//! A view of a schema document, including descriptions.
//!
//! A CRD keeps its schemas as documents and reads them through [`Schema`], a borrowed view with one method
//! per keyword. [`Schema::structural`] builds the [`Structural`](crate::structural::Structural) tree for the
//! pipeline.

mod build;

pub use build::UnsupportedKeyword;

use crate::structural::ValidationRule;
use scantling_value::{Map, Value};

/// A view of a schema document. A keyword of the wrong type counts as absent: decoding has already refused
/// it.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    members: &'a Map,
    keywords: Keywords,
}

/// A bit set of the keywords that a schema may have. Every walk over a schema queries each node for dozens of
/// keywords, and most nodes have two or three: one test rules out nearly all the others.
#[derive(Clone, Copy, Debug)]
struct Keywords(u64);

impl Keywords {
    fn scan(members: &Map) -> Self {
        Keywords(members.keys().fold(0, |all, key| all | Self::bit(key)))
    }

    /// The bit of a keyword; some keywords share one.
    #[inline]
    fn bit(key: &str) -> u64 {
        let bytes = key.as_bytes();
        let letter = |b: Option<&u8>| usize::from(b.copied().unwrap_or(0));
        // Two keywords with the same bit cost a needless lookup, nothing else.
        1 << ((bytes.len() * 5 + letter(bytes.first()) * 3 + letter(bytes.last()) * 7) % 64)
    }

    #[inline]
    fn may_have(self, key: &str) -> bool {
        self.0 & Self::bit(key) != 0
    }
}

/// The value of `items`.
#[derive(Clone, Copy, Debug)]
pub enum Items<'a> {
    /// One schema for all elements.
    One(Schema<'a>),
    /// A schema per element, which CRDs must not use; also used for anything but an object.
    Each(&'a [Value]),
}

/// The value of `additionalProperties` or `additionalItems`.
#[derive(Clone, Copy, Debug)]
pub enum Additional<'a> {
    /// A boolean.
    Any(bool),
    /// A schema.
    Schema(Schema<'a>),
}

static NO_MEMBERS: Map = Map::new();

#[expect(clippy::cast_precision_loss, reason = "limits are doubles on the wire")]
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(i) => Some(*i as f64),
        Value::Float(f) => Some(*f),
        _ => None,
    }
}

impl<'a> Schema<'a> {
    /// Creates a view of a document; anything but an object counts as a schema without keywords.
    pub fn new(document: &'a Value) -> Self {
        Self::from_members(document.as_object().unwrap_or(&NO_MEMBERS))
    }

    fn from_members(members: &'a Map) -> Self {
        Schema {
            members,
            keywords: Keywords::scan(members),
        }
    }

    /// The members of the document.
    pub fn members(self) -> &'a Map {
        self.members
    }

    /// A member that is not `null`.
    #[inline]
    pub fn get(self, key: &str) -> Option<&'a Value> {
        if !self.keywords.may_have(key) {
            return None;
        }
        // Go decodes null as an unset field.
        self.members.get(key).filter(|v| !v.is_null())
    }

    /// A string keyword; empty if absent.
    pub fn string(self, key: &str) -> &'a str {
        self.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// A boolean keyword; false if absent.
    pub fn flag(self, key: &str) -> bool {
        self.tristate(key).unwrap_or(false)
    }

    /// A boolean keyword whose absence differs from false.
    pub fn tristate(self, key: &str) -> Option<bool> {
        self.get(key).and_then(Value::as_bool)
    }

    /// A number keyword.
    pub fn number(self, key: &str) -> Option<f64> {
        self.get(key).and_then(number)
    }

    /// An integer keyword.
    pub fn integer(self, key: &str) -> Option<i64> {
        self.get(key).and_then(Value::as_int)
    }

    /// A list of strings.
    pub fn strings(self, key: &str) -> impl Iterator<Item = &'a str> {
        self.list(key).iter().map(|v| v.as_str().unwrap_or(""))
    }

    /// A list of values.
    pub fn list(self, key: &str) -> &'a [Value] {
        self.get(key).and_then(Value::as_array).unwrap_or(&[])
    }

    /// A list of schemas.
    pub fn schemas(self, key: &str) -> impl ExactSizeIterator<Item = Schema<'a>> {
        self.list(key).iter().map(Schema::new)
    }

    /// The schemas of a map, by name.
    pub fn named_schemas(self, key: &str) -> impl ExactSizeIterator<Item = (&'a str, Schema<'a>)> {
        let members = self.get(key).and_then(Value::as_object).unwrap_or(&NO_MEMBERS);
        members.iter().map(|(k, v)| (k.as_str(), Schema::new(v)))
    }

    /// A schema keyword.
    pub fn schema(self, key: &str) -> Option<Schema<'a>> {
        self.get(key).map(Schema::new)
    }

    /// `type`; empty if absent.
    pub fn ty(self) -> &'a str {
        self.string("type")
    }

    /// `properties`, by name.
    pub fn properties(self) -> impl ExactSizeIterator<Item = (&'a str, Schema<'a>)> {
        self.named_schemas("properties")
    }

    /// One of `properties`.
    pub fn property(self, name: &str) -> Option<Schema<'a>> {
        let property = self.get("properties")?.as_object()?.get(name)?;
        Some(Schema::new(property))
    }

    /// `items`.
    pub fn items(self) -> Option<Items<'a>> {
        self.get("items").map(|v| match v {
            Value::Object(_) => Items::One(Schema::new(v)),
            Value::Array(each) => Items::Each(each),
            _ => Items::Each(&[]),
        })
    }

    /// `items`, if it is one schema.
    pub fn item(self) -> Option<Schema<'a>> {
        match self.items() {
            Some(Items::One(s)) => Some(s),
            _ => None,
        }
    }

    /// `additionalProperties`.
    pub fn additional(self) -> Option<Additional<'a>> {
        self.get("additionalProperties").map(Additional::new)
    }

    /// `additionalProperties`, if it is a schema.
    pub fn additional_schema(self) -> Option<Schema<'a>> {
        match self.additional() {
            Some(Additional::Schema(s)) => Some(s),
            _ => None,
        }
    }

    /// `x-kubernetes-list-type`.
    pub fn list_type(self) -> Option<&'a str> {
        self.get("x-kubernetes-list-type").and_then(Value::as_str)
    }

    /// `x-kubernetes-map-type`.
    pub fn map_type(self) -> Option<&'a str> {
        self.get("x-kubernetes-map-type").and_then(Value::as_str)
    }

    /// `x-kubernetes-validations`.
    pub fn rules(self) -> impl ExactSizeIterator<Item = ValidationRule> {
        self.schemas("x-kubernetes-validations")
            .map(|rule| ValidationRule {
                rule: rule.string("rule").into(),
                message: rule.string("message").into(),
                message_expression: rule.string("messageExpression").into(),
                reason: rule.get("reason").and_then(Value::as_str).map(Into::into),
                field_path: rule.string("fieldPath").into(),
                optional_old_self: rule.tristate("optionalOldSelf"),
                applies_on_create: rule.flag("appliesOnCreate"),
            })
    }

    /// Returns whether the predicate holds for this schema or any schema below it, including junctors and
    /// unsupported keywords.
    pub fn any(self, test: &mut impl FnMut(Schema<'a>) -> bool) -> bool {
        if test(self) {
            return true;
        }
        // `items` is in two of these groups, because it may be a list or a schema.
        for key in ["allOf", "anyOf", "oneOf", "items"] {
            if self.schemas(key).any(|s| s.any(test)) {
                return true;
            }
        }
        for key in ["properties", "patternProperties", "definitions", "dependencies"] {
            if self.named_schemas(key).any(|(_, s)| s.any(test)) {
                return true;
            }
        }
        for key in ["not", "items", "additionalProperties", "additionalItems"] {
            if let Some(Value::Object(m)) = self.get(key)
                && Schema::from_members(m).any(test)
            {
                return true;
            }
        }
        false
    }
}

impl<'a> Additional<'a> {
    fn new(v: &'a Value) -> Self {
        match v {
            Value::Object(_) => Additional::Schema(Schema::new(v)),
            v => Additional::Any(v.as_bool().unwrap_or(false)),
        }
    }
}
