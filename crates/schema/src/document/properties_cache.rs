//! Finds the fields of a schema that stood in its document before.
//!
//! Most definitions are generated: wherever a type is used, all of its fields stand again, and half of a large
//! definition properties_cache the other half. To compare such fields with those that were read takes a fraction of the time
//! that it takes to read them.

use crate::structural::SchemaId;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use scantling_value::{Map, Str, Value, same_text};
use std::hash::BuildHasher;
use std::ops::Range;

/// The `properties` of one document that were read, with what was made of them.
#[derive(Debug)]
pub(super) struct PropertiesCache<'d> {
    known: HashTable<CachedProperties<'d>>,
    hasher: RandomState,
    /// What all of them became, one after the other.
    slots: Vec<SchemaId>,
    /// How many values may still be compared in vain: fields that differ in the last of them only, over and over,
    /// must not take longer than reading them.
    allowance: usize,
}

#[derive(Debug)]
struct CachedProperties<'d> {
    hash: u64,
    properties: &'d Map,
    /// Where in the slots their own begin.
    first: usize,
}

impl CachedProperties<'_> {
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.properties.len()
    }
}

/// So many values may be compared in vain for each schema that is read.
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

    /// Takes note that a schema is read.
    pub(super) fn one_more(&mut self) {
        self.allowance += ALLOWANCE;
    }

    /// The place of what became of the same fields before, prose aside.
    pub(super) fn find(&mut self, properties: &Map) -> Option<Range<usize>> {
        let hash = self.hash(properties);
        let allowance = &mut self.allowance;
        let is_it = |fields: &CachedProperties<'d>| {
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

    /// Remembers what became of fields, and tells the place.
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
        self.known
            .insert_unique(fields.hash, fields, |fields| fields.hash);
        place
    }

    /// What stands at a place.
    pub(super) fn slots(&self, place: Range<usize>) -> &[SchemaId] {
        self.slots.get(place).unwrap_or_default()
    }

    /// Few lists of fields have as many and begin and end alike.
    fn hash(&self, properties: &Map) -> u64 {
        let names = properties.entries();
        let name =
            |entry: Option<&(Str, Value)>| entry.map_or(0, |(name, _)| self.hasher.hash_one(name.as_bytes()));
        self.hasher
            .hash_one((names.len(), name(names.first()), name(names.last())))
    }
}

/// Spends one of what is left.
#[inline]
fn spend(left: &mut usize) -> bool {
    let some = *left > 0;
    *left -= usize::from(some);
    some
}

/// Whether two objects have the same members, of which those with the same name are compared as told. Nearly all that
/// is asked of a large definition is asked here.
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

/// Whether two schemas say the same, prose aside.
fn same_schema(a: &Map, b: &Map, left: &mut usize) -> bool {
    spend(left)
        && same_members(a, b, |keyword, x, y| match (x, y) {
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

/// Whether two values are the same, floats by their bits.
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

    /// The two fields of a schema.
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
    fn prose_makes_no_difference_and_all_else_does() {
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
