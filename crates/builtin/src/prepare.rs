//! Preparation steps and defaults that many kinds share.

use crate::checks::update::{keep, same_of};
use crate::{Operation, Subresource, Write};
use scantling_apitypes::TypeTable;
use scantling_schema::meta;
use scantling_value::{Map, Value};

/// A struct of the table of API types: its package and its name.
pub(crate) type StructName = (&'static str, &'static str);

/// Prepares an object with a spec, a status and a generation.
///
/// A create drops the status. An update keeps the status and counts changes of the spec, which is of the given type. A
/// status update keeps the spec.
pub(crate) fn spec_and_status(object: &mut Map, write: &Write<'_>, spec: StructName) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            clear_status(object, spec);
            set_generation(object, 1);
        }
        (Operation::Update(old), Subresource::Status) => keep(object, old, "spec"),
        (Operation::Update(old), _) => {
            keep(object, old, "status");
            let changed = is_changed(object, old, "spec", spec);
            count_change(object, old, changed);
        }
    }
}

/// Replaces the status by one that says nothing. Its type is named like that of the spec.
pub(crate) fn clear_status(object: &mut Map, (package, spec): StructName) {
    let table = TypeTable::latest();
    let name = spec.replace("Spec", "Status");
    let status = table
        // Go writes fields that are not optional, even if they are zero.
        .find(package, &name)
        .map(|definition| table.canonical(definition, Map::new()));
    object.insert("status", status.unwrap_or_default().into());
}

/// Returns whether an update changes a member, which is of the given type.
pub(crate) fn is_changed(object: &Map, old: &Value, member: &str, ty: StructName) -> bool {
    !same_of(ty.0, ty.1, object.get(member), old.get(member))
}

/// Sets `metadata.generation` to the stored one, incremented if the object changed.
pub(crate) fn count_change(object: &mut Map, old: &Value, changed: bool) {
    let generation = meta::generation(old.get("metadata"));
    set_generation(object, generation + i64::from(changed));
}

/// Sets `metadata.generation`: 1 on a create; on an update it increases if the spec, which is of the given type, changes.
pub(crate) fn count_spec_changes(object: &mut Map, write: &Write<'_>, spec: StructName) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        Operation::Update(old) => {
            let changed = is_changed(object, old, "spec", spec);
            count_change(object, old, changed);
        }
    }
}

/// Sets `metadata.generation`; 0 leaves it out.
pub(crate) fn set_generation(object: &mut Map, generation: i64) {
    if let Some(metadata) = object_in(object, "metadata") {
        // Go omits a generation of 0.
        match generation {
            0 => drop(metadata.remove("generation")),
            _ => drop(metadata.insert("generation", Value::Int(generation))),
        }
    }
}

/// Restores the metadata that an update of the status may not change, in kinds that say so.
pub(crate) fn keep_metadata_of_status(object: &mut Map, old: &Value) {
    for member in ["labels", "annotations", "finalizers", "ownerReferences"] {
        keep_metadata(object, old, member);
    }
}

/// Restores a member of the stored object's metadata.
pub(crate) fn keep_metadata(object: &mut Map, old: &Value, member: &str) {
    let none = Value::Null;
    if let Some(metadata) = object_in(object, "metadata") {
        keep(metadata, old.get("metadata").unwrap_or(&none), member);
    }
}

/// Appends to the list in a member; the list is made if it is absent or null.
pub(crate) fn append(object: &mut Map, key: &str, element: impl Into<Value>) {
    let value = object.get_or_insert_with(key, || Value::Null);
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    if let Some(list) = value.as_array_mut() {
        list.push(element.into());
    }
}

/// The object in a member; made if it is absent.
pub(crate) fn object_in<'m>(object: &'m mut Map, member: &str) -> Option<&'m mut Map> {
    let value = object.get_or_insert_with(member, || Value::Null);
    if value.is_null() {
        *value = Map::new().into();
    }
    value.as_object_mut()
}

/// The object in a member, if the member is set.
pub(crate) fn object_if_set<'m>(object: &'m mut Map, member: &str) -> Option<&'m mut Map> {
    object.get_mut(member).and_then(Value::as_object_mut)
}

/// The objects in a list.
pub(crate) fn objects_in<'m>(object: &'m mut Map, member: &str) -> impl Iterator<Item = &'m mut Map> {
    let items = object.get_mut(member).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// Sets a member that is absent.
pub(crate) fn set_default(object: &mut Map, member: &str, value: impl Into<Value>) {
    if object.get(member).is_none_or(Value::is_null) {
        object.insert(member, value.into());
    }
}

/// Sets a string that is absent or empty.
pub(crate) fn set_default_text(object: &mut Map, member: &str, text: &str) {
    if object.get_str(member).is_empty() {
        object.insert(member, text.into());
    }
}

/// Sets an empty list to null, as it is read back from the store: the encoding of stored objects has no empty lists.
pub(crate) fn forget_empty_list(object: &mut Map, member: &str) {
    if let Some(list) = object.get_mut(member)
        && list.as_array().is_some_and(<[Value]>::is_empty)
    {
        *list = Value::Null;
    }
}

/// An update of the status keeps all metadata but the field managers.
pub(crate) fn keep_all_metadata(object: &mut Map, write: &Write<'_>) {
    if let (Operation::Update(old), Subresource::Status) = (write.operation, write.subresource)
        && let Some(metadata) = object_in(object, "metadata")
    {
        let managers = metadata.remove("managedFields");
        *metadata = old
            .get("metadata")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        match managers {
            Some(managers) => drop(metadata.insert("managedFields", managers)),
            None => drop(metadata.remove("managedFields")),
        }
    }
}
