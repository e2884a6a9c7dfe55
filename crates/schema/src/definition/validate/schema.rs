//! Validates a schema keyword by keyword.

use super::extensions;
use crate::definition::print;
use crate::document::{Additional, Items, Schema};
use crate::field_path::{self, BracketSyntax};
use crate::structural::{Interner, Structural, ValidationRule};
use scantling_value::{BadValue, ErrorList, FieldError, Path, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// The maximum number of errors about the keys of one list.
const MAX_KEY_ERRORS: usize = 16;

/// The applicable checks: an update may keep violations of the stored CRD.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaRequirements {
    /// Types must be known.
    pub(super) types: bool,
    /// The reason why no schema may have a default, if any.
    pub(super) no_defaults: Option<&'static str>,
    /// The elements of a set must be atomic.
    pub(super) atomic_sets: bool,
    /// The elements of sets and keyed lists must not be null, and keys must be present.
    pub(super) keyed_lists: bool,
}

/// The errors of a schema.
#[derive(Debug, Default)]
pub(super) struct SchemaErrors {
    pub(super) errors: ErrorList,
    /// The paths of schemas with errors at or below them. Some errors are reported at a sub-schema but belong
    /// to its parent: that the elements of a keyed list must be objects is the list's.
    pub(super) flawed: BTreeSet<String>,
}

/// Validates a schema and all below it, junctors and unsupported keywords included.
pub(super) fn check(root: Schema<'_>, at: &Path<'_>, requirements: SchemaRequirements) -> SchemaErrors {
    let mut check = SchemaValidator {
        requirements,
        errors: ErrorList::new(),
        flawed: BTreeSet::new(),
    };
    check.node(
        root,
        at,
        SchemaContext {
            is_root: true,
            no_defaults: requirements.no_defaults,
            ..SchemaContext::default()
        },
    );
    SchemaErrors {
        errors: check.errors,
        flawed: check.flawed,
    }
}

/// Returns whether any schema has an unknown type.
pub(crate) fn has_unknown_type(s: Schema<'_>) -> bool {
    s.any(&mut |s| !s.ty().is_empty() && !TYPES.contains(&s.ty()))
}

/// Returns whether any set has elements that are merged field by field.
pub(super) fn has_granular_set(s: Schema<'_>) -> bool {
    s.any(&mut |s| granular_element(s).is_some())
}

/// Returns whether any set or keyed list has elements or keys that may be missing.
pub(super) fn has_loose_list(s: Schema<'_>) -> bool {
    s.any(&mut |s| {
        let mut errors = ErrorList::new();
        keyed_list(s, &Path::ROOT, &mut errors);
        !errors.is_empty()
    })
}

/// The context of a schema.
#[derive(Clone, Copy, Default)]
struct SchemaContext<'a> {
    is_root: bool,
    /// True inside the metadata of a resource, embedded or not.
    in_meta: bool,
    /// The reason why defaults are refused.
    no_defaults: Option<&'a str>,
}

struct SchemaValidator {
    requirements: SchemaRequirements,
    errors: ErrorList,
    flawed: BTreeSet<String>,
}

impl SchemaValidator {
    fn required(&mut self, at: &Path<'_>, detail: &str) {
        self.errors.push_with(|| FieldError::required(at, detail));
    }

    fn invalid(&mut self, at: &Path<'_>, value: impl Into<BadValue>, detail: &str) {
        self.errors.push_with(|| FieldError::invalid(at, value, detail));
    }

    fn forbidden(&mut self, at: &Path<'_>, detail: &str) {
        self.errors.push_with(|| FieldError::forbidden(at, detail));
    }

    fn node(&mut self, s: Schema<'_>, at: &Path<'_>, context: SchemaContext<'_>) {
        let before = self.errors.total();
        self.keywords_and_parts(s, at, context);
        if self.errors.total() > before {
            self.flawed.insert(at.to_string());
        }
    }

    fn keywords_and_parts(&mut self, s: Schema<'_>, at: &Path<'_>, context: SchemaContext<'_>) {
        self.keywords(s, at, context);
        let below = SchemaContext {
            is_root: false,
            ..context
        };
        if let Some(additional) = s.additional() {
            let at = at.field("additionalProperties");
            if s.properties().len() > 0 && !matches!(additional, Additional::Any(true)) {
                self.forbidden(&at, "additionalProperties and properties are mutual exclusive");
            }
            if let Additional::Schema(additional) = additional {
                let no_defaults = if context.in_meta {
                    Some("inside additionalProperties applying to object metadata")
                } else {
                    context.no_defaults
                };
                self.node(additional, &at, SchemaContext { no_defaults, ..below });
            }
        }
        for (name, property) in s.properties() {
            let at = at.field("properties");
            let at = at.key(name);
            let is_resource = context.is_root || s.flag("x-kubernetes-embedded-resource");
            if is_resource && matches!(name, "metadata" | "kind" | "apiVersion") {
                let reason = format!("in top-level {name}");
                // Embedded resources may have defaults for their metadata.
                let no_defaults = if context.is_root {
                    Some(reason.as_str())
                } else {
                    context.no_defaults
                };
                self.node(
                    property,
                    &at,
                    SchemaContext {
                        in_meta: true,
                        no_defaults,
                        ..below
                    },
                );
            } else {
                self.node(property, &at, below);
            }
        }
        // kube-apiserver's order of sub-schemas, which is the order of the errors.
        if let Some(not) = s.schema("not") {
            self.node(not, &at.field("not"), below);
        }
        for junctor in ["allOf", "oneOf", "anyOf"] {
            for (i, s) in s.schemas(junctor).enumerate() {
                self.node(s, &at.field(junctor).index(i), below);
            }
        }
        for (name, s) in s.named_schemas("definitions") {
            self.node(s, &at.field("definitions").key(name), below);
        }
        match s.items() {
            Some(Items::One(item)) => self.node(item, &at.field("items"), below),
            Some(Items::Each(each)) => {
                for (i, v) in each.iter().enumerate() {
                    self.node(Schema::new(v), &at.field("items").index(i), below);
                }
            }
            None => {}
        }
        for (name, s) in s.named_schemas("dependencies") {
            // A dependency can also be a list of names, which contains no schema.
            if !s.members().is_empty() {
                self.node(s, &at.field("dependencies").key(name), below);
            }
        }
        self.map_and_list_types(s, at);
        if self.requirements.keyed_lists {
            keyed_list(s, at, &mut self.errors);
        }
        extensions::check(s, at, &mut self.errors);
        self.rules(s, at);
    }

    /// Checks the keywords that do not depend on other schemas.
    fn keywords(&mut self, s: Schema<'_>, at: &Path<'_>, context: SchemaContext<'_>) {
        if self.requirements.types && !s.ty().is_empty() && !TYPES.contains(&s.ty()) {
            self.errors
                .push(FieldError::not_supported(&at.field("type"), s.ty(), TYPES));
        }
        if let Some(reason) = context.no_defaults
            && s.get("default").is_some()
        {
            self.forbidden(&at.field("default"), &format!("must not be set {reason}"));
        }
        for (key, is_used) in [
            ("id", !s.string("id").is_empty()),
            ("additionalItems", s.get("additionalItems").is_some()),
            (
                "patternProperties",
                s.named_schemas("patternProperties").len() > 0,
            ),
            ("definitions", s.named_schemas("definitions").len() > 0),
            ("dependencies", s.get("dependencies").is_some()),
            ("$ref", s.get("$ref").is_some()),
        ] {
            if is_used {
                self.forbidden(&at.field(key), &format!("{key} is not supported"));
            }
        }
        if s.ty() == "null" {
            self.forbidden(
                &at.field("type"),
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if matches!(s.items(), Some(Items::Each([_, ..]))) {
            self.forbidden(
                &at.field("items"),
                "items must be a schema object and not an array",
            );
        }
        if context.in_meta && s.flag("x-kubernetes-embedded-resource") {
            let detail = "must not be used inside of resource meta";
            self.forbidden(&at.field("x-kubernetes-embedded-resource"), detail);
        }
        if s.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(&at.field("uniqueItems"), detail);
        }
    }

    /// Checks the keywords about merging, uniqueness and unknown fields.
    fn map_and_list_types(&mut self, s: Schema<'_>, at: &Path<'_>) {
        if s.tristate("x-kubernetes-preserve-unknown-fields") == Some(false) {
            let at = at.field("x-kubernetes-preserve-unknown-fields");
            self.invalid(&at, false, "must be true or undefined");
        }
        if let Some(map_type) = s.map_type() {
            self.must_have_type(
                s,
                "object",
                "must be object if x-kubernetes-map-type is specified",
                at,
            );
            if !matches!(map_type, "atomic" | "granular") {
                let at = at.field("x-kubernetes-map-type");
                self.errors
                    .push(FieldError::not_supported(&at, map_type, ["atomic", "granular"]));
            }
        }
        let keys: Vec<&str> = s.strings("x-kubernetes-list-map-keys").collect();
        let at_type = at.field("x-kubernetes-list-type");
        let Some(list_type) = s.list_type() else {
            if !keys.is_empty() {
                self.required(&at_type, "must be map if x-kubernetes-list-map-keys is non-empty");
            }
            return;
        };
        if !self.must_have_type(
            s,
            "array",
            "must be array if x-kubernetes-list-type is specified",
            at,
        ) && self.requirements.atomic_sets
            && let Some((key, shown)) = granular_element(s)
        {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            self.invalid(&at.field("items").field(key), shown, detail);
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            self.errors
                .push_with(|| FieldError::not_supported(&at_type, list_type, ["atomic", "set", "map"]));
        }
        if list_type == "map" {
            self.keys(s, &keys, at);
        } else if !keys.is_empty() {
            self.invalid(
                &at_type,
                list_type,
                "must be map if x-kubernetes-list-map-keys is non-empty",
            );
        }
    }

    /// Checks the type; returns whether it was wrong.
    fn must_have_type(&mut self, s: Schema<'_>, ty: &str, detail: &str, at: &Path<'_>) -> bool {
        let at = at.field("type");
        match s.ty() {
            t if t == ty => return false,
            "" => self.required(&at, detail),
            t => self.invalid(&at, t, detail),
        }
        true
    }

    /// Checks the keys of a keyed list.
    fn keys(&mut self, s: Schema<'_>, keys: &[&str], at: &Path<'_>) {
        let at_keys = at.field("x-kubernetes-list-map-keys");
        let at_items = at.field("items");
        if keys.is_empty() {
            self.required(&at_keys, "must not be empty if x-kubernetes-list-type is map");
        }
        let Some(item) = s.item() else {
            match s.get("items") {
                None => self.required(&at_items, "must have a schema if x-kubernetes-list-type is map"),
                Some(v) => {
                    let detail = "must only have a single schema if x-kubernetes-list-type is map";
                    self.invalid(&at_items, BadValue::Raw(print::items(v)), detail);
                }
            }
            return;
        };
        if item.ty() != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(&at_items.field("type"), item.ty(), detail);
            return;
        }
        // Every error shows all keys, so a long list of invalid keys would produce an unreadable report.
        let end = self.errors.total() + MAX_KEY_ERRORS;
        let shown = || Value::from(keys.to_vec());
        let mut seen = BTreeSet::new();
        for key in keys {
            if self.errors.total() >= end {
                break;
            }
            match item.property(key) {
                None => self.invalid(&at_keys, shown(), "entries must all be names of item properties"),
                Some(property) if matches!(property.ty(), "array" | "object") => {
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    // UPSTREAM: the type of the element is shown, not that of the property.
                    self.invalid(
                        &at_items.field("properties").key(key).field("type"),
                        item.ty(),
                        detail,
                    );
                }
                Some(_) => {}
            }
            if !seen.insert(key) {
                self.invalid(&at_keys, shown(), "must not contain duplicate entries");
            }
        }
    }

    /// Checks the texts of rules; their expressions are checked when they are compiled.
    fn rules(&mut self, s: Schema<'_>, at: &Path<'_>) {
        let at = at.field("x-kubernetes-validations");
        let rules: Vec<_> = s.rules().collect();
        let has_paths = rules.iter().any(|r| !r.field_path.is_empty());
        // Only paths need the structural form, which is expensive to build.
        let root = has_paths
            .then(|| s.structural(&mut Interner::new()).ok())
            .flatten();
        for (i, rule) in rules.iter().enumerate() {
            self.rule(root.as_ref(), rule, &at.index(i));
        }
    }

    fn rule(&mut self, root: Option<&Arc<Structural>>, rule: &ValidationRule, at: &Path<'_>) {
        let has_line_breaks = |s: &str| s.contains(['\n', '\r']);
        let message = rule.message.trim();
        // kube-apiserver reports only the first of these.
        if rule.rule.trim().is_empty() {
            self.required(&at.field("rule"), "rule is not specified");
        } else if !rule.message.is_empty() && message.is_empty() {
            self.invalid(
                &at.field("message"),
                &*rule.message,
                "must be non-empty if specified",
            );
        } else if has_line_breaks(message) {
            self.invalid(
                &at.field("message"),
                &*rule.message,
                "must not contain line breaks",
            );
        } else if has_line_breaks(rule.rule.trim()) && message.is_empty() {
            self.required(
                &at.field("message"),
                "message must be specified if rule contains line breaks",
            );
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.required(&at.field("messageExpression"), detail);
        }
        if let Some(reason) = &rule.reason
            && !REASONS.contains(&reason.as_str())
        {
            // UPSTREAM: a string of a named type is printed as JSON.
            let shown = BadValue::Raw(Value::from(reason.clone()).to_json());
            self.errors
                .push(FieldError::not_supported(&at.field("reason"), shown, REASONS));
        }
        if rule.field_path.is_empty() {
            return;
        }
        let at = at.field("fieldPath");
        let shown = || &*rule.field_path;
        if rule.field_path.trim().is_empty() {
            self.invalid(&at, shown(), "must be non-empty if specified");
        }
        if has_line_breaks(&rule.field_path) {
            self.invalid(&at, shown(), "must not contain line breaks");
        }
        if let Some(root) = root
            && field_path::resolve(&rule.field_path, root, BracketSyntax::Allowed).is_err()
        {
            self.invalid(&at, shown(), "must be a valid path");
        }
    }
}

/// The keyword that makes the elements of a set merge field by field, and the value that the error shows.
fn granular_element(s: Schema<'_>) -> Option<(&'static str, BadValue)> {
    let item = s.item().filter(|_| s.list_type() == Some("set"))?;
    // UPSTREAM: the list type of the element is shown in both cases.
    let shown = item.list_type().map_or(BadValue::Raw("null".into()), |t| {
        BadValue::Raw(Value::from(t).to_json())
    });
    match item.ty() {
        "array" if item.list_type().is_some_and(|t| t != "atomic") => Some(("x-kubernetes-list-type", shown)),
        "object" if item.map_type() != Some("atomic") => Some(("x-kubernetes-map-type", shown)),
        _ => None,
    }
}

/// Elements of sets and keyed lists must not be null, and every element must have its keys.
fn keyed_list(s: Schema<'_>, at: &Path<'_>, errors: &mut ErrorList) {
    let (Some(item), Some(list_type @ ("set" | "map"))) = (s.item(), s.list_type()) else {
        return;
    };
    let at = at.field("items");
    if item.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push_with(|| FieldError::forbidden(&at.field("nullable"), detail));
    }
    if list_type == "set" {
        return;
    }
    let at = at.field("properties");
    let required: BTreeSet<&str> = item.strings("required").collect();
    for key in s.strings("x-kubernetes-list-map-keys") {
        let Some(property) = item.property(key) else {
            continue;
        };
        let at = at.key(key);
        if property.get("default").is_none() && !required.contains(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push_with(|| FieldError::required(&at.field("default"), detail));
        }
        if property.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push_with(|| FieldError::forbidden(&at.field("nullable"), detail));
        }
    }
}
