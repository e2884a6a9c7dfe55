//! Checks that a schema is structural: all types and fields are declared outside junctors.

use crate::document::{Additional, Schema};
use foldhash::HashSet;
use scantling_notation::regex::Pattern;
use scantling_value::{ErrorList, FieldError, Path, Value};

/// Returns the reasons why a schema is not structural, sorted by text.
pub(crate) fn check(root: Schema<'_>, at: &Path<'_>) -> ErrorList {
    let mut out = StructuralValidator::default();
    out.node(root, SchemaPosition::Root, at);
    // UPSTREAM: only the junctors of the root are checked; the same gap below a property is accepted.
    out.completeness(root, root, at, at);
    let mut errors = out.errors;
    errors.sort();
    errors
}

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    Root,
    Item,
    Field,
}

/// The types in junctors that are allowed because they spell out `x-kubernetes-int-or-string`.
#[derive(Clone, Copy, Default)]
struct IntOrStringExemption {
    any_of: bool,
    first_all_of: bool,
}

#[derive(Default)]
struct StructuralValidator<'s> {
    errors: ErrorList,
    /// The valid patterns so far: generated schemas repeat them often.
    patterns: HashSet<&'s str>,
}

impl<'s> StructuralValidator<'s> {
    fn required(&mut self, at: &Path<'_>, detail: impl Into<String>) {
        self.errors.push_with(|| FieldError::required(at, detail));
    }

    fn forbidden(&mut self, at: &Path<'_>, detail: &str) {
        self.errors.push_with(|| FieldError::forbidden(at, detail));
    }

    /// Checks a schema outside junctors and all schemas below it.
    fn node(&mut self, s: Schema<'s>, position: SchemaPosition, at: &Path<'_>) {
        if s.ty() == "array" && s.item().is_none() {
            self.required(&at.field("items"), "must be specified");
        }
        if let Some(item) = s.item() {
            self.node(item, SchemaPosition::Item, &at.field("items"));
        }
        for (name, property) in s.properties() {
            self.node(property, SchemaPosition::Field, &at.field("properties").key(name));
        }
        if let Some(additional) = s.additional() {
            if position == SchemaPosition::Root {
                self.forbidden(&at.field("additionalProperties"), "must not be used at the root");
            }
            if let Additional::Schema(additional) = additional {
                self.node(
                    additional,
                    SchemaPosition::Field,
                    &at.field("additionalProperties"),
                );
            }
        }
        self.combinations(s, at);
        let tolerated = IntOrStringExemption {
            any_of: is_int_or_string(s),
            first_all_of: s.schemas("allOf").next().is_some_and(is_int_or_string),
        };
        self.limits(s, tolerated, at);
        self.types(s, position, at);
        self.metadata(s, position, at);
        if s.flag("x-kubernetes-embedded-resource")
            && !s.flag("x-kubernetes-preserve-unknown-fields")
            && s.properties().len() == 0
        {
            self.required(
                &at.field("properties"),
                "must not be empty if x-kubernetes-embedded-resource is true without \
                 x-kubernetes-preserve-unknown-fields",
            );
        }
    }

    fn combinations(&mut self, s: Schema<'s>, at: &Path<'_>) {
        if !s.flag("x-kubernetes-int-or-string") {
            return;
        }
        for key in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if s.flag(key) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.errors
                    .push(FieldError::invalid(&at.field(key), true, detail));
            }
        }
    }

    /// Checks `type`. Only int-or-string values, and values with unknown fields, may omit it.
    fn types(&mut self, s: Schema<'s>, position: SchemaPosition, at: &Path<'_>) {
        let embedded = s.flag("x-kubernetes-embedded-resource");
        let at_type = at.field("type");
        if embedded && s.ty() != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            self.errors.push(if s.ty().is_empty() {
                FieldError::required(&at_type, detail)
            } else {
                FieldError::invalid(&at_type, s.ty(), detail)
            });
        } else if s.ty().is_empty()
            && !s.flag("x-kubernetes-int-or-string")
            && !s.flag("x-kubernetes-preserve-unknown-fields")
        {
            self.required(
                &at_type,
                match position {
                    SchemaPosition::Root => "must not be empty at the root",
                    SchemaPosition::Item => "must not be empty for specified array items",
                    SchemaPosition::Field => "must not be empty for specified object fields",
                },
            );
        }
        if embedded && s.additional().is_some() {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbidden(&at.field("additionalProperties"), detail);
        }
        if position == SchemaPosition::Root && !s.ty().is_empty() && s.ty() != "object" {
            self.errors
                .push_with(|| FieldError::invalid(&at_type, s.ty(), "must be object at the root"));
        }
    }

    /// Checks the fields that every resource has: a schema may say little about them.
    fn metadata(&mut self, s: Schema<'s>, position: SchemaPosition, at: &Path<'_>) {
        let is_resource = position == SchemaPosition::Root || s.flag("x-kubernetes-embedded-resource");
        let properties = at.field("properties");
        let mut must_be = |name, ty, detail: &str| {
            if let Some(property) = s.property(name).filter(|p| is_resource && p.ty() != ty) {
                self.errors.push_with(|| {
                    FieldError::invalid(&properties.key(name).field("type"), property.ty(), detail)
                });
            }
        };
        must_be("kind", "string", "must be string");
        must_be("apiVersion", "string", "must be string");
        must_be("metadata", "object", "must be object");
        if position == SchemaPosition::Root
            && let Some(metadata) = s.property("metadata")
            && !restricts_only_names(metadata)
        {
            self.forbidden(
                &properties.key("metadata"),
                "must not specify anything other than name and generateName, but metadata is implicitly specified",
            );
        }
    }

    /// Checks the junctors and the pattern of a schema.
    fn limits(&mut self, s: Schema<'s>, tolerated: IntOrStringExemption, at: &Path<'_>) {
        if !tolerated.any_of {
            for (i, s) in s.schemas("anyOf").enumerate() {
                self.nested(s, IntOrStringExemption::default(), &at.field("anyOf").index(i));
            }
        }
        for (i, s) in s.schemas("allOf").enumerate() {
            let tolerated = IntOrStringExemption {
                any_of: tolerated.first_all_of && i == 0,
                first_all_of: false,
            };
            self.nested(s, tolerated, &at.field("allOf").index(i));
        }
        for (i, s) in s.schemas("oneOf").enumerate() {
            self.nested(s, IntOrStringExemption::default(), &at.field("oneOf").index(i));
        }
        if let Some(s) = s.schema("not") {
            self.nested(s, IntOrStringExemption::default(), &at.field("not"));
        }
        let pattern = s.string("pattern");
        if !pattern.is_empty() && !self.patterns.contains(pattern) {
            self.pattern(pattern, &at.field("pattern"));
        }
    }

    fn pattern(&mut self, pattern: &'s str, at: &Path<'_>) {
        match Pattern::check(pattern) {
            Ok(()) => {
                self.patterns.insert(pattern);
            }
            Err(e) => {
                let detail = format!("must be a valid regular expression, but isn't: {e}");
                self.errors.push_with(|| FieldError::invalid(at, pattern, detail));
            }
        }
    }

    /// Checks a schema inside a junctor: it may constrain values, but not declare types and fields.
    fn nested(&mut self, s: Schema<'s>, tolerated: IntOrStringExemption, at: &Path<'_>) {
        const EMPTY: &str = "must be empty to be structural";
        const UNDEFINED: &str = "must be undefined to be structural";
        const FALSE: &str = "must be false to be structural";
        self.limits(s, tolerated, at);
        if let Some(item) = s.item() {
            self.nested(item, IntOrStringExemption::default(), &at.field("items"));
        }
        for (name, property) in s.properties() {
            self.nested(
                property,
                IntOrStringExemption::default(),
                &at.field("properties").key(name),
            );
        }
        for key in ["type", "title", "description"] {
            if !s.string(key).is_empty() {
                self.forbidden(&at.field(key), EMPTY);
            }
        }
        // kube-apiserver accepts `false` in junctors and enforces it.
        if !matches!(s.additional(), None | Some(Additional::Any(false))) {
            self.forbidden(&at.field("additionalProperties"), UNDEFINED);
        }
        for key in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
            if s.get(key).is_some() {
                self.forbidden(&at.field(key), UNDEFINED);
            }
        }
        for key in [
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ] {
            if s.flag(key) {
                self.forbidden(&at.field(key), FALSE);
            }
        }
        for key in [
            "x-kubernetes-list-map-keys",
            "x-kubernetes-validations",
            "x-kubernetes-unions",
        ] {
            if !s.list(key).is_empty() {
                self.forbidden(&at.field(key), EMPTY);
            }
        }
        for mutability in crate::structural::Mutability::ALL {
            if s.get(mutability.keyword()).is_some() {
                self.forbidden(&at.field(mutability.keyword()), UNDEFINED);
            }
        }
        if s.property("metadata").is_some() {
            let detail = "must not be specified in a nested context";
            self.forbidden(&at.field("properties").key("metadata"), detail);
        }
    }

    /// Checks that fields mentioned in junctors are declared outside; `declared` is the corresponding schema.
    fn completeness(&mut self, s: Schema<'s>, declared: Schema<'s>, at_declared: &Path<'_>, at: &Path<'_>) {
        if let Some(s) = s.schema("not") {
            self.complete(s, Some(declared), at_declared, &at.field("not"));
        }
        for junctor in ["allOf", "anyOf", "oneOf"] {
            for (i, s) in s.schemas(junctor).enumerate() {
                self.complete(s, Some(declared), at_declared, &at.field(junctor).index(i));
            }
        }
    }

    fn complete(
        &mut self,
        s: Schema<'s>,
        declared: Option<Schema<'s>>,
        at_declared: &Path<'_>,
        at: &Path<'_>,
    ) {
        let Some(declared) = declared else {
            self.required(at_declared, format!("because it is defined in {at}"));
            return;
        };
        self.completeness(s, declared, at_declared, at);
        if let Some(item) = s.item() {
            self.complete(
                item,
                declared.item(),
                &at_declared.field("items"),
                &at.field("items"),
            );
        }
        let (properties, at_properties) = (at.field("properties"), at_declared.field("properties"));
        for (name, property) in s.properties() {
            self.complete(
                property,
                declared.property(name),
                &at_properties.key(name),
                &properties.key(name),
            );
        }
    }
}

/// Returns whether `anyOf` is exactly `[{type: integer}, {type: string}]`.
pub(crate) fn is_int_or_string(s: Schema<'_>) -> bool {
    let is = |s: Schema<'_>, ty| {
        s.ty() == ty
            && s.members()
                .iter()
                .all(|(k, v)| k == "type" || is_unset(k, v, Nesting::Junctor))
    };
    let mut any_of = s.schemas("anyOf");
    matches!((any_of.next(), any_of.next(), any_of.next()), (Some(a), Some(b), None) if is(a, "integer") && is(b, "string"))
}

fn restricts_only_names(metadata: Schema<'_>) -> bool {
    let only_names = metadata
        .properties()
        .all(|(name, _)| matches!(name, "name" | "generateName"));
    metadata.members().iter().all(|(key, v)| match key.as_str() {
        "type" | "default" => true,
        "properties" => only_names,
        key => is_unset(key, v, Nesting::Tree),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Tree,
    Junctor,
}

/// Returns whether a keyword has no effect on the structural schema.
fn is_unset(key: &str, v: &Value, nesting: Nesting) -> bool {
    match v {
        Value::Null => true,
        // Any value is an example.
        _ if key == "example" => false,
        Value::String(s) => s.is_empty() && !key.starts_with("x-kubernetes-"),
        Value::Bool(b) => !b && (key != "additionalProperties" || nesting == Nesting::Junctor),
        Value::Array(a) => a.is_empty() && matches!(key, "enum" | "allOf" | "anyOf" | "oneOf" | "items"),
        Value::Object(m) => {
            m.is_empty()
                && match key {
                    "patternProperties" | "definitions" | "dependencies" => true,
                    "properties" => nesting == Nesting::Tree,
                    _ => false,
                }
        }
        Value::Int(_) | Value::Float(_) => false,
    }
}
