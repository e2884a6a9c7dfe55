//! Expressions.

use crate::run;
use expect_test::expect;

#[test]
fn eval_has_three_output_formats() {
    let (_, err, code) = run("eval 1+1 -o junit", "");
    assert_eq!(code, 2);
    let (failed, _, code) = run("eval 1+ -o json", "");
    assert_eq!(code, 1);
    let (yaml, _, code) = run("eval 1+1 -o yaml", "");
    assert_eq!(code, 0);
    expect![[r#"
        error: invalid value 'junit' for '--output <OUTPUT>'
          [possible values: text, json, yaml]

        For more information, try '--help'.
        {
          "error": "ERROR: <input>:1:3: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1+\n | ..^"
        }
        cost: 1
        estimatedCost: 1
        type: int
        value: "2"
    "#]].assert_eq(&format!("{err}{failed}{yaml}"));
}
