//! The deepest accepted expressions are parsed, checked and evaluated on the stack of an ordinary thread.
#![expect(
    clippy::expect_used,
    reason = "a function around a test, which the lints do not take for one"
)]

use scantling_cel::env::Env;
use scantling_cel::estimate::estimate;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::types::CelType;
use scantling_cel::val::Arena;
use std::sync::{Arc, LazyLock};
use std::thread;

/// Half the stack of worker and test threads: callers need some of it.
const STACK: usize = 1 << 20;

/// Generates an expression of a given depth.
type Nest = fn(usize) -> String;

/// The kinds of nesting and the maximum depth of each.
const KINDS: &[(&str, usize, Nest)] = &[
    ("parentheses", 249, |n| {
        format!("{}1{}", "(".repeat(n), ")".repeat(n))
    }),
    ("negations", 249, |n| {
        format!("{}true{}", "!(".repeat(n), ")".repeat(n))
    }),
    ("minus signs", 249, |n| {
        format!("{}x{}", "-(".repeat(n), ")".repeat(n))
    }),
    ("sums to the left", 250, |n| format!("1{}", " + 1".repeat(n))),
    ("sums to the right", 124, |n| {
        format!("{}1{}", "1 + (".repeat(n), ")".repeat(n))
    }),
    ("joined text", 124, |n| {
        format!("{}'a'{}", "'a' + (".repeat(n), ")".repeat(n))
    }),
    ("comparisons", 124, |n| {
        format!("{}true{}", "true == (".repeat(n), ")".repeat(n))
    }),
    ("choices to the left", 248, |n| {
        format!("{}true{}", "(".repeat(n), " ? true : false)".repeat(n))
    }),
    ("choices in the middle", 248, |n| {
        format!("{}1{}", "(true ? ".repeat(n), " : 2)".repeat(n))
    }),
    ("choices to the right", 249, |n| {
        format!("{}1", "false ? 2 : ".repeat(n))
    }),
    ("conjunctions", 249, |n| {
        format!("{}true{}", "true && (".repeat(n), ")".repeat(n))
    }),
    ("disjunctions in conjunctions", 249, |n| {
        format!("{}true{}", "true && (false || ".repeat(n), ")".repeat(n))
    }),
    ("wide junctions", 249, |n| {
        let wide = |operator: &str| format!("true {operator} ").repeat(12);
        format!(
            "{}true{}",
            format!("{}({}", wide("&&"), wide("||")).repeat(n),
            ")".repeat(n)
        )
    }),
    ("operators of all ranks", 83, |n| {
        format!("{}x{}", "x || x && x < x + x * -dyn(".repeat(n), ")".repeat(n))
    }),
    ("selections", 250, |n| format!("x{}", ".a".repeat(n))),
    ("optional selections", 250, |n| format!("x{}", ".?a".repeat(n))),
    ("presence", 249, |n| format!("has(x{}.b)", ".a".repeat(n))),
    ("indices in a row", 250, |n| format!("x{}", "[0]".repeat(n))),
    ("indices of indices", 249, |n| {
        format!("{}0{}", "x[".repeat(n), "]".repeat(n))
    }),
    ("lists", 249, |n| format!("{}1{}", "[".repeat(n), "]".repeat(n))),
    ("lists of variables", 249, |n| {
        format!("{}x{}", "[".repeat(n), "]".repeat(n))
    }),
    ("lists with siblings", 249, |n| {
        format!("{}[]{}", "[[], ".repeat(n), "]".repeat(n))
    }),
    ("maps", 249, |n| {
        format!("{}1{}", "{'a': ".repeat(n), "}".repeat(n))
    }),
    ("maps of variables", 249, |n| {
        format!("{}x{}", "{'a': ".repeat(n), "}".repeat(n))
    }),
    ("keys", 249, |n| format!("{}1{}", "{".repeat(n), ": 1}".repeat(n))),
    ("equal lists", 248, |n| {
        let list = format!("{}x{}", "[".repeat(n), "]".repeat(n));
        format!("{list} == {list}")
    }),
    ("messages", 249, |n| {
        format!(
            "{}1{}",
            "google.protobuf.Int64Value{value: ".repeat(n),
            "}".repeat(n)
        )
    }),
    ("JSON", 83, |n| {
        format!(
            "{}1.0{}",
            "google.protobuf.Value{list_value: google.protobuf.ListValue{values: [".repeat(n),
            "]}}".repeat(n)
        )
    }),
    ("calls", 249, |n| {
        format!("{}x{}", "dyn(".repeat(n), ")".repeat(n))
    }),
    ("conversions", 124, |n| {
        format!("{}1{}", "string(int(".repeat(n), "))".repeat(n))
    }),
    ("receivers", 250, |n| format!("'a'{}", ".trim()".repeat(n))),
    ("arguments", 249, |n| {
        format!("{}'a'{}", "'a'.replace('b', ".repeat(n), ")".repeat(n))
    }),
    ("formats", 124, |n| {
        format!("{}'a'{}", "'%s'.format([".repeat(n), "])".repeat(n))
    }),
    ("optionals", 249, |n| {
        format!("{}x{}", "optional.of(".repeat(n), ")".repeat(n))
    }),
    ("alternatives", 249, |n| {
        format!("{}1{}", "optional.none().orValue(".repeat(n), ")".repeat(n))
    }),
    ("optional entries", 124, |n| {
        format!("{}x{}", "[?optional.of(".repeat(n), ")]".repeat(n))
    }),
    ("quantifiers", 249, |n| {
        format!("{}true{}", "[1].all(e, ".repeat(n), ")".repeat(n))
    }),
    ("existence", 248, |n| {
        format!("{}true{}", "[1].exists(e, e > 1 || ".repeat(n), ")".repeat(n))
    }),
    ("unique existence", 249, |n| {
        format!("{}true{}", "[1].exists_one(e, ".repeat(n), ")".repeat(n))
    }),
    ("mappings", 249, |n| {
        format!("{}x{}", "[1].map(e, ".repeat(n), ")".repeat(n))
    }),
    ("mappings with filters", 248, |n| {
        format!("{}x{}", "[1].map(e, e > 0, ".repeat(n), ")".repeat(n))
    }),
    ("filters", 83, |n| {
        format!("{}true{}", "[1].filter(e, ".repeat(n), ").size() > 0".repeat(n))
    }),
    ("ranges", 250, |n| format!("[1]{}", ".map(e, e)".repeat(n))),
    ("two variables", 249, |n| {
        format!("{}x{}", "{'a': 1}.transformMap(k, v, ".repeat(n), ")".repeat(n))
    }),
    ("entries", 124, |n| {
        format!(
            "{}x{}",
            "{'a': 1}.transformMapEntry(k, v, {k: ".repeat(n),
            "})".repeat(n)
        )
    }),
    ("optional mappings", 249, |n| {
        format!("{}x{}", "optional.of(1).optMap(e, ".repeat(n), ")".repeat(n))
    }),
    ("optional chains", 248, |n| {
        format!(
            "{}optional.of(x){}",
            "optional.of(1).optFlatMap(e, ".repeat(n),
            ")".repeat(n)
        )
    }),
    ("sorting", 125, |n| {
        format!("{}[1]{}", "[1].sortBy(e, ".repeat(n), ".size())".repeat(n))
    }),
];

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let scope = for_stored_expressions(KubernetesVersion::LATEST);
    Env::new(Arc::new(scope)).with_variable("x", CelType::Dyn)
});

/// Parses, checks and evaluates. Returns whether there is a program.
fn run(source: &str) -> bool {
    let Ok(checked) = ENV.compile(source) else {
        return false;
    };
    let bounds = estimate(&checked, None);
    assert!(bounds.min <= bounds.max, "{source}");
    let Ok(program) = Program::compile(&ENV, &checked) else {
        return false;
    };
    let document = scantling_value::json::decode(br#"{"a": {"b": 1}}"#, scantling_value::Limits::default());
    let document = document.expect("a document");
    let arena = Arena::new();
    let input = Input::Json(&document, &scantling_cel::val::DYN);
    let limits = Limits {
        cost: 1_000_000,
        interrupt: None,
    };
    let outcome = program.eval(&arena, &[input], limits);
    let copy = outcome.result.and_then(|v| v.into_owned(&arena));
    drop(copy);
    true
}

/// Long chains of `&&` and `||` become balanced trees, but nested chains add up: the deepest trees that fit
/// the size limit.
const CHAINS: &[(&str, Nest)] = &[
    ("junctions in parentheses", |n| {
        let wide = |operator: &str| format!("x{operator}").repeat(66);
        format!(
            "{}x{}",
            format!("{}{}(", wide("||"), wide("&&")).repeat(n),
            ")".repeat(n)
        )
    }),
    ("junctions in mappings", |n| {
        let wide = |operator: &str| format!("x{operator}").repeat(59);
        format!(
            "{}x{}",
            format!("{}{}[1].map(e, x, ", wide("||"), wide("&&")).repeat(n),
            ").size()>0".repeat(n)
        )
    }),
];

#[test]
fn the_deepest_trees() {
    for (name, nest) in CHAINS {
        let levels = if name.ends_with("parentheses") { 240 } else { 80 };
        let run = move || assert!(run(&nest(levels)), "{name} may nest {levels} deep");
        let thread = thread::Builder::new().stack_size(STACK).spawn(run);
        thread.expect("a thread").join().expect("no panic");
    }
}

#[test]
fn the_deepest_expression_of_every_kind() {
    for (name, levels, nest) in KINDS {
        let run = move || {
            assert!(run(&nest(*levels)), "{name} may nest {levels} deep");
            assert!(
                !run(&nest(levels + 1)),
                "{name} may not nest deeper than {levels}"
            );
            assert!(!run(&nest(10 * levels)), "{name} may not nest much deeper");
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(run);
        thread.expect("a thread").join().expect("no panic");
    }
}
