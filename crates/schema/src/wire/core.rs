//! The fields of the core kinds that every server has: Namespace, Event, ConfigMap, Secret, Lease and Scale.

use super::tables::{OBJECT_META, TEXT, always, filled, set};
use super::{Struct, Type};

/// The options of a deletion.
pub(crate) static DELETE_OPTIONS: Struct = Struct {
    name: "v1.DeleteOptions",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        set("gracePeriodSeconds", Type::Int64),
        set("preconditions", Type::Struct(&PRECONDITIONS)),
        set("orphanDependents", Type::Bool),
        set("propagationPolicy", Type::Text("v1.DeletionPropagation")),
        filled("dryRun", Type::List(None, &TEXT)),
        set("ignoreStoreReadErrorWithClusterBreakingPotential", Type::Bool),
    ],
};

static PRECONDITIONS: Struct = Struct {
    name: "v1.Preconditions",
    fields: &[set("uid", Type::Text("types.UID")), set("resourceVersion", TEXT)],
};

/// A namespace.
pub(crate) static NAMESPACE: Struct = Struct {
    name: "v1.Namespace",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        filled("metadata", Type::Struct(&OBJECT_META)),
        always("spec", Type::Struct(&NAMESPACE_SPEC)),
        always("status", Type::Struct(&NAMESPACE_STATUS)),
    ],
};

static NAMESPACE_SPEC: Struct = Struct {
    name: "v1.NamespaceSpec",
    fields: &[filled(
        "finalizers",
        Type::List(None, &Type::Text("v1.FinalizerName")),
    )],
};

static NAMESPACE_STATUS: Struct = Struct {
    name: "v1.NamespaceStatus",
    fields: &[
        filled("phase", Type::Text("v1.NamespacePhase")),
        filled(
            "conditions",
            Type::List(None, &Type::Struct(&NAMESPACE_CONDITION)),
        ),
    ],
};

static NAMESPACE_CONDITION: Struct = Struct {
    name: "v1.NamespaceCondition",
    fields: &[
        always("type", Type::Text("v1.NamespaceConditionType")),
        always("status", Type::Text("v1.ConditionStatus")),
        always("lastTransitionTime", Type::Time),
        filled("reason", TEXT),
        filled("message", TEXT),
    ],
};

/// A config map.
pub(crate) static CONFIG_MAP: Struct = Struct {
    name: "v1.ConfigMap",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        filled("metadata", Type::Struct(&OBJECT_META)),
        set("immutable", Type::Bool),
        filled("data", Type::Map(None, &TEXT)),
        filled("binaryData", Type::Map(None, &Type::Bytes)),
    ],
};

/// A secret.
pub(crate) static SECRET: Struct = Struct {
    name: "v1.Secret",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        filled("metadata", Type::Struct(&OBJECT_META)),
        set("immutable", Type::Bool),
        filled("data", Type::Map(None, &Type::Bytes)),
        filled("stringData", Type::Map(None, &TEXT)),
        filled("type", Type::Text("v1.SecretType")),
    ],
};

/// A lease.
pub(crate) static LEASE: Struct = Struct {
    name: "v1.Lease",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        filled("metadata", Type::Struct(&OBJECT_META)),
        always("spec", Type::Struct(&LEASE_SPEC)),
    ],
};

static LEASE_SPEC: Struct = Struct {
    name: "v1.LeaseSpec",
    fields: &[
        set("holderIdentity", TEXT),
        set("leaseDurationSeconds", Type::Int32),
        set("acquireTime", Type::MicroTime),
        set("renewTime", Type::MicroTime),
        set("leaseTransitions", Type::Int32),
        set("strategy", Type::Text("v1.CoordinatedLeaseStrategy")),
        set("preferredHolder", TEXT),
    ],
};

/// A scale.
pub(crate) static SCALE: Struct = Struct {
    name: "v1.Scale",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        filled("metadata", Type::Struct(&OBJECT_META)),
        filled("spec", Type::Struct(&SCALE_SPEC)),
        filled("status", Type::Struct(&SCALE_STATUS)),
    ],
};

static SCALE_SPEC: Struct = Struct {
    name: "v1.ScaleSpec",
    fields: &[filled("replicas", Type::Int32)],
};

static SCALE_STATUS: Struct = Struct {
    name: "v1.ScaleStatus",
    fields: &[always("replicas", Type::Int32), filled("selector", TEXT)],
};

/// An event.
pub(crate) static EVENT: Struct = Struct {
    name: "v1.Event",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        always("metadata", Type::Struct(&OBJECT_META)),
        always("involvedObject", Type::Struct(&OBJECT_REFERENCE)),
        filled("reason", TEXT),
        filled("message", TEXT),
        always("source", Type::Struct(&EVENT_SOURCE)),
        always("firstTimestamp", Type::Time),
        always("lastTimestamp", Type::Time),
        filled("count", Type::Int32),
        filled("type", TEXT),
        always("eventTime", Type::MicroTime),
        set("series", Type::Struct(&EVENT_SERIES)),
        filled("action", TEXT),
        set("related", Type::Struct(&OBJECT_REFERENCE)),
        always("reportingComponent", TEXT),
        always("reportingInstance", TEXT),
    ],
};

static OBJECT_REFERENCE: Struct = Struct {
    name: "v1.ObjectReference",
    fields: &[
        filled("kind", TEXT),
        filled("namespace", TEXT),
        filled("name", TEXT),
        filled("uid", Type::Text("types.UID")),
        filled("apiVersion", TEXT),
        filled("resourceVersion", TEXT),
        filled("fieldPath", TEXT),
    ],
};

static EVENT_SOURCE: Struct = Struct {
    name: "v1.EventSource",
    fields: &[filled("component", TEXT), filled("host", TEXT)],
};

static EVENT_SERIES: Struct = Struct {
    name: "v1.EventSeries",
    fields: &[
        filled("count", Type::Int32),
        always("lastObservedTime", Type::MicroTime),
    ],
};

/// An event of the group that events have for themselves.
pub(crate) static NEW_EVENT: Struct = Struct {
    name: "v1.Event",
    fields: &[
        filled("kind", TEXT),
        filled("apiVersion", TEXT),
        always("metadata", Type::Struct(&OBJECT_META)),
        always("eventTime", Type::MicroTime),
        set("series", Type::Struct(&NEW_EVENT_SERIES)),
        filled("reportingController", TEXT),
        filled("reportingInstance", TEXT),
        filled("action", TEXT),
        filled("reason", TEXT),
        always("regarding", Type::Struct(&OBJECT_REFERENCE)),
        set("related", Type::Struct(&OBJECT_REFERENCE)),
        filled("note", TEXT),
        filled("type", TEXT),
        always("deprecatedSource", Type::Struct(&EVENT_SOURCE)),
        always("deprecatedFirstTimestamp", Type::Time),
        always("deprecatedLastTimestamp", Type::Time),
        filled("deprecatedCount", Type::Int32),
    ],
};

static NEW_EVENT_SERIES: Struct = Struct {
    name: "v1.EventSeries",
    fields: &[
        always("count", Type::Int32),
        always("lastObservedTime", Type::MicroTime),
    ],
};
