//! Changes to members of objects.

use scantling_value::{Map, Value};

/// The object in a member; made if it is absent or null.
pub(crate) fn object_in<'m>(object: &'m mut Map, key: &str) -> Option<&'m mut Map> {
    let value = object.get_or_insert_with(key, || Value::Null);
    if value.is_null() {
        *value = Map::new().into();
    }
    value.as_object_mut()
}

/// The objects in the list of a member; none where it is absent.
pub(crate) fn objects_in<'m>(object: &'m mut Map, key: &str) -> impl Iterator<Item = &'m mut Map> {
    let list = object.get_mut(key).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter_map(Value::as_object_mut)
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

/// Sets a member that is absent or null.
pub(crate) fn default_to(object: &mut Map, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key, value.into());
    }
}

/// Sets a string that is absent or empty.
pub(crate) fn default_to_text(object: &mut Map, key: &str, text: &str) {
    if object
        .get(key)
        .is_none_or(|v| v.is_null() || v.as_str() == Some(""))
    {
        object.insert(key, text.into());
    }
}
