//! Interns schemas: equal ones are stored once.

use super::{Structural, ValueValidation};
use foldhash::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A store in which equal schemas are one.
///
/// It lives as long as the CRDs of a process; [`Interner::sweep`] drops schemas that no CRD uses.
#[derive(Debug, Default)]
pub struct Interner {
    schemas: HashSet<InternedSchema>,
}

/// A stored schema. The schemas below it are stored, too, so equal ones have the same address.
#[derive(Debug, PartialEq, Eq)]
struct InternedSchema(Arc<Structural>);

impl Hash for InternedSchema {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let s = &*self.0;
        (s.ty, s.nullable, &s.default, &s.extensions, &s.rules).hash(state);
        for (name, property) in &s.properties {
            (name, Arc::as_ptr(property)).hash(state);
        }
        // By address: hashing what is below a schema, for every schema above it, would be quadratic.
        let below = s.additional_schema().into_iter().chain(&s.items);
        below.for_each(|schema| Arc::as_ptr(schema).hash(state));
        if let Some(v) = &s.validation {
            hash_validation(v, state);
        }
    }
}

fn hash_validation<H: Hasher>(v: &ValueValidation, state: &mut H) {
    // The hash may ignore some limits, because equality compares all of them.
    (&v.format, &v.pattern, &v.enumeration, &v.required).hash(state);
    (
        v.maximum,
        v.minimum,
        v.max_length,
        v.min_length,
        v.max_items,
        v.min_items,
    )
        .hash(state);
    let branches = [&v.all_of, &v.one_of, &v.any_of].into_iter().flatten();
    for branch in branches.chain(&v.not) {
        Arc::as_ptr(branch).hash(state);
    }
}

impl Interner {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the stored schema that equals a schema. The schemas below it must come from this store.
    pub(crate) fn intern(&mut self, schema: Structural) -> Arc<Structural> {
        let new = InternedSchema(Arc::new(schema));
        if let Some(InternedSchema(known)) = self.schemas.get(&new) {
            return Arc::clone(known);
        }
        let schema = Arc::clone(&new.0);
        self.schemas.insert(new);
        schema
    }

    /// The number of stored schemas.
    pub fn len(&self) -> usize {
        self.schemas.len()
    }

    /// Returns whether the store is empty.
    pub fn is_empty(&self) -> bool {
        self.schemas.is_empty()
    }

    /// Drops the schemas without other owners.
    pub fn sweep(&mut self) {
        // A schema owns those below it, so each pass frees one more level.
        let mut before = usize::MAX;
        while self.schemas.len() < before {
            before = self.schemas.len();
            self.schemas.retain(|schema| Arc::strong_count(&schema.0) > 1);
        }
        self.schemas.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Schema;
    use scantling_value::{Limits, json};

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
    fn equal_schemas_are_one() {
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
