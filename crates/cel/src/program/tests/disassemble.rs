//! `Display` for programs: one op per line, its operands indented below it.
//!
//! Fields that the checker knows are written `.name`, other names `["name"]`. Variables of comprehensions are numbered.
//! The cost of a call follows its name.

use crate::overload::Overload;
use crate::program::Program;
use crate::program::op::{
    Attribute, AttributeMode, AttributeRoot, ElementOp, FoldOp, FoldStep, Insertion, Op, Qualifier,
    QualifierKey,
};
use crate::run::Actual;
use crate::val::Owned;
use std::fmt::{self, Write};
use std::sync::Arc;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut disassembly = Disassembly {
            inputs: &self.inputs,
            text: String::new(),
            level: 0,
        };
        disassembly.op(&self.root);
        f.write_str(&disassembly.text)
    }
}

struct Disassembly<'p> {
    inputs: &'p [Arc<str>],
    text: String,
    level: usize,
}

impl<'p> Disassembly<'p> {
    fn line(&mut self, text: impl fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:1$}{text}", "", self.level * 2);
    }

    /// An op and its operands.
    fn op_with_operands(&mut self, text: impl fmt::Display, operands: impl IntoIterator<Item = &'p Op>) {
        self.line(text);
        self.indented(|disassembly| operands.into_iter().for_each(|op| disassembly.op(op)));
    }

    /// An operand with a label.
    fn labelled(&mut self, name: &str, op: &'p Op) {
        self.op_with_operands(name, [op]);
    }

    fn indented(&mut self, write: impl FnOnce(&mut Self)) {
        self.level += 1;
        write(self);
        self.level -= 1;
    }

    fn op(&mut self, op: &'p Op) {
        match op {
            Op::Const(value) => self.line(format_args!("constant {}", constant(value))),
            Op::Attribute(attribute) => self.attribute(attribute),
            Op::Conditional(conditional) => {
                let selected = self.path(&conditional.path);
                let text = match (conditional.mode, selected.as_str()) {
                    (AttributeMode::Presence, selected) => format!("choose, has {selected}"),
                    (AttributeMode::Value, "") => "choose".to_owned(),
                    (AttributeMode::Value, selected) => format!("choose, select {selected}"),
                };
                self.op_with_operands(
                    text,
                    [
                        &conditional.condition,
                        &conditional.if_true,
                        &conditional.if_false,
                    ],
                );
                self.keys(&conditional.path);
            }
            Op::And(terms) => self.op_with_operands("and", terms.iter()),
            Op::Or(terms) => self.op_with_operands("or", terms.iter()),
            Op::NotStrictlyFalse(term) => self.op_with_operands("not strictly false", [term.as_ref()]),
            Op::Equality(equality) => {
                let name = if equality.negated { "differ" } else { "equal" };
                self.op_with_operands(name, [&equality.left, &equality.right]);
            }
            Op::Unary(call) => self.op_with_operands(called(&[call.overload], call.actual), [&call.arg]),
            Op::Binary(call) => {
                self.op_with_operands(called(&[call.overload], call.actual), [&call.left, &call.right]);
            }
            Op::Comparison(comparison) => {
                let call = &comparison.call;
                let text = format!("compare, else {}", called(&[call.overload], call.actual));
                self.op_with_operands(text, [&call.left, &call.right]);
            }
            Op::Concat(call) => {
                let text = format!("join, else {}", called(&[call.overload], call.actual));
                self.op_with_operands(text, [&call.left, &call.right]);
            }
            Op::Call(call) => {
                let pattern = call.pattern.as_ref().map_or("", |_| ", pattern compiled");
                let text = format!("{}{pattern}", called(&call.candidates, call.actual));
                self.op_with_operands(text, call.args.iter());
            }
            Op::InSet(member) => self.op_with_operands(format!("in {:?}", member.set), [&member.value]),
            Op::List(elements) => {
                self.line("list");
                self.indented(|disassembly| {
                    elements
                        .iter()
                        .for_each(|element| disassembly.element("", element));
                });
            }
            Op::Map(entries) => {
                self.line("map");
                self.indented(|disassembly| {
                    for (key, value) in entries {
                        disassembly.labelled("key", key);
                        disassembly.element("value", value);
                    }
                });
            }
            Op::Message(literal) => {
                let known = literal.message.map_or(", which has no values", |_| "");
                self.line(format_args!("message {}{known}", literal.name));
                self.indented(|disassembly| {
                    for (name, value) in &literal.fields {
                        disassembly.element(name, value);
                    }
                });
            }
            Op::Fold(fold) => self.fold(fold),
            Op::OptionalOr(optional_or) => {
                let text = format!("optional or, gives {:?}", optional_or.result_kind);
                self.op_with_operands(text, [&optional_or.optional, &optional_or.otherwise]);
            }
            Op::Block(block) => {
                self.line("block");
                self.indented(|disassembly| {
                    for (i, value) in block.values.iter().enumerate() {
                        disassembly.labelled(&format!("%{} when first used", block.first + i), value);
                    }
                    disassembly.labelled("result", &block.result);
                });
            }
            Op::Unresolved(error) => self.line(format_args!("fail: {error}")),
        }
    }

    fn element(&mut self, name: &str, element: &'p ElementOp) {
        match (name, element.optional) {
            ("", false) => self.op(&element.op),
            ("", true) => self.labelled("if there", &element.op),
            (name, false) => self.labelled(name, &element.op),
            (name, true) => self.labelled(&format!("{name}, if there"), &element.op),
        }
    }

    fn attribute(&mut self, attribute: &'p Attribute) {
        let verb = match attribute.mode {
            AttributeMode::Value => "get",
            AttributeMode::Presence => "has",
        };
        let path = self.path(&attribute.path);
        match &attribute.root {
            AttributeRoot::Input(n) => {
                let name = self.inputs.get(*n).map_or("?", |name| name.as_ref());
                self.line(format_args!("{verb} {name}{path}"));
            }
            AttributeRoot::Local(n) => self.line(format_args!("{verb} %{n}{path}")),
            AttributeRoot::Value(op) => self.op_with_operands(format!("{verb} {path} of"), [op]),
        }
        self.keys(&attribute.path);
    }

    fn path(&self, path: &[Qualifier]) -> String {
        let display = path.iter().map(|qualifier| {
            let mark = if qualifier.optional { "?" } else { "" };
            match &qualifier.key {
                QualifierKey::Name(name) if name.field.is_some() => format!(".{mark}{}", name.name),
                QualifierKey::Name(name) => format!("[{mark}{:?}]", name.name),
                QualifierKey::Const(value) => format!("[{mark}{}]", constant(value)),
                QualifierKey::Computed(_) => format!("[{mark}key]"),
            }
        });
        display.collect()
    }

    /// The computed keys of a path.
    fn keys(&mut self, path: &'p [Qualifier]) {
        for qualifier in path {
            if let QualifierKey::Computed(op) = &qualifier.key {
                self.indented(|disassembly| disassembly.labelled("key", op));
            }
        }
    }

    fn fold(&mut self, fold: &'p FoldOp) {
        let variables = match fold.second {
            Some(second) => format!("%{}, %{second}", fold.first),
            None => format!("%{}", fold.first),
        };
        let name = match &fold.step {
            FoldStep::Replace { .. } => "fold",
            FoldStep::All { .. } => "all",
            FoldStep::Exists { .. } => "exists",
            FoldStep::Append { .. } => "append",
            FoldStep::Insert { .. } => "insert",
        };
        self.line(format_args!("{name} {variables} into %{}", fold.accumulator));
        self.indented(|disassembly| {
            disassembly.labelled("range", &fold.range);
            match &fold.step {
                FoldStep::Replace { condition, step } => {
                    disassembly.labelled("first", &fold.init);
                    disassembly.labelled("while", condition);
                    disassembly.labelled("then", step);
                }
                FoldStep::All { predicate } | FoldStep::Exists { predicate } => {
                    disassembly.labelled("predicate", predicate);
                }
                FoldStep::Append { filter, element } => {
                    filter
                        .iter()
                        .for_each(|filter| disassembly.labelled("filter", filter));
                    disassembly.labelled("element", element);
                }
                FoldStep::Insert { filter, entry } => {
                    filter
                        .iter()
                        .for_each(|filter| disassembly.labelled("filter", filter));
                    match entry {
                        Insertion::Entry { key, value } => {
                            disassembly.labelled("key", key);
                            disassembly.labelled("value", value);
                        }
                        Insertion::Map(map) => disassembly.labelled("map", map),
                    }
                }
            }
            disassembly.labelled("result", &fold.result);
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
