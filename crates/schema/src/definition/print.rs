//! Formats CRDs as errors show them: the fields of kube-apiserver's internal types, in their order, as JSON.

use super::{CrdVersion, Subresources, Validation};
use crate::document::Schema;
use crate::structural::ValidationRule;
use scantling_value::Value;

/// The keywords of a schema: their names in kube-apiserver's type, their JSON names, and their types.
pub(super) const KEYWORDS: &[(&str, &str, KeywordType)] = &[
    ("ID", "id", KeywordType::Text),
    ("Schema", "$schema", KeywordType::Text),
    ("Ref", "$ref", KeywordType::Pointer),
    ("Description", "description", KeywordType::Text),
    ("Type", "type", KeywordType::Text),
    ("Nullable", "nullable", KeywordType::Flag),
    ("Format", "format", KeywordType::Text),
    ("Title", "title", KeywordType::Text),
    ("Default", "default", KeywordType::Pointer),
    ("Maximum", "maximum", KeywordType::Pointer),
    ("ExclusiveMaximum", "exclusiveMaximum", KeywordType::Flag),
    ("Minimum", "minimum", KeywordType::Pointer),
    ("ExclusiveMinimum", "exclusiveMinimum", KeywordType::Flag),
    ("MaxLength", "maxLength", KeywordType::Pointer),
    ("MinLength", "minLength", KeywordType::Pointer),
    ("Pattern", "pattern", KeywordType::Text),
    ("MaxItems", "maxItems", KeywordType::Pointer),
    ("MinItems", "minItems", KeywordType::Pointer),
    ("UniqueItems", "uniqueItems", KeywordType::Flag),
    ("MultipleOf", "multipleOf", KeywordType::Pointer),
    ("Enum", "enum", KeywordType::Pointer),
    ("MaxProperties", "maxProperties", KeywordType::Pointer),
    ("MinProperties", "minProperties", KeywordType::Pointer),
    ("Required", "required", KeywordType::Pointer),
    ("Items", "items", KeywordType::SchemaOrList),
    ("AllOf", "allOf", KeywordType::Schemas),
    ("OneOf", "oneOf", KeywordType::Schemas),
    ("AnyOf", "anyOf", KeywordType::Schemas),
    ("Not", "not", KeywordType::Schema),
    ("Properties", "properties", KeywordType::NamedSchemas),
    (
        "AdditionalProperties",
        "additionalProperties",
        KeywordType::SchemaOrBool,
    ),
    (
        "PatternProperties",
        "patternProperties",
        KeywordType::NamedSchemas,
    ),
    ("Dependencies", "dependencies", KeywordType::Dependencies),
    ("AdditionalItems", "additionalItems", KeywordType::SchemaOrBool),
    ("Definitions", "definitions", KeywordType::NamedSchemas),
    ("ExternalDocs", "externalDocs", KeywordType::Docs),
    ("Example", "example", KeywordType::Pointer),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        KeywordType::Pointer,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        KeywordType::Flag,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", KeywordType::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", KeywordType::Pointer),
    ("XListType", "x-kubernetes-list-type", KeywordType::Pointer),
    ("XMapType", "x-kubernetes-map-type", KeywordType::Pointer),
    ("XValidations", "x-kubernetes-validations", KeywordType::Rules),
];

/// The type of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeywordType {
    /// A string; empty if unset.
    Text,
    /// A boolean; false if unset.
    Flag,
    /// Anything printed as in JSON; null if unset.
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

/// Formats the versions of a CRD.
pub(super) fn versions(versions: Option<&[CrdVersion]>) -> String {
    let mut out = Printer::default();
    out.list(versions, Printer::version);
    out.0
}

/// Formats a schema.
pub(super) fn schema(s: Schema<'_>) -> String {
    let mut out = Printer::default();
    out.schema(s);
    out.0
}

/// Formats the value of `items`.
pub(super) fn items(v: &Value) -> String {
    let mut out = Printer::default();
    out.schema_or_list(v);
    out.0
}

/// Formats a rule, as errors about rules show it.
pub fn rule(r: &ValidationRule) -> String {
    let mut out = Printer::default();
    out.rule(r);
    out.0
}

#[derive(Default)]
struct Printer(String);

impl Printer {
    fn json(&mut self, v: &Value) {
        self.0.push_str(&v.to_json());
    }

    fn string(&mut self, s: &str) {
        self.json(&s.into());
    }

    fn optional_string(&mut self, s: Option<&str>) {
        match s {
            Some(s) => self.string(s),
            None => self.0.push_str("null"),
        }
    }

    /// Writes the name of the next field, after `{` or `,`.
    fn field(&mut self, name: &str) -> &mut Self {
        // A value never ends with an opening brace, so this is the first field of its object.
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.string(name);
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

    fn version(&mut self, v: &CrdVersion) {
        self.0.push('{');
        self.field("Name").string(&v.name);
        self.field("Served").json(&v.served.into());
        self.field("Storage").json(&v.storage.into());
        self.field("Deprecated").json(&v.deprecated.into());
        self.field("DeprecationWarning")
            .optional_string(v.deprecation_warning.as_deref());
        self.field("Schema").validation(v.validation.as_ref());
        self.field("Subresources").subresources(v.subresources.as_ref());
        self.field("AdditionalPrinterColumns")
            .list(v.columns.as_deref(), |out, c| {
                out.0.push('{');
                out.field("Name").string(&c.name);
                out.field("Type").string(&c.ty);
                out.field("Format").string(&c.format);
                out.field("Description").string(&c.description);
                out.field("Priority").json(&c.priority.into());
                out.field("JSONPath").string(&c.json_path);
                out.0.push('}');
            });
        self.field("SelectableFields")
            .list(v.selectable_fields.as_deref(), |out, path| {
                out.0.push('{');
                out.field("JSONPath").string(path);
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
                self.field("SpecReplicasPath").string(&s.spec_replicas_path);
                self.field("StatusReplicasPath").string(&s.status_replicas_path);
                self.field("LabelSelectorPath")
                    .optional_string(s.label_selector_path.as_deref());
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
                (None, KeywordType::Text) => self.string(""),
                (None, KeywordType::Flag) => self.0.push_str("false"),
                (None, _) => self.0.push_str("null"),
                (Some(v), KeywordType::Text | KeywordType::Flag | KeywordType::Pointer) => self.json(v),
                (Some(v), KeywordType::Schema) => self.schema(Schema::new(v)),
                (Some(v), KeywordType::Schemas) => {
                    self.list(v.as_array(), |out, v| out.schema(Schema::new(v)));
                }
                (Some(_), KeywordType::NamedSchemas) => {
                    self.0.push('{');
                    for (name, s) in s.named_schemas(key) {
                        self.field(name).schema(s);
                    }
                    self.0.push('}');
                }
                (Some(v), KeywordType::SchemaOrBool) => {
                    // As in kube-apiserver's decoder, a schema implies that other properties are allowed.
                    let allows = v.as_bool().unwrap_or(true);
                    self.0.push('{');
                    self.field("Allows").json(&allows.into());
                    self.field("Schema").optional_schema(v);
                    self.0.push('}');
                }
                (Some(v), KeywordType::SchemaOrList) => self.schema_or_list(v),
                (Some(v), KeywordType::Dependencies) => {
                    self.0.push('{');
                    for (name, v) in v.as_object().into_iter().flat_map(scantling_value::Map::iter) {
                        self.field(name).0.push('{');
                        self.field("Schema").optional_schema(v);
                        self.field("Property")
                            .list(v.as_array().filter(|a| !a.is_empty()), Printer::json);
                        self.0.push('}');
                    }
                    self.0.push('}');
                }
                (Some(v), KeywordType::Docs) => {
                    let docs = Schema::new(v);
                    self.0.push('{');
                    self.field("Description").string(docs.string("description"));
                    self.field("URL").string(docs.string("url"));
                    self.0.push('}');
                }
                (Some(_), KeywordType::Rules) => {
                    let rules: Vec<_> = s.rules().collect();
                    self.list(Some(&rules), Printer::rule);
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
        self.field("Rule").string(&r.rule);
        self.field("Message").string(&r.message);
        self.field("MessageExpression").string(&r.message_expression);
        self.field("Reason").optional_string(r.reason.as_deref());
        self.field("FieldPath").string(&r.field_path);
        self.field("OptionalOldSelf");
        match r.optional_old_self {
            Some(b) => self.json(&b.into()),
            None => self.0.push_str("null"),
        }
        // kube-apiserver does not know this field, so it is printed only if it is set.
        if r.applies_on_create {
            self.field("AppliesOnCreate").0.push_str("true");
        }
        self.0.push('}');
    }
}
