//! Ownership across the scale subresource, where `replicas` has another path and version.

use super::managed::{ManagedError, ManagedFields, ManagerFields};
use crate::fields::{FieldPath, Set};
use scantling_value::{Str, Value};
use std::collections::BTreeMap;

/// The version of `Scale`.
const SCALE_VERSION: &str = "autoscaling/v1";

fn replicas_in_scale() -> FieldPath {
    FieldPath::from_names(["spec", "replicas"])
}

/// The set of one path.
fn only(path: &FieldPath) -> Set {
    Set::from(path.0.as_slice())
}

/// The path of `replicas` in each version (`group/version`) of a kind; `None` for versions without scale.
#[derive(Clone, Debug, Default)]
pub struct ScaleMapping(pub BTreeMap<Str, Option<FieldPath>>);

/// The `managedFields` of a `Scale` from those of its object.
pub fn scale_to_subresource(parent: &[Value], mapping: &ScaleMapping) -> Result<Vec<Value>, ManagedError> {
    let ManagedFields { fields, mut times } = ManagedFields::decode(parent.to_vec())?;
    let mut out = ManagedFields::default();
    for (id, owned) in fields {
        let path = mapping.0.get(&owned.api_version).and_then(Option::as_ref);
        if path.is_some_and(|path| owned.fields.intersects(&only(path))) {
            if let Some(time) = times.remove(&id) {
                out.times.insert(id.clone(), time);
            }
            // The identifier stays the same, so that the way back finds the manager.
            let owned = ManagerFields::new(only(&replicas_in_scale()), SCALE_VERSION);
            out.fields.insert(id, owned);
        }
    }
    Ok(out.encode())
}

/// The `managedFields` of an object from those it had and those of its `Scale` after a write in a version.
pub fn scale_to_parent(
    parent: &[Value],
    scale: &[Value],
    mapping: &ScaleMapping,
    api_version: &str,
) -> Result<Vec<Value>, ManagedError> {
    let parent = ManagedFields::decode(parent.to_vec())?;
    let mut scale = ManagedFields::decode(scale.to_vec())?;
    let mut out = ManagedFields::default();
    for (id, mut owned) in parent.fields {
        // Entries in versions that no longer exist are dropped.
        let Some(path) = mapping.0.get(&owned.api_version) else {
            continue;
        };
        if let Some(path) = path
            && owned.fields.intersects(&only(path))
            && scale.fields.remove(&id).is_none()
        {
            // The scale lost this manager, so another one took the field.
            owned.fields.subtract(&only(path));
            if owned.fields.is_empty() {
                continue;
            }
        }
        if let Some(time) = parent.times.get(&id) {
            out.times.insert(id.clone(), *time);
        }
        out.fields.insert(id, owned);
    }
    let replicas = mapping.0.get(api_version).cloned().flatten();
    for (id, owned) in scale.fields {
        if !owned.fields.intersects(&only(&replicas_in_scale())) {
            continue;
        }
        // Times come from the parent only: a manager that is new to it has none.
        if let Some(time) = parent.times.get(&id) {
            out.times.insert(id.clone(), *time);
        }
        let set = replicas.iter().cloned().collect();
        out.fields.insert(id, ManagerFields::new(set, api_version));
    }
    Ok(out.encode())
}
