//! Definitions in the form in which errors show them: the fields of the server's own types, in their order, as JSON.

use super::{Subresources, Validation, Version};
use crate::document::Schema;
use crate::structural::ValidationRule;
use scantling_value::Value;

/// The keywords of a schema: their names in the server's type, their names on the wire, and what they hold.
pub(super) const KEYWORDS: &[(&str, &str, Holds)] = &[
    ("ID", "id", Holds::Text),
    ("Schema", "$schema", Holds::Text),
    ("Ref", "$ref", Holds::Pointer),
    ("Description", "description", Holds::Text),
    ("Type", "type", Holds::Text),
    ("Nullable", "nullable", Holds::Flag),
    ("Format", "format", Holds::Text),
    ("Title", "title", Holds::Text),
    ("Default", "default", Holds::Pointer),
    ("Maximum", "maximum", Holds::Pointer),
    ("ExclusiveMaximum", "exclusiveMaximum", Holds::Flag),
    ("Minimum", "minimum", Holds::Pointer),
    ("ExclusiveMinimum", "exclusiveMinimum", Holds::Flag),
    ("MaxLength", "maxLength", Holds::Pointer),
    ("MinLength", "minLength", Holds::Pointer),
    ("Pattern", "pattern", Holds::Text),
    ("MaxItems", "maxItems", Holds::Pointer),
    ("MinItems", "minItems", Holds::Pointer),
    ("UniqueItems", "uniqueItems", Holds::Flag),
    ("MultipleOf", "multipleOf", Holds::Pointer),
    ("Enum", "enum", Holds::Pointer),
    ("MaxProperties", "maxProperties", Holds::Pointer),
    ("MinProperties", "minProperties", Holds::Pointer),
    ("Required", "required", Holds::Pointer),
    ("Items", "items", Holds::SchemaOrList),
    ("AllOf", "allOf", Holds::Schemas),
    ("OneOf", "oneOf", Holds::Schemas),
    ("AnyOf", "anyOf", Holds::Schemas),
    ("Not", "not", Holds::Schema),
    ("Properties", "properties", Holds::NamedSchemas),
    (
        "AdditionalProperties",
        "additionalProperties",
        Holds::SchemaOrBool,
    ),
    ("PatternProperties", "patternProperties", Holds::NamedSchemas),
    ("Dependencies", "dependencies", Holds::Dependencies),
    ("AdditionalItems", "additionalItems", Holds::SchemaOrBool),
    ("Definitions", "definitions", Holds::NamedSchemas),
    ("ExternalDocs", "externalDocs", Holds::Docs),
    ("Example", "example", Holds::Pointer),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Holds::Pointer,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Holds::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Holds::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Holds::Pointer),
    ("XListType", "x-kubernetes-list-type", Holds::Pointer),
    ("XMapType", "x-kubernetes-map-type", Holds::Pointer),
    ("XValidations", "x-kubernetes-validations", Holds::Rules),
];

/// What a keyword holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// A text; unset is empty.
    Text,
    /// A boolean; unset is false.
    Flag,
    /// Anything that prints as on the wire; unset is null.
    Pointer,
    Schema,
    Schemas,
    NamedSchemas,
    SchemaOrBool,
    SchemaOrList,
    Dependencies,
    Docs,
    Rules,
}

/// The versions of a definition.
pub(super) fn versions(versions: Option<&[Version]>) -> String {
    let mut out = Out::default();
    out.list(versions, Out::version);
    out.0
}

/// A schema.
pub(super) fn schema(s: Schema<'_>) -> String {
    let mut out = Out::default();
    out.schema(s);
    out.0
}

/// The value of `items`.
pub(super) fn items(v: &Value) -> String {
    let mut out = Out::default();
    out.schema_or_list(v);
    out.0
}

/// A rule, as errors about rules show it.
pub fn rule(r: &ValidationRule) -> String {
    let mut out = Out::default();
    out.rule(r);
    out.0
}

#[derive(Default)]
struct Out(String);

impl Out {
    fn json(&mut self, v: &Value) {
        self.0.push_str(&v.to_json());
    }

    fn text(&mut self, s: &str) {
        self.json(&s.into());
    }

    fn optional_text(&mut self, s: Option<&str>) {
        match s {
            Some(s) => self.text(s),
            None => self.0.push_str("null"),
        }
    }

    /// The name of the next field, after `{` or `,`.
    fn field(&mut self, name: &str) -> &mut Self {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.text(name);
        self.0.push(':');
        self
    }

    fn list<T>(&mut self, items: Option<&[T]>, write: impl Fn(&mut Self, &T)) {
        let Some(items) = items else {
            self.0.push_str("null");
            return;
        };
        self.0.push('[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.0.push(',');
            }
            write(self, item);
        }
        self.0.push(']');
    }

    fn version(&mut self, v: &Version) {
        self.0.push('{');
        self.field("Name").text(&v.name);
        self.field("Served").json(&v.served.into());
        self.field("Storage").json(&v.storage.into());
        self.field("Deprecated").json(&v.deprecated.into());
        self.field("DeprecationWarning")
            .optional_text(v.deprecation_warning.as_deref());
        self.field("Schema").validation(v.validation.as_ref());
        self.field("Subresources").subresources(v.subresources.as_ref());
        self.field("AdditionalPrinterColumns")
            .list(v.columns.as_deref(), |out, c| {
                out.0.push('{');
                out.field("Name").text(&c.name);
                out.field("Type").text(&c.ty);
                out.field("Format").text(&c.format);
                out.field("Description").text(&c.description);
                out.field("Priority").json(&c.priority.into());
                out.field("JSONPath").text(&c.json_path);
                out.0.push('}');
            });
        self.field("SelectableFields")
            .list(v.selectable_fields.as_deref(), |out, path| {
                out.0.push('{');
                out.field("JSONPath").text(path);
                out.0.push('}');
            });
        self.0.push('}');
    }

    fn validation(&mut self, v: Option<&Validation>) {
        let Some(v) = v else {
            self.0.push_str("null");
            return;
        };
        self.0.push('{');
        self.field("OpenAPIV3Schema");
        match v.schema() {
            Some(s) => self.schema(s),
            None => self.0.push_str("null"),
        }
        self.0.push('}');
    }

    fn subresources(&mut self, s: Option<&Subresources>) {
        let Some(s) = s else {
            self.0.push_str("null");
            return;
        };
        self.0.push('{');
        self.field("Status")
            .0
            .push_str(if s.status { "{}" } else { "null" });
        self.field("Scale");
        match &s.scale {
            None => self.0.push_str("null"),
            Some(s) => {
                self.0.push('{');
                self.field("SpecReplicasPath").text(&s.spec_replicas_path);
                self.field("StatusReplicasPath").text(&s.status_replicas_path);
                self.field("LabelSelectorPath")
                    .optional_text(s.label_selector_path.as_deref());
                self.0.push('}');
            }
        }
        self.0.push('}');
    }

    fn schema(&mut self, s: Schema<'_>) {
        self.0.push('{');
        for (name, key, holds) in KEYWORDS {
            self.field(name);
            match (s.get(key), holds) {
                (None, Holds::Text) => self.text(""),
                (None, Holds::Flag) => self.0.push_str("false"),
                (None, _) => self.0.push_str("null"),
                (Some(v), Holds::Text | Holds::Flag | Holds::Pointer) => self.json(v),
                (Some(v), Holds::Schema) => self.schema(Schema::new(v)),
                (Some(v), Holds::Schemas) => self.list(v.as_array(), |out, v| out.schema(Schema::new(v))),
                (Some(_), Holds::NamedSchemas) => {
                    self.0.push('{');
                    for (name, s) in s.named(key) {
                        self.field(name).schema(s);
                    }
                    self.0.push('}');
                }
                (Some(v), Holds::SchemaOrBool) => {
                    let allows = v.as_bool().unwrap_or(true);
                    self.0.push('{');
                    self.field("Allows").json(&allows.into());
                    self.field("Schema").optional_schema(v);
                    self.0.push('}');
                }
                (Some(v), Holds::SchemaOrList) => self.schema_or_list(v),
                (Some(v), Holds::Dependencies) => {
                    self.0.push('{');
                    for (name, v) in v.as_object().into_iter().flat_map(scantling_value::Map::iter) {
                        self.field(name).0.push('{');
                        self.field("Schema").optional_schema(v);
                        self.field("Property")
                            .list(v.as_array().filter(|a| !a.is_empty()), Out::json);
                        self.0.push('}');
                    }
                    self.0.push('}');
                }
                (Some(v), Holds::Docs) => {
                    let docs = Schema::new(v);
                    self.0.push('{');
                    self.field("Description").text(docs.text("description"));
                    self.field("URL").text(docs.text("url"));
                    self.0.push('}');
                }
                (Some(_), Holds::Rules) => {
                    let rules: Vec<_> = s.rules().collect();
                    self.list(Some(&rules), Out::rule);
                }
            }
        }
        self.0.push('}');
    }

    fn optional_schema(&mut self, v: &Value) {
        match v {
            Value::Object(_) => self.schema(Schema::new(v)),
            _ => self.0.push_str("null"),
        }
    }

    fn schema_or_list(&mut self, v: &Value) {
        self.0.push('{');
        self.field("Schema").optional_schema(v);
        self.field("JSONSchemas")
            .list(v.as_array().filter(|a| !a.is_empty()), |out, v| {
                out.schema(Schema::new(v));
            });
        self.0.push('}');
    }

    fn rule(&mut self, r: &ValidationRule) {
        self.0.push('{');
        self.field("Rule").text(&r.rule);
        self.field("Message").text(&r.message);
        self.field("MessageExpression").text(&r.message_expression);
        self.field("Reason").optional_text(r.reason.as_deref());
        self.field("FieldPath").text(&r.field_path);
        self.field("OptionalOldSelf");
        match r.optional_old_self {
            Some(b) => self.json(&b.into()),
            None => self.0.push_str("null"),
        }
        if r.applies_on_create {
            self.field("AppliesOnCreate").0.push_str("true");
        }
        self.0.push('}');
    }
}
