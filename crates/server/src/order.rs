//! The order in which a server writes the members of its own types: that of their declaration, not of the alphabet.
//! Custom resources have no declaration; their members come by name.

mod definition;

use scantling_value::{Map, Value};

/// The order of a type's members.
enum Order {
    /// The members, in order, and the types of those that have one. Members that are not listed follow by name.
    Members(&'static [(&'static str, Option<&'static Order>)]),
    /// Those of a map, by name; all are of one type.
    Each(&'static Order),
}

const LIST_META: Order = Order::Members(&[
    ("resourceVersion", None),
    ("continue", None),
    ("remainingItemCount", None),
]);
const MANAGER: Order = Order::Members(&[
    ("manager", None),
    ("operation", None),
    ("apiVersion", None),
    ("time", None),
    ("fieldsType", None),
    ("fieldsV1", None),
    ("subresource", None),
]);
const OWNER: Order = Order::Members(&[
    ("apiVersion", None),
    ("kind", None),
    ("name", None),
    ("uid", None),
    ("controller", None),
    ("blockOwnerDeletion", None),
]);
const OBJECT_META: Order = Order::Members(&[
    ("name", None),
    ("generateName", None),
    ("namespace", None),
    ("uid", None),
    ("resourceVersion", None),
    ("generation", None),
    ("creationTimestamp", None),
    ("deletionTimestamp", None),
    ("deletionGracePeriodSeconds", None),
    ("labels", None),
    ("annotations", None),
    ("ownerReferences", Some(&OWNER)),
    ("finalizers", None),
    ("managedFields", Some(&MANAGER)),
]);
const CAUSE: Order = Order::Members(&[("reason", None), ("message", None), ("field", None)]);
const DETAILS: Order = Order::Members(&[
    ("name", None),
    ("group", None),
    ("kind", None),
    ("uid", None),
    ("causes", Some(&CAUSE)),
    ("retryAfterSeconds", None),
]);
const STATUS: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&LIST_META)),
    ("status", None),
    ("message", None),
    ("reason", None),
    ("details", Some(&DETAILS)),
    ("code", None),
]);
const OBJECT: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("spec", None),
    ("status", None),
]);
const REFERENCE: Order = Order::Members(&[
    ("kind", None),
    ("namespace", None),
    ("name", None),
    ("uid", None),
    ("apiVersion", None),
    ("resourceVersion", None),
    ("fieldPath", None),
]);
const EVENT: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("involvedObject", Some(&REFERENCE)),
    ("reason", None),
    ("message", None),
    ("source", None),
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("count", None),
    ("type", None),
    ("eventTime", None),
    ("series", None),
    ("action", None),
    ("related", Some(&REFERENCE)),
    ("reportingComponent", None),
    ("reportingInstance", None),
]);
const NEW_EVENT: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("eventTime", None),
    ("series", None),
    ("reportingController", None),
    ("reportingInstance", None),
    ("action", None),
    ("reason", None),
    ("regarding", Some(&REFERENCE)),
    ("related", Some(&REFERENCE)),
    ("note", None),
    ("type", None),
    ("deprecatedSource", None),
    ("deprecatedFirstTimestamp", None),
    ("deprecatedLastTimestamp", None),
    ("deprecatedCount", None),
]);
const LEASE_SPEC: Order = Order::Members(&[
    ("holderIdentity", None),
    ("leaseDurationSeconds", None),
    ("acquireTime", None),
    ("renewTime", None),
    ("leaseTransitions", None),
    ("strategy", None),
    ("preferredHolder", None),
]);
const LEASE: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("spec", Some(&LEASE_SPEC)),
]);
const CONFIG_MAP: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("immutable", None),
    ("data", None),
    ("binaryData", None),
]);
const SECRET: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&OBJECT_META)),
    ("immutable", None),
    ("data", None),
    ("stringData", None),
    ("type", None),
]);
const GROUP: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("name", None),
    ("versions", None),
    ("preferredVersion", None),
    ("serverAddressByClientCIDRs", None),
]);
const GROUPS: Order = Order::Members(&[("kind", None), ("apiVersion", None), ("groups", Some(&GROUP))]);
const VERSIONS: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("versions", None),
    ("serverAddressByClientCIDRs", None),
]);
const RESOURCE: Order = Order::Members(&[
    ("name", None),
    ("singularName", None),
    ("namespaced", None),
    ("group", None),
    ("version", None),
    ("kind", None),
    ("verbs", None),
    ("shortNames", None),
    ("categories", None),
    ("storageVersionHash", None),
]);
const RESOURCES: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("groupVersion", None),
    ("resources", Some(&RESOURCE)),
]);
const METADATA_LIST: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&LIST_META)),
    ("items", Some(&OBJECT)),
]);
const COLUMN: Order = Order::Members(&[
    ("name", None),
    ("type", None),
    ("format", None),
    ("description", None),
    ("priority", None),
]);
const ROW: Order = Order::Members(&[("cells", None), ("object", None)]);
const TABLE: Order = Order::Members(&[
    ("kind", None),
    ("apiVersion", None),
    ("metadata", Some(&LIST_META)),
    ("columnDefinitions", Some(&COLUMN)),
    ("rows", Some(&ROW)),
]);

/// The order of an object, if its type has one.
fn of(value: &Value) -> Option<&'static Order> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(match (text("apiVersion"), text("kind")) {
        ("v1", "Status") => &STATUS,
        ("", "APIVersions") => &VERSIONS,
        ("v1", "APIGroup") => &GROUP,
        ("v1", "APIGroupList") => &GROUPS,
        ("" | "v1", "APIResourceList") => &RESOURCES,
        ("v1", "Event") => &EVENT,
        ("events.k8s.io/v1", "Event") => &NEW_EVENT,
        ("v1", "ConfigMap") => &CONFIG_MAP,
        ("v1", "Secret") => &SECRET,
        ("coordination.k8s.io/v1", "Lease") => &LEASE,
        ("autoscaling/v1", "Scale")
        | ("v1", "Namespace")
        | ("authentication.k8s.io/v1", "SelfSubjectReview")
        | ("authorization.k8s.io/v1", "SelfSubjectAccessReview" | "SelfSubjectRulesReview")
        | ("apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition") => &OBJECT,
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "Table") => &TABLE,
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "PartialObjectMetadata") => &OBJECT,
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "PartialObjectMetadataList") => &METADATA_LIST,
        _ => return None,
    })
}

/// Writes an object in the order of its type, as JSON.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    match of(value) {
        Some(order) => ordered(value, order, out),
        None => value.write_json(out),
    }
}

/// Writes a list of objects of built-in kinds as JSON: in the order of its type, and its items in theirs. They do not
/// say which kind they are, since the list does.
pub(crate) fn write_list(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: &[Value],
    out: &mut Vec<u8>,
) {
    let head: [(&str, &Value, _); 3] = [
        ("kind", &kind.into(), None),
        ("apiVersion", &api_version.into(), None),
        ("metadata", metadata, Some(&LIST_META)),
    ];
    object(head.into_iter(), out);
    // What comes last stays open for the items.
    out.pop();
    out.extend_from_slice(b",\"items\":[");
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_list_item(item, out);
    }
    out.extend_from_slice(b"]}");
}

/// Writes an item of such a list.
pub(crate) fn write_list_item(item: &Value, out: &mut Vec<u8>) {
    let members = members(item, of(item).unwrap_or(&OBJECT));
    object(
        members.filter(|(key, ..)| !matches!(*key, "kind" | "apiVersion")),
        out,
    );
}

/// Writes a row of a table.
pub(crate) fn write_row(row: &Value, out: &mut Vec<u8>) {
    ordered(row, &ROW, out);
}

/// The members of an object in order.
fn members<'v>(
    value: &'v Value,
    order: &'static Order,
) -> impl Iterator<Item = (&'v str, &'v Value, Option<&'static Order>)> {
    let (known, each): (&'static [_], _) = match order {
        Order::Members(known) => (known, None),
        Order::Each(order) => (&[], Some(*order)),
    };
    let all = || value.as_object().into_iter().flat_map(Map::iter);
    let listed = known
        .iter()
        .filter_map(move |(k, o): &(&'static str, _)| Some((*k, value.get(k)?, *o)));
    let others = all().map(|(k, v)| (k.as_str(), v));
    let others = others.filter(move |(k, _)| known.iter().all(|(listed, _)| listed != k));
    listed.chain(others.map(move |(k, v)| (k, v, each)))
}

fn ordered(value: &Value, order: &'static Order, out: &mut Vec<u8>) {
    match value {
        Value::Object(_) => object(members(value, order), out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                ordered(item, order, out);
            }
            out.push(b']');
        }
        scalar => scalar.write_json(out),
    }
}

fn object<'v>(
    members: impl Iterator<Item = (&'v str, &'v Value, Option<&'static Order>)>,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (i, (key, value, order)) in members.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        Value::from(key).write_json(out);
        out.push(b':');
        match order {
            Some(order) => ordered(value, order, out),
            // A member may be of a type of its own, such as the object of a row.
            None => write(value, out),
        }
    }
    out.push(b'}');
}

/// The text of an object in the order of its type, to be quoted. Definitions are in order here alone: they are large, and
/// read by nobody who looks at the order.
pub(crate) fn text(value: &Value) -> String {
    let mut out = Vec::new();
    match value.get("apiVersion").and_then(Value::as_str) {
        Some("apiextensions.k8s.io/v1") => ordered(value, &definition::DEFINITION, &mut out),
        _ => write(value, &mut out),
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The text of an object's metadata in the order of its type.
pub(crate) fn metadata_text(metadata: &Value) -> String {
    let mut out = Vec::new();
    ordered(metadata, &OBJECT_META, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

    #[test]
    fn definitions_are_quoted_as_declared() {
        let given = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"generation":1,"name":"a"},"spec":{"group":"g","names":{"kind":"A","plural":"as"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"b":{"description":"d","type":"string"},"a":{"items":{"default":1,"type":"integer"},"type":"array"}},"type":"object"}},"served":true}]},"status":{"acceptedNames":{},"conditions":[{"message":"m","status":"True","type":"T"}]}}"#;
        let want = r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"a","generation":1},"spec":{"group":"g","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","default":1}},"b":{"description":"d","type":"string"}}}}}]},"status":{"conditions":[{"type":"T","status":"True","message":"m"}],"acceptedNames":{}}}"#;
        assert_eq!(text(&json::decode(given.as_bytes(), Limits::SAFE).unwrap()), want);
    }

    #[test]
    fn lists_of_built_in_kinds_are_written_as_declared() {
        let items =
            r#"[{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"},"metadata":{"uid":"u","name":"a"}}]"#;
        let items = json::decode(items.as_bytes(), Limits::SAFE).unwrap();
        let metadata = json::decode(br#"{"continue":"c","resourceVersion":"1"}"#, Limits::SAFE).unwrap();
        let mut out = Vec::new();
        write_list(
            "v1",
            "ConfigMapList",
            &metadata,
            items.as_array().unwrap(),
            &mut out,
        );
        let want = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"c"},"items":[{"metadata":{"name":"a","uid":"u"},"data":{"a":"b"}}]}"#;
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn own_types_are_written_as_declared_and_others_by_name() {
        let table = [
            (
                r#"{"apiVersion":"v1","code":404,"details":{"causes":[{"field":"f","message":"m","reason":"r"}],"name":"a"},"kind":"Status","metadata":{}}"#,
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"details":{"name":"a","causes":[{"reason":"r","message":"m","field":"f"}]},"code":404}"#,
            ),
            (
                r#"{"apiVersion":"example.com/v1","kind":"Status","metadata":{"name":"a"}}"#,
                r#"{"apiVersion":"example.com/v1","kind":"Status","metadata":{"name":"a"}}"#,
            ),
        ];
        for (given, want) in table {
            let value = json::decode(given.as_bytes(), Limits::SAFE).unwrap();
            let mut out = Vec::new();
            write(&value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }
}
