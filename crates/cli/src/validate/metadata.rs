//! The metadata of objects: what a request adds to it, and what only the server knows.

use scantling_admit::Resource;
use scantling_schema::meta::Scope;
use scantling_value::{Map, Value};

/// Adds what a request says outside the object: the namespace of its path, and the version that it updates.
pub(crate) fn apply_request_context(resource: &Resource, object: &mut Value, version: Option<&Value>) {
    complete_metadata(resource.scope, object, version);
}

/// The same for a kind of a scope.
pub(crate) fn complete_metadata(scope: Scope, object: &mut Value, version: Option<&Value>) {
    let Some(members) = object.as_object_mut() else {
        return;
    };
    // kube-apiserver decodes `metadata: null` as empty metadata.
    let metadata = members.get_or_insert_with("metadata", || Value::Null);
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    match scope {
        // The path of the request would name it; kubectl uses `default` for a file without a namespace.
        Scope::Namespaced => {
            metadata.get_or_insert_with("namespace", || "default".into());
        }
        // The path has no namespace, and a cluster removes it.
        Scope::Cluster => {
            metadata.remove("namespace");
        }
    }
    // A version in the file is of the past and would only conflict.
    if let Some(version) = version {
        metadata.insert("resourceVersion", version.clone());
    }
}

/// The metadata that only the server knows.
pub(super) struct UnknowableMetadata(pub(super) Vec<&'static str>);

impl UnknowableMetadata {
    /// Returns those of an object, and of the stored object that it replaces.
    pub(super) fn new(object: &Value, old: Option<&Value>) -> Self {
        let has = |object: &Value, field: &str| object.at(["metadata", field]).is_some();
        // The server sets both, whatever the file contains.
        let mut fields = vec!["resourceVersion", "managedFields"];
        match old {
            None => fields.extend(["uid", "creationTimestamp"]),
            // The stored object has them even if its file does not.
            Some(old) => {
                let kept = ["uid", "creationTimestamp", "generation"];
                fields.extend(kept.into_iter().filter(|field| !has(old, field)));
            }
        }
        // The request names the object; names may be generated.
        fields.extend(
            ["namespace", "name"]
                .into_iter()
                .filter(|field| !has(object, field)),
        );
        UnknowableMetadata(fields)
    }
}
