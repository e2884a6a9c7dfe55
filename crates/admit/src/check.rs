//! Validates an object against its schema, apart from its own metadata.

use crate::{AdmitOptions, Resource, Stats, scale};
use scantling_schema::immutable::UnchangedElements;
use scantling_schema::validate::{self, Ratchet};
use scantling_schema::{listtype, meta, rules, union};
use scantling_value::{BoundedItem, ErrorKind, ErrorList, FieldError, Path, Value};

/// The result of a validation.
#[derive(Debug, Default)]
pub struct ValidationResult {
    /// The errors.
    pub errors: ErrorList,
    /// Failures that existed before, as warnings.
    pub warnings: Vec<String>,
    /// The cost.
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

/// Validates one object, stage by stage.
pub(crate) struct ObjectValidator<'a> {
    resource: &'a Resource,
    new: &'a Value,
    old: Option<&'a Value>,
    options: &'a AdmitOptions<'a>,
    ratchet: Ratchet<'a>,
    checked: ValidationResult,
}

impl<'a> ObjectValidator<'a> {
    /// `found` are the errors so far; they may keep rules from running.
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

    /// Adds elements that are known to be unchanged and need not be checked. (Without pruning they may have
    /// undeclared members, and then do not count as unchanged.)
    pub(crate) fn with_unchanged(mut self, unchanged: &'a UnchangedElements) -> Self {
        if !unchanged.is_empty() && !self.resource.preserve_unknown_fields {
            self.ratchet = Ratchet::new(self.options.clock).with_unchanged(unchanged);
        }
        self
    }

    /// Checks the values of the whole object.
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

    /// Adds errors.
    fn extend_errors(&mut self, errors: ErrorList) {
        if !errors.is_empty() {
            self.checked.errors.extend(errors);
        }
    }

    /// Checks the values of the status. Paths in messages start at the status.
    pub(crate) fn status_values(&mut self) {
        let (Some(node), Some(status)) = (
            self.resource.plan.root().property("status"),
            self.new.get("status"),
        ) else {
            return;
        };
        let old = self.old.filter(|_| self.options.gates.ratcheting);
        // Without an old status, a null is not a change.
        let old = old.map(|old| old.get("status").unwrap_or(&Value::Null));
        let prefix = Path::ROOT.field("status");
        let errors = validate::validate(node, status, &prefix, old.map(|old| (&self.ratchet, old)));
        self.extend_errors(errors);
    }

    /// Checks the desired replicas of `/scale`.
    pub(crate) fn scale_spec(&mut self) {
        if let Some(scale) = &self.resource.scale {
            scale::check_spec(scale, self.new, &mut self.checked.errors);
        }
    }

    /// Checks the observed replicas of `/scale`.
    pub(crate) fn scale_status(&mut self) {
        if let Some(scale) = &self.resource.scale {
            scale::check_status(scale, self.new, &mut self.checked.errors);
        }
    }

    /// Checks the metadata of embedded resources.
    pub(crate) fn embedded(&mut self) {
        let errors = meta::check_embedded(self.resource.plan.root(), self.new, &Path::ROOT);
        self.extend_errors(errors);
    }

    /// Checks unions, unique elements, then rules.
    pub(crate) fn finish(mut self) -> ValidationResult {
        if self.options.gates.unions {
            let old = self.old.filter(|_| self.options.gates.ratcheting);
            let root = self.resource.plan.root();
            let errors = union::violations(root, self.new, old.map(|old| (&self.ratchet, old)));
            self.extend_errors(errors);
        }
        // kube-apiserver's order. Rules come last, because errors of the other checks keep them from running.
        self.duplicates();
        self.rules();
        self.checked.stats.ratcheting = self.ratchet.spent();
        self.checked
    }

    /// Checks for duplicates. Once an object has any, its lists are not checked further.
    fn duplicates(&mut self) {
        let root = self.resource.plan.root();
        let found = listtype::duplicates(root, self.new);
        // Called only if the new object has duplicates, because it walks the whole old one.
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
            // kube-apiserver passes neither path nor value, which prints as `<nil>: Invalid value: null`.
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
        self.checked.warnings.extend(report.warnings.into_vec());
        self.checked.stats.rule_cost = report.cost;
    }
}

const NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the \
    existing errors to complete validation";

/// Returns whether an error keeps rules from running: they may see values of types and sizes they were not
/// compiled for. An omitted error may be of any kind.
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
