//! The fields of CustomResourceDefinition in its two versions.

use super::{Extension, Field, Keep, Struct, Type};

const fn field(name: &'static str, ty: Type, keep: Keep) -> Field {
    Field {
        name,
        ty,
        keep,
        extension: None,
    }
}

pub(crate) const fn always(name: &'static str, ty: Type) -> Field {
    field(name, ty, Keep::Always)
}

pub(crate) const fn filled(name: &'static str, ty: Type) -> Field {
    field(name, ty, Keep::Filled)
}

pub(crate) const fn set(name: &'static str, ty: Type) -> Field {
    field(name, ty, Keep::Set)
}

const fn extension(extension: Extension, field: Field) -> Field {
    Field {
        extension: Some(extension),
        ..field
    }
}

/// A text.
pub(crate) const TEXT: Type = Type::Text("string");
const TEXTS: Type = Type::List(None, &TEXT);
/// A schema, as a type.
pub(crate) static A_SCHEMA: Type = Type::Struct(&SCHEMA);

/// A definition in version `v1`.
pub(crate) static DEFINITION: Struct = Struct {
    name: "~CustomResourceDefinition",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        set("metadata", Type::Struct(&OBJECT_META)),
        always("spec", Type::Struct(&SPEC)),
        filled("status", Type::Struct(&STATUS)),
    ],
};

/// A definition in version `v1beta1`.
pub(crate) static DEFINITION_BETA: Struct = Struct {
    name: "~CustomResourceDefinition",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        set("metadata", Type::Struct(&OBJECT_META)),
        always("spec", Type::Struct(&SPEC_BETA)),
        filled("status", Type::Struct(&STATUS)),
    ],
};

/// The metadata of every kind.
pub(crate) static OBJECT_META: Struct = Struct {
    name: "v1.ObjectMeta",
    fields: &[
        filled("name", TEXT),
        filled("generateName", TEXT),
        filled("namespace", TEXT),
        filled("selfLink", TEXT),
        filled("uid", Type::Text("types.UID")),
        filled("resourceVersion", TEXT),
        filled("generation", Type::Int64),
        filled("creationTimestamp", Type::Time),
        set("deletionTimestamp", Type::Time),
        set("deletionGracePeriodSeconds", Type::Int64),
        filled("labels", Type::Map(None, &TEXT)),
        filled("annotations", Type::Map(None, &TEXT)),
        filled(
            "ownerReferences",
            Type::List(None, &Type::Struct(&OWNER_REFERENCE)),
        ),
        filled("finalizers", TEXTS),
        filled("managedFields", Type::List(None, &Type::Struct(&MANAGED_FIELDS))),
    ],
};

static OWNER_REFERENCE: Struct = Struct {
    name: "v1.OwnerReference",
    fields: &[
        always("apiVersion", TEXT),
        always("kind", TEXT),
        always("name", TEXT),
        always("uid", Type::Text("types.UID")),
        set("controller", Type::Bool),
        set("blockOwnerDeletion", Type::Bool),
    ],
};

static MANAGED_FIELDS: Struct = Struct {
    name: "v1.ManagedFieldsEntry",
    fields: &[
        filled("manager", TEXT),
        filled("operation", Type::Text("v1.ManagedFieldsOperationType")),
        filled("apiVersion", TEXT),
        set("time", Type::Time),
        filled("fieldsType", TEXT),
        set("fieldsV1", Type::Any),
        filled("subresource", TEXT),
    ],
};

static SPEC: Struct = Struct {
    name: "~CustomResourceDefinitionSpec",
    fields: &[
        always("group", TEXT),
        always("names", Type::Struct(&NAMES)),
        always("scope", Type::Text("~ResourceScope")),
        always("versions", Type::List(None, &Type::Struct(&VERSION))),
        set("conversion", Type::Struct(&CONVERSION)),
        filled("preserveUnknownFields", Type::Bool),
    ],
};

static SPEC_BETA: Struct = Struct {
    name: "~CustomResourceDefinitionSpec",
    fields: &[
        always("group", TEXT),
        filled("version", TEXT),
        always("names", Type::Struct(&NAMES)),
        always("scope", Type::Text("~ResourceScope")),
        set("validation", Type::Struct(&VALIDATION)),
        set("subresources", Type::Struct(&SUBRESOURCES)),
        filled("versions", Type::List(None, &Type::Struct(&VERSION_BETA))),
        filled(
            "additionalPrinterColumns",
            Type::List(None, &Type::Struct(&COLUMN_BETA)),
        ),
        filled(
            "selectableFields",
            Type::List(None, &Type::Struct(&SELECTABLE_FIELD)),
        ),
        set("conversion", Type::Struct(&CONVERSION_BETA)),
        set("preserveUnknownFields", Type::Bool),
    ],
};

static NAMES: Struct = Struct {
    name: "~CustomResourceDefinitionNames",
    fields: &[
        always("plural", TEXT),
        filled("singular", TEXT),
        filled("shortNames", TEXTS),
        always("kind", TEXT),
        filled("listKind", TEXT),
        filled("categories", TEXTS),
    ],
};

static VERSION: Struct = Struct {
    name: "~CustomResourceDefinitionVersion",
    fields: &[
        always("name", TEXT),
        always("served", Type::Bool),
        always("storage", Type::Bool),
        filled("deprecated", Type::Bool),
        set("deprecationWarning", TEXT),
        set("schema", Type::Struct(&VALIDATION)),
        set("subresources", Type::Struct(&SUBRESOURCES)),
        filled(
            "additionalPrinterColumns",
            Type::List(None, &Type::Struct(&COLUMN)),
        ),
        filled(
            "selectableFields",
            Type::List(None, &Type::Struct(&SELECTABLE_FIELD)),
        ),
    ],
};

static VERSION_BETA: Struct = Struct {
    name: "~CustomResourceDefinitionVersion",
    fields: &[
        always("name", TEXT),
        always("served", Type::Bool),
        always("storage", Type::Bool),
        filled("deprecated", Type::Bool),
        set("deprecationWarning", TEXT),
        set("schema", Type::Struct(&VALIDATION)),
        set("subresources", Type::Struct(&SUBRESOURCES)),
        filled(
            "additionalPrinterColumns",
            Type::List(None, &Type::Struct(&COLUMN_BETA)),
        ),
        filled(
            "selectableFields",
            Type::List(None, &Type::Struct(&SELECTABLE_FIELD)),
        ),
    ],
};

static VALIDATION: Struct = Struct {
    name: "~CustomResourceValidation",
    fields: &[set("openAPIV3Schema", Type::Struct(&SCHEMA))],
};

static SUBRESOURCES: Struct = Struct {
    name: "~CustomResourceSubresources",
    fields: &[
        set("status", Type::Struct(&STATUS_SUBRESOURCE)),
        set("scale", Type::Struct(&SCALE)),
    ],
};

static STATUS_SUBRESOURCE: Struct = Struct {
    name: "~CustomResourceSubresourceStatus",
    fields: &[],
};

static SCALE: Struct = Struct {
    name: "~CustomResourceSubresourceScale",
    fields: &[
        always("specReplicasPath", TEXT),
        always("statusReplicasPath", TEXT),
        set("labelSelectorPath", TEXT),
    ],
};

static COLUMN: Struct = Struct {
    name: "~CustomResourceColumnDefinition",
    fields: &[
        always("name", TEXT),
        always("type", TEXT),
        filled("format", TEXT),
        filled("description", TEXT),
        filled("priority", Type::Int32),
        always("jsonPath", TEXT),
    ],
};

static COLUMN_BETA: Struct = Struct {
    name: "~CustomResourceColumnDefinition",
    fields: &[
        always("name", TEXT),
        always("type", TEXT),
        filled("format", TEXT),
        filled("description", TEXT),
        filled("priority", Type::Int32),
        always("JSONPath", TEXT),
    ],
};

static SELECTABLE_FIELD: Struct = Struct {
    name: "~SelectableField",
    fields: &[always("jsonPath", TEXT)],
};

static CONVERSION: Struct = Struct {
    name: "~CustomResourceConversion",
    fields: &[
        always("strategy", Type::Text("~ConversionStrategyType")),
        set("webhook", Type::Struct(&WEBHOOK)),
    ],
};

static WEBHOOK: Struct = Struct {
    name: "~WebhookConversion",
    fields: &[
        set("clientConfig", Type::Struct(&CLIENT_CONFIG)),
        always("conversionReviewVersions", TEXTS),
    ],
};

static CONVERSION_BETA: Struct = Struct {
    name: "~CustomResourceConversion",
    fields: &[
        always("strategy", Type::Text("~ConversionStrategyType")),
        set("webhookClientConfig", Type::Struct(&CLIENT_CONFIG)),
        filled("conversionReviewVersions", TEXTS),
    ],
};

static CLIENT_CONFIG: Struct = Struct {
    name: "~WebhookClientConfig",
    fields: &[
        set("url", TEXT),
        set("service", Type::Struct(&SERVICE)),
        filled("caBundle", Type::Bytes),
    ],
};

static SERVICE: Struct = Struct {
    name: "~ServiceReference",
    fields: &[
        always("namespace", TEXT),
        always("name", TEXT),
        set("path", TEXT),
        set("port", Type::Int32),
    ],
};

static STATUS: Struct = Struct {
    name: "~CustomResourceDefinitionStatus",
    fields: &[
        always("conditions", Type::List(None, &Type::Struct(&CONDITION))),
        always("acceptedNames", Type::Struct(&NAMES)),
        always("storedVersions", TEXTS),
        filled("observedGeneration", Type::Int64),
    ],
};

static CONDITION: Struct = Struct {
    name: "~CustomResourceDefinitionCondition",
    fields: &[
        always("type", Type::Text("~CustomResourceDefinitionConditionType")),
        always("status", Type::Text("~ConditionStatus")),
        always("lastTransitionTime", Type::Time),
        filled("reason", TEXT),
        filled("message", TEXT),
        filled("observedGeneration", Type::Int64),
    ],
};

/// A schema.
pub(crate) static SCHEMA: Struct = Struct {
    name: "~JSONSchemaProps",
    fields: &[
        filled("type", TEXT),
        filled("description", TEXT),
        filled("properties", Type::Map(None, &A_SCHEMA)),
        set("items", Type::SchemaOrList),
        filled("required", TEXTS),
        filled("format", TEXT),
        set("default", Type::Any),
        filled("enum", Type::List(None, &Type::Any)),
        set("additionalProperties", Type::SchemaOrBool),
        filled("pattern", TEXT),
        set("maxLength", Type::Int64),
        set("minLength", Type::Int64),
        set("maximum", Type::Float),
        set("minimum", Type::Float),
        set("maxItems", Type::Int64),
        set("minItems", Type::Int64),
        filled("nullable", Type::Bool),
        filled(
            "x-kubernetes-validations",
            Type::List(Some("~ValidationRules"), &Type::Struct(&RULE)),
        ),
        set("x-kubernetes-preserve-unknown-fields", Type::Bool),
        filled("x-kubernetes-int-or-string", Type::Bool),
        filled("x-kubernetes-embedded-resource", Type::Bool),
        set("x-kubernetes-list-type", TEXT),
        filled("x-kubernetes-list-map-keys", TEXTS),
        set("x-kubernetes-map-type", TEXT),
        filled("allOf", Type::List(None, &A_SCHEMA)),
        filled("anyOf", Type::List(None, &A_SCHEMA)),
        filled("oneOf", Type::List(None, &A_SCHEMA)),
        set("not", Type::Struct(&SCHEMA)),
        filled("id", TEXT),
        filled("$schema", Type::Text("~JSONSchemaURL")),
        set("$ref", TEXT),
        filled("title", TEXT),
        filled("exclusiveMaximum", Type::Bool),
        filled("exclusiveMinimum", Type::Bool),
        filled("uniqueItems", Type::Bool),
        set("multipleOf", Type::Float),
        set("maxProperties", Type::Int64),
        set("minProperties", Type::Int64),
        filled("patternProperties", Type::Map(None, &A_SCHEMA)),
        filled(
            "dependencies",
            Type::Map(Some("~JSONSchemaDependencies"), &Type::SchemaOrTexts),
        ),
        set("additionalItems", Type::SchemaOrBool),
        filled(
            "definitions",
            Type::Map(Some("~JSONSchemaDefinitions"), &Type::Struct(&SCHEMA)),
        ),
        set("externalDocs", Type::Struct(&EXTERNAL_DOCS)),
        set("example", Type::Any),
        extension(Extension::Immutability, set("x-kubernetes-immutable", Type::Bool)),
        extension(
            Extension::Immutability,
            set("x-kubernetes-immutable-keys", Type::Bool),
        ),
        extension(
            Extension::Immutability,
            set("x-kubernetes-addition-only", Type::Bool),
        ),
        extension(
            Extension::Immutability,
            set("x-kubernetes-deletion-only", Type::Bool),
        ),
        extension(
            Extension::Unions,
            filled("x-kubernetes-unions", Type::List(None, &Type::Struct(&UNION))),
        ),
    ],
};

static UNION: Struct = Struct {
    name: "~Union",
    fields: &[
        filled("discriminator", TEXT),
        filled("fields", Type::Map(None, &TEXT)),
    ],
};

static EXTERNAL_DOCS: Struct = Struct {
    name: "~ExternalDocumentation",
    fields: &[filled("description", TEXT), filled("url", TEXT)],
};

static RULE: Struct = Struct {
    name: "~ValidationRule",
    fields: &[
        always("rule", TEXT),
        filled("message", TEXT),
        filled("messageExpression", TEXT),
        set("reason", Type::Text("~FieldValueErrorReason")),
        filled("fieldPath", TEXT),
        set("optionalOldSelf", Type::Bool),
        extension(Extension::AppliesOnCreate, filled("appliesOnCreate", Type::Bool)),
    ],
};
