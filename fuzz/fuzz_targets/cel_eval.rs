//! Every expression that checks evaluates deterministically, with the same cost, and within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_cel::env::Env;
use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::types::CelType;
use scantling_cel::val::{Arena, DYN, EvalError};
use scantling_value::json::decode;
use std::sync::{Arc, LazyLock};

const COST_LIMIT: u64 = 10_000;

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let scope = for_stored_expressions(KubernetesVersion::LATEST);
    Env::new(Arc::new(scope)).with_variable("self", CelType::Dyn)
});

fuzz_target!(|source: &str| {
    let Ok(checked) = ENV.compile(source) else {
        return;
    };
    let Ok(program) = Program::compile(&ENV, &checked) else {
        return;
    };
    let document =
        br#"{"i":1,"s":"text","l":[1,2,3],"m":{"a":{"b":[true,null,1.5]}},"t":"2024-02-29T01:02:03Z"}"#;
    let value = decode(document, scantling_value::Limits::default()).expect("the document is JSON");
    let limits = Limits {
        cost: COST_LIMIT,
        interrupt: None,
    };
    let run = || {
        let arena = Arena::new();
        let outcome = program.eval(&arena, &[Input::Json(&value, &DYN)], limits);
        let beyond = outcome.cost > COST_LIMIT;
        // The limit is the only reason to stop early, and it is always reported.
        assert_eq!(
            beyond,
            outcome.result.as_ref().err() == Some(&EvalError::CostLimitExceeded)
        );
        (
            outcome.cost,
            outcome.result.map(|v| v.to_string()).map_err(|e| e.to_string()),
        )
    };
    assert_eq!(run(), run());
});
