//! The core algorithms of updates and applies.

use super::conflict::Conflicts;
use super::managed::{ManagerFields, ManagerId};
use super::{ApplyError, Force, Versions};
use crate::fields::{Set, equal};
use crate::typed::{Comparison, Duplicates, ObjectType, RemovalFilter, prune, reconcile, remove};
use scantling_value::{Map, Str, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

pub(super) type Managers = BTreeMap<ManagerId, ManagerFields>;

/// An object in one of its versions.
#[derive(Clone)]
pub(super) struct Versioned<'a> {
    pub(super) object: Cow<'a, Value>,
    pub(super) api_version: Str,
}

impl<'a> Versioned<'a> {
    pub(super) fn borrowed(object: &'a Value, api_version: &str) -> Self {
        Versioned {
            object: Cow::Borrowed(object),
            api_version: api_version.into(),
        }
    }

    pub(super) fn owned(object: Value, api_version: &str) -> Self {
        Versioned {
            object: Cow::Owned(object),
            api_version: api_version.into(),
        }
    }
}

/// The reason why an object cannot be converted or does not have its type.
pub(super) enum ConvertError {
    /// The kind does not have that version (any more).
    Missing,
    Failed(String),
}

/// One operation on an object of a kind with several versions.
pub(super) struct Updater<'a> {
    pub(super) versions: &'a dyn Versions,
    /// Fields that a write to this resource cannot change, by version. They and their descendants are
    /// ignored.
    pub(super) reset: &'a BTreeMap<Str, Set>,
}

impl<'a> Updater<'a> {
    fn ty(&self, api_version: &str) -> Result<&'a ObjectType, ConvertError> {
        self.versions
            .object_type(api_version)
            .ok_or(ConvertError::Missing)
    }

    fn convert<'v>(&self, from: &'v Versioned<'_>, api_version: &str) -> Result<Versioned<'v>, ConvertError> {
        if from.api_version == api_version {
            self.ty(api_version)?;
            return Ok(Versioned::borrowed(&from.object, api_version));
        }
        let converted = self
            .versions
            .convert(&from.object, api_version)
            .map_err(ConvertError::Failed)?;
        let ty = self.ty(api_version)?;
        ty.validate(&converted, Duplicates::Refused)
            .map_err(|e| ConvertError::Failed(e.to_string()))?;
        Ok(Versioned::owned(converted, api_version))
    }

    fn without_reset(&self, mut set: Set, api_version: &str) -> Set {
        if let Some(reset) = self.reset.get(api_version) {
            set.subtract_below(reset);
        }
        set
    }

    /// Compares an object with a valid one of the same version; fails if it does not have its type.
    pub(super) fn compare(
        &self,
        old: &Versioned<'_>,
        new: &Versioned<'_>,
    ) -> Result<Comparison, ConvertError> {
        let ty = self.ty(&old.api_version)?;
        let compared = ty.compare(&old.object, &new.object);
        let mut comparison = compared.map_err(|e| ConvertError::Failed(e.to_string()))?;
        if let Some(reset) = self.reset.get(&old.api_version) {
            comparison.subtract(reset);
        }
        Ok(comparison)
    }

    /// Reconciles all field sets with the current schemas.
    fn reconcile(&self, live: &Versioned<'_>, managers: Managers) -> Result<Managers, ApplyError> {
        let mut out = Managers::new();
        for (id, mut owned) in managers {
            // A manager of a version that is gone loses its fields: its type is unknown, so they cannot be named.
            match self.convert(live, &owned.api_version) {
                Ok(_) => {}
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(e)) => return Err(ApplyError::Internal(e)),
            }
            if let Some(ty) = self.versions.object_type(&owned.api_version) {
                reconcile(&mut owned.fields, ty.root());
            }
            out.insert(id, owned);
        }
        Ok(out)
    }

    /// Takes ownership of changed fields from other managers. Without force, an apply that changes owned
    /// fields fails.
    fn take_over(
        &self,
        old: &Versioned<'_>,
        new: &Versioned<'_>,
        own: &Comparison,
        managers: &mut Managers,
        who: &ManagerId,
        force: Force,
    ) -> Result<(), ApplyError> {
        let failed =
            |what: &str, e: &str| ApplyError::Internal(format!("failed to convert {what} object: {e}"));
        // The changes, converted to the other versions that managers use; `None` for versions that no longer
        // exist.
        let mut others: BTreeMap<Str, Option<Comparison>> = BTreeMap::new();
        for (id, owned) in managers.iter() {
            let version = &owned.api_version;
            if id == who || *version == old.api_version || others.contains_key(version) {
                continue;
            }
            let pair = match self.convert(old, version) {
                Ok(old) => match self.convert(new, version) {
                    Ok(new) => Some((old, new)),
                    Err(ConvertError::Missing) => None,
                    Err(ConvertError::Failed(e)) => return Err(failed("new", &e)),
                },
                Err(ConvertError::Missing) => None,
                Err(ConvertError::Failed(e)) => return Err(failed("old", &e)),
            };
            // Both objects are valid: the comparison fails only for a missing type, that is a missing version.
            let comparison = pair.and_then(|(old, new)| self.compare(&old, &new).ok());
            others.insert(version.clone(), comparison);
        }

        let mut conflicts = Conflicts::default();
        for (id, owned) in managers.iter_mut() {
            if id == who {
                continue;
            }
            let changes = if owned.api_version == old.api_version {
                Some(own)
            } else {
                others.get(&owned.api_version).and_then(Option::as_ref)
            };
            let Some(changes) = changes else {
                // As above: the version is gone.
                owned.fields = Set::new();
                continue;
            };
            let changed = [&changes.modified, &changes.added];
            match force {
                Force::Yes => changed.into_iter().for_each(|set| owned.fields.subtract(set)),
                Force::No => {
                    let [mut conflict, added] = changed.map(|set| owned.fields.intersection(set));
                    conflict.unite(added);
                    conflicts.0.extend(Conflicts::of_manager(id, &conflict));
                }
            }
            // Removals never conflict: a field that is gone has no owner.
            owned.fields.subtract(&changes.removed);
        }
        if !conflicts.0.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        managers.retain(|_, owned| !owned.fields.is_empty());
        Ok(())
    }

    /// Computes the ownership of all managers after a write that is not an apply. The writer owns the fields
    /// that it changed, and those of its former fields that still exist.
    pub(super) fn update(
        &self,
        live: &Versioned<'_>,
        new: &Versioned<'_>,
        changes: Comparison,
        managers: Managers,
        who: &ManagerId,
    ) -> Result<(Managers, Set), ApplyError> {
        let mut managers = self.reconcile(live, managers)?;
        self.take_over(live, new, &changes, &mut managers, who, Force::Yes)?;
        let mut set = managers.remove(who).map(|owned| owned.fields).unwrap_or_default();
        set.subtract(&changes.removed);
        set.unite(changes.modified);
        set.unite(changes.added);
        Ok((managers, self.without_reset(set, &new.api_version)))
    }

    /// Applies a configuration: returns the new object, if it differs from the live one, and the ownership.
    /// Both the base and the new object are without `managedFields`.
    pub(super) fn apply(
        &self,
        live: &Versioned<'_>,
        base: Value,
        config: &Versioned<'_>,
        managers: Managers,
        who: &ManagerId,
        force: Force,
    ) -> Result<(Option<Value>, Managers), ApplyError> {
        let mut managers = self.reconcile(live, managers)?;
        let api_version = config.api_version.clone();
        let Ok(ty) = self.ty(&api_version) else {
            return Err(ApplyError::Internal(format!(
                "no corresponding type for {api_version}"
            )));
        };
        let merged = ty.merge(base, &config.object);
        let set = self.without_reset(ty.fields_of(&config.object), &api_version);
        // Inserted before pruning, where the new configuration counts as an owner.
        let last = managers.insert(who.clone(), ManagerFields::new(set.clone(), &api_version));
        // Usually an apply lists everything it listed before, so nothing needs pruning. Exceptions: owned
        // empty lists, which kube-apiserver ignores, and managers in other versions, whose conversion may
        // fail.
        let one_version = managers.values().all(|owned| owned.api_version == api_version);
        let drops = |last: &ManagerFields| {
            !one_version
                || last.api_version != api_version
                || !last.fields.is_subset(&set)
                || has_empty_list(&merged)
        };
        let new = match last.filter(drops) {
            Some(last) => self.prune(merged, &managers, &last, &api_version)?,
            None => merged,
        };
        let new = Versioned::owned(new, &api_version);
        let changes = self.compare(live, &new).map_err(|e| {
            let why = match e {
                ConvertError::Missing => "no type".to_owned(),
                ConvertError::Failed(why) => why,
            };
            ApplyError::Internal(format!("failed to compare objects: {why}"))
        })?;
        self.take_over(live, &new, &changes, &mut managers, who, force)?;
        let changed = !is_same_content(&live.object, &new.object);
        Ok((changed.then(|| new.object.into_owned()), managers))
    }

    /// Removes fields that the manager applied last time and now omits, unless another manager owns them.
    fn prune(
        &self,
        merged: Value,
        managers: &Managers,
        last: &ManagerFields,
        api_version: &str,
    ) -> Result<Value, ApplyError> {
        let failed =
            |what: &str, e: &str| Err(ApplyError::Internal(format!("failed to prune fields: {what}{e}")));
        let merged = Versioned::owned(merged, api_version);
        let at_last = match self.convert(&merged, &last.api_version) {
            Ok(converted) => converted,
            // Without that version, the fields of the last apply cannot be located, so none are removed.
            Err(ConvertError::Missing) => return Ok(merged.object.into_owned()),
            Err(ConvertError::Failed(e)) => {
                return failed("failed to convert merged object to last applied version: ", &e);
            }
        };
        let Some(ty) = self.versions.object_type(&last.api_version) else {
            return Ok(merged.object.into_owned());
        };
        let dropped = last.fields.root();
        // Copied, because the steps below compare with the merged object.
        let mut pruned = at_last.object.clone().into_owned();
        remove(&mut pruned, dropped, ty.root());
        let pruned = Versioned::owned(pruned, &last.api_version);
        let pruned = self.add_back_owned(&at_last, pruned, managers)?;

        // Fields that other managers own are restored.
        let pruned = match self.convert(&pruned, &last.api_version) {
            Ok(converted) => converted,
            Err(ConvertError::Missing) => return Ok(merged.object.into_owned()),
            Err(ConvertError::Failed(e)) => {
                let what = "failed add back dangling items: \
                            failed to convert pruned object to last applied version: ";
                return failed(what, &e);
            }
        };
        let only_dropped = |object: &mut Value| {
            prune(
                object,
                Some(&pruned.object),
                RemovalFilter::Named(dropped),
                ty.root(),
            );
        };
        // The versions are equal, so no conversion back is necessary.
        if last.api_version == api_version {
            let mut result = merged.object.into_owned();
            only_dropped(&mut result);
            return Ok(result);
        }
        let mut result = at_last.object.into_owned();
        only_dropped(&mut result);
        match self.convert(&Versioned::owned(result, &last.api_version), api_version) {
            Ok(converted) => Ok(converted.object.into_owned()),
            Err(ConvertError::Missing) => Ok(merged.object.into_owned()),
            Err(ConvertError::Failed(e)) => failed("", &e),
        }
    }

    /// Restores fields that pruning removed although a manager owns them.
    fn add_back_owned<'v>(
        &self,
        merged: &Versioned<'_>,
        mut pruned: Versioned<'v>,
        managers: &Managers,
    ) -> Result<Versioned<'v>, ApplyError> {
        // kube-apiserver iterates over a Go map; the sorted order makes the conversions reproducible.
        let mut owned: BTreeMap<&Str, Vec<Set>> = BTreeMap::new();
        for ManagerFields { fields, api_version } in managers.values() {
            owned.entry(api_version).or_default().push(fields.clone());
        }
        // The version of the pruned object comes first, because conversion may need fields that pruning
        // removed.
        let first = owned.remove_entry(&pruned.api_version);
        for (api_version, owned) in first.into_iter().chain(owned) {
            let failed = |what: &str, e: &str| {
                ApplyError::Internal(format!(
                    "failed to prune fields: failed add back owned items: \
                     failed to convert {what} object at version {api_version}: {e}"
                ))
            };
            let at = match self.convert(merged, api_version) {
                Ok(converted) => converted,
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(e)) => return Err(failed("merged", &e)),
            };
            let before = match self.convert(&pruned, api_version) {
                Ok(converted) => converted,
                Err(ConvertError::Missing) => continue,
                Err(ConvertError::Failed(e)) => return Err(failed("pruned", &e)),
            };
            let Some(ty) = self.versions.object_type(api_version) else {
                continue;
            };
            let owned = Set::union_of(owned);
            let mut object = at.object.into_owned();
            let choice = RemovalFilter::Unnamed(Some(owned.root()));
            prune(&mut object, Some(&before.object), choice, ty.root());
            pruned = Versioned::owned(object, api_version);
        }
        Ok(pruned)
    }
}

fn has_empty_list(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty() || items.iter().any(has_empty_list),
        Value::Object(map) => map.values().any(has_empty_list),
        _ => false,
    }
}

/// Returns whether objects are equal except for `managedFields`.
fn is_same_content(a: &Value, b: &Value) -> bool {
    // The live object still has its entries. Comparing around them avoids a copy.
    let same = |a: &Map, b: &Map, except: &str| {
        let rest = |map: &'_ Map| map.iter().filter(|(name, _)| *name != except).count();
        let has = |(name, value): (&Str, &Value)| {
            name == except || b.get(name).is_some_and(|other| equal(value, other))
        };
        rest(a) == rest(b) && a.iter().all(has)
    };
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return equal(a, b);
    };
    let metadata = match (a.get("metadata"), b.get("metadata")) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => same(a, b, "managedFields"),
        (Some(a), Some(b)) => equal(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    metadata && same(a, b, "metadata")
}
