//! What is wrong with an object of a kind, apart from its own metadata.

use crate::{AdmitOptions, Resource, Stats, scale};
use scantling_schema::immutable::UnchangedElements;
use scantling_schema::validate::{self, Ratchet};
use scantling_schema::{listtype, meta, rules, union};
use scantling_value::{ErrorKind, ErrorList, FieldError, Path, Value};

/// What was found.
#[derive(Debug, Default)]
pub struct ValidationResult {
    /// What is wrong.
    pub errors: ErrorList,
    /// What is wrong but was so before.
    pub warnings: Vec<String>,
    /// What it took.
    pub stats: Stats,
}

/// Checks an object against its schema: limits on values, embedded metadata, unique elements, unions and rules. With
/// `old`, it is an update of that object.
pub fn check(
    resource: &Resource,
    new: &Value,
    old: Option<&Value>,
    options: &AdmitOptions<'_>,
) -> ValidationResult {
    let mut check = ObjectValidator::new(resource, new, old, options, ErrorList::new());
    check.values();
    check.embedded();
    check.finish()
}

/// The checks of one object, one stage after the other.
pub(crate) struct ObjectValidator<'a> {
    resource: &'a Resource,
    new: &'a Value,
    old: Option<&'a Value>,
    options: &'a AdmitOptions<'a>,
    ratchet: Ratchet<'a>,
    checked: ValidationResult,
}

impl<'a> ObjectValidator<'a> {
    /// `found` is what is known to be wrong already; it may keep rules from running.
    pub(crate) fn new(
        resource: &'a Resource,
        new: &'a Value,
        old: Option<&'a Value>,
        options: &'a AdmitOptions<'a>,
        found: ErrorList,
    ) -> Self {
        ObjectValidator {
            resource,
            new,
            old,
            options,
            ratchet: Ratchet::new(options.clock),
            checked: ValidationResult {
                errors: found,
                ..ValidationResult::default()
            },
        }
    }

    /// With what is known to be what it was: that need not be looked at. (It may have members that no schema describes
    /// where nothing is pruned, and then it does not count as unchanged.)
    pub(crate) fn with_unchanged(mut self, unchanged: &'a UnchangedElements) -> Self {
        if !unchanged.is_empty() && !self.resource.preserve_unknown_fields {
            self.ratchet = Ratchet::new(self.options.clock).with_unchanged(unchanged);
        }
        self
    }

    /// Limits on the values of the whole object.
    pub(crate) fn values(&mut self) {
        let old = self.old.filter(|_| self.options.gates.ratcheting);
        let errors = validate::validate(
            self.resource.plan.root(),
            self.new,
            &Path::ROOT,
            old.map(|old| (&self.ratchet, old)),
        );
        self.extend_errors(errors);
    }

    /// Takes note of what is wrong, which mostly is nothing.
    fn extend_errors(&mut self, errors: ErrorList) {
        if !errors.is_empty() {
            self.checked.errors.extend(errors);
        }
    }

    /// Limits on the values of the status. The texts count from the status on.
    pub(crate) fn status_values(&mut self) {
        let (Some(node), Some(status)) = (
            self.resource.plan.root().property("status"),
            self.new.get("status"),
        ) else {
            return;
        };
        let old = self.old.filter(|_| self.options.gates.ratcheting);
        // Where there was no status, a null is no change.
        let old = old.map(|old| old.get("status").unwrap_or(&Value::Null));
        let prefix = Path::ROOT.field("status");
        let errors = validate::validate(node, status, &prefix, old.map(|old| (&self.ratchet, old)));
        self.extend_errors(errors);
    }

    /// The number that `/scale` wants.
    pub(crate) fn scale_spec(&mut self) {
        if let Some(scale) = &self.resource.scale {
            scale::check_spec(scale, self.new, &mut self.checked.errors);
        }
    }

    /// The number that `/scale` reports.
    pub(crate) fn scale_status(&mut self) {
        if let Some(scale) = &self.resource.scale {
            scale::check_status(scale, self.new, &mut self.checked.errors);
        }
    }

    /// The metadata of embedded resources.
    pub(crate) fn embedded(&mut self) {
        let errors = meta::check_embedded(self.resource.plan.root(), self.new, &Path::ROOT);
        self.extend_errors(errors);
    }

    /// Unions, unique elements, then rules.
    pub(crate) fn finish(mut self) -> ValidationResult {
        if self.options.gates.unions {
            let old = self.old.filter(|_| self.options.gates.ratcheting);
            let root = self.resource.plan.root();
            let errors = union::violations(root, self.new, old.map(|old| (&self.ratchet, old)));
            self.extend_errors(errors);
        }
        self.duplicates();
        self.rules();
        self.checked.stats.ratcheting = self.ratchet.spent();
        self.checked
    }

    /// Elements that stand twice. Once an object has any, its lists are not checked for more.
    fn duplicates(&mut self) {
        let root = self.resource.plan.root();
        let found = listtype::duplicates(root, self.new);
        let had_some = |old: &Value| !listtype::duplicates(root, old).is_empty();
        if !found.is_empty() && !self.old.is_some_and(had_some) {
            self.extend_errors(found);
        }
    }

    fn rules(&mut self) {
        if !self.options.gates.expressions || !self.resource.plan.root().has_rules() {
            return;
        }
        if self.checked.errors.iter().any(blocks_rules) {
            let error = FieldError::invalid(&Path::ROOT, Value::Null, NOT_CHECKED);
            self.checked.errors.push(error);
            return;
        }
        let gates = &self.options.gates;
        let options = rules::RuleOptions {
            at: &Path::ROOT,
            ratchet: Some(&self.ratchet).filter(|_| gates.ratcheting && self.old.is_some()),
            optional_old_self: gates.ratcheting,
            budget: rules::BUDGET,
            meter: self.options.meter,
        };
        let started = self.options.clock.map(|now| now());
        let report = rules::run(self.resource.plan.root(), self.new, self.old, &options);
        if let (Some(now), Some(started)) = (self.options.clock, started) {
            self.checked.stats.rules = Some(now().saturating_sub(started));
        }
        self.extend_errors(report.errors);
        self.checked.warnings.extend(report.warnings.into_texts());
        self.checked.stats.rule_cost = report.cost;
    }
}

const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the \
    existing errors to complete validation";

/// Whether rules cannot be trusted beside this error: they may meet types and sizes that they were not made for. An error
/// that was omitted may be of any kind.
fn blocks_rules(error: &FieldError) -> bool {
    error.omitted() > 0
        || matches!(
            error.kind(),
            ErrorKind::NotSupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
}
