//! Formats CRDs as errors show them: the fields of kube-apiserver's internal types, in their order, as JSON.

use super::{CrdVersion, Subresources, Validation};
use crate::document::Schema;
use crate::structural::ValidationRule;
use scantling_value::Value;

use KeywordType as K;

/// The keywords of a schema: their names in kube-apiserver's type, their JSON names, and their types.
pub(super) const KEYWORDS: &[(&str, &str, K)] = &[
    ("ID", "id", K::Text),
    ("Schema", "$schema", K::Text),
    ("Ref", "$ref", K::Pointer),
    ("Description", "description", K::Text),
    ("Type", "type", K::Text),
    ("Nullable", "nullable", K::Flag),
    ("Format", "format", K::Text),
    ("Title", "title", K::Text),
    ("Default", "default", K::Pointer),
    ("Maximum", "maximum", K::Pointer),
    ("ExclusiveMaximum", "exclusiveMaximum", K::Flag),
    ("Minimum", "minimum", K::Pointer),
    ("ExclusiveMinimum", "exclusiveMinimum", K::Flag),
    ("MaxLength", "maxLength", K::Pointer),
    ("MinLength", "minLength", K::Pointer),
    ("Pattern", "pattern", K::Text),
    ("MaxItems", "maxItems", K::Pointer),
    ("MinItems", "minItems", K::Pointer),
    ("UniqueItems", "uniqueItems", K::Flag),
    ("MultipleOf", "multipleOf", K::Pointer),
    ("Enum", "enum", K::Pointer),
    ("MaxProperties", "maxProperties", K::Pointer),
    ("MinProperties", "minProperties", K::Pointer),
    ("Required", "required", K::Pointer),
    ("Items", "items", K::SchemaOrList),
    ("AllOf", "allOf", K::Schemas),
    ("OneOf", "oneOf", K::Schemas),
    ("AnyOf", "anyOf", K::Schemas),
    ("Not", "not", K::Schema),
    ("Properties", "properties", K::NamedSchemas),
    ("AdditionalProperties", "additionalProperties", K::SchemaOrBool),
    ("PatternProperties", "patternProperties", K::NamedSchemas),
    ("Dependencies", "dependencies", K::Dependencies),
    ("AdditionalItems", "additionalItems", K::SchemaOrBool),
    ("Definitions", "definitions", K::NamedSchemas),
    ("ExternalDocs", "externalDocs", K::Docs),
    ("Example", "example", K::Pointer),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        K::Pointer,
    ),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", K::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", K::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", K::Pointer),
    ("XListType", "x-kubernetes-list-type", K::Pointer),
    ("XMapType", "x-kubernetes-map-type", K::Pointer),
    ("XValidations", "x-kubernetes-validations", K::Rules),
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
    printed(|out| out.list(versions, Printer::version))
}

/// Formats a schema.
pub(super) fn schema(s: Schema<'_>) -> String {
    printed(|out| out.schema(s))
}

/// Formats the value of `items`.
pub(super) fn items(v: &Value) -> String {
    printed(|out| out.schema_or_list(v))
}

/// Formats a rule, as errors about rules show it.
pub fn rule(r: &ValidationRule) -> String {
    printed(|out| out.rule(r))
}

fn printed(write: impl FnOnce(&mut Printer)) -> String {
    let mut out = Printer(String::new());
    write(&mut out);
    out.0
}

struct Printer(String);

impl Printer {
    fn json(&mut self, v: impl Into<Value>) {
        self.0.push_str(&v.into().to_json());
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => write(self, value),
            None => self.0.push_str("null"),
        }
    }

    fn object(&mut self, write_fields: impl FnOnce(&mut Self)) {
        self.0.push('{');
        write_fields(self);
        self.0.push('}');
    }

    /// Writes the name of the next field, after `{` or `,`.
    fn field(&mut self, name: &str) -> &mut Self {
        // A value never ends with an opening brace, so this is the first field of its object.
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.json(name);
        self.0.push(':');
        self
    }

    fn list<T>(&mut self, items: Option<&[T]>, write: impl Fn(&mut Self, &T)) {
        self.optional(items, |out, items| {
            out.0.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.0.push(',');
                }
                write(out, item);
            }
            out.0.push(']');
        });
    }

    fn version(&mut self, v: &CrdVersion) {
        self.object(|out| {
            out.field("Name").json(&*v.name);
            out.field("Served").json(v.served);
            out.field("Storage").json(v.storage);
            out.field("Deprecated").json(v.deprecated);
            let warning = v.deprecation_warning.as_deref();
            out.field("DeprecationWarning").optional(warning, Printer::json);
            let schema = v.validation.as_ref().map(Validation::schema);
            out.field("Schema").optional(schema, |out, schema| {
                out.object(|out| out.field("OpenAPIV3Schema").optional(schema, Printer::schema));
            });
            let subresources = v.subresources.as_ref();
            out.field("Subresources")
                .optional(subresources, Printer::subresources);
            let columns = v.columns.as_deref();
            out.field("AdditionalPrinterColumns").list(columns, |out, c| {
                out.object(|out| {
                    out.field("Name").json(&*c.name);
                    out.field("Type").json(&*c.ty);
                    out.field("Format").json(&*c.format);
                    out.field("Description").json(&*c.description);
                    out.field("Priority").json(c.priority);
                    out.field("JSONPath").json(&*c.json_path);
                });
            });
            let paths = v.selectable_fields.as_deref();
            out.field("SelectableFields").list(paths, |out, path| {
                out.object(|out| out.field("JSONPath").json(&**path));
            });
        });
    }

    fn subresources(&mut self, s: &Subresources) {
        self.object(|out| {
            let status = if s.status { "{}" } else { "null" };
            out.field("Status").0.push_str(status);
            out.field("Scale").optional(s.scale.as_ref(), |out, s| {
                out.object(|out| {
                    out.field("SpecReplicasPath").json(&*s.spec_replicas_path);
                    out.field("StatusReplicasPath").json(&*s.status_replicas_path);
                    let path = s.label_selector_path.as_deref();
                    out.field("LabelSelectorPath").optional(path, Printer::json);
                });
            });
        });
    }

    fn schema(&mut self, s: Schema<'_>) {
        self.object(|out| {
            for (name, key, holds) in KEYWORDS {
                out.field(name).keyword(s, key, *holds);
            }
        });
    }

    fn keyword(&mut self, s: Schema<'_>, key: &str, holds: K) {
        let Some(v) = s.get(key) else {
            return self.0.push_str(match holds {
                K::Text => "\"\"",
                K::Flag => "false",
                _ => "null",
            });
        };
        match holds {
            K::Text | K::Flag | K::Pointer => self.0.push_str(&v.to_json()),
            K::Schema => self.schema(Schema::new(v)),
            K::Schemas => self.list(v.as_array(), |out, v| out.schema(Schema::new(v))),
            K::NamedSchemas => self.object(|out| {
                for (name, s) in s.named_schemas(key) {
                    out.field(name).schema(s);
                }
            }),
            K::SchemaOrBool => self.object(|out| {
                // As in kube-apiserver's decoder, a schema implies that other properties are allowed.
                out.field("Allows").json(v.as_bool().unwrap_or(true));
                out.field("Schema").optional_schema(v);
            }),
            K::SchemaOrList => self.schema_or_list(v),
            K::Dependencies => self.object(|out| {
                for (name, v) in v.as_object().into_iter().flat_map(scantling_value::Map::iter) {
                    out.field(name).object(|out| {
                        out.field("Schema").optional_schema(v);
                        let names = v.as_array().filter(|a| !a.is_empty());
                        out.field("Property")
                            .list(names, |out, v| out.0.push_str(&v.to_json()));
                    });
                }
            }),
            K::Docs => self.object(|out| {
                let docs = Schema::new(v);
                out.field("Description").json(docs.string("description"));
                out.field("URL").json(docs.string("url"));
            }),
            K::Rules => self.list(Some(&s.rules().collect::<Vec<_>>()), Printer::rule),
        }
    }

    fn optional_schema(&mut self, v: &Value) {
        self.optional(v.as_object(), |out, _| out.schema(Schema::new(v)));
    }

    fn schema_or_list(&mut self, v: &Value) {
        self.object(|out| {
            out.field("Schema").optional_schema(v);
            let schemas = v.as_array().filter(|a| !a.is_empty());
            out.field("JSONSchemas")
                .list(schemas, |out, v| out.schema(Schema::new(v)));
        });
    }

    fn rule(&mut self, r: &ValidationRule) {
        self.object(|out| {
            out.field("Rule").json(&*r.rule);
            out.field("Message").json(&*r.message);
            out.field("MessageExpression").json(&*r.message_expression);
            out.field("Reason").optional(r.reason.as_deref(), Printer::json);
            out.field("FieldPath").json(&*r.field_path);
            out.field("OptionalOldSelf")
                .optional(r.optional_old_self, Printer::json);
            // kube-apiserver does not know this field, so it is printed only if it is set.
            if r.applies_on_create {
                out.field("AppliesOnCreate").json(true);
            }
        });
    }
}
