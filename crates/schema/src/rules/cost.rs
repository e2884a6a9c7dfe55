//! The limits on what rules may cost, and the texts of their errors.

use scantling_value::{FieldError, Path, PathBuf};

/// The most that an expression may be estimated to cost, over all the values it may be evaluated for.
pub(super) const EXPRESSION_LIMIT: u64 = 10_000_000;
/// The most that all expressions of a schema together may.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// Expressions that cost less than one hundredth of the schema's limit are not named as offenders.
const OFFENCE: u64 = SCHEMA_LIMIT / 100;
/// So many offenders are named, the worst ones.
const MAX_OFFENDERS: usize = 4;

/// What the expressions of a schema cost together.
#[derive(Debug, Default)]
pub(super) struct Total {
    cost: u64,
    offenders: Vec<(u64, PathBuf)>,
}

impl Total {
    pub(super) fn add(&mut self, at: &Path<'_>, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < OFFENCE {
            return;
        }
        let worse = self.offenders.partition_point(|(other, _)| *other >= cost);
        self.offenders.insert(worse, (cost, PathBuf::from(at)));
        self.offenders.truncate(MAX_OFFENDERS);
    }

    /// The errors of a schema at `at` whose expressions cost too much together.
    pub(super) fn errors(self, at: &Path<'_>) -> Vec<FieldError> {
        if self.cost <= SCHEMA_LIMIT {
            return Vec::new();
        }
        let detail =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<FieldError> = self
            .offenders
            .into_iter()
            .map(|(_, offender)| with_path(&offender, &Path::ROOT, |at| FieldError::forbidden(at, detail)))
            .collect();
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(at, exceeds(name, self.cost, SCHEMA_LIMIT)));
        errors
    }
}

/// Rebuilds a borrowed path from an owned one.
fn with_path<T>(path: &PathBuf, root: &Path<'_>, then: impl FnOnce(&Path<'_>) -> T) -> T {
    fn step<'a, T>(
        mut rest: impl Iterator<Item = scantling_value::Segment<'a>>,
        at: &Path<'_>,
        then: impl FnOnce(&Path<'_>) -> T,
    ) -> T {
        match rest.next() {
            Some(segment) => step(rest, &at.push(segment), then),
            None => then(at),
        }
    }
    step(path.segments().collect::<Vec<_>>().into_iter(), root, then)
}

/// The text of an error about a cost beyond its limit.
pub(super) fn exceeds(name: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = if times > 100.0 {
        "more than 100x".to_owned()
    } else if times < 1.5 {
        // Not to say that it exceeds the limit by a factor of 1.0.
        format!("{times:.6}x")
    } else {
        format!("{times:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
