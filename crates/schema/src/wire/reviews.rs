//! The fields of reviews: questions to a server that it answers and does not store.

use super::tables::{OBJECT_META, TEXT, always, filled, set};
use super::{Struct, Type};

static TEXTS: Type = Type::List(None, &TEXT);

/// May I do this?
pub(crate) static ACCESS_REVIEW: Struct = Struct {
    name: "v1.SelfSubjectAccessReview",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        always("metadata", Type::Struct(&OBJECT_META)),
        always("spec", Type::Struct(&ACCESS_SPEC)),
        always("status", Type::Struct(&ACCESS_STATUS)),
    ],
};

static ACCESS_SPEC: Struct = Struct {
    name: "v1.SelfSubjectAccessReviewSpec",
    fields: &[
        set("resourceAttributes", Type::Struct(&RESOURCE)),
        set("nonResourceAttributes", Type::Struct(&NON_RESOURCE)),
    ],
};

static RESOURCE: Struct = Struct {
    name: "v1.ResourceAttributes",
    fields: &[
        filled("namespace", TEXT),
        filled("verb", TEXT),
        filled("group", TEXT),
        filled("version", TEXT),
        filled("resource", TEXT),
        filled("subresource", TEXT),
        filled("name", TEXT),
        set("fieldSelector", Type::Struct(&FIELD_SELECTOR)),
        set("labelSelector", Type::Struct(&LABEL_SELECTOR)),
    ],
};

static FIELD_SELECTOR: Struct = Struct {
    name: "v1.FieldSelectorAttributes",
    fields: &[
        filled("rawSelector", TEXT),
        filled(
            "requirements",
            Type::List(None, &Type::Struct(&FIELD_REQUIREMENT)),
        ),
    ],
};

static FIELD_REQUIREMENT: Struct = Struct {
    name: "v1.FieldSelectorRequirement",
    fields: &[
        always("key", TEXT),
        always("operator", Type::Text("v1.FieldSelectorOperator")),
        filled("values", Type::List(None, &TEXT)),
    ],
};

static LABEL_SELECTOR: Struct = Struct {
    name: "v1.LabelSelectorAttributes",
    fields: &[
        filled("rawSelector", TEXT),
        filled(
            "requirements",
            Type::List(None, &Type::Struct(&LABEL_REQUIREMENT)),
        ),
    ],
};

static LABEL_REQUIREMENT: Struct = Struct {
    name: "v1.LabelSelectorRequirement",
    fields: &[
        always("key", TEXT),
        always("operator", Type::Text("v1.LabelSelectorOperator")),
        filled("values", Type::List(None, &TEXT)),
    ],
};

static NON_RESOURCE: Struct = Struct {
    name: "v1.NonResourceAttributes",
    fields: &[filled("path", TEXT), filled("verb", TEXT)],
};

static ACCESS_STATUS: Struct = Struct {
    name: "v1.SubjectAccessReviewStatus",
    fields: &[
        always("allowed", Type::Bool),
        filled("denied", Type::Bool),
        filled("reason", TEXT),
        filled("evaluationError", TEXT),
    ],
};

/// What may I do in a namespace?
pub(crate) static RULES_REVIEW: Struct = Struct {
    name: "v1.SelfSubjectRulesReview",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        always("metadata", Type::Struct(&OBJECT_META)),
        always("spec", Type::Struct(&RULES_SPEC)),
        filled("status", Type::Struct(&RULES_STATUS)),
    ],
};

static RULES_SPEC: Struct = Struct {
    name: "v1.SelfSubjectRulesReviewSpec",
    fields: &[filled("namespace", TEXT)],
};

static RULES_STATUS: Struct = Struct {
    name: "v1.SubjectRulesReviewStatus",
    fields: &[
        always("resourceRules", Type::List(None, &Type::Struct(&RESOURCE_RULE))),
        always(
            "nonResourceRules",
            Type::List(None, &Type::Struct(&NON_RESOURCE_RULE)),
        ),
        always("incomplete", Type::Bool),
        filled("evaluationError", TEXT),
    ],
};

static RESOURCE_RULE: Struct = Struct {
    name: "v1.ResourceRule",
    fields: &[
        always("verbs", Type::List(None, &TEXT)),
        filled("apiGroups", Type::List(None, &TEXT)),
        filled("resources", Type::List(None, &TEXT)),
        filled("resourceNames", Type::List(None, &TEXT)),
    ],
};

static NON_RESOURCE_RULE: Struct = Struct {
    name: "v1.NonResourceRule",
    fields: &[
        always("verbs", Type::List(None, &TEXT)),
        filled("nonResourceURLs", Type::List(None, &TEXT)),
    ],
};

/// Who am I?
pub(crate) static SELF_REVIEW: Struct = Struct {
    name: "v1.SelfSubjectReview",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        always("metadata", Type::Struct(&OBJECT_META)),
        filled("status", Type::Struct(&SELF_STATUS)),
    ],
};

static SELF_STATUS: Struct = Struct {
    name: "v1.SelfSubjectReviewStatus",
    fields: &[filled("userInfo", Type::Struct(&USER_INFO))],
};

static USER_INFO: Struct = Struct {
    name: "v1.UserInfo",
    fields: &[
        filled("username", TEXT),
        filled("uid", TEXT),
        filled("groups", Type::List(None, &TEXT)),
        filled("extra", Type::Map(None, &TEXTS)),
    ],
};

/// What is this object in another version?
pub(crate) static CONVERSION_REVIEW: Struct = Struct {
    name: "~ConversionReview",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        set("request", Type::Struct(&CONVERSION_REQUEST)),
        set("response", Type::Struct(&CONVERSION_RESPONSE)),
    ],
};

/// Objects of any kind, as they are written.
const RAW_OBJECTS: Option<&str> = Some("[]runtime.RawExtension");

static CONVERSION_REQUEST: Struct = Struct {
    name: "~ConversionRequest",
    fields: &[
        always("uid", Type::Text("types.UID")),
        always("desiredAPIVersion", TEXT),
        always("objects", Type::List(RAW_OBJECTS, &Type::Any)),
    ],
};

static CONVERSION_RESPONSE: Struct = Struct {
    name: "~ConversionResponse",
    fields: &[
        always("uid", Type::Text("types.UID")),
        always("convertedObjects", Type::List(RAW_OBJECTS, &Type::Any)),
        always("result", Type::Struct(&STATUS)),
    ],
};

static STATUS: Struct = Struct {
    name: "v1.Status",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        always("metadata", Type::Struct(&LIST_META)),
        filled("status", TEXT),
        filled("message", TEXT),
        filled("reason", Type::Text("v1.StatusReason")),
        set("details", Type::Struct(&STATUS_DETAILS)),
        filled("code", Type::Int32),
    ],
};

static LIST_META: Struct = Struct {
    name: "v1.ListMeta",
    fields: &[
        filled("selfLink", TEXT),
        filled("resourceVersion", TEXT),
        filled("continue", TEXT),
        set("remainingItemCount", Type::Int64),
    ],
};

static STATUS_DETAILS: Struct = Struct {
    name: "v1.StatusDetails",
    fields: &[
        filled("name", TEXT),
        filled("group", TEXT),
        filled("kind", TEXT),
        filled("uid", Type::Text("types.UID")),
        filled("causes", Type::List(None, &Type::Struct(&STATUS_CAUSE))),
        filled("retryAfterSeconds", Type::Int32),
    ],
};

static STATUS_CAUSE: Struct = Struct {
    name: "v1.StatusCause",
    fields: &[
        filled("reason", Type::Text("v1.CauseType")),
        filled("message", TEXT),
        filled("field", TEXT),
    ],
};
