//! Snapshots of compiled programs: changes to lowering show here.

mod disassemble;

use crate::env::Env;
use crate::kubernetes::{KubernetesVersion, for_stored_expressions};
use crate::program::Program;
use crate::shape::{ListType, Shape, ShapeKind};
use expect_test::expect_file;
use std::fmt::Write;
use std::sync::Arc;

const EXPRESSIONS: &[&str] = &[
    "true",
    "[1, 2.0 == 2.0 ? 2 : 3]",
    "{'a': [1, 2], 'b': []}",
    "self.i <= self.j",
    "has(self.s) && self.s.startsWith('a')",
    "self.o.s == 'x' || self.o.i != 1",
    "self.s in ['Always', 'Never', 'IfNotPresent']",
    "self.i in [3, 1, 2]",
    "1.0 in [1.0, 2.0]",
    "self.s in self.l",
    "self.s in []",
    "self.m.key",
    "self.m[self.s]",
    "self.l[0]",
    "has(self.o.s)",
    "has((self.i > 1 ? self.o : self.o).s)",
    "self.o.?s.orValue('none')",
    "self.?o.?s.or(optional.of('x')).hasValue()",
    "self.m[?'a'].optMap(v, v + 'b')",
    "duration('1h') < duration('90m')",
    "string(1) + string(self.i)",
    "self.s.matches('^[a-z]+$')",
    "self.s.matches(self.s)",
    "self.s.contains('b') && size(self.s) < 10",
    "self.l.all(x, x.size() > 0)",
    "self.l.exists(x, x == self.s)",
    "self.l.exists_one(x, x == self.s)",
    "self.l.map(x, x + '!')",
    "self.l.map(x, x != '', [x])",
    "self.l.filter(x, x > 'a')",
    "self.l.exists(i, v, i == 0 && v == 'a')",
    "self.m.transformMap(k, v, k != v, k + v)",
    "self.m.transformMapEntry(k, v, {v: k})",
    "self.l.sortBy(x, x.size())",
    "-self.i + 1 == 2",
    "dyn(self.i) + dyn(1)",
    "type(self.i) == int",
    "[self.i, 1]",
    "{self.s: 1}",
    "[?self.?s]",
    "'%s-%d'.format([self.s, self.i])",
    "google.protobuf.Duration{seconds: self.i}",
    "quantity('1Gi').isGreaterThan(quantity(self.s))",
];

#[test]
fn disassembly() {
    let text = || Shape::of_kind(ShapeKind::String);
    let int = || Shape::of_kind(ShapeKind::Int);
    let root = Shape::object([
        ("i", int()),
        ("j", int()),
        (
            "l",
            Shape::of_kind(ShapeKind::List {
                element: text(),
                list_type: ListType::Atomic,
            }),
        ),
        ("m", Shape::of_kind(ShapeKind::Map { value: text() })),
        ("o", Shape::object([("i", int()), ("s", text())])),
        ("s", text()),
    ]);
    let scope = for_stored_expressions(KubernetesVersion::LATEST);
    let env = Env::new(Arc::new(scope)).with_variable("self", root.ty("self"));
    let mut listings = String::new();
    for expression in EXPRESSIONS {
        let checked = env.compile(expression).expect(expression);
        let program = Program::compile(&env, &checked).expect(expression);
        writeln!(listings, "# {expression}\n{program}").expect("text takes whatever is written");
    }
    expect_file!["tests/disassembly.txt"].assert_eq(&listings);
}
