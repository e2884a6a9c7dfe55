//! The messages: numbers, names and forms of fields, as Kubernetes assigned them once and for all.

use super::Form::{self, Bool, Bytes, Double, Either, Fields, Int, Json, MicroTime, Part, Text, Texts, Time};
use super::{Count, Field, Message};

const fn field(number: u64, name: &'static str, count: Count, form: Form) -> Field {
    Field {
        number,
        name,
        count,
        form,
    }
}

const fn one(number: u64, name: &'static str, form: Form) -> Field {
    field(number, name, Count::One, form)
}

const fn optional(number: u64, name: &'static str, form: Form) -> Field {
    field(number, name, Count::Optional, form)
}

const fn list(number: u64, name: &'static str, form: Form) -> Field {
    field(number, name, Count::List, form)
}

const fn map(number: u64, name: &'static str, form: Form) -> Field {
    field(number, name, Count::Map, form)
}

/// The message of a kind; nothing for kinds that have none.
pub(super) fn find(api_version: &str, kind: &str) -> Option<&'static Message> {
    let row = KINDS
        .iter()
        .find(|(versions, k, _)| *k == kind && versions.contains(&api_version));
    row.map(|(.., message)| *message)
}

/// All kinds that have this form.
static KINDS: &[(&[&str], &str, &Message)] = &[
    (&["v1"], "Namespace", &NAMESPACE),
    (&["v1"], "NamespaceList", &NAMESPACE_LIST),
    (&["v1"], "Event", &EVENT),
    (&["v1"], "EventList", &EVENT_LIST),
    (&["events.k8s.io/v1"], "Event", &NEW_EVENT),
    (&["events.k8s.io/v1"], "EventList", &NEW_EVENT_LIST),
    (&["v1"], "ConfigMap", &CONFIG_MAP),
    (&["v1"], "ConfigMapList", &CONFIG_MAP_LIST),
    (&["v1"], "Secret", &SECRET),
    (&["v1"], "SecretList", &SECRET_LIST),
    (&["coordination.k8s.io/v1"], "Lease", &LEASE),
    (&["coordination.k8s.io/v1"], "LeaseList", &LEASE_LIST),
    (&["v1"], "Status", &STATUS),
    (
        &["apiextensions.k8s.io/v1"],
        "CustomResourceDefinition",
        &DEFINITION,
    ),
    (
        &["apiextensions.k8s.io/v1"],
        "CustomResourceDefinitionList",
        &DEFINITION_LIST,
    ),
    (
        &["apiextensions.k8s.io/v1beta1"],
        "CustomResourceDefinition",
        &OLD_DEFINITION,
    ),
    (
        &["apiextensions.k8s.io/v1beta1"],
        "CustomResourceDefinitionList",
        &OLD_DEFINITION_LIST,
    ),
    (&["autoscaling/v1"], "Scale", &SCALE),
    (
        &["meta.k8s.io/v1", "meta.k8s.io/v1beta1"],
        "PartialObjectMetadata",
        &METADATA,
    ),
    (&["meta.k8s.io/v1"], "PartialObjectMetadataList", &METADATA_LIST),
    (
        &["meta.k8s.io/v1beta1"],
        "PartialObjectMetadataList",
        &OLD_METADATA_LIST,
    ),
    (
        &["authorization.k8s.io/v1"],
        "SelfSubjectAccessReview",
        &ACCESS_REVIEW,
    ),
    (
        &["authorization.k8s.io/v1"],
        "SelfSubjectRulesReview",
        &RULES_REVIEW,
    ),
    (&["authentication.k8s.io/v1"], "SelfSubjectReview", &SELF_REVIEW),
    // Discovery does not always name its version.
    (&["", "v1"], "APIVersions", &API_VERSIONS),
    (&["", "v1"], "APIGroupList", &API_GROUP_LIST),
    (&["", "v1"], "APIGroup", &API_GROUP),
    (&["", "v1"], "APIResourceList", &API_RESOURCE_LIST),
];

static OBJECT_META: Message = Message(&[
    one(1, "name", Text),
    one(2, "generateName", Text),
    one(3, "namespace", Text),
    one(4, "selfLink", Text),
    one(5, "uid", Text),
    one(6, "resourceVersion", Text),
    one(7, "generation", Int),
    one(8, "creationTimestamp", Time),
    optional(9, "deletionTimestamp", Time),
    optional(10, "deletionGracePeriodSeconds", Int),
    map(11, "labels", Text),
    map(12, "annotations", Text),
    list(13, "ownerReferences", Part(&OWNER_REFERENCE)),
    list(14, "finalizers", Text),
    list(17, "managedFields", Part(&MANAGED_FIELDS)),
]);

static OWNER_REFERENCE: Message = Message(&[
    one(1, "kind", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    optional(6, "controller", Bool),
    optional(7, "blockOwnerDeletion", Bool),
]);

static MANAGED_FIELDS: Message = Message(&[
    one(1, "manager", Text),
    one(2, "operation", Text),
    one(3, "apiVersion", Text),
    optional(4, "time", Time),
    one(6, "fieldsType", Text),
    optional(7, "fieldsV1", Fields),
    one(8, "subresource", Text),
]);

static LIST_META: Message = Message(&[
    one(1, "selfLink", Text),
    one(2, "resourceVersion", Text),
    one(3, "continue", Text),
    optional(4, "remainingItemCount", Int),
]);

static STATUS: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    one(2, "status", Text),
    one(3, "message", Text),
    one(4, "reason", Text),
    optional(5, "details", Part(&STATUS_DETAILS)),
    one(6, "code", Int),
]);

static STATUS_DETAILS: Message = Message(&[
    one(1, "name", Text),
    one(2, "group", Text),
    one(3, "kind", Text),
    list(4, "causes", Part(&STATUS_CAUSE)),
    one(5, "retryAfterSeconds", Int),
    one(6, "uid", Text),
]);

static STATUS_CAUSE: Message = Message(&[
    one(1, "reason", Text),
    one(2, "message", Text),
    one(3, "field", Text),
]);

/// The options of a deletion; every group has a kind of that name.
pub(crate) static DELETE_OPTIONS: Message = Message(&[
    optional(1, "gracePeriodSeconds", Int),
    optional(2, "preconditions", Part(&PRECONDITIONS)),
    optional(3, "orphanDependents", Bool),
    optional(4, "propagationPolicy", Text),
    list(5, "dryRun", Text),
    optional(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Bool),
]);

static PRECONDITIONS: Message = Message(&[optional(1, "uid", Text), optional(2, "resourceVersion", Text)]);

static METADATA: Message = Message(&[one(1, "metadata", Part(&OBJECT_META))]);

static METADATA_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&METADATA)),
]);

static OLD_METADATA_LIST: Message = Message(&[
    list(1, "items", Part(&METADATA)),
    one(2, "metadata", Part(&LIST_META)),
]);

static API_VERSIONS: Message = Message(&[
    list(1, "versions", Text),
    list(2, "serverAddressByClientCIDRs", Part(&SERVER_ADDRESS)),
]);

static SERVER_ADDRESS: Message = Message(&[one(1, "clientCIDR", Text), one(2, "serverAddress", Text)]);

static API_GROUP_LIST: Message = Message(&[list(1, "groups", Part(&API_GROUP))]);

static API_GROUP: Message = Message(&[
    one(1, "name", Text),
    list(2, "versions", Part(&GROUP_VERSION)),
    one(3, "preferredVersion", Part(&GROUP_VERSION)),
    list(4, "serverAddressByClientCIDRs", Part(&SERVER_ADDRESS)),
]);

static GROUP_VERSION: Message = Message(&[one(1, "groupVersion", Text), one(2, "version", Text)]);

static API_RESOURCE_LIST: Message = Message(&[
    one(1, "groupVersion", Text),
    list(2, "resources", Part(&API_RESOURCE)),
]);

static API_RESOURCE: Message = Message(&[
    one(1, "name", Text),
    one(2, "namespaced", Bool),
    one(3, "kind", Text),
    optional(4, "verbs", Texts),
    list(5, "shortNames", Text),
    one(6, "singularName", Text),
    list(7, "categories", Text),
    one(8, "group", Text),
    one(9, "version", Text),
    one(10, "storageVersionHash", Text),
]);

static NAMESPACE: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&NAMESPACE_SPEC)),
    one(3, "status", Part(&NAMESPACE_STATUS)),
]);

static NAMESPACE_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&NAMESPACE)),
]);

static NAMESPACE_SPEC: Message = Message(&[list(1, "finalizers", Text)]);

static NAMESPACE_STATUS: Message = Message(&[
    one(1, "phase", Text),
    list(2, "conditions", Part(&NAMESPACE_CONDITION)),
]);

static NAMESPACE_CONDITION: Message = Message(&[
    one(1, "type", Text),
    one(2, "status", Text),
    one(4, "lastTransitionTime", Time),
    one(5, "reason", Text),
    one(6, "message", Text),
]);

static CONFIG_MAP: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    map(2, "data", Text),
    map(3, "binaryData", Bytes),
    optional(4, "immutable", Bool),
]);

static CONFIG_MAP_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&CONFIG_MAP)),
]);

static SECRET: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    map(2, "data", Bytes),
    one(3, "type", Text),
    map(4, "stringData", Text),
    optional(5, "immutable", Bool),
]);

static SECRET_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&SECRET)),
]);

static LEASE: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&LEASE_SPEC)),
]);

static LEASE_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&LEASE)),
]);

static LEASE_SPEC: Message = Message(&[
    optional(1, "holderIdentity", Text),
    optional(2, "leaseDurationSeconds", Int),
    optional(3, "acquireTime", MicroTime),
    optional(4, "renewTime", MicroTime),
    optional(5, "leaseTransitions", Int),
    optional(6, "strategy", Text),
    optional(7, "preferredHolder", Text),
]);

static EVENT: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "involvedObject", Part(&OBJECT_REFERENCE)),
    one(3, "reason", Text),
    one(4, "message", Text),
    one(5, "source", Part(&EVENT_SOURCE)),
    one(6, "firstTimestamp", Time),
    one(7, "lastTimestamp", Time),
    one(8, "count", Int),
    one(9, "type", Text),
    one(10, "eventTime", MicroTime),
    optional(11, "series", Part(&EVENT_SERIES)),
    one(12, "action", Text),
    optional(13, "related", Part(&OBJECT_REFERENCE)),
    one(14, "reportingComponent", Text),
    one(15, "reportingInstance", Text),
]);

static EVENT_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&EVENT)),
]);

static NEW_EVENT: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "eventTime", MicroTime),
    optional(3, "series", Part(&EVENT_SERIES)),
    one(4, "reportingController", Text),
    one(5, "reportingInstance", Text),
    one(6, "action", Text),
    one(7, "reason", Text),
    one(8, "regarding", Part(&OBJECT_REFERENCE)),
    optional(9, "related", Part(&OBJECT_REFERENCE)),
    one(10, "note", Text),
    one(11, "type", Text),
    one(12, "deprecatedSource", Part(&EVENT_SOURCE)),
    one(13, "deprecatedFirstTimestamp", Time),
    one(14, "deprecatedLastTimestamp", Time),
    one(15, "deprecatedCount", Int),
]);

static NEW_EVENT_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&NEW_EVENT)),
]);

static EVENT_SOURCE: Message = Message(&[one(1, "component", Text), one(2, "host", Text)]);

static EVENT_SERIES: Message = Message(&[one(1, "count", Int), one(2, "lastObservedTime", MicroTime)]);

static OBJECT_REFERENCE: Message = Message(&[
    one(1, "kind", Text),
    one(2, "namespace", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    one(6, "resourceVersion", Text),
    one(7, "fieldPath", Text),
]);

/// The scale of any object.
pub(crate) static SCALE: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&SCALE_SPEC)),
    one(3, "status", Part(&SCALE_STATUS)),
]);

static SCALE_SPEC: Message = Message(&[one(1, "replicas", Int)]);

static SCALE_STATUS: Message = Message(&[one(1, "replicas", Int), one(2, "selector", Text)]);

static DEFINITION: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&DEFINITION_SPEC)),
    one(3, "status", Part(&DEFINITION_STATUS)),
]);

static DEFINITION_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&DEFINITION)),
]);

static OLD_DEFINITION: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&OLD_DEFINITION_SPEC)),
    one(3, "status", Part(&DEFINITION_STATUS)),
]);

static OLD_DEFINITION_LIST: Message = Message(&[
    one(1, "metadata", Part(&LIST_META)),
    list(2, "items", Part(&OLD_DEFINITION)),
]);

static DEFINITION_SPEC: Message = Message(&[
    one(1, "group", Text),
    one(3, "names", Part(&NAMES)),
    one(4, "scope", Text),
    list(7, "versions", Part(&VERSION)),
    optional(9, "conversion", Part(&CONVERSION)),
    one(10, "preserveUnknownFields", Bool),
]);

static OLD_DEFINITION_SPEC: Message = Message(&[
    one(1, "group", Text),
    one(2, "version", Text),
    one(3, "names", Part(&NAMES)),
    one(4, "scope", Text),
    optional(5, "validation", Part(&VALIDATION)),
    optional(6, "subresources", Part(&SUBRESOURCES)),
    list(7, "versions", Part(&OLD_VERSION)),
    list(8, "additionalPrinterColumns", Part(&OLD_COLUMN)),
    optional(9, "conversion", Part(&OLD_CONVERSION)),
    optional(10, "preserveUnknownFields", Bool),
    list(11, "selectableFields", Part(&SELECTABLE_FIELD)),
]);

static DEFINITION_STATUS: Message = Message(&[
    list(1, "conditions", Part(&DEFINITION_CONDITION)),
    one(2, "acceptedNames", Part(&NAMES)),
    list(3, "storedVersions", Text),
    one(4, "observedGeneration", Int),
]);

static DEFINITION_CONDITION: Message = Message(&[
    one(1, "type", Text),
    one(2, "status", Text),
    one(3, "lastTransitionTime", Time),
    one(4, "reason", Text),
    one(5, "message", Text),
    one(6, "observedGeneration", Int),
]);

static NAMES: Message = Message(&[
    one(1, "plural", Text),
    one(2, "singular", Text),
    list(3, "shortNames", Text),
    one(4, "kind", Text),
    one(5, "listKind", Text),
    list(6, "categories", Text),
]);

static VERSION: Message = Message(&version(&COLUMN));
static OLD_VERSION: Message = Message(&version(&OLD_COLUMN));

/// The two forms of a definition differ in how a column's path is called.
const fn version(column: &'static Message) -> [Field; 9] {
    [
        one(1, "name", Text),
        one(2, "served", Bool),
        one(3, "storage", Bool),
        optional(4, "schema", Part(&VALIDATION)),
        optional(5, "subresources", Part(&SUBRESOURCES)),
        list(6, "additionalPrinterColumns", Part(column)),
        one(7, "deprecated", Bool),
        optional(8, "deprecationWarning", Text),
        list(9, "selectableFields", Part(&SELECTABLE_FIELD)),
    ]
}

static COLUMN: Message = Message(&column("jsonPath"));
static OLD_COLUMN: Message = Message(&column("JSONPath"));

const fn column(path: &'static str) -> [Field; 6] {
    [
        one(1, "name", Text),
        one(2, "type", Text),
        one(3, "format", Text),
        one(4, "description", Text),
        one(5, "priority", Int),
        one(6, path, Text),
    ]
}

static SELECTABLE_FIELD: Message = Message(&[one(1, "jsonPath", Text)]);

static CONVERSION: Message = Message(&[
    one(1, "strategy", Text),
    optional(2, "webhook", Part(&WEBHOOK_CONVERSION)),
]);

static OLD_CONVERSION: Message = Message(&[
    one(1, "strategy", Text),
    optional(2, "webhookClientConfig", Part(&WEBHOOK_CLIENT)),
    list(3, "conversionReviewVersions", Text),
]);

static WEBHOOK_CONVERSION: Message = Message(&[
    optional(2, "clientConfig", Part(&WEBHOOK_CLIENT)),
    list(3, "conversionReviewVersions", Text),
]);

static WEBHOOK_CLIENT: Message = Message(&[
    optional(1, "service", Part(&SERVICE_REFERENCE)),
    optional(2, "caBundle", Bytes),
    optional(3, "url", Text),
]);

static SERVICE_REFERENCE: Message = Message(&[
    one(1, "namespace", Text),
    one(2, "name", Text),
    optional(3, "path", Text),
    optional(4, "port", Int),
]);

static SUBRESOURCES: Message = Message(&[
    optional(1, "status", Part(&NOTHING)),
    optional(2, "scale", Part(&SCALE_PATHS)),
]);

static NOTHING: Message = Message(&[]);

static SCALE_PATHS: Message = Message(&[
    one(1, "specReplicasPath", Text),
    one(2, "statusReplicasPath", Text),
    optional(3, "labelSelectorPath", Text),
]);

static VALIDATION: Message = Message(&[optional(1, "openAPIV3Schema", Part(&SCHEMA))]);

pub(super) static SCHEMA: Message = Message(&[
    one(1, "id", Text),
    one(2, "$schema", Text),
    optional(3, "$ref", Text),
    one(4, "description", Text),
    one(5, "type", Text),
    one(6, "format", Text),
    one(7, "title", Text),
    optional(8, "default", Json),
    optional(9, "maximum", Double),
    one(10, "exclusiveMaximum", Bool),
    optional(11, "minimum", Double),
    one(12, "exclusiveMinimum", Bool),
    optional(13, "maxLength", Int),
    optional(14, "minLength", Int),
    one(15, "pattern", Text),
    optional(16, "maxItems", Int),
    optional(17, "minItems", Int),
    one(18, "uniqueItems", Bool),
    optional(19, "multipleOf", Double),
    list(20, "enum", Json),
    optional(21, "maxProperties", Int),
    optional(22, "minProperties", Int),
    list(23, "required", Text),
    optional(24, "items", Either(&SCHEMA_OR_LIST)),
    list(25, "allOf", Part(&SCHEMA)),
    list(26, "oneOf", Part(&SCHEMA)),
    list(27, "anyOf", Part(&SCHEMA)),
    optional(28, "not", Part(&SCHEMA)),
    map(29, "properties", Part(&SCHEMA)),
    optional(30, "additionalProperties", Either(&SCHEMA_OR_TRUTH)),
    map(31, "patternProperties", Part(&SCHEMA)),
    map(32, "dependencies", Either(&SCHEMA_OR_TEXTS)),
    optional(33, "additionalItems", Either(&SCHEMA_OR_TRUTH)),
    map(34, "definitions", Part(&SCHEMA)),
    optional(35, "externalDocs", Part(&EXTERNAL_DOCS)),
    optional(36, "example", Json),
    one(37, "nullable", Bool),
    optional(38, "x-kubernetes-preserve-unknown-fields", Bool),
    one(39, "x-kubernetes-embedded-resource", Bool),
    one(40, "x-kubernetes-int-or-string", Bool),
    list(41, "x-kubernetes-list-map-keys", Text),
    optional(42, "x-kubernetes-list-type", Text),
    optional(43, "x-kubernetes-map-type", Text),
    list(44, "x-kubernetes-validations", Part(&RULE)),
]);

static SCHEMA_OR_LIST: Message = Message(&[optional(1, "", Part(&SCHEMA)), list(2, "", Part(&SCHEMA))]);

static SCHEMA_OR_TRUTH: Message = Message(&[one(1, "", Bool), optional(2, "", Part(&SCHEMA))]);

static SCHEMA_OR_TEXTS: Message = Message(&[optional(1, "", Part(&SCHEMA)), list(2, "", Text)]);

static EXTERNAL_DOCS: Message = Message(&[one(1, "description", Text), one(2, "url", Text)]);

static RULE: Message = Message(&[
    one(1, "rule", Text),
    one(2, "message", Text),
    one(3, "messageExpression", Text),
    optional(4, "reason", Text),
    one(5, "fieldPath", Text),
    optional(6, "optionalOldSelf", Bool),
]);

static ACCESS_REVIEW: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&ACCESS_SPEC)),
    one(3, "status", Part(&ACCESS_STATUS)),
]);

static ACCESS_SPEC: Message = Message(&[
    optional(1, "resourceAttributes", Part(&RESOURCE_ATTRIBUTES)),
    optional(2, "nonResourceAttributes", Part(&PATH_ATTRIBUTES)),
]);

static RESOURCE_ATTRIBUTES: Message = Message(&[
    one(1, "namespace", Text),
    one(2, "verb", Text),
    one(3, "group", Text),
    one(4, "version", Text),
    one(5, "resource", Text),
    one(6, "subresource", Text),
    one(7, "name", Text),
    optional(8, "fieldSelector", Part(&SELECTOR)),
    optional(9, "labelSelector", Part(&SELECTOR)),
]);

static SELECTOR: Message = Message(&[
    one(1, "rawSelector", Text),
    list(2, "requirements", Part(&REQUIREMENT)),
]);

static REQUIREMENT: Message = Message(&[
    one(1, "key", Text),
    one(2, "operator", Text),
    list(3, "values", Text),
]);

static PATH_ATTRIBUTES: Message = Message(&[one(1, "path", Text), one(2, "verb", Text)]);

static ACCESS_STATUS: Message = Message(&[
    one(1, "allowed", Bool),
    one(2, "reason", Text),
    one(3, "evaluationError", Text),
    one(4, "denied", Bool),
]);

static RULES_REVIEW: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "spec", Part(&RULES_SPEC)),
    one(3, "status", Part(&RULES_STATUS)),
]);

static RULES_SPEC: Message = Message(&[one(1, "namespace", Text)]);

static RULES_STATUS: Message = Message(&[
    list(1, "resourceRules", Part(&RESOURCE_RULE)),
    list(2, "nonResourceRules", Part(&PATH_RULE)),
    one(3, "incomplete", Bool),
    one(4, "evaluationError", Text),
]);

static RESOURCE_RULE: Message = Message(&[
    list(1, "verbs", Text),
    list(2, "apiGroups", Text),
    list(3, "resources", Text),
    list(4, "resourceNames", Text),
]);

static PATH_RULE: Message = Message(&[list(1, "verbs", Text), list(2, "nonResourceURLs", Text)]);

static SELF_REVIEW: Message = Message(&[
    one(1, "metadata", Part(&OBJECT_META)),
    one(2, "status", Part(&SELF_STATUS)),
]);

static SELF_STATUS: Message = Message(&[one(1, "userInfo", Part(&USER_INFO))]);

static USER_INFO: Message = Message(&[
    one(1, "username", Text),
    one(2, "uid", Text),
    list(3, "groups", Text),
    map(4, "extra", Texts),
]);
