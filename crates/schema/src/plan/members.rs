//! Walks the members of an object together with the declared fields of its node.
//!
//! Both are sorted by name, so one merge pass finds the node of every member.

use super::{FastCheck, Features, PlanNode};
use scantling_value::{Path, Str, beginning, same_text};
use std::sync::Arc;

/// The facts about a declared field that a walk reads first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldHeader {
    word: NamePrefix,
    /// The last eight bytes of a longer name.
    ending: u64,
    /// The algorithms that have work at the field or below it.
    within: Features,
    /// True if the field is required.
    pub(crate) required: bool,
    /// The fast check of its values.
    pub(crate) fast_check: FastCheck,
}

impl FieldHeader {
    pub(super) fn new(name: &str, node: &PlanNode, required: bool) -> Self {
        FieldHeader {
            word: NamePrefix::new(name),
            ending: ending(name),
            within: node.within,
            required,
            fast_check: node.fast_check,
        }
    }

    /// Returns whether an algorithm has work at the field or below it.
    #[inline]
    pub(crate) fn has(&self, feature: Features) -> bool {
        self.within.contains(feature)
    }
}

/// The first bytes of a name, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamePrefix {
    pub(crate) beginning: u64,
    len: usize,
}

impl NamePrefix {
    #[inline(always)]
    pub(crate) fn new(name: &str) -> Self {
        NamePrefix {
            beginning: beginning(name),
            len: name.len(),
        }
    }
}

#[inline]
fn ending(name: &str) -> u64 {
    name.as_bytes()
        .last_chunk()
        .map_or(0, |word| u64::from_be_bytes(*word))
}

/// Finds the declared fields of consecutive members.
pub(crate) struct FieldLookup<'n> {
    node: &'n PlanNode,
    /// The fields after the last name.
    rest: &'n [FieldHeader],
}

impl<'n> FieldLookup<'n> {
    #[inline]
    pub(crate) fn new(node: &'n PlanNode) -> Self {
        FieldLookup {
            node,
            rest: &node.names,
        }
    }

    /// The node of a declared field. Names must be ascending.
    #[inline]
    pub(crate) fn declared(&mut self, name: &str) -> Option<&'n Arc<PlanNode>> {
        self.find(name)?;
        self.found()
    }

    /// The facts about a declared field. Names must be ascending.
    // Inlined, because a call would take as long as its work.
    #[inline(always)]
    pub(crate) fn find(&mut self, name: &str) -> Option<&'n FieldHeader> {
        let wanted = NamePrefix::new(name);
        loop {
            let (field, behind) = self.rest.split_first()?;
            // Fields are sorted, so the name cannot follow.
            if field.word.beginning > wanted.beginning {
                return None;
            }
            if field.word.beginning == wanted.beginning {
                return if self.node.is_name(self.next_slot(), field, wanted, name) {
                    self.rest = behind;
                    Some(field)
                } else {
                    self.find_alike(wanted, name)
                };
            }
            self.rest = behind;
        }
    }

    /// Finds a field among several with the same prefix, which are adjacent.
    #[inline(never)]
    fn find_alike(&mut self, wanted: NamePrefix, name: &str) -> Option<&'n FieldHeader> {
        let slot = self.node.named(self.next_slot(), wanted, name, |_| true)?;
        self.rest = self.node.names.get(slot + 1..)?;
        self.node.names.get(slot)
    }

    /// The node of the field found last.
    #[inline]
    pub(crate) fn found(&self) -> Option<&'n Arc<PlanNode>> {
        self.node.properties.get(self.next_slot().checked_sub(1)?)
    }

    #[inline]
    fn next_slot(&self) -> usize {
        self.node.names.len() - self.rest.len()
    }
}

/// A member in which an algorithm has work, by shared or mutable reference.
pub(crate) struct VisitedMember<'n, 'm, V> {
    pub(crate) name: &'m Str,
    pub(crate) value: V,
    pub(crate) node: &'n Arc<PlanNode>,
    /// True if the schema declares the field.
    pub(crate) declared: bool,
}

impl<V> VisitedMember<'_, '_, V> {
    /// The path of the member.
    pub(crate) fn at<'p>(&'p self, object: &'p Path<'p>) -> Path<'p> {
        path(object, self.name, self.declared)
    }
}

/// The path of a member: undeclared ones are keys of a map.
pub(crate) fn path<'p>(object: &'p Path<'p>, name: &'p str, declared: bool) -> Path<'p> {
    if declared {
        object.field(name)
    } else {
        object.key(name)
    }
}

/// The fields from the first one on in which an algorithm has work.
#[inline(always)]
fn from_first(mut fields: &[FieldHeader], feature: Features) -> &[FieldHeader] {
    while let Some((first, behind)) = fields.split_first()
        && !first.has(feature)
    {
        fields = behind;
    }
    fields
}

impl PlanNode {
    /// Compares a name with a field whose prefix is equal. Two words and the length decide for up to sixteen
    /// bytes.
    #[inline]
    fn is_name(&self, slot: usize, known: &FieldHeader, wanted: NamePrefix, name: &str) -> bool {
        known.word.len == wanted.len
            && match wanted.len {
                0..=8 => true,
                9..=16 => known.ending == ending(name),
                _ => self.is_long_name(slot, name),
            }
    }

    #[inline(never)]
    fn is_long_name(&self, slot: usize, name: &str) -> bool {
        let declared = self.schema.properties.get(slot);
        declared.is_some_and(|(declared, _)| same_text(declared, name))
    }

    /// Returns whether a predicate holds for all members in which an algorithm has work. Visits them in order
    /// and stops at the first failure.
    // Generic over the predicate, because walks do little else.
    #[inline]
    pub(crate) fn all_members<'n, 'm, V>(
        &'n self,
        members: impl Iterator<Item = (&'m Str, V)>,
        feature: Features,
        test: impl FnMut(VisitedMember<'n, 'm, V>) -> bool,
    ) -> bool {
        match self.additional.as_ref().filter(|node| node.has(feature)) {
            Some(additional) => self.all_with(additional, members, feature, test),
            None => self.all_declared(members, feature, test),
        }
    }

    /// For algorithms with work beyond the declared fields: visits every member.
    fn all_with<'n, 'm, V>(
        &'n self,
        additional: &'n Arc<PlanNode>,
        mut members: impl Iterator<Item = (&'m Str, V)>,
        feature: Features,
        mut test: impl FnMut(VisitedMember<'n, 'm, V>) -> bool,
    ) -> bool {
        let mut fields = FieldLookup::new(self);
        members.all(|(name, value)| {
            let field = fields.declared(name);
            let node = field.unwrap_or(additional);
            let member = VisitedMember {
                name,
                value,
                node,
                declared: field.is_some(),
            };
            !node.has(feature) || test(member)
        })
    }

    /// Skips fields without work without looking at the object.
    #[inline]
    fn all_declared<'n, 'm, V>(
        &'n self,
        members: impl Iterator<Item = (&'m Str, V)>,
        feature: Features,
        mut test: impl FnMut(VisitedMember<'n, 'm, V>) -> bool,
    ) -> bool {
        let names = &*self.names;
        let mut rest = from_first(names, feature);
        for (name, value) in members {
            let Some(mut field) = rest.first() else {
                return true;
            };
            let word = NamePrefix::new(name);
            while field.word.beginning < word.beginning {
                rest = from_first(rest.get(1..).unwrap_or_default(), feature);
                match rest.first() {
                    Some(next) => field = next,
                    None => return true,
                }
            }
            if field.word.beginning != word.beginning {
                continue;
            }
            let mut slot = names.len() - rest.len();
            if !self.is_name(slot, field, word, name) {
                match self.named(slot + 1, word, name, |field| field.has(feature)) {
                    Some(found) => slot = found,
                    None => continue,
                }
            }
            let Some(node) = self.properties.get(slot) else {
                continue;
            };
            let member = VisitedMember {
                name,
                value,
                node,
                declared: true,
            };
            if !test(member) {
                return false;
            }
            rest = from_first(names.get(slot + 1..).unwrap_or_default(), feature);
        }
        true
    }

    /// The slot of a field with this name, from a slot on, if the algorithm has work there. Fields with equal
    /// prefixes are adjacent.
    #[inline(never)]
    fn named(
        &self,
        mut slot: usize,
        word: NamePrefix,
        name: &str,
        counts: impl Fn(&FieldHeader) -> bool,
    ) -> Option<usize> {
        loop {
            let field = self.names.get(slot)?;
            if field.word.beginning != word.beginning {
                return None;
            }
            if counts(field) && self.is_name(slot, field, word, name) {
                return Some(slot);
            }
            slot += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Schema;
    use crate::plan::PlanCompiler;
    use crate::structural::Interner;
    use scantling_value::{Limits, json};

    fn found(schema: &str, object: &str) -> String {
        let decode = |text: &str| json::decode(text.as_bytes(), Limits::default()).unwrap();
        let document = decode(schema);
        let structural = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let plan = PlanCompiler::new().compile(&structural);
        let object = decode(object);
        let map = object.as_object().unwrap();
        let mut keyed = Vec::new();
        plan.root().all_members(map.iter(), Features::KEYED, |member| {
            keyed.push(member.at(&Path::ROOT).to_string());
            true
        });
        let mut members = FieldLookup::new(plan.root());
        let declared = map.keys().filter(|name| members.declared(name).is_some());
        let declared: Vec<&str> = declared.map(Str::as_str).collect();
        format!("{} | {}", declared.join(" "), keyed.join(" "))
    }

    #[test]
    fn prefixes_order_like_names() {
        let names = [
            "",
            "a",
            "ab",
            "aba",
            "abab",
            "ababa",
            "ababab",
            "abababa",
            "ababababa",
            "abb",
            "b",
            "é",
        ];
        for (a, b) in names.iter().zip(names.iter().skip(1)) {
            assert!(
                NamePrefix::new(a).beginning < NamePrefix::new(b).beginning,
                "{a} {b}"
            );
        }
        assert_eq!(beginning("abcdefgh"), beginning("abcdefghi"));
        assert_eq!(beginning("abcdefg"), u64::from_be_bytes(*b"abcdefg\0"));
        assert_eq!(beginning("abcde"), u64::from_be_bytes(*b"abcde\0\0\0"));
    }

    #[test]
    fn names_with_equal_prefixes_are_distinguished() {
        let set = r#"{"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}"#;
        let text = r#"{"type": "string"}"#;
        let schema = format!(
            r#"{{"type": "object", "properties": {{"a": {text}, "b": {set}, "containers": {text},
            "containersA": {set}, "containersC": {set}, "containersE": {text}, "d": {set}}}}}"#
        );
        let object = r#"{"a": 1, "aa": 1, "b": 1, "containersA": 1, "containersB": 1, "containersC": 1, "containersD": 1,
            "containersE": 1, "d": 1, "e": 1}"#;
        assert_eq!(
            found(&schema, object),
            "a b containersA containersC containersE d | b containersA containersC d"
        );
        assert_eq!(
            found(&schema, r#"{"containersB": 1, "containersC": 1}"#),
            "containersC | containersC"
        );
        let entries = format!(
            r#"{{"type": "object", "properties": {{"a": {text}, "b": {set}}}, "additionalProperties": {set}}}"#
        );
        assert_eq!(
            found(&entries, r#"{"a": 1, "aa": 1, "b": 1, "c": 1}"#),
            "a b | [aa] b [c]"
        );
    }
}
