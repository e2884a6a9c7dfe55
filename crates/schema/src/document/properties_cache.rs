//! Finds repeated properties of a CRD's schemas.
//!
//! Most CRDs are generated and repeat all fields of a type wherever it is used: half of a large CRD repeats the other half.
//! Comparing such fields with those that were decoded takes a fraction of the time of decoding them.

use crate::structural::SchemaId;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use scantling_value::{Map, Str, Value, same_text};
use std::hash::BuildHasher;
use std::ops::Range;

/// The `properties` of a document that were built, with their results.
#[derive(Debug)]
pub(super) struct PropertiesCache<'d> {
    known: HashTable<CachedProperties<'d>>,
    hasher: RandomState,
    /// The results of all of them, concatenated.
    slots: Vec<SchemaId>,
    /// The number of comparisons that may still fail: fields that always differ only at the end must not cost
    /// more than building them.
    allowance: usize,
}

#[derive(Debug)]
struct CachedProperties<'d> {
    hash: u64,
    properties: &'d Map,
    /// The start of their results in the slots.
    first: usize,
}

impl CachedProperties<'_> {
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.properties.len()
    }
}

/// The number of comparisons that may fail per schema that is built.
const ALLOWANCE: usize = 16;

impl<'d> PropertiesCache<'d> {
    pub(super) fn new() -> Self {
        PropertiesCache {
            known: HashTable::new(),
            hasher: RandomState::default(),
            slots: Vec::new(),
            allowance: 0,
        }
    }

    /// Records that a schema is built.
    pub(super) fn one_more(&mut self) {
        self.allowance += ALLOWANCE;
    }

    /// Returns the results of equal fields, ignoring descriptions.
    pub(super) fn find(&mut self, properties: &Map) -> Option<Range<usize>> {
        let hash = self.hash(properties);
        let allowance = &mut self.allowance;
        let is_it = |fields: &CachedProperties<'d>| {
            // Only failures are charged: a comparison that succeeds saves more than it costs.
            let mut left = *allowance;
            let same = fields.hash == hash && same_fields(fields.properties, properties, &mut left);
            if !same {
                *allowance = left;
            }
            same
        };
        let fields = self.known.find(hash, is_it)?;
        Some(fields.range())
    }

    /// Stores the results of fields and returns their range.
    pub(super) fn remember(
        &mut self,
        properties: &'d Map,
        slots: impl Iterator<Item = SchemaId>,
    ) -> Range<usize> {
        let fields = CachedProperties {
            hash: self.hash(properties),
            properties,
            first: self.slots.len(),
        };
        let place = fields.range();
        self.slots.extend(slots);
        // Once the allowance is exhausted, equal properties may be stored twice, which is harmless.
        self.known
            .insert_unique(fields.hash, fields, |fields| fields.hash);
        place
    }

    /// The results in a range.
    pub(super) fn slots(&self, place: Range<usize>) -> &[SchemaId] {
        self.slots.get(place).unwrap_or_default()
    }

    /// A hash of the number of fields and of the first and last names, which few lists share.
    fn hash(&self, properties: &Map) -> u64 {
        let names = properties.entries();
        let name =
            |entry: Option<&(Str, Value)>| entry.map_or(0, |(name, _)| self.hasher.hash_one(name.as_bytes()));
        self.hasher
            .hash_one((names.len(), name(names.first()), name(names.last())))
    }
}

/// Uses one comparison.
#[inline]
fn spend(left: &mut usize) -> bool {
    let some = *left > 0;
    *left -= usize::from(some);
    some
}

/// Returns whether two objects have the same members; `same` compares members with equal names. Most of the
/// time for a large CRD is spent here.
#[inline]
fn same_members(a: &Map, b: &Map, mut same: impl FnMut(&Str, &Value, &Value) -> bool) -> bool {
    let (a, b) = (a.entries(), b.entries());
    if a.len() != b.len() {
        return false;
    }
    let mut others = b.iter();
    for (name, x) in a {
        let Some((other, y)) = others.next() else {
            return false;
        };
        if !same_text(name, other) || !same(name, x, y) {
            return false;
        }
    }
    true
}

fn same_fields(a: &Map, b: &Map, left: &mut usize) -> bool {
    same_members(a, b, |_, x, y| match (x, y) {
        (Value::Object(x), Value::Object(y)) => same_schema(x, y, left),
        _ => equal_within(x, y, left),
    })
}

/// Returns whether two schemas are equal, ignoring descriptions.
fn same_schema(a: &Map, b: &Map, left: &mut usize) -> bool {
    spend(left)
        && same_members(a, b, |keyword, x, y| match (x, y) {
            // Structural schemas have no descriptions, so these may differ.
            (Value::String(x), Value::String(y)) => is_prose(keyword) || same_text(x, y),
            (Value::Object(x), Value::Object(y)) => match keyword.as_str() {
                "properties" => same_fields(x, y, left),
                "items" | "additionalProperties" => same_schema(x, y, left),
                _ => spend(left) && same_objects(x, y, left),
            },
            _ => equal_within(x, y, left),
        })
}

#[inline]
fn is_prose(keyword: &str) -> bool {
    same_text(keyword, "description") || same_text(keyword, "title")
}

/// Returns whether two values are equal, comparing floats by their bits.
fn equal_within(a: &Value, b: &Value, left: &mut usize) -> bool {
    if !spend(left) {
        return false;
    }
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_within(a, b, left))
        }
        (Value::Object(a), Value::Object(b)) => same_objects(a, b, left),
        _ => a == b,
    }
}

fn same_objects(a: &Map, b: &Map, left: &mut usize) -> bool {
    same_members(a, b, |_, x, y| equal_within(x, y, left))
}

#[cfg(test)]
mod tests {
    use crate::document::Schema;
    use crate::structural::{Interner, Structural};
    use scantling_value::{Limits, json};
    use std::sync::Arc;

    /// The schemas of two fields.
    fn fields(first: &str, second: &str) -> (Arc<Structural>, Arc<Structural>) {
        let text = format!(
            r#"{{"type": "object", "properties": {{"a": {{"type": "object", "properties": {first}}},
            "b": {{"type": "object", "properties": {second}}}}}}}"#
        );
        let document = json::decode(text.as_bytes(), Limits::default()).unwrap();
        let schema = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let field = |name| Arc::clone(schema.property(name).unwrap());
        (field("a"), field("b"))
    }

    #[test]
    fn only_descriptions_are_ignored() {
        let schema = |rest: &str| {
            format!(
                r#"{{"a": {{"type": "string"}}, "x": {{"type": "object", {rest}}}, "z": {{"type": "string"}}}}"#
            )
        };
        let same = [
            (r#""description": "one""#, r#""description": "two""#),
            (r#""title": "one""#, r#""title": "two""#),
            (
                r#""properties": {"p": {"description": "one"}}"#,
                r#""properties": {"p": {"description": "two"}}"#,
            ),
            (
                r#""additionalProperties": {"description": "one"}"#,
                r#""additionalProperties": {"description": "two"}"#,
            ),
        ];
        for (a, b) in same {
            let (first, second) = fields(&schema(a), &schema(b));
            assert!(Arc::ptr_eq(&first, &second), "{a} {b}");
        }
        let other = [
            (
                r#""default": {"description": "one"}"#,
                r#""default": {"description": "two"}"#,
            ),
            (r#""default": {"a": 1}"#, r#""default": {"a": 1.0}"#),
            (r#""default": {"a": 0.0}"#, r#""default": {"a": -0.0}"#),
            (r#""enum": [{"title": "one"}]"#, r#""enum": [{"title": "two"}]"#),
            (
                r#""properties": {"title": {"type": "string"}}"#,
                r#""properties": {"title": {"type": "integer"}}"#,
            ),
            (
                r#""properties": {"p": {"type": "string"}}"#,
                r#""properties": {"q": {"type": "string"}}"#,
            ),
            (
                r#""additionalProperties": true"#,
                r#""additionalProperties": false"#,
            ),
            (
                r#""items": {"properties": {"p": {"maxLength": 1}}}"#,
                r#""items": {"properties": {"p": {"maxLength": 2}}}"#,
            ),
            (r#""nullable": true"#, r#""nullable": false"#),
        ];
        for (a, b) in other {
            let (first, second) = fields(&schema(a), &schema(b));
            assert_ne!(first, second, "{a} {b}");
        }
    }
}
