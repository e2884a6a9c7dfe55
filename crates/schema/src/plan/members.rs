//! Walks the members of an object beside the fields that its node declares.
//!
//! Both are in order of their names, so that one pass over both finds the node of every member.

use super::{FastCheck, Features, PlanNode};
use scantling_value::{Path, Str, same_text};
use std::sync::Arc;

/// What a walk reads of a declared field before it looks any closer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldHeader {
    word: NamePrefix,
    /// The last eight bytes of a longer name.
    ending: u64,
    /// What there is to do at the field or below it.
    within: Features,
    /// Whether the field is required.
    pub(crate) required: bool,
    /// Which values fit without a closer look.
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

    /// Whether an algorithm has anything to do at the field or below it.
    #[inline]
    pub(crate) fn has(&self, feature: Features) -> bool {
        self.within.contains(feature)
    }
}

/// How a name begins, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamePrefix {
    beginning: u64,
    len: usize,
}

impl NamePrefix {
    /// The first eight bytes of a name, as a number that orders as names do. Short names are read in as few steps as
    /// long ones: most walks do little else.
    #[inline(always)]
    fn new(name: &str) -> Self {
        let bytes = name.as_bytes();
        let len = bytes.len();
        let beginning = if let Some(word) = bytes.first_chunk() {
            u64::from_be_bytes(*word)
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
            // The last four bytes, without those that are among the first four.
            let rest = (u64::from(last) << (8 * (8 - len))) & u64::from(u32::MAX);
            (u64::from(first) << 32) | rest
        } else {
            let byte = |i: usize| u64::from(bytes.get(i).copied().unwrap_or(0));
            (byte(0) << 56) | (byte(1) << 48) | (byte(2) << 40)
        };
        NamePrefix { beginning, len }
    }
}

#[inline]
fn ending(name: &str) -> u64 {
    name.as_bytes()
        .last_chunk()
        .map_or(0, |word| u64::from_be_bytes(*word))
}

/// Finds the declared fields of members one after the other.
pub(crate) struct FieldLookup<'n> {
    node: &'n PlanNode,
    /// The fields that no name has passed yet.
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

    /// The node of the declared field of that name. Names must come in ascending order.
    #[inline]
    pub(crate) fn declared(&mut self, name: &str) -> Option<&'n Arc<PlanNode>> {
        self.find(name)?;
        self.found()
    }

    /// What is known of the declared field of that name. Names must come in ascending order.
    // A call would take as long as what it does.
    #[inline(always)]
    pub(crate) fn find(&mut self, name: &str) -> Option<&'n FieldHeader> {
        let wanted = NamePrefix::new(name);
        loop {
            let (field, behind) = self.rest.split_first()?;
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

    /// The field of that name, if several begin like it. Those that do follow each other.
    #[inline(never)]
    fn find_alike(&mut self, wanted: NamePrefix, name: &str) -> Option<&'n FieldHeader> {
        let slot = self.node.named(self.next_slot(), wanted, name, |_| true)?;
        self.rest = self.node.names.get(slot + 1..)?;
        self.node.names.get(slot)
    }

    /// The node of the field that was found last.
    #[inline]
    pub(crate) fn found(&self) -> Option<&'n Arc<PlanNode>> {
        self.node.properties.get(self.next_slot().checked_sub(1)?)
    }

    #[inline]
    fn next_slot(&self) -> usize {
        self.node.names.len() - self.rest.len()
    }
}

/// A member of an object in which an algorithm has something to do. Its value is there to be read, or to be changed.
pub(crate) struct VisitedMember<'n, 'm, V> {
    pub(crate) name: &'m Str,
    pub(crate) value: V,
    pub(crate) node: &'n Arc<PlanNode>,
    /// Whether the schema declares a field of that name.
    pub(crate) declared: bool,
}

impl<V> VisitedMember<'_, '_, V> {
    /// The path of the member of an object.
    pub(crate) fn at<'p>(&'p self, object: &'p Path<'p>) -> Path<'p> {
        path(object, self.name, self.declared)
    }
}

/// The path of a member of an object: what is not declared is a key of a map.
pub(crate) fn path<'p>(object: &'p Path<'p>, name: &'p str, declared: bool) -> Path<'p> {
    if declared {
        object.field(name)
    } else {
        object.key(name)
    }
}

/// The fields from the first one on in which there is something to do.
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
    /// Whether a field has that name, of which the beginning is known to be the same. Two words and the length tell up
    /// to sixteen bytes.
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

    /// Whether a test holds of all members of an object of this node in which an algorithm has something to do. They
    /// come in order, until it does not.
    // Walks do little else, and each with a test of its own.
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

    /// Where there is something to do beside the declared fields, and every member must be looked at.
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

    /// Fields in which there is nothing to do are passed over without a look at the object.
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

    /// The slot of the field of that name, from a slot on, if it counts. Few names begin alike; those that do follow each
    /// other.
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
    fn beginnings_order_as_names_do() {
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
        let beginning = |name| NamePrefix::new(name).beginning;
        assert_eq!(beginning("abcdefgh"), beginning("abcdefghi"));
        assert_eq!(beginning("abcdefg"), u64::from_be_bytes(*b"abcdefg\0"));
        assert_eq!(beginning("abcde"), u64::from_be_bytes(*b"abcde\0\0\0"));
    }

    #[test]
    fn names_that_begin_alike_are_told_apart() {
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
