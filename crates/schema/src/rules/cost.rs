//! The cost limits of rules, and their error messages.

use scantling_value::{ErrorList, FieldError, Path};

/// The maximum estimated cost of an expression, over all values it may be evaluated for.
pub(super) const EXPRESSION_LIMIT: u64 = 10_000_000;
/// The maximum estimated cost of all expressions of a schema.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// Expressions that cost less than one hundredth of the schema's limit are not named in the error.
const MIN_OFFENDER_COST: u64 = SCHEMA_LIMIT / 100;
/// The maximum number of expressions named in the error, the most expensive ones.
const MAX_OFFENDERS: usize = 4;

/// The total cost of the expressions of a schema.
#[derive(Debug, Default)]
pub(super) struct CostTotal {
    cost: u64,
    /// The most expensive expressions, with their errors in case the total exceeds the limit.
    offenders: Vec<(u64, FieldError)>,
}

impl CostTotal {
    pub(super) fn add(&mut self, at: &Path<'_>, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < MIN_OFFENDER_COST {
            return;
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        // Of equal costs, the first in document order is kept.
        let place = self.offenders.partition_point(|(other, _)| *other >= cost);
        self.offenders
            .insert(place, (cost, FieldError::forbidden(at, detail)));
        self.offenders.truncate(MAX_OFFENDERS);
    }

    /// The errors of a schema at `at` whose total cost exceeds the limit.
    pub(super) fn errors(self, at: &Path<'_>) -> ErrorList {
        if self.cost <= SCHEMA_LIMIT {
            return ErrorList::new();
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let mut errors: ErrorList = self.offenders.into_iter().map(|(_, error)| error).collect();
        errors.push_with(|| FieldError::forbidden(at, exceeds(name, self.cost, SCHEMA_LIMIT)));
        errors
    }
}

/// The message about a cost that exceeds its limit.
pub(super) fn exceeds(name: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = if times > 100.0 {
        "more than 100x".to_owned()
    } else if times < 1.5 {
        // Avoids the message "by a factor of 1.0".
        format!("{times:.6}x")
    } else {
        format!("{times:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn messages_name_the_factor() {
        for (cost, factor) in [
            (10_000_001, "1.000000x"),
            (14_999_999, "1.500000x"),
            (15_000_000, "1.5x"),
            (1_000_000_001, "more than 100x"),
        ] {
            let text = exceeds("estimated rule cost", cost, EXPRESSION_LIMIT);
            assert!(text.contains(&format!("by factor of {factor} (")), "{text}");
        }
    }

    #[test]
    fn only_the_most_expensive_rules_are_named() {
        let at = Path::ROOT.field("schema");
        let mut total = CostTotal::default();
        for (n, cost) in [900_000, 30_000_000, 1_000_000, 50_000_000, 2_000_000, 40_000_000]
            .into_iter()
            .enumerate()
        {
            total.add(&at.index(n), cost);
        }
        let texts: Vec<String> = total.errors(&at).iter().map(ToString::to_string).collect();
        expect![[r#"
            schema[3]: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
            schema[5]: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
            schema[1]: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
            schema[4]: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema
            schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.239000x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"#]]
        .assert_eq(&texts.join("\n"));
    }
}
