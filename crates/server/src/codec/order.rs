//! JSON of objects: the members of built-in kinds in the order of their declarations, those of custom resources by name.

use scantling_apitypes::TypeTable;
use scantling_value::{Value, json};

/// Writes an object in the order of its type, as JSON.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) {
    TypeTable::latest().write_object(value, out);
}

/// The first members of an object of a built-in kind, with the comma behind them.
pub(crate) fn write_type(kind: &str, api_version: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    json::write_key(&mut out, "kind");
    Value::from(kind).write_json(&mut out);
    out.push(b',');
    json::write_key(&mut out, "apiVersion");
    Value::from(api_version).write_json(&mut out);
    out.push(b',');
    out
}

/// Writes the metadata of a list.
pub(crate) fn write_list_meta(metadata: &Value, out: &mut Vec<u8>) {
    let table = TypeTable::latest();
    table.write_json(table.known("meta/v1", "ListMeta"), metadata, out);
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
    use scantling_value::Limits;

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
