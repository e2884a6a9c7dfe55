//! The overloads of every Kubernetes version, and the version that introduced them.
//!
//! `data/overloads.txt` lists the declarations of kube-apiserver's environments. Type parameters are named
//! `T`, `U`, … in order of appearance. The former names of operators (`_in_`, `__not_strictly_false__`) are
//! omitted, because no expression parses to them.

use scantling_cel::kubernetes::{KubernetesVersion, for_stored_expressions};
use scantling_cel::overload::{Overload, Style, Ty};
use std::collections::BTreeMap;

const OLDEST: u32 = 24;
const NEWEST: u32 = 37;

#[test]
fn overloads_by_version() {
    let mut since: BTreeMap<String, u32> = BTreeMap::new();
    for minor in (OLDEST..=NEWEST).rev() {
        for row in for_stored_expressions(KubernetesVersion::new(1, minor)).rows() {
            since.insert(signature(row), minor);
        }
    }
    let found: Vec<String> = since
        .iter()
        .map(|(signature, minor)| format!("1.{minor} {signature}"))
        .collect();
    let expected: Vec<&str> = include_str!("data/overloads.txt").lines().collect();
    let missing: Vec<&&str> = expected
        .iter()
        .filter(|line| !found.iter().any(|f| f == **line))
        .collect();
    let surplus: Vec<&String> = found
        .iter()
        .filter(|line| !expected.contains(&line.as_str()))
        .collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "of {} overloads, {} are missing: {missing:#?}\n{} are not on a server: {surplus:#?}",
        expected.len(),
        missing.len(),
        surplus.len(),
    );
}

fn signature(row: &Overload) -> String {
    let mut names = Vec::new();
    let params: Vec<String> = row.params.iter().map(|ty| show(*ty, &mut names)).collect();
    let style = match row.style {
        Style::Global => "global",
        Style::Member => "member",
    };
    let result = show(row.result, &mut names);
    format!(
        "{} {} {style} ({}) -> {result}",
        row.function,
        row.id,
        params.join(", ")
    )
}

fn show(ty: Ty, names: &mut Vec<&'static str>) -> String {
    match ty {
        Ty::Param(name) => {
            let n = names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            ["T", "U", "V", "W"].get(n).unwrap_or(&"X").to_string()
        }
        Ty::List(element) => format!("list({})", show(*element, names)),
        Ty::Map(key, value) => {
            let key = show(*key, names);
            format!("map({key}, {})", show(*value, names))
        }
        Ty::Type(of) => format!("type({})", show(*of, names)),
        Ty::Optional(value) => format!("optional_type({})", show(*value, names)),
        other => other.to_type().to_string(),
    }
}
