//! Estimates the work of validating a value.

use super::PlanNode;
use crate::structural::ValidationRule;

/// An upper bound of the checks for one value at a node or below it. Branches of junctors check it again, and
/// so do branches below them; a few bytes can require many defaults, or nested loops.
pub(super) fn weight_of_node(node: &PlanNode) -> u32 {
    let schema = &node.schema;
    let limits = schema.validation.as_deref();
    let names = node.properties.len() + limits.map_or(0, |v| v.required.len() + v.enumeration.len());
    let unions: usize = schema.unions().iter().map(|union| union.fields.len()).sum();
    // Looking up a name or an enumeration value is a small part of a check.
    let own = 1 + node.defaults.len() + unions + names / 16;
    let rules = schema
        .rules
        .iter()
        .map(weight_of_rule)
        .fold(0, u32::saturating_add);
    let own = u32::try_from(own).unwrap_or(u32::MAX).saturating_add(rules);

    let parts = node.properties.iter().chain(&node.additional).chain(&node.items);
    let heaviest = parts.map(|part| part.weight).max().unwrap_or(0);
    let branches = node.checks.iter().flat_map(|checks| {
        let all = checks.all_of.iter().chain(&checks.any_of).chain(&checks.one_of);
        all.chain(&checks.not)
    });
    branches.fold(own.max(heaviest), |all, branch| all.saturating_add(branch.weight))
}

/// The weight of a rule: one loop may visit a list for each element, several loops for each pair.
fn weight_of_rule(rule: &ValidationRule) -> u32 {
    const LOOPS: [&str; 8] = [
        ".all(",
        ".exists(",
        ".exists_one(",
        ".existsOne(",
        ".filter(",
        ".map(",
        ".transform",
        ".sortBy(",
    ];
    // The text is searched, because rules are not compiled yet and an estimate suffices.
    match LOOPS.iter().map(|name| rule.rule.matches(name).count()).sum() {
        0 => 1,
        1 => 128,
        _ => 512,
    }
}

#[cfg(test)]
mod tests {
    use crate::document::Schema;
    use crate::plan::PlanCompiler;
    use crate::structural::Interner;
    use scantling_value::{Limits, yaml};

    fn weight(schema: &str) -> u32 {
        let schema = yaml::decode(schema.as_bytes(), Limits::SAFE).unwrap();
        let schema = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
        PlanCompiler::default().compile(&schema).root().weight()
    }

    #[test]
    fn junctors_defaults_and_loops_weigh() {
        let anything = "{minimum: 1}";
        let branches = |n: usize| vec![anything; n].join(",");
        let cases = [
            ("{type: object}".to_owned(), 1),
            ("{type: object, properties: {a: {type: string}, b: {type: integer}}}".to_owned(), 1),
            (format!("{{type: integer, anyOf: [{}]}}", branches(3)), 4),
            (format!("{{type: integer, oneOf: [{}], not: {anything}}}", branches(3)), 5),
            // A branch of a branch checks the value once more.
            (format!("{{type: integer, allOf: [{{anyOf: [{0}]}}, {{anyOf: [{0}]}}]}}", branches(3)), 9),
            // Elements of a list are checked by their own schema and by the branches around it.
            (format!("{{type: array, items: {{type: integer, anyOf: [{}]}}}}", branches(9)), 10),
            ("{type: object, properties: {a: {type: string, default: x}, b: {type: string, default: y}}}".to_owned(), 3),
            (r#"{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(x, x != '')"}]}"#.to_owned(), 129),
        ];
        for (schema, want) in cases {
            assert_eq!(weight(&schema), want, "{schema}");
        }
    }
}
