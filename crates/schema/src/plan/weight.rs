//! How much there is to check.

use super::PlanNode;
use crate::structural::ValidationRule;

/// How many checks are made of one value at a node or below it, at most. Branches of junctors check it all over again,
/// and so does every branch below them; a few bytes may ask for many defaults, and for a loop within a loop.
pub(super) fn weight_of_node(node: &PlanNode) -> u32 {
    let schema = &node.schema;
    let limits = schema.validation.as_deref();
    let names = node.properties.len() + limits.map_or(0, |v| v.required.len() + v.enumeration.len());
    let unions: usize = schema.unions().iter().map(|union| union.fields.len()).sum();
    // Looking for a name, or for one of many values, is a small part of a check.
    let own = 1 + node.defaults.len() + unions + names / 16;
    let rules = schema.rules.iter().map(of_rule).fold(0, u32::saturating_add);
    let own = u32::try_from(own).unwrap_or(u32::MAX).saturating_add(rules);

    let parts = node.properties.iter().chain(&node.additional).chain(&node.items);
    let heaviest = parts.map(|part| part.weight).max().unwrap_or(0);
    let branches = node.checks.iter().flat_map(|checks| {
        let all = checks.all_of.iter().chain(&checks.any_of).chain(&checks.one_of);
        all.chain(&checks.not)
    });
    branches.fold(own.max(heaviest), |all, branch| all.saturating_add(branch.weight))
}

/// What a rule adds: one with a loop may look at a list for each of its elements, one with several for each pair.
fn of_rule(rule: &ValidationRule) -> u32 {
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
            // What stands in a list is checked by its own schema and by the branches around it.
            (format!("{{type: array, items: {{type: integer, anyOf: [{}]}}}}", branches(9)), 10),
            ("{type: object, properties: {a: {type: string, default: x}, b: {type: string, default: y}}}".to_owned(), 3),
            (r#"{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(x, x != '')"}]}"#.to_owned(), 129),
        ];
        for (schema, want) in cases {
            assert_eq!(weight(&schema), want, "{schema}");
        }
    }
}
