//! The order of definitions and of all that is in them.

use super::{OBJECT_META, Order};

pub(super) static DEFINITION: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("spec", Some(&SPEC)),
    ("status", Some(&STATUS)),
]);

static SPEC: Order = Order::Members(&[
    ("group", None),
    ("names", Some(&NAMES)),
    ("scope", None),
    ("versions", Some(&VERSION)),
    ("conversion", Some(&CONVERSION)),
    ("preserveUnknownFields", None),
]);

static NAMES: Order = Order::Members(&[
    ("plural", None),
    ("singular", None),
    ("shortNames", None),
    ("kind", None),
    ("listKind", None),
    ("categories", None),
]);

static VERSION: Order = Order::Members(&[
    ("name", None),
    ("served", None),
    ("storage", None),
    ("deprecated", None),
    ("deprecationWarning", None),
    ("schema", Some(&VALIDATION)),
    ("subresources", Some(&SUBRESOURCES)),
    ("additionalPrinterColumns", Some(&COLUMN)),
    ("selectableFields", None),
]);

static VALIDATION: Order = Order::Members(&[("openAPIV3Schema", Some(&SCHEMA))]);

static SUBRESOURCES: Order = Order::Members(&[("status", None), ("scale", Some(&SCALE))]);

static SCALE: Order = Order::Members(&[
    ("specReplicasPath", None),
    ("statusReplicasPath", None),
    ("labelSelectorPath", None),
]);

static COLUMN: Order = Order::Members(&[
    ("name", None),
    ("type", None),
    ("format", None),
    ("description", None),
    ("priority", None),
    ("jsonPath", None),
]);

static CONVERSION: Order = Order::Members(&[("strategy", None), ("webhook", Some(&WEBHOOK))]);

static WEBHOOK: Order = Order::Members(&[
    ("clientConfig", Some(&CLIENT)),
    ("conversionReviewVersions", None),
]);

static CLIENT: Order = Order::Members(&[("url", None), ("service", Some(&SERVICE)), ("caBundle", None)]);

static SERVICE: Order = Order::Members(&[
    ("namespace", None),
    ("name", None),
    ("path", None),
    ("port", None),
]);

static STATUS: Order = Order::Members(&[
    ("conditions", Some(&CONDITION)),
    ("acceptedNames", Some(&NAMES)),
    ("storedVersions", None),
    ("observedGeneration", None),
]);

static CONDITION: Order = Order::Members(&[
    ("type", None),
    ("status", None),
    ("lastTransitionTime", None),
    ("reason", None),
    ("message", None),
    ("observedGeneration", None),
]);

static SCHEMA: Order = Order::Members(&[
    ("id", None),
    ("$schema", None),
    ("$ref", None),
    ("description", None),
    ("type", None),
    ("format", None),
    ("title", None),
    ("default", None),
    ("maximum", None),
    ("exclusiveMaximum", None),
    ("minimum", None),
    ("exclusiveMinimum", None),
    ("maxLength", None),
    ("minLength", None),
    ("pattern", None),
    ("maxItems", None),
    ("minItems", None),
    ("uniqueItems", None),
    ("multipleOf", None),
    ("enum", None),
    ("maxProperties", None),
    ("minProperties", None),
    ("required", None),
    ("items", Some(&SCHEMA)),
    ("allOf", Some(&SCHEMA)),
    ("oneOf", Some(&SCHEMA)),
    ("anyOf", Some(&SCHEMA)),
    ("not", Some(&SCHEMA)),
    ("properties", Some(&SCHEMAS)),
    ("additionalProperties", Some(&SCHEMA)),
    ("patternProperties", Some(&SCHEMAS)),
    ("dependencies", Some(&SCHEMAS)),
    ("additionalItems", Some(&SCHEMA)),
    ("definitions", Some(&SCHEMAS)),
    ("externalDocs", None),
    ("example", None),
    ("nullable", None),
    ("x-kubernetes-preserve-unknown-fields", None),
    ("x-kubernetes-embedded-resource", None),
    ("x-kubernetes-int-or-string", None),
    ("x-kubernetes-list-map-keys", None),
    ("x-kubernetes-list-type", None),
    ("x-kubernetes-map-type", None),
    ("x-kubernetes-validations", Some(&RULE)),
]);

static SCHEMAS: Order = Order::Each(&SCHEMA);

static RULE: Order = Order::Members(&[
    ("rule", None),
    ("message", None),
    ("messageExpression", None),
    ("reason", None),
    ("fieldPath", None),
    ("optionalOldSelf", None),
]);
