//! Walks the members of an object beside the fields that its node declares.
//!
//! Both are in order of their names, so that one pass over both finds the node of every member.

use super::{Features, Glance, Node};
use scantling_value::{Map, Path, Str, Value, same_text};
use std::sync::Arc;

/// What a walk reads of a declared field before it looks any closer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    word: Word,
    /// The last eight bytes of a longer name.
    ending: u64,
    /// What there is to do at the field or below it.
    within: Features,
    /// Whether the field is required.
    required: bool,
    /// Which values fit without a closer look.
    pub(crate) glance: Glance,
}

impl Name {
    pub(super) fn new(name: &str, node: &Node, required: bool) -> Self {
        Name {
            word: Word::of(name),
            ending: ending(name),
            within: node.within,
            required,
            glance: node.glance,
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
struct Word {
    beginning: u64,
    len: usize,
}

impl Word {
    /// The first eight bytes of a name, as a number that orders as names do. Short names are read in as few steps as
    /// long ones: most walks do little else.
    #[inline]
    fn of(name: &str) -> Self {
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
        Word { beginning, len }
    }
}

#[inline]
fn ending(name: &str) -> u64 {
    name.as_bytes()
        .last_chunk()
        .map_or(0, |word| u64::from_be_bytes(*word))
}

/// Finds the declared fields of members one after the other.
pub(crate) struct Members<'n> {
    node: &'n Node,
    next: usize,
    required: usize,
}

impl<'n> Members<'n> {
    #[inline]
    pub(crate) fn of(node: &'n Node) -> Self {
        Members {
            node,
            next: 0,
            required: 0,
        }
    }

    /// The declared field of that name. Names must come in ascending order.
    #[inline]
    pub(crate) fn declared(&mut self, name: &str) -> Option<&'n Arc<Node>> {
        self.find(name)
            .and_then(|(slot, _)| self.node.properties.get(slot))
    }

    /// The slot of the declared field of that name. Names must come in ascending order.
    // A call would take as long as what it does.
    #[inline(always)]
    pub(crate) fn find(&mut self, name: &str) -> Option<(usize, &'n Name)> {
        let wanted = Word::of(name);
        let names = &*self.node.names;
        let mut slot = self.next;
        while names.get(slot)?.word.beginning < wanted.beginning {
            slot += 1;
        }
        self.next = slot;
        // Few names begin alike; those that do follow each other.
        loop {
            let known = names.get(slot)?;
            if known.word.beginning != wanted.beginning {
                return None;
            }
            if self.node.is_name(slot, known, wanted, name) {
                self.next = slot + 1;
                self.required += usize::from(known.required);
                return Some((slot, known));
            }
            slot += 1;
        }
    }

    /// How many required fields were found.
    pub(crate) fn required(&self) -> usize {
        self.required
    }
}

/// A member of an object in which an algorithm has something to do.
#[derive(Clone, Copy)]
pub(crate) struct Member<'n, 'm> {
    pub(crate) name: &'m Str,
    pub(crate) value: &'m Value,
    pub(crate) node: &'n Arc<Node>,
    /// Whether the schema declares a field of that name.
    pub(crate) declared: bool,
}

impl Member<'_, '_> {
    /// The path of the member of an object.
    pub(crate) fn at<'p>(&'p self, object: &'p Path<'p>) -> Path<'p> {
        step(object, self.name, self.declared)
    }
}

fn step<'p>(object: &'p Path<'p>, name: &'p str, declared: bool) -> Path<'p> {
    if declared {
        object.field(name)
    } else {
        object.key(name)
    }
}

impl Node {
    /// Whether a field has that name, of which the beginning is known to be the same. Two words and the length tell up
    /// to sixteen bytes.
    #[inline]
    fn is_name(&self, slot: usize, known: &Name, wanted: Word, name: &str) -> bool {
        known.word.len == wanted.len
            && match wanted.len {
                0..=8 => true,
                9..=16 => known.ending == ending(name),
                _ => {
                    let declared = self.schema.properties.get(slot);
                    declared.is_some_and(|(declared, _)| same_text(declared, name))
                }
            }
    }

    /// The node of a declared field.
    #[inline]
    pub(crate) fn field(&self, slot: usize) -> Option<&Arc<Node>> {
        self.properties.get(slot)
    }

    /// The members of an object of this node in which an algorithm has something to do, in order.
    pub(crate) fn members<'n, 'm>(
        &'n self,
        map: &'m Map,
        feature: Features,
    ) -> impl Iterator<Item = Member<'n, 'm>> {
        let mut search = self.search(feature);
        std::iter::from_fn(move || {
            let Found {
                position,
                node,
                declared,
            } = search.next(map)?;
            let (name, value) = map.entries().get(position)?;
            Some(Member {
                name,
                value,
                node,
                declared,
            })
        })
    }

    /// A search for the members of an object of this node in which an algorithm has something to do, for those who
    /// change them.
    pub(crate) fn search(&self, feature: Features) -> Search<'_> {
        let additional = self.additional.as_ref().filter(|node| node.has(feature));
        Search {
            node: self,
            feature,
            all: additional.map(|additional| (additional, Members::of(self))),
            slot: 0,
            position: 0,
        }
    }
}

/// A search for the members in which an algorithm has something to do. Fields in which it has nothing to do are passed
/// over without a look at the object.
pub(crate) struct Search<'n> {
    node: &'n Node,
    feature: Features,
    /// Whether it has something to do beside the declared fields, and every member must be looked at.
    all: Option<(&'n Arc<Node>, Members<'n>)>,
    slot: usize,
    position: usize,
}

/// Where a search found a member.
pub(crate) struct Found<'n> {
    pub(crate) position: usize,
    pub(crate) node: &'n Arc<Node>,
    /// Whether the schema declares a field of that name.
    pub(crate) declared: bool,
}

impl Found<'_> {
    /// The path of the member of an object.
    pub(crate) fn at<'p>(&self, object: &'p Path<'p>, name: &'p str) -> Path<'p> {
        step(object, name, self.declared)
    }
}

impl<'n> Search<'n> {
    /// The next member. It is the same object every time, but for the values of its members.
    // Walks that look for members do little else.
    #[inline(always)]
    pub(crate) fn next(&mut self, map: &Map) -> Option<Found<'n>> {
        if self.all.is_none() {
            self.next_declared(map)
        } else {
            self.next_of_all(map)
        }
    }

    #[inline(never)]
    fn next_of_all(&mut self, map: &Map) -> Option<Found<'n>> {
        let (additional, members) = self.all.as_mut()?;
        loop {
            let (name, _) = map.entries().get(self.position)?;
            let field = members.declared(name);
            let node = field.unwrap_or(additional);
            let position = self.position;
            self.position += 1;
            if node.has(self.feature) {
                return Some(Found {
                    position,
                    node,
                    declared: field.is_some(),
                });
            }
        }
    }

    #[inline(always)]
    fn next_declared(&mut self, map: &Map) -> Option<Found<'n>> {
        let names = &*self.node.names;
        while let Some((name, _)) = map.entries().get(self.position) {
            let word = Word::of(name);
            let mut field = names.get(self.slot)?;
            while field.word.beginning < word.beginning || !field.has(self.feature) {
                self.slot += 1;
                field = names.get(self.slot)?;
            }
            let position = self.position;
            self.position += 1;
            // Few names begin alike; those that do follow each other.
            let mut slot = self.slot;
            while field.word.beginning == word.beginning {
                if field.has(self.feature) && self.node.is_name(slot, field, word, name) {
                    self.slot = slot + 1;
                    let node = self.node.properties.get(slot)?;
                    return Some(Found {
                        position,
                        node,
                        declared: true,
                    });
                }
                slot += 1;
                let Some(next) = names.get(slot) else { break };
                field = next;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Schema;
    use crate::plan::Compiler;
    use crate::structural::Interner;
    use scantling_value::{Limits, json};

    fn found(schema: &str, object: &str) -> String {
        let decode = |text: &str| json::decode(text.as_bytes(), Limits::default()).unwrap();
        let document = decode(schema);
        let structural = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let plan = Compiler::new().compile(&structural);
        let object = decode(object);
        let map = object.as_object().unwrap();
        let keyed = plan.root().members(map, Features::KEYED);
        let mut members = Members::of(plan.root());
        let declared = map.keys().filter(|name| members.declared(name).is_some());
        let declared: Vec<&str> = declared.map(Str::as_str).collect();
        let keyed: Vec<String> = keyed.map(|m| m.at(&Path::ROOT).to_string()).collect();
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
            assert!(Word::of(a).beginning < Word::of(b).beginning, "{a} {b}");
        }
        let beginning = |name| Word::of(name).beginning;
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
