//! Whether the defaults of a schema are values of it.

use crate::meta::{self, Malformed};
use crate::plan::{Features, Node, Plan};
use crate::prune::{self, Place, is_meta};
use crate::rules;
use crate::structural::Type;
use crate::validate;
use scantling_value::{ErrorList, FieldError, Map, Path, Str, Value, aggregate};

/// Whether defaults must hold no fields that their schema does not describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// They must not.
    Required,
    /// They may: definitions that did so before are left alone.
    Optional,
}

/// What is wrong with the defaults of a schema that stands at `at`. Defaults inside of metadata must make valid
/// metadata; the others are checked as values, before any defaults inside of them apply.
pub fn check_defaults(plan: &Plan, at: &Path<'_>, pruned: Pruned) -> ErrorList {
    let mut walk = Walk {
        pruned,
        budget: Some(rules::BUDGET),
        errors: ErrorList::new(),
    };
    let root = plan.root();
    walk.node(root, at, &Surroundings::resource(root), Inside::Values);
    walk.errors
}

struct Walk {
    pruned: Pruned,
    /// What the rules of all defaults may cost together; nothing is left once it is overdrawn.
    budget: Option<u64>,
    errors: ErrorList,
}

/// What a default stands in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Inside {
    /// `apiVersion`, `kind` or `metadata` of a resource.
    Metadata,
    /// Anything else.
    Values,
}

/// The way from a resource down to a value.
struct Surroundings<'a> {
    root: &'a Node,
    way: Option<(&'a Surroundings<'a>, Step<'a>)>,
}

enum Step<'a> {
    Member(&'a Str),
    Element,
}

impl<'a> Surroundings<'a> {
    fn resource(root: &'a Node) -> Self {
        Surroundings { root, way: None }
    }

    fn below(&'a self, step: Step<'a>) -> Self {
        Surroundings {
            root: self.root,
            way: Some((self, step)),
        }
    }

    /// A resource with nothing but the value in it.
    fn around(&self, value: Value) -> Value {
        match &self.way {
            Some((outer, Step::Element)) => outer.around(Value::Array(vec![value])),
            Some((outer, Step::Member(name))) => {
                let mut map = Map::new();
                map.insert((*name).clone(), value);
                outer.around(Value::Object(map))
            }
            None => {
                let mut resource = value;
                if let Value::Object(map) = &mut resource {
                    map.get_or_insert_with("kind", || "Validation".into());
                    map.get_or_insert_with("apiVersion", || "validation/v1".into());
                }
                resource
            }
        }
    }
}

impl Walk {
    fn node(&mut self, node: &Node, at: &Path<'_>, around: &Surroundings<'_>, inside: Inside) {
        if !node.has(Features::DEFAULT) || self.budget.is_none() {
            return;
        }
        let embedded;
        let (around, inside) = if node.is(Features::EMBEDDED) {
            embedded = Surroundings::resource(node);
            (&embedded, Inside::Values)
        } else {
            (around, inside)
        };
        if let Some(default) = node.declared_default() {
            let at = at.field("default");
            match inside {
                Inside::Metadata => self.metadata(node, default, around, &at),
                Inside::Values => self.value(node, default, &at),
            }
        }
        // Maps cannot default their values, so that defaults below them are not looked at.
        if let Some(items) = node.items() {
            self.node(items, &at.field("items"), &around.below(Step::Element), inside);
        }
        for (name, field) in node.fields() {
            let resource = std::ptr::eq(around.root, node) && around.way.is_none();
            let inside = if resource && is_meta(name) {
                Inside::Metadata
            } else {
                inside
            };
            let properties = at.field("properties");
            self.node(
                field,
                &properties.key(name),
                &around.below(Step::Member(name)),
                inside,
            );
        }
    }

    fn metadata(&mut self, node: &Node, default: &Value, around: &Surroundings<'_>, at: &Path<'_>) {
        let mut resource = around.around(default.clone());
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

    fn value(&mut self, node: &Node, default: &Value, at: &Path<'_>) {
        let mut value = default.clone();
        let coerced = meta::coerce_embedded(node, &mut value, Malformed::Refuse, at);
        if self.pruned == Pruned::Required {
            let resource = node.is(Features::EMBEDDED);
            let place = if resource { Place::Resource } else { Place::Part };
            let mut copy = default.clone();
            prune::prune(node, &mut copy, place, &prune::Options::default());
            if copy != *default {
                // The error shows the default as it is by the time that it is written: with metadata in form.
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

    /// Rules run twice: as if nothing changed, and as if the default were new. The dearer run counts.
    fn limits_and_rules(&mut self, node: &Node, value: &Value, at: &Path<'_>) {
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
        let options = rules::Options {
            at,
            ratchet: None,
            optional_old_self: true,
            budget,
            meter: None,
        };
        let mut report = rules::run(node, value, Some(value), &options);
        if report.errors.is_empty() {
            let fresh = rules::run(node, value, None, &options);
            report.errors = fresh.errors;
            report.cost = report.cost.max(fresh.cost);
        }
        self.errors.extend(report.errors);
        self.budget = budget.checked_sub(report.cost);
    }
}

/// Brings the metadata of a value that is a resource itself into form, and of those embedded in it.
fn coerce_resource(node: &Node, value: &mut Value, at: &Path<'_>) -> Result<(), FieldError> {
    if let Value::Object(map) = value
        && !node.is(Features::EMBEDDED)
    {
        meta::coerce_one(map, at)?;
    }
    meta::coerce_embedded(node, value, Malformed::Refuse, at).map(drop)
}
