//! Validates the defaults of a schema against it.

use crate::meta::{self, MalformedFields};
use crate::plan::{Features, Plan, PlanNode};
use crate::prune::{self, ValueRole, is_meta};
use crate::rules;
use crate::structural::Type;
use crate::validate;
use scantling_value::{ErrorList, FieldError, Map, Path, Str, Value, aggregate};

/// The treatment of fields in defaults that their schema does not declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrunedDefaults {
    /// They must not.
    Required,
    /// They may: CRDs that already had such defaults are tolerated.
    Optional,
}

/// Returns the errors of the defaults of a schema at `at`. Defaults inside metadata must be valid metadata;
/// the others are validated as values, before any defaults inside them apply.
pub fn check_defaults(plan: &Plan, at: &Path<'_>, pruned: PrunedDefaults) -> ErrorList {
    let mut walk = DefaultsChecker {
        pruned,
        budget: Some(rules::BUDGET),
        errors: ErrorList::new(),
    };
    let root = plan.root();
    walk.node(root, at, &EnclosingPath::resource(root), DefaultLocation::Values);
    walk.errors
}

struct DefaultsChecker {
    pruned: PrunedDefaults,
    /// The remaining cost budget of the rules of all defaults; `None` once it is exceeded.
    budget: Option<u64>,
    errors: ErrorList,
}

/// The location of a default.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum DefaultLocation {
    /// `apiVersion`, `kind` or `metadata` of a resource.
    Metadata,
    /// Anything else.
    Values,
}

/// The path from a resource to a value.
struct EnclosingPath<'a> {
    root: &'a PlanNode,
    way: Option<(&'a EnclosingPath<'a>, EnclosingStep<'a>)>,
}

enum EnclosingStep<'a> {
    Member(&'a Str),
    Element,
}

impl<'a> EnclosingPath<'a> {
    fn resource(root: &'a PlanNode) -> Self {
        EnclosingPath { root, way: None }
    }

    fn push(&'a self, step: EnclosingStep<'a>) -> Self {
        EnclosingPath {
            root: self.root,
            way: Some((self, step)),
        }
    }

    /// Wraps the value in a resource that contains nothing else.
    fn wrap(&self, value: Value) -> Value {
        match &self.way {
            Some((outer, EnclosingStep::Element)) => outer.wrap(Value::Array(vec![value])),
            Some((outer, EnclosingStep::Member(name))) => {
                let mut map = Map::new();
                map.insert((*name).clone(), value);
                outer.wrap(Value::Object(map))
            }
            None => {
                let mut resource = value;
                if let Value::Object(map) = &mut resource {
                    // kube-apiserver wraps the metadata in an object of this kind and version.
                    map.get_or_insert_with("kind", || "Validation".into());
                    map.get_or_insert_with("apiVersion", || "validation/v1".into());
                }
                resource
            }
        }
    }
}

impl DefaultsChecker {
    fn node(&mut self, node: &PlanNode, at: &Path<'_>, around: &EnclosingPath<'_>, inside: DefaultLocation) {
        if !node.has(Features::DEFAULT) || self.budget.is_none() {
            return;
        }
        // Metadata of an embedded resource is wrapped in that resource, not in the whole object.
        let embedded;
        let (around, inside) = if node.has_here(Features::EMBEDDED) {
            embedded = EnclosingPath::resource(node);
            (&embedded, DefaultLocation::Values)
        } else {
            (around, inside)
        };
        if let Some(default) = node.declared_default() {
            let at = at.field("default");
            match inside {
                DefaultLocation::Metadata => self.metadata(node, default, around, &at),
                DefaultLocation::Values => self.value(node, default, &at),
            }
        }
        // Maps cannot default their values, so defaults below them are not checked.
        if let Some(items) = node.items() {
            self.node(
                items,
                &at.field("items"),
                &around.push(EnclosingStep::Element),
                inside,
            );
        }
        for (name, field) in node.fields() {
            let resource = std::ptr::eq(around.root, node) && around.way.is_none();
            let inside = if resource && is_meta(name) {
                DefaultLocation::Metadata
            } else {
                inside
            };
            let properties = at.field("properties");
            self.node(
                field,
                &properties.key(name),
                &around.push(EnclosingStep::Member(name)),
                inside,
            );
        }
    }

    fn metadata(&mut self, node: &PlanNode, default: &Value, around: &EnclosingPath<'_>, at: &Path<'_>) {
        let mut resource = around.wrap(default.clone());
        let why = match coerce_resource(around.root, &mut resource, &Path::ROOT) {
            Err(error) => error.to_string(),
            Ok(()) => match meta::check_resource(around.root, &resource, &Path::ROOT) {
                errors if errors.is_empty() => {
                    self.limits_and_rules(node, default, at);
                    return;
                }
                errors => aggregate(errors),
            },
        };
        let detail = format!("must result in valid metadata: {why}");
        self.errors
            .push_with(|| FieldError::invalid(at, default.clone(), detail));
    }

    fn value(&mut self, node: &PlanNode, default: &Value, at: &Path<'_>) {
        let mut value = default.clone();
        let coerced = meta::coerce_embedded(node, &mut value, MalformedFields::Refuse, at);
        if self.pruned == PrunedDefaults::Required {
            let resource = node.has_here(Features::EMBEDDED);
            let role = if resource {
                ValueRole::Resource
            } else {
                ValueRole::Part
            };
            // kube-apiserver prunes the default as declared, before its metadata is normalized.
            let mut copy = default.clone();
            prune::prune(node, &mut copy, role, &prune::PruneOptions::default());
            if copy != *default {
                // The error shows the default as it is stored, with normalized metadata.
                let shown = if coerced.is_ok() { &value } else { default };
                let error = FieldError::invalid(at, shown.clone(), "must not have unknown fields");
                self.errors.push(error);
            }
        }
        if let Err(error) = coerced {
            self.errors.push(error);
            return;
        }
        let errors = meta::check_embedded(node, &value, at);
        if errors.is_empty() {
            self.limits_and_rules(node, &value, at);
        } else {
            self.errors.extend(errors);
        }
    }

    /// Rules run twice: as an update without changes, and as a create. The more expensive run counts.
    fn limits_and_rules(&mut self, node: &PlanNode, value: &Value, at: &Path<'_>) {
        let errors = validate::validate(node, value, at, None);
        let (true, Some(budget)) = (errors.is_empty(), self.budget) else {
            self.errors.extend(errors);
            return;
        };
        let schema = node.schema();
        if !schema.rules.is_empty() && !rules::is_visible(schema) {
            let ty = schema.ty.map_or("", Type::as_str);
            self.errors
                .push_with(|| FieldError::invalid(at, ty, rules::NOT_COMPILED));
            return;
        }
        let options = rules::RuleOptions {
            at,
            ratchet: None,
            optional_old_self: true,
            budget,
            meter: None,
        };
        let mut report = rules::run(node, value, Some(value), &options);
        // The second run finds defaults that rules with an optional `oldSelf` refuse for new objects.
        if report.errors.is_empty() {
            let fresh = rules::run(node, value, None, &options);
            report.errors = fresh.errors;
            report.cost = report.cost.max(fresh.cost);
        }
        self.errors.extend(report.errors);
        self.budget = budget.checked_sub(report.cost);
    }
}

/// Normalizes the metadata of a value that is a resource itself, and of resources embedded in it.
fn coerce_resource(node: &PlanNode, value: &mut Value, at: &Path<'_>) -> Result<(), FieldError> {
    if let Value::Object(map) = value
        && !node.has_here(Features::EMBEDDED)
    {
        meta::coerce_one(map, at)?;
    }
    meta::coerce_embedded(node, value, MalformedFields::Refuse, at).map(drop)
}
