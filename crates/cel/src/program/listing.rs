//! Programs as text: a step per line, what it works on below it.
//!
//! Fields that the checker knows are written `.name`, other names `["name"]`; variables of folds are numbered; behind
//! a call stands what it costs.

use super::Program;
use super::node::{Access, Element, Fold, Insertion, Key, Mode, Node, Qualifier, Root, Step};
use crate::overload::Overload;
use crate::run::Actual;
use crate::stack::with_room;
use crate::val::Owned;
use std::fmt::{self, Write};
use std::sync::Arc;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut listing = Listing {
            inputs: &self.inputs,
            text: String::new(),
            level: 0,
        };
        with_room(self.levels, || listing.node(&self.root));
        f.write_str(&listing.text)
    }
}

struct Listing<'p> {
    inputs: &'p [Arc<str>],
    text: String,
    level: usize,
}

impl<'p> Listing<'p> {
    fn line(&mut self, text: impl fmt::Display) {
        // Text takes whatever is written.
        let _ = writeln!(self.text, "{:1$}{text}", "", self.level * 2);
    }

    /// A step and what it works on.
    fn step(&mut self, text: impl fmt::Display, operands: impl IntoIterator<Item = &'p Node>) {
        self.line(text);
        self.below(|listing| operands.into_iter().for_each(|node| listing.node(node)));
    }

    /// A part of a step, with its name.
    fn part(&mut self, name: &str, node: &'p Node) {
        self.step(name, [node]);
    }

    fn below(&mut self, write: impl FnOnce(&mut Self)) {
        self.level += 1;
        write(self);
        self.level -= 1;
    }

    fn node(&mut self, node: &'p Node) {
        match node {
            Node::Const(value) => self.line(format_args!("constant {}", constant(value))),
            Node::Access(access) => self.access(access),
            Node::Choice(choice) => {
                let selected = self.path(&choice.path);
                let text = match (choice.mode, selected.as_str()) {
                    (Mode::Presence, selected) => format!("choose, has {selected}"),
                    (Mode::Value, "") => "choose".to_owned(),
                    (Mode::Value, selected) => format!("choose, select {selected}"),
                };
                self.step(text, [&choice.condition, &choice.yes, &choice.no]);
                self.keys(&choice.path);
            }
            Node::And(terms) => self.step("and", terms.iter()),
            Node::Or(terms) => self.step("or", terms.iter()),
            Node::NotStrictlyFalse(term) => self.step("not strictly false", [term.as_ref()]),
            Node::Equality(equality) => {
                let name = if equality.negated { "differ" } else { "equal" };
                self.step(name, [&equality.left, &equality.right]);
            }
            Node::Unary(call) => self.step(called(&[call.overload], call.actual), [&call.arg]),
            Node::Binary(call) => {
                self.step(called(&[call.overload], call.actual), [&call.left, &call.right]);
            }
            Node::Comparison(comparison) => {
                let call = &comparison.call;
                let text = format!("compare, else {}", called(&[call.overload], call.actual));
                self.step(text, [&call.left, &call.right]);
            }
            Node::Join(call) => {
                let text = format!("join, else {}", called(&[call.overload], call.actual));
                self.step(text, [&call.left, &call.right]);
            }
            Node::Call(call) => {
                let pattern = call.pattern.as_ref().map_or("", |_| ", pattern compiled");
                let text = format!("{}{pattern}", called(&call.candidates, call.actual));
                self.step(text, call.args.iter());
            }
            Node::Member(member) => self.step(format!("in {:?}", member.set), [&member.value]),
            Node::List(elements) => {
                self.line("list");
                self.below(|listing| elements.iter().for_each(|element| listing.element("", element)));
            }
            Node::Map(entries) => {
                self.line("map");
                self.below(|listing| {
                    for (key, value) in entries {
                        listing.part("key", key);
                        listing.element("value", value);
                    }
                });
            }
            Node::Message(construction) => {
                let known = construction.message.map_or(", which has no values", |_| "");
                self.line(format_args!("message {}{known}", construction.name));
                self.below(|listing| {
                    for (name, value) in &construction.fields {
                        listing.element(name, value);
                    }
                });
            }
            Node::Fold(fold) => self.fold(fold),
            Node::Alternative(alternative) => {
                let text = format!("alternative, gives {:?}", alternative.gives);
                self.step(text, [&alternative.optional, &alternative.otherwise]);
            }
            Node::Block(block) => {
                self.line("block");
                self.below(|listing| {
                    for (i, value) in block.values.iter().enumerate() {
                        listing.part(&format!("%{} when first used", block.first + i), value);
                    }
                    listing.part("result", &block.result);
                });
            }
            Node::Unresolved(error) => self.line(format_args!("fail: {error}")),
        }
    }

    fn element(&mut self, name: &str, element: &'p Element) {
        match (name, element.optional) {
            ("", false) => self.node(&element.node),
            ("", true) => self.part("if there", &element.node),
            (name, false) => self.part(name, &element.node),
            (name, true) => self.part(&format!("{name}, if there"), &element.node),
        }
    }

    fn access(&mut self, access: &'p Access) {
        let verb = match access.mode {
            Mode::Value => "get",
            Mode::Presence => "has",
        };
        let path = self.path(&access.path);
        match &access.root {
            Root::Input(n) => {
                let name = self.inputs.get(*n).map_or("?", |name| name.as_ref());
                self.line(format_args!("{verb} {name}{path}"));
            }
            Root::Local(n) => self.line(format_args!("{verb} %{n}{path}")),
            Root::Value(node) => self.step(format!("{verb} {path} of"), [node]),
        }
        self.keys(&access.path);
    }

    fn path(&self, path: &[Qualifier]) -> String {
        let shown = path.iter().map(|qualifier| {
            let mark = if qualifier.optional { "?" } else { "" };
            match &qualifier.key {
                Key::Name(name) if name.field.is_some() => format!(".{mark}{}", name.name),
                Key::Name(name) => format!("[{mark}{:?}]", name.name),
                Key::Const(value) => format!("[{mark}{}]", constant(value)),
                Key::Node(_) => format!("[{mark}key]"),
            }
        });
        shown.collect()
    }

    /// The keys of a path that are known only at run time.
    fn keys(&mut self, path: &'p [Qualifier]) {
        for qualifier in path {
            if let Key::Node(node) = &qualifier.key {
                self.below(|listing| listing.part("key", node));
            }
        }
    }

    fn fold(&mut self, fold: &'p Fold) {
        let variables = match fold.second {
            Some(second) => format!("%{}, %{second}", fold.first),
            None => format!("%{}", fold.first),
        };
        let name = match &fold.step {
            Step::Replace { .. } => "fold",
            Step::All { .. } => "all",
            Step::Exists { .. } => "exists",
            Step::Append { .. } => "append",
            Step::Insert { .. } => "insert",
        };
        self.line(format_args!("{name} {variables} into %{}", fold.accumulator));
        self.below(|listing| {
            listing.part("range", &fold.range);
            match &fold.step {
                Step::Replace { condition, step } => {
                    listing.part("first", &fold.init);
                    listing.part("while", condition);
                    listing.part("then", step);
                }
                Step::All { predicate } | Step::Exists { predicate } => listing.part("predicate", predicate),
                Step::Append { filter, element } => {
                    filter.iter().for_each(|filter| listing.part("filter", filter));
                    listing.part("element", element);
                }
                Step::Insert { filter, entry } => {
                    filter.iter().for_each(|filter| listing.part("filter", filter));
                    match entry {
                        Insertion::Entry { key, value } => {
                            listing.part("key", key);
                            listing.part("value", value);
                        }
                        Insertion::Map(map) => listing.part("map", map),
                    }
                }
            }
            listing.part("result", &fold.result);
        });
    }
}

fn called(candidates: &[&Overload], actual: Actual) -> String {
    let names: Vec<_> = candidates.iter().map(|overload| overload.id).collect();
    format!("call {}, cost {actual:?}", names.join(" or "))
}

fn constant(value: &Owned) -> String {
    match value {
        Owned::Null => "null".to_owned(),
        Owned::Bool(b) => b.to_string(),
        Owned::Int(i) => i.to_string(),
        Owned::Uint(u) => format!("{u}u"),
        Owned::Double(d) => format!("{d:?}"),
        Owned::Str(s) => format!("{s:?}"),
        Owned::List(items) => {
            let items: Vec<_> = items.iter().map(constant).collect();
            format!("[{}]", items.join(", "))
        }
        Owned::Map(map) => {
            let entry = |(key, value): &(Owned, Owned)| format!("{}: {}", constant(key), constant(value));
            let entries: Vec<_> = map.entries().iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => format!("{} {}", other.key().type_name(), other.key()),
    }
}
