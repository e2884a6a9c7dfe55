//! JSON of objects: the members of built-in kinds in the order of their declarations, those of custom resources by name.

use scantling_apitypes::TypeTable;
use scantling_value::Value;

/// Writes an object in the order of its type, as JSON.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    TypeTable::latest().write_object(value, out);
}

/// Encodes a list of objects of built-in kinds as JSON, in declaration order. The items have no kind, because
/// the list names it.
pub(crate) fn write_list(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: &[Value],
    out: &mut Vec<u8>,
) {
    let table = TypeTable::latest();
    out.extend_from_slice(b"{\"kind\":");
    Value::from(kind).write_json(out);
    out.extend_from_slice(b",\"apiVersion\":");
    Value::from(api_version).write_json(out);
    out.extend_from_slice(b",\"metadata\":");
    table.write_json(table.known("meta/v1", "ListMeta"), metadata, out);
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
    let table = TypeTable::latest();
    let definition = table.kind_of(item);
    // Types outside the table have metadata, too.
    let definition = definition.unwrap_or_else(|| table.known("meta/v1", "PartialObjectMetadata"));
    table.write_item(definition, item, out);
}

/// Writes a row of a table.
pub(crate) fn write_row(row: &Value, out: &mut Vec<u8>) {
    let table = TypeTable::latest();
    table.write_json(table.known("meta/v1", "TableRow"), row, out);
}

/// The text of an object in declaration order, for quoting.
pub(crate) fn to_json(value: &Value) -> String {
    let mut out = Vec::new();
    write(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The text of an object's metadata in the order of its type.
pub(crate) fn metadata_text(metadata: &Value) -> String {
    let table = TypeTable::latest();
    let mut out = Vec::new();
    table.write_json(table.known("meta/v1", "ObjectMeta"), metadata, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::{Limits, json};

    #[test]
    fn definitions_have_declared_field_order() {
        let given = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"generation":1,"name":"a"},"spec":{"group":"g","names":{"kind":"A","plural":"as"},"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"b":{"description":"d","type":"string"},"a":{"items":{"default":1,"type":"integer"},"type":"array"}},"type":"object"}},"served":true}]},"status":{"acceptedNames":{},"conditions":[{"message":"m","status":"True","type":"T"}]}}"#;
        let want = r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"a","generation":1},"spec":{"group":"g","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer","default":1}},"b":{"description":"d","type":"string"}}}}}]},"status":{"conditions":[{"type":"T","status":"True","message":"m"}],"acceptedNames":{}}}"#;
        assert_eq!(
            to_json(&json::decode(given.as_bytes(), Limits::SAFE).unwrap()),
            want
        );
    }

    #[test]
    fn builtin_lists_have_declared_field_order() {
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
    fn custom_resources_are_sorted_by_name() {
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
